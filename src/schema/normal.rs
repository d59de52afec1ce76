//! The normal form: a set of JSON values as one part per type, and the algebra on it.
//!
//! [`Parts`] says of a set which of `null`, `false`, `true` it has, and holds a set of numbers
//! ([`super::number`]), a set of strings ([`super::text`]), a union of array shapes ([`super::array`]) and
//! one of object shapes ([`super::object`]). Intersection and union go part by part. There is no other
//! place where keywords meet: `allOf` is intersection, `anyOf` union, and `not`, `oneOf`, `if` are
//! differences.
//!
//! `{"type":["string","object"],"maxLength":3,"properties":{"a":false}}` has the strings of up to three
//! characters, one object shape in which `a` is forbidden, and nothing else.
//!
//! Items and properties are [`SetId`]s, not parts: only what is asked for is worked out, once. What a set
//! needs *in place* (`$ref`, `allOf`, ...) is worked out first, on an explicit stack; a set that needs itself
//! in place has no meaning and is refused.
//!
//! Differences keep unions small: `a ∖ b` keeps a shape of `a` as it is when it excludes `b`, or when one
//! way to violate `b` holds anyway. To see that, required properties are looked into, to a bounded depth;
//! beyond it a shape counts as not empty, and [`super::satisfiable`] has the last word.

use super::array::ArrayShape;
use super::emit::Emitted;
use super::json::{At, Json};
use super::names::Names;
use super::number::Numbers;
use super::object::ObjectShape;
use super::resolve::Resources;
use super::sets::{Def, SetId, Sets};
use super::text::{Text, Tools};
use super::{Options, keywords};
use crate::error::{Error, Kind, Result};
use crate::expr::ExprId;
use crate::grammar::Grammar;
use crate::limits::Fuel;
use crate::regex::Format;
use hashbrown::HashMap;
use std::rc::Rc;

/// `null`, as a bit of [`Parts::literals`].
pub(super) const NULL: u8 = 1;
/// `false`.
pub(super) const FALSE: u8 = 2;
/// `true`.
pub(super) const TRUE: u8 = 4;

/// The most shapes of one kind in one union.
const SHAPES: usize = 2048;

/// How deep emptiness looks into required properties.
const PEEK: u32 = 5;

/// How deep working out one set may ask for another outside the stack of places.
const NEST: u32 = 40;

/// A set of JSON values by type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parts {
    pub literals: u8,
    pub numbers: Numbers,
    pub text: Text,
    pub arrays: Vec<Rc<ArrayShape>>,
    pub objects: Vec<Rc<ObjectShape>>,
}

