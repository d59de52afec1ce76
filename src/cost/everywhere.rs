//! A bound for the cost of every configuration that a constraint can be in, without pricing any.
//!
//! With more tokens left than this, a budget is ample wherever the output is: one comparison per step, and nothing has
//! to be priced, neither at the start nor on the way. Where every byte is a token, bytes bound tokens, and the bytes of
//! *any* completion that the planner could take bound those of the one it plans. By hand: `{"a": string}` with `a`
//! required owes at worst an escape and a quote (13 bytes) and the brace inside the value, and besides the whole object
//! once more for what an open object may still owe. With 500 tokens left nobody looks.
//!
//! Each node has two numbers, by one equation each: the bytes of one completion (its *price*), and what it can cost to
//! complete it from anywhere inside:
//!
//! ```text
//! terminal        its farthest state, by the structure of its expression
//! choice          the greatest
//! sequence        the greatest sum of a part and the prices of those after it
//! array, object   its price, all that may become required, and the dearest item or member: key, escape in it, value
//! ```
//!
//! The completion is one that nests least, so it fits wherever the grammar offers the node, and neither solution of
//! `nodes` costs more than it. Numbers are set once all that they need are known; a few passes over the nodes suffice.
//! Where the bound does not suffice, nodes are priced after all, and it is made again with their prices in tokens.
//!
//! Where containers nest without end the second equations have no solution. Then each open container of those that can
//! be inside of themselves is counted apart: the bound is that of the root, and for each container that is open, or that
//! one token may open, the dearest of them (they count nothing as parts of others). By hand: with tokens that open at
//! most one container, a tree `{"left": tree, "right": tree}` inside 20 objects owes at most 22 times what one of them
//! does: as the root, 20 that are open, one more.
//!
//! Keys and items that must differ from others have a bound of their own, `Exprs::reach_unlike`, which holds while the
//! output is too short for more of them than are reckoned with.
//!
//! There is no bound where a part has a budget, for exact indentation, for recursion but through containers, for items of
//! which some must be equal, for undeclared keys that are counted, and for automata of many states. Then, and with less
//! left, each configuration is judged by itself, see `narrow`.
//!
//! Cost: some comparisons for each node, and a look at each declared key; small automata are explored where keys or
//! items of a pattern must differ.

use std::cell::{Cell, RefCell};

use hashbrown::HashMap;

use super::nodes::Nodes;
use super::owed::BARRED;
use super::{Costs, NEVER};
use crate::expr::{ExprId, Reach, TAKEN};
use crate::grammar::decimal::Decimal;
use crate::grammar::{ArraySpec, ItemClass, Node, NodeId, NumberSpec, ObjectSpec, Terminal};
use crate::machine::Program;
use crate::machine::program::NEVER as NO_HEIGHT;

/// More than a comma, a colon and brackets.
const PUNCTUATION: u64 = 8;

/// More than what a key costs that is unlike others: quotes, an escape to finish, and one character.
const ANY_KEY: u64 = 32;

/// More than what completes a number without bounds.
const NUMBER: u64 = 16;

/// More than the digits of any number that may be written plainly.
const PLAIN: u64 = 720;

/// Most members of which there must be some number.
const MEMBERS: u64 = 256;

/// Most items, and declared keys, of what is planned one by one.
const ITEMS: u64 = 4_000;
const KEYS: usize = 1_000;

/// An escape to finish in a JSON string, and its quote; a character to finish in a text.
const ESCAPE: u64 = 13;
const CHARACTER: u64 = 3;

/// The most bytes of a character in its shortest spelling.
const SPELLED: u64 = 6;

/// What may be owed around the member of an object that is under way.
const AROUND: u64 = ESCAPE + PUNCTUATION;

/// Longer strings may take more tokens than bytes are reckoned.
const LONGEST: u64 = 2_048;

