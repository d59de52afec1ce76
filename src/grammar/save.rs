//! A grammar as bytes: its nodes, its expressions, and what of its limits decides what matches.
//!
//! Reading trusts nothing: node and expression numbers are looked up, lists are bounded by
//! the bytes that are left, counts by what the machine can count. A file that was made by someone else is a grammar by someone
//! else, and no worse than a schema by someone else.

use super::decimal::Decimal;
use super::{
    ArraySpec, Grammar, ItemClass, Node, NodeId, NumberSpec, ObjectSpec, OtherKeys, Property,
    PropertyOrder, SpecialSpec, Terminal, Whitespace,
};
use crate::codec::{Reader, Writer, damaged};
use crate::error::{Error, Kind, Result};
use crate::expr::ExprId;
use crate::limits::{Fuel, Limits};
use crate::regex::Format;

/// Most conditions on one array, and the most that one may count to: [`ArraySpec::contains`].
const CONDITIONS: usize = 4;
const COUNTED: u64 = 60_000;

impl Grammar {
    /// Writes the grammar.
    pub(crate) fn save(&self, out: &mut Writer) -> Result<()> {
        match self.whitespace {
            Whitespace::Compact => out.size(0),
            Whitespace::Flexible => out.size(1),
            Whitespace::Pretty(width) => out.number(u64::from(width) + 2),
        }
        out.number(self.limits.output_depth);
        out.number(self.limits.number_digits);
        let mut roots = Vec::new();
        for (_, node) in self.nodes() {
            match node {
                Node::Terminal(Terminal::Text(expr) | Terminal::String(expr)) => roots.push(*expr),
                Node::Object(spec) => roots.extend(spec.others.iter().map(|class| class.keys)),
                _ => {}
            }
        }
        let numbers = self.exprs.save(&roots, out)?;
        out.size(self.len());
        out.size(self.root.index());
        for (_, node) in self.nodes() {
            save_node(node, &|expr| numbers.get(&expr).copied().unwrap_or(0), out);
        }
        Ok(())
    }

    /// Reads a grammar.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if the bytes are none; [`Kind::TooComplex`] beyond the limits.
    pub(crate) fn load(from: &mut Reader<'_>, limits: &Limits) -> Result<Self> {
        let mut fuel = Fuel::new(limits.fuel);
        let mut grammar = Grammar::new(limits.clone());
        grammar.exprs.set_limit(limits.expressions);
        grammar.whitespace = match from.number()? {
            0 => Whitespace::Compact,
            1 => Whitespace::Flexible,
            width => Whitespace::Pretty(u8::try_from(width - 2).map_err(|_| damaged("an indent"))?),
        };
        let depth = u8::try_from(from.number()?).map_err(|_| damaged("a depth"))?;
        let digits = from.small()?;
        within("levels of nesting", depth.into(), limits.output_depth.into())?;
        within("digits of a number", digits.into(), limits.number_digits.into())?;
        (grammar.limits.output_depth, grammar.limits.number_digits) = (depth, digits);
        let exprs = grammar.exprs.load(from, limits, &mut fuel)?;
        let count = from.count()?;
        within("nodes", count as u64, limits.nodes as u64)?;
        let root = NodeId(from.index(count)? as u32);
        let mut loader = Loader { from, exprs: &exprs, nodes: count, fuel, properties: 0 };
        grammar.nodes = (0..count).map(|_| loader.node(limits)).collect::<Result<_>>()?;
        grammar.set_root(root);
        Ok(grammar)
    }
}

/// That a file needs no more of something than the limits allow.
fn within(what: &'static str, value: u64, limit: u64) -> Result<()> {
    if value <= limit {
        return Ok(());
    }
    let message = format!("the saved grammar needs {value} {what}, the limit is {limit}");
    Err(Error::new(Kind::TooComplex { what, limit }, message)
        .help("raise the limit, if you trust the file"))
}

