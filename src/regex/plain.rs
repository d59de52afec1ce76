//! Plain regular expressions, in the syntax of the crate `regex`, as syntax trees.
//!
//! `regex-syntax` parses; its result is walked without recursion. Unlike in an ECMA-262 pattern,
//! `\d`, `\w` and `\s` are the Unicode classes here, and `.` excludes only `\n`.

use super::Flags;
use super::ast::{Ast, Node, NodeId, class_of};
use super::ecma::DEPTH;
use crate::error::{Error, Kind, Result, quote};
use crate::limits::Fuel;
use regex_syntax::ast::ErrorKind;
use regex_syntax::hir::{self, Class, ClassUnicode, Hir, HirKind, Look, Visitor};
use regex_syntax::{Error as SyntaxError, ParserBuilder};

/// Parses `pattern`. Look-around, which the crate `regex` does not have, is read as in ECMA-262.
pub(super) fn parse(pattern: &str, flags: Flags, fuel: &mut Fuel) -> Result<(Ast, NodeId)> {
    fuel.spend(4 * pattern.len() as u64)?;
    let parsed = ParserBuilder::new()
        .nest_limit(DEPTH as u32)
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(flags.dot_all)
        .multi_line(flags.multi_line)
        .ignore_whitespace(flags.extended)
        .build()
        .parse(pattern);
    match parsed {
        Ok(hir) => {
            let tree = Tree { ast: Ast::default(), open: vec![Vec::new()], fuel };
            hir::visit(&hir, tree)
        }
        Err(SyntaxError::Parse(error))
            if *error.kind() == ErrorKind::UnsupportedLookAround && !flags.extended =>
        {
            super::ecma::parse(pattern, flags, fuel)
        }
        Err(error) => Err(explain(pattern, &error)),
    }
}

fn explain(pattern: &str, error: &SyntaxError) -> Error {
    let (what, offset) = match error {
        SyntaxError::Parse(error) => {
            match error.kind() {
                ErrorKind::NestLimitExceeded(_) => {
                    let text = format!("more than {DEPTH} nested groups in a regular expression");
                    return Error::new(Kind::TooDeep, text).help("nest fewer groups");
                }
                ErrorKind::UnsupportedBackreference | ErrorKind::UnsupportedLookAround => {
                    let keyword = "regular expression".to_owned();
                    return Error::new(Kind::Unsupported { keyword }, error.kind().to_string())
                        .help("write the regular expression without it");
                }
                _ => {}
            }
            (error.kind().to_string(), error.span().start.offset)
        }
        SyntaxError::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        other => (other.to_string(), 0),
    };
    let (before, rest) = pattern.split_at_checked(offset).unwrap_or((pattern, ""));
    let at = before.chars().count() + 1;
    let message =
        format!("not a regular expression: {what}, at character {at}, before {}", quote(rest));
    Error::new(Kind::BadRegex, message)
}

/// Collects the finished children of each node that is being visited.
struct Tree<'a> {
    ast: Ast,
    open: Vec<Vec<NodeId>>,
    fuel: &'a mut Fuel,
}

impl Visitor for Tree<'_> {
    type Output = (Ast, NodeId);
    type Err = Error;

    fn visit_pre(&mut self, _: &Hir) -> Result<()> {
        self.open.push(Vec::new());
        self.fuel.spend(1)
    }

    fn visit_post(&mut self, hir: &Hir) -> Result<()> {
        let children = self.open.pop().unwrap_or_default();
        let node = match hir.kind() {
            HirKind::Empty => self.ast.add(Node::Empty),
            HirKind::Literal(literal) => self.literal(&literal.0)?,
            HirKind::Class(Class::Unicode(class)) => self.ast.add_class(class.clone()),
            HirKind::Class(Class::Bytes(class)) => {
                let class = class.to_unicode_class().unwrap_or_else(ClassUnicode::empty);
                self.ast.add_class(class)
            }
            HirKind::Look(look) => self.look(*look),
            HirKind::Repetition(repetition) => {
                let item = self.ast.concat(children);
                let (min, max) = (u64::from(repetition.min), repetition.max.map(u64::from));
                self.ast.add(Node::Repeat { item, min, max })
            }
            HirKind::Capture(_) | HirKind::Concat(_) => self.ast.concat(children),
            HirKind::Alternation(_) => self.ast.alt(children),
        };
        if let Some(siblings) = self.open.last_mut() {
            siblings.push(node);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Ast, NodeId)> {
        let root = self.open.pop().unwrap_or_default();
        let root = self.ast.concat(root);
        Ok((self.ast, root))
    }
}

impl Tree<'_> {
    fn literal(&mut self, bytes: &[u8]) -> Result<NodeId> {
        self.fuel.spend(bytes.len() as u64)?;
        let text = std::str::from_utf8(bytes).map_err(|_| {
            Error::new(Kind::BadRegex, "not a regular expression: it matches invalid UTF-8")
        })?;
        let items = text.chars().map(|c| self.ast.add_class(class_of(&[(c, c)]))).collect();
        Ok(self.ast.concat(items))
    }

    fn look(&mut self, look: Look) -> NodeId {
        let ast = &mut self.ast;
        let line = class_of(&[('\n', '\n')]);
        let none = ClassUnicode::empty();
        let word = match look {
            Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode => unicode_word(),
            _ => super::property::word(false),
        };
        let other = super::property::complement(word.clone());
        match look {
            Look::Start => ast.behind(none, true),
            Look::End => ast.ahead(none, true),
            Look::StartLF => ast.behind(line, true),
            Look::EndLF => ast.ahead(line, true),
            Look::StartCRLF | Look::EndCRLF => self.line_break(look == Look::StartCRLF),
            Look::WordAscii | Look::WordUnicode => ast.boundary(&word, false),
            Look::WordAsciiNegate | Look::WordUnicodeNegate => ast.boundary(&word, true),
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => ast.behind(other, true),
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => ast.ahead(other, true),
            Look::WordStartAscii | Look::WordStartUnicode => {
                let sides = vec![ast.behind(other, true), ast.ahead(word, false)];
                ast.concat(sides)
            }
            Look::WordEndAscii | Look::WordEndUnicode => {
                let sides = vec![ast.behind(word, false), ast.ahead(other, true)];
                ast.concat(sides)
            }
        }
    }

    /// The start or end of a line where `\r\n` ends one line, not two.
    fn line_break(&mut self, start: bool) -> NodeId {
        let (lf, cr) = (class_of(&[('\n', '\n')]), class_of(&[('\r', '\r')]));
        let (not_lf, not_cr) =
            (super::property::complement(lf.clone()), super::property::complement(cr.clone()));
        let ast = &mut self.ast;
        let (certain, half) = if start {
            (ast.behind(lf, true), [ast.behind(cr, false), ast.ahead(not_lf, true)])
        } else {
            (ast.ahead(cr, true), [ast.behind(not_cr, true), ast.ahead(lf, false)])
        };
        let half = ast.concat(half.to_vec());
        ast.alt(vec![certain, half])
    }
}

/// `\w` with Unicode classes.
fn unicode_word() -> ClassUnicode {
    match regex_syntax::parse(r"\w").map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => class,
        _ => super::property::word(false),
    }
}
