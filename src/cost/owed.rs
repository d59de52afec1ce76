//! What an open container still needs: the plan of its shortest completion.
//!
//! An array owes the items below its least number, an object its required keys, each with what
//! stands between, and its bracket. Containers that are counted in other ways too (`contains`,
//! unique items, least numbers of properties, dependent properties) are planned item by item, by the
//! machine's own rules of what may come next; see `ObjectTable::plan`.
//!
//! Keys that must differ cannot be priced one by one, since what is taken depends on the output.
//! The price of the `n`-th one is that of the dearest of the first `n` in the order of shortest
//! texts: with `n - 1` of any kind taken, one of those is free, and it is what the shortest text of
//! *what is not taken* leads to. By hand: of the keys `^(a|b|c{9})$` the first costs 3 (`"a"`), the
//! second 3, the third 11; an object that has one key and must have three owes 3 + 11.
//!
//! Items that must differ are priced alike where they are strings. For other values a margin is
//! added ([`BARRED`]): enough where a digit or a character more makes a new value, which is nearly
//! everywhere, but not proved.

use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use super::nodes::Price;
use super::{Costs, NEVER, lock};
use crate::error::Result;
use crate::expr::ExprId;
use crate::grammar::{ItemClass, Node, NodeId, ObjectSpec, Terminal};
use crate::limits::Fuel;
use crate::machine::Program;
use crate::machine::arrays::ArrayView;
use crate::machine::objects::Next;
use crate::machine::program::NEVER as NO_HEIGHT;
use crate::machine::shortest::Rest;
pub use crate::machine::stack::Phase;
use crate::machine::stack::{Seen, Tally};
use crate::machine::states::{Excess, Punct, StateId};
use crate::machine::values::AllowId;

/// Most items that are planned one by one, and most that must differ.
const PLANNED: usize = 4_096;
const DISTINCT: u64 = 256;
/// Most items alike that are spelled one by one.
const SPELLED: u64 = 256;

/// The margin for a value that must not be equal to some others.
pub(super) const BARRED: u64 = 8;

/// Prices of keys and items that must differ, by node and class, and of declared keys.
#[derive(Debug, Default)]
pub struct Distinct {
    others: Mutex<HashMap<(NodeId, u32), Enumeration>>,
    keys: Mutex<HashMap<NodeId, Arc<[u64]>>>,
    dearest: Mutex<HashMap<(NodeId, u8), u64>>,
}

impl Costs {
    /// The tokens of the declared keys of an object.
    pub(super) fn keys(&self, id: NodeId, spec: &ObjectSpec) -> Arc<[u64]> {
        if let Some(keys) = lock(&self.distinct.keys).get(&id) {
            return Arc::clone(keys);
        }
        let texts = spec.properties.iter().map(|p| super::prices::spelled(&p.name));
        let keys: Arc<[u64]> = texts.map(|text| self.spell.tokens(&text)).collect();
        lock(&self.distinct.keys).insert(id, Arc::clone(&keys));
        keys
    }

    /// The most that a member of an object can cost, as `compute` says, remembered.
    pub(super) fn dearest(&self, id: NodeId, depth: u8, compute: impl FnOnce() -> u64) -> u64 {
        if let Some(&known) = lock(&self.distinct.dearest).get(&(id, depth)) {
            return known;
        }
        let most = compute();
        lock(&self.distinct.dearest).insert((id, depth), most);
        most
    }
}

/// The first few texts in the order of shortest ones, and the most that any of them costs so far.
#[derive(Debug, Default)]
struct Enumeration {
    texts: Vec<Box<str>>,
    most: Vec<u64>,
}

/// Finds the text after those of an enumeration, and what it stands for.
type NextText<'a> = &'a dyn Fn(&Enumeration) -> Option<(Vec<u8>, String)>;

/// The class number under which items are kept.
const ITEM: u32 = u32::MAX;

/// The item that a plan takes next, and the array after it.
struct Best {
    node: NodeId,
    value: (Price, u8),
    count: u64,
    tally: Tally,
}

/// No completion.
const NONE: (Price, u8) = (Price::NEVER, NO_HEIGHT);

/// What a value costs inside so many containers, and how many it nests.
pub type Value<'a> = &'a dyn Fn(NodeId, u8) -> (Price, u8);

