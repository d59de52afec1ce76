//! Syntax tree to expression: assertions become intersection and complement.
//!
//! # Problem
//! An expression is a set of whole strings, built with concatenation, union, intersection,
//! complement and repetition. An assertion is not a set of strings: whether it holds depends on
//! what is around it.
//!
//! # Method
//! A node without assertions is translated as it stands. One with assertions is translated
//! together with what follows it. Let `K` be the set of strings that may follow ("the rest"); then
//! `step(node, K)` is the set of rests before the node:
//!
//! ```text
//! step(a, K)        = a·K
//! step(xy, K)       = step(x, step(y, K))
//! step(x|y, K)      = step(x, K) | step(y, K)
//! step(x*, K)       = the R with  R = K | step(x, R)
//! step($, K)        = K & ""
//! step((?=x), K)    = K & step(x, ANY)
//! step((?!x), K)    = K & not step(x, ANY)
//! ```
//!
//! By hand, `^(?!ab)[a-c]+$` on the rest ANY: `$` makes it `""`, `[a-c]+` makes it `[a-c]+`, the
//! look-ahead `[a-c]+ & not(ab·ANY)`.
//!
//! `^`, `\b` and short look-behinds ask what is *before*. So a rest is not one set but one for
//! each *context* ([`Rest`]): the start of the string, or the part of the alphabet that the code
//! point before lies in. The parts are the coarsest that distinguish the classes asked for, two
//! for `\b` (word or not). `step(^, K)` is `K` in the context of the start, and empty elsewhere.
//!
//! A repetition without a bound needs `R` in its own definition. An iteration that takes nothing
//! is cut off there, as ECMA-262 does, so that each occurrence of `R` comes after at least one code
//! point: every context exists twice, for "nothing taken in this iteration" (`fresh`) and
//! "something taken" (`moved`).
//!
//! A look-behind longer than one code point is translated where everything before it is known:
//! not in a group, and no other assertion before but `^` and look-aheads right after that.
//! `P(?<=x)Q` is `(P & ANY·x)·Q`.
//!
//! # Cost
//! Each node is visited once, times the counts of bounded repetitions around it if it holds an
//! assertion; times the number of contexts; times the ways to go on from there. All of it is paid from the fuel.
//! What an assertion says of a class is found once; where nothing may follow, nothing is looked at.

use super::ast::{Ast, ClassId, Node, NodeId};
use crate::error::{Error, Kind, Result};
use crate::expr::{ExprId, Exprs};
use crate::limits::Fuel;
use hashbrown::HashMap;
use regex_syntax::hir::ClassUnicode;

/// Nodes with assertions that may be nested in one another.
const DEPTH: usize = 250;

/// How deep the last piece of a node is looked for before it is left to intersection.
const ENDING_DEPTH: usize = 16;

/// The strings that hold a match of `root`.
pub(super) fn search(
    exprs: &mut Exprs,
    ast: &Ast,
    root: NodeId,
    fuel: &mut Fuel,
) -> Result<ExprId> {
    let mut compiler = Compiler::new(exprs, ast, fuel)?;
    compiler.around(root, true)
}

/// The strings that `root` matches from start to end.
pub(super) fn whole(exprs: &mut Exprs, ast: &Ast, root: NodeId, fuel: &mut Fuel) -> Result<ExprId> {
    let mut compiler = Compiler::new(exprs, ast, fuel)?;
    compiler.around(root, false)
}

/// The sets of strings that may follow a position, by what is before it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    /// At the start of the string; then after a code point of each part of the alphabet. Nothing
    /// has been taken since the innermost repetition began another iteration.
    fresh: Vec<ExprId>,
    /// The same once something has been taken.
    moved: Vec<ExprId>,
}

impl Rest {
    fn same(exprs: Vec<ExprId>) -> Self {
        Self { fresh: exprs.clone(), moved: exprs }
    }

    /// Whether nothing may follow: then there is nothing before either, whatever the node.
    fn is_never(&self) -> bool {
        self.fresh.iter().chain(&self.moved).all(|expr| *expr == ExprId::NEVER)
    }

