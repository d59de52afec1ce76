//! Left recursion becomes repetition.
//!
//! Rules that begin with each other are a system of equations: rule `i` is what begins with rule
//! `j` and goes on with a *tail*, or a *rest* that begins with none of them,
//!
//! ```text
//! A_i = A_1 T_1i | ... | A_n T_ni | R_i
//! ```
//!
//! whose least solution for one rule is `A = R T*` (Arden's lemma). Several are solved one after
//! the other: `A_k = (A_j T_jk | ... | R_k) T_kk*`, put into the equations that come later, until
//! each rule begins with later ones only. By hand, for `A ::= B "x" | "a"` and `B ::= A "y"`:
//!
//! ```text
//! A = B "x" | "a"
//! B = (B "x" | "a") "y"  =  B "x" "y" | "a" "y"  =  "a" "y" ("x" "y")*
//! ```
//!
//! A tail that is the rule itself, as in `S ::= S S | "a"`, would start the rule anew at every
//! step. Where a tail is made of nothing but the rule, the rule in it can as well be `X`, which is
//! the rule without such tails: `S = X X*`.
//!
//! Rules are never empty here (`nonempty.rs`), so where the left corners of an item end is seen
//! from its structure, and a solution has no left recursion that hides.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::nonempty::Strip;
use super::order::{self, Lists};
use super::rules::{Item, ItemId, RuleId, Rules};
use crate::error::Result;

/// An item, taken apart by what it begins with.
#[derive(Debug, Clone)]
struct Split {
    /// What follows each of the rules that are solved, where the item begins with it.
    tails: BTreeMap<RuleId, Vec<ItemId>>,
    /// What begins with none of them.
    rest: ItemId,
}

impl Split {
    fn rest(rest: ItemId) -> Self {
        Self { tails: BTreeMap::new(), rest }
    }
}

/// Makes the rules free of left recursion.
pub(super) fn remove(rules: &mut Rules) -> Result<()> {
    let mut strip = Strip::default();
    let edges = begins(rules, &mut strip)?;
    for component in order::components(&edges, &mut rules.fuel)?.iter() {
        if order::is_cycle(component, &edges) {
            solve(rules, &mut strip, component)?;
        }
    }
    Ok(())
}

/// Whether a rule begins with itself.
#[cfg(test)]
pub(super) fn is_left_recursive(rules: &mut Rules) -> Result<bool> {
    let edges = begins(rules, &mut Strip::default())?;
    let components = order::components(&edges, &mut rules.fuel)?;
    Ok(components.iter().any(|component| order::is_cycle(component, &edges)))
}

/// The rules that each rule begins with.
fn begins(rules: &mut Rules, strip: &mut Strip) -> Result<Lists> {
    let mut edges = Lists::default();
    for rule in 0..rules.rules.len() {
        let body = rules.body(rule);
        let corners = corners(rules, strip, body)?;
        let mut begins: Vec<RuleId> = corners
            .iter()
            .filter_map(|&id| match rules.item(id) {
                Item::Rule(other) => Some(*other),
                _ => None,
            })
            .collect();
        begins.sort_unstable();
        begins.dedup();
        edges.push(begins);
    }
    Ok(edges)
}

/// The items that a text of `root` may begin with, `root` and what is between included; oldest
/// first, so children come before parents.
fn corners(rules: &mut Rules, strip: &mut Strip, root: ItemId) -> Result<Vec<ItemId>> {
    if rules.children(root).is_empty() {
        rules.pay(1)?;
        return Ok(vec![root]);
    }
    let mut found = hashbrown::HashSet::new();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if !found.insert(id) {
            continue;
        }
        rules.pay(1)?;
        if let Item::Seq(parts) = rules.item(id).clone() {
            work.extend_from_slice(&parts[..beginning(rules, strip, &parts)?]);
        } else {
            work.extend_from_slice(rules.children(id));
        }
    }
    let mut sorted: Vec<ItemId> = found.into_iter().collect();
    sorted.sort_unstable();
    Ok(sorted)
}

/// How many parts of a sequence a text may begin with: up to the first that is never empty.
fn beginning(rules: &mut Rules, strip: &mut Strip, parts: &[ItemId]) -> Result<usize> {
    for (i, &part) in parts.iter().enumerate() {
        if !strip.nullable(rules, part)? {
            return Ok(i + 1);
        }
    }
    Ok(parts.len())
}

