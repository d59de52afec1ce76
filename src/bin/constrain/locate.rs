//! Where a JSON pointer lies in the text of a document.
//!
//! Errors of the library name a JSON pointer; people want the line. For the text
//! `{"a": [1, {"b": 2}]}` and the pointer `/a/1/b` the answer is offset 16, the `2`. Where the
//! pointer leads nowhere (the keyword that is missing), the answer is the deepest value on the
//! way to it.
//!
//! One pass, no recursion, linear in the text. The scanner is lenient: on a text that is not
//! JSON it stops early, or gives a place that is close.

/// Byte offset of the value at `pointer` (RFC 6901), or of the deepest value on the way to it.
pub fn locate(text: &str, pointer: &str) -> Option<usize> {
    let wanted: Vec<String> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    Scanner { text, wanted, open: Vec::new(), best: None }.run()
}

/// A container that is open at the scanner's position.
struct Container {
    is_object: bool,
    /// Whether the path to it is a prefix of the wanted one.
    is_on_path: bool,
    /// Whether its current member is the next step of the wanted path.
    is_member_on_path: bool,
    /// Whether the next string is a key.
    expects_key: bool,
    /// Index of the current item of an array.
    index: usize,
}

struct Scanner<'a> {
    text: &'a str,
    wanted: Vec<String>,
    open: Vec<Container>,
    /// Depth and offset of the deepest value on the path so far.
    best: Option<(usize, usize)>,
}

impl Scanner<'_> {
    fn run(mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b':' => at += 1,
                b'{' | b'[' => {
                    let is_on_path = self.see_value(at);
                    self.enter(byte == b'{', is_on_path);
                    at += 1;
                }
                b'}' | b']' => {
                    self.open.pop();
                    at += 1;
                }
                b',' => {
                    self.next_member();
                    at += 1;
                }
                b'"' => {
                    let end = string_end(bytes, at);
                    self.see_string(at, end);
                    at = end;
                }
                _ => {
                    self.see_value(at);
                    at = scalar_end(bytes, at);
                }
            }
            if self.best.is_some_and(|(depth, _)| depth == self.wanted.len()) {
                break;
            }
        }
        self.best.map(|(_, offset)| offset)
    }

    /// A value starts at `offset`: whether it is on the wanted path.
    fn see_value(&mut self, offset: usize) -> bool {
        let depth = self.open.len();
        let is_on_path = match self.open.last() {
            None => self.best.is_none(),
            Some(top) => top.is_member_on_path,
        };
        if is_on_path && self.best.is_none_or(|(best, _)| best < depth) {
            self.best = Some((depth, offset));
        }
        is_on_path
    }

    fn see_string(&mut self, start: usize, end: usize) {
        let depth = self.open.len();
        match self.open.last_mut() {
            Some(top) if top.expects_key => {
                top.expects_key = false;
                let key = self.text.get(start..end).unwrap_or_default();
                let key = serde_json::from_str::<String>(key).ok();
                top.is_member_on_path =
                    top.is_on_path && key.as_ref() == self.wanted.get(depth - 1);
            }
            _ => {
                self.see_value(start);
            }
        }
    }

    fn enter(&mut self, is_object: bool, is_on_path: bool) {
        self.open.push(Container {
            is_object,
            is_on_path,
            is_member_on_path: false,
            expects_key: is_object,
            index: 0,
        });
        self.look_at_index();
    }

    fn next_member(&mut self) {
        if let Some(top) = self.open.last_mut() {
            top.index += 1;
            top.expects_key = top.is_object;
            top.is_member_on_path = false;
        }
        self.look_at_index();
    }

    fn look_at_index(&mut self) {
        let depth = self.open.len();
        if let Some(top) = self.open.last_mut().filter(|top| !top.is_object) {
            let wanted = self.wanted.get(depth - 1);
            top.is_member_on_path =
                top.is_on_path && wanted.is_some_and(|step| *step == top.index.to_string());
        }
    }
}

/// One past the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// One past the number or word that starts at `start`.
fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| b" \t\r\n,:]}\"".contains(byte);
    bytes.iter().skip(start + 1).position(ends).map_or(bytes.len(), |length| start + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[track_caller]
    fn check(text: &str, pointer: &str, found: &str) {
        let offset = locate(text, pointer).expect("a place");
        assert!(text[offset..].starts_with(found), "{pointer}: {}", &text[offset..]);
    }

    #[test]
    fn values_are_found_by_their_pointer() {
        let text =
            r#"{"a": [1, {"b": 2}], "b": "x\"}", "c/d": {"": true}, "\u0065": [[], [null]]}"#;
        check(text, "", "{\"a\"");
        check(text, "/a", "[1,");
        check(text, "/a/1/b", "2}]");
        check(text, "/b", "\"x");
        check(text, "/c~1d/", "true");
        check(text, "/e/1/0", "null");
    }

    #[test]
    fn a_pointer_to_nothing_gives_the_deepest_value_on_the_way() {
        let text = r#"{"a": {"x": 1}, "b": {"a": 3}}"#;
        check(text, "/b/zzz/y", "{\"a\": 3");
        check(text, "/zzz", "{\"a\": {");
    }

    #[test]
    fn texts_that_are_not_json_do_no_harm() {
        for text in ["", "}", "]]", "{\"a", "{\"a\\", "[1,,,", "{{{{", "\u{e9}\"\u{e9}"] {
            for pointer in ["", "/a", "/0/0", "a", "//"] {
                locate(text, pointer);
            }
        }
    }

    /// Paths of all values of a document, found by walking the parsed form.
    fn pointers(value: &Value, path: String, out: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    pointers(item, format!("{path}/{i}"), out);
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    pointers(item, format!("{path}/{key}"), out);
                }
            }
            _ => {}
        }
        out.push(path);
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a~/\"\\\\{}\\[\\],: é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a~/\"\\\\]{0,2}", inner, 0..4).prop_map(|map| {
                    Value::from(map.into_iter().collect::<serde_json::Map<_, _>>())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_the_value(document in documents(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&document).unwrap()
            } else {
                document.to_string()
            };
            let mut all = Vec::new();
            pointers(&document, String::new(), &mut all);
            for pointer in all {
                let offset = locate(&text, &pointer).expect("a place");
                let found = serde_json::Deserializer::from_str(&text[offset..])
                    .into_iter::<Value>().next().unwrap().unwrap();
                prop_assert_eq!(Some(&found), document.pointer(&pointer), "{}", pointer);
            }
        }
    }
}
