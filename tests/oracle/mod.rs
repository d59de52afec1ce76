//! A slow reference matcher that shares nothing with the engine but the grammar and its expressions.
//!
//! A state is a set of *configurations*; a configuration is a plain list of frames, what comes next on top. A
//! byte moves each configuration by itself; objects, arrays, strings, escapes, UTF-8 and numbers
//! are read here once more, in the most direct way: strings through the derivative by each decoded character,
//! numbers by value. Sets are numbered when they are met and moves are remembered, so that a
//! vocabulary can be tried token by token.
//!
//! As every reading of an ambiguous text is a configuration of its own, their number can double with every
//! byte: [`Oracle::gave_up`] says when there were too many.
//!
//! It answers two questions: is this text the beginning of a document, and is it a document.
//!
//! Not covered: left recursion, special tokens, exact indentation, `uniqueItems`, the limits of depth and of
//! digits, and numbers that need more than four more characters to become valid.

mod containers;
mod number;
mod string;

use constrain::expr::ExprId;
use constrain::grammar::{Grammar, Node, NodeId, Terminal, Whitespace};
use constrain::limits::Fuel;
use std::collections::{BTreeSet, HashMap, HashSet};
use string::{Key, Lex};

/// Blanks that may stand together.
const BLANKS: u16 = 256;

/// Something that is still to come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// A text of this node.
    Node(NodeId),
    /// These bytes.
    Bytes(Vec<u8>),
    /// Up to so many blanks.
    Blanks(u16),
    /// Text, in the middle of a character if bytes are left.
    Text { expr: ExprId, partial: Vec<u8> },
    /// A JSON string after its opening quote.
    Str { expr: ExprId, lex: Lex, key: Key },
    /// A number of which this is written.
    Number { node: NodeId, text: String },
    /// A repetition that has so many items.
    Repeat { node: NodeId, count: u64 },
    /// An array after so many items, of which so many count for each `contains`.
    Array { node: NodeId, count: u64, tally: Vec<u64> },
    /// An object with these keys, so many of each class of undeclared ones, and the index of the
    /// last declared key plus one (or `usize::MAX` after an undeclared one).
    Object { node: NodeId, seen: BTreeSet<String>, tally: Vec<u64>, next: usize },
}

/// What is still to come, the next thing last. Empty: a whole document.
type Config = Vec<Frame>;

/// A state of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State(usize);

/// The matcher of one grammar.
pub struct Oracle {
    grammar: Grammar,
    fuel: Fuel,
    productive: HashMap<NodeId, bool>,
    numbers: HashMap<(NodeId, String), bool>,
    sets: Vec<BTreeSet<Config>>,
    ids: HashMap<BTreeSet<Config>, usize>,
    moves: HashMap<(usize, u8), Option<State>>,
    gave_up: bool,
}

/// Most configurations of a state.
const CONFIGS: usize = 20_000;

impl Oracle {
    pub fn new(grammar: &Grammar) -> Self {
        let grammar = grammar.clone();
        let mut oracle = Self {
            productive: HashMap::new(),
            grammar,
            fuel: Fuel::new(u64::MAX),
            numbers: HashMap::new(),
            sets: Vec::new(),
            ids: HashMap::new(),
            moves: HashMap::new(),
            gave_up: false,
        };
        oracle.find_productive();
        oracle
    }

    /// The state before the first byte.
    pub fn start(&mut self) -> Option<State> {
        let root = self.grammar.root();
        let set = self.close(vec![vec![Frame::Node(root)]]);
        self.number_of(set)
    }

    /// The state after one more byte; `None` if no document goes on like this.
    pub fn step(&mut self, state: State, byte: u8) -> Option<State> {
        if let Some(&known) = self.moves.get(&(state.0, byte)) {
            return known;
        }
        let configs: Vec<Config> = self.sets[state.0].iter().cloned().collect();
        let moved = configs.into_iter().filter_map(|config| self.consume(config, byte)).collect();
        let set = self.close(moved);
        let next = self.number_of(set);
        self.moves.insert((state.0, byte), next);
        next
    }

    /// Whether a state had too many configurations, so that answers since then may be wrong.
    #[allow(dead_code, reason = "most tests have no ambiguous grammars")]
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether a document may end here.
    pub fn is_complete(&self, state: State) -> bool {
        self.sets[state.0].contains(&Vec::new())
    }

