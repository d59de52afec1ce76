//! A grammar as GBNF, and as a drawing for Graphviz.
//!
//! Names of rules are lost when a text becomes a grammar, so rules are numbered in the order in which
//! the root leads to them. Nodes that are mentioned once are written where they are mentioned; an
//! expression that GBNF has no operators for (an intersection, a complement) is written as the
//! automaton that it is, a rule per state. By hand, for `[a-c]+` without `ab`:
//!
//! ```text
//! root ::= s1
//! s1 ::= [a] s2 | [b-c] s3        s2: after `a`, which alone is in the language
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use hashbrown::HashMap;

use super::{Grammar, Node, NodeId, SpecialSpec, Terminal};
use crate::error::{Error, Kind, Result, quote};
use crate::expr::{ExprId, Exprs, Shape};
use crate::limits::Fuel;

/// Characters of an expression in a drawing.
const LABEL: usize = 40;

impl Grammar {
    /// The grammar in GBNF, the notation of llama.cpp.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for what GBNF cannot say in a text of reasonable size: JSON by a schema;
    /// [`Kind::TooComplex`] if an automaton is too large.
    pub fn to_gbnf(&self) -> Result<String> {
        Printer::new(self).print()
    }

    /// The nodes that the root leads to, as a graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph grammar {\n  node [shape=box];\n");
        for id in self.reached() {
            let label = self.label(id).replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "  n{} [label=\"{label}\"];", id.index());
            for child in self.node(id).children() {
                let _ = writeln!(out, "  n{} -> n{};", id.index(), child.index());
            }
        }
        out.push_str("}\n");
        out
    }

    /// The nodes that the root leads to, callers first.
    fn reached(&self) -> Vec<NodeId> {
        let mut seen = vec![false; self.len()];
        let (mut work, mut out) = (vec![self.root()], Vec::new());
        while let Some(id) = work.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                out.push(id);
                work.extend(self.node(id).children().into_iter().rev());
            }
        }
        out
    }

    /// The label of a node.
    fn label(&self, id: NodeId) -> String {
        match self.node(id) {
            Node::Never => "nothing".to_owned(),
            Node::Empty => "empty".to_owned(),
            Node::Terminal(Terminal::Text(expr)) => self.exprs.display(*expr, LABEL),
            Node::Terminal(Terminal::String(expr)) => {
                format!("string {}", self.exprs.display(*expr, LABEL))
            }
            Node::Terminal(Terminal::Special(spec)) => {
                token(spec).unwrap_or_else(|_| "token".to_owned())
            }
            Node::Terminal(Terminal::Format(format)) => format!("{format:?}"),
            Node::Terminal(Terminal::Number(_)) => "number".to_owned(),
            Node::Terminal(Terminal::Margin) => "white space".to_owned(),
            Node::Seq(_) => "sequence".to_owned(),
            Node::Alt(_) => "choice".to_owned(),
            Node::Rule(_) => "rule".to_owned(),
            Node::Within { tokens, .. } => format!("within {tokens} tokens"),
            Node::Repeat { min, max: Some(max), .. } => format!("{min} to {max}"),
            Node::Repeat { min, max: None, .. } => format!("at least {min}"),
            Node::Array(_) => "array".to_owned(),
            Node::Object(_) => "object".to_owned(),
        }
    }
}

/// A rule that is still to be written.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Node(NodeId),
    State(ExprId),
}

/// What is still to be written of a rule.
#[derive(Debug)]
enum Piece {
    Text(String),
    Node(NodeId),
    Expr(ExprId),
}

struct Printer<'g> {
    grammar: &'g Grammar,
    /// A copy, which learns the transitions of automata.
    exprs: Exprs,
    fuel: Fuel,
    names: HashMap<NodeId, String>,
    states: HashMap<ExprId, String>,
    todo: VecDeque<(String, Rule)>,
    out: String,
}

