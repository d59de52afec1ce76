//! Terminals of which some values are barred, or one alone is allowed.

use std::sync::Arc;

use super::Unique;
use crate::expr::ExprId;
use crate::grammar::decimal::Decimal;
use crate::grammar::{Node, NodeId, NumberSpec, Terminal};
use crate::limits::Fuel;
use crate::machine::program::Program;
use crate::machine::states::{STEP_FUEL, Start};
use crate::machine::values::{Allow, AllowId, Value, ValueId};

impl Unique {
    /// Where a terminal node can start if only some values are allowed.
    pub fn starts(&mut self, program: &Program, node: NodeId, allow: AllowId) -> Arc<[Start]> {
        if let Some(known) = self.starts.get(&(node, allow)) {
            return Arc::clone(known);
        }
        let Node::Terminal(terminal) = program.node(node) else { return Arc::default() };
        let mut starts = match self.values.allow(allow) {
            Allow::Any => vec![program.start(node, terminal)],
            Allow::Not(barred) => self.starts_but(program, node, terminal, &barred),
            Allow::Only(value) => vec![self.start_of(program, node, terminal, value)],
        };
        starts.retain(|start| start.state.is_live());
        let starts: Arc<[Start]> = starts.into();
        self.starts.insert((node, allow), Arc::clone(&starts));
        starts
    }

    fn starts_but(
        &self,
        program: &Program,
        node: NodeId,
        terminal: &Terminal,
        barred: &[ValueId],
    ) -> Vec<Start> {
        let mut texts: Vec<&str> = Vec::new();
        let mut numbers: Vec<&Decimal> = Vec::new();
        for &value in barred {
            match (self.values.get(value), terminal) {
                (Value::String(text), Terminal::String(_) | Terminal::Format(_))
                | (Value::Word(text), Terminal::Text(_)) => texts.push(text),
                (Value::Number(number), Terminal::Number(_)) => numbers.push(number),
                _ => {}
            }
        }
        if texts.is_empty() && numbers.is_empty() {
            return vec![program.start(node, terminal)];
        }
        if let Terminal::Number(spec) = terminal {
            numbers.sort();
            let parts = split(spec, &numbers).into_iter().map(Terminal::Number);
            return parts.map(|part| start(program, node, &part)).collect();
        }
        let without = |expr: ExprId| {
            program.states().with_exprs(|exprs| {
                let barred = exprs.literals(&texts);
                let free = exprs.not(barred);
                exprs.and(&[expr, free])
            })
        };
        let terminal = match terminal {
            Terminal::Text(expr) => Terminal::Text(without(*expr)),
            Terminal::Format(format) => {
                Terminal::String(without(program.states().with_exprs(|exprs| format.expr(exprs))))
            }
            Terminal::String(expr) => Terminal::String(without(*expr)),
            other => other.clone(),
        };
        vec![start(program, node, &terminal)]
    }

    fn start_of(
        &self,
        program: &Program,
        node: NodeId,
        terminal: &Terminal,
        value: ValueId,
    ) -> Start {
        let literal = |text: &str, expr: ExprId| {
            program.states().with_exprs(|exprs| {
                let inside = exprs.matches(expr, text, &mut Fuel::new(STEP_FUEL));
                if inside.unwrap_or(false) { exprs.literal(text) } else { ExprId::NEVER }
            })
        };
        let terminal = match (self.values.get(value), terminal) {
            (Value::Word(text), Terminal::Text(expr)) => Terminal::Text(literal(text, *expr)),
            (Value::String(text), Terminal::String(expr)) => Terminal::String(literal(text, *expr)),
            (Value::String(text), Terminal::Format(format)) => {
                let expr = program.states().with_exprs(|exprs| format.expr(exprs));
                Terminal::String(literal(text, expr))
            }
            (Value::Number(number), Terminal::Number(spec)) if within(spec, number) => {
                let bound = Some((number.clone(), false));
                Terminal::Number(NumberSpec { min: bound.clone(), max: bound, ..spec.clone() })
            }
            _ => return Start::DEAD,
        };
        start(program, node, &terminal)
    }
}

/// Where a terminal starts that stands for part of a node.
fn start(program: &Program, node: NodeId, terminal: &Terminal) -> Start {
    program.states().start(terminal, program.context(node)).unwrap_or(Start::DEAD)
}

/// Whether a number is within the bounds of `spec`.
fn within(spec: &NumberSpec, value: &Decimal) -> bool {
    let above = |(min, open): &(Decimal, bool)| value > min || (value == min && !open);
    let below = |(max, open): &(Decimal, bool)| value < max || (value == max && !open);
    spec.min.as_ref().is_none_or(above) && spec.max.as_ref().is_none_or(below)
}

/// The intervals of `spec` between numbers (ascending).
fn split(spec: &NumberSpec, numbers: &[&Decimal]) -> Vec<NumberSpec> {
    let mut rest = spec.clone();
    let mut parts = Vec::new();
    for &value in numbers.iter().filter(|value| within(spec, value)) {
        let bound = Some((value.clone(), true));
        parts.push(NumberSpec { max: bound.clone(), ..rest.clone() });
        rest.min = bound;
    }
    parts.push(rest);
    parts
}
