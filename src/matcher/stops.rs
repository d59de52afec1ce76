//! Whether a stop text would cut a document: whether it can occur where no document has ended.
//!
//! A stop text ends an output where it occurs, if what came before is a whole document; elsewhere it is text like any other.
//! Whoever wants to be told instead asks [`Constraint::check_stops`] when the constraint is compiled.
//!
//! The search goes through the configurations that bytes can reach, nearest first, each once, and tries to read the
//! stop text from every one in which no document ends. All bytes that all threads of a configuration step over alike are one
//! way. By hand, `{"enum": ["a END b", "c"]}` and the stop text `END`: from the start and from `"` it cannot be read, from `"a `
//! it can.
//!
//! Numbers have very many states (digits before and after the point, exponents), and it hardly matters in which of them a number
//! is: what is not of a number can only be read after it. So, for such a stop text, configurations that differ in the state of
//! one number alone, complete or not, are one. Likewise a pair of escapes (`\ud83d\ude00`) leads where its character leads, which
//! can stand in its place; such pairs are looked into only for a stop text that could begin inside of one.
//!
//! # Invariants
//! * [`Inside::At`] comes with a witness: its text and the stop text behind it begin a document.
//! * [`Inside::Never`] is exact: all configurations were seen, and none of their steps depends on more of the output than the
//!   configuration knows.
//! * Otherwise it is [`Inside::Unknown`]: recursion without bound, undeclared keys and unique items, special
//!   tokens inside the grammar, or more than [`STEPS`] steps (a string of up to some hundred characters is seen whole).

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::constraint::Constraint;
use crate::error::{Error, Kind, Result, quote};
use crate::machine::state::Content;
use crate::machine::{StateId, States, Thread};
use crate::mask::{Arrival, ConfigId, Configs};

/// Most steps of a search.
const STEPS: usize = 200_000;

/// The bytes that a number of JSON is made of.
const NUMBER: &[u8] = b"0123456789+-.eE";

/// The bytes that an escape, or a pair of them, goes on with.
const ESCAPE: &[u8] = b"\\u0123456789abcdefABCDEF";

/// Bytes of a witness that a message shows, at most, from its end.
const SHOWN: usize = 60;

/// Where a stop text can occur although no document has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// Nowhere.
    Never,
    /// After this text, for one.
    At(Vec<u8>),
    /// It was not found, and could not be ruled out.
    Unknown,
}

impl Constraint {
    /// Whether a stop text can occur where no document has ended.
    ///
    /// ```
    /// # use constrain::{Constraint, matcher::Inside, schema, model::scripted::vocabulary};
    /// let grammar = schema::compile(r#"{"enum": ["a END b", "c"]}"#, &schema::Options::default())?;
    /// let constraint = Constraint::new(&grammar, &vocabulary())?;
    /// assert_eq!(constraint.stop_inside("END")?, Inside::At(b"\"a ".to_vec()));
    /// assert_eq!(constraint.stop_inside("###")?, Inside::Never);
    /// # Ok::<(), constrain::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matcher::accept_bytes`](crate::Matcher::accept_bytes) of a text that is allowed.
    pub fn stop_inside(&self, stop: &str) -> Result<Inside> {
        match stop.is_empty() {
            // It never occurs.
            true => Ok(Inside::Never),
            false => Search::new(self, stop.as_bytes()).run(stop.as_bytes()),
        }
    }

    /// Refuses stop texts that would cut a document, or of which that cannot be ruled out.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] with a place where the text can occur; as [`Constraint::stop_inside`].
    pub fn check_stops(&self, stops: &[String]) -> Result<()> {
        for stop in stops {
            let what = match self.stop_inside(stop)? {
                Inside::Never => continue,
                Inside::At(text) => {
                    let shown = text.get(text.len().saturating_sub(SHOWN)..).unwrap_or_default();
                    let shown = quote(&String::from_utf8_lossy(shown));
                    format!("can occur inside a document, as after {shown}")
                }
                Inside::Unknown => "may occur inside a document: no search ruled it out".to_owned(),
            };
            let message = format!("the stop text {} {what}", quote(stop));
            return Err(Error::new(Kind::BadArgument, message)
                .help("choose another one, or let it be ignored inside of documents"));
        }
        Ok(())
    }
}

