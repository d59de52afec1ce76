//! Pieces without recursion become one expression.
//!
//! An expression is an automaton of its own: alternatives with common beginnings are one state in
//! it, and masks come out of a table. So `("1" | "12") "2"` becomes the literals `12` and `122`,
//! and a rule of digits becomes part of whoever mentions it. Only pieces that stay small are
//! folded, as mentions of rules multiply: forty rules of two mentions each say 2^40 characters.

use super::order;
use super::rules::{Item, ItemId, Rules, Set};
use crate::error::Result;
use crate::expr::ExprId;

/// Leaves of the largest expression that is made of several items.
pub(super) const SIZE: u64 = 4096;

/// An expression and the number of its leaves.
type Folded = Option<(ExprId, u64)>;

/// Replaces items by texts where they are regular, and operations on sets everywhere.
pub(super) fn fold(rules: &mut Rules) -> Result<()> {
    let edges = rules.mentioned()?;
    let components = order::components(&edges, &mut rules.fuel)?;
    let mut bodies: Vec<Folded> = vec![None; edges.len()];
    let mut items: Vec<Option<Folded>> = vec![None; rules.len()];
    for component in components.iter() {
        let cycle = order::is_cycle(component, &edges);
        for &rule in component {
            let body = rules.body(rule);
            fold_below(rules, body, &bodies, &mut items)?;
            if !cycle {
                bodies[rule] = items[body.index()].flatten();
            }
        }
    }
    let start = rules.start;
    fold_below(rules, start, &bodies, &mut items)?;
    for (rule, body) in bodies.into_iter().enumerate() {
        if let Some((expr, _)) = body {
            rules.rules[rule].body = Some(rules.text(expr));
        }
    }
    if let Some((expr, _)) = items[start.index()].flatten() {
        rules.start = rules.text(expr);
    }
    Ok(())
}

/// Folds what `root` is made of.
fn fold_below(
    rules: &mut Rules,
    root: ItemId,
    bodies: &[Folded],
    items: &mut [Option<Folded>],
) -> Result<()> {
    let below = rules.below(&[root], |id| items[id.index()].is_some())?;
    for id in below {
        let folded = fold_item(rules, id, bodies, items)?;
        items[id.index()] = Some(folded);
        if let Some((expr, _)) = folded
            && id > ItemId::EMPTY
        {
            rules.replace(id, Item::Text(expr));
        }
    }
    Ok(())
}

fn fold_item(
    rules: &mut Rules,
    id: ItemId,
    bodies: &[Folded],
    items: &[Option<Folded>],
) -> Result<Folded> {
    let of = |id: &ItemId| items.get(id.index()).copied().flatten().flatten();
    let all = |parts: &[ItemId]| parts.iter().map(of).collect::<Option<Vec<_>>>();
    match rules.item(id).clone() {
        Item::Text(expr) => Ok(Some((expr, leaf_size(rules, expr)))),
        Item::Special(_) | Item::Node(_) | Item::Within(..) => Ok(None),
        Item::Rule(rule) => Ok(bodies[rule]),
        Item::Seq(parts) => {
            let Some(parts) = all(&parts) else { return Ok(None) };
            concat(rules, &parts)
        }
        Item::Alt(parts) => {
            let Some(parts) = all(&parts) else { return Ok(None) };
            any_of(rules, &parts)
        }
        Item::Repeat(item, min, max) => {
            let Some((expr, size)) = of(&item) else { return Ok(None) };
            rules.grammar.exprs.check()?;
            Ok(Some((rules.grammar.exprs.repeat(expr, min, max), size)))
        }
        Item::Set(set, parts, at) => {
            let Some(parts) = all(&parts) else {
                let message = "this operation on sets needs operands without recursion";
                let error = at.unsupported("exception", message);
                return Err(error.help("write its operands without rules that mention themselves"));
            };
            let expr = operate(rules, set, &parts)?;
            let size = parts.iter().map(|part| part.1).sum();
            if rules.grammar.exprs.is_never(expr, &mut rules.fuel)? {
                return Ok(Some((ExprId::NEVER, 1)));
            }
            Ok(Some((expr, size)))
        }
    }
}

/// Leaves of an expression that a parser made: long literals cost more.
fn leaf_size(rules: &Rules, expr: ExprId) -> u64 {
    1 + rules.literal_of(expr).map_or(0, |text| text.len() as u64 / 16)
}

/// One after the other, if that is small.
pub(super) fn concat(rules: &mut Rules, parts: &[(ExprId, u64)]) -> Result<Folded> {
    let size = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.1));
    if size > SIZE {
        return Ok(None);
    }
    rules.pay(size as usize)?;
    rules.grammar.exprs.check()?;
    let exprs: Vec<ExprId> = parts.iter().map(|part| part.0).collect();
    Ok(Some((rules.grammar.exprs.concat(&exprs), size)))
}

/// Any of them, if that is small; literals are one leaf, however many they are.
pub(super) fn any_of(rules: &mut Rules, parts: &[(ExprId, u64)]) -> Result<Folded> {
    rules.pay(parts.len())?;
    rules.grammar.exprs.check()?;
    type Parts = Vec<(ExprId, u64)>;
    let (literals, others): (Parts, Parts) =
        parts.iter().partition(|part| rules.literal_of(part.0).is_some());
    let mut size = others.iter().fold(0u64, |sum, part| sum.saturating_add(part.1));
    if size > SIZE {
        return Ok(None);
    }
    let mut exprs: Vec<ExprId> = others.iter().map(|part| part.0).collect();
    if !literals.is_empty() {
        let texts: Vec<String> =
            literals.iter().filter_map(|part| Some(rules.literal_of(part.0)?.to_owned())).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        exprs.push(rules.grammar.exprs.literals(&texts));
        size = size.saturating_add(1 + literals.len() as u64 / 16);
    }
    Ok(Some((rules.grammar.exprs.or(&exprs), size)))
}

fn operate(rules: &mut Rules, set: Set, parts: &[(ExprId, u64)]) -> Result<ExprId> {
    let exprs = &mut rules.grammar.exprs;
    exprs.check()?;
    let parts: Vec<ExprId> = parts.iter().map(|part| part.0).collect();
    Ok(match (set, parts.as_slice()) {
        (Set::Except, &[from, ref without @ ..]) => {
            let mut all = vec![from];
            for &part in without {
                all.push(exprs.not(part));
            }
            exprs.and(&all)
        }
        (Set::Not, &[part]) => exprs.not(part),
        (_, parts) => exprs.and(parts),
    })
}
