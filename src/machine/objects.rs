//! Which keys an object may have next, and whether it may end.
//!
//! An object is a frame with data ([`Seen`]): the declared keys it has, how many, and the
//! undeclared ones. From these [`choose`] computes a [`Choice`]: one terminal for all declared
//! keys that may come (a set of literals, as a single state), one terminal per class of
//! undeclared keys, and whether `}` may come. There are no rules per subset of keys.
//!
//! Worked example, order `declared`, keys `a`, `b` (required), `c`: at the start `a` and `b` may
//! come, not `c`, since `b` could not come after it. After `b` (cursor 2) `c` or `}`.
//!
//! Invariant (no dead ends): a key is offered only if the object can be completed after it: what
//! is still required fits under `maxProperties` and comes later in the order, and enough keys
//! are left for `minProperties`.
//!
//! Cost: linear in the number of properties for a new [`Seen`], memoised per table (for any
//! sequence) unless undeclared keys are in it (those belong to one output).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::HashMap;

use super::program::Program;
use super::stack::Seen;
use super::states::Start;
use crate::expr::{ExprId, LiteralId};
use crate::grammar::{NodeId, ObjectSpec, PropertyOrder};
use crate::limits::Fuel;

/// Look-up tables of an object.
#[derive(Debug)]
pub struct ObjectTable {
    /// All declared names, as one set of literals.
    names: ExprId,
    /// Declared names to their index, sorted.
    index: Vec<(LiteralId, u32)>,
    /// Whether the set of declared keys matters, not only the cursor and the count.
    tracked: bool,
    /// Whether keys come in declared order.
    ordered: bool,
    /// Whether the number of keys matters.
    counted: bool,
    /// Whether some class of undeclared keys has bounds.
    classed: bool,
    /// Direct consequences of each key: keys that must be there too.
    needs: HashMap<u32, Vec<u32>>,
    /// Whether every class of undeclared keys has infinitely many.
    endless: OnceLock<bool>,
    memo: Mutex<Memo>,
}

/// Fuel to find out whether a class of keys is infinite; beyond it, it counts as finite, which
/// is slower and never wrong.
const LENGTHS_FUEL: u64 = 100_000;

/// Choices by the keys seen and, near its limit, the depth.
type Memo = HashMap<(Seen, Option<u8>), Arc<Choice>>;

/// Most entries of one object's memo; beyond it choices are computed anew.
const MEMO: usize = 4_096;

/// What may come next in an object.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// A declared key; dead if none may come.
    pub declared: Start,
    /// Undeclared keys, by class.
    pub others: Box<[(u32, Start)]>,
    /// Whether the object may end.
    pub can_close: bool,
}

/// A key of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A declared one, by index.
    Declared(u32),
    /// One of a class of undeclared ones.
    Other(u32),
}

/// Which keys may come next.
#[derive(Debug)]
pub struct Keys {
    /// Declared keys, ascending.
    pub declared: Vec<u32>,
    /// Classes of undeclared keys (one may have no key left).
    pub classes: Vec<u32>,
    /// Whether the object may end.
    pub can_close: bool,
    /// A declared key that must come, if the order is free and it may come now.
    pub owed: Option<u32>,
}

impl Choice {
    /// Whether any key may come.
    pub fn any_key(&self) -> bool {
        self.declared.state.is_live() || !self.others.is_empty()
    }
}

impl ObjectTable {
    pub(super) fn new(program: &Program, spec: &ObjectSpec) -> Self {
        let names: Vec<&str> = spec.properties.iter().map(|p| p.name.as_str()).collect();
        let (names, mut index) = program.states().with_exprs(|exprs| {
            let ids = names.iter().map(|name| exprs.literal_id(name));
            let index: Vec<_> = ids.zip(0..).collect();
            (exprs.literals(&names), index)
        });
        index.sort_unstable();
        let mut needs: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(key, needed) in &spec.dependent {
            needs.entry(key).or_default().push(needed);
        }
        Self {
            names,
            index,
            tracked: spec.order == PropertyOrder::Any || !needs.is_empty(),
            ordered: spec.order == PropertyOrder::Declared,
            counted: spec.min > 0 || spec.max.is_some(),
            classed: spec.others.iter().any(|class| class.min > 0 || class.max.is_some()),
            needs,
            endless: OnceLock::new(),
            memo: Mutex::default(),
        }
    }

