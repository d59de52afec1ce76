//! Counts, exhaustively: every least and greatest count up to 24, at every count, with tokens that count
//! for up to eight and perhaps close as well.
//!
//! A counter is kept exactly only as far as tokens reach; beyond, it is clamped. So what a token that counts for
//! `r` after `n` may do is compared with the arithmetic: `n + r <= max`, and to close, `n + r >= min`.

use constrain::schema::{Options, compile};
use constrain::vocab::{Token, TokenId, Vocabulary};
use constrain::{Constraint, Matcher};
use std::collections::BTreeMap;

/// The greatest bound; three times what a token counts for.
const MOST: usize = 24;
/// What one token counts for at most.
const LONGEST: usize = 8;

/// Something that is counted.
struct Counted {
    /// The schema, its bounds written `MIN` and `MAX`.
    schema: &'static str,
    open: &'static str,
    close: &'static str,
    /// The text of the `n`th that is counted, from 0.
    item: fn(usize) -> String,
}

const COUNTED: [Counted; 4] = [
    Counted {
        schema: r#"{"type":"string","minLength":MIN,"maxLength":MAX}"#,
        open: "\"",
        close: "\"",
        item: |_| "a".to_owned(),
    },
    Counted {
        schema: r#"{"type":"array","items":{"const":0},"minItems":MIN,"maxItems":MAX}"#,
        open: "[",
        close: "]",
        item: |n| if n == 0 { "0".to_owned() } else { ",0".to_owned() },
    },
    Counted {
        schema: r#"{"type":"array","contains":{"const":1},"items":{"enum":[0,1]},"minContains":MIN,"maxContains":MAX}"#,
        open: "[",
        close: "]",
        item: |n| if n == 0 { "1".to_owned() } else { ",1".to_owned() },
    },
    Counted {
        schema: r#"{"type":"object","additionalProperties":{"const":0},"minProperties":MIN,"maxProperties":MAX}"#,
        open: "{",
        close: "}",
        item: |n| format!("{}\"{}\":0", if n == 0 { "" } else { "," }, char::from(b'a' + n as u8)),
    },
];

impl Counted {
    /// The text of those from `n` up to `end`, `end` not included.
    fn run(&self, n: usize, end: usize) -> String {
        (n..end).map(self.item).collect()
    }

    /// All bytes, and each run of up to [`LONGEST`], alone and with the close.
    fn vocabulary(&self) -> Vocabulary {
        let mut texts: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        for n in 0..=MOST {
            for end in n + 1..=n + LONGEST {
                let run = self.run(n, end);
                texts.push(format!("{run}{}", self.close).into_bytes());
                texts.push(run.into_bytes());
            }
        }
        texts.sort();
        texts.dedup();
        let mut tokens: Vec<Token> =
            texts.into_iter().map(|text| Token::Text(text.into())).collect();
        tokens.push(Token::Special("<end>".into()));
        let end = tokens.len() as TokenId - 1;
        Vocabulary::new(tokens, vec![end]).unwrap()
    }

    fn constraint(&self, vocabulary: &Vocabulary, min: usize, max: Option<usize>) -> Constraint {
        let max = max.map_or(30_000, |max| max);
        let schema = self.schema.replace("MIN", &min.to_string()).replace("MAX", &max.to_string());
        let grammar = compile(&schema, &Options::default()).unwrap();
        Constraint::new(&grammar, vocabulary).unwrap()
    }

    /// Compares what the mask after `n` says with what the bounds say.
    fn check(
        &self,
        matcher: &mut Matcher,
        ids: &BTreeMap<Vec<u8>, TokenId>,
        n: usize,
        (min, max): (usize, usize),
    ) {
        let mut words = vec![0; ids.len().div_ceil(32) + 1];
        matcher.fill_bitmask(&mut words).unwrap();
        let allowed = |text: &str| {
            let id = ids[text.as_bytes()];
            words[id as usize / 32] >> (id % 32) & 1 == 1
        };
        assert_eq!(
            allowed(self.close),
            n >= min,
            "close at {n} of {min} to {max}: {}",
            self.schema
        );
        for end in n + 1..=n + LONGEST {
            let run = self.run(n, end);
            assert_eq!(allowed(&run), end <= max, "{run} at {n} of {min} to {max}");
            let closed = format!("{run}{}", self.close);
            assert_eq!(
                allowed(&closed),
                (min..=max).contains(&end),
                "{closed} at {n} of {min} to {max}"
            );
        }
    }
}

fn check_every_count(counted: &Counted) {
    let vocabulary = counted.vocabulary();
    let ids: BTreeMap<Vec<u8>, TokenId> =
        vocabulary.text_tokens().map(|(id, text)| (text.to_vec(), id)).collect();
    for min in 0..=MOST {
        for max in (min..=MOST).map(Some).chain([None]) {
            let constraint = counted.constraint(&vocabulary, min, max);
            let mut matcher = constraint.matcher();
            matcher.accept_bytes(counted.open.as_bytes()).unwrap();
            let most = max.unwrap_or(30_000);
            for n in 0..=max.unwrap_or(MOST) {
                counted.check(&mut matcher, &ids, n, (min, most));
                if n < most {
                    matcher.accept_bytes((counted.item)(n).as_bytes()).unwrap();
                }
            }
        }
    }
}

/// A test for each kind of count: they run beside each other.
mod every_count_within_every_bound {
    use super::{COUNTED, check_every_count};

    #[test]
    fn characters() {
        check_every_count(&COUNTED[0]);
    }

    #[test]
    fn items() {
        check_every_count(&COUNTED[1]);
    }

    #[test]
    fn items_that_match() {
        check_every_count(&COUNTED[2]);
    }

    #[test]
    fn properties() {
        check_every_count(&COUNTED[3]);
    }
}
