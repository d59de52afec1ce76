//! The last word on emptiness: which nodes of the grammar have a finite value at all.
//!
//! The least fixpoint over the finished nodes: an alternative needs one member that has a value, an object
//! needs its required properties, an array its first items, and a node that only ever leads back to itself
//! has none. `{"properties":{"next":{"$ref":"#"}},"required":["next"]}` is empty that way; no look of bounded
//! depth can see it. Members that have no value are then taken out, so that the grammar has no dead ends.
//!
//! Cost: passes over the nodes, last to first and back, until nothing changes; two for most schemas.

use super::json::{At, Type};
use super::keywords::Keyword;
use super::normal::Compiler;
use crate::error::{Error, Kind, Result, quote};
use crate::grammar::{ArraySpec, ItemClass, Node, NodeId, ObjectSpec};
use crate::limits::Fuel;

/// Which nodes have a value.
struct Alive(Vec<bool>);

impl Alive {
    fn has(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize).copied().unwrap_or(false)
    }

    fn any(&self, classes: &[ItemClass]) -> bool {
        classes.iter().any(|class| self.has(class.node))
    }

    fn node(&self, node: &Node) -> bool {
        match node {
            Node::Never => false,
            Node::Empty | Node::Terminal(_) => true,
            Node::Seq(parts) => parts.iter().all(|&part| self.has(part)),
            Node::Alt(arms) => arms.iter().any(|&arm| self.has(arm)),
            Node::Repeat { item, min, .. } => *min == 0 || self.has(*item),
            Node::Rule(target) | Node::Within { item: target, .. } => self.has(*target),
            Node::Array(spec) => self.array(spec),
            Node::Object(spec) => self.object(spec),
        }
    }

    /// How many items there can be.
    fn room(&self, spec: &ArraySpec) -> u64 {
        let closed = spec.prefix.iter().position(|classes| !self.any(classes));
        let room = match closed {
            Some(position) => position as u64,
            None if self.any(&spec.rest) => u64::MAX,
            None => spec.prefix.len() as u64,
        };
        spec.max.map_or(room, |max| room.min(max))
    }

    fn array(&self, spec: &ArraySpec) -> bool {
        let room = self.room(spec);
        let counted = |bit: usize, classes: &[ItemClass]| {
            classes.iter().any(|class| self.has(class.node) && class.counts >> bit & 1 == 1)
        };
        let enough = spec.contains.iter().enumerate().all(|(bit, &(min, _))| {
            let within = spec.prefix.iter().take(usize::try_from(room).unwrap_or(usize::MAX));
            let first = within.filter(|classes| counted(bit, classes)).count() as u64;
            let later = if counted(bit, &spec.rest) {
                room.saturating_sub(spec.prefix.len() as u64)
            } else {
                0
            };
            first.saturating_add(later) >= min
        });
        let forced = |bit: usize, classes: &[ItemClass]| {
            !classes.iter().any(|class| self.has(class.node) && class.counts >> bit & 1 == 0)
        };
        let bounded = spec.contains.iter().enumerate().all(|(bit, &(_, max))| {
            let Some(max) = max else { return true };
            let within = spec.prefix.iter().take(usize::try_from(spec.min).unwrap_or(usize::MAX));
            let first = within.filter(|classes| forced(bit, classes)).count() as u64;
            let later = if forced(bit, &spec.rest) {
                spec.min.saturating_sub(spec.prefix.len() as u64)
            } else {
                0
            };
            first.saturating_add(later) <= max
        });
        let pair = !spec.equal || room > spec.prefix.len() as u64 + 1;
        spec.min <= room && enough && bounded && pair
    }

    fn object(&self, spec: &ObjectSpec) -> bool {
        let required =
            spec.properties.iter().all(|property| !property.required || self.has(property.value));
        let others = spec.others.iter().all(|other| other.min == 0 || self.has(other.value));
        let least: u64 = spec.others.iter().map(|other| other.min).sum::<u64>()
            + spec.properties.iter().filter(|property| property.required).count() as u64;
        let open = spec.others.iter().any(|other| self.has(other.value));
        let most =
            spec.properties.iter().filter(|property| self.has(property.value)).count() as u64;
        let bounds =
            spec.max.is_none_or(|max| max >= least.max(spec.min)) && (open || most >= spec.min);
        required && others && bounds
    }
}

