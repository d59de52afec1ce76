//! Where in the document the values of an answer stand.
//!
//! That a value *is* a piece of the document the constraint guarantees (`"x-constrain": {"span": true}`,
//! see [`crate::Document`]). Which strings are meant is written in the schema: [`is_span`]. A piece may
//! occur more than once; [`locate`] lists all places and marks the likeliest.
//!
//! # The likeliest place
//! Answers follow the document more often than not, and values that belong together stand together. So
//! the places are chosen together: the cheapest way through the document that visits one place of
//! each value in the order of the answer. It costs the characters between two neighbours, four times as
//! many backwards, and much for a place that begins or ends inside a word. It is a guess, and
//! is marked as one; the list of all places is exact.
//!
//! Worked example: the document `Lee, 31, met Kim, 31.` and the answer `{"name": "Kim", "age": "31"}`. `Kim`
//! stands at 13, `31` at 5 and at 18. From `Kim` it is two characters on to the second `31`, and
//! eleven back to the first: the second is marked.
//!
//! # Invariants
//! The places are those of [`Document::occurrences`]; exactly one is marked wherever there is one.
//!
//! # Cost
//! One search of the document per value, and for each pair of neighbours the product of their numbers of
//! places, of which the first 256 each are compared.
//!
//! ```
//! use constrain::{Document, spans};
//!
//! let document = Document::new("Lee, 31, met Kim, 31.")?;
//! let found = spans::locate(&document, &["Kim", "31"]);
//! assert_eq!(found[1].places.len(), 2);
//! assert_eq!(found[1].best().map(|place| place.chars.clone()), Some(18..20));
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::expr::{Document, Place};
use serde_json::Value;

/// Places of one value that are compared.
const COMPARED: usize = 256;

/// Schemas that are looked at for one string.
const LOOKED_AT: usize = 10_000;

/// What a border inside a word costs, in characters of distance.
const CUT_WORD: usize = 100_000;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// All places, in order; they may overlap.
    pub places: Vec<Place>,
    /// The likeliest of them.
    likeliest: usize,
}

impl Located {
    /// The likeliest place.
    pub fn best(&self) -> Option<&Place> {
        self.places.get(self.likeliest)
    }

    /// All places, each with whether it is the likeliest.
    pub fn marked(&self) -> impl Iterator<Item = (&Place, bool)> {
        self.places.iter().enumerate().map(|(i, place)| (place, i == self.likeliest))
    }
}

/// Where the values of an answer stand, which are given in their order in it.
pub fn locate(document: &Document, values: &[&str]) -> Vec<Located> {
    let places: Vec<Vec<Place>> = values.iter().map(|value| document.occurrences(value)).collect();
    let likeliest = likeliest(document.text(), &places);
    let located = places.into_iter().zip(likeliest);
    located.map(|(places, likeliest)| Located { places, likeliest }).collect()
}

/// The index of the likeliest place of each value; 0 where there is none.
fn likeliest(text: &str, values: &[Vec<Place>]) -> Vec<usize> {
    let mut chosen = vec![0; values.len()];
    // Of the values that stand somewhere: the cost of the best way to each place, and by which place
    // of the value before.
    let mut ways: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
    for (value, places) in values.iter().enumerate().filter(|value| !value.1.is_empty()) {
        let places = &places[..places.len().min(COMPARED)];
        let way = |place: &Place| match ways.last() {
            None => (0, 0),
            Some((before, ways)) => {
                let from = ways.iter().zip(&values[*before]).enumerate();
                let costs = from.map(|(i, (way, from))| (way.0 + distance(from, place), i));
                costs.min().unwrap_or_default()
            }
        };
        let costs = places.iter().map(|place| {
            let (cost, from) = way(place);
            (cost + cut_words(text, place), from)
        });
        let costs = costs.collect();
        ways.push((value, costs));
    }
    let mut next = None;
    for (value, ways) in ways.iter().rev() {
        let best = next.or_else(|| (0..ways.len()).min_by_key(|&i| ways[i].0));
        chosen[*value] = best.unwrap_or(0);
        next = ways.get(chosen[*value]).map(|way| way.1);
    }
    chosen
}

/// How far it is from one place to the next.
fn distance(from: &Place, to: &Place) -> usize {
    let (from, to) = (&from.chars, &to.chars);
    match to.start.checked_sub(from.start) {
        Some(_) => to.start.saturating_sub(from.end),
        None => 4 * (from.start - to.start),
    }
}

/// What it costs that a place begins or ends inside a word.
fn cut_words(text: &str, place: &Place) -> usize {
    let (before, rest) = text.split_at_checked(place.bytes.start).unwrap_or_default();
    let (piece, after) = rest.split_at_checked(place.bytes.len()).unwrap_or_default();
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let starts = word(before.chars().next_back()) && word(piece.chars().next());
    let ends = word(piece.chars().next_back()) && word(after.chars().next());
    CUT_WORD * (usize::from(starts) + usize::from(ends))
}

/// Whether the schema says of the string at a JSON pointer of an answer that it is a piece of the
/// document: where there is a choice of schemas, whether one of them says it. References within the
/// schema are followed by pointer.
pub fn is_span(schema: &Value, pointer: &str) -> bool {
    let mut schemas = vec![schema];
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        let here = in_place(schema, schemas);
        schemas = here.iter().flat_map(|schema| below(schema, &name)).collect();
    }
    in_place(schema, schemas)
        .iter()
        .any(|schema| schema["x-constrain"]["span"] == Value::Bool(true))
}