/// The margin for a value that must be different, beside that for a container: [`BARRED`], and digits.
const DIFFERENT: u64 = BARRED + 20;

/// The fewest bytes of output that hold a key or an item and what goes with it, of those that must differ.
const SHORTEST: usize = 3;

/// Most passes over the nodes.
const PASSES: u32 = 16;

/// How many passes the exact costs may take that are made later.
const LATER: u64 = 16;

/// With how many tokens left nothing can be wrong with any token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For the root, and the containers that one token may open; [`NEVER`] if no number is known.
    base: u64,
    /// For each container that is open.
    level: u64,
    /// Most bytes of output for which it holds.
    output: usize,
}

impl Room {
    /// Nothing is known.
    const UNKNOWN: Room = Room { base: NEVER, level: 0, output: 0 };

    /// Whether there is a number.
    pub fn is_known(&self) -> bool {
        self.base != NEVER
    }

    /// The tokens that suffice inside `depth` containers after so many bytes of `output`, the end token not counted;
    /// [`NEVER`] if that is not known.
    #[inline]
    pub fn tokens(&self, depth: usize, output: usize) -> u64 {
        if output > self.output {
            return NEVER;
        }
        self.base.saturating_add(self.level.saturating_mul(depth as u64))
    }
}

impl Costs {
    /// At least the cost of any configuration, the end token not counted. It is less if nodes are priced.
    pub(super) fn everywhere(&self, program: &Program, exact: Option<&Nodes>) -> Room {
        *self.everywhere[usize::from(exact.is_some())].get_or_init(|| {
            if program.has_budgets() || program.is_pretty() || !self.spell.any_byte() {
                return Room::UNKNOWN;
            }
            Bounds::new(self, program, exact).room()
        })
    }
}

/// Bytes; [`NEVER`] if they are not known, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    /// Of one completion.
    price: u64,
    /// Of a completion from anywhere inside.
    inside: u64,
}

impl Bound {
    const UNKNOWN: Bound = Bound { price: NEVER, inside: NEVER };

    fn is_known(self) -> bool {
        self.price != NEVER && self.inside != NEVER
    }
}

struct Bounds<'a> {
    costs: &'a Costs,
    program: &'a Program,
    /// What nodes cost in tokens, if they were priced.
    exact: Option<&'a Nodes>,
    known: Vec<Bound>,
    /// Containers that can be inside of themselves, and count nothing as parts of others; empty until it turns out that
    /// there are some.
    apart: Vec<bool>,
    /// Nodes that can be parts of unique items; empty if there are none.
    barred: Vec<bool>,
    /// What strings need that must differ.
    unlike: RefCell<HashMap<ExprId, Option<Reach>>>,
    /// What one pass of the exact costs takes, about.
    work: Cell<u64>,
}

impl<'a> Bounds<'a> {
    fn new(costs: &'a Costs, program: &'a Program, exact: Option<&'a Nodes>) -> Self {
        let known = vec![Bound::UNKNOWN; program.grammar().len()];
        let (unlike, work) = (RefCell::default(), Cell::new(0));
        let (apart, barred) = (Vec::new(), barred(program));
        Self { costs, program, exact, known, apart, barred, unlike, work }
    }

