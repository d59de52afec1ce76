//! All small patterns, against sets of positions.
//!
//! Patterns are trees of up to some number of parts. The reference asks of a part and a place in the text in which
//! places the part may end, by the definition of each operator, as sets of bits.

use super::Slice;
use constrain::schema::{Options, compile};
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Kind};
use serde_json::json;
use std::rc::Rc;

/// Longest text.
const LENGTH: usize = 4;
/// Letters of texts: the last ends a line, which no dot matches.
const LETTERS: [char; 3] = ['a', 'b', '\n'];

#[derive(Debug)]
enum Pattern {
    Letter(char),
    Dot,
    Start,
    End,
    Repeat(Rc<Pattern>, usize, Option<usize>),
    Ahead(Rc<Pattern>, bool),
    Concat(Rc<Pattern>, Rc<Pattern>),
    Either(Rc<Pattern>, Rc<Pattern>),
}
use Pattern::{Ahead, Concat, Dot, Either, End, Letter, Repeat, Start};

impl Pattern {
    /// As ECMA-262 writes it.
    fn text(&self) -> String {
        match self {
            Letter(letter) => letter.to_string(),
            Dot => ".".to_owned(),
            Start => "^".to_owned(),
            End => "$".to_owned(),
            Repeat(part, min, max) => {
                let times = match (min, max) {
                    (0, None) => "*".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, max) => {
                        format!("{{{min},{}}}", max.map_or(String::new(), |n| n.to_string()))
                    }
                };
                format!("(?:{}){times}", part.text())
            }
            Ahead(part, true) => format!("(?={})", part.text()),
            Ahead(part, false) => format!("(?!{})", part.text()),
            Concat(one, two) => format!("(?:{})(?:{})", one.text(), two.text()),
            Either(one, two) => format!("{}|{}", one.text(), two.text()),
        }
    }

    /// Where the part may end that begins at `at`: a bit per place.
    fn ends(&self, text: &[char], at: usize) -> u8 {
        let here = 1 << at;
        let longer = |ok: bool| if ok { here << 1 } else { 0 };
        match self {
            Letter(letter) => longer(text.get(at) == Some(letter)),
            Dot => longer(text.get(at).is_some_and(|&c| c != '\n')),
            Start => {
                if at == 0 {
                    here
                } else {
                    0
                }
            }
            End => {
                if at == text.len() {
                    here
                } else {
                    0
                }
            }
            Repeat(part, min, max) => {
                let mut now = here;
                for _ in 0..*min {
                    now = part.all_ends(text, now);
                }
                let mut found = now;
                // More rounds than places add nothing.
                for _ in *min..max.unwrap_or(min + text.len() + 1) {
                    now = part.all_ends(text, now);
                    found |= now;
                }
                found
            }
            Ahead(part, wanted) => {
                if (part.ends(text, at) != 0) == *wanted {
                    here
                } else {
                    0
                }
            }
            Concat(one, two) => two.all_ends(text, one.ends(text, at)),
            Either(one, two) => one.ends(text, at) | two.ends(text, at),
        }
    }

    fn all_ends(&self, text: &[char], starts: u8) -> u8 {
        let starts = (0..=text.len()).filter(|at| starts >> at & 1 == 1);
        starts.fold(0, |found, at| found | self.ends(text, at))
    }

    fn is_found(&self, text: &[char]) -> bool {
        (0..=text.len()).any(|at| self.ends(text, at) != 0)
    }
}

/// The patterns of each size up to one.
fn patterns(most: usize) -> Vec<Vec<Rc<Pattern>>> {
    let leaves = [Letter('a'), Letter('b'), Dot, Start, End];
    let mut sizes = vec![Vec::new(), leaves.into_iter().map(Rc::new).collect::<Vec<_>>()];
    for size in 2..=most {
        let mut found = Vec::new();
        for part in &sizes[size - 1] {
            for (min, max) in [(0, None), (0, Some(1)), (1, Some(2))] {
                found.push(Repeat(Rc::clone(part), min, max));
            }
            found.extend([true, false].map(|wanted| Ahead(Rc::clone(part), wanted)));
        }
        for first in 1..size - 1 {
            for one in &sizes[first] {
                for two in &sizes[size - 1 - first] {
                    found.push(Concat(Rc::clone(one), Rc::clone(two)));
                    found.push(Either(Rc::clone(one), Rc::clone(two)));
                }
            }
        }
        sizes.push(found.into_iter().map(Rc::new).collect());
    }
    sizes
}

fn texts() -> Vec<Vec<char>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        if found[at].len() < LENGTH {
            found.extend(LETTERS.map(|letter| [&found[at][..], &[letter]].concat()));
        }
        at += 1;
    }
    found
}

#[test]
fn small_patterns_match_what_they_say() {
    let slice = Slice::chosen(5);
    let size = if slice.is_all() { 6 } else { 5 };
    let tokens = (0..=255u8).map(|byte| Token::Text([byte].into()));
    let tokens = tokens.chain([Token::Special("<end>".into())]).collect();
    let vocabulary = Vocabulary::new(tokens, vec![256]).expect("a vocabulary");
    let texts = texts();
    let (mut count, mut empty, mut refused, mut compared) = (0, 0, 0, 0);
    for (_, pattern) in patterns(size).iter().flatten().enumerate().filter(|(i, _)| slice.has(*i)) {
        count += 1;
        let shown = pattern.text();
        let schema = json!({"type": "string", "pattern": shown}).to_string();
        let found = |text: &&Vec<char>| pattern.is_found(text);
        let grammar = match compile(&schema, &Options::default()) {
            Ok(grammar) => grammar,
            Err(error) if *error.kind() == Kind::Unsatisfiable => {
                empty += 1;
                let witness = texts.iter().find(found);
                assert!(witness.is_none(), "{shown}: {error}, but {witness:?}");
                continue;
            }
            Err(error) => {
                let fair =
                    matches!(error.kind(), Kind::TooComplex { .. } | Kind::Unsupported { .. });
                assert!(fair, "{shown}: {error}");
                refused += 1;
                continue;
            }
        };
        let constraint = Constraint::new(&grammar, &vocabulary).expect("a satisfiable pattern");
        let mut matcher = constraint.matcher();
        for text in &texts {
            let json = serde_json::Value::from(text.iter().collect::<String>()).to_string();
            matcher.reset();
            // Through the masks, until one bars the next byte.
            let accepted = json.bytes().all(|byte| {
                let mask = matcher.mask().unwrap_or_else(|error| panic!("{shown}: {error}"));
                assert!(!mask.is_empty(), "{shown}: a dead end in {json}");
                let allowed = mask.contains(byte.into());
                assert_eq!(matcher.accept(byte.into()).is_ok(), allowed, "{shown}: {json}");
                allowed
            });
            assert_eq!(accepted && matcher.can_stop(), pattern.is_found(text), "{shown} on {json}");
            compared += 1;
        }
    }
    eprintln!("{count} patterns, {empty} empty, {refused} refused: {compared} texts compared");
}
