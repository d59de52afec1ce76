//! What walks over derivatives and expressions: matching, listing, lengths, clamping, printing.
use super::node::{Exprs, Node, UNBOUNDED};
use super::{ExprId, LiteralId};
use crate::error::Result;
use crate::limits::Fuel;
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// Most derivatives that are counted.
const DERIVATIVES: usize = 64;

/// Fuel to count them.
const CLAMP_FUEL: u64 = 20_000;

impl Exprs {
    /// Whether the empty string matches. O(1).
    pub fn nullable(&self, expr: ExprId) -> bool {
        self.info(expr).nullable
    }

    /// Whether `text` matches.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn matches(&mut self, expr: ExprId, text: &str, fuel: &mut Fuel) -> Result<bool> {
        self.check()?;
        let mut state = expr;
        for c in text.chars() {
            state = self.derive_raw(state, c, fuel)?;
            if state == ExprId::NEVER {
                return Ok(false);
            }
        }
        self.check()?;
        Ok(self.nullable(state))
    }

    /// The literals (in the order of their texts) that match `expr` without their first `depth`
    /// bytes, sorted by id. A literal starts where it parts from the one before it.
    pub(super) fn matching(
        &mut self,
        ids: &[LiteralId],
        depth: usize,
        expr: ExprId,
        fuel: &mut Fuel,
    ) -> Result<Vec<LiteralId>> {
        let mut found = Vec::new();
        let mut path: Vec<(usize, ExprId)> = vec![(depth, expr)];
        let texts = Arc::clone(&self.texts);
        let mut previous = "";
        for &id in ids {
            let text = texts.get(id.0);
            let shared = text.bytes().zip(previous.bytes()).take_while(|(a, b)| a == b).count();
            while path.len() > 1 && path.last().is_some_and(|&(at, _)| at > shared) {
                path.pop();
            }
            let (mut at, mut state) = path.last().copied().unwrap_or((depth, expr));
            for c in text.get(at..).unwrap_or_default().chars() {
                // Nothing and everything stay what they are.
                if state == ExprId::NEVER || state == ExprId::ANY {
                    break;
                }
                state = self.derive_raw(state, c, fuel)?;
                at += c.len_utf8();
                path.push((at, state));
            }
            if state == ExprId::ANY || at == text.len() && self.nullable(state) {
                found.push(id);
            }
            previous = text;
        }
        self.check()?;
        found.sort_unstable();
        Ok(found)
    }

    /// All strings if there are at most `limit`, in order of their code points; `None` if more.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn enumerate(
        &mut self,
        expr: ExprId,
        limit: usize,
        fuel: &mut Fuel,
    ) -> Result<Option<Vec<String>>> {
        if self.is_never(expr, fuel)? {
            return Ok(Some(Vec::new()));
        }
        if !self.info(expr).boolean && self.info(expr).max == UNBOUNDED {
            return Ok(None);
        }
        if let Node::Set(set) = self.node(expr) {
            let depth = set.depth as usize;
            let ids = self.literals_left(expr).unwrap_or_default();
            fuel.spend(ids.len() as u64)?;
            let rest = |&id| self.literal_text(id).get(depth..).unwrap_or_default().to_owned();
            return Ok((ids.len() <= limit).then(|| ids.iter().map(rest).collect()));
        }
        let mut found = Vec::new();
        let mut text = String::new();
        // Every state here is live: one that comes again on its own path gives infinitely many.
        let mut on_path: HashSet<ExprId> = HashSet::new();
        let mut path: Vec<Listing> = Vec::new();
        let mut enter = Some(expr);
        loop {
            if let Some(state) = enter.take() {
                if !on_path.insert(state) {
                    return Ok(None);
                }
                if self.nullable(state) {
                    found.push(text.clone());
                }
                let runs = self.transitions(state, fuel)?;
                let strings: u64 = runs.iter().map(|run| u64::from(run.last - run.first) + 1).sum();
                fuel.spend(1 + text.len() as u64 / 16)?;
                if strings + found.len() as u64 > limit as u64 {
                    return Ok(None);
                }
                path.push(Listing { state, run: 0, next: None, text: text.len() });
            }
            let Some(top) = path.last_mut() else { break };
            text.truncate(top.text);
            let Some(run) = self.table(top.state).get(top.run) else {
                on_path.remove(&top.state);
                path.pop();
                continue;
            };
            let code = top.next.unwrap_or(run.first);
            if code == run.last {
                (top.run, top.next) = (top.run + 1, None);
            } else {
                top.next = Some(code + 1);
            }
            text.extend(char::from_u32(code));
            enter = Some(run.target);
        }
        Ok((found.len() <= limit).then_some(found))
    }

    /// Least and greatest length in code points (`None`: unbounded); `None` for the empty language.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn lengths(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<Option<(u64, Option<u64>)>> {
        if self.is_never(expr, fuel)? {
            return Ok(None);
        }
        let bounded = |max: u64| (max != UNBOUNDED).then_some(max);
        let info = self.info(expr);
        if !info.boolean {
            return Ok(Some((info.min, bounded(info.max))));
        }
        if let Some((rest, min, max)) = self.window(expr)
            && let Some(set) = self.length_set(rest, fuel)?
        {
            let greatest = if max == UNBOUNDED { self.info(rest).max } else { max };
            let most = if greatest == UNBOUNDED { None } else { set.last_to(greatest) };
            return Ok(set.first_from(min).map(|least| (least, most)));
        }
        self.lengths_by_states(expr, fuel).map(Some)
    }

    /// Lengths of a live expression by walking its live states.
    fn lengths_by_states(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<(u64, Option<u64>)> {
        let mut numbers: HashMap<ExprId, usize> = HashMap::from_iter([(expr, 0)]);
        let mut states = vec![expr];
        let mut depths = vec![0u64];
        let mut edges: Vec<Vec<usize>> = Vec::new();
        let mut least = None;
        while let Some(&state) = states.get(edges.len()) {
            let depth = depths[edges.len()];
            if self.nullable(state) && least.is_none() {
                least = Some(depth);
            }
            let targets: Vec<ExprId> =
                self.transitions(state, fuel)?.iter().map(|run| run.target).collect();
            fuel.spend(1 + targets.len() as u64)?;
            let mut next = Vec::with_capacity(targets.len());
            for target in targets {
                next.push(*numbers.entry(target).or_insert_with(|| {
                    states.push(target);
                    depths.push(depth + 1);
                    states.len() - 1
                }));
            }
            edges.push(next);
        }
        Ok((least.unwrap_or(0), longest_path(&edges)))
    }

    /// An expression with the same strings up to `length` code points, and the same prefixes of
    /// strings up to that length, in which counts beyond `length` are gone: a minimum becomes
    /// `length + 1`, a maximum none, and what cannot be reached is dropped. States that differ
    /// only in what a token of `length` code points cannot notice become equal.
    ///
    /// Of an intersection only a maximum beside it goes, if the rest has few derivatives: `n` of them can
    /// always be ended within `n` code points. A complement comes back as it is.
    pub fn clamp(&mut self, expr: ExprId, length: u64) -> ExprId {
        let mut stack = vec![(expr, length)];
        while let Some(&(top, length)) = stack.last() {
            if self.clamped.contains_key(&(top, length)) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            for part in self.clamp_needs(top, length) {
                if !self.clamped.contains_key(&part) {
                    stack.push(part);
                }
            }
            if stack.len() == before {
                let clamped = self.clamp_one(top, length);
                self.clamped.insert((top, length), clamped);
                stack.pop();
            }
        }
        self.clamped.get(&(expr, length)).copied().unwrap_or(expr)
    }

    /// The parts of which [`Exprs::clamp_one`] needs the clamped form.
    fn clamp_needs(&self, expr: ExprId, length: u64) -> Vec<(ExprId, u64)> {
        match self.node(expr) {
            Node::Concat(first, second) => {
                let mut needs = vec![(first, length)];
                if let Some(left) = length.checked_sub(self.info(first).min) {
                    needs.push((second, left));
                }
                needs
            }
            Node::Or(list) => self.lists.get(list).iter().map(|&part| (part, length)).collect(),
            Node::Repeat(item, ..) => vec![(item, length)],
            _ => Vec::new(),
        }
    }

    fn clamp_one(&mut self, expr: ExprId, length: u64) -> ExprId {
        let known = |exprs: &Self, part: ExprId, length: u64| {
            exprs.clamped.get(&(part, length)).copied().unwrap_or(part)
        };
        match self.node(expr) {
            Node::Concat(first, second) => {
                let head = known(self, first, length);
                match length.checked_sub(self.info(first).min) {
                    // The end of the first half is out of reach.
                    None => head,
                    Some(left) => {
                        let tail = known(self, second, left);
                        self.join(head, tail)
                    }
                }
            }
            Node::Or(list) => {
                let parts: Vec<ExprId> =
                    self.lists.get(list).iter().map(|&part| known(self, part, length)).collect();
                self.any_of(&parts)
            }
            Node::Repeat(item, min, max) => {
                let clamped = known(self, item, length);
                if self.nullable(item) {
                    return self.repeat_counts(clamped, min, max);
                }
                let beyond = length.saturating_add(1);
                let max = if max > beyond { UNBOUNDED } else { max };
                self.repeat_counts(clamped, min.min(beyond), max)
            }
            Node::And(list) => self.without_maximum(list, length).unwrap_or(expr),
            _ => expr,
        }
    }

    /// An intersection without its maximum of code points, if that is out of sight.
    ///
    /// Of `(.*x) & .{0,9}`, whose first part has the derivatives *ends here* and *does not*, what is live or
    /// matches within 7 code points is the same for `.*x`. For with any loop taken out of it, a way to the
    /// end has fewer code points than there are derivatives.
    fn without_maximum(&mut self, list: u32, length: u64) -> Option<ExprId> {
        let mut rest = self.lists.get(list).to_vec();
        let counts = |&part: &ExprId| match self.node(part) {
            Node::Repeat(ExprId::ANY_CHAR, min, max) if max != UNBOUNDED => Some((min, max)),
            _ => None,
        };
        let (at, (min, max)) =
            rest.iter().enumerate().find_map(|(at, part)| Some((at, counts(part)?)))?;
        rest.remove(at);
        let rest = self.and(&rest);
        let derivatives = self.derivatives(rest)?;
        let longer = self.repeat_counts(ExprId::ANY_CHAR, min, UNBOUNDED);
        (max >= min.max(length).saturating_add(derivatives)).then(|| self.and(&[rest, longer]))
    }

    /// How many derivatives an expression has, itself among them, if they are few.
    fn derivatives(&mut self, expr: ExprId) -> Option<u64> {
        if let Some(&known) = self.derivatives.get(&expr) {
            return known;
        }
        let mut fuel = Fuel::new(CLAMP_FUEL);
        let mut seen: HashSet<ExprId> = HashSet::from_iter([expr]);
        let mut todo = vec![expr];
        let mut few = true;
        while let Some(state) = todo.pop().filter(|_| few) {
            let targets = self.transitions(state, &mut fuel);
            let targets: Vec<ExprId> = match targets {
                Ok(runs) => runs.iter().map(|run| run.target).collect(),
                // Whoever steps meets the error again; here it means that nothing is known.
                Err(_) => return None,
            };
            todo.extend(targets.into_iter().filter(|&target| seen.insert(target)));
            few = seen.len() <= DERIVATIVES;
        }
        let count = few.then_some(seen.len() as u64);
        self.derivatives.insert(expr, count);
        count
    }

    /// The expression as text, for debugging; cut after about `limit` bytes.
    pub fn display(&self, expr: ExprId, limit: usize) -> String {
        let mut out = String::new();
        let mut work = vec![Piece::Expr(expr)];
        while let Some(piece) = work.pop() {
            if out.len() > limit {
                out.push('…');
                break;
            }
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Expr(expr) => self.display_node(expr, &mut out, &mut work),
            }
        }
        out
    }

    /// Prints the beginning of a node and puts the rest of it on `work`.
    fn display_node(&self, expr: ExprId, out: &mut String, work: &mut Vec<Piece>) {
        let list = |parts: &[ExprId], separator: &str, work: &mut Vec<Piece>| {
            work.push(Piece::text(")"));
            for (i, &part) in parts.iter().enumerate().rev() {
                work.push(Piece::Expr(part));
                work.push(Piece::text(if i == 0 { "(" } else { separator }));
            }
        };
        match self.node(expr) {
            Node::Never => out.push_str("[]"),
            Node::Epsilon => out.push_str("()"),
            _ if expr == ExprId::ANY_CHAR => out.push('.'),
            Node::Class(class) => {
                out.push('[');
                for &(first, last) in self.classes.get(class).iter().take(8) {
                    let show = |c| char::from_u32(c).unwrap_or_default().escape_debug();
                    out.extend(show(first));
                    if last > first {
                        out.push('-');
                        out.extend(show(last));
                    }
                }
                out.push(']');
            }
            Node::Literal(id, offset) => {
                let rest = self.literal_text(id).get(offset as usize..).unwrap_or_default();
                out.push_str(&crate::error::quote(rest));
            }
            Node::Set(set) => {
                let literals = self.kept(set).take(8).map(|i| self.set_literal(set.set, i));
                let pieces: Vec<String> = literals
                    .map(|id| self.literal_text(id).get(set.depth as usize..).unwrap_or_default())
                    .map(crate::error::quote)
                    .collect();
                out.push_str(&format!("{{{}}}", pieces.join(",")));
            }
            Node::Concat(first, second) => list(&[first, second], "", work),
            Node::Or(parts) => list(self.lists.get(parts), "|", work),
            Node::And(parts) => list(self.lists.get(parts), "&", work),
            Node::Later(number, _) => {
                out.push_str(&format!("@{number}"));
            }
            Node::Span(document, state) => out.push_str(&format!("#{document}.{state}")),
            Node::Not(item) => {
                out.push('~');
                list(&[item], "", work);
            }
            Node::Repeat(item, min, max) => {
                let max = if max == UNBOUNDED { String::new() } else { max.to_string() };
                work.push(Piece::Text(format!("{{{min},{max}}}")));
                work.push(Piece::Expr(item));
            }
        }
    }
}

/// A state on the path of [`Exprs::enumerate`].
struct Listing {
    state: ExprId,
    run: usize,
    /// The next code point of the run, if not its first.
    next: Option<u32>,
    /// Length of the text read before this state.
    text: usize,
}

/// Work of [`Exprs::display`].
enum Piece {
    Text(String),
    Expr(ExprId),
}

impl Piece {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The number of steps of the longest walk from state 0, `None` if there is a cycle: takes off
/// states without open predecessors until none is left.
fn longest_path(edges: &[Vec<usize>]) -> Option<u64> {
    let mut open = vec![0usize; edges.len()];
    edges.iter().flatten().for_each(|&target| open[target] += 1);
    let mut longest = vec![0u64; edges.len()];
    let mut ready: Vec<usize> = (0..edges.len()).filter(|&i| open[i] == 0).collect();
    let mut done = 0;
    while let Some(state) = ready.pop() {
        done += 1;
        for &target in &edges[state] {
            longest[target] = longest[target].max(longest[state] + 1);
            open[target] -= 1;
            if open[target] == 0 {
                ready.push(target);
            }
        }
    }
    (done == edges.len()).then(|| longest.into_iter().max().unwrap_or(0))
}
