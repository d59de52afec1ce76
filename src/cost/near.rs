//! Spelling a text that is nearly one that was spelled before.
//!
//! What an object owes after one key or another is the same text but for that key: dozens of long texts, each
//! without another part of the whole. The fewest tokens from a byte on depend on what follows it alone. So
//! what two texts end with alike has the same counts; and what they begin with alike has the same counts but for a constant
//! difference, once that difference has held for as far as a token can see.
//!
//! By hand: `,"a":1,"b":2}` is known, with tokens of single bytes and `":`. For `,"b":2}` nothing is counted at all:
//! it is an end of the known text. For `,"a":1}` only the comma before `}` differs: `}` is as known, and `1` is followed by one byte
//! less than six, `,"b":2` less: the difference is 5 there, and as no token before reaches beyond `1`, it is 5 all the way.
//!
//! Invariant: counts are those of [`super::texts`], whatever was spelled before. Cost: comparing the text with
//! a few known ones, and a walk in the trie for each byte that is not decided so.

use super::NEVER;
use crate::mask::Lead;
use crate::vocab::{Trie, Vocabulary};

/// How many texts are known at a time.
const KNOWN: usize = 8;

/// Shorter texts are not worth comparing.
const SHORT: usize = 48;

/// With more bytes than these to walk from, a known text is not near.
const FAR: usize = 96;

/// Texts that were spelled, the latest last.
#[derive(Debug, Default)]
pub struct Near {
    known: Vec<Spelled>,
    far: bool,
}

/// A text before what begins with a lead.
#[derive(Debug)]
struct Spelled {
    text: Box<[u8]>,
    lead: Lead,
    counts: Counts,
    /// The farthest place that is looked at from this byte or one before.
    farthest: Box<[u32]>,
}

/// What is known of the bytes of a text.
#[derive(Debug)]
struct Counts {
    /// The fewest tokens from here on.
    tokens: Vec<u64>,
    /// How many bytes are looked at from here.
    sees: Vec<u32>,
    /// From how many the trie was walked.
    walked: usize,
}

/// What a text has in common with a known one: how many bytes at its end, and how many at its beginning.
#[derive(Clone, Copy)]
struct Common {
    begin: usize,
    end: usize,
}

impl Near {
    /// The fewest tokens from each byte of `text` on to the end of what begins with `lead`; with `keep`,
    /// others that are near it will come.
    pub fn spell(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        lead: &Lead,
        keep: bool,
    ) -> Vec<u64> {
        let trie = vocabulary.trie();
        if text.len() < SHORT {
            return Counts::of(trie, (text, lead), None).tokens;
        }
        let nearest = self.nearest(text, lead);
        if let Some((at, _)) = nearest {
            self.known[at..].rotate_left(1);
        }
        let known = nearest.and_then(|(_, common)| Some((self.known.last()?, common)));
        let counts = Counts::of(trie, (text, lead), known);
        let far = counts.walked > FAR;
        self.far |= far;
        if !far && !keep {
            return counts.tokens;
        }
        let tokens = counts.tokens.clone();
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        let farthest = counts.farthest();
        self.known.push(Spelled { text: text.into(), lead: lead.clone(), counts, farthest });
        tokens
    }

    /// Whether there was a text since the last call that was not near a known one.
    pub fn was_far(&mut self) -> bool {
        std::mem::take(&mut self.far)
    }

    /// The known text that has most in common with this one, before the same lead.
    fn nearest(&self, text: &[u8], lead: &Lead) -> Option<(usize, Common)> {
        let mut nearest: Option<(usize, Common)> = None;
        for (at, known) in self.known.iter().enumerate().rev() {
            if known.lead.text != lead.text || known.lead.costs != lead.costs {
                continue;
            }
            let common = Common::of(text, &known.text);
            if nearest.is_none_or(|(_, other)| common.bytes() > other.bytes()) {
                nearest = Some((at, common));
            }
            if common.bytes() == text.len() {
                break;
            }
        }
        nearest
    }
}