/// A configuration that was reached, by a byte after another one.
struct Reached {
    config: ConfigId,
    before: Option<(usize, u8)>,
}

/// The search, on configurations of its own: sequences are not to pay for it.
struct Search<'c> {
    constraint: &'c Constraint,
    configs: Configs,
    reached: Vec<Reached>,
    known: HashSet<Box<[Thread]>>,
    /// A state for each machine of numbers.
    numbers: HashMap<(bool, u32), StateId>,
    /// Whether numbers count by that alone.
    merges_numbers: bool,
    /// Whether pairs of escapes are left out.
    skips_pairs: bool,
    /// Whether what was reached is all that there is.
    is_exact: bool,
    steps: usize,
}

impl<'c> Search<'c> {
    fn new(constraint: &'c Constraint, stop: &[u8]) -> Self {
        Self {
            constraint,
            configs: constraint.fresh_configs(),
            reached: vec![Reached { config: ConfigId::START, before: None }],
            known: HashSet::new(),
            numbers: HashMap::new(),
            skips_pairs: stop.first().is_some_and(|byte| !ESCAPE.contains(byte)),
            merges_numbers: stop.first().is_some_and(|byte| !NUMBER.contains(byte)),
            is_exact: true,
            steps: 0,
        }
    }

    fn run(mut self, stop: &[u8]) -> Result<Inside> {
        let mut open = VecDeque::from([0]);
        let start = self.key(ConfigId::START);
        self.known.insert(start);
        while let Some(at) = open.pop_front() {
            let Some(config) = self.reached.get(at).map(|reached| reached.config) else { continue };
            let mut text = self.text(at);
            if !self.configs.get(config).can_stop() && self.step(config, &mut text, stop)?.is_some()
            {
                text.truncate(text.len() - stop.len());
                return Ok(Inside::At(text));
            }
            if self.steps > STEPS || self.configs.is_full() {
                return Ok(Inside::Unknown);
            }
            for byte in self.ways(config) {
                if let Some(next) = self.step(config, &mut text, &[byte])? {
                    text.pop();
                    let key = self.key(next);
                    if !(self.skips_pairs && self.is_in_pair(next)) && self.known.insert(key) {
                        open.push_back(self.reached.len());
                        self.reached.push(Reached { config: next, before: Some((at, byte)) });
                    }
                }
            }
        }
        Ok(if self.is_exact { Inside::Never } else { Inside::Unknown })
    }

    /// Appends bytes to the text of a configuration, if they are allowed.
    fn step(
        &mut self,
        from: ConfigId,
        text: &mut Vec<u8>,
        bytes: &[u8],
    ) -> Result<Option<ConfigId>> {
        self.steps += bytes.len();
        let before = text.len();
        text.extend_from_slice(bytes);
        let basis = self.constraint.basis();
        let (arrival, depends) = self.configs.look(basis, from, text, bytes.len())?;
        self.is_exact &= !depends;
        match arrival {
            Arrival::At(config) => Ok(Some(config)),
            Arrival::Rejected(_) => {
                text.truncate(before);
                Ok(None)
            }
        }
    }

    /// Whether all threads are between the two escapes of a pair.
    fn is_in_pair(&self, config: ConfigId) -> bool {
        let states = self.constraint.basis().program.states();
        self.configs.get(config).threads().iter().all(|thread| {
            *thread != Thread::END
                && matches!(states.get(thread.state).content(), Content::High { .. })
        })
    }

    /// What makes a configuration another one: its threads, those in a number with a state that stands for all of
    /// its machine. Exact where all of them are in the same state, and nothing else steps over the bytes of numbers.
    fn key(&mut self, config: ConfigId) -> Box<[Thread]> {
        let states = self.constraint.basis().program.states();
        let threads = self.configs.get(config).threads();
        let machine = |thread: &Thread| {
            if *thread == Thread::END {
                return None;
            }
            match states.get(thread.state).content() {
                Content::Number { machine, .. } => Some((thread.state.is_local(), *machine)),
                _ => None,
            }
        };
        let mut numbers = threads.iter().filter(|thread| machine(thread).is_some());
        let first = numbers.next().copied();
        let is_one = numbers.all(|thread| first.is_some_and(|first| first.state == thread.state));
        let reads_number = |thread: &Thread| {
            *thread != Thread::END
                && machine(thread).is_none()
                && NUMBER.iter().any(|&byte| states.step(thread.state, byte).is_live())
        };
        let mut key: Vec<Thread> = threads.to_vec();
        if self.merges_numbers && is_one && !threads.iter().any(reads_number) {
            for thread in &mut key {
                if let Some(machine) = machine(thread) {
                    thread.state = *self.numbers.entry(machine).or_insert(thread.state);
                }
            }
        }
        key.into()
    }