impl<'g> Printer<'g> {
    fn new(grammar: &'g Grammar) -> Self {
        let mut mentions: BTreeMap<NodeId, usize> = BTreeMap::new();
        let reached = grammar.reached();
        for &id in &reached {
            for child in grammar.node(id).children() {
                *mentions.entry(child).or_default() += 1;
            }
        }
        let mut names = HashMap::new();
        names.insert(grammar.root(), "root".to_owned());
        for id in reached {
            let is_rule = matches!(grammar.node(id), Node::Rule(_));
            let is_leaf = matches!(grammar.node(id), Node::Terminal(_) | Node::Empty | Node::Never);
            if is_rule || !is_leaf && mentions.get(&id).is_some_and(|&count| count > 1) {
                let number = names.len();
                names.entry(id).or_insert_with(|| format!("r{number}"));
            }
        }
        Self {
            grammar,
            exprs: grammar.exprs.clone(),
            fuel: Fuel::new(grammar.limits.fuel),
            names,
            states: HashMap::new(),
            todo: VecDeque::new(),
            out: String::new(),
        }
    }

    fn print(mut self) -> Result<String> {
        let mut rules: Vec<(NodeId, String)> = self.names.drain().collect();
        rules.sort_by_key(|(_, name)| name[1..].parse::<usize>().unwrap_or(0));
        for (id, name) in rules {
            self.names.insert(id, name.clone());
            self.todo.push_back((name, Rule::Node(id)));
        }
        while let Some((name, rule)) = self.todo.pop_front() {
            self.out.push_str(&name);
            self.out.push_str(" ::= ");
            match rule {
                Rule::Node(id) => {
                    let body = self.body(id)?;
                    self.pieces(body)?;
                }
                Rule::State(state) => self.state(state)?,
            }
            self.out.push('\n');
        }
        Ok(self.out)
    }

    /// Writes pieces, the last of the list first.
    fn pieces(&mut self, mut work: Vec<Piece>) -> Result<()> {
        while let Some(piece) = work.pop() {
            self.fuel.spend(1)?;
            match piece {
                Piece::Text(text) => self.out.push_str(&text),
                Piece::Node(id) => match self.names.get(&id) {
                    Some(name) => self.out.push_str(name),
                    None => work.extend(self.body(id)?),
                },
                Piece::Expr(expr) => work.extend(self.expr(expr)),
            }
        }
        Ok(())
    }

    /// What a node is made of, the last first.
    fn body(&self, id: NodeId) -> Result<Vec<Piece>> {
        let refused = |what: &str| {
            let keyword = what.to_owned();
            let message = format!("GBNF has no notation for {what}");
            Err(Error::new(Kind::Unsupported { keyword }, message)
                .help("only grammars without JSON by a schema can be written as GBNF"))
        };
        Ok(match self.grammar.node(id) {
            Node::Never => vec![Piece::Text(NOTHING.to_owned())],
            Node::Empty => vec![literal("")],
            Node::Rule(target) => vec![Piece::Node(*target)],
            Node::Seq(parts) => list(parts.iter().map(|&part| Piece::Node(part)), " "),
            Node::Alt(parts) => list(parts.iter().map(|&part| Piece::Node(part)), " | "),
            Node::Repeat { item, separator: None, min, max } => {
                vec![Piece::Text(suffix(*min, *max)), Piece::Node(*item)]
            }
            Node::Repeat { item, separator: Some(separator), min, max } => {
                // Written from the end: ( item ( separator item ){..} )?
                let more = suffix(min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
                let optional = if *min == 0 { ")?" } else { ")" };
                let text = |text: &str| Piece::Text(text.to_owned());
                if *max == Some(0) {
                    return Ok(vec![literal("")]);
                }
                vec![
                    text(optional),
                    Piece::Text(format!("){more}")),
                    Piece::Node(*item),
                    text(" "),
                    Piece::Node(*separator),
                    text(" ("),
                    Piece::Node(*item),
                    text("("),
                ]
            }
            Node::Terminal(Terminal::Text(expr)) => vec![Piece::Expr(*expr)],
            Node::Terminal(Terminal::Special(spec)) => vec![Piece::Text(token(spec)?)],
            Node::Terminal(_) | Node::Array(_) | Node::Object(_) => {
                return refused("JSON by a schema");
            }
            Node::Within { .. } => return refused("a budget of tokens"),
        })
    }

    /// What an expression is made of, the last first.
    fn expr(&mut self, expr: ExprId) -> Vec<Piece> {
        match self.exprs.shape(expr) {
            Shape::Never | Shape::Automaton => vec![Piece::Text(self.state_name(expr))],
            Shape::Empty => vec![literal("")],
            Shape::Class(_) if expr == ExprId::ANY_CHAR => vec![Piece::Text(".".to_owned())],
            Shape::Class(ranges) => vec![Piece::Text(class(&ranges))],
            Shape::Literals(texts) => list(texts.iter().map(|text| literal(text)), " | "),
            Shape::Seq(first, second) => list([first, second].map(Piece::Expr).into_iter(), " "),
            Shape::Or(parts) => list(parts.into_iter().map(Piece::Expr), " | "),
            Shape::Repeat(item, min, max) => {
                vec![Piece::Text(suffix(min, max)), Piece::Expr(item)]
            }
        }
    }

    fn state_name(&mut self, state: ExprId) -> String {
        if let Some(name) = self.states.get(&state) {
            return name.clone();
        }
        let name = format!("s{}", self.states.len() + 1);
        self.states.insert(state, name.clone());
        self.todo.push_back((name.clone(), Rule::State(state)));
        name
    }

    /// A rule of an automaton: what may come next, each with the state that it leads to.
    fn state(&mut self, state: ExprId) -> Result<()> {
        let mut targets: BTreeMap<ExprId, Vec<(u32, u32)>> = BTreeMap::new();
        for run in self.exprs.transitions(state, &mut self.fuel)? {
            targets.entry(run.target).or_default().push((run.first, run.last));
        }
        let mut ways = Vec::new();
        if self.exprs.nullable(state) {
            ways.push("\"\"".to_owned());
        }
        for (target, ranges) in targets {
            let class = class(&ranges);
            ways.push(match target {
                ExprId::EPSILON => class,
                target => format!("{class} {}", self.state_name(target)),
            });
        }
        if ways.is_empty() {
            ways.push(NOTHING.to_owned());
        }
        self.out.push_str(&ways.join(" | "));
        Ok(())
    }
}

/// No character: what matches nothing. It is left of rules that were resolved into each other.
const NOTHING: &str = r"[^\x00-\U0010FFFF]";

/// Pieces with a separator between, in parentheses if there are several; the last first.
fn list(parts: impl Iterator<Item = Piece>, separator: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.push(Piece::Text(separator.to_owned()));
        }
        out.push(part);
    }
    if out.len() > 1 {
        out.insert(0, Piece::Text("(".to_owned()));
        out.push(Piece::Text(")".to_owned()));
    }
    out.reverse();
    out
}

