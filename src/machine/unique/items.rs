//! Arrays that must or must not become some value: which items may come.

use hashbrown::HashSet;

use super::{ArrayAt, Unique, Way};
use crate::grammar::NodeId;
use crate::machine::program::Program;
use crate::machine::stack::Tally;
use crate::machine::values::{Allow, AllowId, Value, ValueId};

impl Unique {
    /// The ways in which the next item of an array can be `item`, after which the array has the
    /// numbers `then`. The item must differ from `taken`; `allow` says what the whole array may be.
    pub fn item_ways(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        (item, then): (NodeId, (u64, Tally)),
        taken: &[ValueId],
        allow: AllowId,
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        match self.values.allow(allow) {
            // Front-ends see to it that such arrays stand where everything is allowed.
            _ if at.spec.equal => return self.equal_ways(program, at, item, taken),
            Allow::Any => {
                if self.other(program, item, at.depth, taken) {
                    let part = self.values.all_but(taken.to_vec());
                    ways.push(Way { part, whole: AllowId::ANY, value: None });
                }
            }
            Allow::Only(whole) => {
                let value = self.values.get(whole).item(at.position);
                let Some(value) = value.filter(|value| !taken.contains(value)) else { return ways };
                let taken = with(taken, value, at.spec.unique);
                if self.is(program, item, at.depth, value)
                    && self.array_is(program, at.after(then), &taken, whole)
                {
                    let part = self.values.only(value);
                    ways.push(Way { part, whole: allow, value: Some(value) });
                }
            }
            Allow::Not(barred) => {
                let groups = self.by_part(&barred, |whole| whole.item(at.position));
                let mut bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                bars.extend_from_slice(taken);
                if self.other(program, item, at.depth, &bars) {
                    let part = self.values.all_but(bars);
                    ways.push(Way { part, whole: AllowId::ANY, value: None });
                }
                for (value, barred) in groups {
                    let left = with(taken, value, at.spec.unique);
                    if !taken.contains(&value)
                        && self.is(program, item, at.depth, value)
                        && self.array_other(program, at.after(then), left, barred.clone())
                    {
                        let (part, whole) = (self.values.only(value), self.values.all_but(barred));
                        ways.push(Way { part, whole, value: Some(value) });
                    }
                }
            }
        }
        ways
    }

    /// The ways in which the next item can be `item` in an array of which some two items must be equal
    /// and none are so far: as one of those that were there, or as another if one more may follow,
    /// which can then be equal to it.
    fn equal_ways(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        item: NodeId,
        taken: &[ValueId],
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        for &value in taken {
            if self.is(program, item, at.depth, value) {
                let part = self.values.only(value);
                ways.push(Way { part, whole: AllowId::ANY, value: Some(value) });
            }
        }
        let last = at.spec.max.is_some_and(|max| at.count + 1 >= max);
        if !last && self.other(program, item, at.depth, taken) {
            let part = self.values.all_but(taken.to_vec());
            ways.push(Way { part, whole: AllowId::ANY, value: None });
        }
        ways
    }

    /// Whether an array under way, whose items are `taken`, can become another than those barred; these
    /// agree with it so far.
    pub(super) fn array_other(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        taken: Vec<ValueId>,
        barred: Vec<ValueId>,
    ) -> bool {
        let mut todo = vec![(at, taken, barred)];
        while let Some((at, taken, barred)) = todo.pop() {
            if barred.is_empty() {
                return true;
            }
            let view = at.view(program);
            let ended = barred.iter().any(|&value| self.values.get(value).len() == at.position);
            if !self.spend() || (view.can_close() && !ended) {
                return !self.exhausted;
            }
            let groups = self.by_part(&barred, |whole| whole.item(at.position));
            let mut bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
            bars.extend_from_slice(&taken);
            for (class, count, tally) in view.items() {
                if self.other(program, class.node, at.depth, &bars) {
                    return true;
                }
                for (value, barred) in &groups {
                    if !taken.contains(value) && self.is(program, class.node, at.depth, *value) {
                        let taken = with(&taken, *value, at.spec.unique);
                        todo.push((at.after((count, tally)), taken, barred.clone()));
                    }
                }
            }
        }
        false
    }

    /// Whether an array under way can become this one, which agrees with it so far.
    pub(super) fn array_is(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        taken: &[ValueId],
        whole: ValueId,
    ) -> bool {
        let Value::Array(items) = self.values.get(whole) else { return false };
        let items = items.clone();
        let rest = items.get(usize::try_from(at.position).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let distinct: HashSet<ValueId> = taken.iter().chain(rest).copied().collect();
        if at.spec.unique && distinct.len() < taken.len() + rest.len() {
            return false;
        }
        let mut states = HashSet::from([(at.count, at.tally)]);
        for &value in rest {
            let mut next = HashSet::new();
            for (count, tally) in states {
                let here = ArrayAt { count, tally, ..at };
                for (class, count, tally) in here.view(program).items() {
                    if self.is(program, class.node, at.depth, value) {
                        next.insert((count, tally));
                    }
                }
            }
            states = next;
        }
        states
            .into_iter()
            .any(|(count, tally)| ArrayAt { count, tally, ..at }.view(program).can_close())
    }
}

/// Some values and one more, where they must differ.
fn with(taken: &[ValueId], value: ValueId, unique: bool) -> Vec<ValueId> {
    let mut taken = taken.to_vec();
    taken.extend(unique.then_some(value));
    taken
}
