//! Bytes of saved things: numbers, texts and lists, in an envelope with a version and a checksum.
//!
//! ```text
//! magic      8 bytes    what is saved ("cstr-con": a constraint, "cstr-voc": a vocabulary)
//! version    4 bytes    little endian
//! checksum  32 bytes    BLAKE3 of all that follows
//! payload               numbers as LEB128, bytes and texts with their length in front
//! ```
//!
//! Worked example: the payload of the list `["a", "é"]` is `02 01 61 02 c3 a9`.
//!
//! # Invariants
//! * A [`Reader`] never panics and never reserves more memory than it has bytes left, whatever the bytes
//!   are: a checksum that is right does not make its file trustworthy.
//! * Everything that is written is read to the last byte; what is left over is an error.

use crate::error::{Error, Kind, Result};

/// Bytes of the envelope.
const HEADER: usize = 8 + 4 + 32;

/// Bytes being written.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// A number.
    pub fn number(&mut self, value: impl Into<u64>) {
        let mut value = value.into();
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A length or an index.
    pub fn size(&mut self, value: usize) {
        self.number(value as u64);
    }

    /// A number that may be missing.
    pub fn optional(&mut self, value: Option<u64>) {
        self.flag(value.is_some());
        if let Some(value) = value {
            self.number(value);
        }
    }

    /// A yes or a no.
    pub fn flag(&mut self, value: bool) {
        self.0.push(value.into());
    }

    /// Bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A text with its length.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// All that was written, without an envelope.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// All that was written, in its envelope.
    pub fn seal(self, magic: &[u8; 8], version: u32) -> Vec<u8> {
        let checksum = blake3::hash(&self.0);
        let header = [&magic[..], &version.to_le_bytes(), checksum.as_bytes()].concat();
        [header, self.0].concat()
    }
}

/// Bytes being read.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

/// The error for bytes that are not what they should be.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    let message = format!("the saved file is damaged: {}", what.into());
    Error::new(Kind::BadArtefact, message).help("make the file again")
}

impl<'a> Reader<'a> {
    /// What is without an envelope.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is in an envelope.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if it is another kind of file, of another version, or damaged.
    pub fn open(bytes: &'a [u8], magic: &[u8; 8], version: u32) -> Result<Self> {
        let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
            return Err(damaged("it is too short"));
        };
        if header[..8] != magic[..] {
            return Err(Error::new(Kind::BadArtefact, "this is no file of a compiled constraint")
                .help("give a file that `constrain compile` or `Constraint::save` has written"));
        }
        if header[8..12] != version.to_le_bytes() {
            let message = "the file was written by another version of constrain";
            return Err(Error::new(Kind::BadArtefact, message).help("make the file again"));
        }
        if header[12..] != blake3::hash(payload).as_bytes()[..] {
            return Err(damaged("its checksum is wrong"));
        }
        Ok(Self(payload))
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift >= 64 || bits << shift >> shift != bits {
                return Err(damaged("a number is too large"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A number of 32 bits.
    pub fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged("a number is too large"))
    }

    /// How many items follow: no more than there are bytes left.
    pub fn count(&mut self) -> Result<usize> {
        let count = usize::try_from(self.number()?).ok().filter(|&count| count <= self.0.len());
        count.ok_or_else(|| damaged("a list is longer than the file"))
    }

    /// An index below `end`.
    pub fn index(&mut self, end: usize) -> Result<usize> {
        let index = usize::try_from(self.number()?).ok().filter(|&index| index < end);
        index.ok_or_else(|| damaged("it refers to what is not there"))
    }

    /// A number that may be missing.
    pub fn optional(&mut self) -> Result<Option<u64>> {
        self.flag()?.then(|| self.number()).transpose()
    }

    /// A yes or a no.
    pub fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damaged("a flag is neither yes nor no")),
        }
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or_else(|| damaged("it ends too early"))?;
        self.0 = rest;
        Ok(byte)
    }

    /// Bytes with their length.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(bytes)
    }

    /// A text with its length.
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| damaged("a text is not UTF-8"))
    }

    /// A list of items.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count()?).map(|_| item(self)).collect()
    }

    /// That everything was read.
    pub fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(damaged("there is more than there should be")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: &[u8; 8] = b"cstr-tst";

    #[test]
    fn what_was_written_is_read() {
        let mut writer = Writer::default();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|&number| writer.number(number));
        writer.optional(None);
        writer.optional(Some(7));
        writer.flag(true);
        writer.text("é");
        writer.size(2);
        writer.text("a");
        writer.text("");
        let bytes = writer.seal(MAGIC, 3);
        let mut reader = Reader::open(&bytes, MAGIC, 3).unwrap();
        for number in numbers {
            assert_eq!(reader.number(), Ok(number));
        }
        assert_eq!((reader.optional(), reader.optional()), (Ok(None), Ok(Some(7))));
        assert_eq!((reader.flag(), reader.text()), (Ok(true), Ok("é")));
        assert_eq!(reader.list(|reader| reader.text()), Ok(vec!["a", ""]));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn other_files_and_damaged_ones_are_refused() {
        let mut writer = Writer::default();
        writer.text("text");
        let bytes = writer.seal(MAGIC, 3);
        for (magic, version) in [(MAGIC, 4), (b"cstr-con", 3)] {
            assert!(Reader::open(&bytes, magic, version).is_err());
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert!(Reader::open(&wrong, MAGIC, 3).is_err(), "byte {at}");
            assert!(Reader::open(&bytes[..at], MAGIC, 3).is_err());
        }
        let read = |payload: &[u8]| {
            let mut writer = Writer::default();
            writer.0.extend_from_slice(payload);
            writer.seal(MAGIC, 3)
        };
        for payload in [&[0x85, 0x80, 0x80][..], &[0xFF; 11], &[3, b'a'], &[1, 0xFF]] {
            let bytes = read(payload);
            let error = Reader::open(&bytes, MAGIC, 3).unwrap().text().unwrap_err();
            assert_eq!(error.kind(), &Kind::BadArtefact, "{payload:?}");
        }
        let bytes = read(&[7]);
        let mut reader = Reader::open(&bytes, MAGIC, 3).unwrap();
        assert!(reader.index(7).is_err() && reader.finish().is_ok());
        assert!(Reader::open(&bytes, MAGIC, 3).unwrap().finish().is_err());
    }
}