/// Solves the equations of rules that begin with each other.
fn solve(rules: &mut Rules, strip: &mut Strip, component: &[RuleId]) -> Result<()> {
    let mut rows: BTreeMap<RuleId, Split> = BTreeMap::new();
    for &rule in component {
        let body = rules.body(rule);
        rows.insert(rule, split(rules, strip, body, component)?);
    }
    for &rule in component {
        let Some(mut row) = rows.remove(&rule) else { continue };
        let own = row.tails.remove(&rule).unwrap_or_default();
        let more = Tails::new(rules, strip, own, rule)?;
        let base = join(rules, &row);
        let body = more.solution(rules, base, rule)?;
        rules.rules[rule].body = Some(body);
        // From now on the rule stands for its solution in the equations of later rules.
        for later in rows.values_mut() {
            let Some(tails) = later.tails.remove(&rule) else { continue };
            let tail = rules.alt(tails);
            let after = more.after(rules, tail);
            for (&begin, before) in &row.tails {
                let before = rules.alt(before.clone());
                let whole = rules.seq(vec![before, after]);
                later.tails.entry(begin).or_default().push(whole);
                rules.pay(4)?;
            }
            let whole = rules.seq(vec![row.rest, after]);
            later.rest = rules.alt(vec![later.rest, whole]);
            rules.pay(4)?;
        }
    }
    Ok(())
}

/// The item that a split is of.
fn join(rules: &mut Rules, row: &Split) -> ItemId {
    let mut parts = vec![row.rest];
    for (&rule, tails) in &row.tails {
        let begin = rules.mention(rule);
        let tail = rules.alt(tails.clone());
        parts.push(rules.seq(vec![begin, tail]));
    }
    rules.alt(parts)
}

/// The tails of a rule after itself.
struct Tails {
    /// Any number of those that are not made of the rule alone.
    star: ItemId,
    /// Those that are.
    selves: Vec<ItemId>,
}

impl Tails {
    fn new(rules: &mut Rules, strip: &mut Strip, own: Vec<ItemId>, rule: RuleId) -> Result<Self> {
        let (mut others, mut selves, mut work) = (Vec::new(), Vec::new(), Vec::new());
        for tail in own {
            // An empty tail says that the rule is itself: nothing.
            work.push(strip.nonempty(rules, tail)?);
        }
        work.reverse();
        while let Some(tail) = work.pop() {
            rules.pay(1)?;
            if let Item::Alt(parts) = rules.item(tail) {
                work.extend(parts.iter().rev().copied());
            } else if is_all(rules, tail, rule)? {
                selves.push(tail);
            } else {
                others.push(tail);
            }
        }
        let others = rules.alt(others);
        Ok(Self { star: rules.repeat(others, 0, None), selves })
    }

    /// The rule, where `base` is all of it that does not begin with itself.
    fn solution(&self, rules: &mut Rules, base: ItemId, rule: RuleId) -> Result<ItemId> {
        let one = rules.seq(vec![base, self.star]);
        if self.selves.is_empty() {
            return Ok(one);
        }
        let myself = rules.mention(rule);
        if self.selves.contains(&myself) {
            return Ok(rules.repeat(one, 1, None));
        }
        let mut again = Vec::new();
        for &tail in &self.selves {
            again.push(substitute(rules, tail, rule, one)?);
        }
        let again = rules.alt(again);
        let again = rules.repeat(again, 0, None);
        Ok(rules.seq(vec![one, again]))
    }

    /// What follows the base of a rule whose text goes on with `tail`.
    fn after(&self, rules: &mut Rules, tail: ItemId) -> ItemId {
        let mut again = self.selves.clone();
        if again.is_empty() {
            return rules.seq(vec![self.star, tail]);
        }
        // Any tail may follow any other here: the rule within them is solved already.
        if let Item::Repeat(others, 0, None) = *rules.item(self.star) {
            again.push(others);
        }
        let again = rules.alt(again);
        let again = rules.repeat(again, 0, None);
        rules.seq(vec![again, tail])
    }
}

/// Whether nothing but mentions of `rule` is in an item.
fn is_all(rules: &mut Rules, id: ItemId, rule: RuleId) -> Result<bool> {
    let below = rules.below(&[id], |_| false)?;
    Ok(below.into_iter().all(|id| match rules.item(id) {
        Item::Rule(other) => *other == rule,
        Item::Seq(_) | Item::Alt(_) | Item::Repeat(..) => id > ItemId::EMPTY,
        _ => false,
    }))
}

