//! EBNF as in the W3C's standards (XML, SPARQL, XQuery).
//!
//! ```text
//! [1] Element ::= '<' Name (S Attribute)* '>'    /* a comment */
//! [2] Char    ::= #x9 | [#x20-#xD7FF] - '&'      [ wfc: says nothing here ]
//! ```
//!
//! Literals have no escapes: a character that cannot be written is `#x` and its number. A rule
//! ends where the next one begins, lines mean nothing. `A - B` is A without B; operators behind an
//! item bind tighter, a sequence less tight.

use super::groups::{Groups, Mark};
use super::rules::{ItemId, Rules};
use super::scan::Cursor;
use crate::error::Result;
use crate::grammar::Grammar;

/// The rules of a text, to become nodes of `grammar`.
pub(super) fn parse(text: &str, grammar: Grammar) -> Result<Rules> {
    let mut parser = Parser { rules: Rules::new(grammar, text.len()), cursor: Cursor::new(text) };
    parser.skip()?;
    while parser.cursor.peek().is_some() {
        parser.rule()?;
        parser.skip()?;
    }
    Ok(parser.rules)
}

struct Parser<'t> {
    rules: Rules,
    cursor: Cursor<'t>,
}

/// The notes that may follow a rule in brackets: constraints that are not part of the grammar.
const NOTES: [&str; 5] = ["wfc:", "vc:", "WFC:", "VC:", "NS-"];

impl Parser<'_> {
    /// Steps over white space, comments and notes.
    fn skip(&mut self) -> Result<()> {
        loop {
            self.cursor.take_while(char::is_whitespace);
            let here = self.cursor;
            let end = if self.cursor.eat("/*") {
                "*/"
            } else if is_note(self.cursor) {
                "]"
            } else {
                return Ok(());
            };
            if self.cursor.take_until(end).is_none() {
                return Err(here.at().bad("this comment is never closed"));
            }
        }
    }

    fn rule(&mut self) -> Result<()> {
        let start = self.cursor;
        let Some((name, rest)) = head(self.cursor) else {
            return Err(start.expected("a rule such as Name ::= ..."));
        };
        self.cursor = rest;
        let rule = self.rules.named(name, start.at());
        let mut groups = Groups::new(self.cursor.at());
        self.skip()?;
        while self.cursor.peek().is_some() {
            if groups.depth() == 0 && head(self.cursor).is_some() {
                break;
            }
            self.rules.pay(1)?;
            self.part(&mut groups)?;
            self.skip()?;
        }
        let body = groups.finish(&mut self.rules)?;
        self.rules.define(rule, start.at(), body)
    }

    /// Reads one item, bracket or operator.
    fn part(&mut self, groups: &mut Groups) -> Result<()> {
        let here = self.cursor;
        let item = match self.cursor.peek() {
            Some('(') => {
                self.cursor.bump();
                return groups.open("(", here.at());
            }
            Some(')') => {
                self.cursor.bump();
                match groups.close(&mut self.rules)? {
                    Some(closed) => closed.item,
                    None => return Err(here.at().bad("this bracket was never opened")),
                }
            }
            Some('|') => {
                self.cursor.bump();
                return groups.alternative(&mut self.rules);
            }
            Some('-') => {
                self.cursor.bump();
                groups.mark(Mark::Except, here.at());
                return Ok(());
            }
            Some(c @ ('*' | '+' | '?')) => {
                self.cursor.bump();
                let Some(last) = groups.last() else {
                    return Err(here.expected("something to repeat before this"));
                };
                let max = (c == '?').then_some(1);
                *last = self.rules.repeat(*last, u64::from(c == '+'), max);
                return Ok(());
            }
            Some(quote @ ('"' | '\'')) => {
                self.cursor.bump();
                let Some(text) = self.cursor.take_until(quote.encode_utf8(&mut [0; 4])) else {
                    return Err(here.at().bad("this literal is never closed"));
                };
                self.rules.literal(text)
            }
            Some('[') => self.class()?,
            Some('#') => {
                let c = self.number()?;
                self.rules.class(&[(c, c)], false)
            }
            _ => {
                let name = name(&mut self.cursor);
                if name.is_empty() {
                    return Err(here.expected("a literal, a class, a rule, a bracket or |"));
                }
                let rule = self.rules.named(name, here.at());
                self.rules.mention(rule)
            }
        };
        groups.push(item);
        Ok(())
    }

    /// A character by its number: `#x41`.
    fn number(&mut self) -> Result<char> {
        if !self.cursor.eat("#x") {
            return Err(self.cursor.expected("the number of a character, such as #x41"));
        }
        let digits = self.cursor.rest().find(|c: char| !c.is_ascii_hexdigit());
        self.cursor.hex(digits.unwrap_or(self.cursor.rest().len()))
    }

    /// A class in brackets, with `^` for all others.
    fn class(&mut self) -> Result<ItemId> {
        let start = self.cursor;
        self.cursor.bump();
        let negated = self.cursor.eat("^");
        let mut ranges = Vec::new();
        while !self.cursor.eat("]") {
            let here = self.cursor.at();
            let first = self.character(start)?;
            let mut last = first;
            if self.cursor.peek() == Some('-') && !self.cursor.rest().starts_with("-]") {
                self.cursor.bump();
                last = self.character(start)?;
            }
            if last < first {
                return Err(here.bad("this range ends before it begins"));
            }
            ranges.push((first, last));
        }
        if ranges.is_empty() {
            return Err(start.at().bad("a class without characters"));
        }
        Ok(self.rules.class(&ranges, negated))
    }

    /// A character of the class that was opened at `start`.
    fn character(&mut self, start: Cursor<'_>) -> Result<char> {
        if self.cursor.rest().starts_with("#x") {
            return self.number();
        }
        match self.cursor.bump() {
            Some(c) => Ok(c),
            None => Err(start.at().bad("this class is never closed")),
        }
    }
}

/// The name with which a rule begins, and what follows its `::=`, if a rule begins here.
fn head<'t>(mut cursor: Cursor<'t>) -> Option<(&'t str, Cursor<'t>)> {
    if cursor.eat("[") {
        let number = cursor.take_while(|c| c.is_ascii_alphanumeric());
        if number.is_empty() || !cursor.eat("]") {
            return None;
        }
        cursor.take_while(char::is_whitespace);
    }
    let name = name(&mut cursor);
    cursor.take_while(char::is_whitespace);
    (!name.is_empty() && cursor.eat("::=")).then_some((name, cursor))
}

fn name<'t>(cursor: &mut Cursor<'t>) -> &'t str {
    let begins = cursor.peek().is_some_and(|c| c.is_alphabetic() || c == '_');
    // A hyphen is part of a name: `A - B` is written with blanks.
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if begins { cursor.take_while(inside) } else { "" }
}

fn is_note(mut cursor: Cursor<'_>) -> bool {
    if !cursor.eat("[") {
        return false;
    }
    cursor.take_while(|c| c == ' ');
    NOTES.iter().any(|note| cursor.rest().starts_with(note))
}
