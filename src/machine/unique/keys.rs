//! Objects that must or must not become some value: which keys may come.

use hashbrown::HashSet;

use super::{Unique, Way};
use crate::grammar::{NodeId, ObjectSpec};
use crate::limits::Fuel;
use crate::machine::objects::{Choice, Key, Keys};
use crate::machine::program::Program;
use crate::machine::stack::Seen;
use crate::machine::states::{STEP_FUEL, Start};
use crate::machine::values::{Allow, AllowId, Value, ValueId};

impl Unique {
    /// The ways in which a key of an object can have its value, `value`; with the key the object
    /// has `seen`. `allow` says what the whole object may be.
    pub fn key_ways(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        (key, value): (&str, NodeId),
        seen: &Seen,
        allow: AllowId,
    ) -> Vec<Way> {
        let free = Way { part: AllowId::ANY, whole: AllowId::ANY, value: None };
        let mut ways = Vec::new();
        match self.values.allow(allow) {
            Allow::Any => ways.push(free),
            Allow::Only(whole) => {
                let Some(known) = self.values.get(whole).member(key) else { return ways };
                let part = self.values.only(known);
                if self.is(program, value, depth, known)
                    && self.object_is(program, (node, depth), seen.clone(), whole)
                {
                    ways.push(Way { part, whole: allow, value: Some(known) });
                }
            }
            Allow::Not(barred) => {
                let groups = self.by_part(&barred, |whole| whole.member(key));
                let bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                if self.other(program, value, depth, &bars) {
                    ways.push(Way { part: self.values.all_but(bars), ..free });
                }
                for (known, barred) in groups {
                    if self.is(program, value, depth, known)
                        && self.object_other(program, (node, depth), seen.clone(), barred.clone())
                    {
                        let (part, whole) = (self.values.only(known), self.values.all_but(barred));
                        ways.push(Way { part, whole, value: Some(known) });
                    }
                }
            }
        }
        ways
    }

