//! The cost of stacks and threads, memoised with the configurations they stand in.
//!
//! A stack is what comes after a terminal: the text that completes its top frame, then that of what
//! is below. Of a stack that is several, the cheapest few texts are kept. The cost of a thread is the
//! number of tokens of the rest of its terminal on top of its stack; where a declared key is being
//! spelled, what follows depends on which key it becomes, so the keys that it can become are tried
//! one by one.
//!
//! By hand: inside `{"a":[1` of `{"a": [integers], "b": null}`, `b` required, the thread *digits* has
//! the stack array (`]`) over object (`,"b":null}`). The number is complete, so the thread costs the
//! tokens of `],"b":null}`. The thread *comma* of the array costs those of `,0],"b":null}`.
//!
//! Cost: a look-up; at the first visit of a frame the plan of it ([`super::owed`]) and one pass over
//! its text.

use super::nodes::{Nodes, Price};
use super::owed::{BARRED, Owed, Phase};
use super::texts::{self, Piece, Pieces};
use super::{Costs, NEVER, lock};
use crate::error::Result;
use crate::expr::LiteralId;
use crate::grammar::{Node, NodeId};
use crate::limits::Fuel;
use crate::machine::shortest::Rest;
use crate::machine::stack::{Frame, SeenId, StackId, Stacks, Step};
use crate::machine::states::{Excess, Punct, StateId};
use crate::machine::values::AllowId;
use crate::machine::{Program, Thread};
use crate::mask::{Lead, Memo};
use std::sync::Arc;

/// Keys that a state can become, of which the best is searched; more are not looked at.
const KEYS: usize = 32;

/// Fuel for the plan of one frame.
const FUEL: u64 = 5_000_000;

/// Most ways to go on that are kept of a stack that is several.
const WAYS: usize = 4;

/// Prices over the stacks of one set of configurations.
pub(super) struct Pricer<'a> {
    pub costs: &'a Costs,
    pub program: &'a Program,
    pub nodes: &'a Nodes,
    pub memo: &'a mut Memo,
    pub stacks: &'a mut Stacks,
}

