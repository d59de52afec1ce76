//! Classes in square brackets.

use super::Parser;
use super::escape::Escaped;
use crate::error::Result;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

impl Parser<'_> {
    /// What follows `[`.
    pub(super) fn class(&mut self) -> Result<ClassUnicode> {
        let negated = self.eat('^');
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.bad("a class is not closed")),
                Some(']') => {
                    self.at += 1;
                    break;
                }
                Some(_) => self.class_item(&mut ranges)?,
            }
        }
        self.work += ranges.len() as u64;
        // Case is folded before negation: [^a] excludes A too.
        let mut class = self.fold(ClassUnicode::new(ranges));
        if negated {
            class.negate();
        }
        Ok(class)
    }

    /// One atom, or a range of atoms.
    fn class_item(&mut self, ranges: &mut Vec<ClassUnicodeRange>) -> Result<()> {
        let first = self.class_atom()?;
        let is_range =
            self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']');
        if !is_range {
            add(ranges, &first);
            return Ok(());
        }
        self.at += 1;
        let last = self.class_atom()?;
        match (&first, &last) {
            (Escaped::Code(first), Escaped::Code(last)) if first <= last => {
                add_range(ranges, *first, *last);
                Ok(())
            }
            (Escaped::Code(_), Escaped::Code(_)) => Err(self.bad("a range is out of order")),
            _ => {
                self.only_lenient("a class escape cannot be the end of a range")?;
                add(ranges, &first);
                add(ranges, &Escaped::Code(u32::from('-')));
                add(ranges, &last);
                Ok(())
            }
        }
    }

    fn class_atom(&mut self) -> Result<Escaped> {
        let Some(c) = self.peek() else {
            return Err(self.bad("a class is not closed"));
        };
        self.at += 1;
        match c {
            '\\' => self.escaped(true),
            _ => Ok(Escaped::Code(u32::from(c))),
        }
    }
}

fn add(ranges: &mut Vec<ClassUnicodeRange>, atom: &Escaped) {
    match atom {
        Escaped::Code(code) => add_range(ranges, *code, *code),
        Escaped::Set(class) => ranges.extend(class.iter().copied()),
    }
}

/// The scalar values from `first` to `last`.
fn add_range(ranges: &mut Vec<ClassUnicodeRange>, first: u32, last: u32) {
    for (low, high) in [(0, 0xd7ff), (0xe000, 0x0010_ffff)] {
        let ends = (char::from_u32(first.max(low)), char::from_u32(last.min(high)));
        if let (Some(first), Some(last)) = ends
            && first <= last
        {
            ranges.push(ClassUnicodeRange::new(first, last));
        }
    }
}
