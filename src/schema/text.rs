//! Sets of strings.
//!
//! Everything a schema says about strings is an expression in the end, but most of it is simpler: no
//! restriction, one format, a few literals. Those stay what they are, so that `enum`s merge to one
//! literal set, a format keeps the tables that all grammars share, and the discriminator test
//! "is `"a"` in `{"b"}`?" needs no automaton. Anything else becomes an [`ExprId`].

use super::names::{Name, Names};
use crate::error::Result;
use crate::expr::{ExprId, Exprs};
use crate::limits::Fuel;
use crate::regex::Format;
use std::rc::Rc;

/// A set of strings. Literal lists are sorted, without duplicates, and not empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Text {
    None,
    All,
    Format(Format),
    /// These strings.
    Some(Rc<[Name]>),
    /// All strings but these.
    Not(Rc<[Name]>),
    Expr(ExprId),
}

/// What operations on texts need.
pub(super) struct Tools<'a> {
    pub names: &'a Names,
    pub exprs: &'a mut Exprs,
    pub formats: &'a mut Vec<(Format, ExprId)>,
    pub fuel: &'a mut Fuel,
}

impl Text {
    /// These strings.
    pub fn literals(mut names: Vec<Name>) -> Self {
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { Self::None } else { Self::Some(names.into()) }
    }

    /// All strings but these.
    pub fn without(names: Vec<Name>) -> Self {
        match Self::literals(names) {
            Self::Some(list) => Self::Not(list),
            _ => Self::All,
        }
    }

    /// The strings of an expression.
    pub fn expr(expr: ExprId) -> Self {
        match expr {
            ExprId::NEVER => Self::None,
            ExprId::ANY => Self::All,
            expr => Self::Expr(expr),
        }
    }

    /// The set as an expression.
    pub fn to_expr(&self, tools: &mut Tools) -> ExprId {
        match self {
            Self::None => ExprId::NEVER,
            Self::All => ExprId::ANY,
            Self::Expr(expr) => *expr,
            Self::Some(list) => literals(list, tools),
            Self::Not(list) => {
                let inner = literals(list, tools);
                tools.exprs.not(inner)
            }
            Self::Format(format) => {
                if let Some(known) = tools.formats.iter().find(|known| known.0 == *format) {
                    return known.1;
                }
                let expr = format.expr(tools.exprs);
                tools.formats.push((*format, expr));
                expr
            }
        }
    }

    /// Whether a string is in the set.
    pub fn has(&self, name: Name, tools: &mut Tools) -> Result<bool> {
        match self {
            Self::None => Ok(false),
            Self::All => Ok(true),
            Self::Some(list) => Ok(list.binary_search(&name).is_ok()),
            Self::Not(list) => Ok(list.binary_search(&name).is_err()),
            Self::Format(_) | Self::Expr(_) => {
                let expr = self.to_expr(tools);
                let text = tools.names.text(name);
                tools.exprs.matches(expr, text, tools.fuel)
            }
        }
    }

    /// The strings in both. An expression with nothing in it comes out as `None`.
    pub fn and(&self, other: &Self, tools: &mut Tools) -> Result<Self> {
        Ok(match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, set) | (set, Self::All) => set.clone(),
            (a, b) if a == b => a.clone(),
            (Self::Not(a), Self::Not(b)) => {
                Self::without(a.iter().chain(b.iter()).copied().collect())
            }
            (Self::Some(list), set) | (set, Self::Some(list)) => {
                let mut kept = Vec::with_capacity(list.len());
                for &name in list.iter() {
                    tools.fuel.spend(1)?;
                    if set.has(name, tools)? {
                        kept.push(name);
                    }
                }
                Self::literals(kept)
            }
            (a, b) => {
                let (a, b) = (a.to_expr(tools), b.to_expr(tools));
                let both = tools.exprs.and(&[a, b]);
                if tools.exprs.is_never(both, tools.fuel)? { Self::None } else { Self::expr(both) }
            }
        })
    }

    /// The strings in either.
    pub fn or(&self, other: &Self, tools: &mut Tools) -> Result<Self> {
        Ok(match (self, other) {
            (Self::None, set) | (set, Self::None) => set.clone(),
            (Self::All, _) | (_, Self::All) => Self::All,
            (a, b) if a == b => a.clone(),
            (Self::Some(a), Self::Some(b)) => {
                Self::literals(a.iter().chain(b.iter()).copied().collect())
            }
            (Self::Not(list), set) | (set, Self::Not(list)) => {
                let mut out = Vec::with_capacity(list.len());
                for &name in list.iter() {
                    tools.fuel.spend(1)?;
                    if !set.has(name, tools)? {
                        out.push(name);
                    }
                }
                Self::without(out)
            }
            (a, b) => {
                let (a, b) = (a.to_expr(tools), b.to_expr(tools));
                Self::expr(tools.exprs.or(&[a, b]))
            }
        })
    }

    /// The strings outside. Whether an expression is everything is not looked into: that would be a
    /// search of all its states.
    pub fn not(&self, tools: &mut Tools) -> Result<Self> {
        Ok(match self {
            Self::None => Self::All,
            Self::All => Self::None,
            Self::Some(list) => Self::Not(list.clone()),
            Self::Not(list) => Self::Some(list.clone()),
            Self::Format(_) | Self::Expr(_) => {
                let expr = self.to_expr(tools);
                let outside = tools.exprs.not(expr);
                Self::expr(outside)
            }
        })
    }
}

fn literals(list: &[Name], tools: &mut Tools) -> ExprId {
    let texts: Vec<&str> = list.iter().map(|&name| tools.names.text(name)).collect();
    match texts.as_slice() {
        [one] => tools.exprs.literal(one),
        many => tools.exprs.literals(many),
    }
}