    /// `f` of each set, given the context.
    fn map(&self, mut f: impl FnMut(usize, ExprId) -> ExprId) -> Self {
        let mut each = |exprs: &[ExprId]| -> Vec<ExprId> {
            exprs.iter().enumerate().map(|(context, expr)| f(context, *expr)).collect()
        };
        Self { fresh: each(&self.fresh), moved: each(&self.moved) }
    }

    /// `f` of each set and its counterpart.
    fn zip(&self, other: &Self, mut f: impl FnMut(ExprId, ExprId) -> ExprId) -> Self {
        let mut each = |ours: &[ExprId], theirs: &[ExprId]| -> Vec<ExprId> {
            ours.iter().zip(theirs).map(|(our, their)| f(*our, *their)).collect()
        };
        Self { fresh: each(&self.fresh, &other.fresh), moved: each(&self.moved, &other.moved) }
    }
}

/// The context of the start of the string; that of part `i` of the alphabet is `i + 1`.
const START: usize = 0;

struct Compiler<'a> {
    exprs: &'a mut Exprs,
    ast: &'a Ast,
    fuel: &'a mut Fuel,
    /// The translation of each node without assertions.
    plain: Vec<ExprId>,
    /// A partition of the alphabet that no [`Node::Behind`] splits.
    parts: Vec<ClassUnicode>,
    /// [`Compiler::class_expr`] of the classes that assertions ask for, which bounded repetitions ask for again.
    classes: HashMap<ClassId, ExprId>,
    /// Which of the parts are in such a class.
    inside: HashMap<ClassId, Vec<bool>>,
    /// [`Compiler::ending_node`] of what was asked for.
    endings: HashMap<(NodeId, Option<usize>), ExprId>,
    depth: usize,
}

impl<'a> Compiler<'a> {
    fn new(exprs: &'a mut Exprs, ast: &'a Ast, fuel: &'a mut Fuel) -> Result<Self> {
        let mut compiler = Self {
            exprs,
            ast,
            fuel,
            plain: vec![],
            parts: vec![],
            classes: HashMap::new(),
            inside: HashMap::new(),
            endings: HashMap::new(),
            depth: 0,
        };
        compiler.partition()?;
        for id in ast.ids() {
            let expr = match ast.is_pure(id) {
                true => compiler.plain_node(id)?,
                false => ExprId::NEVER,
            };
            compiler.plain.push(expr);
        }
        Ok(compiler)
    }

    /// Makes the parts of the alphabet.
    fn partition(&mut self) -> Result<()> {
        let mut everything = ClassUnicode::empty();
        everything.negate();
        self.parts = vec![everything];
        for id in self.ast.ids() {
            let Node::Behind { class, .. } = self.ast.node(id) else { continue };
            let class = self.ast.class(*class);
            let mut finer = Vec::new();
            for part in &self.parts {
                self.fuel.spend(1 + (part.ranges().len() + class.ranges().len()) as u64)?;
                let mut inside = part.clone();
                inside.intersect(class);
                let mut outside = part.clone();
                outside.difference(class);
                finer.extend([inside, outside].into_iter().filter(|new| !new.ranges().is_empty()));
            }
            self.parts = finer;
        }
        Ok(())
    }

    fn class_expr(&mut self, class: &ClassUnicode) -> ExprId {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        self.exprs.class(&ranges)
    }

    /// Translates a node without assertions whose children are translated.
    fn plain_node(&mut self, id: NodeId) -> Result<ExprId> {
        let ast = self.ast;
        self.fuel.spend(1)?;
        Ok(match ast.node(id) {
            Node::Class(class) => {
                self.fuel.spend(ast.class(*class).ranges().len() as u64)?;
                self.class_expr(ast.class(*class))
            }
            Node::Concat(items) => {
                self.fuel.spend(items.len() as u64)?;
                self.plain_concat(items)
            }
            Node::Alt(items) => {
                self.fuel.spend(items.len() as u64)?;
                self.plain_alt(items)?
            }
            Node::Repeat { item, min, max } => {
                let item = self.plain[item.index()];
                self.exprs.repeat(item, *min, *max)
            }
            _ => ExprId::EPSILON,
        })
    }

