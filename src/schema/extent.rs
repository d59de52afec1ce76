//! How many values a set has, and what that means for unique items.
//!
//! An [`Extent`] is a least number of values, and whether that is all. Infinite is [`u64::MAX`]. Objects and
//! arrays multiply what their parts have: `{"properties":{"a":{"type":"boolean"}},
//! "additionalProperties":false}` has three values. Where bounds or conditions make the count
//! difficult the extent is a lower bound.
//!
//! Items of an array are written in order, so at position `i` exactly `i` values are taken. If every
//! position that must be filled has more values than that (positions with which it has no value in
//! common do not count), an item can always be found there, and the array has no dead end whatever its items are. Otherwise the array cannot be filled (if all
//! positions have the same values), or it would have to be planned ahead, and is refused.

use super::array::ArrayShape;
use super::json::At;
use super::normal::Compiler;
use super::number;
use super::object::ObjectShape;
use super::sets::SetId;
use super::text::Text;
use crate::error::{Error, Kind, Result};
use crate::grammar::{Node, NodeId};

/// How many values there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// At least so many; [`u64::MAX`] for infinitely many.
    pub least: u64,
    /// Whether there are no more.
    pub exact: bool,
}

impl Extent {
    const INFINITE: Self = Self { least: u64::MAX, exact: true };

    pub fn exactly(least: u64) -> Self {
        Self { least, exact: true }
    }

    pub fn at_least(least: u64) -> Self {
        Self { least, exact: false }
    }

    fn plus(self, other: Self) -> Self {
        let least = self.least.saturating_add(other.least);
        Self { least, exact: self.exact && other.exact }
    }

    fn times(self, other: Self) -> Self {
        let least = self.least.saturating_mul(other.least);
        Self { least, exact: self.exact && other.exact }
    }
}

/// How deep the count looks into items and properties.
const DEPTH: u32 = 6;

