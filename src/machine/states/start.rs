//! Where terminals and pieces of punctuation start.
//!
//! By hand: `{"type": "string", "maxLength": 3}` starts between nothing and its quote, in the state of the
//! vocabulary for *at most three characters*; the `,` of flexible white space is the text `[ \t\n\r]{0,256},[ \t\n\r]{0,256}`.
//! What does not depend on a grammar starts on the universal level.

use super::{Context, Excess, STEP_FUEL, Start, StateId, States};
use crate::error::Result;
use crate::expr::{ExprId, Exprs, View};
use crate::grammar::{NumberSpec, Terminal, Whitespace};
use crate::limits::Fuel;
use crate::machine::number::NumberMachine;
use crate::machine::state::{Content, Spelling};
use crate::regex::Format;

/// Punctuation of JSON, with the white space that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Punct {
    /// `[` and what may stand before the first item or the `]` of an empty array.
    OpenArray,
    /// `]` right after [`Punct::OpenArray`].
    CloseEmptyArray,
    /// `]` after an item.
    CloseArray,
    /// `{` and what may stand before the first key or the `}` of an empty object.
    OpenObject,
    /// `}` right after [`Punct::OpenObject`].
    CloseEmptyObject,
    /// `}` after a value.
    CloseObject,
    /// `,` between items or members.
    Comma,
    /// `:` after a key.
    Colon,
    /// White space around the whole document.
    Margin,
    /// Before the first item or key where the white space is exact.
    Indent,
}

/// Longest run of flexible white space between two tokens of JSON, in characters.
const WHITESPACE_RUN: u64 = 256;

impl States {
    /// Where `terminal` starts.
    ///
    /// # Errors
    /// What its expression or its numbers cost beyond the limits.
    pub fn start(&self, terminal: &Terminal, context: Context) -> Result<Start> {
        let universal = self.base.as_deref().unwrap_or(self);
        let state = match terminal {
            Terminal::Format(format) => universal.start_format(*format)?,
            Terminal::Number(spec) => {
                let plain = NumberSpec { integer: spec.integer, ..NumberSpec::default() };
                let level = if *spec == plain { universal } else { self };
                level.start_number(spec, context.digits)?
            }
            Terminal::Margin => self.punct(context.whitespace, Punct::Margin, 0),
            Terminal::Special(_) => {
                self.intern(&mut self.lock(), Content::Special(context.special))
            }
            Terminal::Text(expr) => {
                let mut cold = self.lock();
                if cold.alphabet.exprs.is_never(*expr, &mut Fuel::new(STEP_FUEL))? {
                    return Ok(Start::DEAD);
                }
                self.intern(&mut cold, Content::Between(Spelling::Text, *expr))
            }
            Terminal::String(expr) => return self.start_string(*expr),
        };
        Ok(Start { state, excess: Excess::NONE })
    }

    /// Where a JSON string whose value is in `expr` starts.
    ///
    /// # Errors
    /// What deciding its emptiness costs beyond the limits.
    pub fn start_string(&self, expr: ExprId) -> Result<Start> {
        let mut cold = self.lock();
        if let View::Repeat { item: ExprId::ANY_CHAR, min, max } = cold.alphabet.exprs.view(expr) {
            let horizon = u64::from(self.horizon);
            let beyond = |bound: u64| u32::try_from(bound.saturating_sub(horizon));
            let excess = Excess {
                min: beyond(min).unwrap_or(u32::MAX),
                max: max.map_or(0, |max| beyond(max).unwrap_or(u32::MAX)),
            };
            let max = max.map(|max| max.min(horizon));
            let universal = self.base.as_deref().unwrap_or(self);
            drop(cold);
            let state = universal.intern_universal(min.min(horizon), max, Content::Quote);
            return Ok(Start { state, excess });
        }
        if cold.alphabet.exprs.is_never(expr, &mut Fuel::new(STEP_FUEL))? {
            return Ok(Start::DEAD);
        }
        let state = self.intern(&mut cold, Content::Quote(expr));
        Ok(Start { state, excess: Excess::NONE })
    }

