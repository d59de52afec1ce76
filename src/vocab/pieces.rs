//! Vocabularies from pieces that a model runtime hands out, with the token types of GGUF files.
use super::spelling::fallback_byte;
use super::{Token, TokenId, Vocabulary};
use crate::error::Result;

/// What a runtime says about one id: the bytes that it prints for the token, and the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes, already decoded (a space is a space); for [`PieceKind::Control`] the name.
    pub bytes: Vec<u8>,
    /// The type of the token.
    pub kind: PieceKind,
}

/// The token types of GGUF files (`tokenizer.ggml.token_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Ordinary text.
    Normal,
    /// Stands for what cannot be spelled.
    Unknown,
    /// A control token such as `<|im_end|>`.
    Control,
    /// Added by the author of the model; text.
    UserDefined,
    /// An id without a meaning.
    Unused,
    /// A single byte; its text may be `<0xHH>`.
    Byte,
}

impl PieceKind {
    /// The type for a number in a GGUF file; undefined numbers are [`PieceKind::Unused`].
    pub fn from_gguf(number: i32) -> Self {
        match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            6 => Self::Byte,
            _ => Self::Unused,
        }
    }
}

impl Vocabulary {
    /// A vocabulary of one piece for each id, and the ids that end generation. Ids without bytes are
    /// unused, unless they end generation.
    ///
    /// # Errors
    /// As [`Vocabulary::new`].
    ///
    /// ```
    /// use constrain::vocab::{Piece, PieceKind};
    /// let piece = |text: &str, kind| Piece { bytes: text.into(), kind };
    /// let pieces = [
    ///     piece("</s>", PieceKind::Control),
    ///     piece(" a", PieceKind::Normal),
    ///     piece("<0x0A>", PieceKind::Byte),
    /// ];
    /// let vocabulary = constrain::Vocabulary::from_pieces(pieces, vec![0])?;
    /// assert_eq!(vocabulary.bytes(2), Some(&b"\n"[..]));
    /// # Ok::<(), constrain::Error>(())
    /// ```
    pub fn from_pieces(pieces: impl IntoIterator<Item = Piece>, end: Vec<TokenId>) -> Result<Self> {
        let mut tokens: Vec<Token> = pieces.into_iter().map(token).collect();
        for &id in &end {
            if let Some(token @ Token::Unused) = tokens.get_mut(id as usize) {
                *token = Token::Special("".into());
            }
        }
        Self::new(tokens, end)
    }
}

fn token(piece: Piece) -> Token {
    match piece.kind {
        PieceKind::Unused => Token::Unused,
        _ if piece.bytes.is_empty() => Token::Unused,
        PieceKind::Control | PieceKind::Unknown => {
            Token::Special(String::from_utf8_lossy(&piece.bytes).into())
        }
        PieceKind::Byte => match fallback_byte(&piece.bytes) {
            Some(byte) => Token::Text([byte].into()),
            None => Token::Text(piece.bytes.into()),
        },
        PieceKind::Normal | PieceKind::UserDefined => Token::Text(piece.bytes.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind() {
        let piece = |bytes: &[u8], kind| Piece { bytes: bytes.to_vec(), kind };
        let pieces = vec![
            piece(b"a", PieceKind::Normal),
            piece(b"<unk>", PieceKind::Unknown),
            piece(b"<s>\xff", PieceKind::Control),
            piece(b"<think>", PieceKind::UserDefined),
            piece(b"<unused7>", PieceKind::Unused),
            piece(b"<0x7B>", PieceKind::Byte),
            piece(b"\xff", PieceKind::Byte),
            piece(b"", PieceKind::Normal),
            piece(b"", PieceKind::Control),
            piece(b"<0x7B>", PieceKind::Normal),
        ];
        let vocabulary = Vocabulary::from_pieces(pieces.clone(), vec![8]).unwrap();
        let tokens: Vec<Token> = (0..10).filter_map(|id| vocabulary.token(id).cloned()).collect();
        let text = |bytes: &[u8]| Token::Text(bytes.into());
        let special = |name: &str| Token::Special(name.into());
        assert_eq!(
            tokens,
            [
                text(b"a"),
                special("<unk>"),
                special("<s>\u{fffd}"),
                text(b"<think>"),
                Token::Unused,
                text(b"{"),
                text(b"\xff"),
                Token::Unused,
                special(""),
                text(b"<0x7B>"),
            ]
        );
        assert!(Vocabulary::from_pieces(pieces, vec![]).is_err());
        assert!(Vocabulary::from_pieces([], vec![0]).is_err());
    }

    #[test]
    fn numbers_of_the_file_format() {
        let kinds = [1, 2, 3, 4, 5, 6].map(PieceKind::from_gguf);
        assert_eq!(kinds[0], PieceKind::Normal);
        assert_eq!(kinds[3], PieceKind::UserDefined);
        assert_eq!(kinds[5], PieceKind::Byte);
        assert!([-1, 0, 5, 7].iter().all(|&n| PieceKind::from_gguf(n) == PieceKind::Unused));
    }
}