impl Pricer<'_> {
    /// The cost of a thread without the end token.
    pub fn thread(&mut self, thread: Thread) -> u64 {
        if thread == Thread::END {
            return 0;
        }
        if let Some(&cost) = self.memo.threads.get(&thread) {
            return cost;
        }
        let Thread { state, excess, stack } = thread;
        let mut least = NEVER;
        // A stack with nothing but declared keys on top does not say what follows a key.
        if !self.leads(stack).is_empty() {
            let piece = self.costs.terminal_pieces(self.program, state, excess);
            least = self.behind(&piece, stack);
        }
        for (frame, below) in self.tops(stack) {
            let cost = match frame.step {
                Step::Key { node, seen } => self.key(state, (node, seen, frame.depth), below),
                // It says nothing of its own, and what is below may ask for the key.
                Step::Doubt => self.thread(Thread { stack: below, ..thread }),
                _ => continue,
            };
            least = least.min(cost);
        }
        self.memo.threads.insert(thread, least);
        least
    }

    fn tops(&self, stack: StackId) -> Vec<(Frame, StackId)> {
        self.stacks.tops(stack).collect()
    }

    /// The cost of a piece on top of a stack.
    fn behind(&mut self, piece: &Piece, stack: StackId) -> u64 {
        let vocabulary = &self.costs.vocabulary;
        let leads = self.leads(stack);
        let cost = |lead: &Lead| match piece {
            Piece::Text(text) => texts::tokens(vocabulary, text, lead),
            Piece::Tokens(tokens) => on(lead, *tokens),
        };
        leads.iter().map(cost).min().unwrap_or(NEVER)
    }

    /// The cost of so many tokens on top of a stack.
    fn below(&mut self, tokens: u64, stack: StackId) -> u64 {
        self.leads(stack).iter().map(|lead| on(lead, tokens)).min().unwrap_or(NEVER)
    }

    /// How the completions of a stack begin, the cheapest first. There are none where a declared
    /// key is on top, since the stack does not say which.
    fn leads(&mut self, stack: StackId) -> Arc<[Lead]> {
        // Stacks can be deep: a list of work instead of recursion.
        let mut todo = vec![stack];
        while let Some(&top) = todo.last() {
            if self.memo.stacks.contains_key(&top) {
                todo.pop();
                continue;
            }
            let before = todo.len();
            let tops = self.tops(top);
            let below = tops.iter().map(|&(_, below)| below);
            todo.extend(below.filter(|below| !self.memo.stacks.contains_key(below)));
            if todo.len() > before {
                continue;
            }
            let mut leads = Vec::new();
            if self.stacks.has_bottom(top) {
                leads.push(Lead::end());
            }
            for (frame, below) in tops {
                if matches!(frame.step, Step::Key { .. }) {
                    continue;
                }
                let known = self.memo.stacks.get(&below).cloned().unwrap_or_default();
                if let Step::Within { room } = frame.step {
                    leads.extend(known.iter().filter_map(|lead| texts::bounded(room, lead)));
                    continue;
                }
                let pieces = self.pieces(frame).unwrap_or_else(|| {
                    // Too long to be spelled.
                    vec![Piece::Tokens(self.frame(frame))]
                });
                leads.extend(known.iter().map(|lead| self.before(&pieces, lead, false)));
            }
            leads.retain(|lead| lead.tokens() != NEVER);
            keep_best(&mut leads);
            self.memo.stacks.insert(top, leads.into());
            todo.pop();
        }
        self.memo.stacks.get(&stack).cloned().unwrap_or_default()
    }

    /// `pieces` before what begins with `lead`; with `keep`, others near them will be asked for.
    fn before(&self, pieces: &[Piece], lead: &Lead, keep: bool) -> Lead {
        let vocabulary = &self.costs.vocabulary;
        let mut near = lock(&self.costs.near);
        let spell = &mut |text: &[u8], lead: &Lead| near.spell(vocabulary, text, lead, keep);
        texts::before(vocabulary, pieces, lead, spell)
    }

    /// Spells the rest of an object for those that are to come, which have one member less, if the last one
    /// was not near any text that is known.
    fn keep_near(&mut self, frame: Frame, below: StackId) {
        if !lock(&self.costs.near).was_far() {
            return;
        }
        let (Some(pieces), leads) = (self.pieces(frame), self.leads(below)) else { return };
        for lead in leads.iter() {
            self.before(&pieces, lead, true);
        }
        lock(&self.costs.near).was_far();
    }

    /// What completes a frame once what is on top of it is complete.
    fn pieces(&mut self, frame: Frame) -> Pieces {
        let depth = frame.depth;
        match frame.step {
            Step::Doubt | Step::Within { .. } => Some(Vec::new()),
            Step::Enter(node) => self.texts(&[node], depth),
            Step::EnterAs { node, allow } => {
                let mut pieces = self.texts(&[node], depth);
                if allow != AllowId::ANY {
                    texts::append(&mut pieces, &[Piece::Tokens(BARRED)]);
                }
                pieces
            }
            Step::Seq { node, next } => match self.program.node(node) {
                Node::Seq(parts) => self.texts(parts.get(next as usize..)?, depth),
                _ => None,
            },
            Step::Repeat { node, count } => self.repeated(node, count, depth, false),
            Step::Separated { node, count } => self.repeated(node, count, depth, true),
            Step::Array { node, phase, count, contains, seen } => {
                let (seen, at) = (self.stacks.keys(seen).clone(), (phase, count, contains));
                self.container(|owed| owed.array(node, depth, at, &seen, &mut Fuel::new(FUEL)))
            }
            Step::UniqueItem { node, count, contains, seen, .. } => {
                let mut seen = self.stacks.keys(seen).clone();
                seen.unknown = true;
                let at = (Phase::After, count, contains);
                self.container(|owed| owed.array(node, depth, at, &seen, &mut Fuel::new(FUEL)))
            }
            Step::Object { node, phase, seen } => {
                let (grammar, seen) = ((self.program, self.nodes), self.stacks.keys(seen));
                if let Some(pieces) = self.costs.plain_rest(grammar, (node, depth), phase, seen) {
                    return pieces;
                }
                self.container(|owed| owed.object(node, depth, phase, seen, &mut Fuel::new(FUEL)))
            }
            Step::OtherKey { node, class, seen, .. } => {
                let (table, spec) = (self.program.object_table(node)?, self.program.object(node)?);
                let seen = table.with_other(spec, self.stacks.keys(seen), class, None);
                let mut pieces = Some(vec![self.colon(depth)]);
                let value = self.texts(&[spec.others.get(class as usize)?.value], depth)?;
                texts::append(&mut pieces, &value);
                let phase = Phase::After;
                let rest = self
                    .container(|owed| owed.object(node, depth, phase, &seen, &mut Fuel::new(FUEL)));
                texts::append(&mut pieces, &rest?);
                pieces
            }
            Step::Key { .. } => None,
        }
    }

    fn container(&self, plan: impl FnOnce(&mut Owed<'_>) -> Result<(Price, u8)>) -> Pieces {
        self.costs.container_pieces(self.program, self.nodes, plan)
    }

    /// The completions of some nodes, one after the other.
    fn texts(&self, nodes: &[NodeId], depth: u8) -> Pieces {
        let mut pieces = Some(Vec::new());
        for &node in nodes {
            let own = self.costs.node_pieces(self.program, self.nodes, node, depth)?;
            texts::append(&mut pieces, (*own).as_deref()?);
            pieces.as_ref()?;
        }
        pieces
    }

    /// The items that a repetition of `count` items still must have; one more if it `stays`.
    fn repeated(&self, node: NodeId, count: u64, depth: u8, stays: bool) -> Pieces {
        let Node::Repeat { item, separator, min, .. } = self.program.node(node) else {
            return None;
        };
        let item = self.texts(&[*item], depth)?;
        let separator = separator.map(|separator| self.texts(&[separator], depth));
        let mut pieces = Some(Vec::new());
        for i in 0..min.saturating_sub(count).max(u64::from(stays)) {
            if let Some(separator) = &separator
                && !(stays && i == 0)
            {
                texts::append(&mut pieces, separator.as_deref()?);
            }
            texts::append(&mut pieces, &item);
            pieces.as_ref()?;
        }
        pieces
    }

    fn colon(&self, depth: u8) -> Piece {
        let colon = self.program.punct(Punct::Colon, depth);
        self.costs.terminal_pieces(self.program, colon, Excess::NONE)
    }

    fn node(&self, id: NodeId, depth: u8) -> u64 {
        self.nodes.tokens(self.costs, self.program, id, depth)
    }

    /// The same as [`Pricer::pieces`], counted terminal by terminal.
    fn frame(&self, frame: Frame) -> u64 {
        let depth = frame.depth;
        match frame.step {
            Step::Seq { node, next } => match self.program.node(node) {
                Node::Seq(parts) => {
                    let rest = parts.iter().skip(next as usize);
                    rest.fold(0, |sum: u64, &part| sum.saturating_add(self.node(part, depth)))
                }
                _ => NEVER,
            },
            Step::Enter(node) => self.node(node, depth),
            Step::EnterAs { node, allow } => {
                let margin = if allow == AllowId::ANY { 0 } else { BARRED };
                self.node(node, depth).saturating_add(margin)
            }
            Step::Doubt | Step::Within { .. } => 0,
            Step::Repeat { node, count } => self.repeat(node, count, depth),
            Step::Separated { node, count } => {
                let item = match self.program.node(node) {
                    Node::Repeat { item, .. } => self.node(*item, depth),
                    _ => NEVER,
                };
                item.saturating_add(self.repeat(node, count.saturating_add(1), depth))
            }
            Step::Array { node, phase, count, contains, seen } => {
                let value = |id, depth| (Price::tokens(self.node(id, depth)), 0);
                let mut owed = Owed::new(self.costs, self.program, &value).placed();
                let at = (phase, count, contains);
                tokens(owed.array(node, depth, at, self.stacks.keys(seen), &mut Fuel::new(FUEL)))
            }
            Step::UniqueItem { node, count, contains, seen, .. } => {
                let mut seen = self.stacks.keys(seen).clone();
                seen.unknown = true;
                let value = |id, depth| (Price::tokens(self.node(id, depth)), 0);
                let mut owed = Owed::new(self.costs, self.program, &value).placed();
                let at = (Phase::After, count, contains);
                tokens(owed.array(node, depth, at, &seen, &mut Fuel::new(FUEL)))
            }
            Step::Object { node, phase, seen } => {
                self.object(node, phase, self.stacks.keys(seen), depth)
            }
            Step::Key { .. } => NEVER,
            Step::OtherKey { node, class, seen, .. } => {
                let (Some(table), Some(spec)) =
                    (self.program.object_table(node), self.program.object(node))
                else {
                    return NEVER;
                };
                let seen = table.with_other(spec, self.stacks.keys(seen), class, None);
                let value = spec.others.get(class as usize).map(|class| class.value);
                self.member(value, depth).saturating_add(self.object(
                    node,
                    Phase::After,
                    &seen,
                    depth,
                ))
            }
        }
    }

    /// The items that a repetition of `count` items still must have.
    fn repeat(&self, node: NodeId, count: u64, depth: u8) -> u64 {
        let Node::Repeat { item, separator, min, .. } = self.program.node(node) else {
            return NEVER;
        };
        let separator = separator.map_or(0, |separator| self.node(separator, depth));
        let missing = min.saturating_sub(count);
        if missing == 0 {
            return 0;
        }
        self.node(*item, depth).saturating_add(separator).saturating_mul(missing)
    }

    fn object(
        &self,
        node: NodeId,
        phase: Phase,
        seen: &crate::machine::stack::Seen,
        depth: u8,
    ) -> u64 {
        let value = |id, depth| (Price::tokens(self.node(id, depth)), 0);
        let mut owed = Owed::new(self.costs, self.program, &value).placed();
        tokens(owed.object(node, depth, phase, seen, &mut Fuel::new(FUEL)))
    }

    /// At least the cost of `at` where any token inside its terminal ends.
    pub fn bound(&mut self, at: Thread) -> u64 {
        let own = self.costs.bound(self.program, at.state, at.excess);
        let mut most = self.below(own, at.stack);
        let tops = self.tops(at.stack);
        let asking = |frame: &Frame| matches!(frame.step, Step::Key { .. } | Step::Doubt);
        if tops.iter().any(|(frame, _)| asking(frame)) {
            most = 0;
        }
        for (frame, below) in tops {
            let rest = match frame.step {
                Step::Key { node, seen } => self.key_bound(node, seen, frame.depth),
                Step::Doubt => return NEVER,
                Step::Within { .. } if most == 0 => return NEVER,
                _ if most > 0 => continue,
                _ => own.saturating_add(self.frame(frame)),
            };
            most = most.max(self.below(rest, below));
        }
        most
    }

    /// At least the cost inside any declared key of an object, with what the object owes after it:
    /// that of the dearest member, if no key makes others necessary.
    fn key_bound(&self, node: NodeId, seen: SeenId, depth: u8) -> u64 {
        let (Some(table), Some(spec)) =
            (self.program.object_table(node), self.program.object(node))
        else {
            return NEVER;
        };
        let seen = self.stacks.keys(seen);
        if table.plain_missing(self.program, spec, seen, depth).is_none() {
            return NEVER;
        }
        let member = self.costs.dearest(node, depth, || {
            let cost = |p: &crate::grammar::Property| {
                // And an escape to finish.
                let key = 13 + spelled(&p.name).len() as u64;
                key.saturating_add(self.member(Some(p.value), depth))
            };
            let fitting = spec.properties.iter().filter(|p| self.program.fits(p.value, depth));
            fitting.map(cost).max().unwrap_or(0)
        });
        member.saturating_add(self.object(node, Phase::After, seen, depth))
    }

    /// A colon and a value.
    fn member(&self, value: Option<NodeId>, depth: u8) -> u64 {
        let colon = self.program.punct(Punct::Colon, depth);
        let colon = self.costs.terminal(self.program, colon, Excess::NONE);
        value.map_or(NEVER, |value| colon.saturating_add(self.node(value, depth)))
    }

    /// The cost of a state inside a declared key over what is below its object: the least over the
    /// keys it can become. Required ones are tried first, then the cheapest: those are what
    /// the plan of the object takes.
    fn key(
        &mut self,
        state: StateId,
        (node, before, depth): (NodeId, SeenId, u8),
        below: StackId,
    ) -> u64 {
        let (Some(table), Some(spec)) =
            (self.program.object_table(node), self.program.object(node))
        else {
            return NEVER;
        };
        let keys = self.costs.keys(node, spec);
        let mut ways: Vec<(bool, u64, u32, Vec<u8>)> = Vec::new();
        for (literal, text) in self.spellings(state) {
            let Some(key) = table.property(literal) else { continue };
            let Some(property) = spec.properties.get(key as usize) else { continue };
            let own = keys.get(key as usize).copied().unwrap_or(NEVER);
            let rank = match property.required {
                true => 0,
                false => own.saturating_add(self.node(property.value, depth)),
            };
            ways.push((!property.required, rank, key, text));
        }
        ways.sort_unstable();
        let colon = self.colon(depth);
        let mut least = NEVER;
        for (_, _, key, text) in ways.into_iter().take(KEYS) {
            // The stack that the key will lead to.
            let after = table.with_declared(self.stacks.keys(before), key);
            let seen = self.stacks.seen(after);
            let step = Step::Object { node, phase: Phase::After, seen };
            let stack = self.stacks.push(Frame { step, depth }, below);
            let step =
                Step::EnterAs { node: spec.properties[key as usize].value, allow: AllowId::ANY };
            let stack = self.stacks.push(Frame { step, depth }, stack);
            let mut pieces = Some(vec![Piece::Text(text)]);
            texts::append(&mut pieces, std::slice::from_ref(&colon));
            let piece = match pieces.as_deref() {
                Some([piece]) => piece.clone(),
                // A very long key.
                _ => Piece::Tokens(keys.get(key as usize).map_or(NEVER, |own| own + 1)),
            };
            least = least.min(self.behind(&piece, stack));
            let step = Step::Object { node, phase: Phase::After, seen: before };
            self.keep_near(Frame { step, depth }, below);
        }
        least
    }

    /// The keys that a state can become, with the text that completes each.
    fn spellings(&self, state: StateId) -> Vec<(LiteralId, Vec<u8>)> {
        let states = self.program.states();
        if let Some(literals) = states.literals(state) {
            let texts = states.with_exprs(|exprs| {
                let text = |&id: &LiteralId| (id, exprs.literal_text(id).to_owned());
                literals.left.iter().map(text).collect::<Vec<_>>()
            });
            let rest = |(id, text): (LiteralId, String)| {
                let mut spelling = literals.before.clone();
                let left = text.get(literals.offset..)?;
                spelling.extend_from_slice(&spelled(left)[1..]);
                Some((id, spelling))
            };
            return texts.into_iter().filter_map(rest).collect();
        }
        // Inside an escape: the one key of the shortest text.
        let Rest::Text(text) = states.shortest(state) else { return Vec::new() };
        let last = text.iter().fold(state, |state, &byte| match state.is_live() {
            true => states.step(state, byte),
            false => state,
        });
        let literal = last.is_live().then(|| states.get(last).literal()).flatten();
        literal.map(|literal| vec![(literal, text)]).unwrap_or_default()
    }
}

/// The tokens of `tokens` on top of `lead`.
fn on(lead: &Lead, tokens: u64) -> u64 {
    lead.within(lead.tokens().saturating_add(tokens))
}

/// Keeps the cheapest, and some that are dearer but leave more to the budgets.
fn keep_best(leads: &mut Vec<Lead>) {
    leads.sort_by(|a, b| (a.tokens(), &a.text).cmp(&(b.tokens(), &b.text)));
    let (mut kept, mut roomiest) = (0, 0);
    leads.retain(|lead| {
        let roomier = lead.most > roomiest;
        roomiest = roomiest.max(lead.most);
        kept += 1;
        kept <= WAYS || roomier && kept <= 4 * WAYS
    });
}

/// A JSON string, in its shortest spelling.
pub(super) fn spelled(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}

fn tokens(plan: Result<(Price, u8)>) -> u64 {
    plan.map_or(NEVER, |(price, _)| price.tokens)
}
