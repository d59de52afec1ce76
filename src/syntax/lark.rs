//! The grammars of Lark.
//!
//! ```text
//! start: "[" [INT ("," INT)*] "]"      // a rule: lower case
//! WORD.2: /[a-z]+/i & ~"end"           // a terminal: upper case, here with a priority
//! %import common (INT, WS)
//! %ignore WS
//! ```
//!
//! A statement ends with its line, but not inside brackets nor before a line that begins with `|`.
//! Terminals are sets of strings and nothing more: no longest match, priorities mean nothing, and
//! neither do aliases and the prefixes `?` and `!`, which shape trees. Ignored terminals may stand
//! before and after every terminal that a rule mentions. Not of Lark are budgets of tokens
//! (`thought[max_tokens=50]: ...`), special tokens
//! (`<|name|>`), `%json {...}`, JSON by a schema, as one terminal, and for text with tags in it:
//! `%until x`, any text up to and with the first place where an `x` ends, and `%without x`, any
//! text in which no `x` occurs.

use std::collections::BTreeSet;

use template::Templates;

use super::groups::{Groups, Mark};
use super::rules::{ItemId, RuleId, Rules};
use super::scan::{At, Cursor};
use super::{JsonNode, anchored};
use crate::error::{Kind, Result, quote};
use crate::grammar::{Grammar, SpecialSpec};
use crate::regex::Flags;

mod common;
mod template;

/// The rules of a text, to become nodes of `grammar`.
pub(super) fn parse(text: &str, grammar: Grammar, json: JsonNode<'_>) -> Result<Rules> {
    let mut rules = Rules::new(grammar, text.len());
    let cursor = Cursor::new(text);
    let ignores = text.contains("%ignore").then(|| rules.anonymous("%ignore", cursor.at()));
    let mut parser = Parser {
        rules,
        cursor,
        json,
        ignores,
        ignored: Vec::new(),
        declared: BTreeSet::new(),
        templates: Templates::default(),
    };
    loop {
        parser.skip(true);
        match parser.cursor.peek() {
            None => return parser.finish(),
            Some('%') => parser.directive()?,
            Some(_) => parser.rule()?,
        }
    }
}

struct Parser<'t, 'l> {
    rules: Rules,
    cursor: Cursor<'t>,
    json: JsonNode<'l>,
    /// The rule of what is ignored, if anything is.
    ignores: Option<RuleId>,
    ignored: Vec<ItemId>,
    /// Names of `%declare`.
    declared: BTreeSet<String>,
    templates: Templates<'t>,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

impl Parser<'_, '_> {
    /// Defines what is ignored, and lets it stand in front of the start.
    fn finish(mut self) -> Result<Rules> {
        self.expand_templates()?;
        self.no_declared()?;
        let Some(ignores) = self.ignores else { return Ok(self.rules) };
        let any = self.rules.alt(self.ignored);
        let any = self.rules.repeat(any, 0, None);
        let at = self.rules.rules[ignores].at;
        self.rules.define(ignores, at, any)?;
        if let Some(start) = self.rules.first() {
            let parts = vec![self.rules.mention(ignores), self.rules.mention(start)];
            self.rules.start = self.rules.seq(parts);
        }
        Ok(self.rules)
    }

    /// Steps over blanks and comments, and over ends of lines if `lines`.
    fn skip(&mut self, lines: bool) {
        loop {
            self.cursor
                .take_while(|c| matches!(c, ' ' | '\t') || lines && matches!(c, '\r' | '\n'));
            if !self.cursor.rest().starts_with("//") && self.cursor.peek() != Some('#') {
                return;
            }
            self.cursor.take_while(|c| c != '\n' && c != '\r');
        }
    }

    fn name(&mut self) -> String {
        self.cursor.take_while(is_name).to_owned()
    }

    fn directive(&mut self) -> Result<()> {
        let here = self.cursor;
        self.cursor.bump();
        let word = self.name();
        self.skip(false);
        match word.as_str() {
            "ignore" => {
                let body = self.body(true)?;
                self.ignored.push(body);
                Ok(())
            }
            "import" => self.import(here.at()),
            "declare" => {
                while !matches!(self.cursor.peek(), None | Some('\r' | '\n')) {
                    let here = self.cursor;
                    let name = self.name();
                    if name.is_empty() {
                        return Err(here.expected("the name of a terminal"));
                    }
                    self.declared.insert(name);
                    self.skip(false);
                }
                Ok(())
            }
            "override" | "extend" => self.redefine(word == "extend"),
            _ => {
                let message = format!("the directive {} is not supported", quote(&word));
                Err(here.at().unsupported(&format!("%{word}"), message))
            }
        }
    }

