//! Sets of JSON values, by what they are built from, before anyone looks inside.
//!
//! A [`SetId`] is "the values that the schema at this place allows", or an intersection, union or
//! complement of such sets. Equal definitions have equal ids, and obvious ones fold at once:
//! `a ∩ a = a`, `a ∩ ¬a = ∅`, `¬¬a = a`. What a set contains is worked out when somebody asks
//! ([`super::normal`]), so a recursive schema is a finite graph of ids: the intersection of two
//! recursive schemas asks for the intersection of the same pair again and gets the same id.

use super::json::At;
use super::resolve::ScopeId;
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;
use std::rc::Rc;

/// A set of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SetId(pub u32);

impl SetId {
    /// No value.
    pub const NEVER: SetId = SetId(0);
    /// Every value.
    pub const ANY: SetId = SetId(1);
}

/// The types that `type` names, in the order of their sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kinds {
    Null,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Object,
}

impl Kinds {
    pub const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Number,
        Self::Integer,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// The set of its values.
    pub fn set(self) -> SetId {
        SetId(2 + self as u32)
    }
}

/// How a set is defined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Def {
    Never,
    Any,
    /// All values of a type.
    Kind(Kinds),
    /// What the schema at a place allows, entered with a dynamic scope.
    Schema(At, ScopeId),
    /// The one value at a place.
    Value(At),
    /// The values in all of the sets (two or more, no nested `And`).
    And(Rc<[SetId]>),
    /// The values in any of the sets (two or more, no nested `Or`).
    Or(Rc<[SetId]>),
    Not(SetId),
}

/// The table of all sets.
#[derive(Debug)]
pub(super) struct Sets {
    defs: Vec<Def>,
    index: HashMap<Def, SetId>,
    /// Schemas entered without a dynamic scope, by place: 0 is none yet, else the id plus one.
    places: Vec<u32>,
    /// Members looked at since [`Sets::take_work`].
    work: Cell<u64>,
}

/// Up to how many members lists are searched as they are.
const FEW: usize = 16;

impl Sets {
    /// A table with the constants, for an arena of this many values.
    pub fn new(values: usize) -> Self {
        let mut defs = vec![Def::Never, Def::Any];
        defs.extend(Kinds::ALL.map(Def::Kind));
        Self { defs, index: HashMap::new(), places: vec![0; values], work: Cell::new(0) }
    }

    /// The work done since the last call: fuel to be spent.
    pub fn take_work(&mut self) -> u64 {
        self.work.take()
    }

    /// Counts members that were looked at.
    pub fn worked(&self, members: usize) {
        self.work.set(self.work.get() + members as u64);
    }

    /// The definition of a set.
    pub fn def(&self, set: SetId) -> &Def {
        self.defs.get(set.0 as usize).unwrap_or(&Def::Never)
    }

    /// How many sets there are.
    pub fn len(&self) -> usize {
        self.defs.len()
    }

    fn push(&mut self, def: Def) -> SetId {
        self.defs.push(def);
        SetId(self.defs.len() as u32 - 1)
    }

    fn intern(&mut self, def: Def) -> SetId {
        if let Some(&id) = self.index.get(&def) {
            return id;
        }
        let id = self.push(def.clone());
        self.index.insert(def, id);
        id
    }

    /// What the schema at `at` allows.
    pub fn schema(&mut self, at: At, scope: ScopeId) -> SetId {
        if scope != 0 {
            return self.intern(Def::Schema(at, scope));
        }
        if self.places.len() <= at as usize {
            self.places.resize(at as usize + 1, 0);
        }
        if self.places[at as usize] == 0 {
            let id = self.push(Def::Schema(at, 0));
            self.places[at as usize] = id.0 + 1;
        }
        SetId(self.places[at as usize] - 1)
    }

    /// The value at `at` alone.
    pub fn value(&mut self, at: At) -> SetId {
        self.intern(Def::Value(at))
    }

    /// The complement.
    pub fn not(&mut self, set: SetId) -> SetId {
        match self.def(set) {
            Def::Never => SetId::ANY,
            Def::Any => SetId::NEVER,
            Def::Not(inner) => *inner,
            _ => self.intern(Def::Not(set)),
        }
    }

    /// The intersection of two.
    pub fn and(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == SetId::ANY || a == SetId::NEVER {
            return a;
        }
        if a == SetId::ANY || b == SetId::NEVER {
            return b;
        }
        let Some(members) = self.merge(a, b, true) else { return SetId::NEVER };
        self.intern(Def::And(members))
    }

