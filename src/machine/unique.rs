//! Items of an array that must differ from the earlier ones.
//!
//! Front-ends ask for this only where items are scalars. What an array has is a set of values in
//! canonical text: a string as `"` and its decoded value, a number as its exact decimal (`1`,
//! `1.0` and `1e0` are one), the words as they are. A further item starts from terminals without
//! these values: strings by intersection with a complement, numbers by splitting the interval at
//! each value, words by leaving them out. So the exclusion is exact at every byte: after
//! `["ab","a` the closing quote is allowed, after `["ab","ab` it is not.

use super::program::Program;
use super::stack::Seen;
use super::states::Start;
use crate::expr::ExprId;
use crate::grammar::decimal::Decimal;
use crate::grammar::{Node, NodeId, NumberSpec, Terminal};

/// The canonical text of a scalar spelled as JSON.
pub fn canonical(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t', '\n', '\r']);
    match text.as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(text).ok().map(|value| format!("\"{value}")),
        b't' | b'f' | b'n' => Some(text.to_owned()),
        _ => Decimal::parse(text).ok().map(|value| value.to_string()),
    }
}

/// Where an item that is `node` can start if it must not be any of `seen`.
pub fn starts(program: &Program, node: NodeId, seen: &Seen) -> Vec<Start> {
    let values = Values::of(program, seen);
    let (mut starts, mut todo, mut visited) = (Vec::new(), vec![node], Vec::new());
    while let Some(node) = todo.pop() {
        if visited.contains(&node) {
            continue;
        }
        visited.push(node);
        match program.node(node) {
            Node::Rule(target) => todo.push(*target),
            Node::Alt(parts) => todo.extend(parts),
            Node::Terminal(terminal) => values.restrict(program, node, terminal, &mut starts),
            // Front-ends refuse unique items that are containers.
            _ => {}
        }
    }
    starts.retain(|start| start.state.is_live());
    starts
}

/// The values that are taken.
struct Values {
    strings: Vec<String>,
    numbers: Vec<Decimal>,
    words: Vec<String>,
}

impl Values {
    fn of(program: &Program, seen: &Seen) -> Self {
        let mut values = Self { strings: Vec::new(), numbers: Vec::new(), words: Vec::new() };
        let texts: Vec<String> = program.states().with_exprs(|exprs| {
            seen.others.iter().map(|&id| exprs.literal_text(id).to_owned()).collect()
        });
        for text in texts {
            match text.as_bytes().first() {
                Some(b'"') => values.strings.push(text[1..].to_owned()),
                Some(b't' | b'f' | b'n') => values.words.push(text),
                _ => values.numbers.extend(Decimal::parse(&text)),
            }
        }
        values.numbers.sort();
        values
    }

    fn restrict(
        &self,
        program: &Program,
        node: NodeId,
        terminal: &Terminal,
        starts: &mut Vec<Start>,
    ) {
        let states = program.states();
        match terminal {
            Terminal::String(expr) => starts.push(self.string(program, *expr)),
            Terminal::Format(format) => {
                let expr = states.with_exprs(|exprs| format.expr(exprs));
                starts.push(self.string(program, expr));
            }
            Terminal::Number(spec) => {
                for part in self.split(spec) {
                    let start = states.start(&Terminal::Number(part), program.context(node));
                    starts.push(start.unwrap_or(Start::DEAD));
                }
            }
            Terminal::Text(expr) => {
                let taken = states
                    .with_exprs(|exprs| self.words.iter().any(|word| exprs.literal(word) == *expr));
                if !taken {
                    starts.push(program.start(node, terminal));
                }
            }
            Terminal::Margin | Terminal::Special(_) => {}
        }
    }

    fn string(&self, program: &Program, expr: ExprId) -> Start {
        let texts: Vec<&str> = self.strings.iter().map(String::as_str).collect();
        let expr = program.states().with_exprs(|exprs| {
            let taken = exprs.literals(&texts);
            let free = exprs.not(taken);
            exprs.and(&[expr, free])
        });
        program.states().start_string(expr).unwrap_or(Start::DEAD)
    }

    /// The intervals of `spec` between the numbers that are taken.
    fn split(&self, spec: &NumberSpec) -> Vec<NumberSpec> {
        let above = |value: &Decimal| {
            spec.min.as_ref().is_none_or(|(min, open)| value > min || (value == min && !open))
        };
        let below = |value: &Decimal| {
            spec.max.as_ref().is_none_or(|(max, open)| value < max || (value == max && !open))
        };
        let mut rest = spec.clone();
        let mut parts = Vec::new();
        for value in self.numbers.iter().filter(|value| above(value) && below(value)) {
            let bound = Some((value.clone(), true));
            parts.push(NumberSpec { max: bound.clone(), ..rest.clone() });
            rest.min = bound;
        }
        parts.push(rest);
        parts
    }
}