    /// Fails for a declared terminal that a rule mentions: nobody says which texts it has.
    fn no_declared(&mut self) -> Result<()> {
        for name in &self.declared {
            if let Some(rule) = self.rules.find(name)
                && self.rules.rules[rule].body.is_none()
            {
                let message = format!("the terminal {} is declared and has no text", quote(name));
                let error = self.rules.rules[rule].at.unsupported("%declare", message);
                return Err(error.help("define it"));
            }
        }
        Ok(())
    }

    fn rule(&mut self) -> Result<()> {
        let (at, name) = self.head()?;
        if self.cursor.peek() == Some('{') {
            return self.template(&name, at);
        }
        let body = self.rest_of_rule(&name)?;
        let rule = self.rules.named(&name, at);
        self.rules.define(rule, at, body)
    }

    /// `%extend rule: more` adds alternatives, `%override rule: other` replaces what was there.
    fn redefine(&mut self, extend: bool) -> Result<()> {
        let (at, name) = self.head()?;
        let body = self.rest_of_rule(&name)?;
        let known = self.rules.find(&name).filter(|&rule| self.rules.rules[rule].body.is_some());
        let Some(rule) = known else {
            return Err(at.bad(format!("the rule {} is not defined before", quote(&name))));
        };
        let old = self.rules.body(rule);
        let new = if extend { self.rules.alt(vec![old, body]) } else { body };
        self.rules.rules[rule].body = Some(new);
        Ok(())
    }

    /// The name with which a rule begins, and its place.
    fn head(&mut self) -> Result<(At, String)> {
        while self.cursor.eat("?") || self.cursor.eat("!") {}
        let start = self.cursor;
        let name = self.name();
        if name.is_empty() {
            return Err(start.expected("a rule, a terminal or a directive"));
        }
        Ok((start.at(), name))
    }

    /// A priority, which means nothing here: `.2`, `.-1`.
    fn priority(&mut self) -> Result<()> {
        if self.cursor.eat(".") {
            self.cursor.eat("-");
            self.cursor.number()?;
        }
        Ok(())
    }

    fn rest_of_rule(&mut self, name: &str) -> Result<ItemId> {
        self.priority()?;
        let budget = self.attributes()?;
        self.skip(false);
        if !self.cursor.eat(":") {
            return Err(self.cursor.expected(": after the name of a rule"));
        }
        let body = self.body(is_terminal(name))?;
        Ok(budget.map_or(body, |(tokens, at)| self.rules.within(body, tokens, at)))
    }

    /// The attributes of a rule, of which there is one: `[max_tokens=20]`.
    fn attributes(&mut self) -> Result<Option<(u32, At)>> {
        if !self.cursor.eat("[") {
            return Ok(None);
        }
        self.skip(false);
        let here = self.cursor;
        let name = self.name();
        if name != "max_tokens" {
            let message = format!("the attribute {} is not supported", quote(&name));
            return Err(here.at().unsupported(&name, message).help("there is max_tokens"));
        }
        self.skip(false);
        if !self.cursor.eat("=") {
            return Err(self.cursor.expected("= and a number of tokens"));
        }
        self.skip(false);
        let tokens = u32::try_from(self.cursor.number()?).unwrap_or(u32::MAX);
        self.skip(false);
        if !self.cursor.eat("]") {
            return Err(self.cursor.expected("] after the attribute"));
        }
        Ok(Some((tokens, here.at())))
    }

    /// Reads up to the end of the statement.
    fn body(&mut self, terminal: bool) -> Result<ItemId> {
        let mut groups = Groups::new(self.cursor.at());
        loop {
            self.skip(groups.depth() > 0);
            if matches!(self.cursor.peek(), None | Some('\r' | '\n')) {
                let end = self.cursor;
                self.skip(true);
                if self.cursor.peek() != Some('|') {
                    self.cursor = end;
                    return groups.finish(&mut self.rules);
                }
            }
            self.rules.pay(1)?;
            self.part(&mut groups, terminal)?;
        }
    }