    /// The property with this name.
    pub fn property(&self, name: LiteralId) -> Option<u32> {
        let at = self.index.binary_search_by_key(&name, |&(id, _)| id).ok()?;
        Some(self.index[at].1)
    }

    /// Whether every class of undeclared keys has infinitely many, so that none of them ends
    /// because some were there already.
    pub fn is_endless(&self, program: &Program, spec: &ObjectSpec) -> bool {
        *self.endless.get_or_init(|| {
            let mut fuel = Fuel::new(LENGTHS_FUEL);
            program.states().with_exprs(|exprs| {
                spec.others.iter().all(|class| {
                    // Most classes are all keys but some, which needs no search.
                    exprs.is_open(class.keys)
                        || class.keys == ExprId::NEVER
                        || matches!(exprs.lengths(class.keys, &mut fuel), Ok(Some((_, None))))
                })
            })
        })
    }

    /// `seen` and one declared key more.
    pub fn with_declared(&self, seen: &Seen, key: u32) -> Seen {
        let mut next = seen.clone();
        next.cursor = if self.ordered { key + 1 } else { 0 };
        next.count = if self.counted { seen.count + 1 } else { 0 };
        if self.tracked {
            let mut bits = std::mem::take(&mut next.bits).into_vec();
            bits.resize(self.index.len().div_ceil(64), 0);
            bits[key as usize / 64] |= 1 << (key % 64);
            next.bits = bits.into_boxed_slice();
        }
        next
    }

    /// `seen` and one undeclared key more, of a class; its text may be unknown.
    pub fn with_other(
        &self,
        spec: &ObjectSpec,
        seen: &Seen,
        class: u32,
        key: Option<LiteralId>,
    ) -> Seen {
        let mut next = seen.clone();
        next.count = if self.counted { seen.count + 1 } else { 0 };
        if self.ordered {
            // Undeclared keys come last.
            next.cursor = spec.properties.len() as u32;
        }
        if self.classed {
            let mut classes = std::mem::take(&mut next.classes).into_vec();
            classes.resize(spec.others.len(), 0);
            classes[class as usize] = classes[class as usize].saturating_add(1);
            next.classes = classes.into_boxed_slice();
        }
        next.add_other(key);
        next
    }

    /// What may come after `seen`, inside `depth` containers (this object counted).
    pub fn choice(&self, program: &Program, node: NodeId, seen: &Seen, depth: u8) -> Arc<Choice> {
        let spec = program.object(node).expect("a table belongs to an object");
        let near = (!program.all_fit(depth)).then_some(depth);
        let shared = seen.others.is_empty();
        let key = (seen.clone(), near);
        let lock = || self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        if shared && let Some(choice) = lock().get(&key) {
            return Arc::clone(choice);
        }
        let choice = Arc::new(self.choose(program, spec, seen, depth));
        let mut memo = lock();
        if shared && memo.len() < MEMO {
            memo.insert(key, Arc::clone(&choice));
        }
        choice
    }

    fn choose(&self, program: &Program, spec: &ObjectSpec, seen: &Seen, depth: u8) -> Choice {
        let keys = self.keys(program, spec, seen, depth);
        let declared = self.declared_start(program, spec, &keys.declared);
        let others = keys.classes.into_iter().filter_map(|class| {
            let start = self.other_keys(program, spec, class, seen, &[]);
            start.state.is_live().then_some((class, start))
        });
        Choice { declared, others: others.collect(), can_close: keys.can_close }
    }