fn suffix(min: u64, max: Option<u64>) -> String {
    match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

fn token(spec: &SpecialSpec) -> Result<String> {
    match spec {
        SpecialSpec::Named(name) if name.starts_with('<') && name.ends_with('>') => {
            Ok(name.clone())
        }
        SpecialSpec::Id(id) => Ok(format!("<[{id}]>")),
        SpecialSpec::Not(specs) => match &specs[..] {
            [only] => Ok(format!("!{}", token(only)?)),
            _ => Err(unnamed("several tokens that are excluded")),
        },
        SpecialSpec::Named(name) => Err(unnamed(&format!("the token {}", quote(name)))),
    }
}

fn unnamed(what: &str) -> Error {
    let keyword = "special token".to_owned();
    Error::new(Kind::Unsupported { keyword }, format!("GBNF has no notation for {what}"))
}

fn literal(text: &str) -> Piece {
    let mut out = String::from('"');
    for c in text.chars() {
        escape(c, "\"\\", &mut out);
    }
    out.push('"');
    Piece::Text(out)
}

fn class(ranges: &[(u32, u32)]) -> String {
    let mut out = String::from('[');
    for &(first, last) in ranges {
        // Surrogates are no characters: a range that crosses them is cut there.
        for (first, last) in [(first, last.min(0xD7FF)), (first.max(0xE000), last)] {
            let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last)) else {
                continue;
            };
            if first <= last {
                escape(first, "[]\\-", &mut out);
                if first < last {
                    out.push('-');
                    escape(last, "[]\\-", &mut out);
                }
            }
        }
    }
    out.push(']');
    out
}

/// One character of a literal or a class, in which `special` characters have a backslash.
fn escape(c: char, special: &str, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if special.contains(c) => out.extend(['\\', c]),
        // In front of a class it would negate it.
        '^' => out.push_str("\\x5e"),
        c if c.is_control() || !c.is_ascii() && !c.is_alphanumeric() => {
            let _ = write!(out, "\\U{:08X}", u32::from(c));
        }
        c => out.push(c),
    }
}
