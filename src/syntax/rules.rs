//! What all syntaxes are read into: rules, and the items that their bodies are made of.
//!
//! Items live in an arena and are shared freely; an item's children are older than itself. The
//! constructors drop what says nothing: `()` in a sequence, alternatives that match nothing.

use hashbrown::HashMap;

use super::order::Lists;
use super::scan::At;
use super::{JsonNode, check, fold, left, lower, nonempty};
use crate::error::{Error, Kind, Result, quote};
use crate::expr::{ExprId, View};
use crate::grammar::{Grammar, NodeId, SpecialSpec};
use crate::limits::Fuel;

/// Index of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ItemId(u32);

impl ItemId {
    /// Nothing matches.
    pub const NEVER: ItemId = ItemId(0);
    /// The empty string.
    pub const EMPTY: ItemId = ItemId(1);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a rule.
pub(super) type RuleId = usize;

/// Operations on sets of strings: their operands must be free of recursion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// All of the operands.
    And,
    /// The first without the second.
    Except,
    /// Everything but the one operand.
    Not,
}

/// A piece of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Text(ExprId),
    Special(SpecialSpec),
    /// A piece that is made already (JSON by a schema); never empty.
    Node(NodeId),
    Rule(RuleId),
    Seq(Vec<ItemId>),
    Alt(Vec<ItemId>),
    Repeat(ItemId, u64, Option<u64>),
    /// At most so many tokens begin in it.
    Within(ItemId, u32, At),
    Set(Set, Vec<ItemId>, At),
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub name: String,
    /// Where it is defined, or mentioned first if it is not.
    pub at: At,
    pub body: Option<ItemId>,
}

/// A grammar while it is read and transformed.
#[derive(Debug)]
pub(super) struct Rules {
    pub grammar: Grammar,
    pub fuel: Fuel,
    pub rules: Vec<Rule>,
    pub start: ItemId,
    items: Vec<Item>,
    names: HashMap<String, RuleId>,
    texts: HashMap<ExprId, ItemId>,
    /// The mention of each rule.
    mentions: Vec<Option<ItemId>>,
    /// In which round of [`Rules::below`] an item was seen last.
    seen: Vec<usize>,
    round: usize,
}

impl Rules {
    /// Rules that become nodes of a grammar, which may have others, from a text of `bytes`: each pays
    /// for a unit more, so that a long list of plain rules is no bomb.
    pub fn new(grammar: Grammar, bytes: usize) -> Self {
        Self {
            fuel: Fuel::new(grammar.limits.fuel.saturating_add(bytes as u64)),
            grammar,
            rules: Vec::new(),
            start: ItemId::NEVER,
            items: vec![Item::Alt(Vec::new()), Item::Seq(Vec::new())],
            names: HashMap::new(),
            texts: HashMap::from_iter([
                (ExprId::NEVER, ItemId::NEVER),
                (ExprId::EPSILON, ItemId::EMPTY),
            ]),
            mentions: Vec::new(),
            seen: Vec::new(),
            round: 0,
        }
    }

    /// The rules as a grammar that the machine can run.
    pub fn finish(mut self) -> Result<Grammar> {
        check::defined(&mut self)?;
        fold::fold(&mut self)?;
        check::productive(&mut self)?;
        nonempty::remove(&mut self)?;
        left::remove(&mut self)?;
        fold::fold(&mut self)?;
        lower::lower(self)
    }

    // Names

    /// The rule with this name, mentioned at `at`.
    pub fn named(&mut self, name: &str, at: At) -> RuleId {
        if let Some(&rule) = self.names.get(name) {
            return rule;
        }
        let rule = self.anonymous(name, at);
        self.names.insert(name.to_owned(), rule);
        rule
    }

    /// The rule with this name, if it was mentioned.
    pub fn find(&self, name: &str) -> Option<RuleId> {
        self.names.get(name).copied()
    }

    /// The rule `root`, else `start`, else the one that is defined first.
    pub fn first(&self) -> Option<RuleId> {
        let named = (0..self.rules.len()).filter(|&rule| !self.rules[rule].name.starts_with('%'));
        let first = named.min_by_key(|&rule| {
            let at = self.rules[rule].at;
            (at.line, at.column)
        });
        self.find("root").or_else(|| self.find("start")).or(first)
    }

