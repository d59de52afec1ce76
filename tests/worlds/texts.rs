//! All compact JSON texts of a small world: made part by part, by length.
//!
//! A world says which bytes may stand inside of strings and which outside. The texts of each length are made of
//! shorter ones: a number of length 3 is any three of the allowed characters that JSON reads as a number; an array
//! of length n is `[`, items that take n - 2 bytes with their commas, and `]`. So nothing here knows
//! schemas, masks or automata. (`generated_texts_are_all_texts` compares with all strings, read by `serde_json`.)

use std::collections::BTreeSet;

/// What may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct World {
    /// Bytes outside of strings; without quotes there are no strings, without brackets no arrays.
    pub outside: &'static str,
    /// What a string is made of, but for escapes: whole characters.
    pub inside: &'static str,
    /// What may follow a backslash in a string; `u` stands for four of the hexadecimal digits in `inside`.
    pub escapes: &'static str,
}

/// Where a text is, as far as the world is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Open brackets.
    depth: usize,
    string: bool,
    /// 5 after a backslash; else the digits of an escape that are still to come.
    escape: u8,
}

impl World {
    /// The place after one more byte; `None` if that is not of this world. Not all of it is JSON.
    pub fn step(&self, at: Place, byte: u8) -> Option<Place> {
        if at.escape == 5 {
            let escape = if byte == b'u' { 4 } else { 0 };
            return self.escapes.as_bytes().contains(&byte).then_some(Place { escape, ..at });
        }
        if at.escape > 0 {
            let hex = byte.is_ascii_hexdigit() && self.inside.as_bytes().contains(&byte);
            return hex.then_some(Place { escape: at.escape - 1, ..at });
        }
        match (at.string, byte) {
            (_, b'"') => self.outside.contains('"').then_some(Place { string: !at.string, ..at }),
            (true, b'\\') => (!self.escapes.is_empty()).then_some(Place { escape: 5, ..at }),
            (true, byte) => self.inside.as_bytes().contains(&byte).then_some(at),
            (false, byte) if !self.outside.as_bytes().contains(&byte) => None,
            (false, b'[' | b'{') => Some(Place { depth: at.depth + 1, ..at }),
            (false, b']' | b'}') => Some(Place { depth: at.depth.checked_sub(1)?, ..at }),
            (false, _) => Some(at),
        }
    }

    /// The bytes of this world.
    pub fn bytes(&self) -> BTreeSet<u8> {
        let escapes = if self.escapes.is_empty() { "" } else { "\\" };
        [self.outside, self.inside, self.escapes, escapes]
            .concat()
            .into_bytes()
            .into_iter()
            .collect()
    }

    /// All texts of up to as many bytes as keep their number below `most`, and that length.
    pub fn texts(&self, most: usize) -> (Vec<String>, usize) {
        let mut parts = Parts::new(self);
        let mut found = 0;
        for length in 1.. {
            if parts.count() + found > most || length > 40 {
                break;
            }
            parts.make(length);
            found += parts.values[length].len();
        }
        let length = parts.values.len() - 1;
        (parts.values.into_iter().flatten().collect(), length)
    }
}

impl Place {
    /// Bytes without which no text ends.
    pub fn owed(&self) -> usize {
        let escape = if self.escape == 5 { 1 } else { self.escape };
        self.depth + usize::from(self.string) + usize::from(escape)
    }
}

/// Texts by length.
struct Parts<'w> {
    world: &'w World,
    values: Vec<Vec<String>>,
    /// Beginnings of numbers of the last length.
    begun: Vec<String>,
    strings: Vec<Vec<String>>,
    /// Contents of strings.
    inner: Vec<Vec<String>>,
    /// One value and more, with commas.
    items: Vec<Vec<String>>,
    /// One member and more, with commas; keys may be equal.
    members: Vec<Vec<String>>,
}

impl<'w> Parts<'w> {
    fn new(world: &'w World) -> Self {
        let none = || vec![Vec::new()];
        Self {
            world,
            values: none(),
            begun: vec![String::new()],
            strings: none(),
            inner: vec![vec![String::new()]],
            items: none(),
            members: none(),
        }
    }

    /// An upper bound of the number of values of the next length.
    fn count(&self) -> usize {
        let numbers = self.begun.len() * self.digits().len();
        let last = self.strings.last().map_or(0, Vec::len);
        numbers
            + last * (self.world.inside.len() + 1)
            + self.items.last().map_or(0, Vec::len)
            + self.members.last().map_or(0, Vec::len)
    }

    fn digits(&self) -> Vec<char> {
        self.world.outside.chars().filter(|c| "0123456789+-.eE".contains(*c)).collect()
    }

    fn has(&self, text: &str) -> bool {
        text.chars().all(|c| self.world.outside.contains(c))
    }