fn fixpoint(nodes: &[Node], fuel: &mut Fuel) -> Result<Alive> {
    let mut alive = Alive(vec![false; nodes.len()]);
    let mut backwards = true;
    loop {
        let mut changed = false;
        for step in 0..nodes.len() {
            let i = if backwards { nodes.len() - 1 - step } else { step };
            if !alive.0[i] && alive.node(&nodes[i]) {
                alive.0[i] = true;
                changed = true;
            }
        }
        fuel.spend(nodes.len() as u64 / 2)?;
        backwards = !backwards;
        if !changed {
            return Ok(alive);
        }
    }
}

impl Compiler<'_> {
    /// Takes out of the grammar what has no value; an error if nothing is left.
    pub fn keep_satisfiable(&mut self, root: NodeId) -> Result<()> {
        let alive = fixpoint(&self.grammar.nodes, &mut self.fuel)?;
        if !alive.has(root) {
            return Err(self.unsatisfiable(&alive, root));
        }
        if alive.0.iter().skip(1).all(|&alive| alive) {
            return Ok(());
        }
        self.check_counted(&alive)?;
        for node in &mut self.grammar.nodes {
            match node {
                Node::Alt(arms) => arms.retain(|&arm| alive.has(arm)),
                Node::Array(spec) => keep_array(spec, &alive),
                Node::Object(spec) => keep_object(spec, &alive),
                _ => {}
            }
        }
        Ok(())
    }

    /// An error if items that must differ hold what has no value: [`super::extent`] counted values before this was
    /// known, so that there may be fewer.
    fn check_counted(&self, alive: &Alive) -> Result<()> {
        let nodes = &self.grammar.nodes;
        let mut visited = vec![false; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            let Node::Array(spec) = node else { continue };
            if !spec.unique || !alive.0[at] || spec.max.is_some_and(|max| max < 2) {
                continue;
            }
            let mut todo = node.children();
            while let Some(id) = todo.pop() {
                // The first node is that of nothing: its sets were known to be empty.
                if id.0 == 0 || std::mem::replace(&mut visited[id.index()], true) {
                    continue;
                }
                if alive.has(id) {
                    todo.extend(self.grammar.node(id).children());
                    continue;
                }
                let kind = Kind::Unsupported { keyword: "uniqueItems".to_owned() };
                let message =
                    "\"uniqueItems\" is not enforced for items of which some have no finite value";
                let place = self.node_origin(NodeId(at as u32)).unwrap_or(0);
                return Err(Error::new(kind, message)
                    .at(self.json.place(place))
                    .help("take out what needs itself without end, or remove \"uniqueItems\""));
            }
        }
        Ok(())
    }

    /// The error that says where nothing is allowed: as deep as requirements lead.
    fn unsatisfiable(&self, alive: &Alive, root: NodeId) -> Error {
        let (mut here, mut place) = (root, Some(0));
        let mut reason = "no value satisfies the schema here";
        for _ in 0..self.grammar.nodes.len() {
            if let Some(at) = self.node_origin(here) {
                place = Some(at);
            }
            let next = match &self.grammar.nodes[here.0 as usize] {
                Node::Rule(target) | Node::Within { item: target, .. } => Some(*target),
                Node::Object(spec) => spec
                    .properties
                    .iter()
                    .find(|property| property.required && !alive.has(property.value))
                    .map(|property| property.value),
                Node::Array(spec) => spec
                    .prefix
                    .iter()
                    .take(usize::try_from(spec.min).unwrap_or(usize::MAX))
                    .chain(
                        std::iter::once(&spec.rest).filter(|_| spec.min > spec.prefix.len() as u64),
                    )
                    .find(|classes| !alive.any(classes))
                    .and_then(|classes| classes.first())
                    .map(|class| class.node),
                _ => None,
            };
            match next {
                Some(next) if next.0 != 0 => here = next,
                Some(_) => break,
                None => {
                    if matches!(
                        self.grammar.nodes[here.0 as usize],
                        Node::Array(_) | Node::Object(_)
                    ) {
                        reason = "no value satisfies the schema here: its bounds exclude each other, or it needs itself without end";
                    }
                    break;
                }
            }
        }
        if let Some(entry) = place.and_then(|at| self.required_but_forbidden(at)) {
            let message = format!(
                "{} is required here, but \"additionalProperties\" forbids it",
                quote(self.json.text(entry))
            );
            let help = "declare it in \"properties\", or take it out of \"required\"";
            return Error::new(Kind::Unsatisfiable, message).at(self.json.place(entry)).help(help);
        }
        let error = Error::new(Kind::Unsatisfiable, reason);
        let error = error
            .help("look for conditions that exclude each other, or for recursion that is required");
        match place {
            Some(at) => error.at(self.json.place(at)),
            None => error,
        }
    }
}