    /// Runs of single characters become literals.
    fn plain_concat(&mut self, items: &[NodeId]) -> ExprId {
        let mut parts = Vec::new();
        let mut text = String::new();
        for item in items {
            if let Some(c) = self.ast.single(*item) {
                text.push(c);
                continue;
            }
            self.flush(&mut text, &mut parts);
            parts.push(self.plain[item.index()]);
        }
        self.flush(&mut text, &mut parts);
        self.exprs.concat(&parts)
    }

    fn flush(&mut self, text: &mut String, parts: &mut Vec<ExprId>) {
        if !text.is_empty() {
            parts.push(self.exprs.literal(text));
            text.clear();
        }
    }

    /// Literal branches become one set of literals.
    fn plain_alt(&mut self, items: &[NodeId]) -> Result<ExprId> {
        let mut texts = Vec::new();
        let mut branches = Vec::new();
        for item in items {
            match self.literal_branch(*item)? {
                Some(text) => texts.push(text),
                None => branches.push(self.plain[item.index()]),
            }
        }
        if !texts.is_empty() {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            branches.push(self.exprs.literals(&texts));
        }
        Ok(self.exprs.or(&branches))
    }

    /// The text of a branch that is at least two single characters.
    fn literal_branch(&mut self, id: NodeId) -> Result<Option<String>> {
        let ast = self.ast;
        let Node::Concat(items) = ast.node(id) else { return Ok(None) };
        self.fuel.spend(items.len() as u64)?;
        Ok(items.iter().map(|item| ast.single(*item)).collect())
    }

    /// The strings in which `root` matches: somewhere, or from start to end.
    fn around(&mut self, root: NodeId, anywhere: bool) -> Result<ExprId> {
        let rest = if anywhere { ExprId::ANY } else { ExprId::EPSILON };
        if self.ast.is_pure(root) {
            let expr = self.plain[root.index()];
            return Ok(self.exprs.concat(&if anywhere {
                vec![rest, expr, rest]
            } else {
                vec![expr]
            }));
        }
        let branches = match self.ast.node(root) {
            Node::Alt(items) => items.clone(),
            _ => vec![root],
        };
        let mut found = Vec::new();
        for branch in branches {
            let items = match self.ast.node(branch) {
                Node::Concat(items) => items.clone(),
                _ => vec![branch],
            };
            let rest = Rest::same(vec![rest; self.parts.len() + 1]);
            found.push(self.branch(&items, rest, anywhere)?);
        }
        Ok(self.exprs.or(&found))
    }

    /// One branch of the whole regex: the place where long look-behinds can be translated.
    fn branch(&mut self, items: &[NodeId], rest: Rest, anywhere: bool) -> Result<ExprId> {
        let is_long = |id: &NodeId| matches!(self.ast.node(*id), Node::LookBehind { .. });
        let long = items.iter().rposition(is_long);
        let (before, after) = items.split_at(long.map_or(0, |at| at + 1));
        let rest = self.concat(after, rest)?;
        let start = self.start_assertions(before);
        let (start, before) = before.split_at(start);
        let anywhere = anywhere && start.is_empty();
        let before = self.prefix(before, anywhere)?;
        let expr = self.after_prefix(before, &rest)?;
        // Nothing but the context of the start passes the `^` in front.
        let rest = self.concat(start, rest.map(|_, _| expr))?;
        Ok(rest.fresh[START])
    }

    /// How many items at the front are `^` and what else takes nothing after it.
    fn start_assertions(&self, items: &[NodeId]) -> usize {
        let is_start = |id: &NodeId| match self.ast.node(*id) {
            Node::Behind { class, start } => *start && self.ast.class(*class).ranges().is_empty(),
            _ => false,
        };
        if !items.first().is_some_and(is_start) {
            return 0;
        }
        let takes_nothing = |id: &NodeId| {
            let node = self.ast.node(*id);
            matches!(node, Node::Behind { .. } | Node::Ahead { .. } | Node::LookAhead { .. })
        };
        items.iter().position(|id| !takes_nothing(id)).unwrap_or(items.len())
    }

