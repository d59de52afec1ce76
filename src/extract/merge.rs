//! Putting together what the parts of a long document gave.
//!
//! All parts are asked for the same form, so their values have the same shape:
//!
//! * **Objects** are merged key by key, keys in the order in which they come up.
//! * **Lists** follow each other. Parts overlap, so an item of a part that equals one of the part before it is the same
//!   item, once for each of them.
//! * **Of single values** that are not null, the surest stays; of equally sure ones the first.
//!
//! By hand, `{"buyer": "Ada", "items": [1, 2]}` and `{"buyer": null, "items": [2, 2, 3]}` make
//! `{"buyer": "Ada", "items": [1, 2, 2, 3]}`: one of the twos was seen twice.
//!
//! Values are at most as deep as constraints allow, so the recursion is bounded.

use serde_json::{Map, Value};

/// A merged value, and where it is from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// The value.
    pub value: Value,
    /// Whole values that were taken over.
    pub origins: Vec<Origin>,
}

/// A value that was taken over from a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its JSON pointer in the merged value.
    pub pointer: String,
    /// The number of the part.
    pub part: usize,
    /// Its JSON pointer there.
    pub from: String,
}

impl Merged {
    /// Where the value at a pointer of a part went, if it was taken over.
    pub fn pointer(&self, part: usize, from: &str) -> Option<String> {
        self.origins.iter().filter(|origin| origin.part == part).find_map(|origin| {
            let rest = from.strip_prefix(&origin.from)?;
            let is_within = rest.is_empty() || rest.starts_with('/');
            is_within.then(|| format!("{}{rest}", origin.pointer))
        })
    }
}

/// Merges the values of the parts, in their order; `sure` tells how sure the value at a pointer of a part is.
pub fn merge(parts: &[Value], sure: &dyn Fn(usize, &str) -> f64) -> Merged {
    let mut merger = Merger { sure, origins: Vec::new() };
    let found: Vec<Found<'_>> = parts
        .iter()
        .enumerate()
        .map(|(part, value)| Found { part, pointer: String::new(), value })
        .collect();
    let value = merger.values(String::new(), found);
    Merged { value, origins: merger.origins }
}

/// A value of a part.
struct Found<'v> {
    part: usize,
    pointer: String,
    value: &'v Value,
}

struct Merger<'s> {
    sure: &'s dyn Fn(usize, &str) -> f64,
    origins: Vec<Origin>,
}

impl Merger<'_> {
    /// What the values of some parts are together.
    fn values(&mut self, pointer: String, mut found: Vec<Found<'_>>) -> Value {
        found.retain(|found| !found.value.is_null());
        // What has another shape than the first cannot be merged with it.
        let Some(first) = found.first().map(|found| found.value) else { return Value::Null };
        found.retain(|found| std::mem::discriminant(found.value) == std::mem::discriminant(first));
        match first {
            Value::Object(_) => self.objects(&pointer, &found),
            Value::Array(_) => self.arrays(&pointer, &found),
            _ => self.single(pointer, &found),
        }
    }

    fn objects(&mut self, pointer: &str, found: &[Found<'_>]) -> Value {
        let mut keys: Vec<&String> = Vec::new();
        for key in found.iter().filter_map(|found| found.value.as_object()).flat_map(Map::keys) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let member = |key: &String| {
            let token = key.replace('~', "~0").replace('/', "~1");
            let values = found.iter().filter_map(|found| {
                let pointer = format!("{}/{token}", found.pointer);
                Some(Found { part: found.part, pointer, value: found.value.get(key)? })
            });
            (format!("{pointer}/{token}"), values.collect::<Vec<Found<'_>>>())
        };
        let mut members = Map::new();
        for key in keys {
            let (pointer, values) = member(key);
            members.insert(key.clone(), self.values(pointer, values));
        }
        Value::Object(members)
    }

    fn arrays(&mut self, pointer: &str, found: &[Found<'_>]) -> Value {
        let (mut items, mut before): (Vec<Value>, &[Value]) = (Vec::new(), &[]);
        for found in found {
            let own = found.value.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut seen: Vec<&Value> = before.iter().collect();
            for (index, item) in own.iter().enumerate() {
                if let Some(same) = seen.iter().position(|seen| *seen == item) {
                    seen.swap_remove(same);
                    continue;
                }
                self.origins.push(Origin {
                    pointer: format!("{pointer}/{}", items.len()),
                    part: found.part,
                    from: format!("{}/{index}", found.pointer),
                });
                items.push(item.clone());
            }
            before = own;
        }
        Value::Array(items)
    }

    fn single(&mut self, pointer: String, found: &[Found<'_>]) -> Value {
        let mut best: Option<(&Found<'_>, f64)> = None;
        for found in found {
            let sure = (self.sure)(found.part, &found.pointer);
            if best.is_none_or(|(_, most)| sure > most) {
                best = Some((found, sure));
            }
        }
        let Some((best, _)) = best else { return Value::Null };
        self.origins.push(Origin { pointer, part: best.part, from: best.pointer.clone() });
        best.value.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_example_by_hand() {
        let parts = [
            json!({"buyer": "Ada", "items": [1, 2]}),
            json!({"buyer": null, "items": [2, 2, 3], "new": {"a/b": [true]}}),
        ];
        let merged = merge(&parts, &|_, _| 1.0);
        assert_eq!(
            merged.value,
            json!({"buyer": "Ada", "items": [1, 2, 2, 3], "new": {"a/b": [true]}})
        );
        assert_eq!(merged.pointer(0, "/items/1").as_deref(), Some("/items/1"));
        assert_eq!(merged.pointer(1, "/items/2").as_deref(), Some("/items/3"));
        assert_eq!(merged.pointer(1, "/items/0"), None);
        assert_eq!(merged.pointer(1, "/new/a~1b/0").as_deref(), Some("/new/a~1b/0"));
        // Every value that was taken over is where it is said to be.
        for origin in &merged.origins {
            assert_eq!(
                merged.value.pointer(&origin.pointer),
                parts[origin.part].pointer(&origin.from)
            );
        }
    }

    #[test]
    fn the_surest_stays_and_null_never_does() {
        let parts = [json!({"a": 1}), json!({"a": 2}), json!({"a": 3}), json!({"a": null})];
        let sure = |part: usize, _: &str| [0.3, 0.9, 0.9, 1.0][part];
        assert_eq!(merge(&parts, &sure).value, json!({"a": 2}));
        assert_eq!(merge(&[json!(null), json!([null])], &sure).value, json!([null]));
        assert_eq!(merge(&[json!(null)], &sure).value, json!(null));
        assert_eq!(merge(&[], &sure).value, json!(null));
        assert_eq!(merge(&[json!("x"), json!([1])], &sure).value, json!("x"));
    }
}