    /// Which keys may come after `seen`.
    pub fn keys(&self, program: &Program, spec: &ObjectSpec, seen: &Seen, depth: u8) -> Keys {
        let view = View::new(self, program, spec, seen, depth);
        let declared: Vec<u32> = (0..spec.properties.len() as u32)
            .filter(|&key| view.may_come(key) && view.completes_after(key))
            .collect();
        let classes = (0..spec.others.len() as u32).filter(|&class| view.class_may_come(class));
        let owed = view.missing.first().copied().filter(|_| !self.ordered);
        let owed = owed.filter(|key| declared.binary_search(key).is_ok());
        Keys { classes: classes.collect(), can_close: view.can_close(), declared, owed }
    }

    /// The declared property with this name.
    pub fn declared(&self, program: &Program, name: &str) -> Option<u32> {
        self.property(program.states().with_exprs(|exprs| exprs.literal_id(name)))
    }

    /// Whether a key is there already or, in declared order, comes too late.
    pub fn has(&self, program: &Program, seen: &Seen, name: &str) -> bool {
        let id = program.states().with_exprs(|exprs| exprs.literal_id(name));
        match self.property(id) {
            None => seen.others.binary_search(&id).is_ok(),
            Some(key) if self.tracked => {
                seen.bits.get(key as usize / 64).is_some_and(|word| word >> (key % 64) & 1 == 1)
            }
            Some(key) => key < seen.cursor,
        }
    }

    /// `seen` and one key more, which has this name.
    pub fn after(
        &self,
        program: &Program,
        spec: &ObjectSpec,
        seen: &Seen,
        key: Key,
        name: &str,
    ) -> Seen {
        let mut next = match key {
            Key::Declared(key) => self.with_declared(seen, key),
            Key::Other(class) => {
                let name = program.states().with_exprs(|exprs| exprs.literal_id(name));
                self.with_other(spec, seen, class, Some(name))
            }
        };
        next.parts += 1;
        next
    }

    /// The undeclared keys of a class, without those that were there already and `names`.
    pub fn other_keys(
        &self,
        program: &Program,
        spec: &ObjectSpec,
        class: u32,
        seen: &Seen,
        names: &[Box<str>],
    ) -> Start {
        let keys = spec.others[class as usize].keys;
        let expr = program.states().with_exprs(|exprs| {
            if seen.others.is_empty() && names.is_empty() {
                return keys;
            }
            let seen = seen.others.iter().map(|&id| exprs.literal_text(id).to_owned());
            let mut texts: Vec<String> = seen.collect();
            texts.extend(names.iter().map(|name| name.to_string()));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let seen = exprs.literals(&texts);
            let unseen = exprs.not(seen);
            exprs.and(&[keys, unseen])
        });
        program.states().start_string(expr).unwrap_or(Start::DEAD)
    }

    /// The required keys that are not there, if nothing else keeps the object from ending: then
    /// its shortest completion is these keys.
    pub fn plain_missing(
        &self,
        program: &Program,
        spec: &ObjectSpec,
        seen: &Seen,
        depth: u8,
    ) -> Option<Vec<u32>> {
        if !self.needs.is_empty() {
            return None;
        }
        let view = View::new(self, program, spec, seen, depth);
        let count = seen.count + view.missing.len() as u64;
        let enough = !self.counted || count >= spec.min;
        (enough && view.class_missing == 0).then_some(view.missing)
    }