    /// A prefix out of `before`, then the rest for the context that it leads to.
    fn after_prefix(&mut self, before: ExprId, rest: &Rest) -> Result<ExprId> {
        let mut found = Vec::new();
        if self.exprs.nullable(before) {
            found.push(rest.fresh[START]);
        }
        let first = rest.fresh[START + 1];
        if rest.fresh[START + 1..].iter().all(|expr| *expr == first) {
            let taken = match found.first() {
                Some(start) if *start == first => return Ok(self.exprs.concat(&[before, first])),
                Some(_) => self.not_empty(before),
                None => before,
            };
            found.push(self.exprs.concat(&[taken, first]));
        } else {
            for part in 0..self.parts.len() {
                self.fuel.spend(1)?;
                let taken = self.ending_in(before, part);
                found.push(self.exprs.concat(&[taken, rest.fresh[part + 1]]));
            }
        }
        Ok(self.exprs.or(&found))
    }

    /// What can be before the end of `items`, which are without assertions or long look-behinds.
    fn prefix(&mut self, items: &[NodeId], anywhere: bool) -> Result<ExprId> {
        let ast = self.ast;
        let mut before = if anywhere { ExprId::ANY } else { ExprId::EPSILON };
        for item in items {
            self.fuel.spend(1)?;
            before = match ast.node(*item) {
                Node::LookBehind { body, negative } if ast.is_pure(*body) => {
                    let body = self.plain[body.index()];
                    let wanted = self.exprs.concat(&[ExprId::ANY, body]);
                    let wanted = if *negative { self.exprs.not(wanted) } else { wanted };
                    self.exprs.and(&[before, wanted])
                }
                _ if ast.is_pure(*item) => {
                    let expr = self.plain[item.index()];
                    self.exprs.concat(&[before, expr])
                }
                _ => return Err(unsupported_look_behind()),
            };
        }
        Ok(before)
    }

    /// The rests before `items`.
    fn concat(&mut self, items: &[NodeId], rest: Rest) -> Result<Rest> {
        items.iter().rev().try_fold(rest, |rest, item| self.step(*item, rest))
    }

    /// The rests before `id`, given those after.
    fn step(&mut self, id: NodeId, rest: Rest) -> Result<Rest> {
        if rest.is_never() {
            return Ok(rest);
        }
        // Sets are made for every context, twice.
        self.fuel.spend(10 * (1 + self.parts.len() as u64))?;
        let ast = self.ast;
        if ast.is_pure(id) {
            return self.plain_step(id, &rest);
        }
        self.depth += 1;
        if self.depth > DEPTH {
            let text = format!("more than {DEPTH} nested assertions in a regular expression");
            return Err(Error::new(Kind::TooDeep, text).help("nest fewer groups"));
        }
        let before = match ast.node(id) {
            Node::Concat(items) => self.concat(items, rest)?,
            Node::Alt(items) => self.alt(items, &rest)?,
            Node::Repeat { item, min, max } => self.repeat(*item, *min, *max, rest)?,
            Node::Behind { class, start } => self.behind(*class, *start, &rest)?,
            Node::Ahead { class, end } => self.ahead(*class, *end, &rest)?,
            Node::LookAhead { body, negative } => self.look_ahead(*body, *negative, &rest)?,
            Node::LookBehind { .. } => return Err(unsupported_look_behind()),
            Node::Empty | Node::Class(_) => rest,
        };
        self.depth -= 1;
        self.paid(before)
    }

    /// What was made, once its size is paid for: unions of rests are as long as there are ways to go on.
    fn paid(&mut self, rest: Rest) -> Result<Rest> {
        self.exprs.check()?;
        self.exprs.pay(self.fuel)?;
        let exprs = rest.fresh.iter().chain(&rest.moved);
        let more: usize = exprs.map(|expr| self.exprs.width(*expr) - 1).sum();
        self.fuel.spend(more as u64)?;
        Ok(rest)
    }

    fn alt(&mut self, items: &[NodeId], rest: &Rest) -> Result<Rest> {
        let mut sum = rest.map(|_, _| ExprId::NEVER);
        for item in items {
            let branch = self.step(*item, rest.clone())?;
            sum = sum.zip(&branch, |a, b| self.exprs.or(&[a, b]));
            sum = self.paid(sum)?;
        }
        Ok(sum)
    }

