//! GBNF, the grammars of llama.cpp.
//!
//! ```text
//! root ::= "a" [^0-9\n]+ ( item | . ){2,3}    # a comment
//! item ::= <|name|> | <[123]> | !<|name|>     tokens: by text, by number, any but one
//! ```
//!
//! A rule ends with its line, but not inside parentheses nor after `|` or `::=`. Wider than
//! llama.cpp, so that nothing that it reads is refused: names may hold underscores, a line may
//! begin with `|`, bounds are exact however large.

use super::groups::Groups;
use super::rules::{ItemId, Rules};
use super::scan::Cursor;
use crate::error::Result;
use crate::expr::ExprId;
use crate::grammar::{Grammar, SpecialSpec};

/// The rules of a text, to become nodes of `grammar`.
pub(super) fn parse(text: &str, grammar: Grammar) -> Result<Rules> {
    let mut parser = Parser { rules: Rules::new(grammar, text.len()), cursor: Cursor::new(text) };
    loop {
        parser.skip(true);
        if parser.cursor.peek().is_none() {
            return Ok(parser.rules);
        }
        parser.rule()?;
    }
}

struct Parser<'t> {
    rules: Rules,
    cursor: Cursor<'t>,
}

/// Characters that stand for themselves after a backslash.
const ESCAPED: &str = "\\\"[]-";