    /// What a short completion does next: it ends if it can (unless it must `stay`, after a comma),
    /// else takes the first required key that may come, else a key of a class that must have more,
    /// else the cheapest key by `price`. `None` if nothing can come.
    pub fn plan(
        &self,
        program: &Program,
        spec: &ObjectSpec,
        seen: &Seen,
        depth: u8,
        stay: bool,
        price: &dyn Fn(Next) -> u64,
    ) -> Option<Next> {
        let view = View::new(self, program, spec, seen, depth);
        if !stay && view.can_close() {
            return Some(Next::Close);
        }
        let allowed = |key: &u32| view.may_come(*key) && view.completes_after(*key);
        if let Some(&key) = view.missing.iter().find(|&key| allowed(key)) {
            return Some(Next::Declared(key));
        }
        let classes = (0..spec.others.len() as u32).filter(|&class| view.class_may_come(class));
        let count = |class: u32| seen.classes.get(class as usize).copied().unwrap_or(0);
        let owed = |class: &u32| u64::from(count(*class)) < spec.others[*class as usize].min;
        if let Some(class) = classes.clone().find(owed) {
            return Some(Next::Other(class));
        }
        let declared = (0..spec.properties.len() as u32).filter(allowed).map(Next::Declared);
        declared.chain(classes.map(Next::Other)).min_by_key(|&next| price(next))
    }

    /// One terminal for the declared keys `allowed` (indices, ascending).
    pub(super) fn declared_start(
        &self,
        program: &Program,
        spec: &ObjectSpec,
        allowed: &[u32],
    ) -> Start {
        if allowed.is_empty() {
            return Start::DEAD;
        }
        let expr = program.states().with_exprs(|exprs| {
            if let [one] = *allowed {
                return exprs.literal(&spec.properties[one as usize].name);
            }
            if allowed.len() == spec.properties.len() {
                return self.names;
            }
            let index = |literal| self.property(literal).unwrap_or(u32::MAX);
            exprs.literals_filtered(self.names, &|id| allowed.binary_search(&index(id)).is_ok())
        });
        // A set of literals needs no search for emptiness, so this cannot fail.
        program.states().start_string(expr).unwrap_or(Start::DEAD)
    }
}

/// What may come next in an object, for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The closing brace.
    Close,
    /// A declared key, by index.
    Declared(u32),
    /// An undeclared key, by class.
    Other(u32),
}

/// An object in one situation: what is required, what is left.
struct View<'a> {
    table: &'a ObjectTable,
    spec: &'a ObjectSpec,
    program: &'a Program,
    seen: &'a Seen,
    depth: u8,
    /// Declared keys that must still come.
    missing: Vec<u32>,
    /// Those of them that cannot come any more.
    blocked: usize,
    /// Declared keys that may still come, by order and depth.
    left: u64,
    /// Keys of bounded classes that must still come.
    class_missing: u64,
    /// Whether an unbounded number of undeclared keys may come.
    open: bool,
}

impl<'a> View<'a> {
    fn new(
        table: &'a ObjectTable,
        program: &'a Program,
        spec: &'a ObjectSpec,
        seen: &'a Seen,
        depth: u8,
    ) -> Self {
        let count = |class: usize| u64::from(seen.classes.get(class).copied().unwrap_or(0));
        let class_missing = spec.others.iter().enumerate();
        let mut view = Self {
            table,
            spec,
            program,
            seen,
            depth,
            missing: Vec::new(),
            blocked: 0,
            left: 0,
            class_missing: class_missing.map(|(i, c)| c.min.saturating_sub(count(i))).sum(),
            open: spec.others.iter().any(|class| {
                class.max.is_none()
                    && class.keys != ExprId::NEVER
                    && program.fits(class.value, depth)
            }),
        };
        let keys = 0..spec.properties.len() as u32;
        view.left = keys.clone().filter(|&key| view.may_come(key)).count() as u64;
        let required = |key: &u32| spec.properties[*key as usize].required && !view.has(*key);
        view.missing = keys.clone().filter(required).collect();
        let causes = keys.filter(|&key| table.needs.contains_key(&key) && view.has(key));
        let consequences: Vec<u32> = causes.flat_map(|key| view.consequences(key)).collect();
        view.missing.extend(consequences);
        view.missing.sort_unstable();
        view.missing.dedup();
        view.blocked = view.missing.iter().filter(|&&key| !view.may_come(key)).count();
        view
    }

