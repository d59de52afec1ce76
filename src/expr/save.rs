//! Expressions as bytes.
//!
//! What is written is how an expression is made, not where it lay in its arena: its parts by number,
//! those before it. Reading makes it again with the constructors, so that whatever the bytes are, the arena
//! has its invariants, and an expression that was damaged is another expression and nothing worse.
//!
//! Worked example: `a|[0-9]{2,}` is four entries after the constants: 4 the literal `a`, 5 the class
//! `0`-`9`, 6 the repetition of 5 from 2 on, 7 any of 4 and 6.
//!
//! Equations come last: first the names that are reserved, at their places among the parts, then what each
//! stands for, which may be any part.

use super::class;
use super::node::{Exprs, Node, UNBOUNDED};
use super::{Document, ExprId};
use crate::codec::{Reader, Writer, damaged};
use crate::error::{Error, Kind, Result};
use crate::limits::{Fuel, Limits};
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// Expressions that every arena has.
const CONSTANTS: u32 = 4;

/// Kinds of entries.
mod tag {
    pub const CLASS: u8 = 0;
    pub const CONCAT: u8 = 1;
    pub const OR: u8 = 2;
    pub const AND: u8 = 3;
    pub const NOT: u8 = 4;
    pub const REPEAT: u8 = 5;
    pub const LITERALS: u8 = 6;
    pub const LATER: u8 = 7;
    pub const SPAN: u8 = 8;
}

/// The numbers of expressions in a file.
pub(crate) type Numbers = HashMap<ExprId, u32>;

impl Exprs {
    /// Writes `roots` and all that they are made of; gives their numbers.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for what is left of a piece of a document after its beginning, which no
    /// grammar has.
    pub(crate) fn save(&self, roots: &[ExprId], out: &mut Writer) -> Result<Numbers> {
        let (parts, equations) = self.reachable(roots);
        let of = |&part: &ExprId| match self.node(part) {
            Node::Span(document, _) => Some(document),
            _ => None,
        };
        let documents: BTreeSet<u32> = parts.iter().filter_map(of).collect();
        out.size(documents.len());
        documents.iter().for_each(|&document| out.text(self.documents[document as usize].text()));
        out.size(parts.len());
        let constants = (0..CONSTANTS).map(|id| (ExprId(id), id));
        let mut numbers: Numbers = constants.collect();
        for (&part, number) in parts.iter().zip(CONSTANTS..) {
            self.save_part(part, &numbers, &documents, out)?;
            numbers.insert(part, number);
        }
        out.size(equations.len());
        for part in equations {
            if let Node::Later(number, _) = self.node(part) {
                out.number(numbers[&part]);
                out.number(numbers[&self.definitions[number as usize]]);
            }
        }
        Ok(numbers)
    }

    /// All that `roots` are made of but the constants, parts first, and the equations among them.
    fn reachable(&self, roots: &[ExprId]) -> (BTreeSet<ExprId>, Vec<ExprId>) {
        let (mut found, mut equations) = (BTreeSet::new(), Vec::new());
        let mut todo = roots.to_vec();
        while let Some(part) = todo.pop() {
            if part.0 < CONSTANTS || !found.insert(part) {
                continue;
            }
            match self.node(part) {
                Node::Concat(first, second) => todo.extend([first, second]),
                Node::Or(list) | Node::And(list) => todo.extend(self.lists.get(list)),
                Node::Not(item) | Node::Repeat(item, ..) => todo.push(item),
                Node::Later(number, _) => {
                    equations.push(part);
                    todo.push(self.definitions[number as usize]);
                }
                _ => {}
            }
        }
        (found, equations)
    }