/// A part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A terminal, from one of its states.
    State(StateId, Excess),
    /// A declared key.
    Text(Vec<u8>),
    /// What is only counted.
    Tokens(u64),
    /// A node inside so many containers.
    Value(NodeId, u8),
}

/// Plans containers over prices of their values.
pub struct Owed<'a> {
    costs: &'a Costs,
    program: &'a Program,
    value: Value<'a>,
    /// Whether depths are real, so that indentation can be priced.
    placed: bool,
    /// Whether plans are kept, not only their prices.
    recording: bool,
    recorded: Option<Vec<Item>>,
}

/// A plan so far: its price, the most that a value in it nests, and what it consists of.
#[derive(Debug, Clone)]
struct Plan {
    price: Price,
    height: u8,
    items: Option<Vec<Item>>,
}

impl Plan {
    fn add(&mut self, price: Price, item: impl FnOnce() -> Item) {
        self.price = self.price.plus(price);
        if let Some(items) = &mut self.items {
            items.push(item());
        }
    }

    fn tokens(&mut self, tokens: u64) {
        if tokens > 0 {
            self.add(Price::tokens(tokens), || Item::Tokens(tokens));
        }
    }

    fn value(&mut self, (price, height): (Price, u8), item: impl FnOnce() -> Item) {
        self.height = self.height.max(height);
        self.add(price, item);
    }
}

impl<'a> Owed<'a> {
    /// Plans for nodes, whose depth is not known.
    pub fn new(costs: &'a Costs, program: &'a Program, value: Value<'a>) -> Self {
        Self { costs, program, value, placed: false, recording: false, recorded: None }
    }

    /// Plans for open containers.
    pub fn placed(self) -> Self {
        Self { placed: true, ..self }
    }

    /// Plans that can be asked for with [`Owed::recorded`].
    pub fn recording(self) -> Self {
        Self { recording: true, ..self }
    }

    /// The last plan, if there was one.
    pub fn recorded(self) -> Option<Vec<Item>> {
        self.recorded
    }

    fn begin(&mut self) -> Plan {
        self.recorded = None;
        let items = self.recording.then(Vec::new);
        Plan { price: Price::NOTHING, height: 0, items }
    }

    fn done(&mut self, plan: Plan) -> (Price, u8) {
        if plan.price.tokens == NEVER {
            return NONE;
        }
        self.recorded = plan.items;
        (plan.price, plan.height)
    }

    /// A whole array or object, inside `depth - 1` containers.
    pub fn whole(&mut self, id: NodeId, depth: u8, fuel: &mut Fuel) -> Result<(Price, u8)> {
        let seen = Seen::default();
        let (open, (price, height)) = match self.program.array(id) {
            Some(_) => {
                let rest = self.array(id, depth, (Phase::Open, 0, [0; 4]), &seen, fuel)?;
                (Punct::OpenArray, rest)
            }
            None => (Punct::OpenObject, self.object(id, depth, Phase::Open, &seen, fuel)?),
        };
        let (open, item) = self.punct(open, depth.saturating_sub(1));
        if let Some(items) = &mut self.recorded {
            items.insert(0, item);
        }
        Ok((open.plus(price), height))
    }

    fn punct(&self, punct: Punct, depth: u8) -> (Price, Item) {
        let breaks = !matches!(punct, Punct::OpenArray | Punct::OpenObject | Punct::Colon);
        let state = self.program.punct(punct, depth);
        let item = Item::State(state, Excess::NONE);
        if self.program.is_pretty() && !self.placed && breaks {
            return (Price { tokens: 0, lines: 1 }, item);
        }
        (Price::tokens(self.costs.terminal(self.program, state, Excess::NONE)), item)
    }

    fn add_punct(&self, plan: &mut Plan, punct: Punct, depth: u8) {
        let (price, item) = self.punct(punct, depth);
        plan.add(price, || item);
    }

    /// Adds what stands before the next item or member, in this phase.
    fn add_before(&self, plan: &mut Plan, phase: Phase, depth: u8) {
        match phase {
            Phase::After => self.add_punct(plan, Punct::Comma, depth),
            Phase::Open if self.program.is_pretty() => self.add_punct(plan, Punct::Indent, depth),
            _ => {}
        }
    }