impl Parser<'_> {
    /// Steps over blanks and comments, and over ends of lines if `lines`.
    fn skip(&mut self, lines: bool) {
        loop {
            self.cursor
                .take_while(|c| matches!(c, ' ' | '\t') || lines && matches!(c, '\r' | '\n'));
            if self.cursor.peek() != Some('#') {
                return;
            }
            self.cursor.take_while(|c| c != '\n' && c != '\r');
        }
    }

    fn name(&mut self) -> &str {
        self.cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    }

    fn rule(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.name().to_owned();
        if name.is_empty() {
            return Err(start.expected("the name of a rule"));
        }
        self.skip(false);
        if !self.cursor.eat("::=") {
            return Err(self.cursor.expected("::= after the name of a rule"));
        }
        let rule = self.rules.named(&name, start.at());
        let body = self.body()?;
        self.rules.define(rule, start.at(), body)
    }

    /// Reads up to the end of the rule.
    fn body(&mut self) -> Result<ItemId> {
        let mut groups = Groups::new(self.cursor.at());
        self.skip(true);
        while !self.at_end(&groups) {
            self.rules.pay(1)?;
            self.part(&mut groups)?;
            self.skip(groups.depth() > 0);
        }
        groups.finish(&mut self.rules)
    }

    /// Whether the rule ends here: at the end of a line, unless the next one begins with `|`.
    fn at_end(&mut self, groups: &Groups) -> bool {
        if !matches!(self.cursor.peek(), None | Some('\r' | '\n')) {
            return false;
        }
        let end = self.cursor;
        self.skip(true);
        if groups.depth() == 0 && self.cursor.peek() != Some('|') {
            self.cursor = end;
            return true;
        }
        self.cursor.peek().is_none()
    }

    /// Reads one item, bracket or operator.
    fn part(&mut self, groups: &mut Groups) -> Result<()> {
        let here = self.cursor;
        let item = match self.cursor.peek() {
            Some('(') => {
                self.cursor.bump();
                groups.open("(", here.at())?;
                return Ok(());
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
                self.skip(true);
                return groups.alternative(&mut self.rules);
            }
            Some('*' | '+' | '?' | '{') => return self.repetition(groups),
            Some('"') => self.literal()?,
            Some('[') => self.class()?,
            Some('.') => {
                self.cursor.bump();
                self.rules.text(ExprId::ANY_CHAR)
            }
            Some('!') => {
                self.cursor.bump();
                if self.cursor.peek() != Some('<') {
                    return Err(self.cursor.expected("a token such as <|name|> after !"));
                }
                let spec = SpecialSpec::Not(vec![self.token()?]);
                self.rules.special(spec)
            }
            Some('<') => {
                let spec = self.token()?;
                self.rules.special(spec)
            }
            _ => {
                let name = self.name().to_owned();
                if name.is_empty() {
                    return Err(here.expected("a literal, a class, a rule, a bracket or |"));
                }
                let rule = self.rules.named(&name, here.at());
                self.rules.mention(rule)
            }
        };
        groups.push(item);
        Ok(())
    }

    /// `*`, `+`, `?`, `{m}`, `{m,}`, `{m,n}` or `{,n}`.
    fn repetition(&mut self, groups: &mut Groups) -> Result<()> {
        let here = self.cursor;
        let (min, max) = match self.cursor.bump() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            _ => self.bounds()?,
        };
        let Some(last) = groups.last() else {
            return Err(here.expected("something to repeat before this"));
        };
        *last = self.rules.repeat(*last, min, max);
        Ok(())
    }

    /// The bounds after `{`, and the closing bracket.
    fn bounds(&mut self) -> Result<(u64, Option<u64>)> {
        let here = self.cursor.at();
        self.skip(true);
        let min = if self.cursor.peek() == Some(',') { 0 } else { self.cursor.number()? };
        self.skip(true);
        let mut max = Some(min);
        if self.cursor.eat(",") {
            self.skip(true);
            max = match self.cursor.peek() {
                Some('}') => None,
                _ => Some(self.cursor.number()?),
            };
            self.skip(true);
        }
        if !self.cursor.eat("}") {
            return Err(self.cursor.expected("} after the bounds"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(here.bad("the upper bound is below the lower one"));
        }
        Ok((min, max))
    }

    /// One character of a literal or a class, perhaps escaped.
    fn character(&mut self, what: &str) -> Result<char> {
        match self.cursor.peek() {
            None | Some('\r' | '\n') => Err(self.cursor.expected(what)),
            Some('\\') => {
                self.cursor.bump();
                self.cursor.escape(ESCAPED)
            }
            Some(c) => {
                self.cursor.bump();
                Ok(c)
            }
        }
    }

    fn literal(&mut self) -> Result<ItemId> {
        self.cursor.bump();
        let mut text = String::new();
        while self.cursor.peek() != Some('"') {
            text.push(self.character("the closing \" of the literal")?);
        }
        self.cursor.bump();
        Ok(self.rules.literal(&text))
    }

    fn class(&mut self) -> Result<ItemId> {
        self.cursor.bump();
        let negated = self.cursor.eat("^");
        let mut ranges = Vec::new();
        while self.cursor.peek() != Some(']') {
            let here = self.cursor.at();
            let first = self.character("the closing ] of the class")?;
            // A hyphen at the end stands for itself.
            let is_range = self.cursor.peek() == Some('-') && !self.cursor.rest().starts_with("-]");
            let mut last = first;
            if is_range {
                self.cursor.bump();
                last = self.character("the end of the range")?;
            }
            if last < first {
                return Err(here.bad("this range ends before it begins"));
            }
            ranges.push((first, last));
        }
        self.cursor.bump();
        Ok(self.rules.class(&ranges, negated))
    }

    /// A token: `<[123]>` by its number, `<text>` by its text, brackets included.
    fn token(&mut self) -> Result<SpecialSpec> {
        let here = self.cursor;
        self.cursor.bump();
        if self.cursor.eat("[") {
            let id = u32::try_from(self.cursor.number()?);
            let id = id.map_err(|_| here.at().bad("no token has so large a number"))?;
            if !self.cursor.eat("]>") {
                return Err(self.cursor.expected("]> after the number of a token"));
            }
            return Ok(SpecialSpec::Id(id));
        }
        let text = self.cursor.take_while(|c| !matches!(c, '>' | '\r' | '\n'));
        if text.is_empty() || !self.cursor.eat(">") {
            return Err(here.expected("a token such as <|name|> or <[123]>"));
        }
        Ok(SpecialSpec::Named(format!("<{text}>")))
    }
}
