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

/// Bytes of text whose tokens are asked for at once, about: a tokenizer may need longer to begin than for a sentence.
const BLOCK: usize = 4096;

/// Cuts `text` into parts of at most `most` tokens, of which the last ones, up to `overlap`, are the first ones of the next part.
/// `tokens` gives the lengths in bytes of the tokens of a piece of text; what it refuses as [`Kind::TooLarge`] it is asked
/// in halves.
///
/// It is asked about all of the text once, some kilobytes at a time, and a token counts where it ends. So a part that is
/// tokenized alone may have a token or two more, at its borders.
///
/// # Errors
/// [`Kind::BadArgument`] if not even one character fits; those of `tokens`.
pub fn chunks(
    text: &str,
    most: usize,
    overlap: usize,
    tokens: &mut dyn FnMut(&str) -> Result<Vec<usize>>,
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
    tokens: &mut dyn FnMut(&str) -> Result<Vec<usize>>,
) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut open: Vec<Range<usize>> = sentences(text);
    let ends = ends(text, &open, tokens)?;
    open.reverse();
    while let Some(bytes) = open.pop() {
        let before = |place: usize| ends.partition_point(|&end| end <= place);
        let count = before(bytes.end) - before(bytes.start);
        if count <= most {
            pieces.push(Piece { bytes, tokens: count });
            continue;
        }
        let Some(halves) = halves(text, &bytes) else {
            let message =
                format!("a part of {most} tokens has no room for {count} of one character");
            return Err(Error::new(Kind::BadArgument, message).help("allow longer parts"));
        };
        open.extend(halves);
    }
    Ok(pieces)
}

/// Where the tokens of a text end, in order.
fn ends(
    text: &str,
    sentences: &[Range<usize>],
    tokens: &mut dyn FnMut(&str) -> Result<Vec<usize>>,
) -> Result<Vec<usize>> {
    let mut ends = Vec::with_capacity(text.len() / 4);
    for block in blocks(sentences) {
        let mut open = vec![block];
        while let Some(bytes) = open.pop() {
            let is_long = bytes.len() > 2 * BLOCK;
            if let Some(halves) = halves(text, &bytes).filter(|_| is_long) {
                open.extend(halves);
                continue;
            }
            match tokens(&text[bytes.clone()]) {
                // Some tokenizers put a space before a text: a token ends in it all the same.
                Ok(lens) => ends.extend(lens.iter().scan(bytes.start, |at, len| {
                    *at = (*at + len).min(bytes.end);
                    Some(*at)
                })),
                Err(error) if *error.kind() == Kind::TooLarge => {
                    open.extend(halves(text, &bytes).ok_or(error)?);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(ends)
}

/// Sentences in a row as long as they fit a block, one at least.
fn blocks(sentences: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for sentence in sentences {
        match blocks.last_mut() {
            Some(block) if sentence.end - block.start <= BLOCK => block.end = sentence.end,
            _ => blocks.push(sentence.clone()),
        }
    }
    blocks
}

/// The second and the first half of a piece, as a stack wants them; `None` for one character.
fn halves(text: &str, bytes: &Range<usize>) -> Option<[Range<usize>; 2]> {
    let middle = bytes.start + middle(&text[bytes.clone()])?;
    Some([middle..bytes.end, bytes.start..middle])
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
    let distance = |at: &usize| at.abs_diff(half);
    let center = (half..=piece.len()).find(|&at| piece.is_char_boundary(at))?;
    let (before, after) = piece.split_at(center);
    // The nearest place after white space on either side: nothing farther off is looked at.
    let left = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
    let left = left.map(|(at, c)| at + c.len_utf8());
    let right = after.char_indices().find(|(_, c)| c.is_whitespace());
    let right = right.map(|(at, c)| center + at + c.len_utf8());
    let central = |at: &usize| (quarter..=piece.len() - quarter).contains(at);
    let spaces = [left, right].into_iter().flatten().filter(|at| *at > 0 && *at < piece.len());
    let space = spaces.filter(central).min_by_key(distance);
    let previous = before.char_indices().next_back().map(|(at, _)| at);
    let any = [previous, Some(center)].into_iter().flatten();
    space.or_else(|| any.filter(|at| *at > 0 && *at < piece.len()).min_by_key(distance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::mix;

    fn words(text: &str) -> Result<Vec<usize>> {
        Ok(text.split_inclusive(' ').map(str::len).collect())
    }

    fn characters(text: &str) -> Result<Vec<usize>> {
        Ok(text.chars().map(char::len_utf8).collect())
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
            chunks.iter().map(|c| text[c.bytes.clone()].split_whitespace().count()).collect();
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
            let chunks = chunks(&text, most, overlap, &mut characters)?;
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
        assert!(chunks("日", 0, 0, &mut characters).is_err());
        Ok(())
    }

    #[test]
    fn the_tokenizer_reads_a_long_text_once_and_is_seldom_called() -> Result<()> {
        let short = "A few words. ".repeat(20_000);
        for text in [short.as_str(), &"word ".repeat(50_000), &"日".repeat(50_000)] {
            let (mut calls, mut bytes) = (0, 0);
            let mut tokens = |text: &str| {
                (calls, bytes) = (calls + 1, bytes + text.len());
                characters(text)
            };
            let chunks = chunks(text, 50, 10, &mut tokens)?;
            assert!(chunks.iter().all(|chunk| chunk.chars.len() <= 50));
            assert_eq!(bytes, text.len());
            assert!(calls <= text.len() / 1_000, "{calls} calls for {bytes} bytes");
        }
        Ok(())
    }

    #[test]
    fn a_tokenizer_that_refuses_long_texts_is_asked_in_pieces() -> Result<()> {
        let text = "Is it so? No, it is not; 日本. ".repeat(500);
        let mut small = |text: &str| match text.len() {
            0..=100 => characters(text),
            _ => Err(Error::new(Kind::TooLarge, "too long")),
        };
        let expected = chunks(&text, 70, 20, &mut characters)?;
        assert_eq!(chunks(&text, 70, 20, &mut small)?, expected);
        let mut nothing = |_: &str| Err(Error::new(Kind::TooLarge, "too long"));
        assert_eq!(chunks(&text, 70, 20, &mut nothing).unwrap_err().kind(), &Kind::TooLarge);
        Ok(())
    }

    #[test]
    fn halves_part_at_white_space_near_the_middle() {
        for (piece, expected) in [
            ("ab cd ef", Some(3)),
            ("abcd efg", Some(5)),
            ("a bcdefghijk", Some(6)),
            ("日本", Some(3)),
            ("a日", Some(1)),
            ("日", None),
            ("", None),
        ] {
            assert_eq!(middle(piece), expected, "{piece}");
        }
    }
}