    /// What an array owes that has `count` items inside `depth` containers, itself counted.
    pub fn array(
        &mut self,
        id: NodeId,
        depth: u8,
        (mut phase, mut count, mut tally): (Phase, u64, Tally),
        seen: &Seen,
        fuel: &mut Fuel,
    ) -> Result<(Price, u8)> {
        let Some(spec) = self.program.array(id) else { return Ok(NONE) };
        let mut plan = self.begin();
        let taken = seen.values.len() as u64 + u64::from(seen.unknown);
        if seen.allow != AllowId::ANY {
            plan.tokens(BARRED);
        }
        for planned in 0..PLANNED as u64 {
            fuel.spend(1)?;
            let view = ArrayView::new(self.program, spec, depth, count, tally);
            let close = match phase {
                Phase::Open => Some(Punct::CloseEmptyArray),
                Phase::After => Some(Punct::CloseArray),
                Phase::Next => None,
            };
            if let Some(close) = close.filter(|_| view.can_close()) {
                self.add_punct(&mut plan, close, depth);
                return Ok(self.done(plan));
            }
            let counted = spec.contains.iter().zip(tally).all(|(&(min, _), n)| u64::from(n) >= min);
            let bounded = spec.contains.iter().any(|&(_, max)| max.is_some());
            let plain = counted && !bounded && !spec.unique && count >= spec.prefix.len() as u64;
            if plain && phase != Phase::Next && count < spec.min {
                // All the rest is alike.
                let (node, item) = self.cheapest(&spec.rest, depth);
                let more = spec.min - count;
                if more > SPELLED {
                    plan.items = None;
                }
                for i in 0..more.min(SPELLED) {
                    let phase = if i == 0 { phase } else { Phase::After };
                    self.add_before(&mut plan, phase, depth);
                    plan.value(item, || Item::Value(node, depth));
                }
                let comma = self.punct(Punct::Comma, depth).0;
                plan.price = plan.price.plus(item.0.plus(comma).times(more - more.min(SPELLED)));
                self.add_punct(&mut plan, Punct::CloseArray, depth);
                return Ok(self.done(plan));
            }
            // For how many conditions that need more an item counts.
            let needed = |next: Tally| {
                let needs = spec.contains.iter().zip(tally).zip(next);
                needs.filter(|((needs, had), has)| u64::from(*had) < needs.0 && has > had).count()
            };
            let mut best: Option<(usize, u64, Best)> = None;
            for (class, next, tally) in view.items() {
                fuel.spend(1)?;
                let value = match spec.unique {
                    true => self.distinct_item(class.node, taken + planned + 1, depth),
                    false => (self.value)(class.node, depth),
                };
                let (useless, rank) = (usize::MAX - needed(tally), rank(value.0));
                if best.as_ref().is_none_or(|best| (useless, rank) < (best.0, best.1)) {
                    let chosen = Best { node: class.node, value, count: next, tally };
                    best = Some((useless, rank, chosen));
                }
            }
            let Some((_, _, best)) = best else { return Ok(NONE) };
            self.add_before(&mut plan, phase, depth);
            plan.value(best.value, || match spec.unique {
                true => Item::Tokens(best.value.0.tokens),
                false => Item::Value(best.node, depth),
            });
            (phase, count, tally) = (Phase::After, best.count, best.tally);
        }
        Ok(NONE)
    }

    fn cheapest(&self, classes: &[ItemClass], depth: u8) -> (NodeId, (Price, u8)) {
        let values = classes.iter().map(|class| (class.node, (self.value)(class.node, depth)));
        let least = values.min_by_key(|(_, (price, _))| rank(*price));
        least.unwrap_or((self.program.grammar().root(), NONE))
    }