impl Parts {
    /// No value.
    pub fn never() -> Self {
        Self {
            literals: 0,
            numbers: Numbers::None,
            text: Text::None,
            arrays: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Every value.
    pub fn any() -> Self {
        Self {
            literals: NULL | FALSE | TRUE,
            numbers: Numbers::All,
            text: Text::All,
            arrays: vec![Rc::new(ArrayShape::any())],
            objects: vec![Rc::new(ObjectShape::any())],
        }
    }

    /// Every value but objects, and objects of these shapes.
    pub fn any_but_objects(objects: Vec<Rc<ObjectShape>>) -> Self {
        Self { objects, ..Self::any() }
    }

    /// Whether there is obviously no value.
    pub fn is_never(&self) -> bool {
        self.literals == 0
            && self.numbers == Numbers::None
            && self.text == Text::None
            && self.arrays.is_empty()
            && self.objects.is_empty()
    }

    fn is_any(&self) -> bool {
        self.literals == NULL | FALSE | TRUE
            && self.numbers == Numbers::All
            && self.text == Text::All
            && matches!(self.arrays.as_slice(), [shape] if shape.is_any())
            && matches!(self.objects.as_slice(), [shape] if shape.is_any())
    }
}

#[derive(Debug, Clone)]
enum Slot {
    Todo,
    /// Being worked out by the run of this number.
    Running(u32),
    Done(Rc<Parts>),
}

enum Frame {
    Enter(SetId),
    Leave(SetId),
}

/// Everything that compiling one schema needs.
pub(super) struct Compiler<'o> {
    pub options: &'o Options,
    pub json: Json,
    pub resources: Resources,
    pub names: Names,
    pub grammar: Grammar,
    pub sets: Sets,
    pub fuel: Fuel,
    pub emitted: Emitted,
    pub formats: Vec<(Format, ExprId)>,
    pub patterns: Vec<(At, ExprId)>,
    /// Properties and enum entries so far.
    pub properties: usize,
    pub entries: usize,
    /// Whether the text has keywords that take complements.
    pub differences: bool,
    /// Whether some schema may have a budget of tokens.
    pub budgets: bool,
    /// Schemas by the hash of their text.
    pub twins: HashMap<u64, Vec<At>>,
    slots: Vec<Slot>,
    /// How many runs are going on, one inside the other.
    runs: u32,
}

impl<'o> Compiler<'o> {
    /// A compiler that has read `text`; the root is value 0.
    pub fn new(text: &str, options: &'o Options) -> Result<Self> {
        let mut json = Json::default();
        let root = json.read(text, &options.limits)?;
        let mut resources = Resources::default();
        resources.index(&json, root, "", options)?;
        let differences = json.has_any(&["oneOf", "not", "if"]);
        let budgets = !options.documents.is_empty() || json.has_any(&["max_tokens"]);
        let mut fuel = Fuel::new(options.limits.fuel);
        if let Some(cancel) = &options.cancel {
            fuel = fuel.with_cancel(cancel.clone());
        }
        Ok(Self {
            sets: Sets::new(json.len()),
            options,
            json,
            resources,
            names: Names::default(),
            grammar: Grammar::new(options.limits.clone()),
            fuel,
            emitted: Emitted::default(),
            formats: Vec::new(),
            patterns: Vec::new(),
            properties: 0,
            entries: 0,
            differences,
            budgets,
            twins: HashMap::new(),
            slots: vec![Slot::Done(Rc::new(Parts::never())), Slot::Done(Rc::new(Parts::any()))],
            runs: 0,
        })
    }

    /// What operations on texts need.
    pub fn tools(&mut self) -> Tools<'_> {
        Tools {
            names: &self.names,
            exprs: &mut self.grammar.exprs,
            formats: &mut self.formats,
            fuel: &mut self.fuel,
        }
    }

    /// An error unless `count` is within `limit`.
    pub fn check_count(&self, what: &'static str, count: usize, limit: usize) -> Result<()> {
        if count <= limit {
            return Ok(());
        }
        let kind = Kind::TooComplex { what, limit: limit as u64 };
        Err(Error::new(kind, format!("the schema needs more than {limit} {what}"))
            .help("write the alternatives so that they exclude each other early, or use fewer"))
    }