    fn make(&mut self, length: usize) {
        let inner = self.contents(length);
        self.inner.push(inner);
        let strings = match length {
            2.. if self.has("\"") => {
                self.inner[length - 2].iter().map(|text| format!("\"{text}\"")).collect()
            }
            _ => Vec::new(),
        };
        self.strings.push(strings);
        let mut values = self.strings[length].clone();
        let words = ["true", "false", "null"].into_iter();
        values
            .extend(words.filter(|word| word.len() == length && self.has(word)).map(str::to_owned));
        values.extend(self.numbers());
        for (open, close, list) in [("[", "]", &self.items), ("{", "}", &self.members)] {
            if length >= 2 && self.has(open) {
                let bare = (length == 2).then(String::new);
                let inside = list[length - 2].iter().chain(&bare);
                values.extend(inside.map(|text| format!("{open}{text}{close}")));
            }
        }
        self.values.push(values);
        let items = self.list(length, &self.items, &|parts, n| parts.values[n].clone());
        self.items.push(items);
        let members = self.list(length, &self.members, &Self::pairs);
        self.members.push(members);
    }

    /// Lists of this length: one element, or one and a comma before a shorter list.
    fn list(
        &self,
        length: usize,
        shorter: &[Vec<String>],
        elements: &dyn Fn(&Self, usize) -> Vec<String>,
    ) -> Vec<String> {
        let mut found = elements(self, length);
        for first in 1..length.saturating_sub(1) {
            let rest = &shorter[length - first - 1];
            if self.has(",") && !rest.is_empty() {
                for one in elements(self, first) {
                    found.extend(rest.iter().map(|more| format!("{one},{more}")));
                }
            }
        }
        found
    }

    /// Members of this length.
    fn pairs(&self, length: usize) -> Vec<String> {
        let mut found = Vec::new();
        for key in 2..length.saturating_sub(1) {
            let values = &self.values[length - key - 1];
            if self.has(":") {
                for name in &self.strings[key] {
                    found.extend(values.iter().map(|value| format!("{name}:{value}")));
                }
            }
        }
        found
    }

    /// Contents of strings of this length: one piece, and a shorter content.
    fn contents(&self, length: usize) -> Vec<String> {
        let mut pieces: Vec<String> = self.world.inside.chars().map(String::from).collect();
        let hex: Vec<char> = self.world.inside.chars().filter(char::is_ascii_hexdigit).collect();
        for escape in self.world.escapes.chars() {
            let digits = if escape == 'u' { 4 } else { 0 };
            let codes = sequences(&hex, digits).into_iter();
            // Half a surrogate pair is no character.
            let codes = codes.filter(|code| !code.to_ascii_lowercase().starts_with('d'));
            pieces.extend(codes.map(|code| format!("\\{escape}{code}")));
        }
        let mut found = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.len() <= length) {
            found.extend(
                self.inner[length - piece.len()].iter().map(|rest| format!("{piece}{rest}")),
            );
        }
        found
    }

    /// Numbers of this length, out of their beginnings: what is a number, or one with a digit behind it.
    fn numbers(&mut self) -> Vec<String> {
        let digits = self.digits();
        let longer =
            self.begun.iter().flat_map(|text| digits.iter().map(move |c| format!("{text}{c}")));
        let is_number = |text: &str| serde_json::from_str::<serde_json::Number>(text).is_ok();
        self.begun =
            longer.filter(|text| is_number(text) || is_number(&format!("{text}0"))).collect();
        self.begun.iter().filter(|text| is_number(text)).cloned().collect()
    }
}

/// All sequences of so many characters.
pub fn sequences(letters: &[char], length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for _ in 0..length {
        let longer = all.iter().flat_map(|text| letters.iter().map(move |c| format!("{text}{c}")));
        all = longer.collect();
    }
    all
}

/// What is made of parts is what a parser says of all strings.
#[test]
fn generated_texts_are_all_texts() {
    let worlds = [
        World { outside: "{}\":,[]1", inside: "a", escapes: "" },
        World { outside: "\"", inside: "a0\u{e9}", escapes: "u\"n" },
        World { outside: "[],01-.e", inside: "", escapes: "" },
    ];
    for world in worlds {
        let bytes: Vec<u8> = world.bytes().into_iter().collect();
        let (made, length) = world.texts(300);
        let made: BTreeSet<String> = made.into_iter().filter(|text| text.len() <= 6).collect();
        let mut found = BTreeSet::new();
        let mut work = vec![(Vec::new(), Place::default())];
        while let Some((text, place)) = work.pop() {
            if place == Place::default()
                && let Ok(text) = std::str::from_utf8(&text)
                && serde_json::from_str::<serde_json::Value>(text).is_ok()
            {
                found.insert(text.to_owned());
            }
            if text.len() < length.min(6) {
                for &byte in &bytes {
                    if let Some(place) = world.step(place, byte) {
                        work.push(([&text[..], &[byte]].concat(), place));
                    }
                }
            }
        }
        assert_eq!(made, found, "{world:?}");
    }
}
