//! Comparing a value with its label, field by field.
//!
//! A field is named by its JSON pointer with `*` for the places of a list. Of each field that has a value in either:
//!
//! ```text
//! label      found
//! x          x        right
//! x          y        wrong
//! x          -        missing
//! -          y        invented
//! -          -        empty (null in both): counted, not scored
//! ```
//!
//! **Lists** have no places that could be compared: their items are matched, the most alike first, as long as they
//! have anything in common; what is left of the label is missing, what is left of the other invented. By hand, `[{"a": 1, "b": 2}, {"a": 3,
//! "b": 4}]` against `[{"a": 3, "b": 5}]`: the second item of the label is matched; `/*/a` is once right and once missing, `/*/b`
//! once wrong and once missing.
//!
//! Numbers are compared by value, texts as they are or, loosely, without regard to case and white space.
//!
//! JSON as it is parsed is at most 128 levels deep, so the recursion is bounded.

use serde_json::{Map, Value};

/// More pairs of items than this are not compared: lists that long are matched by their places.
const PAIRS_MAX: usize = 20_000;

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    Missing,
    Invented,
    Empty,
}

/// One field of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Its name.
    pub field: String,
    pub verdict: Verdict,
    /// The pointer of the value that was found.
    pub found: Option<String>,
}

/// Scores a value against its label.
pub fn score(label: &Value, found: &Value, loose: bool) -> Vec<Scored> {
    let mut scorer = Scorer { loose, scored: Vec::new() };
    scorer.compare(&Place::default(), label, found);
    scorer.scored
}

/// A place, as the name of its field, and as the pointer in what was found.
#[derive(Debug, Clone, Default)]
struct Place {
    field: String,
    found: String,
}

impl Place {
    fn member(&self, key: &str) -> Self {
        let token = key.replace('~', "~0").replace('/', "~1");
        Self { field: format!("{}/{token}", self.field), found: format!("{}/{token}", self.found) }
    }

    fn item(&self, index: usize) -> Self {
        Self { field: format!("{}/*", self.field), found: format!("{}/{index}", self.found) }
    }
}

struct Scorer {
    loose: bool,
    scored: Vec<Scored>,
}

impl Scorer {
    fn compare(&mut self, place: &Place, label: &Value, found: &Value) {
        match (label, found) {
            (Value::Object(label), Value::Object(found)) => self.objects(place, label, found),
            (Value::Array(label), Value::Array(found)) => self.arrays(place, label, found),
            (Value::Null, Value::Null) => self.add(place, Verdict::Empty),
            (Value::Null, found) => self.leaves(place, found, Verdict::Invented),
            (label, Value::Null) => self.leaves(place, label, Verdict::Missing),
            (label, found) if is_single(label) && is_single(found) => {
                let is_right = self.is_equal(label, found);
                self.add(place, if is_right { Verdict::Right } else { Verdict::Wrong });
            }
            // Different shapes have nothing in common.
            (label, found) => {
                self.leaves(place, label, Verdict::Missing);
                self.leaves(place, found, Verdict::Invented);
            }
        }
    }

    fn objects(&mut self, place: &Place, label: &Map<String, Value>, found: &Map<String, Value>) {
        let missing = found.keys().filter(|key| !label.contains_key(*key));
        for key in label.keys().chain(missing) {
            let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            self.compare(&place.member(key), &of(label), &of(found));
        }
    }

    fn arrays(&mut self, place: &Place, label: &[Value], found: &[Value]) {
        let pairs = self.matched(label, found);
        for (at, item) in label.iter().enumerate() {
            match pairs.iter().find(|pair| pair.0 == at) {
                Some(&(_, other)) => self.compare(&place.item(other), item, &found[other]),
                None => self.leaves(&place.item(at), item, Verdict::Missing),
            }
        }
        for (at, item) in found.iter().enumerate() {
            if !pairs.iter().any(|pair| pair.1 == at) {
                self.leaves(&place.item(at), item, Verdict::Invented);
            }
        }
    }

    /// Which items belong together: the most alike first, of equally alike ones the first.
    fn matched(&self, label: &[Value], found: &[Value]) -> Vec<(usize, usize)> {
        if label.len() * found.len() > PAIRS_MAX {
            return (0..label.len().min(found.len())).map(|at| (at, at)).collect();
        }
        let mut alike = Vec::new();
        for (at, item) in label.iter().enumerate() {
            for (other, found) in found.iter().enumerate() {
                let scored = score(item, found, self.loose);
                let right = scored.iter().filter(|s| s.verdict == Verdict::Right).count();
                if right > 0 {
                    alike.push((right, at, other));
                }
            }
        }
        alike.sort_by_key(|&(right, at, other)| (usize::MAX - right, at, other));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (_, at, other) in alike {
            if pairs.iter().all(|pair| pair.0 != at && pair.1 != other) {
                pairs.push((at, other));
            }
        }
        pairs
    }

