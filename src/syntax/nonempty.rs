//! Rules lose the empty string, and their mentions become optional.
//!
//! Then nothing but the structure of an item decides whether it may be empty, repetitions repeat
//! what is not empty, and left recursion cannot hide behind what may be empty. By hand, for
//! `A ::= B B` and `B ::= "b"?`:
//!
//! ```text
//! B = "b"                      and a mention of B is B?
//! A = B B? | B                 B? B? without the empty string: it begins with the one or the other
//! ```

use super::check;
use super::rules::{Item, ItemId, Rules};
use crate::error::Result;
use crate::expr::{ExprId, View};

/// Rewrites all rules that the start leads to.
pub(super) fn remove(rules: &mut Rules) -> Result<()> {
    let edges = rules.mentioned()?;
    let nullable = check::least(rules, &edges, |rules, id, known, rule| match rules.item(id) {
        Item::Rule(other) => rule[*other],
        _ => is_nullable(rules, id, |part| known[part.index()]),
    })?;
    let mut strip = Strip { rules: nullable, ..Strip::default() };
    for rule in 0..rules.rules.len() {
        let body = rules.body(rule);
        let new = if strip.rules[rule] {
            strip.nonempty(rules, body)?
        } else {
            strip.full(rules, body)?
        };
        rules.rules[rule].body = Some(new);
    }
    rules.start = strip.full(rules, rules.start)?;
    Ok(())
}

/// Whether an item that mentions no rule itself may be empty, given whether its children may.
fn is_nullable(rules: &Rules, id: ItemId, of: impl Fn(ItemId) -> bool) -> bool {
    match rules.item(id) {
        Item::Text(expr) => rules.grammar.exprs.nullable(*expr),
        Item::Special(_) | Item::Node(_) | Item::Rule(_) | Item::Set(..) => false,
        Item::Seq(parts) => parts.iter().all(|&part| of(part)),
        Item::Alt(parts) => parts.iter().any(|&part| of(part)),
        Item::Repeat(item, min, _) => *min == 0 || of(*item),
        Item::Within(item, ..) => of(*item),
    }
}

/// An item rewritten.
#[derive(Debug, Clone, Copy)]
struct Stripped {
    /// The same strings.
    full: ItemId,
    /// The same strings without the empty one, if that is among them; else `full`.
    nonempty: ItemId,
    nullable: bool,
}

/// Rewrites items; remembers what it did.
#[derive(Debug, Default)]
pub(super) struct Strip {
    /// Which rules lose the empty string.
    rules: Vec<bool>,
    known: Vec<Option<Stripped>>,
}

impl Strip {
    /// The strings of an item, in terms of rules that are never empty.
    fn full(&mut self, rules: &mut Rules, id: ItemId) -> Result<ItemId> {
        Ok(self.of(rules, id)?.full)
    }

    /// The strings of an item without the empty one.
    pub fn nonempty(&mut self, rules: &mut Rules, id: ItemId) -> Result<ItemId> {
        Ok(self.of(rules, id)?.nonempty)
    }

    /// Whether an item may be empty.
    pub fn nullable(&mut self, rules: &mut Rules, id: ItemId) -> Result<bool> {
        Ok(self.of(rules, id)?.nullable)
    }

    fn of(&mut self, rules: &mut Rules, id: ItemId) -> Result<Stripped> {
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let below = rules.below(&[id], |id| self.known(id).is_some())?;
        for id in below {
            let stripped = self.strip(rules, id);
            rules.pay(1)?;
            if self.known.len() <= id.index() {
                self.known.resize(rules.len(), None);
            }
            self.known[id.index()] = Some(stripped);
        }
        Ok(self.child(id))
    }

    /// A child that was rewritten before.
    fn child(&self, id: ItemId) -> Stripped {
        let never = ItemId::NEVER;
        let none = Stripped { full: never, nonempty: never, nullable: false };
        self.known(id).unwrap_or(none)
    }

    fn known(&self, id: ItemId) -> Option<Stripped> {
        self.known.get(id.index()).copied().flatten()
    }