impl Common {
    fn of(text: &[u8], known: &[u8]) -> Self {
        /// Bytes compared at once.
        const MANY: usize = 32;
        let blocks = text.rchunks_exact(MANY).zip(known.rchunks_exact(MANY));
        let end = blocks.take_while(|(a, b)| a == b).count() * MANY;
        let (text, known) = (&text[..text.len() - end], &known[..known.len() - end]);
        let bytes = text.iter().rev().zip(known.iter().rev());
        let more = bytes.take_while(|(a, b)| a == b).count();
        let (text, known) = (&text[..text.len() - more], &known[..known.len() - more]);
        let blocks = text.chunks_exact(MANY).zip(known.chunks_exact(MANY));
        let begin = blocks.take_while(|(a, b)| a == b).count() * MANY;
        let bytes = text[begin..].iter().zip(&known[begin..]);
        Self { begin: begin + bytes.take_while(|(a, b)| a == b).count(), end: end + more }
    }

    fn bytes(self) -> usize {
        self.begin + self.end
    }
}

impl Counts {
    /// The counts of a text, by those of one that has so much in common with it and stands before the same lead.
    fn of(trie: &Trie, (text, lead): (&[u8], &Lead), known: Option<(&Spelled, Common)>) -> Self {
        let mut counts =
            Self { tokens: vec![NEVER; text.len()], sees: vec![0; text.len()], walked: 0 };
        let mut first = text.len();
        if let Some((known, common)) = known {
            first -= common.end;
            counts.copy(first, &known.counts, known.text.len() - common.end);
        }
        // The bytes from the present one up to `upto` are dearer than in the known text by the same.
        let (mut difference, mut upto) = (None, text.len());
        for start in (0..first).rev() {
            counts.walk(trie, (text, lead), start);
            let Some((known, common)) = known else { continue };
            if start >= common.begin {
                continue;
            }
            let here = difference_of(counts.tokens[start], known.counts.tokens[start]);
            if upto >= common.begin || difference != here {
                (difference, upto) = (here, start);
            }
            let seen = start.checked_sub(1).map_or(0, |before| known.farthest[before] as usize);
            if let Some(difference) = difference
                && seen <= upto
            {
                counts.shift(start, &known.counts, difference);
                break;
            }
        }
        counts
    }

    /// From `start` on, the counts of another text are right that begin at `from` there.
    fn copy(&mut self, start: usize, known: &Counts, from: usize) {
        self.tokens[start..].copy_from_slice(&known.tokens[from..]);
        self.sees[start..].copy_from_slice(&known.sees[from..]);
    }

    /// Before `end`, the counts of another text are right but for a difference.
    fn shift(&mut self, end: usize, known: &Counts, difference: i128) {
        for (tokens, known) in self.tokens[..end].iter_mut().zip(&known.tokens) {
            let shifted = u64::try_from(i128::from(*known) + difference).unwrap_or(NEVER);
            *tokens = if *known == NEVER { NEVER } else { shifted };
        }
        self.sees[..end].copy_from_slice(&known.sees[..end]);
    }

    /// Counts from byte `start` on, those from later bytes being known.
    fn walk(&mut self, trie: &Trie, text: (&[u8], &Lead), start: usize) {
        let (tokens, end) = fewest(trie, text, start, &self.tokens);
        self.tokens[start] = tokens;
        self.sees[start] = (end - start) as u32;
        self.walked += 1;
    }

    /// The farthest place that is looked at from each byte or one before.
    fn farthest(&self) -> Box<[u32]> {
        let mut farthest = 0;
        let places = self.sees.iter().zip(0..).map(|(sees, start)| {
            farthest = farthest.max(start + sees);
            farthest
        });
        places.collect()
    }
}

/// The fewest tokens of `text` and what begins with `lead`; those of the lead if there is no text.
pub fn tokens(vocabulary: &Vocabulary, text: &[u8], lead: &Lead) -> u64 {
    let mut short = [NEVER; SHORT];
    let mut long = Vec::new();
    let counts = short.get_mut(..text.len()).unwrap_or_else(|| {
        long.resize(text.len(), NEVER);
        &mut long
    });
    for start in (0..text.len()).rev() {
        counts[start] = fewest(vocabulary.trie(), (text, lead), start, counts).0;
    }
    counts.first().copied().unwrap_or(lead.tokens())
}