    /// All single values of a value are missing, or invented.
    fn leaves(&mut self, place: &Place, value: &Value, verdict: Verdict) {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                members.iter().for_each(|(k, v)| self.leaves(&place.member(k), v, verdict));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(at, item)| self.leaves(&place.item(at), item, verdict));
            }
            _ => self.add(place, verdict),
        }
    }

    fn add(&mut self, place: &Place, verdict: Verdict) {
        let is_there = matches!(verdict, Verdict::Right | Verdict::Wrong | Verdict::Invented);
        let found = is_there.then(|| place.found.clone());
        self.scored.push(Scored { field: place.field.clone(), verdict, found });
    }

    fn is_equal(&self, label: &Value, found: &Value) -> bool {
        match (label, found) {
            (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            (Value::String(a), Value::String(b)) if self.loose => plain(a) == plain(b),
            (a, b) => a == b,
        }
    }
}

fn is_single(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// A text without regard to case and white space.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Right, wrong, missing, invented and empty of a field.
    fn counts(label: &Value, found: &Value, field: &str) -> [usize; 5] {
        let all = score(label, found, false);
        let of = |verdict| all.iter().filter(|s| s.field == field && s.verdict == verdict).count();
        [Verdict::Right, Verdict::Wrong, Verdict::Missing, Verdict::Invented, Verdict::Empty]
            .map(of)
    }

    #[test]
    fn the_table_of_the_module() {
        let label = json!({"a": 1, "b": 1.0, "c": "x", "d": null, "e": null, "f": true});
        let found = json!({"a": 1, "b": 1, "c": null, "d": "y", "e": null, "f": false});
        for (field, expected) in [
            ("/a", [1, 0, 0, 0, 0]),
            ("/b", [1, 0, 0, 0, 0]),
            ("/c", [0, 0, 1, 0, 0]),
            ("/d", [0, 0, 0, 1, 0]),
            ("/e", [0, 0, 0, 0, 1]),
            ("/f", [0, 1, 0, 0, 0]),
        ] {
            assert_eq!(counts(&label, &found, field), expected, "{field}");
        }
        // What is not there at all is like null.
        assert_eq!(counts(&json!({"a": {"b": 1}}), &json!({}), "/a/b"), [0, 0, 1, 0, 0]);
        assert_eq!(counts(&json!({}), &json!({"a": [1, 2]}), "/a/*"), [0, 0, 0, 2, 0]);
    }

    #[test]
    fn items_are_matched_by_what_they_share() {
        let label = json!([{"a": 1, "b": 2}, {"a": 3, "b": 4}]);
        let found = json!([{"a": 3, "b": 5}]);
        assert_eq!(counts(&label, &found, "/*/a"), [1, 0, 1, 0, 0]);
        assert_eq!(counts(&label, &found, "/*/b"), [0, 1, 1, 0, 0]);
        let scored = score(&label, &found, false);
        assert!(scored.iter().any(|s| s.found.as_deref() == Some("/0/a")));
        let (label, found) = (json!(["x", "y", "y", "z"]), json!(["y", "q", "x", "y"]));
        assert_eq!(counts(&label, &found, "/*"), [3, 0, 1, 1, 0]);
        assert_eq!(counts(&json!({"a": [1]}), &json!({"a": 1}), "/a/*"), [0, 0, 1, 0, 0]);
        assert_eq!(counts(&json!({"a": [1]}), &json!({"a": 1}), "/a"), [0, 0, 0, 1, 0]);
        // Long lists are compared all the same.
        let long: Vec<u64> = (0..1000).collect();
        assert_eq!(counts(&json!(long), &json!(long), "/*"), [1000, 0, 0, 0, 0]);
    }

    #[test]
    fn texts_can_be_compared_loosely() {
        let (a, b) = (json!("ACME  Ltd\n"), json!("acme ltd"));
        assert_eq!(score(&a, &b, false)[0].verdict, Verdict::Wrong);
        assert_eq!(score(&a, &b, true)[0].verdict, Verdict::Right);
    }
}