    fn start_format(&self, format: Format) -> Result<StateId> {
        let mut cold = self.lock();
        let expr = match cold.formats.get(&format) {
            Some(&expr) => expr,
            None => {
                let expr = format.expr(&mut cold.alphabet.exprs);
                cold.formats.insert(format, expr);
                expr
            }
        };
        Ok(self.intern(&mut cold, Content::Quote(expr)))
    }

    fn start_number(&self, spec: &NumberSpec, digits: u32) -> Result<StateId> {
        let mut cold = self.lock();
        let machine = match cold.numbers.get(spec) {
            Some(&machine) => machine,
            None => {
                let machine = NumberMachine::new(spec, digits)?.map(|machine| {
                    cold.alphabet.numbers.push(machine);
                    cold.alphabet.numbers.len() as u32 - 1
                });
                cold.numbers.insert(spec.clone(), machine);
                machine
            }
        };
        Ok(match machine {
            Some(machine) => {
                let state = cold.alphabet.numbers[machine as usize].start();
                self.intern(&mut cold, Content::Number { machine, state })
            }
            None => StateId::DEAD,
        })
    }

    /// Where a piece of punctuation starts, inside containers nested `depth` deep (which matters
    /// only for exact indentation).
    pub fn punct(&self, whitespace: Whitespace, punct: Punct, depth: u8) -> StateId {
        if let Some(base) = &self.base {
            return base.punct(whitespace, punct, depth);
        }
        let depth = if matches!(whitespace, Whitespace::Pretty(_)) { depth } else { 0 };
        let mut cold = self.lock();
        if let Some(&id) = cold.texts.get(&(whitespace, punct, depth)) {
            return id;
        }
        let expr = punct_expr(&mut cold.alphabet.exprs, whitespace, punct, depth);
        let id = self.intern(&mut cold, Content::Between(Spelling::Text, expr));
        cold.texts.insert((whitespace, punct, depth), id);
        id
    }
}

/// The text of a piece of punctuation.
fn punct_expr(exprs: &mut Exprs, whitespace: Whitespace, punct: Punct, depth: u8) -> ExprId {
    let sign = match punct {
        Punct::OpenArray => "[",
        Punct::CloseEmptyArray | Punct::CloseArray => "]",
        Punct::OpenObject => "{",
        Punct::CloseEmptyObject | Punct::CloseObject => "}",
        Punct::Comma => ",",
        Punct::Colon => ":",
        Punct::Margin | Punct::Indent => "",
    };
    if let Whitespace::Flexible = whitespace {
        let blank = exprs.class(&[(' ', ' '), ('\t', '\t'), ('\n', '\n'), ('\r', '\r')]);
        let run = exprs.repeat(blank, 0, Some(WHITESPACE_RUN));
        let sign = exprs.literal(sign);
        return match punct {
            Punct::OpenArray | Punct::OpenObject => exprs.concat(&[sign, run]),
            Punct::CloseEmptyArray | Punct::CloseEmptyObject => sign,
            Punct::CloseArray | Punct::CloseObject => exprs.concat(&[run, sign]),
            Punct::Comma | Punct::Colon => exprs.concat(&[run, sign, run]),
            Punct::Margin => run,
            Punct::Indent => ExprId::EPSILON,
        };
    }
    let line = |levels: usize| match whitespace {
        Whitespace::Pretty(width) => format!("\n{}", " ".repeat(usize::from(width) * levels)),
        _ => String::new(),
    };
    let depth = usize::from(depth);
    let text = match punct {
        Punct::Indent => line(depth),
        Punct::Comma => format!(",{}", line(depth)),
        Punct::CloseArray | Punct::CloseObject => {
            format!("{}{sign}", line(depth.saturating_sub(1)))
        }
        Punct::Colon if matches!(whitespace, Whitespace::Pretty(_)) => ": ".to_owned(),
        _ => sign.to_owned(),
    };
    exprs.literal(&text)
}
