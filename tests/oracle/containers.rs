//! Arrays and objects: what may come next, and whether they can be completed at all.

use super::{Config, Frame, Oracle, string, with};
use constrain::expr::ExprId;
use constrain::grammar::{ArraySpec, ItemClass, Node, NodeId, ObjectSpec, PropertyOrder};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// Keys of a class of undeclared ones beyond which their number does not matter.
const MANY_KEYS: usize = 64;

/// Declared keys with dependencies of which all subsets are tried.
const MAX_SUBSETS: usize = 12;

/// An undeclared key is closed: the object below has it.
pub fn note_key(config: &mut Config, key: string::Key) {
    let Some((class, key)) = key else { return };
    let object = config.iter_mut().rev().find_map(|frame| match frame {
        Frame::Object { seen, tally, next, .. } => Some((seen, tally, next)),
        _ => None,
    });
    let (seen, tally, next) = object.expect("a key stands in an object");
    seen.insert(key);
    tally[class] += 1;
    *next = usize::MAX;
}

fn classes_at(spec: &ArraySpec, count: u64) -> &[ItemClass] {
    let prefix = usize::try_from(count).ok().and_then(|at| spec.prefix.get(at));
    prefix.map_or(&spec.rest, |classes| classes)
}

fn counted(tally: &[u64], class: &ItemClass) -> Vec<u64> {
    tally.iter().enumerate().map(|(i, n)| n + u64::from(class.counts >> i & 1)).collect()
}

impl Oracle {
    pub(super) fn expand_array(
        &mut self,
        node: NodeId,
        count: u64,
        tally: &[u64],
        config: Config,
        work: &mut Vec<Config>,
    ) {
        let Node::Array(spec) = self.grammar.node(node).clone() else { panic!("an array") };
        assert!(!spec.unique, "uniqueItems is not for this oracle");
        if array_may_close(&spec, count, tally) {
            let mut closing = with(&config, [Frame::Bytes(b"]".to_vec())]);
            closing.extend((count > 0).then(|| self.blanks()));
            work.push(closing);
        }
        if spec.max.is_some_and(|max| count >= max) {
            return;
        }
        for class in classes_at(&spec, count) {
            let (count_after, tally_after) = clamped(&spec, count + 1, counted(tally, class));
            if self.is_productive(class.node)
                && self.array_completes(&spec, count + 1, &tally_after)
            {
                let array = Frame::Array { node, count: count_after, tally: tally_after };
                let mut next = with(&config, [array, Frame::Node(class.node)]);
                next.extend((count > 0).then(|| self.comma()).into_iter().flatten());
                work.push(next);
            }
        }
    }

    fn comma(&self) -> [Frame; 3] {
        [self.blanks(), Frame::Bytes(b",".to_vec()), self.blanks()]
    }