    fn slot(&mut self, set: SetId) -> &mut Slot {
        let index = set.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(self.sets.len().max(index + 1), Slot::Todo);
        }
        &mut self.slots[index]
    }

    /// The parts of a set.
    pub fn parts(&mut self, set: SetId) -> Result<Rc<Parts>> {
        match self.run(set)? {
            Some(parts) => Ok(parts),
            None => Err(self.endless(set)),
        }
    }

    /// Whether a set is empty, as far as a look of bounded depth tells; false if in doubt.
    pub fn surely_empty(&mut self, set: SetId) -> Result<bool> {
        match self.sets.def(set) {
            Def::Never => return Ok(true),
            Def::Any | Def::Kind(_) | Def::Value(_) => return Ok(false),
            _ => {}
        }
        if self.runs >= PEEK && !matches!(self.slot(set), Slot::Done(_)) {
            return Ok(false);
        }
        Ok(self.run(set)?.is_some_and(|parts| parts.is_never()))
    }

    fn endless(&self, set: SetId) -> Error {
        let message =
            "a schema refers back to itself for the same value, so it never says what is allowed";
        self.located(Error::new(Kind::Unsatisfiable, message), set)
    }

    /// The schema that a set comes from, or one of them.
    pub fn origin(&self, set: SetId) -> Option<At> {
        let mut todo = vec![set];
        for _ in 0..64 {
            match self.sets.def(todo.pop()?) {
                Def::Schema(at, _) | Def::Value(at) => return Some(*at),
                Def::And(members) | Def::Or(members) => todo.extend(members.iter().rev()),
                Def::Not(inner) => todo.push(*inner),
                _ => {}
            }
        }
        None
    }

    /// The error at the schema of `set`, unless it has a place.
    pub fn located(&self, error: Error, set: SetId) -> Error {
        match self.origin(set) {
            Some(at) if error.place().is_none() => error.at(self.json.place(at)),
            _ => error,
        }
    }

    /// Works out a set with all it needs; `None` if it needs a set that an outer run works on.
    fn run(&mut self, root: SetId) -> Result<Option<Rc<Parts>>> {
        match self.slot(root) {
            Slot::Done(parts) => return Ok(Some(parts.clone())),
            Slot::Running(_) => return Ok(None),
            Slot::Todo => {}
        }
        if self.runs >= NEST {
            let message = "the schema is nested too deep";
            return Err(Error::new(
                Kind::TooComplex { what: "nesting", limit: NEST.into() },
                message,
            ));
        }
        self.runs += 1;
        let mut stack = vec![Frame::Enter(root)];
        let mut needs = Vec::new();
        let outcome = loop {
            let Some(frame) = stack.pop() else { break Ok(true) };
            match frame {
                Frame::Leave(set) => {
                    let parts = self.evaluate(set).map_err(|error| self.located(error, set))?;
                    *self.slot(set) = Slot::Done(Rc::new(parts));
                }
                Frame::Enter(set) => match self.slot(set).clone() {
                    Slot::Done(_) => {}
                    Slot::Running(run) if run == self.runs => break Err(self.endless(set)),
                    Slot::Running(_) => {
                        stack.push(Frame::Enter(set));
                        break Ok(false);
                    }
                    Slot::Todo => {
                        needs.clear();
                        self.needs(set, &mut needs).map_err(|error| self.located(error, set))?;
                        *self.slot(set) = Slot::Running(self.runs);
                        if needs.is_empty() {
                            let parts =
                                self.evaluate(set).map_err(|error| self.located(error, set))?;
                            *self.slot(set) = Slot::Done(Rc::new(parts));
                            continue;
                        }
                        stack.push(Frame::Leave(set));
                        stack.extend(needs.iter().rev().map(|&need| Frame::Enter(need)));
                    }
                },
            }
        };
        self.runs -= 1;
        if outcome? {
            return match self.slot(root) {
                Slot::Done(parts) => Ok(Some(parts.clone())),
                _ => Ok(None),
            };
        }
        for frame in stack {
            if let Frame::Leave(set) = frame {
                *self.slot(set) = Slot::Todo;
            }
        }
        Ok(None)
    }

    /// What must be worked out before `set` can be.
    fn needs(&mut self, set: SetId, out: &mut Vec<SetId>) -> Result<()> {
        match self.sets.def(set) {
            Def::Never | Def::Any | Def::Kind(_) | Def::Value(_) => {}
            Def::Not(inner) => out.push(*inner),
            Def::Or(members) => out.extend(members.iter()),
            Def::And(members) => {
                out.extend(members.iter().map(|&member| match self.sets.def(member) {
                    Def::Not(inner) => *inner,
                    _ => member,
                }))
            }
            &Def::Schema(at, scope) => keywords::needs(self, at, scope, out)?,
        }
        Ok(())
    }

    fn evaluate(&mut self, set: SetId) -> Result<Parts> {
        let work = self.sets.take_work();
        self.fuel.spend(4 + work / 4)?;
        match self.sets.def(set).clone() {
            Def::Never => Ok(Parts::never()),
            Def::Any => Ok(Parts::any()),
            Def::Kind(kind) => Ok(self.kind_parts(kind)),
            Def::Value(at) => self.value_parts(at),
            Def::Schema(at, scope) => self.schema_parts(at, scope),
            Def::Not(inner) => {
                let inner = self.parts(inner)?;
                self.minus(&Parts::any(), &inner)
            }
            Def::Or(members) => {
                let mut out = Parts::never();
                for &member in members.iter() {
                    let parts = self.parts(member)?;
                    out = self.or_parts(&out, &parts)?;
                }
                Ok(out)
            }
            Def::And(members) => {
                let negative = |set: &SetId| match self.sets.def(*set) {
                    Def::Not(inner) => (*inner, true),
                    _ => (*set, false),
                };
                let mut members: Vec<(SetId, bool)> = members.iter().map(negative).collect();
                members.sort_by_key(|member| member.1);
                let mut out = Parts::any();
                for (member, negative) in members {
                    let parts = self.parts(member)?;
                    out = if negative {
                        self.minus(&out, &parts)?
                    } else {
                        self.and_parts(&out, &parts)?
                    };
                }
                Ok(out)
            }
        }
    }

    /// The values in both.
    pub fn and_parts(&mut self, a: &Parts, b: &Parts) -> Result<Parts> {
        if a.is_any() {
            return Ok(b.clone());
        }
        if b.is_any() {
            return Ok(a.clone());
        }
        let mut arrays = Vec::new();
        if matches!(a.arrays.as_slice(), [shape] if shape.is_any()) {
            arrays.clone_from(&b.arrays);
        } else if matches!(b.arrays.as_slice(), [shape] if shape.is_any()) {
            arrays.clone_from(&a.arrays);
        } else {
            for x in &a.arrays {
                for y in &b.arrays {
                    if let Some(shape) = self.and_arrays(x, y)? {
                        self.add(&mut arrays, Rc::new(shape))?;
                    }
                }
            }
        }
        let mut objects = Vec::new();
        if matches!(a.objects.as_slice(), [shape] if shape.is_any()) {
            objects.clone_from(&b.objects);
        } else if matches!(b.objects.as_slice(), [shape] if shape.is_any()) {
            objects.clone_from(&a.objects);
        } else {
            for x in &a.objects {
                for y in &b.objects {
                    if let Some(shape) = self.and_objects(x, y)? {
                        self.add_object(&mut objects, Rc::new(shape))?;
                    }
                }
            }
        }
        Ok(Parts {
            literals: a.literals & b.literals,
            numbers: a.numbers.and(&b.numbers, &mut self.fuel)?,
            text: a.text.and(&b.text, &mut self.tools())?,
            arrays,
            objects,
        })
    }

    /// The values in either.
    pub fn or_parts(&mut self, a: &Parts, b: &Parts) -> Result<Parts> {
        let mut out = Parts {
            literals: a.literals | b.literals,
            numbers: a.numbers.or(&b.numbers, &mut self.fuel)?,
            text: a.text.or(&b.text, &mut self.tools())?,
            arrays: a.arrays.clone(),
            objects: a.objects.clone(),
        };
        for shape in &b.arrays {
            self.add(&mut out.arrays, shape.clone())?;
        }
        for shape in &b.objects {
            self.add_object(&mut out.objects, shape.clone())?;
        }
        if out.arrays.iter().any(|shape| shape.is_any()) {
            out.arrays = vec![Rc::new(ArrayShape::any())];
        }
        if out.objects.iter().any(|shape| shape.is_any()) {
            out.objects = vec![Rc::new(ObjectShape::any())];
        }
        Ok(out)
    }

    /// The values in `a` and not in `b`.
    pub fn minus(&mut self, a: &Parts, b: &Parts) -> Result<Parts> {
        let outside = b.text.not(&mut self.tools())?;
        let numbers = match (&a.numbers, &b.numbers) {
            (Numbers::None, _) | (_, Numbers::All) => Numbers::None,
            (own, Numbers::None) => own.clone(),
            (own, other) => {
                let outside = other.not(&mut self.fuel)?;
                own.and(&outside, &mut self.fuel)?
            }
        };
        let mut out = Parts {
            literals: a.literals & !b.literals,
            numbers,
            text: a.text.and(&outside, &mut self.tools())?,
            arrays: a.arrays.clone(),
            objects: a.objects.clone(),
        };
        for shape in &b.arrays {
            out.arrays = self.minus_array(out.arrays, shape)?;
        }
        for shape in &b.objects {
            out.objects = self.minus_object(out.objects, shape)?;
        }
        Ok(out)
    }

    fn minus_array(
        &mut self,
        shapes: Vec<Rc<ArrayShape>>,
        cut: &ArrayShape,
    ) -> Result<Vec<Rc<ArrayShape>>> {
        if cut.is_any() {
            return Ok(Vec::new());
        }
        self.subtract(shapes, cut, Self::and_arrays, Self::not_array, Self::add)
    }

    fn minus_object(
        &mut self,
        shapes: Vec<Rc<ObjectShape>>,
        cut: &ObjectShape,
    ) -> Result<Vec<Rc<ObjectShape>>> {
        if cut.is_any() {
            return Ok(Vec::new());
        }
        self.subtract(shapes, cut, Self::and_objects, Self::not_object, Self::add_object)
    }

    /// What is in the union of `shapes` and not in `cut`.
    #[allow(clippy::type_complexity, reason = "three operations that only this function takes")]
    fn subtract<T: PartialEq>(
        &mut self,
        shapes: Vec<Rc<T>>,
        cut: &T,
        and: fn(&mut Self, &T, &T) -> Result<Option<T>>,
        not: fn(&mut Self, &T) -> Result<Vec<T>>,
        add: fn(&mut Self, &mut Vec<Rc<T>>, Rc<T>) -> Result<()>,
    ) -> Result<Vec<Rc<T>>> {
        let mut out = Vec::new();
        let mut violations = None;
        for shape in shapes {
            if *shape == *cut {
                continue;
            }
            if and(self, &shape, cut)?.is_none() {
                add(self, &mut out, shape)?;
                continue;
            }
            let violations = match &mut violations {
                Some(known) => known,
                none => none.insert(not(self, cut)?),
            };
            let mut pieces = Vec::new();
            for violation in violations.iter() {
                let Some(piece) = and(self, &shape, violation)? else { continue };
                if piece == *shape {
                    // The shape violates `cut` as it is.
                    pieces = vec![piece];
                    break;
                }
                pieces.push(piece);
            }
            for piece in pieces {
                add(self, &mut out, Rc::new(piece))?;
            }
        }
        Ok(out)
    }

    /// Adds an object shape to a union, unless the union has it all; large unions also lose what the
    /// new shape covers.
    fn add_object(
        &mut self,
        union: &mut Vec<Rc<ObjectShape>>,
        shape: Rc<ObjectShape>,
    ) -> Result<()> {
        if self.differences && union.len() >= 4 {
            for known in &*union {
                if self.covers_object(known, &shape)? {
                    return Ok(());
                }
            }
            let mut kept = Vec::with_capacity(union.len() + 1);
            for known in union.drain(..) {
                if !self.covers_object(&shape, &known)? {
                    kept.push(known);
                }
            }
            *union = kept;
        }
        self.add(union, shape)
    }

    /// Adds a shape to a union, unless it is there.
    fn add<T: PartialEq>(&mut self, union: &mut Vec<Rc<T>>, shape: Rc<T>) -> Result<()> {
        let work = self.sets.take_work();
        self.fuel.spend(1 + union.len() as u64 / 4 + work / 4)?;
        if union.iter().any(|known| Rc::ptr_eq(known, &shape) || *known == shape) {
            return Ok(());
        }
        union.push(shape);
        self.check_count("alternatives", union.len(), SHAPES)
    }
}