    /// Whether a declared key is there already (or, in declared order, can no longer come).
    fn has(&self, key: u32) -> bool {
        if self.table.tracked {
            let word = self.seen.bits.get(key as usize / 64).copied().unwrap_or(0);
            return word >> (key % 64) & 1 == 1;
        }
        // Everything required before the cursor is there, by construction.
        key < self.seen.cursor
    }

    /// Whether a declared key is not there, can be completed, and is not too late in the order.
    fn may_come(&self, key: u32) -> bool {
        let late = self.table.ordered && key < self.seen.cursor;
        let value = self.spec.properties[key as usize].value;
        !late && !self.has(key) && self.program.fits(value, self.depth)
    }

    /// The keys that must come because `key` does, that are not there yet.
    fn consequences(&self, key: u32) -> Vec<u32> {
        if !self.table.needs.contains_key(&key) {
            return Vec::new();
        }
        let mut found: Vec<u32> = Vec::new();
        let mut work = vec![key];
        while let Some(next) = work.pop() {
            for &needed in self.table.needs.get(&next).into_iter().flatten() {
                if needed != key && !self.has(needed) && !found.contains(&needed) {
                    found.push(needed);
                    work.push(needed);
                }
            }
        }
        found
    }

    /// Whether the object can be completed once `key` is there too.
    fn completes_after(&self, key: u32) -> bool {
        let was_missing = self.missing.binary_search(&key).is_ok();
        let mut missing = (self.missing.len() - usize::from(was_missing)) as u64;
        let declared = self.table.ordered;
        if declared && self.missing.first().is_some_and(|&first| first < key) {
            return false;
        }
        for needed in self.consequences(key) {
            if !self.may_come(needed) || (declared && needed < key) {
                return false;
            }
            missing += u64::from(self.missing.binary_search(&needed).is_err());
        }
        if self.blocked > 0 {
            return false;
        }
        let lost = if declared { self.left_before(key) } else { 0 };
        self.count_fits(missing, self.left - 1 - lost)
    }

    /// Declared keys that can no longer come once `key` does, in declared order.
    fn left_before(&self, key: u32) -> u64 {
        if self.spec.min == 0 {
            return 0;
        }
        (self.seen.cursor..key).filter(|&before| self.may_come(before)).count() as u64
    }

    /// Whether one key more, of which `missing` declared ones and the bounded classes must
    /// follow and `left` declared ones may, stays within the bounds of the count.
    fn count_fits(&self, missing: u64, left: u64) -> bool {
        let count = self.seen.count + 1;
        let most = self.spec.max.unwrap_or(u64::MAX);
        count.saturating_add(missing).saturating_add(self.class_missing) <= most
            && (self.open || count.saturating_add(left) >= self.spec.min)
    }

    fn class_may_come(&self, class: u32) -> bool {
        let spec = &self.spec.others[class as usize];
        let count = u64::from(self.seen.classes.get(class as usize).copied().unwrap_or(0));
        if spec.keys == ExprId::NEVER || !self.program.fits(spec.value, self.depth) {
            return false;
        }
        if spec.max.is_some_and(|max| count >= max) {
            return false;
        }
        let declared = self.table.ordered;
        let owed = u64::from(count < spec.min);
        let most = self.spec.max.unwrap_or(u64::MAX);
        let after = (self.seen.count + 1)
            .saturating_add(self.missing.len() as u64)
            .saturating_add(self.class_missing - owed);
        after <= most && (!declared || self.missing.is_empty())
    }

    fn can_close(&self) -> bool {
        let count = self.seen.count;
        self.missing.is_empty()
            && self.class_missing == 0
            && (!self.table.counted
                || (count >= self.spec.min && self.spec.max.is_none_or(|max| count <= max)))
    }
}