    /// Whether an array can be completed: breadth-first over (items, tallies).
    pub(super) fn array_completes(&self, spec: &ArraySpec, count: u64, tally: &[u64]) -> bool {
        let mut known = HashSet::from([clamped(spec, count, tally.to_vec())]);
        let mut open: Vec<(u64, Vec<u64>)> = known.iter().cloned().collect();
        while let Some((count, tally)) = open.pop() {
            if array_may_close(spec, count, &tally) {
                return true;
            }
            assert!(known.len() < 10_000, "an array too large for this oracle");
            if spec.max.is_some_and(|max| count >= max) {
                continue;
            }
            for class in
                classes_at(spec, count).iter().filter(|class| self.is_productive(class.node))
            {
                let next = clamped(spec, count + 1, counted(&tally, class));
                if known.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        false
    }

    pub(super) fn expand_object(
        &mut self,
        node: NodeId,
        seen: &BTreeSet<String>,
        tally: &[u64],
        next: usize,
        config: Config,
        work: &mut Vec<Config>,
    ) {
        let Node::Object(spec) = self.grammar.node(node).clone() else { panic!("an object") };
        if object_may_close(&spec, seen, tally) {
            let mut closing = with(&config, [Frame::Bytes(b"}".to_vec())]);
            closing.extend((!seen.is_empty()).then(|| self.blanks()));
            work.push(closing);
        }
        let mut member = |oracle: &Self, object: Frame, value: NodeId, key: [Frame; 2]| {
            let colon = [oracle.blanks(), Frame::Bytes(b":".to_vec()), oracle.blanks()];
            let mut config = with(&config, [object, Frame::Node(value)]);
            config.extend(colon.into_iter().chain(key));
            config.extend((!seen.is_empty()).then(|| oracle.comma()).into_iter().flatten());
            work.push(config);
        };
        for (index, property) in spec.properties.iter().enumerate() {
            let in_order = spec.order == PropertyOrder::Any || index >= next;
            if seen.contains(&property.name) || !in_order || !self.is_productive(property.value) {
                continue;
            }
            let mut after = seen.clone();
            after.insert(property.name.clone());
            if self.object_completes(&spec, &after, tally, index + 1) {
                let key = self.grammar.exprs.literal(&property.name);
                let (tally, next) = (tally.to_vec(), index + 1);
                let object = Frame::Object { node, seen: after, tally, next };
                member(self, object, property.value, string::opened(key, None));
            }
        }
        for (class, other) in spec.others.iter().enumerate() {
            let keys = self.unseen(other.keys, seen);
            let Some(some_key) = self.some_key(keys) else { continue };
            let (mut after, mut tally_after) = (seen.clone(), tally.to_vec());
            // Whether the object can be completed depends on the number of keys of a class alone.
            after.insert(some_key);
            tally_after[class] += 1;
            if self.is_productive(other.value)
                && self.object_completes(&spec, &after, &tally_after, usize::MAX)
            {
                let (seen, tally) = (seen.clone(), tally.to_vec());
                let object = Frame::Object { node, seen, tally, next };
                member(self, object, other.value, string::opened(keys, Some(class)));
            }
        }
    }

    /// The keys of a class that are not there yet.
    fn unseen(&mut self, keys: ExprId, seen: &BTreeSet<String>) -> ExprId {
        let names: Vec<&str> = seen.iter().map(String::as_str).collect();
        let exprs = &mut self.grammar.exprs;
        let taken = exprs.literals(&names);
        let free = exprs.not(taken);
        exprs.and(&[keys, free])
    }

    /// One of the shortest keys of a class.
    fn some_key(&mut self, keys: ExprId) -> Option<String> {
        let mut open = VecDeque::from([(keys, String::new())]);
        let mut known = HashSet::from([keys]);
        while let Some((expr, key)) = open.pop_front() {
            if self.grammar.exprs.nullable(expr) {
                return Some(key);
            }
            for run in self.grammar.exprs.transitions(expr, &mut self.fuel).unwrap() {
                if known.insert(run.target) {
                    open.push_back((run.target, format!("{key}{}", char::from_u32(run.first)?)));
                }
            }
        }
        None
    }

    /// Whether an object with these keys can be completed.
    pub(super) fn object_completes(
        &mut self,
        spec: &ObjectSpec,
        seen: &BTreeSet<String>,
        tally: &[u64],
        next: usize,
    ) -> bool {
        let candidates: Vec<usize> = (0..spec.properties.len())
            .filter(|&index| {
                let property = &spec.properties[index];
                let in_order = spec.order == PropertyOrder::Any || index >= next;
                in_order && !seen.contains(&property.name) && self.is_productive(property.value)
            })
            .collect();
        // How many undeclared keys can and must still come.
        let (mut can, mut must) = (0u64, 0u64);
        for (other, &have) in std::iter::zip(&spec.others, tally) {
            let keys = self.unseen(other.keys, seen);
            let left = match self.grammar.exprs.enumerate(keys, MANY_KEYS, &mut self.fuel).unwrap()
            {
                _ if !self.is_productive(other.value) => 0,
                Some(keys) => keys.len() as u64,
                None => u64::from(u32::MAX),
            };
            let room = other.max.map_or(left, |max| left.min(max.saturating_sub(have)));
            let need = other.min.saturating_sub(have);
            if need > room || other.max.is_some_and(|max| have > max) {
                return false;
            }
            (can, must) = (can + room, must + need);
        }
        let size_fits = |declared: u64| {
            let have = seen.len() as u64 + declared;
            spec.max.is_none_or(|max| have + must <= max) && have + can >= spec.min
        };
        let has = |chosen: &[usize], index: usize| {
            seen.contains(&spec.properties[index].name) || chosen.contains(&index)
        };
        let all_there = |chosen: &[usize]| {
            (0..spec.properties.len()).all(|i| !spec.properties[i].required || has(chosen, i))
                && spec
                    .dependent
                    .iter()
                    .all(|&(a, b)| !has(chosen, a as usize) || has(chosen, b as usize))
        };
        if spec.dependent.is_empty() {
            let needed = candidates.iter().filter(|&&i| spec.properties[i].required).count();
            return all_there(&candidates)
                && (needed..=candidates.len()).any(|size| size_fits(size as u64));
        }
        assert!(candidates.len() <= MAX_SUBSETS, "too many dependent keys for this oracle");
        (0..1u32 << candidates.len()).any(|subset| {
            let chosen: Vec<usize> = candidates
                .iter()
                .enumerate()
                .filter(|(bit, _)| subset >> bit & 1 == 1)
                .map(|(_, &index)| index)
                .collect();
            all_there(&chosen) && size_fits(chosen.len() as u64)
        })
    }
}

fn array_may_close(spec: &ArraySpec, count: u64, tally: &[u64]) -> bool {
    count >= spec.min
        && std::iter::zip(&spec.contains, tally)
            .all(|((min, max), n)| n >= min && max.is_none_or(|max| *n <= max))
}

/// Counts as far as they matter.
fn clamped(spec: &ArraySpec, count: u64, tally: Vec<u64>) -> (u64, Vec<u64>) {
    let count = match spec.max {
        Some(_) => count,
        None => count.min(spec.min.max(spec.prefix.len() as u64).max(1)),
    };
    let bound = |(min, max): &(u64, Option<u64>)| max.map_or(*min, |max| max.max(*min) + 1);
    let tally = std::iter::zip(&spec.contains, tally).map(|(spec, n)| n.min(bound(spec))).collect();
    (count, tally)
}

fn object_may_close(spec: &ObjectSpec, seen: &BTreeSet<String>, tally: &[u64]) -> bool {
    let there = |index: u32| seen.contains(&spec.properties[index as usize].name);
    seen.len() as u64 >= spec.min
        && spec.max.is_none_or(|max| seen.len() as u64 <= max)
        && spec
            .properties
            .iter()
            .all(|property| !property.required || seen.contains(&property.name))
        && spec.dependent.iter().all(|&(a, b)| !there(a) || there(b))
        && std::iter::zip(&spec.others, tally)
            .all(|(other, n)| *n >= other.min && other.max.is_none_or(|max| *n <= max))
}