/// Kinds of nodes and terminals.
mod tag {
    pub const NEVER: u8 = 0;
    pub const EMPTY: u8 = 1;
    pub const SEQ: u8 = 2;
    pub const ALT: u8 = 3;
    pub const REPEAT: u8 = 4;
    pub const RULE: u8 = 5;
    pub const ARRAY: u8 = 6;
    pub const OBJECT: u8 = 7;
    pub const TEXT: u8 = 8;
    pub const STRING: u8 = 9;
    pub const FORMAT: u8 = 10;
    pub const NUMBER: u8 = 11;
    pub const MARGIN: u8 = 12;
    pub const SPECIAL: u8 = 13;
    pub const WITHIN: u8 = 14;
    pub const NAMED: u8 = 0;
    pub const ID: u8 = 1;
    pub const NOT: u8 = 2;
}

fn save_node(node: &Node, expr: &dyn Fn(ExprId) -> u32, out: &mut Writer) {
    let list = |nodes: &[NodeId], out: &mut Writer| {
        out.size(nodes.len());
        nodes.iter().for_each(|node| out.size(node.index()));
    };
    match node {
        Node::Never => out.number(tag::NEVER),
        Node::Empty => out.number(tag::EMPTY),
        Node::Seq(nodes) => {
            out.number(tag::SEQ);
            list(nodes, out);
        }
        Node::Alt(nodes) => {
            out.number(tag::ALT);
            list(nodes, out);
        }
        Node::Repeat { item, separator, min, max } => {
            out.number(tag::REPEAT);
            out.size(item.index());
            out.optional(separator.map(|node| node.index() as u64));
            out.number(*min);
            out.optional(*max);
        }
        Node::Rule(target) => {
            out.number(tag::RULE);
            out.size(target.index());
        }
        Node::Within { item, tokens } => {
            out.number(tag::WITHIN);
            out.size(item.index());
            out.number(*tokens);
        }
        Node::Array(spec) => {
            out.number(tag::ARRAY);
            save_array(spec, out);
        }
        Node::Object(spec) => {
            out.number(tag::OBJECT);
            save_object(spec, expr, out);
        }
        Node::Terminal(terminal) => save_terminal(terminal, expr, out),
    }
}

fn save_terminal(terminal: &Terminal, expr: &dyn Fn(ExprId) -> u32, out: &mut Writer) {
    match terminal {
        Terminal::Text(text) => {
            out.number(tag::TEXT);
            out.number(expr(*text));
        }
        Terminal::String(text) => {
            out.number(tag::STRING);
            out.number(expr(*text));
        }
        Terminal::Format(format) => {
            out.number(tag::FORMAT);
            out.text(format.name());
        }
        Terminal::Number(spec) => {
            out.number(tag::NUMBER);
            save_number(spec, out);
        }
        Terminal::Margin => out.number(tag::MARGIN),
        Terminal::Special(spec) => {
            out.number(tag::SPECIAL);
            save_special(spec, out);
        }
    }
}

/// Special tokens; negations are one deep ([`SpecialSpec::Not`] of anything else is refused when compiled).
fn save_special(spec: &SpecialSpec, out: &mut Writer) {
    let simple = |spec: &SpecialSpec, out: &mut Writer| match spec {
        SpecialSpec::Id(id) => {
            out.number(tag::ID);
            out.number(*id);
        }
        SpecialSpec::Named(name) => {
            out.number(tag::NAMED);
            out.text(name);
        }
        SpecialSpec::Not(_) => out.number(tag::NOT),
    };
    simple(spec, out);
    if let SpecialSpec::Not(specs) = spec {
        out.size(specs.len());
        specs.iter().for_each(|spec| simple(spec, out));
    }
}

fn save_number(spec: &NumberSpec, out: &mut Writer) {
    let NumberSpec { integer, min, max, multiple_of, not_multiple_of, fractional, whole, float } =
        spec;
    [integer, fractional, whole, float].into_iter().for_each(|&flag| out.flag(flag));
    for bound in [min, max] {
        out.flag(bound.is_some());
        if let Some((value, open)) = bound {
            out.text(&value.to_string());
            out.flag(*open);
        }
    }
    for units in [multiple_of, not_multiple_of] {
        out.size(units.len());
        units.iter().for_each(|unit| out.text(&unit.to_string()));
    }
}

