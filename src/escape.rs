//! The short escapes of JSON strings: `\n` for a line feed, and seven others.

/// The byte after the backslash, and the character that it stands for.
const SHORT: [(u8, char); 8] = [
    (b'"', '"'),
    (b'\\', '\\'),
    (b'/', '/'),
    (b'b', '\u{8}'),
    (b'f', '\u{c}'),
    (b'n', '\n'),
    (b'r', '\r'),
    (b't', '\t'),
];

/// The character that a backslash and `byte` stand for.
pub(crate) fn meaning(byte: u8) -> Option<char> {
    SHORT.iter().find(|(name, _)| *name == byte).map(|&(_, character)| character)
}

/// The byte after the backslash in the short escape of a character.
pub(crate) fn name(of: char) -> Option<u8> {
    SHORT.iter().find(|(_, character)| *character == of).map(|&(name, _)| name)
}