    fn strip(&self, rules: &mut Rules, id: ItemId) -> Stripped {
        let solid = Stripped { full: id, nonempty: id, nullable: false };
        match rules.item(id).clone() {
            Item::Special(_) | Item::Node(_) | Item::Set(..) => solid,
            Item::Rule(rule) if self.rules.get(rule).copied().unwrap_or(false) => {
                Stripped { full: rules.optional(id), nonempty: id, nullable: true }
            }
            Item::Rule(_) => solid,
            Item::Text(expr) if rules.grammar.exprs.nullable(expr) => {
                let nonempty = text_nonempty(rules, expr);
                Stripped { full: id, nonempty, nullable: true }
            }
            Item::Text(_) => solid,
            Item::Seq(parts) => self.sequence(rules, id, &parts),
            Item::Alt(parts) => {
                let children: Vec<Stripped> = parts.iter().map(|&part| self.child(part)).collect();
                let full = self.same_or(rules, id, &parts, Rules::alt);
                let nullable = children.iter().any(|child| child.nullable);
                let nonempty = if nullable {
                    rules.alt(children.iter().map(|child| child.nonempty).collect())
                } else {
                    full
                };
                Stripped { full, nonempty, nullable }
            }
            Item::Within(item, tokens, at) => {
                let Stripped { full, nonempty, nullable } = self.child(item);
                let whole = if full == item { id } else { rules.within(full, tokens, at) };
                let nonempty = match nonempty == full {
                    true => whole,
                    false => rules.within(nonempty, tokens, at),
                };
                Stripped { full: whole, nonempty, nullable }
            }
            Item::Repeat(item, min, max) => {
                let child = self.child(item);
                let least = if child.nullable { 0 } else { min };
                // An empty item adds nothing: any number of items is some number of others.
                let same = child.nonempty == item && least == min;
                let full = if same { id } else { rules.repeat(child.nonempty, least, max) };
                let nonempty = if least == 0 { rules.repeat(child.nonempty, 1, max) } else { full };
                Stripped { full, nonempty, nullable: least == 0 }
            }
        }
    }

    /// `id`, or what `make` makes of its children if they have changed.
    fn same_or(
        &self,
        rules: &mut Rules,
        id: ItemId,
        parts: &[ItemId],
        make: impl Fn(&mut Rules, Vec<ItemId>) -> ItemId,
    ) -> ItemId {
        let full: Vec<ItemId> = parts.iter().map(|&part| self.child(part).full).collect();
        if full == parts { id } else { make(rules, full) }
    }

    /// A sequence. Without the empty string it begins with a part that is not empty, which is the
    /// first, or the first is empty and the rest begins so. The rests are shared.
    fn sequence(&self, rules: &mut Rules, id: ItemId, parts: &[ItemId]) -> Stripped {
        let full = self.same_or(rules, id, parts, Rules::seq);
        let nullable = parts.iter().all(|&part| self.child(part).nullable);
        if !nullable {
            return Stripped { full, nonempty: full, nullable };
        }
        let (mut rest, mut nonempty) = (ItemId::EMPTY, ItemId::NEVER);
        for &part in parts.iter().rev() {
            let child = self.child(part);
            let begins = rules.seq(vec![child.nonempty, rest]);
            nonempty = rules.alt(vec![begins, nonempty]);
            rest = rules.seq(vec![child.full, rest]);
        }
        Stripped { full, nonempty, nullable }
    }
}

/// An expression without the empty string.
fn text_nonempty(rules: &mut Rules, expr: ExprId) -> ItemId {
    let exprs = &mut rules.grammar.exprs;
    if expr == ExprId::EPSILON {
        return ItemId::NEVER;
    }
    let nonempty = match exprs.view(expr) {
        View::Repeat { item, max, .. } if !exprs.nullable(item) => exprs.repeat(item, 1, max),
        _ => {
            let some = exprs.repeat(ExprId::ANY_CHAR, 1, None);
            exprs.and(&[expr, some])
        }
    };
    rules.text(nonempty)
}