    /// A rule that no name leads to.
    pub fn anonymous(&mut self, name: &str, at: At) -> RuleId {
        self.rules.push(Rule { name: name.to_owned(), at, body: None });
        self.rules.len() - 1
    }

    /// Gives a rule its body; once.
    pub fn define(&mut self, rule: RuleId, at: At, body: ItemId) -> Result<()> {
        let known = &mut self.rules[rule];
        if known.body.is_some() {
            let first = known.at.line;
            let message = format!("the rule {} is defined twice", quote(&known.name));
            return Err(at.bad(message).help(format!("the first definition is in line {first}")));
        }
        known.at = at;
        known.body = Some(body);
        Ok(())
    }

    /// The body of a rule; nothing matches one that has none.
    pub fn body(&self, rule: RuleId) -> ItemId {
        self.rules.get(rule).and_then(|rule| rule.body).unwrap_or(ItemId::NEVER)
    }

    // Items

    pub fn item(&self, id: ItemId) -> &Item {
        &self.items[id.index()]
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Replaces an item by one with the same meaning (whose children are older, too).
    pub fn replace(&mut self, id: ItemId, item: Item) {
        self.items[id.index()] = item;
    }

    fn add(&mut self, item: Item) -> ItemId {
        self.items.push(item);
        ItemId(self.items.len() as u32 - 1)
    }

    /// Fails if there are more items than the limits allow, and pays for `work` units.
    pub fn pay(&mut self, work: usize) -> Result<()> {
        let limit = self.grammar.limits.nodes;
        // Most items are no node in the end: they are folded into expressions.
        if self.items.len() > limit.saturating_mul(4) {
            let kind = Kind::TooComplex { what: "nodes", limit: limit as u64 };
            let message = format!("the grammar needs more than {limit} nodes");
            return Err(Error::new(kind, message).help("simplify it, or raise Limits::nodes"));
        }
        self.fuel.spend(work as u64)
    }

    pub fn text(&mut self, expr: ExprId) -> ItemId {
        if let Some(&known) = self.texts.get(&expr) {
            return known;
        }
        let item = self.add(Item::Text(expr));
        self.texts.insert(expr, item);
        item
    }

    pub fn literal(&mut self, text: &str) -> ItemId {
        let expr = if text.is_empty() { ExprId::EPSILON } else { self.grammar.exprs.literal(text) };
        self.text(expr)
    }

    /// One character out of `ranges`, or out of all others.
    pub fn class(&mut self, ranges: &[(char, char)], negated: bool) -> ItemId {
        let exprs = &mut self.grammar.exprs;
        let mut expr = exprs.class(ranges);
        if negated {
            let not = exprs.not(expr);
            expr = exprs.and(&[not, ExprId::ANY_CHAR]);
        }
        self.text(expr)
    }

    pub fn special(&mut self, spec: SpecialSpec) -> ItemId {
        self.add(Item::Special(spec))
    }

    /// JSON by a schema, as `json` makes it.
    pub fn json(&mut self, schema: &str, json: JsonNode<'_>) -> Result<ItemId> {
        let empty = Grammar::new(self.grammar.limits.clone());
        let (grammar, node) = json(std::mem::replace(&mut self.grammar, empty), schema)?;
        self.grammar = grammar;
        Ok(self.add(Item::Node(node)))
    }

    pub fn mention(&mut self, rule: RuleId) -> ItemId {
        if let Some(&Some(known)) = self.mentions.get(rule) {
            return known;
        }
        let item = self.add(Item::Rule(rule));
        if self.mentions.len() <= rule {
            self.mentions.resize(self.rules.len().max(rule + 1), None);
        }
        self.mentions[rule] = Some(item);
        item
    }

    pub fn set(&mut self, set: Set, operands: Vec<ItemId>, at: At) -> ItemId {
        self.add(Item::Set(set, operands, at))
    }

    /// Text that ends with the item and has no other place where it ends.
    pub fn until(&mut self, item: ItemId, at: At) -> ItemId {
        let (any, one) = (self.text(ExprId::ANY), self.text(ExprId::ANY_CHAR));
        let ends = self.seq(vec![any, item]);
        let goes_on = self.seq(vec![any, item, one, any]);
        self.set(Set::Except, vec![ends, goes_on], at)
    }

    /// Text in which the item does not occur.
    pub fn without(&mut self, item: ItemId, at: At) -> ItemId {
        let any = self.text(ExprId::ANY);
        let occurs = self.seq(vec![any, item, any]);
        self.set(Set::Not, vec![occurs], at)
    }

    pub fn seq(&mut self, mut parts: Vec<ItemId>) -> ItemId {
        if parts.contains(&ItemId::NEVER) {
            return ItemId::NEVER;
        }
        parts.retain(|&part| part != ItemId::EMPTY);
        match *parts {
            [] => ItemId::EMPTY,
            [only] => only,
            _ => self.add(Item::Seq(parts)),
        }
    }

    pub fn alt(&mut self, mut parts: Vec<ItemId>) -> ItemId {
        let mut seen = hashbrown::HashSet::new();
        parts.retain(|&part| part != ItemId::NEVER && seen.insert(part));
        match *parts {
            [] => ItemId::NEVER,
            [only] => only,
            _ => self.add(Item::Alt(parts)),
        }
    }

    pub fn repeat(&mut self, item: ItemId, min: u64, max: Option<u64>) -> ItemId {
        match (item, min, max) {
            (_, min, Some(max)) if max < min => ItemId::NEVER,
            (ItemId::EMPTY, ..) | (_, _, Some(0)) | (ItemId::NEVER, 0, _) => ItemId::EMPTY,
            (ItemId::NEVER, ..) => ItemId::NEVER,
            (item, 1, Some(1)) => item,
            _ => self.add(Item::Repeat(item, min, max)),
        }
    }

    /// An item in which at most so many tokens begin.
    pub fn within(&mut self, item: ItemId, tokens: u32, at: At) -> ItemId {
        match item {
            ItemId::NEVER | ItemId::EMPTY => item,
            _ => self.add(Item::Within(item, tokens, at)),
        }
    }

    pub fn optional(&mut self, item: ItemId) -> ItemId {
        self.repeat(item, 0, Some(1))
    }

    /// The items that an item is made of (not those of the rules that it mentions).
    pub fn children(&self, id: ItemId) -> &[ItemId] {
        match self.item(id) {
            Item::Seq(parts) | Item::Alt(parts) | Item::Set(_, parts, _) => parts,
            Item::Repeat(item, ..) | Item::Within(item, ..) => std::slice::from_ref(item),
            Item::Text(_) | Item::Special(_) | Item::Node(_) | Item::Rule(_) => &[],
        }
    }

    /// The items that `roots` are made of, children first, without those for which `done` holds.
    pub fn below(
        &mut self,
        roots: &[ItemId],
        done: impl Fn(ItemId) -> bool,
    ) -> Result<Vec<ItemId>> {
        if let &[root] = roots
            && self.children(root).is_empty()
        {
            self.fuel.spend(1)?;
            return Ok(if done(root) { Vec::new() } else { roots.to_vec() });
        }
        self.round += 1;
        self.seen.resize(self.items.len(), 0);
        let (mut found, mut work) = (Vec::new(), roots.to_vec());
        while let Some(id) = work.pop() {
            if self.seen[id.index()] == self.round || done(id) {
                continue;
            }
            self.seen[id.index()] = self.round;
            found.push(id);
            let children = self.children(id);
            let count = children.len();
            work.extend_from_slice(children);
            self.fuel.spend(1 + count as u64)?;
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The rules that the body of each rule mentions.
    pub fn mentioned(&mut self) -> Result<Lists> {
        let mut edges = Lists::default();
        for rule in 0..self.rules.len() {
            let body = self.body(rule);
            edges.push(self.mentioned_in(body)?);
        }
        Ok(edges)
    }

    /// The rules that an item mentions.
    pub fn mentioned_in(&mut self, item: ItemId) -> Result<Vec<RuleId>> {
        let below = self.below(&[item], |_| false)?;
        let rule = |id: ItemId| match self.item(id) {
            Item::Rule(rule) => Some(*rule),
            _ => None,
        };
        Ok(below.into_iter().filter_map(rule).collect())
    }

    /// The literal behind a text item.
    pub fn literal_of(&self, expr: ExprId) -> Option<&str> {
        match self.grammar.exprs.view(expr) {
            View::Literal { id, offset: 0 } => Some(self.grammar.exprs.literal_text(id)),
            _ => None,
        }
    }
}
