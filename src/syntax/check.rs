//! What is wrong with rules: names without a rule, rules that derive nothing.

use std::collections::VecDeque;

use super::order::{self, Lists};
use super::rules::{Item, ItemId, RuleId, Rules};
use crate::error::{Error, Kind, Result, quote};
use crate::expr::ExprId;

/// How many rules an error names.
const NAMED: usize = 5;

/// Finds the start, and fails for the first name that no rule defines.
pub(super) fn defined(rules: &mut Rules) -> Result<()> {
    let missing = rules.rules.iter().filter(|rule| rule.body.is_none());
    if let Some(rule) = missing.min_by_key(|rule| (rule.at.line, rule.at.column)) {
        let message = format!("there is no rule {}", quote(&rule.name));
        return Err(rule.at.bad(message).help("define it, or correct the name"));
    }
    if rules.start != ItemId::NEVER {
        return Ok(());
    }
    match rules.first() {
        Some(start) => rules.start = rules.mention(start),
        None => {
            let error = Error::new(Kind::BadGrammar, "a grammar without a rule");
            return Err(error.at_line(1, 1).help("define the rule root"));
        }
    }
    Ok(())
}

/// Fails if a rule that the start leads to derives nothing.
pub(super) fn productive(rules: &mut Rules) -> Result<()> {
    let edges = rules.mentioned()?;
    let reached = reached(rules, &edges)?;
    let productive = least(rules, &edges, |rules, id, known, rule| match rules.item(id) {
        Item::Text(expr) => *expr != ExprId::NEVER,
        Item::Special(_) | Item::Node(_) => true,
        Item::Rule(other) => rule[*other],
        Item::Seq(parts) | Item::Set(_, parts, _) => parts.iter().all(|part| known[part.index()]),
        Item::Alt(parts) => parts.iter().any(|part| known[part.index()]),
        Item::Repeat(item, min, _) => *min == 0 || known[item.index()],
        Item::Within(item, ..) => known[item.index()],
    })?;
    let mut bad: Vec<RuleId> = reached.into_iter().filter(|&rule| !productive[rule]).collect();
    bad.sort_unstable_by_key(|&rule| {
        let at = rules.rules[rule].at;
        (at.line, at.column)
    });
    let Some(&first) = bad.first() else { return Ok(()) };
    let names: Vec<String> =
        bad.iter().take(NAMED).map(|&rule| quote(&rules.rules[rule].name)).collect();
    let more = if bad.len() > NAMED { " and others" } else { "" };
    let what = if bad.len() == 1 { "the rule" } else { "the rules" };
    let verb = if bad.len() == 1 { "derives" } else { "derive" };
    let message = format!("{what} {}{more} {verb} no text", names.join(", "));
    let help = "add an alternative without recursion";
    Err(rules.rules[first].at.error(Kind::Unsatisfiable, message).help(help))
}

/// The rules that the start leads to.
fn reached(rules: &mut Rules, edges: &Lists) -> Result<Vec<RuleId>> {
    let mut seen = vec![false; edges.len()];
    let mut work = rules.mentioned_in(rules.start)?;
    let mut out = Vec::new();
    while let Some(rule) = work.pop() {
        rules.pay(1)?;
        if !std::mem::replace(&mut seen[rule], true) {
            out.push(rule);
            work.extend_from_slice(edges.get(rule));
        }
    }
    Ok(out)
}

/// The least solution of one truth per rule: `of` says whether it holds for an item, from what is
/// known of its children (by item) and of the rules. Callees come first, and a rule is looked at
/// again when one that it mentions has become true: only cycles cost more than their length.
pub(super) fn least(
    rules: &mut Rules,
    edges: &Lists,
    of: impl Fn(&Rules, ItemId, &[bool], &[bool]) -> bool,
) -> Result<Vec<bool>> {
    let callers = edges.reversed();
    let mut holds = vec![false; edges.len()];
    let mut items = vec![false; rules.len()];
    let mut work: VecDeque<RuleId> =
        order::components(edges, &mut rules.fuel)?.members().iter().copied().collect();
    let mut queued = vec![true; edges.len()];
    while let Some(rule) = work.pop_front() {
        queued[rule] = false;
        if holds[rule] {
            continue;
        }
        let body = rules.body(rule);
        // What holds for an item goes on to hold: only the others are computed again.
        let below = rules.below(&[body], |id| items[id.index()])?;
        for id in below {
            items[id.index()] = of(rules, id, &items, &holds);
        }
        if items[body.index()] {
            holds[rule] = true;
            for &caller in callers.get(rule) {
                if !holds[caller] && !std::mem::replace(&mut queued[caller], true) {
                    work.push_back(caller);
                }
            }
        }
    }
    Ok(holds)
}
