//! Sets of objects: shapes, their intersection and complement.
//!
//! An [`ObjectShape`] is one conjunction: a set for each *named* property, one for each *class* of
//! other keys (the classes are disjoint; a name is in no class), one for the *rest* of the keys, bounds
//! of the number of properties, "if this key then that key", and "some key of these has a value in
//! this set" (which no keyword says, but the complement of one does). A forbidden property has the
//! empty set.
//!
//! Overlapping patterns become disjoint classes by intersection: `^a` → S and `b$` → T give
//! `^a ∖ b$` → S, `^a ∩ b$` → S ∩ T, `b$ ∖ ^a` → T.
//!
//! The complement of a shape is a union with one member per condition: `{"required":["a"],
//! "properties":{"a":S,"b":T}}` fails when `a` is absent or outside S (one shape: `a` optional and
//! outside S), or when `b` is there with a value outside T.

use super::array::least;
use super::names::Name;
use super::normal::Compiler;
use super::sets::{Seek, SetId};
use super::text::Text;
use crate::error::Result;
use hashbrown::HashMap;

/// What a shape says about one property.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Named {
    pub name: Name,
    pub set: SetId,
    pub required: bool,
}

/// A conjunction of conditions on an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObjectShape {
    pub named: Vec<Named>,
    pub classes: Vec<(Text, SetId)>,
    pub rest: SetId,
    pub min: u64,
    pub max: Option<u64>,
    /// Where the first is, the second must be.
    pub dependent: Vec<(Name, Name)>,
    /// Some key out of these has a value in this set.
    pub exists: Vec<(Text, SetId)>,
}

impl ObjectShape {
    /// All objects.
    pub fn any() -> Self {
        Self {
            named: Vec::new(),
            classes: Vec::new(),
            rest: SetId::ANY,
            min: 0,
            max: None,
            dependent: Vec::new(),
            exists: Vec::new(),
        }
    }

    pub fn is_any(&self) -> bool {
        self.named.is_empty()
            && self.classes.is_empty()
            && self.rest == SetId::ANY
            && self.min == 0
            && self.max.is_none()
            && self.dependent.is_empty()
            && self.exists.is_empty()
    }

    /// All objects in which `name` is present with a value in `set` (or, not required, absent).
    pub fn with(name: Name, set: SetId, required: bool) -> Self {
        Self { named: vec![Named { name, set, required }], ..Self::any() }
    }

    /// Whether keys other than the named ones are allowed.
    fn open(&self) -> bool {
        self.rest != SetId::NEVER || self.classes.iter().any(|class| class.1 != SetId::NEVER)
    }

    fn names(&self) -> Vec<Name> {
        self.named.iter().map(|named| named.name).collect()
    }
}

/// Finds named properties: by search, or by a map where there are many.
struct Lookup<'a> {
    named: &'a [Named],
    map: Option<HashMap<Name, usize>>,
}

impl<'a> Lookup<'a> {
    fn new(named: &'a [Named]) -> Self {
        let map = (named.len() > 24)
            .then(|| named.iter().enumerate().map(|(i, n)| (n.name, i)).collect());
        Self { named, map }
    }

    fn get(&self, name: Name) -> Option<&'a Named> {
        match &self.map {
            Some(map) => map.get(&name).and_then(|&i| self.named.get(i)),
            None => self.named.iter().find(|named| named.name == name),
        }
    }
}

/// Replaces or adds what a shape says about a name.
pub(super) fn put(shape: &mut ObjectShape, named: Named) {
    match shape.named.iter_mut().find(|own| own.name == named.name) {
        Some(own) => *own = named,
        None => shape.named.push(named),
    }
}

