//! EBNF as in ISO 14977.
//!
//! ```text
//! digit  = "0" | "1" | "2" ;
//! number = digit - "0" , 3 * digit ;
//! list   = "[" , [ number , { "," , number } ] , "]" ;    (* a comment *)
//! ```
//!
//! `,` joins, `[ ]` is optional, `{ }` is repeated, `3 *` counts, `-` excludes and, with nothing
//! behind it, excludes the empty string: `{ digit }-` is at least one. A rule ends with `;` or
//! `.`. A name may consist of several words. The other spellings of the standard are read, too:
//! `/` and `!` for `|`, `(/ /)` for `[ ]`, `(: :)` for `{ }`. `? ... ?` is refused.
//!
//! Grammars in this notation are often written from the bottom up, `digit` first. A rule that
//! mentions no rule names a set of terminal symbols, so the start, unless one is called `root` or
//! `start`, is the first rule that mentions another: `number` in the example without `list`.

use super::groups::{Groups, Mark};
use super::rules::{ItemId, RuleId, Rules};
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
    if let Some(start) = start(&mut parser.rules)? {
        parser.rules.start = parser.rules.mention(start);
    }
    Ok(parser.rules)
}

/// The first rule that mentions a rule, if none is named as a start.
fn start(rules: &mut Rules) -> Result<Option<RuleId>> {
    if rules.find("root").or_else(|| rules.find("start")).is_some() {
        return Ok(None);
    }
    let mut order: Vec<RuleId> = (0..rules.rules.len()).collect();
    order.sort_unstable_by_key(|&rule| (rules.rules[rule].at.line, rules.rules[rule].at.column));
    for rule in order {
        let body = rules.body(rule);
        if !rules.mentioned_in(body)?.is_empty() {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

struct Parser<'t> {
    rules: Rules,
    cursor: Cursor<'t>,
}

/// How brackets are written; the shorter ones last, as they begin alike.
const BRACKETS: [(&str, &str, &str); 5] =
    [("(/", "/)", "["), ("(:", ":)", "{"), ("[", "]", "["), ("{", "}", "{"), ("(", ")", "(")];

impl Parser<'_> {
    /// Steps over white space and comments, which nest.
    fn skip(&mut self) -> Result<()> {
        loop {
            self.cursor.take_while(char::is_whitespace);
            let here = self.cursor;
            if !self.cursor.eat("(*") {
                return Ok(());
            }
            let mut depth = 1;
            while depth > 0 {
                if self.cursor.eat("(*") {
                    depth += 1;
                } else if self.cursor.eat("*)") {
                    depth -= 1;
                } else if self.cursor.bump().is_none() {
                    return Err(here.at().bad("this comment is never closed"));
                }
            }
        }
    }

    /// A name: words, with one blank between. Empty if none begins here.
    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        while self.cursor.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            if !name.is_empty() {
                name.push(' ');
            }
            name += self.cursor.take_while(|c| c.is_alphanumeric() || c == '_');
            self.skip()?;
        }
        Ok(name)
    }

    fn rule(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.name()?;
        if name.is_empty() {
            return Err(start.expected("the name of a rule"));
        }
        if !self.cursor.eat("=") {
            return Err(self.cursor.expected("= after the name of a rule"));
        }
        let rule = self.rules.named(&name, start.at());
        let mut groups = Groups::new(self.cursor.at());
        // Whether an item must come: at the beginning and after a comma.
        let mut comma = true;
        loop {
            self.skip()?;
            self.rules.pay(1)?;
            if groups.depth() == 0 && (self.cursor.eat(";") || self.cursor.eat(".")) {
                break;
            }
            if self.cursor.peek().is_none() {
                return Err(self.cursor.expected("; at the end of the rule"));
            }
            comma = self.part(&mut groups, comma)?;
        }
        let body = groups.finish(&mut self.rules)?;
        self.rules.define(rule, start.at(), body)
    }

    /// Reads one item, bracket or operator. `joined`: an item may come here. Returns whether one
    /// may come next.
    fn part(&mut self, groups: &mut Groups, joined: bool) -> Result<bool> {
        let here = self.cursor;
        if let Some(closed) = self.closing(groups)? {
            groups.push(closed);
            return Ok(false);
        }
        match self.cursor.peek() {
            Some(',') => {
                self.cursor.bump();
                return Ok(true);
            }
            Some('|' | '/' | '!') => {
                self.cursor.bump();
                groups.alternative(&mut self.rules)?;
                return Ok(true);
            }
            Some('-') => {
                self.cursor.bump();
                self.skip()?;
                groups.mark(Mark::Except, here.at());
                let none =
                    matches!(self.cursor.peek(), Some(',' | ';' | '.' | '|' | ')' | ']' | '}'));
                if none {
                    groups.push(ItemId::EMPTY);
                }
                return Ok(!none);
            }
            _ if !joined => return Err(here.expected("a comma, |, ; or a closing bracket")),
            Some('0'..='9') => {
                let count = self.cursor.number()?;
                self.skip()?;
                if !self.cursor.eat("*") {
                    return Err(self.cursor.expected("* after a number"));
                }
                groups.mark(Mark::Times(count), here.at());
                return Ok(true);
            }
            _ => {}
        }
        for (open, _, kind) in BRACKETS {
            if self.cursor.eat(open) {
                groups.open(kind, here.at())?;
                return Ok(true);
            }
        }
        let item = self.primary()?;
        groups.push(item);
        Ok(false)
    }

    /// What is in the group that ends here, if one does.
    fn closing(&mut self, groups: &mut Groups) -> Result<Option<ItemId>> {
        let here = self.cursor;
        let Some((_, _, kind)) = BRACKETS.iter().find(|(_, close, _)| self.cursor.eat(close))
        else {
            return Ok(None);
        };
        if groups.depth() > 0 && groups.kind() != *kind {
            return Err(here.at().bad("this bracket closes another kind of bracket"));
        }
        let Some(closed) = groups.close(&mut self.rules)? else {
            return Err(here.at().bad("this bracket was never opened"));
        };
        Ok(Some(match closed.kind {
            "[" => self.rules.optional(closed.item),
            "{" => self.rules.repeat(closed.item, 0, None),
            _ => closed.item,
        }))
    }

    /// A literal or the name of a rule.
    fn primary(&mut self) -> Result<ItemId> {
        let here = self.cursor;
        match self.cursor.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.cursor.bump();
                match self.cursor.take_until(quote.encode_utf8(&mut [0; 4])) {
                    Some(text) => Ok(self.rules.literal(text)),
                    None => Err(here.at().bad("this literal is never closed")),
                }
            }
            Some('?') => {
                let message = "a special sequence ? ... ? means what its reader likes";
                let error = here.at().unsupported("special sequence", message);
                Err(error.help("write what it stands for, or use another syntax"))
            }
            _ => {
                let name = self.name()?;
                if name.is_empty() {
                    return Err(here.expected("a literal, a name, a bracket or |"));
                }
                let rule = self.rules.named(&name, here.at());
                Ok(self.rules.mention(rule))
            }
        }
    }
}