    fn room(mut self) -> Room {
        let grammar = self.program.grammar();
        let (root, mut ids) = (grammar.root(), Vec::with_capacity(grammar.len()));
        for (id, node) in grammar.nodes() {
            match node {
                _ if self.program.height(id) == NO_HEIGHT => {}
                Node::Terminal(terminal) => self.known[id.index()] = self.terminal(id, terminal),
                _ => ids.push(id),
            }
        }
        self.settle(ids.clone());
        let mut level = 0;
        if self.known[root.index()].inside == NEVER {
            let unknown = |id: &NodeId| !self.known[id.index()].is_known();
            let open: Vec<NodeId> = ids.into_iter().filter(unknown).collect();
            self.apart = self.recursive(&open);
            self.settle(open.clone());
            let apart = open.iter().filter(|id| self.apart[id.index()]);
            level = apart.map(|id| self.known[id.index()].inside).max().unwrap_or(0);
        }
        // What is priced later must be within the fuel.
        if self.exact.is_none()
            && self.work.get().saturating_mul(LATER) > self.program.limits().fuel
        {
            return Room::UNKNOWN;
        }
        // Those that one token more may open.
        let opened = level.saturating_mul(self.costs.vocabulary.most_opened() as u64);
        let base = self.known[root.index()].inside.saturating_add(opened);
        let differ = !self.barred.is_empty() || !self.unlike.borrow().is_empty();
        let output = if differ { TAKEN as usize * SHORTEST } else { usize::MAX };
        Room { base, level, output }
    }

    /// Solves the equations of some nodes.
    fn settle(&mut self, mut ids: Vec<NodeId>) {
        for _ in 0..PASSES {
            let mut changed = false;
            ids.retain(|&id| {
                let own = self.own(id);
                changed |= own != self.known[id.index()];
                self.known[id.index()] = own;
                !own.is_known()
            });
            if !changed {
                return;
            }
            ids.reverse();
        }
    }

    /// The containers among the nodes `open`, whose bounds are not known, but for those that are inside of none of them:
    /// what is inside of itself is left.
    fn recursive(&self, open: &[NodeId]) -> Vec<bool> {
        let mut parents = vec![0u32; self.known.len()];
        let parts = |id: NodeId| {
            let parts = self.program.node(id).children().into_iter();
            parts.filter(|part| !self.known[part.index()].is_known())
        };
        open.iter().flat_map(|&id| parts(id)).for_each(|part| parents[part.index()] += 1);
        let mut tops: Vec<NodeId> =
            open.iter().copied().filter(|id| parents[id.index()] == 0).collect();
        while let Some(top) = tops.pop() {
            for part in parts(top) {
                parents[part.index()] -= 1;
                if parents[part.index()] == 0 {
                    tops.push(part);
                }
            }
        }
        let mut apart = vec![false; self.known.len()];
        for id in open.iter().filter(|id| parents[id.index()] > 0) {
            apart[id.index()] = matches!(self.program.node(*id), Node::Array(_) | Node::Object(_));
        }
        apart
    }

    /// What can be owed inside a part.
    fn part(&self, id: NodeId) -> u64 {
        // What nothing matches is never entered.
        if self.program.height(id) == NO_HEIGHT || self.apart.get(id.index()) == Some(&true) {
            return 0;
        }
        self.known[id.index()].inside
    }

    fn price(&self, id: NodeId) -> u64 {
        self.known[id.index()].price
    }

    /// The price of whatever may be chosen of a part.
    fn chosen(&self, id: NodeId) -> u64 {
        if self.program.height(id) == NO_HEIGHT { 0 } else { self.price(id) }
    }

    /// The least price of parts that nest at most so deep.
    fn least(&self, parts: impl Iterator<Item = NodeId>, height: u8) -> u64 {
        let parts = parts.filter(|&part| self.program.height(part) <= height);
        parts.map(|part| self.price(part)).min().unwrap_or(NEVER)
    }