    fn save_part(
        &self,
        part: ExprId,
        numbers: &Numbers,
        documents: &BTreeSet<u32>,
        out: &mut Writer,
    ) -> Result<()> {
        let list = |parts: &[ExprId], out: &mut Writer| {
            out.size(parts.len());
            parts.iter().for_each(|part| out.number(numbers[part]));
        };
        let mut begin = |tag: u8| out.number(tag);
        match self.node(part) {
            // The constants are not written.
            Node::Never | Node::Epsilon => {}
            Node::Class(class) => {
                begin(tag::CLASS);
                let ranges = self.classes.get(class);
                out.size(ranges.len());
                for &(first, last) in ranges {
                    out.number(first);
                    out.number(last - first);
                }
            }
            Node::Concat(first, second) => {
                begin(tag::CONCAT);
                list(&[first, second], out);
            }
            Node::Or(parts) => {
                begin(tag::OR);
                list(self.lists.get(parts), out);
            }
            Node::And(parts) => {
                begin(tag::AND);
                list(self.lists.get(parts), out);
            }
            Node::Not(item) => {
                begin(tag::NOT);
                out.number(numbers[&item]);
            }
            Node::Repeat(item, min, max) => {
                begin(tag::REPEAT);
                out.number(numbers[&item]);
                out.number(min);
                out.optional((max != UNBOUNDED).then_some(max));
            }
            Node::Literal(..) | Node::Set(_) => {
                begin(tag::LITERALS);
                let (ids, offset) = self.literal_tails(part).unwrap_or_default();
                out.size(ids.len());
                ids.iter().for_each(|&id| out.text(&self.literal_text(id)[offset..]));
            }
            Node::Later(_, nullable) => {
                begin(tag::LATER);
                out.flag(nullable);
            }
            Node::Span(document, 0) => {
                begin(tag::SPAN);
                out.size(documents.range(..document).count());
            }
            Node::Span(..) => {
                let kind = Kind::Unsupported { keyword: "x-constrain/span".to_owned() };
                return Err(Error::new(kind, "the rest of a piece cannot be saved"));
            }
        }
        Ok(())
    }

    /// Reads what [`Exprs::save`] wrote into an arena; gives the expressions by number.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if the bytes are not that; what exceeds the limits.
    pub(crate) fn load(
        &mut self,
        from: &mut Reader<'_>,
        limits: &Limits,
        fuel: &mut Fuel,
    ) -> Result<Vec<ExprId>> {
        let documents = from.list(|from| Document::within(from.text()?, limits))?;
        let count = from.count()?;
        let mut exprs: Vec<ExprId> = (0..CONSTANTS).map(ExprId).collect();
        let mut reserved = HashMap::new();
        for _ in 0..count {
            fuel.spend(2)?;
            let part = self.load_part(from, &exprs, &documents, fuel)?;
            if let Node::Later(_, nullable) = self.node(part) {
                reserved.insert(part, nullable);
            }
            exprs.push(part);
            self.check()?;
        }
        for _ in 0..from.count()? {
            let part = exprs[from.index(exprs.len())?];
            let body = exprs[from.index(exprs.len())?];
            let Some(nullable) = reserved.remove(&part) else {
                return Err(damaged("it defines what was not reserved"));
            };
            if self.nullable(body) != nullable {
                return Err(damaged("an equation contradicts itself"));
            }
            self.define(part, body);
        }
        self.check()?;
        if reserved.is_empty() { Ok(exprs) } else { Err(damaged("an equation has no second side")) }
    }

