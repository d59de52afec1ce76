//! Strings of a schema (property names, enumerated strings) as small numbers.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// A string; equal strings have equal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(u32);

/// The table of all strings.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Names {
    /// The name of `text`.
    pub fn intern(&mut self, text: &str) -> Name {
        let Self { text: all, ends, index, hasher } = self;
        let get = |id: u32| span(all, ends, id);
        if let Some(&id) = index.find(hasher.hash_one(text), |&id| get(id) == text) {
            return Name(id);
        }
        let id = ends.len() as u32;
        all.push_str(text);
        ends.push(all.len() as u32);
        index.insert_unique(hasher.hash_one(text), id, |&id| hasher.hash_one(span(all, ends, id)));
        Name(id)
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        span(&self.text, &self.ends, name.0)
    }
}

fn span<'a>(all: &'a str, ends: &[u32], id: u32) -> &'a str {
    let from = id.checked_sub(1).and_then(|before| ends.get(before as usize)).map_or(0, |&end| end);
    let to = ends.get(id as usize).map_or(0, |&end| end);
    all.get(from as usize..to as usize).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_names() {
        let mut names = Names::default();
        let texts: Vec<String> =
            (0..1000).map(|i| format!("n{}", i % 500)).chain([String::new()]).collect();
        let ids: Vec<Name> = texts.iter().map(|text| names.intern(text)).collect();
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(names.text(*id), texts[i]);
        }
        assert_eq!(ids[3], ids[503]);
        assert_ne!(ids[3], ids[4]);
    }
}