/// The fewest tokens from byte `start` on, by the `counts` of the bytes after it, and how far the trie was
/// walked: one past the last byte that was looked at.
fn fewest(trie: &Trie, (text, lead): (&[u8], &Lead), start: usize, counts: &[u64]) -> (u64, usize) {
    let (mut node, mut best, mut end) = (Trie::ROOT, NEVER, start);
    for &byte in text[start..].iter().chain(lead.text.iter()) {
        end += 1;
        let Some(child) = trie.child(node, byte) else { break };
        node = child;
        if !trie.tokens(node).is_empty() {
            let rest = match end.checked_sub(text.len()) {
                None => counts[end],
                Some(at) => lead.costs.get(at).copied().unwrap_or(NEVER),
            };
            best = best.min(rest.saturating_add(1));
        }
    }
    (best, end)
}

/// By how much a count is dearer than another; `None` if only one of them can be spelled.
fn difference_of(tokens: u64, known: u64) -> Option<i128> {
    let alike = (tokens == NEVER) == (known == NEVER);
    alike.then(|| i128::from(tokens) - i128::from(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::vocab::Token;

    #[test]
    fn as_without_a_known_text() -> Result<()> {
        let texts =
            ["\":", ",\"", "}}", ":1,", "a\":", "\"b", "1,\"a", "0,\"b\":", "\"a\":0,\"b", "zz"];
        let mut own: Vec<Token> = (0..=255u8)
            // What has a `z` cannot be spelled without a `zz`.
            .filter(|&byte| byte != b'z')
            .map(|byte| Token::Text([byte].into()))
            .collect();
        own.extend(texts.map(|text| Token::Text(text.as_bytes().into())));
        own.push(Token::Special("<end>".into()));
        let end = own.len() as u32 - 1;
        let vocabulary = Vocabulary::new(own, vec![end])?;
        let plain =
            |text: &[u8], lead: &Lead| Counts::of(vocabulary.trie(), (text, lead), None).tokens;
        let members: Vec<String> = (0..40)
            .map(|i| format!(",\"{}\":{i}", ["a", "b", "zz", "ab", "z"][i % 7 % 5]))
            .collect();
        let lead = Lead { text: (*b"}}").into(), costs: [1, 1, 0].into(), most: u64::MAX };
        let mut near = Near::default();
        let (mut walked, mut bytes) = (0, 0);
        for gone in 0..members.len() * 3 {
            let left = members.iter().enumerate().filter(|(i, _)| {
                i % members.len() != gone % members.len()
                    && (gone < members.len() || i % 9 != gone % 9)
            });
            let text: Vec<u8> = left.flat_map(|(_, member)| member.bytes()).collect();
            let found = near.spell(&vocabulary, &text, &lead, gone % 5 == 0);
            assert_eq!(found, plain(&text, &lead), "{gone}");
            let known = near.nearest(&text, &lead).map(|(at, common)| (&near.known[at], common));
            walked += Counts::of(vocabulary.trie(), (&text, &lead), known).walked;
            bytes += text.len();
        }
        // One that is longer by a member helps as well as one that is shorter.
        let without = |gone: usize| -> Vec<u8> {
            let left = members.iter().enumerate().filter(|&(i, _)| i != gone);
            left.flat_map(|(_, member)| member.bytes()).collect()
        };
        for (gone, other) in (0..=40).flat_map(|gone| [(gone, 40), (40, gone), (gone, 12)]) {
            let (text, known) = (without(gone), without(other));
            let counts = Counts::of(vocabulary.trie(), (&known, &lead), None);
            let (farthest, common) = (counts.farthest(), Common::of(&text, &known));
            let known = Spelled { text: known.into(), lead: lead.clone(), counts, farthest };
            let found = Counts::of(vocabulary.trie(), (&text, &lead), Some((&known, common)));
            assert_eq!(found.tokens, plain(&text, &lead), "{gone} {other}");
        }
        // Nearly all bytes are known from others.
        assert!(walked * 4 < bytes, "{walked} of {bytes}");
        assert_eq!(tokens(&vocabulary, b"a\":1", &lead), plain(b"a\":1", &lead)[0]);
        assert_eq!((tokens(&vocabulary, b"", &lead), tokens(&vocabulary, b"z", &lead)), (1, NEVER));
        // Another lead is another text.
        let other = Lead { costs: [2, 1, 0].into(), ..lead };
        let text = members.concat();
        assert_eq!(
            near.spell(&vocabulary, text.as_bytes(), &other, false),
            plain(text.as_bytes(), &other)
        );
        assert!(near.was_far() && !near.was_far());
        Ok(())
    }
}