/// Whether any schema in a text speaks of pieces of the document.
pub fn has_spans(schema: &Value) -> bool {
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => {
                if value["x-constrain"]["span"] == Value::Bool(true) {
                    return true;
                }
                todo.extend(members.values());
            }
            _ => {}
        }
    }
    false
}

/// These schemas and all that may hold for the same value.
fn in_place<'a>(root: &'a Value, schemas: Vec<&'a Value>) -> Vec<&'a Value> {
    let mut found = schemas;
    let mut at = 0;
    while let Some(&schema) = found.get(at).filter(|_| at < LOOKED_AT) {
        let mut add = |other: &'a Value| {
            if !found.iter().any(|known| std::ptr::eq(*known, other)) {
                found.push(other);
            }
        };
        let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| root.pointer(pointer)).into_iter().for_each(&mut add);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            schema[keyword].as_array().into_iter().flatten().for_each(&mut add);
        }
        for keyword in ["then", "else"] {
            schema.get(keyword).into_iter().for_each(&mut add);
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            let members = schema[keyword].as_object().into_iter().flatten();
            members.for_each(|(_, schema)| add(schema));
        }
        at += 1;
    }
    found
}

/// The schemas that may hold for a member, or for an item.
fn below<'a>(schema: &'a Value, name: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = schema["properties"].get(name).into_iter().collect();
    if found.is_empty() {
        let patterns = schema["patternProperties"].as_object();
        found.extend(patterns.into_iter().flatten().map(|(_, schema)| schema));
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            found.extend(schema.get(keyword));
        }
    }
    if let Ok(index) = name.parse::<usize>() {
        for keyword in ["prefixItems", "items"] {
            found.extend(schema[keyword].as_array().and_then(|schemas| schemas.get(index)));
        }
        for keyword in ["items", "additionalItems", "unevaluatedItems", "contains"] {
            found.extend(schema.get(keyword));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn best(text: &str, values: &[&str]) -> Vec<Option<usize>> {
        let document = Document::new(text).unwrap();
        let located = locate(&document, values);
        assert!(located.iter().all(|l| l.marked().filter(|place| place.1).count() <= 1));
        located.iter().map(|located| located.best().map(|place| place.chars.start)).collect()
    }

    #[test]
    fn the_likeliest_place_is_near_and_no_part_of_a_word() {
        assert_eq!(best("Lee, 31, met Kim, 31.", &["Kim", "31"]), [Some(13), Some(18)]);
        assert_eq!(best("Lee, 31, met Kim, 31.", &["Lee", "31"]), [Some(0), Some(5)]);
        // A later value decides for the earlier one.
        assert_eq!(best("a 1 b ... a 2 c", &["a", "c"]), [Some(10), Some(14)]);
        assert_eq!(best("seventeen ten", &["ten"]), [Some(10)]);
        assert_eq!(best("ab ab", &["x", "ab", ""]), [None, Some(0), None]);
        // Backwards is farther than forwards.
        assert_eq!(best("x--k-----------x", &["k", "x"]), [Some(3), Some(15)]);
    }

    #[test]
    fn no_other_choice_is_cheaper() {
        let text = "ab a ab ba a b ab";
        let values = ["a", "ab", "b"];
        let document = Document::new(text).unwrap();
        let places: Vec<Vec<Place>> = values.iter().map(|v| document.occurrences(v)).collect();
        let cost = |chosen: &[usize]| -> usize {
            let at: Vec<&Place> = chosen.iter().zip(&places).map(|(&i, p)| &p[i]).collect();
            let own: usize = at.iter().map(|place| cut_words(text, place)).sum();
            own + at.windows(2).map(|pair| distance(pair[0], pair[1])).sum::<usize>()
        };
        let chosen = likeliest(text, &places);
        for i in 0..places[0].len() {
            for j in 0..places[1].len() {
                for k in 0..places[2].len() {
                    assert!(cost(&chosen) <= cost(&[i, j, k]));
                }
            }
        }
    }

    #[test]
    fn the_schema_says_which_strings_are_pieces() {
        let schema = json!({
            "properties": {
                "a/b": {"x-constrain": {"span": true}},
                "list": {"prefixItems": [{}], "items": {"$ref": "#/$defs/s"}},
                "free": {"type": "string", "x-constrain": {"span": false}},
                "tree": {"$ref": "#"}
            },
            "additionalProperties": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/s"}]},
            "$defs": {"s": {"allOf": [{"x-constrain": {"span": true}}]}}
        });
        assert!(has_spans(&schema) && !has_spans(&schema["properties"]["free"]));
        for pointer in ["/a~1b", "/list/1", "/other", "/tree/tree/a~1b"] {
            assert!(is_span(&schema, pointer), "{pointer}");
        }
        for pointer in ["", "/list", "/list/0/x", "/free", "/tree", "/tree/free"] {
            assert!(!is_span(&schema, pointer), "{pointer}");
        }
        assert!(!is_span(&json!(true), "/a/0"));
    }
}
