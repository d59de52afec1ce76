//! From one schema object, or one value, to its parts.
//!
//! The keywords about one instance type make up the *base*; `enum` and `const` intersect it; what stands in
//! place (`$ref`, `allOf`, `anyOf`, ...) comes after. `$ref` and `allOf` that are written before `properties`
//! also come before them in the output, so that the declared order is the order of the text.

use super::array::{ArrayShape, Contains};
use super::draft::Draft;
use super::json::{At, Type};
use super::keywords::{Keyword, Keywords};
use super::names::Name;
use super::normal::{Compiler, FALSE, NULL, Parts, TRUE};
use super::number::{Numbers, small, split_at_floats};
use super::object::{Named, ObjectShape, put};
use super::resolve::ScopeId;
use super::sets::{Kinds, SetId};
use super::text::Text;
use crate::error::{Error, Kind, Result, quote};
use crate::expr::ExprId;
use crate::grammar::NumberSpec;
use crate::grammar::decimal::Decimal;
use crate::regex::{self, Format};
use hashbrown::HashMap;
use std::rc::Rc;

/// The instance types a schema allows.
struct Types {
    literals: u8,
    number: bool,
    integer: bool,
    string: bool,
    array: bool,
    object: bool,
}

impl Compiler<'_> {
    /// The parts of the schema object at `at`; what it needs in place is worked out already.
    pub fn schema_parts(&mut self, at: At, scope: ScopeId) -> Result<Parts> {
        let keywords = self.keywords(at);
        if keywords.unevaluated() {
            return self.annotated_parts(&keywords, scope);
        }
        let own = self.own_parts(&keywords, scope)?;
        self.in_place(&keywords, scope, own)
    }

    /// What the keywords of the schema say without those that hold schemas in place.
    pub fn own_parts(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<Parts> {
        let mut parts = self.base(keywords, scope)?;
        if let Some(at) = keywords.get(Keyword::Enum) {
            if self.json.kind(at) != Type::Array {
                return Err(self.malformed(at, "an array of values"));
            }
            let values: Vec<At> = self.json.items(at).collect();
            let values = self.values_parts(&values)?;
            parts = self.and_parts(&parts, &values)?;
        }
        if let Some(at) = keywords.get(Keyword::Const) {
            let value = self.value_parts(at)?;
            parts = self.and_parts(&parts, &value)?;
        }
        Ok(parts)
    }

    /// Intersects `own` with all that stands in place.
    fn in_place(&mut self, keywords: &Keywords, scope: ScopeId, own: Parts) -> Result<Parts> {
        let properties = keywords.get(Keyword::Properties).unwrap_or(0);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for keyword in [Keyword::Ref, Keyword::DynamicRef, Keyword::RecursiveRef, Keyword::AllOf] {
            let Some(at) = keywords.get(keyword) else { continue };
            let sets = match keyword {
                Keyword::AllOf => self.schema_list(at, scope)?,
                _ => vec![self.reference(at, keyword, scope)?],
            };
            let side = if at < properties { &mut before } else { &mut after };
            side.extend(sets);
        }
        let mut parts = Parts::any();
        for set in before {
            let other = self.parts(set)?;
            parts = self.and_parts(&parts, &other)?;
        }
        parts = self.and_parts(&parts, &own)?;
        for set in after {
            let other = self.parts(set)?;
            parts = self.and_parts(&parts, &other)?;
        }
        self.choices(keywords, scope, parts)
    }

    /// Intersects `parts` with `anyOf`, `oneOf`, `not`, `if` and the dependent schemas.
    fn choices(&mut self, keywords: &Keywords, scope: ScopeId, mut parts: Parts) -> Result<Parts> {
        if let Some(at) = keywords.get(Keyword::AnyOf) {
            let mut out = Parts::never();
            for set in self.schema_list(at, scope)? {
                let arm = self.parts(set)?;
                let arm = self.and_parts(&parts, &arm)?;
                out = self.or_parts(&out, &arm)?;
            }
            parts = out;
        }
        if let Some(at) = keywords.get(Keyword::OneOf) {
            let sets = self.schema_list(at, scope)?;
            parts = self.exactly_one(&parts, &sets)?;
        }
        if let Some(at) = keywords.get(Keyword::Not) {
            let set = self.schema_set(at, scope)?;
            let arm = self.parts(set)?;
            parts = self.minus(&parts, &arm)?;
        }
        if let Some(at) = keywords.get(Keyword::If) {
            let condition = self.schema_set(at, scope)?;
            let condition = self.parts(condition)?;
            let mut yes = self.and_parts(&parts, &condition)?;
            let mut no = self.minus(&parts, &condition)?;
            for (keyword, side) in [(Keyword::Then, &mut yes), (Keyword::Else, &mut no)] {
                if let Some(at) = keywords.get(keyword) {
                    let set = self.schema_set(at, scope)?;
                    let arm = self.parts(set)?;
                    *side = self.and_parts(side, &arm)?;
                }
            }
            parts = self.or_parts(&yes, &no)?;
        }
        for (name, schema) in self.dependent_schemas(keywords)? {
            let set = self.schema_set(schema, scope)?;
            let arm = self.parts(set)?;
            parts = self.depend(&parts, name, &arm)?;
        }
        Ok(parts)
    }

    /// The values of `parts` that are in exactly one of the sets.
    pub fn exactly_one(&mut self, parts: &Parts, sets: &[SetId]) -> Result<Parts> {
        let mut arms = Vec::with_capacity(sets.len());
        for &set in sets {
            let arm = self.parts(set)?;
            arms.push(self.and_parts(parts, &arm)?);
        }
        let mut out = Parts::never();
        for (i, arm) in arms.iter().enumerate() {
            let mut alone = arm.clone();
            for other in arms.iter().enumerate().filter(|other| other.0 != i).map(|other| other.1) {
                alone = self.minus(&alone, other)?;
            }
            out = self.or_parts(&out, &alone)?;
        }
        Ok(out)
    }

    /// The values of `parts` that are in `arm` if they have the property.
    pub fn depend(&mut self, parts: &Parts, name: Name, arm: &Parts) -> Result<Parts> {
        let absent = Rc::new(ObjectShape::with(name, SetId::NEVER, false));
        let absent = self.and_parts(parts, &Parts::any_but_objects(vec![absent]))?;
        let present = Rc::new(ObjectShape::with(name, SetId::ANY, true));
        let present = Parts { objects: vec![present], ..Parts::never() };
        let present = self.and_parts(parts, &present)?;
        let present = self.and_parts(&present, arm)?;
        self.or_parts(&absent, &present)
    }

    /// The schemas that a property brings into force.
    pub fn dependent_schemas(&mut self, keywords: &Keywords) -> Result<Vec<(Name, At)>> {
        let mut out = Vec::new();
        for keyword in [Keyword::DependentSchemas, Keyword::Dependencies] {
            let Some(map) = keywords.get(keyword) else { continue };
            self.need_object(map)?;
            for (key, schema) in self.json.members(map) {
                if keyword == Keyword::DependentSchemas || self.json.kind(schema) != Type::Array {
                    out.push((self.names.intern(self.json.text(key)), schema));
                }
            }
        }
        Ok(out)
    }

    fn need_object(&self, at: At) -> Result<()> {
        if self.json.is_object(at) { Ok(()) } else { Err(self.malformed(at, "an object")) }
    }

    /// What `type` and the keywords of each type say.
    fn base(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<Parts> {
        let types = self.types(keywords)?;
        let mut parts = Parts { literals: types.literals, ..Parts::never() };
        if types.number || types.integer {
            let whole = !types.number && keywords.draft == Draft::Draft4;
            let (spec, written) = self.number(keywords)?;
            let spec = NumberSpec { integer: !types.number, whole, ..spec };
            let written = written.map(|at| at.map(|at| self.json.text(at)));
            parts.numbers = Numbers::of(split_at_floats(spec, written), &mut self.fuel)?;
        }
        if types.string {
            parts.text = self.text(keywords)?;
        }
        if types.array {
            let shape = self.array(keywords, scope)?;
            parts.arrays.extend(self.prune_array(shape)?.map(Rc::new));
        }
        if types.object {
            parts.objects.extend(self.object(keywords, scope)?.map(Rc::new));
        }
        Ok(parts)
    }

    fn types(&mut self, keywords: &Keywords) -> Result<Types> {
        let Some(at) = keywords.get(Keyword::Type) else {
            let literals = NULL | FALSE | TRUE;
            return Ok(Types {
                literals,
                number: true,
                integer: true,
                string: true,
                array: true,
                object: true,
            });
        };
        let mut types = Types {
            literals: 0,
            number: false,
            integer: false,
            string: false,
            array: false,
            object: false,
        };
        let names: Vec<At> = match self.json.kind(at) {
            Type::String => vec![at],
            Type::Array => self.json.items(at).collect(),
            _ => return Err(self.malformed(at, "the name of a type, or an array of them")),
        };
        for &name in &names {
            match self.json.string(name) {
                Some("null") => types.literals |= NULL,
                Some("boolean") => types.literals |= FALSE | TRUE,
                Some("number") => types.number = true,
                Some("integer") => types.integer = true,
                Some("string") => types.string = true,
                Some("array") => types.array = true,
                Some("object") => types.object = true,
                _ => {
                    let message = format!("{} is not a type", quote(self.json.text(name)));
                    return Err(Error::new(Kind::Syntax, message)
                        .at(self.json.place(name))
                        .help("use null, boolean, integer, number, string, array or object"));
                }
            }
        }
        if names.is_empty() {
            return Err(Error::new(Kind::Syntax, "a list of types must not be empty")
                .at(self.json.place(at)));
        }
        Ok(types)
    }

    /// The exact number at `at`.
    pub fn decimal(&self, at: At) -> Result<Decimal> {
        if self.json.kind(at) != Type::Number {
            return Err(self.malformed(at, "a number"));
        }
        Decimal::parse(self.json.text(at)).map_err(|error| error.at(self.json.place(at)))
    }

    /// What is said about numbers, and where the bounds are written.
    fn number(&mut self, keywords: &Keywords) -> Result<(NumberSpec, [Option<At>; 2])> {
        let mut spec = NumberSpec::default();
        let mut written = [None; 2];
        for (bound, exclusive, low) in [
            (Keyword::Minimum, Keyword::ExclusiveMinimum, true),
            (Keyword::Maximum, Keyword::ExclusiveMaximum, false),
        ] {
            let exclusive = keywords.get(exclusive);
            // Draft 4: a boolean that says how the other keyword counts.
            let flag = exclusive.map(|at| self.json.kind(at));
            let strict = flag == Some(Type::True);
            let mut found = Vec::new();
            if let Some(at) = keywords.get(bound) {
                found.push((self.decimal(at)?, strict, at));
            }
            if let Some(at) = exclusive.filter(|_| !strict && flag != Some(Type::False)) {
                if keywords.draft == Draft::Draft4 {
                    return Err(self.malformed(at, "a boolean (draft 4)"));
                }
                found.push((self.decimal(at)?, true, at));
            }
            let tightest = found.into_iter().reduce(|a, b| {
                let tighter = if low { b.0 >= a.0 } else { b.0 <= a.0 };
                if tighter { b } else { a }
            });
            written[usize::from(!low)] = tightest.as_ref().map(|bound| bound.2);
            let tightest = tightest.map(|(value, open, _)| (value, open));
            *(if low { &mut spec.min } else { &mut spec.max }) = tightest;
        }
        if let Some(at) = keywords.get(Keyword::MultipleOf) {
            let unit = self.decimal(at)?;
            if unit.is_zero() || unit.is_negative() {
                let message = "\"multipleOf\" must be greater than 0";
                return Err(Error::new(Kind::Syntax, message).at(self.json.place(at)));
            }
            spec.multiple_of.push(unit);
        }
        Ok((spec, written))
    }

    /// The strings that `pattern`, `format`, `span` and the lengths allow.
    pub fn text(&mut self, keywords: &Keywords) -> Result<Text> {
        let mut text = Text::All;
        if let Some(at) = keywords.get(Keyword::Pattern) {
            text = Text::expr(self.pattern(at)?);
        }
        if let Some(at) = keywords.get(Keyword::Format) {
            let Some(name) = self.json.string(at) else {
                return Err(self.malformed(at, "the name of a format"));
            };
            if let Some(format) = Format::named(name).filter(|_| self.options.assert_formats) {
                text = text.and(&Text::Format(format), &mut self.tools())?;
            }
        }
        if let Some(at) = keywords.get(Keyword::Span) {
            let span = Text::expr(self.span(at)?);
            text = text.and(&span, &mut self.tools())?;
        }
        let min = keywords.get(Keyword::MinLength).map_or(Ok(0), |at| self.count(at))?;
        let max = keywords.get(Keyword::MaxLength).map(|at| self.count(at)).transpose()?;
        if min > 0 || max.is_some() {
            let lengths = match max {
                Some(max) if max < min => Text::None,
                _ => Text::expr(self.grammar.exprs.repeat(ExprId::ANY_CHAR, min, max)),
            };
            text = text.and(&lengths, &mut self.tools())?;
        }
        Ok(text)
    }

    /// The pieces of the document, for the `span` at `at`.
    fn span(&mut self, at: At) -> Result<ExprId> {
        if self.json.kind(at) != Type::True {
            return Err(self.malformed(at, "true or false"));
        }
        let Some(document) = &self.options.document else {
            let message = "the value is to be a piece of a document, and none is given";
            return Err(Error::new(Kind::BadArgument, message)
                .at(self.json.place(at))
                .help("hand the document over: Options::document, or --input of the program"));
        };
        Ok(self.grammar.exprs.span(document))
    }

    /// The strings in which the pattern at `at` (a string, or the key of a member) finds a match.
    pub fn pattern(&mut self, at: At) -> Result<ExprId> {
        if let Some(known) =
            self.patterns.iter().find(|known| self.json.text(known.0) == self.json.text(at))
        {
            return Ok(known.1);
        }
        let Some(pattern) = self.json.string(at) else {
            return Err(self.malformed(at, "a regular expression"));
        };
        let limits = &self.options.limits;
        let expr = regex::pattern(&mut self.grammar.exprs, pattern, limits, &mut self.fuel)
            .map_err(|error| error.at(self.json.place(at)))?;
        self.patterns.push((at, expr));
        Ok(expr)
    }

    fn array(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<ArrayShape> {
        let mut shape = ArrayShape::any();
        let mut tuple = keywords.get(Keyword::PrefixItems);
        let mut rest = keywords.get(Keyword::Items);
        if let Some(at) = rest.filter(|&at| self.json.kind(at) == Type::Array && tuple.is_none()) {
            (tuple, rest) = (Some(at), keywords.get(Keyword::AdditionalItems));
        }
        if let Some(at) = tuple {
            if self.json.kind(at) != Type::Array {
                return Err(self.malformed(at, "an array of schemas"));
            }
            let schemas: Vec<At> = self.json.items(at).collect();
            shape.prefix =
                schemas.into_iter().map(|at| self.schema_set(at, scope)).collect::<Result<_>>()?;
        }
        if let Some(at) = rest {
            shape.rest = self.schema_set(at, scope)?;
        }
        if let Some(at) = keywords.get(Keyword::MinItems) {
            shape.min = self.count(at)?;
        }
        shape.max = keywords.get(Keyword::MaxItems).map(|at| self.count(at)).transpose()?;
        if let Some(at) = keywords.get(Keyword::UniqueItems) {
            match self.json.kind(at) {
                Type::True => shape.unique = Some(at),
                Type::False => {}
                _ => return Err(self.malformed(at, "a boolean")),
            }
        }
        if let Some(at) = keywords.get(Keyword::Contains) {
            let min = keywords.get(Keyword::MinContains).map_or(Ok(1), |at| self.count(at))?;
            let max = keywords.get(Keyword::MaxContains).map(|at| self.count(at)).transpose()?;
            shape.contains.push(Contains { set: self.schema_set(at, scope)?, from: 0, min, max });
        }
        Ok(shape)
    }

    fn object(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<Option<ObjectShape>> {
        let mut shape = ObjectShape::any();
        if let Some(map) = keywords.get(Keyword::Properties) {
            self.need_object(map)?;
            let members: Vec<(At, At)> = self.json.members(map).collect();
            self.properties += members.len();
            let limit = self.options.limits.properties;
            self.check_count("properties", self.properties, limit)
                .map_err(|e| e.at(self.json.place(map)))?;
            shape.named.reserve(members.len());
            for (key, schema) in members {
                let name = self.names.intern(self.json.text(key));
                let set = self.schema_set(schema, scope)?;
                shape.named.push(Named { name, set, required: false });
            }
        }
        if let Some(map) = keywords.get(Keyword::PatternProperties) {
            self.patterned(&mut shape, map, scope)?;
        }
        if let Some(at) = keywords.get(Keyword::AdditionalProperties) {
            shape.rest = self.schema_set(at, scope)?;
        }
        if let Some(at) = keywords.get(Keyword::Required) {
            // Draft 3 had a boolean here; it says nothing in any draft that this reads.
            if !matches!(self.json.kind(at), Type::True | Type::False) {
                self.require(&mut shape, at)?;
            }
        }
        if let Some(at) = keywords.get(Keyword::MinProperties) {
            shape.min = self.count(at)?;
        }
        shape.max = keywords.get(Keyword::MaxProperties).map(|at| self.count(at)).transpose()?;
        self.dependent_required(&mut shape, keywords)?;
        let Some(shape) = self.prune_object(shape)? else { return Ok(None) };
        let Some(at) = keywords.get(Keyword::PropertyNames) else { return Ok(Some(shape)) };
        let set = self.schema_set(at, scope)?;
        let wrong = self.parts(set)?.text.not(&mut self.tools())?;
        let names = match wrong {
            Text::None => return Ok(Some(shape)),
            Text::All => ObjectShape { rest: SetId::NEVER, ..ObjectShape::any() },
            wrong => ObjectShape { classes: vec![(wrong, SetId::NEVER)], ..ObjectShape::any() },
        };
        self.and_objects(&shape, &names)
    }

    /// Takes in `patternProperties`: disjoint classes, and the named properties they match.
    fn patterned(&mut self, shape: &mut ObjectShape, map: At, scope: ScopeId) -> Result<()> {
        self.need_object(map)?;
        let members: Vec<(At, At)> = self.json.members(map).collect();
        for (key, schema) in members {
            let keys = Text::expr(self.pattern(key)?);
            let set = self.schema_set(schema, scope)?;
            for named in &mut shape.named {
                if keys.has(named.name, &mut self.tools())? {
                    named.set = self.sets.and(named.set, set);
                }
            }
            let mut left = keys;
            let mut classes = Vec::with_capacity(shape.classes.len() + 1);
            for (known, value) in std::mem::take(&mut shape.classes) {
                self.fuel.spend(8)?;
                let both = left.and(&known, &mut self.tools())?;
                if both == Text::None {
                    classes.push((known, value));
                    continue;
                }
                let outside = both.not(&mut self.tools())?;
                let alone = known.and(&outside, &mut self.tools())?;
                left = left.and(&outside, &mut self.tools())?;
                classes.push((both, self.sets.and(value, set)));
                if alone != Text::None {
                    classes.push((alone, value));
                }
            }
            if left != Text::None {
                classes.push((left, set));
            }
            self.check_count("classes of keys", classes.len(), 1024)
                .map_err(|e| e.at(self.json.place(map)))?;
            shape.classes = classes;
        }
        Ok(())
    }

    fn require(&mut self, shape: &mut ObjectShape, at: At) -> Result<()> {
        let names = self.strings(at)?;
        let many = names.len() * shape.named.len() > 4096;
        let index: HashMap<Name, usize> = match many {
            true => shape.named.iter().enumerate().map(|(i, named)| (named.name, i)).collect(),
            false => HashMap::new(),
        };
        for name in names {
            let known = match many {
                true => index.get(&name).copied(),
                false => shape.named.iter().position(|named| named.name == name),
            };
            match known.and_then(|i| shape.named.get_mut(i)) {
                Some(named) => named.required = true,
                None => {
                    let set = self.unnamed(shape, name)?;
                    shape.named.push(Named { name, set, required: true });
                }
            }
        }
        Ok(())
    }

    /// The strings of an array.
    fn strings(&mut self, at: At) -> Result<Vec<Name>> {
        if self.json.kind(at) != Type::Array {
            return Err(self.malformed(at, "an array of property names"));
        }
        let items: Vec<At> = self.json.items(at).collect();
        self.fuel.spend(items.len() as u64)?;
        items
            .into_iter()
            .map(|item| match self.json.string(item) {
                Some(text) => Ok(self.names.intern(text)),
                None => Err(self.malformed(item, "a property name")),
            })
            .collect()
    }

    fn dependent_required(&mut self, shape: &mut ObjectShape, keywords: &Keywords) -> Result<()> {
        for keyword in [Keyword::DependentRequired, Keyword::Dependencies] {
            let Some(map) = keywords.get(keyword) else { continue };
            self.need_object(map)?;
            let members: Vec<(At, At)> = self.json.members(map).collect();
            for (key, list) in members {
                if keyword == Keyword::Dependencies && self.json.kind(list) != Type::Array {
                    continue;
                }
                let name = self.names.intern(self.json.text(key));
                for other in self.strings(list)? {
                    if other != name && !shape.dependent.contains(&(name, other)) {
                        shape.dependent.push((name, other));
                    }
                }
            }
        }
        Ok(())
    }

    /// The one value at `at`.
    pub fn value_parts(&mut self, at: At) -> Result<Parts> {
        self.values_parts(&[at])
    }

    /// The values of a type.
    pub fn kind_parts(&mut self, kind: Kinds) -> Parts {
        let any = Parts::any();
        let mut parts = Parts::never();
        match kind {
            Kinds::Null => parts.literals = NULL,
            Kinds::Boolean => parts.literals = FALSE | TRUE,
            Kinds::Number => parts.numbers = Numbers::All,
            Kinds::Integer => {
                let spec = NumberSpec { integer: true, ..NumberSpec::default() };
                parts.numbers = Numbers::Some([spec].into());
            }
            Kinds::String => parts.text = Text::All,
            Kinds::Array => parts.arrays = any.arrays,
            Kinds::Object => parts.objects = any.objects,
        }
        parts
    }

    /// The values at these places.
    fn values_parts(&mut self, values: &[At]) -> Result<Parts> {
        self.entries += values.len();
        let limit = self.options.limits.enum_entries;
        self.check_count("enumerated values", self.entries, limit)?;
        self.fuel.spend(values.len() as u64)?;
        let mut parts = Parts::never();
        let (mut strings, mut numbers) = (Vec::new(), Vec::new());
        for &at in values {
            match self.json.kind(at) {
                Type::Null => parts.literals |= NULL,
                Type::False => parts.literals |= FALSE,
                Type::True => parts.literals |= TRUE,
                Type::Number => numbers.push(self.decimal(at)?),
                Type::String => strings.push(self.names.intern(self.json.text(at))),
                Type::Array => {
                    let items: Vec<At> = self.json.items(at).collect();
                    let prefix: Vec<SetId> =
                        items.into_iter().map(|item| self.sets.value(item)).collect();
                    let length = prefix.len() as u64;
                    let shape =
                        ArrayShape { prefix, rest: SetId::NEVER, min: length, ..ArrayShape::any() };
                    parts.arrays.extend(self.prune_array(shape)?.map(Rc::new));
                }
                Type::Object => {
                    let mut shape = ObjectShape { rest: SetId::NEVER, ..ObjectShape::any() };
                    let members: Vec<(At, At)> = self.json.members(at).collect();
                    for (key, value) in members {
                        let name = self.names.intern(self.json.text(key));
                        put(
                            &mut shape,
                            Named { name, set: self.sets.value(value), required: true },
                        );
                    }
                    parts.objects.extend(self.prune_object(shape)?.map(Rc::new));
                }
            }
        }
        parts.text = Text::literals(strings);
        parts.numbers = Numbers::of(points(numbers), &mut self.fuel)?;
        Ok(parts)
    }
}

/// These numbers as specs: each a point, runs of consecutive integers an interval.
fn points(mut values: Vec<Decimal>) -> Vec<NumberSpec> {
    values.sort();
    values.dedup();
    let mut out: Vec<NumberSpec> = Vec::with_capacity(values.len());
    for value in values {
        if let Some(last) = out.last_mut()
            && last.integer
            && value.is_integer()
            && let Some((high, false)) = &last.max
            && let (Some(before), Some(next)) = (small(high), small(&value))
            && before + 1 == next
        {
            last.max = Some((value, false));
            continue;
        }
        out.push(Numbers::point(value));
    }
    out
}