impl Compiler<'_> {
    /// How many values a set has. The recursion is bounded by `depth`.
    fn extent(&mut self, set: SetId, depth: u32) -> Result<Extent> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(Extent::at_least(1)) };
        if set == SetId::NEVER {
            return Ok(Extent::exactly(0));
        }
        if set == SetId::ANY {
            return Ok(Extent::INFINITE);
        }
        let parts = self.parts(set)?;
        self.fuel.spend(4)?;
        let mut sum = Extent::exactly(parts.literals.count_ones().into());
        sum = sum.plus(self.text_extent(&parts.text)?);
        for spec in parts.numbers.specs() {
            sum = sum.plus(number::extent(&spec)?);
        }
        // Shapes may overlap: one of them is a lower bound for all.
        let mut shapes: Vec<Extent> = Vec::new();
        for shape in &parts.arrays {
            shapes.push(self.array_extent(shape, depth)?);
        }
        sum = sum.plus(union(&shapes));
        shapes.clear();
        for shape in &parts.objects {
            shapes.push(self.object_extent(shape, depth)?);
        }
        Ok(sum.plus(union(&shapes)))
    }

    fn text_extent(&mut self, text: &Text) -> Result<Extent> {
        Ok(match text {
            Text::None => Extent::exactly(0),
            Text::Some(list) => Extent::exactly(list.len() as u64),
            Text::All | Text::Not(_) => Extent::INFINITE,
            text => {
                let expr = text.to_expr(&mut self.tools());
                if let Some(list) = self.listed(expr)? {
                    return Ok(Extent::exactly(list.len() as u64));
                }
                match self.grammar.exprs.lengths(expr, &mut self.fuel)? {
                    Some((_, None)) => Extent::INFINITE,
                    // One more than are listed.
                    _ => Extent::at_least(super::emit::LISTED as u64 + 1),
                }
            }
        })
    }

    fn array_extent(&mut self, shape: &ArrayShape, depth: u32) -> Result<Extent> {
        let more = shape.rest != SetId::NEVER && !self.surely_empty(shape.rest)?;
        if shape.unique.is_some() || shape.equal.is_some() || !shape.contains.is_empty() {
            return Ok(Extent::at_least(1));
        }
        if shape.max.is_none() && more {
            return Ok(Extent::INFINITE);
        }
        let most = shape.max.unwrap_or(u64::MAX);
        let most = if more { most } else { most.min(shape.prefix.len() as u64) };
        let (mut product, mut sum) = (Extent::exactly(1), Extent::exactly(0));
        for position in 0..=most {
            self.fuel.spend(4)?;
            if position >= shape.min {
                sum = sum.plus(product);
            }
            if position == most || product.least == 0 || sum.least == u64::MAX {
                break;
            }
            if position > 1000 {
                return Ok(Extent::at_least(sum.least));
            }
            let item = shape.item(usize::try_from(position).unwrap_or(usize::MAX));
            product = product.times(self.extent(item, depth)?);
        }
        Ok(sum)
    }

    fn object_extent(&mut self, shape: &ObjectShape, depth: u32) -> Result<Extent> {
        let mut required = Extent::exactly(1);
        let mut all = Extent::exactly(1);
        let mut count = 0;
        for named in &shape.named {
            let own = self.extent(named.set, depth)?;
            if named.required {
                count += 1;
                required = required.times(own);
                all = all.times(own);
            } else {
                all = all.times(own.plus(Extent::exactly(1)));
            }
        }
        let plain = shape.min <= count
            && shape.max.is_none()
            && shape.dependent.is_empty()
            && shape.exists.is_empty();
        let mut open = shape.rest != SetId::NEVER && !self.surely_empty(shape.rest)?;
        let mut listed = true;
        for (keys, set) in &shape.classes {
            if *set == SetId::NEVER || self.surely_empty(*set)? {
                continue;
            }
            match self.text_extent(keys)? {
                Extent { least: u64::MAX, .. } => open = true,
                _ => listed = false,
            }
        }
        if open && shape.exists.is_empty() && shape.max.is_none_or(|max| max > count) {
            return Ok(Extent::INFINITE);
        }
        if plain && listed {
            return Ok(all);
        }
        Ok(Extent::at_least(required.least.max(1)))
    }

    /// Works out what `uniqueItems` means for the number of items; false if it cannot be met.
    pub fn settle_unique(&mut self, shape: &mut ArrayShape) -> Result<bool> {
        if shape.max.is_some_and(|max| max <= 1) {
            shape.unique = None;
            return Ok(true);
        }
        let mut sets = shape.prefix.clone();
        sets.extend(Some(shape.rest).filter(|&rest| rest != SetId::NEVER));
        let same = sets.iter().all(|&set| set == sets[0]);
        let needed = if same { shape.min } else { self.needed(shape, &sets)? };
        let mut least = shape.max;
        for (position, &set) in sets.iter().enumerate() {
            let extent = self.extent(set, DEPTH)?;
            // The last of the positions with this set that must be filled has the fewest left.
            let first = position as u64;
            let last = match needed {
                min if same => min,
                min if position < shape.prefix.len() => min.min(first + 1),
                min => {
                    if min > first {
                        min
                    } else {
                        0
                    }
                }
            };
            if extent.least < last
                && (same || extent.least < last.saturating_sub(self.apart(&sets[..position], set)?))
            {
                return self.too_few(shape, extent.exact && same);
            }
            if same && extent.exact && extent.least != u64::MAX {
                least = Some(least.map_or(extent.least, |max| max.min(extent.least)));
            }
        }
        for contains in shape.contains.clone() {
            for &set in sets.iter().filter(|_| contains.min > 1) {
                let both = self.sets.and(set, contains.set);
                let extent = self.extent(both, DEPTH)?;
                if extent.least < contains.min && !(extent.least == 0 && extent.exact) {
                    return self.too_few(shape, extent.exact && same);
                }
            }
        }
        if let Some(max) = least {
            shape.max = Some(max);
            shape.prefix.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        }
        Ok(true)
    }

    /// Makes sure that in an array of which some two items are equal, the last two items can be.
    pub fn settle_equal(&mut self, shape: &ArrayShape, at: At) -> Result<()> {
        let behind = shape.prefix.len() as u64 + 2;
        let room = shape.max.is_none_or(|max| max >= behind);
        if room && shape.rest != SetId::NEVER && shape.contains.is_empty() {
            return Ok(());
        }
        let message =
            "\"uniqueItems\" is negated (by not, oneOf or if) for arrays with few or counted items";
        Err(Error::new(Kind::Unsupported { keyword: "uniqueItems".to_owned() }, message)
            .at(self.json.place(at))
            .help("move \"uniqueItems\" out of the negated schema"))
    }

    /// How many items there may have to be: so many are required, or the last place at which a `contains` can be met
    /// is there. `sets` are those of the positions, and of all after them.
    fn needed(&mut self, shape: &ArrayShape, sets: &[SetId]) -> Result<u64> {
        let mut needed = shape.min;
        for contains in shape.contains.iter().filter(|contains| contains.min > 0) {
            let mut met = 0;
            for (position, &set) in (0u64..).zip(sets) {
                let both = self.sets.and(set, contains.set);
                if self.surely_empty(both)? {
                    continue;
                }
                let is_last = position == shape.prefix.len() as u64;
                let items = if is_last { contains.min - met } else { 1 };
                needed = needed.max(position.saturating_add(items));
                // Where every item meets it, no later one has to.
                let unmet = self.sets.not(contains.set);
                let others = self.sets.and(set, unmet);
                met += u64::from(self.surely_empty(others)?);
                if met == contains.min {
                    break;
                }
            }
        }
        // What may not be there need not be.
        Ok(shape.max.map_or(needed, |max| max.min(needed)))
    }

    /// An error if items that must differ, or be equal, hold arrays of which some two items must be
    /// equal: such values are not followed part by part.
    pub fn check_equal_inside(&self) -> Result<()> {
        let nodes = &self.grammar.nodes;
        let equal = |node: &Node| matches!(node, Node::Array(spec) if spec.equal);
        if !nodes.iter().any(equal) {
            return Ok(());
        }
        let mut todo: Vec<NodeId> = Vec::new();
        for node in nodes {
            if let Node::Array(spec) = node
                && (spec.unique || spec.equal)
            {
                let classes = spec.prefix.iter().flatten().chain(&spec.rest);
                todo.extend(classes.map(|class| class.node));
            }
        }
        let mut visited = vec![false; nodes.len()];
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut visited[id.index()], true) {
                continue;
            }
            match self.grammar.node(id) {
                Node::Rule(target) | Node::Within { item: target, .. } => todo.push(*target),
                Node::Alt(parts) | Node::Seq(parts) => todo.extend(parts),
                Node::Array(spec) => {
                    if spec.equal {
                        let kind = Kind::Unsupported { keyword: "uniqueItems".to_owned() };
                        let message = "\"uniqueItems\" is negated (by not, oneOf or if) inside of items that are compared";
                        let error = Error::new(kind, message)
                            .help("move \"uniqueItems\" out of the negated schema");
                        let place = self.node_origin(id).unwrap_or(0);
                        return Err(error.at(self.json.place(place)));
                    }
                    let classes = spec.prefix.iter().flatten().chain(&spec.rest);
                    todo.extend(classes.map(|class| class.node));
                }
                Node::Object(spec) => {
                    todo.extend(spec.properties.iter().map(|property| property.value));
                    todo.extend(spec.others.iter().map(|other| other.value));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// How many of some sets have nothing in common with another.
    fn apart(&mut self, sets: &[SetId], other: SetId) -> Result<u64> {
        let mut count = 0;
        for &set in sets {
            let both = self.sets.and(set, other);
            count += u64::from(self.surely_empty(both)?);
        }
        Ok(count)
    }

    fn too_few(&self, shape: &ArrayShape, surely: bool) -> Result<bool> {
        if surely {
            return Ok(false);
        }
        let kind = Kind::Unsupported { keyword: "uniqueItems".to_owned() };
        let message = "\"uniqueItems\" is not enforced where so many items are required of sets with so few values";
        Err(Error::new(kind, message)
            .at(self.json.place(shape.unique.unwrap_or(0)))
            .help("allow more values for the required items, or remove \"uniqueItems\""))
    }
}

/// The extent of a union of sets that may overlap.
fn union(shapes: &[Extent]) -> Extent {
    match shapes {
        [] => Extent::exactly(0),
        [one] => *one,
        many => {
            let least = many.iter().map(|shape| shape.least).max().unwrap_or(0);
            Extent { least, exact: least == u64::MAX }
        }
    }
}
