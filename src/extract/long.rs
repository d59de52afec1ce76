//! Documents that do not fit the context: cutting them into parts that overlap, at the borders of sentences.
//!
//! By hand, sentences of 40, 30, 50 and 20 tokens, parts of at most 100, an overlap of at most 60: the first part is
//! the first two (a third would make 120); the second begins with the second sentence, since 30 fit the overlap and
//! 70 would not, and ends with the document.
//!
//! What a border cuts in one part is whole in the other, as long as it is no longer than the overlap.

use crate::error::{Error, Kind, Result};
use std::ops::Range;

/// Characters that end a sentence where white space follows.
const ENDS: &str = ".!?…:;";
/// Characters that end a sentence whatever follows.
const FULL_ENDS: &str = "。！？\n";
/// Characters that may stand between an end and the white space.
const CLOSING: &str = "\"'”’»)]}";

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its bytes in the document.
    pub bytes: Range<usize>,
    /// Its characters (code points) in the document.
    pub chars: Range<usize>,
}

/// Cuts `text` into parts of at most `most` tokens, of which the last ones, up to `overlap`, are the first ones of the next part.
/// `tokens` counts the tokens of a piece of text.
///
/// # Errors
/// [`Kind::BadArgument`] if not even one character fits; those of `tokens`.
pub fn chunks(
    text: &str,
    most: usize,
    overlap: usize,
    tokens: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<Vec<Chunk>> {
    let pieces = pieces(text, most, tokens)?;
    let (mut chunks, mut first, mut chars) = (Vec::new(), 0, Chars { text, byte: 0, chars: 0 });
    while first < pieces.len() {
        let mut sum = 0;
        let fits = |piece: &&Piece| {
            sum += piece.tokens;
            sum <= most
        };
        // A piece alone always fits.
        let end = first + pieces[first..].iter().take_while(fits).count().max(1);
        let bytes = pieces[first].bytes.start..pieces[end - 1].bytes.end;
        let start = chars.at(bytes.start);
        let chars = start..start + text[bytes.clone()].chars().count();
        chunks.push(Chunk { bytes, chars });
        let Some(next) = pieces.get(end) else { break };
        // Back by the overlap, but never so far that the next piece would not fit.
        let room = overlap.min(most.saturating_sub(next.tokens));
        let mut sum = 0;
        let back = pieces[first + 1..end].iter().rev().take_while(|piece| {
            sum += piece.tokens;
            sum <= room
        });
        first = end - back.count();
    }
    Ok(chunks)
}

/// Counts characters up to places that do not go back.
struct Chars<'t> {
    text: &'t str,
    byte: usize,
    chars: usize,
}

impl Chars<'_> {
    fn at(&mut self, byte: usize) -> usize {
        self.chars += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.chars
    }
}

/// What is never cut.
struct Piece {
    bytes: Range<usize>,
    tokens: usize,
}

/// Sentences; what is too long, in halves, at white space where there is some.
fn pieces(
    text: &str,
    most: usize,
    tokens: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut open: Vec<Range<usize>> = sentences(text);
    open.reverse();
    while let Some(bytes) = open.pop() {
        let piece = &text[bytes.clone()];
        // Hardly any token has 64 bytes: what is far too long need not be counted.
        let count = if piece.len() / 64 > most { usize::MAX } else { tokens(piece)? };
        if count <= most {
            pieces.push(Piece { bytes, tokens: count });
            continue;
        }
        let Some(middle) = middle(piece) else {
            let message =
                format!("a part of {most} tokens has no room for {count} of one character");
            return Err(Error::new(Kind::BadArgument, message).help("allow longer parts"));
        };
        let middle = bytes.start + middle;
        open.extend([middle..bytes.end, bytes.start..middle]);
    }
    Ok(pieces)
}

/// The ranges of the sentences, which cover the text; white space belongs to the sentence before it.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let (mut start, mut is_over, mut may_end) = (0, false, false);
    for (at, c) in text.char_indices() {
        if is_over && !c.is_whitespace() {
            sentences.push(start..at);
            (start, is_over, may_end) = (at, false, false);
        }
        is_over |= FULL_ENDS.contains(c) || (may_end && c.is_whitespace());
        may_end = ENDS.contains(c) || (may_end && CLOSING.contains(c));
    }
    if start < text.len() {
        sentences.push(start..text.len());
    }
    sentences
}

/// Where to halve a piece: after white space in the middle half, else at the middle; `None` for one character.
fn middle(piece: &str) -> Option<usize> {
    let (quarter, half) = (piece.len() / 4, piece.len() / 2);
    let borders = piece.char_indices().map(|(at, _)| at).filter(|&at| at > 0);
    let is_space = |&at: &usize| piece[..at].ends_with(char::is_whitespace);
    let central = |at: &usize| (quarter..=piece.len() - quarter).contains(at);
    let distance = |at: &usize| at.abs_diff(half);
    let spaces = borders.clone().filter(|at| central(at) && is_space(at)).min_by_key(distance);
    spaces.or_else(|| borders.min_by_key(distance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::mix;

    fn words(text: &str) -> Result<usize> {
        Ok(text.split_whitespace().count().max(1))
    }

    #[test]
    fn sentences_end_where_readers_expect() {
        let text = "Dr. A said: \"Go!\" He went. 3.5 kg of rice\nA list\n\n中文。很好！ End";
        let found: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(
            found,
            [
                "Dr. ",
                "A said: ",
                "\"Go!\" ",
                "He went. ",
                "3.5 kg of rice\n",
                "A list\n\n",
                "中文。",
                "很好！ ",
                "End"
            ]
        );
    }

    #[test]
    fn the_example_by_hand() -> Result<()> {
        let sentence = |count: usize| format!("{}. ", vec!["w"; count].join(" "));
        let text = [40, 30, 50, 20].map(sentence).concat();
        let chunks = chunks(&text, 100, 60, &mut words)?;
        let counts: Vec<usize> =
            chunks.iter().map(|c| words(&text[c.bytes.clone()])).collect::<Result<_>>()?;
        assert_eq!(counts, [70, 100]);
        Ok(())
    }

    #[test]
    fn parts_cover_the_text_and_overlap() -> Result<()> {
        let letters = ["a", "é", "日", "🎉", ".", " ", "\n", "!", "bcd"];
        for seed in 0..300 {
            let text: String = (0..mix(seed) % 400)
                .map(|i| letters[(mix(seed * 1000 + i) % 9) as usize])
                .collect();
            let (most, overlap) = (1 + mix(seed + 7) as usize % 40, mix(seed + 9) as usize % 30);
            let mut bytes = |text: &str| Ok(text.chars().count());
            let chunks = chunks(&text, most, overlap, &mut bytes)?;
            let mut end = 0;
            for (i, chunk) in chunks.iter().enumerate() {
                let part = &text[chunk.bytes.clone()];
                assert!(part.chars().count() <= most && !part.is_empty());
                assert!(chunk.bytes.start <= end && chunk.bytes.end > end, "no gap, some progress");
                assert!(text[chunk.bytes.start..end].chars().count() <= overlap);
                assert_eq!(text[..chunk.bytes.start].chars().count(), chunk.chars.start);
                assert_eq!(part.chars().count(), chunk.chars.len());
                assert!(i == 0 || chunk.bytes.start > chunks[i - 1].bytes.start);
                end = chunk.bytes.end;
            }
            assert_eq!(end, text.len());
        }
        assert!(chunks("日", 0, 0, &mut |_| Ok(1)).is_err());
        Ok(())
    }
}