    /// The text with which a configuration was reached.
    fn text(&self, at: usize) -> Vec<u8> {
        let (mut text, mut here) = (Vec::new(), self.reached.get(at));
        while let Some((before, byte)) = here.and_then(|reached| reached.before) {
            text.push(byte);
            here = self.reached.get(before);
        }
        text.reverse();
        text
    }

    /// Of the bytes that may come next, one for each way of stepping.
    fn ways(&mut self, config: ConfigId) -> Vec<u8> {
        let states = self.constraint.basis().program.states();
        let threads = self.configs.get(config).threads();
        let is_special = |thread: &&Thread| {
            **thread != Thread::END && states.get(thread.state).special().is_some()
        };
        // What comes after a special token no bytes reach.
        self.is_exact &= !threads.iter().any(|thread| is_special(&thread));
        let threads: Vec<&Thread> = threads
            .iter()
            .filter(|thread| **thread != Thread::END && !is_special(thread))
            .collect();
        ways(states, &threads)
    }
}

/// The first byte of each set of bytes that all of the threads step over alike.
fn ways(states: &States, threads: &[&Thread]) -> Vec<u8> {
    let mut ways = HashMap::new();
    for byte in 0..=255_u8 {
        let to: Vec<_> = threads.iter().map(|thread| states.step(thread.state, byte)).collect();
        if to.iter().any(|state| state.is_live()) {
            ways.entry(to).or_insert(byte);
        }
    }
    let mut ways: Vec<u8> = ways.into_values().collect();
    ways.sort_unstable();
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::vocabulary;
    use crate::schema::{self, Options};
    use crate::syntax::Syntax;
    use crate::{Grammar, Matcher};

    fn schema(text: &str, whitespace: crate::grammar::Whitespace) -> Result<Constraint> {
        let options = Options { whitespace, ..Options::default() };
        Constraint::new(&schema::compile(text, &options)?, &vocabulary())
    }

    fn compact(text: &str) -> Result<Constraint> {
        schema(text, crate::grammar::Whitespace::Compact)
    }

    fn grammar(text: &str, syntax: Syntax) -> Result<Constraint> {
        Constraint::new(&Grammar::from_text(text, syntax, &Options::default())?, &vocabulary())
    }

    /// A witness is one: a beginning that is no document, and that the stop text may follow.
    fn check_witness(constraint: &Constraint, stop: &str) -> Result<bool> {
        let Inside::At(text) = constraint.stop_inside(stop)? else { return Ok(false) };
        let mut matcher = constraint.matcher();
        matcher.accept_bytes(&text)?;
        assert!(!matcher.can_stop(), "{text:?}");
        matcher.accept_bytes(stop.as_bytes())?;
        Ok(true)
    }

    /// Each stop text has a witness or never occurs, as it is said.
    fn check_verdicts(constraint: &Constraint, stops: &[(&str, bool)]) -> Result<()> {
        for &(stop, expected) in stops {
            assert_eq!(check_witness(constraint, stop)?, expected, "{stop:?}");
            let never = constraint.stop_inside(stop)? == Inside::Never;
            assert_eq!(never, !expected, "{stop:?}");
        }
        Ok(())
    }

    #[test]
    fn free_texts_hold_stop_texts_and_closed_ones_do_not() -> Result<()> {
        let note = r#"{"type": "object", "properties": {"note": {"type": "string", "maxLength": 60},
            "n": {"type": "integer"}}, "required": ["note", "n"], "additionalProperties": false}"#;
        for stop in ["END", "\":", "\\n", "1", "é", "Observation:"] {
            assert!(check_witness(&compact(note)?, stop)?, "{stop:?}");
        }
        // A string of JSON holds no line break; white space may.
        for stop in ["\n", "\n\n", "}\n", "\n\nUser:"] {
            assert_eq!(compact(note)?.stop_inside(stop)?, Inside::Never, "{stop:?}");
        }
        assert!(check_witness(&schema(note, crate::grammar::Whitespace::Flexible)?, "\n")?);
        let choice = r#"{"type": "array", "items": {"enum": ["red", "blue"]}}"#;
        let stops = [("e", true), ("###", false), ("ed\",\"b", true), ("bred", false)];
        check_verdicts(&compact(choice)?, &stops)?;
        assert_eq!(compact(note)?.stop_inside("")?, Inside::Never);
        let number = r#"{"type": "array", "items": {"type": ["number", "null"]}}"#;
        let stops = [
            ("]\n", false),
            (",nul", true),
            ("],", false),
            ("E", true),
            (",5", true),
            ("x", false),
        ];
        check_verdicts(&compact(number)?, &stops)?;
        // Too many lengths to look at, for what is not found.
        let long = compact(&note.replace("60", "100000"))?;
        assert_eq!(long.stop_inside("\n")?, Inside::Unknown);
        assert!(check_witness(&long, "END")?);
        Ok(())
    }

    #[test]
    fn what_follows_a_whole_document_is_not_inside() -> Result<()> {
        let texts = grammar("one\none. two\n", Syntax::Choice)?;
        assert_eq!(texts.stop_inside(". ")?, Inside::Never);
        assert_eq!(texts.stop_inside("ne")?, Inside::At(b"o".to_vec()));
        assert_eq!(texts.stop_inside("two")?, Inside::At(b"one. ".to_vec()));
        Ok(())
    }

    #[test]
    fn what_cannot_be_ruled_out_is_unknown_and_refused() -> Result<()> {
        // Brackets within brackets: there is no end of configurations.
        let nested = grammar("root ::= \"(\" root \")\" | \"x\"", Syntax::Gbnf)?;
        assert_eq!(nested.stop_inside("END")?, Inside::Unknown);
        assert_eq!(nested.stop_inside("x)")?, Inside::At(b"(".to_vec()));
        // Whether a key may come depends on the keys before it.
        let open = compact(r#"{"type": "object", "additionalProperties": {"const": 1}}"#)?;
        assert_eq!(open.stop_inside("\n")?, Inside::Unknown);
        let message = |stop: &str| match nested.check_stops(&[stop.to_owned()]) {
            Ok(()) => String::new(),
            Err(error) => error.message().to_owned(),
        };
        assert!(message("END").contains("may occur"), "{}", message("END"));
        assert!(message("x)").contains("as after \"(\""), "{}", message("x)"));
        Ok(())
    }

    /// Every text over a small alphabet, tried with the matcher: the exhaustive oracle.
    #[test]
    fn it_agrees_with_trying_all_texts() -> Result<()> {
        fn is_inside(matcher: &Matcher, stop: &str, left: usize, alphabet: &str) -> Result<bool> {
            let can = |matcher: &Matcher| matcher.fork().accept_bytes(stop.as_bytes()).is_ok();
            if !matcher.can_stop() && can(matcher) {
                return Ok(true);
            }
            for byte in alphabet.bytes().filter(|_| left > 0) {
                let mut next = matcher.fork();
                if next.accept_bytes(&[byte]).is_ok() && is_inside(&next, stop, left - 1, alphabet)?
                {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        let stops = ["a", "b", "ab", "ba", "aa", "bb", "aba", "abb", "bab", "bbb", "aabb", "c"];
        let mut counts = [0, 0];
        for pattern in [
            "ab|ba",
            "a*b",
            "(ab)*",
            "a(ba)?b{2}",
            "(a|bb)*a",
            "a{2,3}b?",
            "b|ab|aab",
            "(aab|b)+",
            "a?b?a?b?",
            "(abab)*b",
        ] {
            let constraint = grammar(pattern, Syntax::Regex)?;
            for stop in stops {
                let expected = is_inside(&constraint.matcher(), stop, 8, "abc")?;
                let found = constraint.stop_inside(stop)?;
                assert_eq!(check_witness(&constraint, stop)?, expected, "{pattern} {stop}");
                assert_eq!(found == Inside::Never, !expected, "{pattern} {stop}");
                counts[usize::from(expected)] += 1;
            }
        }
        assert!(counts[0] > 20 && counts[1] > 20, "{counts:?}");
        Ok(())
    }
}
