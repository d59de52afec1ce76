//! Templates: rules with parameters, `list{item, comma}: item (comma item)*`.
//!
//! A use such as `list{NUMBER, ","}` is a rule of its own, made once for each list of arguments.
//! The body of the template is read again for it, with the parameters bound to the arguments: after
//! all other rules, so that a template may stand behind its uses and may use itself.

use std::collections::BTreeMap;

use super::{Parser, is_terminal};
use crate::error::{Kind, Result, quote};
use crate::syntax::groups::Groups;
use crate::syntax::rules::{ItemId, RuleId};
use crate::syntax::scan::{At, Cursor};

/// Most rules that templates make. A template that uses itself with ever larger arguments would
/// make any number.
const USES: usize = 10_000;

/// The bracket around arguments, as the groups call it.
pub(super) const ARGUMENTS: &str = "}";

/// A template as it is written.
#[derive(Debug, Clone)]
struct Template<'t> {
    parameters: Vec<String>,
    /// In front of the body.
    body: Cursor<'t>,
}

/// A use whose arguments are being read.
#[derive(Debug)]
pub(super) struct Call {
    name: String,
    at: At,
    arguments: Vec<ItemId>,
}

/// A use whose rule is still to be made.
#[derive(Debug)]
struct Use {
    name: String,
    at: At,
    arguments: Vec<ItemId>,
    rule: RuleId,
}

/// All templates and their uses.
#[derive(Debug, Default)]
pub(super) struct Templates<'t> {
    known: BTreeMap<String, Template<'t>>,
    /// The uses that are open, the innermost last.
    calls: Vec<Call>,
    rules: BTreeMap<(String, Vec<ItemId>), RuleId>,
    todo: Vec<Use>,
    /// What the parameters stand for in the body that is being read.
    pub bound: BTreeMap<String, ItemId>,
}

impl<'t> Parser<'t, '_> {
    /// The parameters after the name of a template, and its body.
    pub(super) fn template(&mut self, name: &str, at: At) -> Result<()> {
        let mut parameters = Vec::new();
        self.cursor.bump();
        loop {
            self.skip(true);
            let here = self.cursor;
            let parameter = self.name();
            if parameter.is_empty() {
                return Err(here.expected("the name of a parameter"));
            }
            parameters.push(parameter);
            self.skip(true);
            if self.cursor.eat("}") {
                break;
            }
            if !self.cursor.eat(",") {
                return Err(self.cursor.expected(", or } in the list of parameters"));
            }
        }
        self.priority()?;
        self.skip(false);
        if !self.cursor.eat(":") {
            return Err(self.cursor.expected(": after the parameters of a template"));
        }
        let template = Template { parameters, body: self.cursor };
        if self.templates.known.insert(name.to_owned(), template.clone()).is_some() {
            return Err(at.bad(format!("the template {} is defined twice", quote(name))));
        }
        // What is wrong with a body is said once, here, with nothing for the parameters.
        let nothing = vec![ItemId::EMPTY; template.parameters.len()];
        self.read_template(name, &template, &nothing)?;
        Ok(())
    }

    fn read_template(
        &mut self,
        name: &str,
        template: &Template<'t>,
        arguments: &[ItemId],
    ) -> Result<ItemId> {
        let names = template.parameters.iter().cloned();
        self.templates.bound = names.zip(arguments.iter().copied()).collect();
        self.cursor = template.body;
        let body = self.body(is_terminal(name))?;
        self.templates.bound.clear();
        Ok(body)
    }

    /// Begins the arguments after the name of a template.
    pub(super) fn open_call(&mut self, groups: &mut Groups, name: String, at: At) -> Result<()> {
        self.cursor.bump();
        self.templates.calls.push(Call { name, at, arguments: Vec::new() });
        groups.open(ARGUMENTS, at)
    }

    /// Ends an argument, at a comma or at the closing bracket; then the use is an item.
    pub(super) fn end_argument(&mut self, groups: &mut Groups, last: bool) -> Result<()> {
        self.cursor.bump();
        let argument = groups.close(&mut self.rules)?;
        let Some(mut call) = self.templates.calls.pop() else { return Ok(()) };
        call.arguments.extend(argument.map(|argument| argument.item));
        if !last {
            let at = call.at;
            self.templates.calls.push(call);
            return groups.open(ARGUMENTS, at);
        }
        let Call { name, at, arguments } = call;
        let key = (name.clone(), arguments.clone());
        let rule = match self.templates.rules.get(&key) {
            Some(&rule) => rule,
            None => {
                let rule = self.rules.anonymous(&format!("%{name}"), at);
                self.templates.rules.insert(key, rule);
                self.templates.todo.push(Use { name, at, arguments, rule });
                rule
            }
        };
        groups.push(self.rules.mention(rule));
        Ok(())
    }

    /// Makes the rules of all uses.
    pub(super) fn expand_templates(&mut self) -> Result<()> {
        while let Some(Use { name, at, arguments, rule }) = self.templates.todo.pop() {
            if self.templates.rules.len() > USES {
                let kind = Kind::TooComplex { what: "uses of templates", limit: USES as u64 };
                let message =
                    format!("templates are used with more than {USES} lists of arguments");
                return Err(at.error(kind, message).help("does a template use itself with more?"));
            }
            let Some(template) = self.templates.known.get(&name).cloned() else {
                let message = format!("there is no template {}", quote(&name));
                return Err(at.bad(message).help("define it, or correct the name"));
            };
            let (wanted, given) = (template.parameters.len(), arguments.len());
            if wanted != given {
                let message = format!("{} takes {wanted} arguments, not {given}", quote(&name));
                return Err(at.bad(message));
            }
            let body = self.read_template(&name, &template, &arguments)?;
            self.rules.define(rule, at, body)?;
        }
        Ok(())
    }
}