    /// What an object owes inside `depth` containers, itself counted.
    pub fn object(
        &mut self,
        id: NodeId,
        depth: u8,
        phase: Phase,
        seen: &Seen,
        fuel: &mut Fuel,
    ) -> Result<(Price, u8)> {
        let program = self.program;
        let (Some(spec), Some(table)) = (program.object(id), program.object_table(id)) else {
            return Ok(NONE);
        };
        let keys = self.costs.keys(id, spec);
        let margin = if seen.allow == AllowId::ANY { 0 } else { BARRED };
        fuel.spend(1 + spec.properties.len() as u64 / 8)?;
        if let Some(missing) = table.plain_missing(program, spec, seen, depth)
            && (phase != Phase::Next || !missing.is_empty())
        {
            let mut plan = self.begin();
            self.add_members(&mut plan, spec, (&keys, &missing), depth, phase);
            plan.tokens(margin);
            return Ok(self.done(plan));
        }
        let mut phase = phase;
        let mut seen = seen.clone();
        let mut added = vec![0u64; spec.others.len()];
        let taken: Vec<u64> = (0..spec.others.len()).map(|c| taken(spec, &seen, c)).collect();
        let mut plan = self.begin();
        plan.tokens(margin);
        for _ in 0..PLANNED {
            fuel.spend(1 + spec.properties.len() as u64)?;
            let nth = |class: u32| taken[class as usize] + added[class as usize] + 1;
            let price = |next: Next| match next {
                Next::Close => 0,
                Next::Declared(key) => rank(self.member(spec, &keys, key, depth).0),
                Next::Other(class) => rank(self.other(id, spec, (class, nth(class)), depth).1.0),
            };
            let stay = phase == Phase::Next;
            let next = table.plan(program, spec, &seen, depth, stay, &price);
            let Some(next) = next else { return Ok(NONE) };
            if next != Next::Close {
                self.add_before(&mut plan, phase, depth);
            }
            match next {
                Next::Close => {
                    let empty = phase == Phase::Open;
                    let close = if empty { Punct::CloseEmptyObject } else { Punct::CloseObject };
                    self.add_punct(&mut plan, close, depth);
                    return Ok(self.done(plan));
                }
                Next::Declared(key) => {
                    self.add_member(&mut plan, spec, (&keys, key), depth);
                    seen = table.with_declared(&seen, key);
                }
                Next::Other(class) => {
                    let (key, _) = self.other(id, spec, (class, nth(class)), depth);
                    plan.tokens(key);
                    self.add_value(&mut plan, spec.others[class as usize].value, depth);
                    added[class as usize] += 1;
                    seen = table.with_other(spec, &seen, class, None);
                }
            }
            phase = Phase::After;
        }
        Ok(NONE)
    }

    /// Adds the members `missing`, and the bracket.
    fn add_members(
        &self,
        plan: &mut Plan,
        spec: &ObjectSpec,
        (keys, missing): (&[u64], &[u32]),
        depth: u8,
        phase: Phase,
    ) {
        if missing.is_empty() && phase == Phase::Open {
            return self.add_punct(plan, Punct::CloseEmptyObject, depth);
        }
        for (i, &key) in missing.iter().enumerate() {
            self.add_before(plan, if i == 0 { phase } else { Phase::After }, depth);
            self.add_member(plan, spec, (keys, key), depth);
        }
        self.add_punct(plan, Punct::CloseObject, depth);
    }

    /// Adds a declared member: key, colon, value.
    fn add_member(
        &self,
        plan: &mut Plan,
        spec: &ObjectSpec,
        (keys, key): (&[u64], u32),
        depth: u8,
    ) {
        let property = &spec.properties[key as usize];
        let tokens = keys.get(key as usize).copied().unwrap_or(NEVER);
        plan.add(Price::tokens(tokens), || Item::Text(super::prices::spelled(&property.name)));
        self.add_value(plan, property.value, depth);
    }

    /// Adds a colon and a value.
    fn add_value(&self, plan: &mut Plan, value: NodeId, depth: u8) {
        self.add_punct(plan, Punct::Colon, depth);
        plan.value((self.value)(value, depth), || Item::Value(value, depth));
    }

    /// The price of a declared member.
    fn member(&self, spec: &ObjectSpec, keys: &[u64], key: u32, depth: u8) -> (Price, u8) {
        let (value, height) = (self.value)(spec.properties[key as usize].value, depth);
        let key = Price::tokens(keys.get(key as usize).copied().unwrap_or(NEVER));
        (key.plus(self.punct(Punct::Colon, depth).0).plus(value), height)
    }

    /// The tokens of the `nth` key of a class of undeclared keys, and the price of its member.
    fn other(
        &self,
        id: NodeId,
        spec: &ObjectSpec,
        (class, nth): (u32, u64),
        depth: u8,
    ) -> (u64, (Price, u8)) {
        let (value, height) = (self.value)(spec.others[class as usize].value, depth);
        let tokens = self.distinct_key(id, spec, class, nth);
        let price = Price::tokens(tokens).plus(self.punct(Punct::Colon, depth).0).plus(value);
        (tokens, (price, height))
    }