    /// The equations of a node.
    fn own(&self, id: NodeId) -> Bound {
        self.spend(1);
        let (price, inside, more) = match self.program.node(id) {
            Node::Never | Node::Terminal(_) | Node::Within { .. } => return self.known[id.index()],
            Node::Empty => (0, 0, NEVER),
            Node::Rule(target) => (self.price(*target), self.part(*target), NEVER),
            Node::Alt(list) => {
                self.spend(list.len());
                let price = self.least(list.iter().copied(), self.program.height(id));
                (price, self.greatest(list), NEVER)
            }
            Node::Seq(list) => {
                self.spend(list.len());
                let (mut rest, mut inside) = (0u64, 0);
                for &part in list.iter().rev() {
                    inside = self.part(part).saturating_add(rest).max(inside);
                    rest = rest.saturating_add(self.price(part));
                }
                (rest, inside, self.greatest(list))
            }
            Node::Repeat { item, separator, min, .. } => {
                let between = separator.map_or(0, |separator| self.price(separator));
                let each = if *min == 0 { 0 } else { self.price(*item) };
                let between = if *min < 2 { 0 } else { between };
                let whole = each.saturating_add(between).saturating_mul(*min);
                let inside = separator.map_or(0, |separator| self.part(separator));
                let more = self.part(*item).saturating_add(inside);
                (whole, whole.saturating_add(more), more)
            }
            Node::Array(spec) => {
                let (price, dearest) = self.array(id, spec);
                let more = dearest.saturating_add(PUNCTUATION);
                (price, price.saturating_add(more), more)
            }
            Node::Object(spec) => {
                let (price, left, dearest) = self.object(spec);
                let (left, more) = (left.saturating_add(AROUND), dearest.saturating_add(AROUND));
                (price, left, more)
            }
        };
        let tokens = self.exact.map_or(NEVER, |nodes| {
            // At whatever depth it fits.
            let deepest =
                self.program.limits().output_depth.saturating_sub(self.program.height(id));
            let at = |depth| nodes.tokens(self.costs, self.program, id, depth);
            at(0).max(at(deepest))
        });
        Bound { price: price.min(tokens), inside: inside.min(tokens.saturating_add(more)) }
    }

    fn greatest(&self, parts: &[NodeId]) -> u64 {
        parts.iter().map(|&part| self.part(part)).max().unwrap_or(0)
    }

    fn spend(&self, work: usize) {
        self.work.set(self.work.get().saturating_add(work as u64));
    }

    /// What every container may be charged besides.
    fn margin(&self) -> u64 {
        if self.barred.is_empty() { 2 } else { 2 + 2 * BARRED }
    }

    /// The price of an array, and of its dearest item.
    fn array(&self, id: NodeId, spec: &ArraySpec) -> (u64, u64) {
        if spec.equal || spec.prefix.len() as u64 > ITEMS {
            return (NEVER, NEVER);
        }
        let items = || spec.prefix.iter().flatten().chain(&spec.rest).map(|class| class.node);
        self.spend(items().count());
        let inside = items().map(|item| self.part(item)).max().unwrap_or(0);
        if spec.contains.is_empty() && !spec.unique {
            let inner = self.program.height(id).saturating_sub(1);
            let least = |classes: &[ItemClass]| {
                self.least(classes.iter().map(|class| class.node), inner).saturating_add(1)
            };
            let fixed = spec.prefix.iter().take(usize::try_from(spec.min).unwrap_or(usize::MAX));
            let fixed = fixed.fold(0, |sum: u64, classes| sum.saturating_add(least(classes)));
            let more = spec.min.saturating_sub(spec.prefix.len() as u64);
            let more = if more == 0 { 0 } else { least(&spec.rest).saturating_mul(more) };
            return (self.margin().saturating_add(fixed).saturating_add(more), inside);
        }
        // One by one: each counts for something that is missing, or is one of those without a choice.
        let counted = spec.contains.iter().fold(0, |sum: u64, &(min, _)| sum.saturating_add(min));
        let fixed = if spec.contains.is_empty() { 0 } else { spec.prefix.len() as u64 };
        let most = spec.min.saturating_add(counted).saturating_add(fixed);
        if most > ITEMS {
            return (NEVER, NEVER);
        }
        self.spend(most as usize * items().count());
        let different = if spec.unique { DIFFERENT } else { 0 };
        let dearest = items().map(|item| match spec.unique {
            true => self.dearest(item),
            false => self.chosen(item),
        });
        let dearest = dearest.max().unwrap_or(0).saturating_add(different + 1);
        let price = if most == 0 { 0 } else { dearest.saturating_mul(most) };
        let next = if spec.unique { inside.max(dearest) } else { inside };
        (self.margin().saturating_add(price), next)
    }