    /// The state after a text.
    pub fn read(&mut self, from: State, text: &[u8]) -> Option<State> {
        text.iter().try_fold(from, |state, &byte| self.step(state, byte))
    }

    fn number_of(&mut self, set: BTreeSet<Config>) -> Option<State> {
        if set.is_empty() {
            return None;
        }
        let next = self.sets.len();
        let id = *self.ids.entry(set.clone()).or_insert(next);
        if id == next {
            self.sets.push(set);
        }
        Some(State(id))
    }

    /// Moves a configuration by a byte.
    fn consume(&mut self, mut config: Config, byte: u8) -> Option<Config> {
        match config.pop()? {
            Frame::Bytes(bytes) => {
                if bytes.first() != Some(&byte) {
                    return None;
                }
                config.push(Frame::Bytes(bytes[1..].to_vec()));
            }
            Frame::Blanks(left) => {
                if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || left == 0 {
                    return None;
                }
                config.push(Frame::Blanks(left - 1));
            }
            Frame::Text { expr, partial } => config.push(self.step_text(expr, partial, byte)?),
            Frame::Str { expr, lex, key } => match self.step_string(expr, lex, key, byte)? {
                string::Step::Inside(frame) => config.push(frame),
                string::Step::Closed(key) => containers::note_key(&mut config, key),
            },
            Frame::Number { node, mut text } => {
                text.push(char::from(byte));
                if !self.number_is_viable(node, &text) {
                    return None;
                }
                config.push(Frame::Number { node, text });
            }
            frame => panic!("{frame:?} takes no byte"),
        }
        Some(config)
    }

    /// All configurations that need a byte next, or are complete, behind these.
    fn close(&mut self, mut work: Vec<Config>) -> BTreeSet<Config> {
        let mut closed = BTreeSet::new();
        let mut visited: HashSet<Config> = HashSet::new();
        while let Some(config) = work.pop() {
            if visited.len() > CONFIGS {
                self.gave_up = true;
                return closed;
            }
            if visited.insert(config.clone()) {
                assert!(config.len() < 1000, "left recursion is not for this oracle");
                self.expand(config, &mut work, &mut closed);
            }
        }
        closed
    }

    fn expand(&mut self, config: Config, work: &mut Vec<Config>, closed: &mut BTreeSet<Config>) {
        let mut below = config.clone();
        let Some(top) = below.pop() else {
            closed.insert(config);
            return;
        };
        match top {
            Frame::Node(node) => self.expand_node(node, below, work),
            Frame::Bytes(bytes) if bytes.is_empty() => work.push(below),
            Frame::Bytes(_) | Frame::Str { .. } => drop(closed.insert(config)),
            Frame::Blanks(left) => {
                work.push(below);
                if left > 0 {
                    closed.insert(config);
                }
            }
            Frame::Text { expr, partial } => {
                if partial.is_empty() && self.grammar.exprs.nullable(expr) {
                    work.push(below);
                }
                closed.insert(config);
            }
            Frame::Number { node, text } => {
                if self.number_is_complete(node, &text) {
                    work.push(below);
                }
                closed.insert(config);
            }
            Frame::Repeat { node, count } => self.expand_repeat(node, count, below, work),
            Frame::Array { node, count, tally } => {
                self.expand_array(node, count, &tally, below, work);
            }
            Frame::Object { node, seen, tally, next } => {
                self.expand_object(node, &seen, &tally, next, below, work);
            }
        }
    }

