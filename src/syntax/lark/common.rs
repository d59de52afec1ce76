//! `%import common`: the terminals that Lark brings along.

use super::Parser;
use crate::error::{Result, quote};
use crate::regex::Flags;
use crate::syntax::scan::At;

/// The terminals of `%import common`.
const COMMON: [(&str, &str); 26] = [
    ("DIGIT", r"[0-9]"),
    ("HEXDIGIT", r"[0-9a-fA-F]"),
    ("INT", r"[0-9]+"),
    ("SIGNED_INT", r"[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", r"[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    (
        "SIGNED_FLOAT",
        r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    ),
    ("NUMBER", r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""(?:[^"\\\n]|\\[^\n])*""#),
    ("_STRING_INNER", r".*"),
    ("LCASE_LETTER", r"[a-z]"),
    ("UCASE_LETTER", r"[A-Z]"),
    ("LETTER", r"[a-zA-Z]"),
    ("WORD", r"[a-zA-Z]+"),
    ("CNAME", r"[_a-zA-Z][_a-zA-Z0-9]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(?:\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("C_COMMENT", r"/\*(?:[^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];

impl Parser<'_, '_> {
    /// `%import common.NAME`, `%import common.NAME -> OTHER`, `%import common (A, B)`.
    pub(super) fn import(&mut self, at: At) -> Result<()> {
        if !self.cursor.eat("common") {
            let message = "only the terminals of `common` can be imported: no file is ever read";
            return Err(at.unsupported("%import", message));
        }
        if self.cursor.eat(".") {
            let name = self.name();
            self.skip(false);
            let mut alias = name.clone();
            if self.cursor.eat("->") {
                self.skip(false);
                alias = self.name();
            }
            return self.common(at, &name, &alias);
        }
        self.skip(false);
        if !self.cursor.eat("(") {
            return Err(self.cursor.expected(". or ( after common"));
        }
        loop {
            self.skip(true);
            let name = self.name();
            self.common(at, &name, &name)?;
            self.skip(true);
            if self.cursor.eat(")") {
                return Ok(());
            }
            if !self.cursor.eat(",") {
                return Err(self.cursor.expected(", or ) in the list of names"));
            }
        }
    }

    fn common(&mut self, at: At, name: &str, alias: &str) -> Result<()> {
        let Some((_, pattern)) = COMMON.iter().find(|(known, _)| *known == name) else {
            return Err(at.bad(format!("`common` has no terminal {}", quote(name))));
        };
        let body = self.regex(pattern, Flags::default(), at)?;
        let rule = self.rules.named(alias, at);
        self.rules.define(rule, at, body)
    }
}
