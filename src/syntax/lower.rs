//! Rules become the nodes of a grammar. Neighbours that are texts become one terminal.

use hashbrown::HashMap;

use super::fold;
use super::rules::{Item, ItemId, RuleId, Rules};
use crate::error::{Error, Kind, Place, Result};
use crate::expr::ExprId;
use crate::grammar::{Grammar, Node, NodeId, Terminal};

/// The grammar of rules that are free of left recursion.
pub(super) fn lower(mut rules: Rules) -> Result<Grammar> {
    let mut lower = Lower::default();
    lower.items.resize(rules.len(), None);
    lower.rules.resize(rules.rules.len(), None);
    let start = rules.start;
    let root = lower.node(&mut rules, start)?;
    while let Some(rule) = lower.todo.pop() {
        let body = rules.body(rule);
        let node = lower.node(&mut rules, body)?;
        let reserved = lower.reserved(&mut rules.grammar, rule);
        rules.grammar.define(reserved, node);
    }
    rules.grammar.set_root(root);
    if rules.grammar.len() > rules.grammar.limits.nodes {
        let limit = rules.grammar.limits.nodes;
        let kind = Kind::TooComplex { what: "nodes", limit: limit as u64 };
        let message = format!("the grammar needs more than {limit} nodes");
        return Err(Error::new(kind, message).help("simplify it, or raise Limits::nodes"));
    }
    Ok(rules.grammar)
}

/// What was written out so far.
#[derive(Debug, Default)]
struct Lower {
    items: Vec<Option<NodeId>>,
    texts: HashMap<ExprId, NodeId>,
    rules: Vec<Option<NodeId>>,
    /// Rules that were mentioned and are still to be written.
    todo: Vec<RuleId>,
}

impl Lower {
    /// The node of an item.
    fn node(&mut self, rules: &mut Rules, root: ItemId) -> Result<NodeId> {
        let below = rules.below(&[root], |id| self.items[id.index()].is_some())?;
        for id in below {
            // Texts may be joined with their neighbours: they are written when they are not.
            if !matches!(rules.item(id), Item::Text(_)) {
                let node = self.write(rules, id)?;
                self.items[id.index()] = Some(node);
            }
        }
        Ok(self.written(rules, root))
    }

    /// The node of an item that was written, or is a text.
    fn written(&mut self, rules: &mut Rules, id: ItemId) -> NodeId {
        match *rules.item(id) {
            Item::Text(expr) => self.text(&mut rules.grammar, expr),
            _ => self.items[id.index()].unwrap_or(NodeId(0)),
        }
    }

    fn reserved(&mut self, grammar: &mut Grammar, rule: RuleId) -> NodeId {
        *self.rules[rule].get_or_insert_with(|| {
            self.todo.push(rule);
            grammar.reserve()
        })
    }

    fn text(&mut self, grammar: &mut Grammar, expr: ExprId) -> NodeId {
        let text = match expr {
            ExprId::EPSILON => Node::Empty,
            ExprId::NEVER => Node::Never,
            expr => Node::Terminal(Terminal::Text(expr)),
        };
        *self.texts.entry(expr).or_insert_with(|| grammar.add(text))
    }

    /// Writes an item whose children are written.
    fn write(&mut self, rules: &mut Rules, id: ItemId) -> Result<NodeId> {
        rules.pay(1)?;
        let item = rules.item(id).clone();
        Ok(match item {
            Item::Text(expr) => self.text(&mut rules.grammar, expr),
            Item::Special(spec) => rules.grammar.add(Node::Terminal(Terminal::Special(spec))),
            Item::Node(node) => node,
            Item::Rule(rule) => self.reserved(&mut rules.grammar, rule),
            Item::Seq(parts) => {
                let parts = self.sequence(rules, &parts)?;
                match *parts {
                    [] => rules.grammar.add(Node::Empty),
                    [only] => only,
                    _ => rules.grammar.add(Node::Seq(parts)),
                }
            }
            Item::Alt(parts) => {
                let parts = self.alternatives(rules, &parts)?;
                match *parts {
                    [] => rules.grammar.add(Node::Never),
                    [only] => only,
                    _ => rules.grammar.add(Node::Alt(parts)),
                }
            }
            Item::Repeat(item, 0, Some(1)) => {
                // Unlike a repetition, alternatives leave nothing on the stack.
                let item = self.written(rules, item);
                let empty = self.text(&mut rules.grammar, ExprId::EPSILON);
                rules.grammar.add(Node::Alt(vec![item, empty]))
            }
            Item::Repeat(item, min, max) => {
                let item = self.written(rules, item);
                rules.grammar.add(Node::Repeat { item, separator: None, min, max })
            }
            Item::Within(item, tokens, at) => {
                let item = self.written(rules, item);
                let node = rules.grammar.add(Node::Within { item, tokens });
                let place = Place::Text { line: at.line, column: at.column };
                rules.grammar.budgets.push((node, place));
                node
            }
            // Operations on sets were folded, or refused.
            Item::Set(..) => rules.grammar.add(Node::Never),
        })
    }

    /// The nodes of a sequence, with runs of texts joined.
    fn sequence(&mut self, rules: &mut Rules, parts: &[ItemId]) -> Result<Vec<NodeId>> {
        let mut nodes = Vec::new();
        let mut run: Option<(ExprId, u64)> = None;
        for &part in parts {
            let Some(expr) = as_text(rules, part) else {
                nodes.extend(run.take().map(|(expr, _)| self.text(&mut rules.grammar, expr)));
                nodes.push(self.written(rules, part));
                continue;
            };
            run = match run {
                None => Some((expr, 1)),
                Some(before) => match fold::concat(rules, &[before, (expr, 1)])? {
                    Some(joined) if joined.1 <= RUN => Some(joined),
                    _ => {
                        nodes.push(self.text(&mut rules.grammar, before.0));
                        Some((expr, 1))
                    }
                },
            };
        }
        nodes.extend(run.map(|(expr, _)| self.text(&mut rules.grammar, expr)));
        Ok(nodes)
    }

    /// The nodes of alternatives, with all texts as one.
    fn alternatives(&mut self, rules: &mut Rules, parts: &[ItemId]) -> Result<Vec<NodeId>> {
        let texts: Vec<(ExprId, u64)> =
            parts.iter().filter_map(|&part| Some((as_text(rules, part)?, 1))).collect();
        let joined = if texts.is_empty() { None } else { fold::any_of(rules, &texts)? };
        let mut nodes = Vec::new();
        for &part in parts {
            if joined.is_none() || as_text(rules, part).is_none() {
                nodes.push(self.written(rules, part));
            }
        }
        nodes.extend(joined.map(|(expr, _)| self.text(&mut rules.grammar, expr)));
        Ok(nodes)
    }
}

/// Most neighbours that are joined: each joining walks what was joined before.
const RUN: u64 = 64;

/// The expression of an item that is a text; of a rule, too, if its body is one.
fn as_text(rules: &Rules, id: ItemId) -> Option<ExprId> {
    match *rules.item(id) {
        Item::Text(expr) => Some(expr),
        Item::Rule(rule) => match *rules.item(rules.body(rule)) {
            Item::Text(expr) => Some(expr),
            _ => None,
        },
        _ => None,
    }
}