    fn expand_node(&mut self, node: NodeId, mut config: Config, work: &mut Vec<Config>) {
        if !self.is_productive(node) {
            return;
        }
        match self.grammar.node(node).clone() {
            Node::Never => return,
            Node::Empty => {}
            Node::Seq(parts) => config.extend(parts.into_iter().rev().map(Frame::Node)),
            Node::Alt(parts) => {
                for part in parts {
                    work.push(with(&config, [Frame::Node(part)]));
                }
                return;
            }
            // It reads bytes, and knows no tokens.
            Node::Rule(target) | Node::Within { item: target, .. } => {
                config.push(Frame::Node(target));
            }
            Node::Repeat { .. } => config.push(Frame::Repeat { node, count: 0 }),
            Node::Array(spec) => {
                let tally = vec![0; spec.contains.len()];
                config.push(Frame::Array { node, count: 0, tally });
                config.extend([self.blanks(), Frame::Bytes(b"[".to_vec())]);
            }
            Node::Object(spec) => {
                let tally = vec![0; spec.others.len()];
                config.push(Frame::Object { node, seen: BTreeSet::new(), tally, next: 0 });
                config.extend([self.blanks(), Frame::Bytes(b"{".to_vec())]);
            }
            Node::Terminal(terminal) => match terminal {
                Terminal::Text(expr) => config.push(Frame::Text { expr, partial: Vec::new() }),
                Terminal::String(expr) => config.extend(string::opened(expr, None)),
                Terminal::Format(format) => {
                    let expr = format.expr(&mut self.grammar.exprs);
                    config.extend(string::opened(expr, None));
                }
                Terminal::Number(_) => config.push(Frame::Number { node, text: String::new() }),
                Terminal::Margin => config.push(self.blanks()),
                Terminal::Special(_) => panic!("special tokens are not for this oracle"),
            },
        }
        work.push(config);
    }

    fn expand_repeat(&mut self, node: NodeId, count: u64, config: Config, work: &mut Vec<Config>) {
        let Node::Repeat { item, separator, min, max } = *self.grammar.node(node) else {
            panic!("a repetition");
        };
        if count >= min {
            work.push(config.clone());
        }
        if max.is_none_or(|max| count < max) {
            let next = if max.is_none() { (count + 1).min(min.max(1)) } else { count + 1 };
            let mut config =
                with(&config, [Frame::Repeat { node, count: next }, Frame::Node(item)]);
            config.extend(separator.filter(|_| count > 0).map(Frame::Node));
            work.push(config);
        }
    }

    fn blanks(&self) -> Frame {
        match self.grammar.whitespace {
            Whitespace::Flexible => Frame::Blanks(BLANKS),
            Whitespace::Compact => Frame::Blanks(0),
            Whitespace::Pretty(_) => panic!("exact indentation is not for this oracle"),
        }
    }

    fn is_productive(&self, node: NodeId) -> bool {
        self.productive.get(&node).copied().unwrap_or(false)
    }

    /// Least fixpoint: which nodes match anything. Objects and arrays ask whether they can be
    /// completed from the start.
    fn find_productive(&mut self) {
        let mut reachable: Vec<NodeId> = vec![self.grammar.root()];
        let mut known: HashSet<NodeId> = reachable.iter().copied().collect();
        let mut at = 0;
        while let Some(&node) = reachable.get(at) {
            for child in self.grammar.node(node).children() {
                if known.insert(child) {
                    reachable.push(child);
                }
            }
            at += 1;
        }
        loop {
            let mut changed = false;
            for &node in reachable.iter().rev() {
                if !self.is_productive(node) && self.produces(node) {
                    self.productive.insert(node, true);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn produces(&mut self, node: NodeId) -> bool {
        match self.grammar.node(node).clone() {
            Node::Never => false,
            Node::Empty => true,
            Node::Rule(target) | Node::Within { item: target, .. } => self.is_productive(target),
            Node::Seq(parts) => parts.iter().all(|&part| self.is_productive(part)),
            Node::Alt(parts) => parts.iter().any(|&part| self.is_productive(part)),
            Node::Repeat { item, separator, min, max } => {
                let separated = min < 2 || separator.is_none_or(|node| self.is_productive(node));
                max.is_none_or(|max| max >= min)
                    && (min == 0 || self.is_productive(item) && separated)
            }
            Node::Terminal(terminal) => match terminal {
                Terminal::Text(expr) | Terminal::String(expr) => {
                    !self.grammar.exprs.is_never(expr, &mut self.fuel).unwrap()
                }
                Terminal::Number(_) => self.number_is_viable(node, ""),
                Terminal::Format(_) | Terminal::Margin | Terminal::Special(_) => true,
            },
            Node::Array(spec) => self.array_completes(&spec, 0, &vec![0; spec.contains.len()]),
            Node::Object(spec) => {
                self.object_completes(&spec, &BTreeSet::new(), &vec![0; spec.others.len()], 0)
            }
        }
    }
}

/// A configuration with more on top, the next thing last.
fn with(config: &Config, frames: impl IntoIterator<Item = Frame>) -> Config {
    config.iter().cloned().chain(frames).collect()
}