impl Compiler<'_> {
    /// The entry of `required` of the schema at `at` that the `additionalProperties` beside it forbids.
    fn required_but_forbidden(&self, at: At) -> Option<At> {
        let keywords = self.keywords(at);
        let rest = keywords.get(Keyword::AdditionalProperties)?;
        // A pattern may allow it.
        if self.json.kind(rest) != Type::False || keywords.get(Keyword::PatternProperties).is_some()
        {
            return None;
        }
        let declared = keywords.get(Keyword::Properties);
        let is_declared =
            |name: &str| declared.is_some_and(|map| self.json.member(map, name).is_some());
        let mut required = self.json.items(keywords.get(Keyword::Required)?);
        required.find(|&entry| !is_declared(self.json.text(entry)))
    }
}

fn keep_array(spec: &mut ArraySpec, alive: &Alive) {
    let room = alive.room(spec);
    for classes in spec.prefix.iter_mut().chain(std::iter::once(&mut spec.rest)) {
        classes.retain(|class| alive.has(class.node));
    }
    if let Ok(room) = usize::try_from(room)
        && room < spec.prefix.len()
    {
        spec.prefix.truncate(room);
        spec.rest.clear();
        spec.max = Some(room as u64);
    }
}

fn keep_object(spec: &mut ObjectSpec, alive: &Alive) {
    spec.others.retain(|other| alive.has(other.value));
    let mut kept: Vec<bool> =
        spec.properties.iter().map(|property| alive.has(property.value)).collect();
    let is = |kept: &[bool], i: u32| kept.get(i as usize).copied().unwrap_or(false);
    // What depends on a property that cannot be there cannot be there either.
    while let Some(&(a, _)) = spec.dependent.iter().find(|&&(a, b)| is(&kept, a) && !is(&kept, b)) {
        kept[a as usize] = false;
    }
    spec.dependent.retain(|&(a, b)| is(&kept, a) && is(&kept, b));
    let before = |i: u32| kept.iter().take(i as usize).filter(|&&kept| kept).count() as u32;
    for (a, b) in &mut spec.dependent {
        (*a, *b) = (before(*a), before(*b));
    }
    let mut kept = kept.iter();
    spec.properties.retain(|_| kept.next().copied().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::super::{Options, compile};
    use crate::error::Place;

    #[track_caller]
    fn refused_at(text: &str, expected: &str, part: &str) {
        let error = compile(text, &Options::default()).unwrap_err();
        let Some(Place::Pointer { pointer, .. }) = error.place() else { panic!("{error}") };
        assert_eq!(pointer, expected, "{text}");
        assert!(error.message().contains(part), "{error}");
    }

    #[test]
    fn a_required_property_that_is_forbidden_is_named() {
        let closed = r#"{"type": "object", "properties": {"a": {"type": "null"}},
            "required": ["a", "b"], "additionalProperties": false}"#;
        refused_at(closed, "/required/1", "\"b\" is required here");
        let within =
            format!(r#"{{"type": "object", "properties": {{"x": {closed}}}, "required": ["x"]}}"#);
        refused_at(&within, "/properties/x/required/1", "\"b\" is required here");
        // Where it is declared, the reason is another one.
        let declared = r#"{"type": "object", "properties": {"a": {"type": "null"}, "b": false},
            "required": ["b"], "additionalProperties": false}"#;
        refused_at(declared, "", "no value satisfies");
        let by_pattern = r#"{"type": "object", "patternProperties": {"^b": false}, "required": ["b"],
            "additionalProperties": false}"#;
        refused_at(by_pattern, "", "no value satisfies");
    }
}