    /// Whether an object under way can become another than those barred; these agree with
    /// it so far.
    pub(super) fn object_other(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: Seen,
        barred: Vec<ValueId>,
    ) -> bool {
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return false;
        };
        let mut visited = HashSet::new();
        let mut todo = vec![(seen, barred)];
        while let Some((seen, barred)) = todo.pop() {
            if barred.is_empty() {
                return true;
            }
            if !visited.insert((seen.clone(), barred.clone())) {
                continue;
            }
            let keys = table.keys(program, spec, &seen, depth);
            let ended = barred.iter().any(|&value| self.values.get(value).len() == seen.parts);
            if !self.spend() || (keys.can_close && !ended) {
                return !self.exhausted;
            }
            let names = self.names(&barred);
            for &class in &keys.classes {
                if table.other_keys(program, spec, class, &seen, &names).state.is_live() {
                    return true;
                }
            }
            let next = self.known_keys(program, (spec, &keys), &names);
            for (key, name, value) in next {
                let groups = self.by_part(&barred, |whole| whole.member(&name));
                let bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                if self.other(program, value, depth, &bars) {
                    return true;
                }
                if keys.owed.is_some_and(|owed| key != Key::Declared(owed)) {
                    // Another key must come anyway, so it may as well come first.
                    continue;
                }
                let after = table.after(program, spec, &seen, key, &name);
                for (known, barred) in groups {
                    if self.is(program, value, depth, known) {
                        todo.push((after.clone(), barred));
                    }
                }
            }
        }
        false
    }

    /// Whether an object under way can become this one, which agrees with it so far.
    pub(super) fn object_is(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: Seen,
        whole: ValueId,
    ) -> bool {
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return false;
        };
        let Value::Object(members) = self.values.get(whole) else { return false };
        let (mut left, length) = (members.to_vec(), members.len() as u64);
        // In declared order, and undeclared keys last: where the order is free, this one will do.
        let place = |key: &str| table.declared(program, key).unwrap_or(u32::MAX);
        left.sort_by_key(|member| place(&member.0));
        let mut states = vec![seen];
        for (name, value) in left {
            let mut next: Vec<Seen> = Vec::new();
            for seen in states {
                if !self.spend() {
                    return false;
                }
                if table.has(program, &seen, &name) {
                    next.push(seen);
                    continue;
                }
                let keys = table.keys(program, spec, &seen, depth);
                for (key, name, node) in
                    self.known_keys(program, (spec, &keys), std::slice::from_ref(&name))
                {
                    if self.is(program, node, depth, value) {
                        let after = table.after(program, spec, &seen, key, &name);
                        if !next.contains(&after) {
                            next.push(after);
                        }
                    }
                }
            }
            states = next;
        }
        states
            .into_iter()
            .any(|seen| seen.parts == length && table.keys(program, spec, &seen, depth).can_close)
    }

    /// The keys of some objects, each once.
    fn names(&self, objects: &[ValueId]) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = Vec::new();
        for &object in objects {
            if let Value::Object(members) = self.values.get(object) {
                names.extend(members.iter().map(|member| member.0.clone()));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The keys that may come next and are known by name, with their values: the declared ones, and
    /// those of `names` that are in a class.
    fn known_keys(
        &self,
        program: &Program,
        (spec, keys): (&ObjectSpec, &Keys),
        names: &[Box<str>],
    ) -> Vec<(Key, Box<str>, NodeId)> {
        let mut found = Vec::new();
        for &key in &keys.declared {
            let property = &spec.properties[key as usize];
            found.push((Key::Declared(key), property.name.as_str().into(), property.value));
        }
        for &class in &keys.classes {
            let other = &spec.others[class as usize];
            for name in names {
                let inside = program.states().with_exprs(|exprs| {
                    exprs.matches(other.keys, name, &mut Fuel::new(STEP_FUEL)).unwrap_or(false)
                });
                if inside {
                    found.push((Key::Other(class), name.clone(), other.value));
                }
            }
        }
        found
    }

    /// What may come next in an object that has `seen` and may not be everything: as
    /// [`ObjectTable::choice`], without the keys that lead nowhere. The keys of barred objects
    /// are terminals of their own, so that they are known when they are complete.
    pub fn choice(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: &Seen,
    ) -> Choice {
        let nothing = Choice { declared: Start::DEAD, others: Box::default(), can_close: false };
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return nothing;
        };
        let keys = table.keys(program, spec, seen, depth);
        let can_close = keys.can_close && self.may_end(seen.allow, seen.parts);
        let (names, open) = match self.values.allow(seen.allow) {
            Allow::Any => (Vec::new(), true),
            Allow::Not(barred) => (self.names(&barred), true),
            Allow::Only(whole) => (self.names(&[whole]), false),
        };
        let names: Vec<Box<str>> =
            names.into_iter().filter(|name| !table.has(program, seen, name)).collect();
        let mut declared = Vec::new();
        let mut literals: Vec<(u32, Vec<Box<str>>)> = Vec::new();
        for (key, name, value) in self.known_keys(program, (spec, &keys), &names) {
            let after = table.after(program, spec, seen, key, &name);
            if self.key_ways(program, (node, depth), (&name, value), &after, seen.allow).is_empty()
            {
                continue;
            }
            match key {
                Key::Declared(key) => declared.push(key),
                Key::Other(class) => match literals.iter_mut().find(|known| known.0 == class) {
                    Some(known) => known.1.push(name),
                    None => literals.push((class, vec![name])),
                },
            }
        }
        let mut others = Vec::new();
        for &class in keys.classes.iter().filter(|_| open) {
            others.push((class, table.other_keys(program, spec, class, seen, &names)));
        }
        for (class, names) in literals {
            let texts: Vec<&str> = names.iter().map(|name| &**name).collect();
            let expr = program.states().with_exprs(|exprs| exprs.literals(&texts));
            others.push((class, program.states().start_string(expr).unwrap_or(Start::DEAD)));
        }
        others.retain(|other| other.1.state.is_live());
        Choice {
            declared: table.declared_start(program, spec, &declared),
            others: others.into(),
            can_close,
        }
    }
}