    fn behind(&mut self, class: ClassId, start: bool, rest: &Rest) -> Result<Rest> {
        if !self.inside.contains_key(&class) {
            let (ranges, parts) = (self.ast.class(class), &self.parts);
            let sizes = parts.iter().map(|part| part.ranges().len() + ranges.ranges().len());
            self.fuel.spend(sizes.sum::<usize>() as u64)?;
            let inside = parts.iter().map(|part| intersects(part, ranges)).collect();
            self.inside.insert(class, inside);
        }
        let inside = &self.inside[&class];
        let holds = |context: usize| context.checked_sub(1).map_or(start, |part| inside[part]);
        Ok(rest.map(|context, expr| if holds(context) { expr } else { ExprId::NEVER }))
    }

    fn ahead(&mut self, class: ClassId, end: bool, rest: &Rest) -> Result<Rest> {
        let class = match self.classes.get(&class) {
            Some(known) => *known,
            None => {
                let ranges = self.ast.class(class);
                self.fuel.spend(ranges.ranges().len() as u64)?;
                let made = self.class_expr(ranges);
                self.classes.insert(class, made);
                made
            }
        };
        let next = self.exprs.concat(&[class, ExprId::ANY]);
        let wanted = if end { self.exprs.or(&[next, ExprId::EPSILON]) } else { next };
        Ok(rest.map(|_, expr| match wanted {
            ExprId::EPSILON if self.exprs.nullable(expr) => ExprId::EPSILON,
            ExprId::EPSILON => ExprId::NEVER,
            _ => self.exprs.and(&[expr, wanted]),
        }))
    }

    fn look_ahead(&mut self, body: NodeId, negative: bool, rest: &Rest) -> Result<Rest> {
        let anything = rest.map(|_, _| ExprId::ANY);
        let wanted = self.step(body, anything)?;
        Ok(rest.zip(&wanted, |expr, wanted| {
            let wanted = if negative { self.exprs.not(wanted) } else { wanted };
            self.exprs.and(&[expr, wanted])
        }))
    }

    /// Counted repetitions are written out; see the module for the others.
    fn repeat(&mut self, item: NodeId, min: u64, max: Option<u64>, rest: Rest) -> Result<Rest> {
        let mut before = match max {
            None => self.star(item, &rest)?,
            Some(_) => rest.clone(),
        };
        for _ in min..max.unwrap_or(min) {
            let again = self.step(item, before.clone())?;
            let longer = rest.zip(&again, |a, b| self.exprs.or(&[a, b]));
            if longer == before {
                break;
            }
            before = self.paid(longer)?;
        }
        for _ in 0..min {
            let again = self.step(item, before.clone())?;
            if again == before {
                break;
            }
            before = again;
        }
        Ok(before)
    }

    /// `step(x*, K)`.
    fn star(&mut self, item: NodeId, rest: &Rest) -> Result<Rest> {
        let never = vec![ExprId::NEVER; self.parts.len() + 1];
        let again: Vec<ExprId> = rest
            .moved
            .iter()
            .map(|expr| {
                let nullable = self.exprs.nullable(*expr);
                self.exprs.reserve(nullable)
            })
            .collect();
        // `moved` at the start of the string is a contradiction: no code point is before it.
        let inner = Rest { fresh: never, moved: again.clone() };
        let iteration = self.step(item, inner)?.fresh;
        for context in START..again.len() {
            let body = self.exprs.or(&[rest.moved[context], iteration[context]]);
            self.exprs.define(again[context], body);
        }
        let fresh = rest.fresh.iter().zip(&iteration);
        let fresh = fresh.map(|(expr, iteration)| self.exprs.or(&[*expr, *iteration])).collect();
        Ok(Rest { fresh, moved: again })
    }

    /// `step` of a node without assertions.
    fn plain_step(&mut self, id: NodeId, rest: &Rest) -> Result<Rest> {
        let expr = self.plain[id.index()];
        let parts = &rest.moved[START + 1..];
        let uniform = parts.iter().all(|part| *part == parts[0]);
        let same = |exprs: &[ExprId]| exprs.iter().all(|expr| *expr == parts[0]);
        let nullable = self.exprs.nullable(expr);
        if uniform && (!nullable || (same(&rest.fresh) && same(&rest.moved))) {
            let before = self.exprs.concat(&[expr, parts[0]]);
            return Ok(rest.map(|_, _| before));
        }
        let taken = if uniform {
            let expr = self.ending_node(id, None, 0)?;
            self.exprs.concat(&[expr, parts[0]])
        } else {
            let mut branches = Vec::new();
            for (part, rest) in parts.iter().enumerate() {
                self.fuel.spend(1)?;
                let expr = self.ending_node(id, Some(part), 0)?;
                branches.push(self.exprs.concat(&[expr, *rest]));
            }
            self.exprs.or(&branches)
        };
        Ok(rest.map(|_, expr| if nullable { self.exprs.or(&[taken, expr]) } else { taken }))
    }