    /// Reads one item, bracket or operator.
    fn part(&mut self, groups: &mut Groups, terminal: bool) -> Result<()> {
        let here = self.cursor;
        match self.cursor.peek() {
            Some('(') => {
                self.cursor.bump();
                return groups.open(")", here.at());
            }
            Some('[') => {
                self.cursor.bump();
                return groups.open("]", here.at());
            }
            Some(c @ (')' | ']')) => {
                if groups.kind() != c.encode_utf8(&mut [0; 4]) {
                    return Err(here.at().bad("this bracket closes nothing that is open"));
                }
                self.cursor.bump();
                if let Some(closed) = groups.close(&mut self.rules)? {
                    let optional = closed.kind == "]";
                    let item = closed.item;
                    groups.push(if optional { self.rules.optional(item) } else { item });
                }
                return Ok(());
            }
            Some(c @ (',' | '}')) if groups.kind() == template::ARGUMENTS => {
                return self.end_argument(groups, c == '}');
            }
            Some('|') => {
                self.cursor.bump();
                return groups.alternative(&mut self.rules);
            }
            Some('&') => {
                self.cursor.bump();
                return groups.conjunct(&mut self.rules);
            }
            Some('*' | '+' | '?') => return self.repetition(groups),
            Some('~') => {
                if groups.last().is_some() && !is_negation(here) {
                    return self.repetition(groups);
                }
                self.cursor.bump();
                groups.mark(Mark::Not, here.at());
                return Ok(());
            }
            Some('%') if self.cursor.eat("%until") => {
                self.skip(false);
                groups.mark(Mark::Until, here.at());
                return Ok(());
            }
            Some('%') if self.cursor.eat("%without") => {
                self.skip(false);
                groups.mark(Mark::Without, here.at());
                return Ok(());
            }
            Some('-') if self.cursor.eat("->") => {
                self.skip(false);
                self.name();
                return Ok(());
            }
            _ => {}
        }
        let mut after = self.cursor;
        let name = after.take_while(is_name);
        if !name.is_empty() && after.peek() == Some('{') {
            self.cursor = after;
            return self.open_call(groups, name.to_owned(), here.at());
        }
        let item = self.primary(terminal)?;
        groups.push(match self.ignores {
            Some(ignores) if !terminal && item.1 => {
                let ignored = self.rules.mention(ignores);
                self.rules.seq(vec![item.0, ignored])
            }
            _ => item.0,
        });
        Ok(())
    }

    fn repetition(&mut self, groups: &mut Groups) -> Result<()> {
        let here = self.cursor;
        let (min, max) = match self.cursor.bump() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            _ => {
                self.skip(false);
                let min = self.cursor.number()?;
                let max = if self.cursor.eat("..") { self.cursor.number()? } else { min };
                (min, Some(max))
            }
        };
        if max.is_some_and(|max| max < min) {
            return Err(here.at().bad("the upper bound is below the lower one"));
        }
        let Some(last) = groups.last() else {
            return Err(here.expected("something to repeat before this"));
        };
        *last = self.rules.repeat(*last, min, max);
        Ok(())
    }

    /// A literal, a regex, a range, a token or a name, and whether it is a terminal.
    fn primary(&mut self, terminal: bool) -> Result<(ItemId, bool)> {
        let here = self.cursor;
        match self.cursor.peek() {
            Some('"') => Ok((self.literal()?, true)),
            Some('/') => Ok((self.slashed()?, true)),
            Some('<') => {
                let text = self.cursor.take_while(|c| !matches!(c, '>' | '\r' | '\n')).to_owned();
                if !self.cursor.eat(">") {
                    return Err(here.expected("a token such as <|name|> or <[123]>"));
                }
                let id = text.strip_prefix("<[").and_then(|id| id.strip_suffix(']'));
                let spec = match id.map(str::parse) {
                    Some(Ok(id)) => SpecialSpec::Id(id),
                    Some(Err(_)) => return Err(here.expected("the number of a token")),
                    None => SpecialSpec::Named(format!("{text}>")),
                };
                Ok((self.rules.special(spec), true))
            }
            Some('%') if self.cursor.eat("%json") => Ok((self.json(here.at())?, true)),
            _ => {
                let name = self.name();
                if name.is_empty() {
                    return Err(here.expected("a literal, a regex, a name, a bracket or |"));
                }
                if let Some(&bound) = self.templates.bound.get(&name) {
                    return Ok((bound, false));
                }
                if terminal && !is_terminal(&name) {
                    let message = format!("a terminal cannot mention the rule {}", quote(&name));
                    return Err(here.at().bad(message));
                }
                let rule = self.rules.named(&name, here.at());
                Ok((self.rules.mention(rule), is_terminal(&name)))
            }
        }
    }

