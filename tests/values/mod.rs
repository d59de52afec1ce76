//! A slow interpreter of grammars as sets of JSON values, node by node: no bytes, no tokens.

use constrain::expr::Exprs;
use constrain::grammar::decimal::Decimal;
use constrain::grammar::{ArraySpec, Grammar, Node, NodeId, NumberSpec, ObjectSpec, Terminal};
use constrain::limits::Fuel;
use serde_json::Value;
use std::collections::HashSet;

/// The language of a grammar, over values.
pub struct Language {
    grammar: Grammar,
    exprs: Exprs,
    fuel: Fuel,
}

impl Language {
    /// The language of a grammar.
    pub fn new(grammar: Grammar) -> Self {
        Self { exprs: grammar.exprs.clone(), grammar, fuel: Fuel::new(u64::MAX) }
    }

    /// Whether a value is in it.
    pub fn has(&mut self, value: &Value) -> bool {
        self.node(self.grammar.root(), value)
    }

    fn node(&mut self, id: NodeId, value: &Value) -> bool {
        match self.grammar.node(id).clone() {
            Node::Never | Node::Empty => false,
            Node::Terminal(terminal) => self.terminal(&terminal, value),
            Node::Seq(parts) => {
                let margin = |id: &NodeId| {
                    matches!(self.grammar.node(*id), Node::Terminal(Terminal::Margin))
                };
                let parts: Vec<NodeId> = parts.into_iter().filter(|id| !margin(id)).collect();
                assert_eq!(parts.len(), 1, "a document is one value");
                self.node(parts[0], value)
            }
            Node::Alt(arms) => arms.iter().any(|&arm| self.node(arm, value)),
            Node::Rule(target) | Node::Within { item: target, .. } => self.node(target, value),
            Node::Array(spec) => value.as_array().is_some_and(|items| self.array(&spec, items)),
            Node::Object(spec) => {
                value.as_object().is_some_and(|members| self.object(&spec, members))
            }
            Node::Repeat { .. } => panic!("no schema makes a repetition"),
        }
    }

    fn terminal(&mut self, terminal: &Terminal, value: &Value) -> bool {
        let (expr, text) = match (terminal, value) {
            (Terminal::Text(expr), Value::Null | Value::Bool(_)) => (*expr, value.to_string()),
            (Terminal::String(expr), Value::String(text)) => (*expr, text.clone()),
            (Terminal::Format(format), Value::String(text)) => {
                (format.expr(&mut self.exprs), text.clone())
            }
            (Terminal::Number(spec), Value::Number(number)) => {
                let text = number.to_string();
                let spelled = (!spec.whole || !text.contains(['.', 'e', 'E']))
                    && (!spec.float || text.contains(['e', 'E']));
                return spelled && in_spec(spec, &Decimal::parse(&text).expect("a number"));
            }
            _ => return false,
        };
        self.exprs.matches(expr, &text, &mut self.fuel).expect("fuel")
    }

    fn array(&mut self, spec: &ArraySpec, items: &[Value]) -> bool {
        let length = items.len() as u64;
        if length < spec.min || spec.max.is_some_and(|max| length > max) {
            return false;
        }
        if spec.unique
            && items.iter().enumerate().any(|(i, a)| items[..i].iter().any(|b| equal(a, b)))
        {
            return false;
        }
        if spec.equal
            && !items.iter().enumerate().any(|(i, a)| items[..i].iter().any(|b| equal(a, b)))
        {
            return false;
        }
        let mut counts = HashSet::from([vec![0u64; spec.contains.len()]]);
        for (i, item) in items.iter().enumerate() {
            let classes = spec.prefix.get(i).unwrap_or(&spec.rest).clone();
            let mut next = HashSet::new();
            for class in classes {
                if self.node(class.node, item) {
                    for known in &counts {
                        let add = |(bit, count): (usize, &u64)| {
                            count + u64::from(class.counts >> bit & 1)
                        };
                        next.insert(known.iter().enumerate().map(add).collect::<Vec<u64>>());
                    }
                }
            }
            counts = next;
        }
        counts.iter().any(|counts| {
            counts
                .iter()
                .zip(&spec.contains)
                .all(|(n, (min, max))| n >= min && max.is_none_or(|max| *n <= max))
        })
    }

    fn object(&mut self, spec: &ObjectSpec, members: &serde_json::Map<String, Value>) -> bool {
        let count = members.len() as u64;
        if count < spec.min || spec.max.is_some_and(|max| count > max) {
            return false;
        }
        let there = |i: u32| members.contains_key(&spec.properties[i as usize].name);
        if spec.properties.iter().any(|p| p.required && !members.contains_key(&p.name))
            || spec.dependent.iter().any(|&(a, b)| there(a) && !there(b))
        {
            return false;
        }
        let mut counts = HashSet::from([vec![0u64; spec.others.len()]]);
        for (key, value) in members {
            if let Some(property) = spec.properties.iter().find(|p| p.name == *key) {
                if !self.node(property.value, value) {
                    return false;
                }
                for other in &spec.others {
                    let same = self.exprs.matches(other.keys, key, &mut self.fuel).expect("fuel");
                    assert!(!same, "{key:?} is declared and also in a class");
                }
                continue;
            }
            let mut next = HashSet::new();
            for (i, other) in spec.others.iter().enumerate() {
                if self.exprs.matches(other.keys, key, &mut self.fuel).expect("fuel")
                    && self.node(other.value, value)
                {
                    for known in &counts {
                        let mut known = known.clone();
                        known[i] += 1;
                        next.insert(known);
                    }
                }
            }
            counts = next;
        }
        counts.iter().any(|counts| {
            counts
                .iter()
                .zip(&spec.others)
                .all(|(n, other)| *n >= other.min && other.max.is_none_or(|max| *n <= max))
        })
    }
}

fn in_spec(spec: &NumberSpec, value: &Decimal) -> bool {
    spec.min.as_ref().is_none_or(|(low, open)| value > low || (!open && value == low))
        && spec.max.as_ref().is_none_or(|(high, open)| value < high || (!open && value == high))
        && (!spec.integer || value.is_integer())
        && (!spec.fractional || !value.is_integer())
        && spec.multiple_of.iter().all(|unit| value.is_multiple_of(unit))
        && !spec.not_multiple_of.iter().any(|unit| value.is_multiple_of(unit))
}

/// Equal as JSON Schema says: numbers by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let read = |n: &serde_json::Number| Decimal::parse(&n.to_string()).expect("a number");
            read(a) == read(b)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (a, b) => a == b,
    }
}