    /// The strings of a node without assertions that end in a part of the alphabet, or if `None`
    /// just are not empty. Splits the last piece of the node so that the result stays small.
    fn ending_node(&mut self, id: NodeId, part: Option<usize>, depth: usize) -> Result<ExprId> {
        if let Some(known) = self.endings.get(&(id, part)) {
            return Ok(*known);
        }
        self.fuel.spend(1)?;
        let ast = self.ast;
        let whole = self.plain[id.index()];
        let found = match (ast.node(id), part) {
            (Node::Empty, _) => ExprId::NEVER,
            (Node::Class(_), None) => whole,
            (Node::Class(class), Some(part)) => {
                let mut class = ast.class(*class).clone();
                class.intersect(&self.parts[part]);
                self.class_expr(&class)
            }
            (Node::Repeat { item, min, max }, _) if depth < ENDING_DEPTH && *max != Some(0) => {
                let last = self.ending_node(*item, part, depth + 1)?;
                let item = self.plain[item.index()];
                let min = if self.exprs.nullable(item) { 0 } else { (*min).max(1) - 1 };
                let others = self.exprs.repeat(item, min, max.map(|max| max - 1));
                self.exprs.concat(&[others, last])
            }
            (Node::Concat(items), _) if depth < ENDING_DEPTH => {
                self.ending_concat(items, part, depth)?
            }
            (Node::Alt(items), _) if depth < ENDING_DEPTH => {
                let mut branches = Vec::with_capacity(items.len());
                for item in items {
                    branches.push(self.ending_node(*item, part, depth + 1)?);
                }
                self.exprs.or(&branches)
            }
            (_, None) => self.not_empty(whole),
            (_, Some(part)) => self.ending_in(whole, part),
        };
        self.endings.insert((id, part), found);
        Ok(found)
    }

    fn ending_concat(
        &mut self,
        items: &[NodeId],
        part: Option<usize>,
        depth: usize,
    ) -> Result<ExprId> {
        let mut branches = Vec::new();
        for (at, item) in items.iter().enumerate().rev() {
            self.fuel.spend(2 * at as u64)?;
            let last = self.ending_node(*item, part, depth + 1)?;
            let mut pieces: Vec<ExprId> =
                items[..at].iter().map(|item| self.plain[item.index()]).collect();
            pieces.push(last);
            branches.push(self.exprs.concat(&pieces));
            if !self.exprs.nullable(self.plain[item.index()]) {
                break;
            }
        }
        Ok(self.exprs.or(&branches))
    }

    fn not_empty(&mut self, expr: ExprId) -> ExprId {
        let some = self.exprs.concat(&[ExprId::ANY_CHAR, ExprId::ANY]);
        match expr {
            ExprId::ANY => some,
            _ => self.exprs.and(&[expr, some]),
        }
    }

    fn ending_in(&mut self, expr: ExprId, part: usize) -> ExprId {
        let last = self.class_expr(&self.parts[part].clone());
        let wanted = self.exprs.concat(&[ExprId::ANY, last]);
        match expr {
            ExprId::ANY => wanted,
            _ => self.exprs.and(&[expr, wanted]),
        }
    }
}

fn intersects(part: &ClassUnicode, class: &ClassUnicode) -> bool {
    let mut both = part.clone();
    both.intersect(class);
    !both.ranges().is_empty()
}

fn unsupported_look_behind() -> Error {
    let keyword = "look-behind".to_owned();
    let message = "a look-behind of more than one character inside a group or after another \
                   assertion is not supported";
    Error::new(Kind::Unsupported { keyword }, message)
        .help("move it out of the group, or look at one character only")
}
