//! Sets of arrays: shapes, their intersection and complement.
//!
//! An [`ArrayShape`] is one conjunction: a set for each of the first positions, one for all others,
//! bounds of the length, bounds of how many items (from some position on) lie in a set. The complement
//! of a shape is a union: an item in the wrong, too short, too long, too few or too many that count, two equal items.

use super::json::At;
use super::normal::Compiler;
use super::sets::SetId;
use crate::error::Result;

/// Bounds of the number of items in `set`, from position `from` on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contains {
    pub set: SetId,
    pub from: usize,
    pub min: u64,
    pub max: Option<u64>,
}

/// A conjunction of conditions on an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArrayShape {
    pub prefix: Vec<SetId>,
    pub rest: SetId,
    pub min: u64,
    pub max: Option<u64>,
    pub contains: Vec<Contains>,
    /// No two items are equal, as the keyword here says.
    pub unique: Option<At>,
    /// Some two items are equal: the keyword here is negated.
    pub equal: Option<At>,
}

impl ArrayShape {
    /// All arrays.
    pub fn any() -> Self {
        Self {
            prefix: Vec::new(),
            rest: SetId::ANY,
            min: 0,
            max: None,
            contains: Vec::new(),
            unique: None,
            equal: None,
        }
    }

    pub fn is_any(&self) -> bool {
        self.prefix.is_empty()
            && self.rest == SetId::ANY
            && self.min == 0
            && self.max.is_none()
            && self.contains.is_empty()
            && self.unique.is_none()
            && self.equal.is_none()
    }

    /// The set of the item at a position.
    pub fn item(&self, position: usize) -> SetId {
        self.prefix.get(position).copied().unwrap_or(self.rest)
    }
}

/// The smaller of two upper bounds.
pub(super) fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Compiler<'_> {
    /// The arrays in both shapes; `None` if there are obviously none.
    pub fn and_arrays(&mut self, a: &ArrayShape, b: &ArrayShape) -> Result<Option<ArrayShape>> {
        let length = a.prefix.len().max(b.prefix.len());
        self.fuel.spend(4 + length as u64)?;
        let mut contains = a.contains.clone();
        for own in &b.contains {
            if !contains.contains(own) {
                contains.push(own.clone());
            }
        }
        let prefix = (0..length).map(|i| self.sets.and(a.item(i), b.item(i))).collect();
        let shape = ArrayShape {
            prefix,
            rest: self.sets.and(a.rest, b.rest),
            min: a.min.max(b.min),
            max: least(a.max, b.max),
            contains,
            unique: a.unique.or(b.unique),
            equal: a.equal.or(b.equal),
        };
        self.prune_array(shape)
    }

    /// The shape, tidied; `None` if obviously no array has it.
    pub fn prune_array(&mut self, mut shape: ArrayShape) -> Result<Option<ArrayShape>> {
        for i in 0..shape.prefix.len() {
            let item = shape.prefix[i];
            if item == SetId::NEVER || ((i as u64) < shape.min && self.surely_empty(item)?) {
                shape.max = least(shape.max, Some(i as u64));
                break;
            }
        }
        let closed = shape.rest == SetId::NEVER
            || (shape.min > shape.prefix.len() as u64 && self.surely_empty(shape.rest)?);
        if closed {
            shape.max = least(shape.max, Some(shape.prefix.len() as u64));
        }
        if let Some(max) = shape.max
            && (max as usize) < shape.prefix.len()
        {
            shape.prefix.truncate(max as usize);
            shape.rest = SetId::NEVER;
        }
        if let Some(max) = shape.max
            && max as usize == shape.prefix.len()
        {
            shape.rest = SetId::NEVER;
        }
        shape.contains.retain(|c| c.min > 0 || c.max.is_some());
        for contains in shape.contains.clone() {
            if contains.min > 0 && !self.can_count(&shape, &contains)? {
                return Ok(None);
            }
            let from = contains.from as u64;
            let room = shape.max.map(|max| max.saturating_sub(from));
            let few = room.is_some_and(|room| room < contains.min);
            let never = contains.set == SetId::NEVER && contains.min > 0;
            if few || never || contains.max.is_some_and(|max| max < contains.min) {
                return Ok(None);
            }
            shape.min =
                shape.min.max(if contains.min > 0 { from.saturating_add(contains.min) } else { 0 });
        }
        let few = shape.max.is_some_and(|max| shape.min > max);
        Ok((!few && (shape.unique.is_none() || shape.equal.is_none())).then_some(shape))
    }

    /// Whether an item of the shape can be in the set that is asked for.
    fn can_count(&mut self, shape: &ArrayShape, contains: &Contains) -> Result<bool> {
        let behind = Some(shape.rest).filter(|&rest| rest != SetId::NEVER);
        let items: Vec<SetId> =
            shape.prefix.iter().copied().skip(contains.from).chain(behind).collect();
        for item in items {
            self.fuel.spend(2)?;
            let both = self.sets.and(item, contains.set);
            let changed = both != item && both != contains.set;
            if both != SetId::NEVER && !(changed && self.surely_empty(both)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The arrays that do not have the shape.
    pub fn not_array(&mut self, shape: &ArrayShape) -> Result<Vec<ArrayShape>> {
        let mut out = Vec::new();
        if shape.unique.is_some() {
            out.push(ArrayShape { equal: shape.unique, min: 2, ..ArrayShape::any() });
        }
        if shape.equal.is_some() {
            out.push(ArrayShape { unique: shape.equal, ..ArrayShape::any() });
        }
        if shape.min > 0 {
            out.push(ArrayShape { max: Some(shape.min - 1), ..ArrayShape::any() });
        }
        if let Some(max) = shape.max {
            out.push(ArrayShape { min: max.saturating_add(1), ..ArrayShape::any() });
        }
        for (i, &item) in shape.prefix.iter().enumerate() {
            self.fuel.spend(2 + i as u64)?;
            let wrong = self.sets.not(item);
            if wrong != SetId::NEVER {
                let mut prefix = vec![SetId::ANY; i];
                prefix.push(wrong);
                out.push(ArrayShape { prefix, min: i as u64 + 1, ..ArrayShape::any() });
            }
        }
        // When the maximum closes the shape behind its prefix, "too long" has said it already.
        let from = shape.prefix.len();
        if shape.max != Some(from as u64) {
            let wrong = self.sets.not(shape.rest);
            if wrong != SetId::NEVER {
                let contains = vec![Contains { set: wrong, from, min: 1, max: None }];
                out.push(ArrayShape { contains, ..ArrayShape::any() });
            }
        }
        for Contains { set, from, min, max } in shape.contains.clone() {
            if min == 1 {
                let outside = self.sets.not(set);
                out.push(ArrayShape {
                    prefix: vec![SetId::ANY; from],
                    rest: outside,
                    ..ArrayShape::any()
                });
            } else if min > 1 {
                let contains = vec![Contains { set, from, min: 0, max: Some(min - 1) }];
                out.push(ArrayShape { contains, ..ArrayShape::any() });
            }
            if let Some(max) = max {
                let contains = vec![Contains { set, from, min: max.saturating_add(1), max: None }];
                out.push(ArrayShape { contains, ..ArrayShape::any() });
            }
        }
        let mut kept = Vec::new();
        for shape in out {
            kept.extend(self.prune_array(shape)?);
        }
        Ok(kept)
    }
}