    /// Whether `a` is within `b`, as the definitions tell: every member of the intersection that `b`
    /// is belongs to the one that `a` is.
    pub fn within(&self, a: SetId, b: SetId) -> bool {
        if a == b || a == SetId::NEVER || b == SetId::ANY {
            return true;
        }
        match (self.def(a), self.def(b)) {
            (Def::And(inner), Def::And(outer)) => {
                if outer.len() > inner.len() {
                    return false;
                }
                self.holds_all(inner, outer)
            }
            (Def::And(inner), _) => {
                self.worked(inner.len() / 8);
                inner.contains(&b)
            }
            _ => false,
        }
    }

    fn holds_all(&self, inner: &[SetId], outer: &[SetId]) -> bool {
        let mut seek = Seek::new(inner);
        let all = outer.iter().all(|set| seek.find(|own| own == set).is_some());
        self.worked(seek.work());
        all
    }

    /// The union of two.
    pub fn or(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == SetId::NEVER || a == SetId::ANY {
            return a;
        }
        if a == SetId::NEVER || b == SetId::ANY {
            return b;
        }
        let Some(members) = self.merge(a, b, false) else { return SetId::ANY };
        self.intern(Def::Or(members))
    }

    /// The members of both, in order, each once; `None` if one is the complement of another.
    fn merge(&self, a: SetId, b: SetId, and: bool) -> Option<Rc<[SetId]>> {
        let (one, two) = ([a], [b]);
        let members = |set: SetId| match (self.def(set), and) {
            (Def::And(members), true) | (Def::Or(members), false) => Some(members),
            _ => None,
        };
        let first = members(a).map_or(&one[..], |members| members);
        let second = members(b).map_or(&two[..], |members| members);
        let many = first.len() > FEW;
        self.worked(first.len() * if many { 3 } else { 1 } + 4 * second.len());
        let known: HashSet<SetId> = first.iter().copied().filter(|_| many).collect();
        let has = |set: &SetId| if many { known.contains(set) } else { first.contains(set) };
        let mut out = first.to_vec();
        for member in second {
            let opposite = match self.def(*member) {
                Def::Not(inner) => Some(*inner),
                _ => self.index.get(&Def::Not(*member)).copied(),
            };
            if opposite.is_some_and(|opposite| has(&opposite)) {
                return None;
            }
            if !has(member) {
                out.push(*member);
            }
        }
        Some(out.into())
    }
}

/// Looks for members of a list, each from where the one before it was found: lists of one origin have the
/// same members in the same order.
pub(super) struct Seek<'l, T> {
    list: &'l [T],
    at: usize,
    steps: usize,
}

impl<'l, T> Seek<'l, T> {
    pub fn new(list: &'l [T]) -> Self {
        Self { list, at: 0, steps: 0 }
    }

    /// A member that passes the test.
    pub fn find(&mut self, test: impl Fn(&T) -> bool) -> Option<&'l T> {
        let (before, after) = self.list.split_at(self.at);
        let found = after.iter().position(&test).map(|i| self.at + i);
        let found = found.or_else(|| before.iter().position(&test));
        self.steps += 8 + match found {
            Some(next) if next >= self.at => next - self.at,
            _ => self.list.len(),
        };
        let next = found?;
        self.at = next + 1;
        self.list.get(next)
    }

    /// The work that it was, for [`Sets::worked`].
    pub fn work(&self) -> usize {
        self.steps / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_any_order_and_cost_what_they_cost() {
        let list: Vec<usize> = (0..100).collect();
        let mut seek = Seek::new(&list);
        assert!((0..100).all(|i| seek.find(|&own| own == i) == Some(&i)));
        assert_eq!(seek.work(), 100);
        let mut seek = Seek::new(&list);
        assert!((0..100).rev().all(|i| seek.find(|&own| own == i) == Some(&i)));
        assert!(seek.find(|&own| own == 100).is_none());
        assert_eq!(seek.work(), 101 + (99 + 100 * 100) / 8);
    }

    #[test]
    fn equal_definitions_are_equal_and_the_obvious_folds() {
        let mut sets = Sets::new(9);
        let (a, b, c) = (sets.schema(1, 0), sets.schema(2, 0), sets.schema(3, 0));
        assert_eq!(a, sets.schema(1, 0));
        let not_a = sets.not(a);
        assert_eq!(sets.not(not_a), a);
        assert_eq!(sets.and(a, not_a), SetId::NEVER);
        assert_eq!(sets.or(not_a, a), SetId::ANY);
        assert_eq!(sets.and(a, SetId::ANY), a);
        assert_eq!(sets.or(a, SetId::NEVER), a);
        let ab = sets.and(a, b);
        let abc = sets.and(ab, c);
        let bc = sets.and(b, c);
        assert_eq!(sets.and(a, bc), abc);
        assert_eq!(sets.and(abc, b), abc);
        assert!(sets.within(abc, bc) && sets.within(abc, a) && !sets.within(a, abc));
        assert_eq!(sets.and(abc, not_a), SetId::NEVER);
        assert_ne!(sets.or(a, b), ab);
    }
}
