//! From object shapes to grammar nodes.
//!
//! A shape becomes one [`ObjectSpec`] unless it says "some key has": then one per way to meet that. The
//! classes of other keys leave out the named ones, so that a key has one meaning only. A class with few
//! keys is listed as optional properties, so that "how many are left" is exact.

use super::emit::LISTED;
use super::names::Name;
use super::normal::Compiler;
use super::object::{Named, ObjectShape, put};
use super::sets::SetId;
use super::text::Text;
use crate::error::Result;
use crate::expr::ExprId;
use crate::grammar::{Node, ObjectSpec, OtherKeys, Property};

/// Names of properties in which a model thinks before it answers; such a property comes first.
pub const REASONING_FIELDS: [&str; 6] =
    ["reasoning", "rationale", "thinking", "explanation", "analysis", "scratchpad"];

/// The most ways to meet all of "some key has".
const WAYS: usize = 256;

/// Keys that are not named, with how many there must be.
#[derive(Clone)]
struct Region {
    keys: Text,
    set: SetId,
    min: u64,
}

impl Compiler<'_> {
    /// Adds the nodes whose union is the shape.
    pub fn object_nodes(&mut self, shape: &ObjectShape, out: &mut Vec<Node>) -> Result<()> {
        let shape = self.with_listed(shape)?;
        for shape in self.settle_named(shape)? {
            for regions in self.settle_regions(&shape)? {
                let node = self.object_node(&shape, regions)?;
                out.push(node);
            }
        }
        Ok(())
    }

    /// The shape with the keys of small classes as named properties.
    fn with_listed(&mut self, shape: &ObjectShape) -> Result<ObjectShape> {
        let mut shape = shape.clone();
        for (a, b) in shape.dependent.clone() {
            for name in [a, b] {
                if !shape.named.iter().any(|named| named.name == name) {
                    let set = self.unnamed(&shape, name)?;
                    shape.named.push(Named { name, set, required: false });
                }
            }
        }
        // Without classes the rest is all strings but a few: never small.
        if shape.classes.is_empty() {
            return Ok(shape);
        }
        for (keys, set) in self.regions(&shape, SetId::NEVER)? {
            let names = match keys {
                Text::Some(list) if list.len() <= LISTED => list.to_vec(),
                Text::Expr(expr) => match self.listed(expr)? {
                    Some(texts) => texts.iter().map(|text| self.names.intern(text)).collect(),
                    None => continue,
                },
                _ => continue,
            };
            for name in names {
                put(&mut shape, Named { name, set, required: false });
            }
        }
        Ok(shape)
    }

    /// Splits the shape until each "some key has" is met by a key that is not named, or is gone.
    fn settle_named(&mut self, shape: ObjectShape) -> Result<Vec<ObjectShape>> {
        if shape.exists.is_empty() {
            return Ok(vec![shape]);
        }
        let mut done = vec![ObjectShape { exists: Vec::new(), ..shape.clone() }];
        for (keys, set) in &shape.exists {
            let mut split = Vec::new();
            for shape in &done {
                for named in &shape.named {
                    if named.set == SetId::NEVER || !keys.has(named.name, &mut self.tools())? {
                        continue;
                    }
                    let both = self.sets.and(named.set, *set);
                    if both == SetId::NEVER || self.surely_empty(both)? {
                        continue;
                    }
                    let mut shape = shape.clone();
                    put(&mut shape, Named { set: both, required: true, ..*named });
                    split.extend(self.prune_object(shape)?);
                }
                let names = shape.named.iter().map(|named| named.name).collect();
                let others = keys.and(&Text::without(names), &mut self.tools())?;
                if others != Text::None {
                    let mut shape = shape.clone();
                    shape.exists.push((others, *set));
                    split.push(shape);
                }
            }
            self.check_count("ways to meet a negated condition", split.len(), WAYS)?;
            done = split;
        }
        Ok(done)
    }

    /// The ways to meet each "some key has" by keys that are not named.
    fn settle_regions(&mut self, shape: &ObjectShape) -> Result<Vec<Vec<Region>>> {
        let regions = self.regions(shape, SetId::NEVER)?;
        let regions = regions.into_iter().map(|(keys, set)| Region { keys, set, min: 0 }).collect();
        let mut ways: Vec<Vec<Region>> = vec![regions];
        // One key may meet several conditions: they are met one by one, or joined with an earlier one.
        for (keys, set) in &shape.exists {
            let mut split = Vec::new();
            for way in &ways {
                for i in 0..way.len() {
                    split.extend(self.demand(way, i, keys, *set, shape.exists.len() == 1)?);
                }
            }
            self.check_count("ways to meet a negated condition", split.len(), WAYS)?;
            ways = split;
        }
        Ok(ways)
    }

    /// The regions when a key of region `i` must be in `keys` with a value in `set`.
    fn demand(
        &mut self,
        way: &[Region],
        i: usize,
        keys: &Text,
        set: SetId,
        shape_has_one: bool,
    ) -> Result<Option<Vec<Region>>> {
        self.fuel.spend(8)?;
        let region = way[i].clone();
        let hit = region.keys.and(keys, &mut self.tools())?;
        let value = self.sets.and(region.set, set);
        if hit == Text::None || value == SetId::NEVER || self.surely_empty(value)? {
            return Ok(None);
        }
        let mut out = way.to_vec();
        let whole = value == region.set;
        if shape_has_one && whole {
            // What the region allows is what is asked for: only the keys are split.
            let outside = keys.not(&mut self.tools())?;
            let miss = region.keys.and(&outside, &mut self.tools())?;
            let mut pieces = vec![Region { keys: hit, set: value, min: 1 }];
            if miss != Text::None {
                pieces.push(Region { keys: miss, set: region.set, min: 0 });
            }
            out.splice(i..=i, pieces);
        } else if region.min > 0 {
            // The key that was asked for before meets this condition too.
            out[i] = Region { keys: hit, set: value, min: 1 };
        } else {
            out.push(Region { keys: hit, set: value, min: 1 });
        }
        Ok(Some(out))
    }

    fn object_node(&mut self, shape: &ObjectShape, regions: Vec<Region>) -> Result<Node> {
        let mut properties = Vec::with_capacity(shape.named.len());
        let mut index: Vec<Name> = Vec::with_capacity(shape.named.len());
        for named in shape.named.iter().filter(|named| named.set != SetId::NEVER) {
            let value = self.node(named.set);
            let name = self.names.text(named.name).to_owned();
            properties.push(Property { name, value, required: named.required });
            index.push(named.name);
        }
        let first = self.reasoning(&properties);
        if let Some(i) = first {
            if let Some(tokens) = self.options.reasoning_tokens {
                let item = properties[i].value;
                properties[i].value = self.grammar.add(Node::Within { item, tokens });
            }
            properties[..=i].rotate_right(1);
            index[..=i].rotate_right(1);
        }
        let mut others = Vec::with_capacity(regions.len());
        for region in regions {
            let keys = match &region.keys {
                Text::All => ExprId::ANY,
                keys => keys.to_expr(&mut self.tools()),
            };
            others.push(OtherKeys {
                keys,
                value: self.node(region.set),
                min: region.min,
                max: None,
            });
        }
        let position = |name| index.iter().position(|&own| own == name);
        let mut dependent = Vec::new();
        for &(a, b) in &shape.dependent {
            if let Some(a) = position(a) {
                match position(b) {
                    Some(b) => dependent.push((a as u32, b as u32)),
                    // The second can never be there, so neither can the first.
                    None => properties[a].value = crate::grammar::NodeId(0),
                }
            }
        }
        let order = self.options.property_order;
        Ok(Node::Object(ObjectSpec {
            properties,
            others,
            min: shape.min,
            max: shape.max,
            order,
            dependent,
        }))
    }

    /// The property that must come first.
    fn reasoning(&self, properties: &[Property]) -> Option<usize> {
        let is = |name: &str| properties.iter().position(|property| property.name == name);
        match &self.options.reasoning_field {
            Some(name) => is(name),
            None => properties
                .iter()
                .position(|property| REASONING_FIELDS.contains(&property.name.as_str())),
        }
    }
}