    /// The most that any alternative of a unique item is priced.
    fn dearest(&self, item: NodeId) -> u64 {
        let (mut todo, mut visited, mut most) = (vec![item], Vec::new(), 0);
        while let Some(id) = todo.pop() {
            if visited.contains(&id) || self.program.height(id) == NO_HEIGHT {
                continue;
            }
            visited.push(id);
            if visited.len() > KEYS {
                return NEVER;
            }
            most = most.max(match self.program.node(id) {
                Node::Rule(target) => {
                    todo.push(*target);
                    0
                }
                Node::Alt(parts) => {
                    todo.extend(parts);
                    0
                }
                Node::Terminal(_) => self.part(id),
                _ => self.price(id),
            });
        }
        most
    }

    /// The price of an object, the most that is owed inside of a member and after it, and in the dearest member alone.
    fn object(&self, spec: &ObjectSpec) -> (u64, u64, u64) {
        self.spend(spec.properties.len());
        let counted = spec.others.iter().any(|class| class.min > 0 || class.max.is_some());
        let required = spec.properties.iter().filter(|property| property.required).count() as u64;
        let missing = spec.min.saturating_sub(required);
        let planned = missing > 0 || !spec.dependent.is_empty();
        if counted || missing > MEMBERS || planned && spec.properties.len() > KEYS {
            return (NEVER, NEVER, NEVER);
        }
        // A required member that is under way is owed no more: what it costs beyond its price.
        let (mut dearest, mut beyond, mut whole, mut owed) = (0u64, 0, 0, 0u64);
        for property in &spec.properties {
            let key = spelled(&property.name);
            let inside = self.part(property.value).saturating_add(key);
            let member = self.member(key, property.value);
            dearest = dearest.max(inside);
            if property.required {
                owed = owed.saturating_add(member);
                beyond = beyond.max(inside.saturating_sub(member));
            } else {
                beyond = beyond.max(inside);
                whole = whole.max(member);
            }
        }
        for class in &spec.others {
            let key = self.key(class.keys);
            let inside = self.part(class.value).saturating_add(key);
            (dearest, beyond) = (dearest.max(inside), beyond.max(inside));
            whole = self.member(key, class.value).max(whole);
        }
        // Those that others ask for, and those of which there must be some number.
        let mut asked: Vec<u32> = spec.dependent.iter().map(|&(_, target)| target).collect();
        asked.sort_unstable();
        asked.dedup();
        let asked = asked.iter().filter_map(|&at| spec.properties.get(at as usize));
        let mut besides = 0u64;
        for property in asked {
            self.spend(spec.properties.len());
            let member = self.member(spelled(&property.name), property.value);
            besides = besides.saturating_add(member);
        }
        let more = if missing == 0 { 0 } else { whole.saturating_mul(missing) };
        if planned {
            self.spend((missing + required) as usize * spec.properties.len());
        }
        let price = self.margin().saturating_add(owed).saturating_add(besides).saturating_add(more);
        (price, price.saturating_add(beyond), dearest.saturating_add(besides).saturating_add(more))
    }

    /// The price of a member, with a comma and a colon; it is never chosen if nothing matches its value.
    fn member(&self, key: u64, value: NodeId) -> u64 {
        if self.program.height(value) == NO_HEIGHT {
            return 0;
        }
        self.price(value).saturating_add(key).saturating_add(2)
    }

    /// What completes an undeclared key, from anywhere inside.
    fn key(&self, keys: ExprId) -> u64 {
        let exprs = &self.program.grammar().exprs;
        if keys == ExprId::NEVER {
            return 0;
        }
        if keys == ExprId::ANY || exprs.bars_literals(keys) {
            return ANY_KEY;
        }
        self.unlike(keys).map_or(NEVER, |reach| bytes(reach.rest, reach.plain, ESCAPE + 2))
    }