    /// The most that the `nth` of the keys of a class costs, whichever are taken.
    fn distinct_key(&self, id: NodeId, spec: &ObjectSpec, class: u32, nth: u64) -> u64 {
        let program = self.program;
        let Some(table) = program.object_table(id) else { return NEVER };
        let next = |known: &Enumeration| {
            let start = table.other_keys(program, spec, class, &Seen::default(), &known.texts);
            // A class may have fewer keys.
            if !start.state.is_live() {
                return None;
            }
            let Rest::Text(text) = program.states().shortest(start.state) else { return None };
            let key: String = serde_json::from_slice(&text).ok()?;
            Some((text, key))
        };
        self.distinct((id, class), nth, &next).unwrap_or(NEVER)
    }

    /// What the `nth` different item costs, whichever values are taken: that of the cheapest
    /// alternative that has as many values, else that of the dearest one.
    fn distinct_item(&self, item: NodeId, nth: u64, depth: u8) -> (Price, u8) {
        let digits = Price::tokens(u64::from(nth.checked_ilog10().unwrap_or(0)));
        let margin = if nth > 1 { digits.plus(Price::tokens(BARRED)) } else { Price::NOTHING };
        let (mut endless, mut dearest) = ((Price::NEVER, NO_HEIGHT), (Price::NOTHING, 0));
        let (mut todo, mut visited) = (vec![item], Vec::new());
        while let Some(node) = todo.pop() {
            if visited.contains(&node) || !self.program.fits(node, depth) {
                continue;
            }
            visited.push(node);
            let (value, height) = (self.value)(node, depth);
            let (price, is_endless) = match self.program.node(node) {
                Node::Rule(target) | Node::Within { item: target, .. } => {
                    todo.push(*target);
                    continue;
                }
                Node::Alt(parts) => {
                    todo.extend(parts);
                    continue;
                }
                Node::Terminal(Terminal::String(expr)) => {
                    match self.distinct_string(node, *expr, nth) {
                        Some(tokens) => (Price::tokens(tokens), true),
                        None => (value.plus(margin), false),
                    }
                }
                Node::Terminal(Terminal::Text(_)) => (value, false),
                _ => (value.plus(margin), true),
            };
            if is_endless && rank(price) < rank(endless.0) {
                endless = (price, height);
            }
            if rank(price) > rank(dearest.0) {
                dearest = (price, height);
            }
        }
        if endless.1 == NO_HEIGHT { dearest } else { endless }
    }

    /// The most that the `nth` of the strings of an expression costs, whichever are taken.
    fn distinct_string(&self, node: NodeId, expr: ExprId, nth: u64) -> Option<u64> {
        let states = self.program.states();
        self.distinct((node, ITEM), nth, &|known| {
            let start = states.with_exprs(|exprs| {
                let texts: Vec<&str> = known.texts.iter().map(|text| &**text).collect();
                let taken = exprs.literals(&texts);
                let free = exprs.not(taken);
                exprs.and(&[expr, free])
            });
            let start = states.start_string(start).ok().filter(|start| start.state.is_live())?;
            let Rest::Text(text) = states.shortest(start.state) else { return None };
            let mut value: String = serde_json::from_slice(&text).ok()?;
            // A string that is longer than its state says.
            value.extend(std::iter::repeat_n(' ', start.excess.min as usize));
            Some((text, value))
        })
    }

    fn distinct(&self, key: (NodeId, u32), nth: u64, next: NextText<'_>) -> Option<u64> {
        if nth == 0 || nth > DISTINCT {
            return None;
        }
        let mut others = lock(&self.costs.distinct.others);
        let known = others.entry(key).or_default();
        while (known.most.len() as u64) < nth {
            let (text, value) = next(known)?;
            let most = known.most.last().copied().unwrap_or(0);
            let own = self.costs.spell.tokens(&text);
            known.texts.push(value.into());
            known.most.push(most.max(own));
        }
        known.most.get(nth as usize - 1).copied()
    }
}

/// For comparing prices.
fn rank(price: Price) -> u64 {
    price.tokens.saturating_add(price.lines)
}

/// How many keys of a class an object may have taken.
fn taken(spec: &ObjectSpec, seen: &Seen, class: usize) -> u64 {
    let classed = spec.others.iter().any(|class| class.min > 0 || class.max.is_some());
    if classed {
        return u64::from(seen.classes.get(class).copied().unwrap_or(0));
    }
    seen.others.len() as u64 + u64::from(seen.unknown)
}