    fn load_part(
        &mut self,
        from: &mut Reader<'_>,
        exprs: &[ExprId],
        documents: &[Document],
        fuel: &mut Fuel,
    ) -> Result<ExprId> {
        let part = |from: &mut Reader<'_>| Ok(exprs[from.index(exprs.len())?]);
        Ok(match from.byte()? {
            tag::CLASS => {
                let mut ranges = from.list(|from| {
                    let first = from.small()?;
                    Ok((first, first.saturating_add(from.small()?)))
                })?;
                fuel.spend(ranges.len() as u64)?;
                class::normalise(&mut ranges);
                self.class_of(&ranges)
            }
            tag @ (tag::CONCAT | tag::OR | tag::AND) => {
                let parts = from.list(part)?;
                fuel.spend(parts.len() as u64)?;
                match tag {
                    tag::OR => self.any_of(&parts),
                    tag::AND => self.all_of(&parts),
                    _ => parts.iter().rev().fold(ExprId::EPSILON, |tail, &p| self.join(p, tail)),
                }
            }
            tag::NOT => {
                let item = part(from)?;
                self.not(item)
            }
            tag::REPEAT => {
                let (item, min) = (part(from)?, from.number()?);
                let max = from.optional()?;
                self.repeat(item, min, max)
            }
            tag::LITERALS => {
                let texts = from.list(Reader::text)?;
                fuel.spend(texts.len() as u64)?;
                self.literals(&texts)
            }
            tag::LATER => self.reserve(from.flag()?),
            tag::SPAN => self.span(&documents[from.index(documents.len())?]),
            _ => return Err(damaged("an expression is of no known kind")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written, read, and written again.
    fn copy(exprs: &Exprs, root: ExprId) -> (Exprs, ExprId) {
        let write = |exprs: &Exprs, root: ExprId| {
            let mut writer = Writer::default();
            let number = exprs.save(&[root], &mut writer).unwrap()[&root];
            writer.number(number);
            writer.seal(b"cstr-tst", 1)
        };
        let bytes = write(exprs, root);
        let mut reader = Reader::open(&bytes, b"cstr-tst", 1).unwrap();
        let mut copy = Exprs::new();
        let (limits, fuel) = (Limits::default(), &mut Fuel::new(1_000_000));
        let loaded = copy.load(&mut reader, &limits, fuel).unwrap();
        let root = loaded[reader.index(loaded.len()).unwrap()];
        reader.finish().unwrap();
        assert_eq!(write(&copy, root), bytes);
        (copy, root)
    }

    #[test]
    fn a_copy_matches_the_same() {
        let mut exprs = Exprs::new();
        let letters = exprs.class(&[('a', 'z'), ('é', 'é')]);
        let words = exprs.literals(&["one", "two", ""]);
        let many = exprs.repeat(letters, 2, Some(4));
        let ends = exprs.repeat(words, 0, None);
        let not = exprs.not(words);
        let seq = exprs.concat(&[many, ExprId::ANY_CHAR, ends]);
        let document = Document::new("one hundred and twenty-one").unwrap();
        let span = exprs.span(&document);
        // The strings of `a` and `b` in which no `b` follows an `a`.
        let (a, b) = (exprs.literal("a"), exprs.literal("b"));
        let later = exprs.reserve(true);
        let (has_b, from_b) = (exprs.concat(&[a, later]), exprs.concat(&[b, later]));
        let ab = exprs.concat(&[a, b, ExprId::ANY]);
        let no_ab = exprs.not(ab);
        let after_a = exprs.and(&[has_b, no_ab]);
        let body = exprs.or(&[ExprId::EPSILON, from_b, after_a]);
        exprs.define(later, body);
        let texts =
            ["", "one", "oneone", "abcxtwo", "éa!", "hundred", "bba", "ab", "and t", "zzzz"];
        for (i, parts) in [vec![seq], vec![not, many], vec![span, not], vec![later], vec![span]]
            .into_iter()
            .enumerate()
        {
            let root = exprs.and(&parts);
            let (mut copied, copied_root) = copy(&exprs, root);
            let fuel = &mut Fuel::new(1_000_000);
            for text in texts {
                let expected = exprs.matches(root, text, fuel).unwrap();
                assert_eq!(
                    copied.matches(copied_root, text, fuel).unwrap(),
                    expected,
                    "{i} {text}"
                );
            }
        }
        for constant in [ExprId::NEVER, ExprId::ANY] {
            assert_eq!(copy(&exprs, constant).1, constant);
        }
    }
}