    fn unlike(&self, expr: ExprId) -> Option<Reach> {
        let mut known = self.unlike.borrow_mut();
        *known
            .entry(expr)
            .or_insert_with(|| self.program.states().with_exprs(|exprs| exprs.reach_unlike(expr)))
    }

    fn terminal(&self, id: NodeId, terminal: &Terminal) -> Bound {
        let barred = self.barred.get(id.index()).copied().unwrap_or(false);
        let (expr, around, finish) = match terminal {
            Terminal::Number(spec) => {
                let bound = self.number(spec, barred);
                return Bound { price: bound, inside: bound };
            }
            // White space around the document may end anywhere.
            Terminal::Margin => return Bound { price: 0, inside: 1 },
            Terminal::Special(_) => return Bound { price: 1, inside: 1 },
            Terminal::Format(_) if barred => return Bound::UNKNOWN,
            Terminal::Format(format) => {
                let bytes = format.longest_rest();
                return Bound { price: bytes + 2, inside: bytes + ESCAPE };
            }
            Terminal::String(expr) => (*expr, 2, ESCAPE),
            Terminal::Text(expr) => (*expr, 0, CHARACTER),
        };
        let exprs = &self.program.grammar().exprs;
        let reach = exprs.reach(expr, around > 0).filter(|_| !barred).or_else(|| self.unlike(expr));
        let Some(Reach { whole, rest, plain }) = reach.filter(|reach| reach.rest <= LONGEST) else {
            return Bound::UNKNOWN;
        };
        Bound { price: bytes(whole, plain, around), inside: bytes(rest, plain, finish) }
    }

    /// What completes a number: at most the digits of its bounds, and a few more.
    fn number(&self, spec: &NumberSpec, barred: bool) -> u64 {
        let digits = |value: &Decimal| {
            value.exponent.unsigned_abs().saturating_add(value.digits.len() as u64)
        };
        let bounds = [&spec.min, &spec.max].into_iter().flatten().map(|(value, _)| digits(value));
        let own = bounds.fold(NUMBER, u64::saturating_add);
        let multiples = spec.multiple_of.iter().chain(&spec.not_multiple_of).map(digits);
        let digits = u64::from(self.program.limits().number_digits);
        match (barred, multiples.clone().max()) {
            // There are not more digits in it.
            (true, most) => own.saturating_add(digits.max(PLAIN)).saturating_add(most.unwrap_or(0)),
            (false, Some(_)) => multiples.fold(own, u64::saturating_add).saturating_add(digits),
            (false, None) => own,
        }
    }
}

/// So many characters, and so much more.
fn bytes(characters: u64, plain: bool, more: u64) -> u64 {
    characters.saturating_mul(if plain { 1 } else { SPELLED }).saturating_add(more)
}

/// The bytes of a JSON string in its shortest spelling, or more.
fn spelled(text: &str) -> u64 {
    let escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    2 + text.len() as u64 + (SPELLED - 1) * text.bytes().filter(escaped).count() as u64
}

/// Which nodes can be parts of unique items; empty if there are none.
fn barred(program: &Program) -> Vec<bool> {
    let unique = |node: &Node| matches!(node, Node::Array(spec) if spec.unique || spec.equal);
    let mut todo: Vec<NodeId> = program
        .grammar()
        .nodes()
        .filter(|&(id, node)| unique(node) && program.height(id) != NO_HEIGHT)
        .flat_map(|(_, node)| node.children())
        .collect();
    if todo.is_empty() {
        return Vec::new();
    }
    let mut barred = vec![false; program.grammar().len()];
    while let Some(id) = todo.pop() {
        if !std::mem::replace(&mut barred[id.index()], true) {
            todo.extend(program.node(id).children());
        }
    }
    barred
}