/// An item with `new` for each mention of `rule`.
fn substitute(rules: &mut Rules, id: ItemId, rule: RuleId, new: ItemId) -> Result<ItemId> {
    let below = rules.below(&[id], |_| false)?;
    let mut changed: HashMap<ItemId, ItemId> = HashMap::new();
    for id in below {
        let of = |id: &ItemId| changed.get(id).copied().unwrap_or(*id);
        let made = match rules.item(id).clone() {
            Item::Rule(other) if other == rule => new,
            Item::Seq(parts) => rules.seq(parts.iter().map(of).collect()),
            Item::Alt(parts) => rules.alt(parts.iter().map(of).collect()),
            Item::Repeat(item, min, max) => rules.repeat(of(&item), min, max),
            Item::Within(item, tokens, at) => rules.within(of(&item), tokens, at),
            _ => id,
        };
        rules.pay(1)?;
        changed.insert(id, made);
    }
    Ok(changed.get(&id).copied().unwrap_or(id))
}

/// Takes an item apart by the rules of `component` that it begins with.
fn split(
    rules: &mut Rules,
    strip: &mut Strip,
    root: ItemId,
    component: &[RuleId],
) -> Result<Split> {
    let mut known: HashMap<ItemId, Split> = HashMap::new();
    for id in corners(rules, strip, root)? {
        let made = match rules.item(id).clone() {
            Item::Rule(rule) if component.binary_search(&rule).is_ok() => {
                let tails = BTreeMap::from([(rule, vec![ItemId::EMPTY])]);
                Split { tails, rest: ItemId::NEVER }
            }
            Item::Alt(parts) => {
                let mut tails: BTreeMap<RuleId, Vec<ItemId>> = BTreeMap::new();
                let mut rests = Vec::new();
                for part in &parts {
                    let Some(part) = known.get(part) else { continue };
                    rests.push(part.rest);
                    for (&rule, more) in &part.tails {
                        tails.entry(rule).or_default().extend_from_slice(more);
                    }
                }
                rules.pay(parts.len())?;
                Split { tails, rest: rules.alt(rests) }
            }
            Item::Repeat(item, min, max) => match known.get(&item) {
                Some(first) if !first.tails.is_empty() => {
                    let more = rules.repeat(item, min.saturating_sub(1), max.map(|max| max - 1));
                    let mut made = followed(rules, first, more)?;
                    if min == 0 {
                        made.rest = rules.alt(vec![made.rest, ItemId::EMPTY]);
                    }
                    made
                }
                _ => Split::rest(id),
            },
            Item::Seq(parts) => split_sequence(rules, strip, id, &parts, &known)?,
            Item::Within(item, _, at) if known.get(&item).is_some_and(|s| !s.tails.is_empty()) => {
                let message = "a rule that begins with itself cannot have a budget of tokens";
                let error = at.unsupported("max_tokens", message);
                return Err(error.help("write its recursion so that it comes last"));
            }
            _ => Split::rest(id),
        };
        known.insert(id, made);
    }
    Ok(known.remove(&root).unwrap_or(Split::rest(root)))
}

/// A split with more behind it.
fn followed(rules: &mut Rules, first: &Split, more: ItemId) -> Result<Split> {
    let mut tails = BTreeMap::new();
    for (&rule, parts) in &first.tails {
        let tail = rules.alt(parts.clone());
        rules.pay(1 + parts.len())?;
        tails.insert(rule, vec![rules.seq(vec![tail, more])]);
    }
    Ok(Split { tails, rest: rules.seq(vec![first.rest, more]) })
}

/// A sequence begins as its first part does or, where that may be empty, as the rest does.
fn split_sequence(
    rules: &mut Rules,
    strip: &mut Strip,
    id: ItemId,
    parts: &[ItemId],
    known: &HashMap<ItemId, Split>,
) -> Result<Split> {
    let count = beginning(rules, strip, parts)?;
    let (begin, end) = parts.split_at(count);
    if begin.iter().all(|part| known.get(part).is_none_or(|split| split.tails.is_empty())) {
        return Ok(Split::rest(id));
    }
    let mut suffix = rules.seq(end.to_vec());
    let mut made = Split::rest(if end.is_empty() { ItemId::EMPTY } else { ItemId::NEVER });
    for &part in begin.iter().rev() {
        let first = known.get(&part).cloned().unwrap_or(Split::rest(part));
        let mut next = followed(rules, &first, suffix)?;
        if strip.nullable(rules, first.rest)? {
            let solid = strip.nonempty(rules, first.rest)?;
            let solid = rules.seq(vec![solid, suffix]);
            next.rest = rules.alt(vec![solid, made.rest]);
            for (rule, more) in made.tails {
                next.tails.entry(rule).or_default().extend(more);
            }
        }
        made = next;
        suffix = rules.seq(vec![part, suffix]);
    }
    Ok(made)
}