impl Compiler<'_> {
    /// Whether `a` has everything that `b` has, as far as definitions tell.
    pub fn covers_object(&mut self, a: &ObjectShape, b: &ObjectShape) -> Result<bool> {
        let work = self.sets.take_work();
        self.fuel.spend(1 + work / 4)?;
        if b.named.len() < a.named.len()
            || a.min > b.min
            || a.max.is_some_and(|max| b.max.is_none_or(|own| own > max))
            || !a.exists.iter().all(|e| b.exists.contains(e))
            || !a.dependent.iter().all(|d| b.dependent.contains(d))
            || a.classes != b.classes
            || !self.sets.within(b.rest, a.rest)
        {
            return Ok(false);
        }
        let mut seek = Seek::new(&b.named);
        let inside = a.named.iter().all(|own| {
            let other = seek.find(|other| other.name == own.name);
            other.is_some_and(|other| {
                (!own.required || other.required) && self.sets.within(other.set, own.set)
            })
        });
        self.sets.worked(seek.work());
        if !inside {
            return Ok(false);
        }
        let mut seek = Seek::new(&a.named);
        let mut covers = true;
        for own in &b.named {
            if covers && seek.find(|other| other.name == own.name).is_none() {
                let other = self.unnamed(a, own.name)?;
                covers = self.sets.within(own.set, other);
            }
        }
        self.sets.worked(seek.work());
        Ok(covers)
    }

    /// The set of values of a key that is not named.
    pub fn unnamed(&mut self, shape: &ObjectShape, name: Name) -> Result<SetId> {
        for (keys, set) in &shape.classes {
            if keys.has(name, &mut self.tools())? {
                return Ok(*set);
            }
        }
        Ok(shape.rest)
    }

    /// The objects in both shapes; `None` if there are obviously none.
    pub fn and_objects(&mut self, a: &ObjectShape, b: &ObjectShape) -> Result<Option<ObjectShape>> {
        self.fuel.spend(8 + 2 * (a.named.len() + b.named.len()) as u64)?;
        let (in_a, in_b) = (Lookup::new(&a.named), Lookup::new(&b.named));
        let mut named = Vec::with_capacity(a.named.len() + b.named.len());
        for own in &a.named {
            let (other, required) = match in_b.get(own.name) {
                Some(other) => (other.set, other.required),
                None => (self.unnamed(b, own.name)?, false),
            };
            named.push((
                Named { name: own.name, set: SetId::ANY, required: own.required || required },
                own.set,
                other,
            ));
        }
        for own in b.named.iter().filter(|own| in_a.get(own.name).is_none()) {
            let other = self.unnamed(a, own.name)?;
            named.push((*own, other, own.set));
        }
        // Those that are required first: most shapes that exclude each other do so there.
        for (named, x, y) in named.iter_mut().filter(|n| n.0.required) {
            named.set = self.sets.and(*x, *y);
            if named.set == SetId::NEVER
                || (named.set != *x && named.set != *y && self.surely_empty(named.set)?)
            {
                return Ok(None);
            }
        }
        for (named, x, y) in named.iter_mut().filter(|n| !n.0.required) {
            named.set = self.sets.and(*x, *y);
        }
        let mut shape = ObjectShape {
            named: named.into_iter().map(|n| n.0).collect(),
            classes: self.and_classes(a, b)?,
            rest: self.sets.and(a.rest, b.rest),
            min: a.min.max(b.min),
            max: least(a.max, b.max),
            dependent: a.dependent.clone(),
            exists: a.exists.clone(),
        };
        shape.dependent.extend(b.dependent.iter().filter(|d| !a.dependent.contains(d)));
        shape.exists.extend(b.exists.iter().filter(|e| !a.exists.contains(e)).cloned());
        self.prune_object(shape)
    }

    /// The disjoint classes of the intersection.
    fn and_classes(&mut self, a: &ObjectShape, b: &ObjectShape) -> Result<Vec<(Text, SetId)>> {
        if a.classes.is_empty() && b.classes.is_empty() {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        let mut left_b: Vec<Text> = b.classes.iter().map(|class| class.0.clone()).collect();
        for (keys, set) in &a.classes {
            let mut left = keys.clone();
            for ((other, value), left_b) in b.classes.iter().zip(&mut left_b) {
                self.fuel.spend(8)?;
                let both = left.and(other, &mut self.tools())?;
                if both == Text::None {
                    continue;
                }
                out.push((both, self.sets.and(*set, *value)));
                left = self.without(&left, other)?;
                *left_b = self.without(left_b, keys)?;
            }
            if left != Text::None {
                out.push((left, self.sets.and(*set, b.rest)));
            }
        }
        for (left, (_, set)) in left_b.into_iter().zip(&b.classes) {
            if left != Text::None {
                out.push((left, self.sets.and(*set, a.rest)));
            }
        }
        self.check_count("classes of keys", out.len(), 1024)?;
        let rest = self.sets.and(a.rest, b.rest);
        out.retain(|class| class.1 != rest);
        Ok(out)
    }

    /// The keys in `a` and not in `b`.
    fn without(&mut self, a: &Text, b: &Text) -> Result<Text> {
        if a == b {
            return Ok(Text::None);
        }
        let outside = b.not(&mut self.tools())?;
        a.and(&outside, &mut self.tools())
    }

    /// The shape, tidied; `None` if obviously no object has it.
    pub fn prune_object(&mut self, mut shape: ObjectShape) -> Result<Option<ObjectShape>> {
        if !self.prune_dependent(&mut shape)? {
            return Ok(None);
        }
        if !shape.exists.is_empty() && !self.prune_exists(&mut shape)? {
            return Ok(None);
        }
        let mut required = 0u64;
        for named in &shape.named {
            required += u64::from(named.required);
            if named.required && named.set == SetId::NEVER {
                return Ok(None);
            }
        }
        if shape.max.is_some_and(|max| max < required.max(shape.min)) {
            return Ok(None);
        }
        if shape.max == Some(required) {
            shape.named.retain(|named| named.required);
            shape.classes.clear();
            shape.rest = SetId::NEVER;
        }
        if !shape.open() {
            shape.classes.clear();
            shape.named.retain(|named| named.set != SetId::NEVER);
            let possible = shape.named.len() as u64;
            if possible < shape.min {
                return Ok(None);
            }
            if possible == shape.min {
                shape.named.iter_mut().for_each(|named| named.required = true);
            }
            shape.max = shape.max.filter(|&max| max < possible);
        }
        if shape.min <= required {
            shape.min = 0;
        }
        Ok(Some(shape))
    }

    /// Draws the consequences of the dependencies; false if they cannot be met.
    fn prune_dependent(&mut self, shape: &mut ObjectShape) -> Result<bool> {
        let mut changed = !shape.dependent.is_empty();
        while changed {
            changed = false;
            for (a, b) in std::mem::take(&mut shape.dependent) {
                self.fuel.spend(2 + shape.named.len() as u64 / 8)?;
                let (first, second) = (self.named(shape, a)?, self.named(shape, b)?);
                if first.set == SetId::NEVER || second.required {
                    continue;
                }
                if first.required {
                    put(shape, Named { required: true, ..second });
                    changed = true;
                } else if second.set == SetId::NEVER {
                    put(shape, Named { set: SetId::NEVER, ..first });
                    changed = true;
                } else {
                    shape.dependent.push((a, b));
                }
            }
        }
        Ok(shape.named.iter().all(|named| !named.required || named.set != SetId::NEVER))
    }

    /// What the shape says about a name, named or not.
    fn named(&mut self, shape: &ObjectShape, name: Name) -> Result<Named> {
        match shape.named.iter().find(|named| named.name == name) {
            Some(named) => Ok(*named),
            None => Ok(Named { name, set: self.unnamed(shape, name)?, required: false }),
        }
    }

    /// Settles what can be settled of "some key has"; false if it cannot be met.
    fn prune_exists(&mut self, shape: &mut ObjectShape) -> Result<bool> {
        let mut kept = Vec::new();
        for (keys, set) in std::mem::take(&mut shape.exists) {
            self.fuel.spend(4 + shape.named.len() as u64)?;
            let mut candidates = Vec::new();
            let mut met = false;
            for i in 0..shape.named.len() {
                let named = shape.named[i];
                if named.set == SetId::NEVER || !keys.has(named.name, &mut self.tools())? {
                    continue;
                }
                let both = self.sets.and(named.set, set);
                met |= named.required && both == named.set;
                let changed = both != named.set && both != set;
                if both != SetId::NEVER && !(changed && self.surely_empty(both)?) {
                    candidates.push((i, both));
                }
            }
            if met {
                continue;
            }
            let elsewhere = self.room_elsewhere(shape, &keys, set)?;
            match candidates.as_slice() {
                [] if !elsewhere => return Ok(false),
                [(i, both)] if !elsewhere => {
                    shape.named[*i].set = *both;
                    shape.named[*i].required = true;
                    if self.surely_empty(*both)? {
                        return Ok(false);
                    }
                }
                _ => kept.push((keys, set)),
            }
        }
        shape.exists = kept;
        Ok(true)
    }

    /// Whether a key that is not named may be in `keys` and have a value in `set`.
    fn room_elsewhere(&mut self, shape: &ObjectShape, keys: &Text, set: SetId) -> Result<bool> {
        for region in self.regions(shape, SetId::NEVER)? {
            let both = self.sets.and(region.1, set);
            let changed = both != region.1 && both != set;
            if both != SetId::NEVER
                && region.0.and(keys, &mut self.tools())? != Text::None
                && !(changed && self.surely_empty(both)?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The keys that are not named, in disjoint classes, the rest last; without those whose values
    /// are `skip`.
    pub fn regions(&mut self, shape: &ObjectShape, skip: SetId) -> Result<Vec<(Text, SetId)>> {
        let mut out = Vec::with_capacity(shape.classes.len() + 1);
        for (keys, set) in shape.classes.iter().filter(|class| class.1 != skip) {
            let mut hit = Vec::new();
            for named in &shape.named {
                if keys.has(named.name, &mut self.tools())? {
                    hit.push(named.name);
                }
            }
            let keys = keys.and(&Text::without(hit), &mut self.tools())?;
            if keys != Text::None {
                out.push((keys, *set));
            }
        }
        if shape.rest != skip {
            let mut classes = Text::None;
            for (keys, _) in &shape.classes {
                classes = classes.or(keys, &mut self.tools())?;
            }
            let outside = classes.not(&mut self.tools())?;
            let keys = outside.and(&Text::without(shape.names()), &mut self.tools())?;
            if keys != Text::None {
                out.push((keys, shape.rest));
            }
        }
        Ok(out)
    }

    /// The objects that do not have the shape.
    pub fn not_object(&mut self, shape: &ObjectShape) -> Result<Vec<ObjectShape>> {
        let any = ObjectShape::any;
        let mut out = Vec::new();
        for named in &shape.named {
            self.fuel.spend(2)?;
            let wrong = self.sets.not(named.set);
            // A required property is violated by being absent or wrong: optional and wrong.
            if named.required || wrong != SetId::NEVER {
                out.push(ObjectShape::with(named.name, wrong, !named.required));
            }
        }
        let regions = self.regions(shape, SetId::ANY)?;
        for (keys, set) in regions {
            let wrong = self.sets.not(set);
            if wrong != SetId::NEVER {
                out.push(ObjectShape { exists: vec![(keys, wrong)], ..any() });
            }
        }
        if shape.min > 0 {
            out.push(ObjectShape { max: Some(shape.min - 1), ..any() });
        }
        if let Some(max) = shape.max {
            out.push(ObjectShape { min: max.saturating_add(1), ..any() });
        }
        for &(a, b) in &shape.dependent {
            let absent = Named { name: b, set: SetId::NEVER, required: false };
            let mut with = ObjectShape::with(a, SetId::ANY, true);
            with.named.push(absent);
            out.push(with);
        }
        for (keys, set) in &shape.exists {
            let none = self.sets.not(*set);
            let mut without = any();
            match keys {
                Text::Some(list) => {
                    without.named = list
                        .iter()
                        .map(|&name| Named { name, set: none, required: false })
                        .collect();
                }
                Text::All => without.rest = none,
                // Literal exceptions are named, so that everything else is "the rest".
                Text::Not(list) => {
                    let named = |&name: &Name| Named { name, set: SetId::ANY, required: false };
                    without.named = list.iter().map(named).collect();
                    without.rest = none;
                }
                keys => without.classes.push((keys.clone(), none)),
            }
            out.push(without);
        }
        Ok(out)
    }
}