fn save_array(spec: &ArraySpec, out: &mut Writer) {
    let ArraySpec { prefix, rest, min, max, contains, unique, equal } = spec;
    let classes = |classes: &[ItemClass], out: &mut Writer| {
        out.size(classes.len());
        for class in classes {
            out.size(class.node.index());
            out.number(class.counts);
        }
    };
    out.size(contains.len());
    for &(min, max) in contains {
        out.number(min);
        out.optional(max);
    }
    out.size(prefix.len());
    prefix.iter().for_each(|item| classes(item, out));
    classes(rest, out);
    out.number(*min);
    out.optional(*max);
    out.flag(*unique);
    out.flag(*equal);
}

fn save_object(spec: &ObjectSpec, expr: &dyn Fn(ExprId) -> u32, out: &mut Writer) {
    let ObjectSpec { properties, others, min, max, order, dependent } = spec;
    out.size(properties.len());
    for Property { name, value, required } in properties {
        out.text(name);
        out.size(value.index());
        out.flag(*required);
    }
    out.size(others.len());
    for OtherKeys { keys, value, min, max } in others {
        out.number(expr(*keys));
        out.size(value.index());
        out.number(*min);
        out.optional(*max);
    }
    out.number(*min);
    out.optional(*max);
    out.flag(*order == PropertyOrder::Any);
    out.size(dependent.len());
    for &(one, other) in dependent {
        out.number(one);
        out.number(other);
    }
}

/// The nodes of a file being read.
struct Loader<'a, 'b> {
    from: &'a mut Reader<'b>,
    /// By number in the file.
    exprs: &'a [ExprId],
    /// How many nodes there will be.
    nodes: usize,
    fuel: Fuel,
    properties: usize,
}

impl Loader<'_, '_> {
    fn id(&mut self) -> Result<NodeId> {
        Ok(NodeId(self.from.index(self.nodes)? as u32))
    }

    fn expr(&mut self) -> Result<ExprId> {
        Ok(self.exprs[self.from.index(self.exprs.len())?])
    }