    /// The schema after `%json`, from its first bracket to its last.
    fn json(&mut self, at: At) -> Result<ItemId> {
        self.skip(false);
        let rest = self.cursor.rest();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        let schema = match values.next() {
            Some(Ok(_)) => rest.get(..values.byte_offset()).unwrap_or_default(),
            _ => return Err(self.cursor.expected("a JSON Schema after %json")),
        };
        self.rules.pay(schema.len())?;
        self.cursor.skip(schema.len());
        self.rules.json(schema, self.json).map_err(|error| at.wrap("in this schema", &error))
    }

    /// The text between double quotes.
    fn quoted(&mut self) -> Result<String> {
        if !self.cursor.eat("\"") {
            return Err(self.cursor.expected("a literal"));
        }
        let mut text = String::new();
        loop {
            let here = self.cursor;
            match self.cursor.bump() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.cursor.escape("\\\"'/")?),
                None | Some('\r' | '\n') => {
                    return Err(here.expected("the closing \" of the literal"));
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// `"text"`, `"text"i` or `"a".."z"`.
    fn literal(&mut self) -> Result<ItemId> {
        let at = self.cursor.at();
        let text = self.quoted()?;
        if self.cursor.eat("..") {
            let last = self.quoted()?;
            let only = |text: &str| text.chars().next().filter(|c| c.len_utf8() == text.len());
            return match (only(&text), only(&last)) {
                (Some(first), Some(last)) if first <= last => {
                    Ok(self.rules.class(&[(first, last)], false))
                }
                _ => Err(at.bad("a range goes from one character to a later one")),
            };
        }
        if self.cursor.eat("i") {
            let flags = Flags { ignore_case: true, ..Flags::default() };
            return self.regex(&escaped(&text), flags, at);
        }
        Ok(self.rules.literal(&text))
    }

    /// `/regex/flags`.
    fn slashed(&mut self) -> Result<ItemId> {
        let start = self.cursor;
        self.cursor.bump();
        let mut pattern = String::new();
        loop {
            match self.cursor.bump() {
                Some('/') => break,
                Some('\\') => match self.cursor.bump() {
                    Some('/') => pattern.push('/'),
                    Some(c) => pattern.extend(['\\', c]),
                    None => return Err(start.at().bad("this regex is never closed")),
                },
                None | Some('\r' | '\n') => {
                    return Err(start.at().bad("this regex is never closed"));
                }
                Some(c) => pattern.push(c),
            }
        }
        let mut flags = Flags::default();
        for letter in self.cursor.take_while(|c| "imslux".contains(c)).chars() {
            flags.ignore_case |= letter == 'i';
            flags.multi_line |= letter == 'm';
            flags.dot_all |= letter == 's';
            flags.extended |= letter == 'x';
        }
        self.regex(&pattern, flags, start.at())
    }

    fn regex(&mut self, pattern: &str, flags: Flags, at: At) -> Result<ItemId> {
        let Rules { grammar, fuel, .. } = &mut self.rules;
        let expr = anchored(&mut grammar.exprs, pattern, flags, &grammar.limits, fuel)
            .map_err(|error| at.wrap("in this regex", &error))?;
        if grammar.exprs.is_never(expr, fuel)? {
            return Err(at.error(Kind::Unsatisfiable, "no text matches this regex"));
        }
        Ok(self.rules.text(expr))
    }
}

/// Whether `~` here is no count of what stands before.
fn is_negation(mut cursor: Cursor<'_>) -> bool {
    cursor.bump();
    cursor.take_while(|c| c == ' ');
    !cursor.peek().is_some_and(|c| c.is_ascii_digit())
}

/// A regex of a text.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