    /// A list, which costs fuel by its length.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.from.count()?;
        self.fuel.spend(count as u64)?;
        (0..count).map(|_| item(self)).collect()
    }

    fn node(&mut self, limits: &Limits) -> Result<Node> {
        self.fuel.spend(2)?;
        Ok(match self.from.byte()? {
            tag::NEVER => Node::Never,
            tag::EMPTY => Node::Empty,
            tag::SEQ => Node::Seq(self.list(Self::id)?),
            tag::ALT => Node::Alt(self.list(Self::id)?),
            tag::REPEAT => {
                let item = self.id()?;
                let separator = self.from.flag()?.then(|| self.id()).transpose()?;
                Node::Repeat {
                    item,
                    separator,
                    min: self.from.number()?,
                    max: self.from.optional()?,
                }
            }
            tag::RULE => Node::Rule(self.id()?),
            tag::WITHIN => Node::Within { item: self.id()?, tokens: self.from.small()? },
            tag::ARRAY => Node::Array(self.array()?),
            tag::OBJECT => Node::Object(self.object(limits)?),
            tag => Node::Terminal(self.terminal(tag)?),
        })
    }

    fn terminal(&mut self, tag: u8) -> Result<Terminal> {
        Ok(match tag {
            tag::TEXT => Terminal::Text(self.expr()?),
            tag::STRING => Terminal::String(self.expr()?),
            tag::FORMAT => {
                let format = Format::named(self.from.text()?);
                Terminal::Format(format.ok_or_else(|| damaged("a format has no known name"))?)
            }
            tag::NUMBER => Terminal::Number(self.number()?),
            tag::MARGIN => Terminal::Margin,
            tag::SPECIAL => Terminal::Special(match self.from.byte()? {
                tag::NOT => SpecialSpec::Not(self.list(|loader| {
                    let tag = loader.from.byte()?;
                    loader.special(tag)
                })?),
                tag => self.special(tag)?,
            }),
            _ => return Err(damaged("a node is of no known kind")),
        })
    }

    fn special(&mut self, tag: u8) -> Result<SpecialSpec> {
        Ok(match tag {
            tag::NAMED => SpecialSpec::Named(self.from.text()?.to_owned()),
            tag::ID => SpecialSpec::Id(self.from.small()?),
            _ => return Err(damaged("a special token has no name")),
        })
    }

    fn decimal(&mut self) -> Result<Decimal> {
        self.fuel.spend(4)?;
        Decimal::parse(self.from.text()?).map_err(|_| damaged("a number is none"))
    }

    fn number(&mut self) -> Result<NumberSpec> {
        let mut flag = || self.from.flag();
        let (integer, fractional, whole, float) = (flag()?, flag()?, flag()?, flag()?);
        let mut bounds = [None, None];
        for bound in &mut bounds {
            if self.from.flag()? {
                *bound = Some((self.decimal()?, self.from.flag()?));
            }
        }
        let [min, max] = bounds;
        let mut units = [Vec::new(), Vec::new()];
        for units in &mut units {
            *units = self.list(Self::decimal)?;
            if units.iter().any(|unit| unit.is_zero() || unit.is_negative()) {
                return Err(damaged("a number is to be a multiple of nothing"));
            }
        }
        let [multiple_of, not_multiple_of] = units;
        Ok(NumberSpec { integer, min, max, multiple_of, not_multiple_of, fractional, whole, float })
    }

    fn array(&mut self) -> Result<ArraySpec> {
        let contains = self.list(|loader| Ok((loader.from.number()?, loader.from.optional()?)))?;
        let counted = |&(min, max): &(u64, Option<u64>)| min.max(max.unwrap_or(0)) <= COUNTED;
        if contains.len() > CONDITIONS || !contains.iter().all(counted) {
            return Err(damaged("an array counts too much"));
        }
        let known = (1u32 << contains.len()) - 1;
        let class = |loader: &mut Self| {
            let (node, counts) = (loader.id()?, loader.from.small()?);
            match counts & !known {
                0 => Ok(ItemClass { node, counts }),
                _ => Err(damaged("an item counts for what is not there")),
            }
        };
        let spec = ArraySpec {
            prefix: self.list(|loader| loader.list(class))?,
            rest: self.list(class)?,
            min: self.from.number()?,
            max: self.from.optional()?,
            unique: self.from.flag()?,
            equal: self.from.flag()?,
            contains,
        };
        let room = spec.max.is_none_or(|max| max >= spec.prefix.len() as u64 + 2);
        if spec.equal && (!spec.contains.is_empty() || spec.unique || !room) {
            return Err(damaged("no two items of an array can be equal"));
        }
        Ok(spec)
    }

    fn object(&mut self, limits: &Limits) -> Result<ObjectSpec> {
        let properties = self.list(|loader| {
            let name = loader.from.text()?.to_owned();
            Ok(Property { name, value: loader.id()?, required: loader.from.flag()? })
        })?;
        self.properties += properties.len();
        within("properties", self.properties as u64, limits.properties as u64)?;
        let mut names: Vec<&str> = properties.iter().map(|property| &*property.name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(damaged("an object declares a property twice"));
        }
        let others = self.list(|loader| {
            let (keys, value) = (loader.expr()?, loader.id()?);
            Ok(OtherKeys { keys, value, min: loader.from.number()?, max: loader.from.optional()? })
        })?;
        let (min, max) = (self.from.number()?, self.from.optional()?);
        let order = match self.from.flag()? {
            true => PropertyOrder::Any,
            false => PropertyOrder::Declared,
        };
        let count = properties.len();
        let dependent = self.list(|loader| {
            Ok((loader.from.index(count)? as u32, loader.from.index(count)? as u32))
        })?;
        Ok(ObjectSpec { properties, others, min, max, order, dependent })
    }
}
