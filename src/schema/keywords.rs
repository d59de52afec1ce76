//! The keywords of one schema object, found in one pass, and what they need in place.

use super::dialect::Dialect;
use super::draft::Draft;
use super::json::{At, Json, Type};
use super::normal::Compiler;
use super::resolve::ScopeId;
use super::sets::{Kinds, SetId};
use crate::error::{Error, Kind, Result, quote};

/// A keyword that constrains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Keyword {
    Type,
    Enum,
    Const,
    Properties,
    Required,
    AdditionalProperties,
    PatternProperties,
    PropertyNames,
    MinProperties,
    MaxProperties,
    DependentRequired,
    DependentSchemas,
    Dependencies,
    Items,
    PrefixItems,
    AdditionalItems,
    MinItems,
    MaxItems,
    UniqueItems,
    Contains,
    MinContains,
    MaxContains,
    UnevaluatedProperties,
    UnevaluatedItems,
    MinLength,
    MaxLength,
    Pattern,
    Format,
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
    AllOf,
    AnyOf,
    OneOf,
    Not,
    If,
    Then,
    Else,
    Ref,
    DynamicRef,
    RecursiveRef,
    /// `x-constrain` with `span`: its value is that of `span`. Not a keyword of any draft.
    Span,
}

const COUNT: usize = Keyword::Span as usize + 1;

impl Keyword {
    /// The keyword with this spelling in a draft.
    pub fn named(text: &str, draft: Draft) -> Option<Self> {
        use Draft::{Draft6, Draft7, Draft201909, Draft202012};
        let (keyword, since) = match text {
            "type" => (Self::Type, Draft::Draft4),
            "enum" => (Self::Enum, Draft::Draft4),
            "const" => (Self::Const, Draft6),
            "properties" => (Self::Properties, Draft::Draft4),
            "required" => (Self::Required, Draft::Draft4),
            "additionalProperties" => (Self::AdditionalProperties, Draft::Draft4),
            "patternProperties" => (Self::PatternProperties, Draft::Draft4),
            "propertyNames" => (Self::PropertyNames, Draft6),
            "minProperties" => (Self::MinProperties, Draft::Draft4),
            "maxProperties" => (Self::MaxProperties, Draft::Draft4),
            "dependentRequired" => (Self::DependentRequired, Draft201909),
            "dependentSchemas" => (Self::DependentSchemas, Draft201909),
            "dependencies" => (Self::Dependencies, Draft::Draft4),
            "items" => (Self::Items, Draft::Draft4),
            "prefixItems" => (Self::PrefixItems, Draft202012),
            "additionalItems" => (Self::AdditionalItems, Draft::Draft4),
            "minItems" => (Self::MinItems, Draft::Draft4),
            "maxItems" => (Self::MaxItems, Draft::Draft4),
            "uniqueItems" => (Self::UniqueItems, Draft::Draft4),
            "contains" => (Self::Contains, Draft6),
            "minContains" => (Self::MinContains, Draft201909),
            "maxContains" => (Self::MaxContains, Draft201909),
            "unevaluatedProperties" => (Self::UnevaluatedProperties, Draft201909),
            "unevaluatedItems" => (Self::UnevaluatedItems, Draft201909),
            "minLength" => (Self::MinLength, Draft::Draft4),
            "maxLength" => (Self::MaxLength, Draft::Draft4),
            "pattern" => (Self::Pattern, Draft::Draft4),
            "format" => (Self::Format, Draft::Draft4),
            "minimum" => (Self::Minimum, Draft::Draft4),
            "maximum" => (Self::Maximum, Draft::Draft4),
            "exclusiveMinimum" => (Self::ExclusiveMinimum, Draft::Draft4),
            "exclusiveMaximum" => (Self::ExclusiveMaximum, Draft::Draft4),
            "multipleOf" => (Self::MultipleOf, Draft::Draft4),
            "allOf" => (Self::AllOf, Draft::Draft4),
            "anyOf" => (Self::AnyOf, Draft::Draft4),
            "oneOf" => (Self::OneOf, Draft::Draft4),
            "not" => (Self::Not, Draft::Draft4),
            "if" => (Self::If, Draft7),
            "then" => (Self::Then, Draft7),
            "else" => (Self::Else, Draft7),
            "$ref" => (Self::Ref, Draft::Draft4),
            "$dynamicRef" => (Self::DynamicRef, Draft202012),
            "$recursiveRef" => (Self::RecursiveRef, Draft201909),
            _ => return None,
        };
        let gone = keyword == Self::RecursiveRef && draft != Draft201909;
        (draft >= since && !gone).then_some(keyword)
    }
}

/// Schemas of up to this many values are compared with others.
const TWIN_SIZE: u32 = 200;

/// Where the keywords of one schema object stand.
pub(super) struct Keywords {
    /// The schema object.
    pub at: At,
    pub draft: Draft,
    /// By keyword: 0 is absent (value 0 is the root, never a keyword's value).
    places: [At; COUNT],
    /// Bit `k`: keyword `k` is there.
    mask: u64,
    /// Where the keywords of this library are (`x-constrain`), if there are any.
    pub own: Option<At>,
}

impl Keywords {
    /// The keywords of the object at `at`; only `$ref` where that stands alone.
    pub fn find(json: &Json, at: At, dialect: Dialect) -> Self {
        let draft = dialect.draft;
        let mut found = Self { at, draft, places: [0; COUNT], mask: 0, own: None };
        for (key, value) in json.members(at) {
            let name = json.text(key);
            if name == "x-constrain" {
                found.own = Some(value);
                found.places[Keyword::Span as usize] = span_of(json, value).unwrap_or(0);
            }
            let keyword = Keyword::named(name, draft);
            if let Some(keyword) = keyword.filter(|&keyword| dialect.has(keyword)) {
                found.places[keyword as usize] = value;
                found.mask |= 1 << keyword as u8;
            }
        }
        let (reference, span) =
            (found.places[Keyword::Ref as usize], found.places[Keyword::Span as usize]);
        if reference != 0 && draft.ref_alone() {
            // What stands beside it is ignored as the draft says, which does not know `x-constrain`.
            let mask = 1 << Keyword::Ref as u8;
            found = Self { at, draft, places: [0; COUNT], mask, own: found.own };
            found.places[Keyword::Ref as usize] = reference;
            found.places[Keyword::Span as usize] = span;
        }
        found.mask |= u64::from(span != 0) << Keyword::Span as u8;
        found
    }

    /// The value of a keyword.
    pub fn get(&self, keyword: Keyword) -> Option<At> {
        Some(self.places[keyword as usize]).filter(|&at| at != 0)
    }

    /// Whether no keyword constrains.
    pub fn is_empty(&self) -> bool {
        self.mask == 0
    }

    /// The reference, if nothing else is said.
    pub fn only_ref(&self) -> Option<At> {
        (self.mask == 1 << Keyword::Ref as u8).then(|| self.places[Keyword::Ref as usize])
    }

    /// The value of `type`, if nothing else is said.
    fn only_type(&self) -> Option<At> {
        (self.mask == 1 << Keyword::Type as u8).then(|| self.places[Keyword::Type as usize])
    }

    /// Whether annotations of subschemas matter here.
    pub fn unevaluated(&self) -> bool {
        self.mask
            & (1 << Keyword::UnevaluatedProperties as u8 | 1 << Keyword::UnevaluatedItems as u8)
            != 0
    }
}

/// Where `x-constrain` asks for a piece of the document; a value that is no boolean is one that asks,
/// and is refused when it is read.
fn span_of(json: &Json, own: At) -> Option<At> {
    let span = json.member(own, "span")?;
    (json.kind(span) != Type::False).then_some(span)
}

/// Adds what the schema at `at` needs in place.
pub(super) fn needs(
    compiler: &mut Compiler,
    at: At,
    scope: ScopeId,
    out: &mut Vec<SetId>,
) -> Result<()> {
    let keywords = compiler.keywords(at);
    if keywords.unevaluated() {
        return Ok(());
    }
    for keyword in [Keyword::Ref, Keyword::DynamicRef, Keyword::RecursiveRef] {
        if let Some(reference) = keywords.get(keyword) {
            out.push(compiler.reference(reference, keyword, scope)?);
        }
    }
    for keyword in [Keyword::AllOf, Keyword::AnyOf, Keyword::OneOf] {
        if let Some(list) = keywords.get(keyword) {
            out.extend(compiler.schema_list(list, scope)?);
        }
    }
    let conditional = keywords.get(Keyword::If).is_some();
    for keyword in [Keyword::Not, Keyword::If, Keyword::Then, Keyword::Else, Keyword::PropertyNames]
    {
        if let Some(schema) = keywords.get(keyword)
            && (conditional || !matches!(keyword, Keyword::Then | Keyword::Else))
        {
            out.push(compiler.schema_set(schema, scope)?);
        }
    }
    for keyword in [Keyword::DependentSchemas, Keyword::Dependencies] {
        let Some(map) = keywords.get(keyword) else { continue };
        let schemas: Vec<At> = compiler.json.members(map).map(|member| member.1).collect();
        for schema in schemas {
            if compiler.json.kind(schema) != Type::Array {
                out.push(compiler.schema_set(schema, scope)?);
            }
        }
    }
    Ok(())
}

impl Compiler<'_> {
    /// The keywords of the schema object at `at`.
    pub fn keywords(&self, at: At) -> Keywords {
        Keywords::find(&self.json, at, self.resources.dialect(at))
    }

    /// The error of a keyword whose value has the wrong form.
    pub fn malformed(&self, at: At, wanted: &str) -> Error {
        let found = self.json.kind(at).article();
        Error::new(Kind::Syntax, format!("expected {wanted}, found {found}"))
            .at(self.json.place(at))
    }

    /// What the schema at `at` allows; references that stand alone are followed.
    pub fn schema_set(&mut self, at: At, scope: ScopeId) -> Result<SetId> {
        let (mut at, mut scope) = (at, scope);
        for _ in 0..=self.json.len() {
            self.fuel.spend(2)?;
            match self.json.kind(at) {
                Type::True => return Ok(SetId::ANY),
                Type::False => return Ok(SetId::NEVER),
                Type::Object => {}
                _ => return Err(self.malformed(at, "a schema (an object or a boolean)")),
            }
            scope = self.resources.enter(scope, at);
            let keywords = self.keywords(at);
            let bounded = self.own_tokens(&keywords)?.is_some();
            if keywords.is_empty() && !bounded {
                return Ok(SetId::ANY);
            }
            let Some(reference) = keywords.only_ref().filter(|_| !bounded) else {
                let kind = keywords
                    .only_type()
                    .filter(|_| !bounded)
                    .and_then(|at| Kinds::named(self.json.string(at)?));
                // The integers of draft 4 are not those of the other drafts.
                let same =
                    |kind: &Kinds| *kind != Kinds::Integer || keywords.draft != Draft::Draft4;
                if let Some(kind) = kind.filter(same) {
                    return Ok(kind.set());
                }
                let at = if scope == 0 { self.twin(at)? } else { at };
                return Ok(self.sets.schema(at, scope));
            };
            at = self.resolve(reference)?;
        }
        Err(Error::new(
            Kind::Unsatisfiable,
            "a reference leads back to itself, so it never says what is allowed",
        )
        .at(self.json.place(at)))
    }

    /// The first schema of the same text, so that a difference of equal schemas folds at once. Only
    /// where there are differences at all, and one resource (so that references mean the same).
    fn twin(&mut self, at: At) -> Result<At> {
        let size = self.json.end(at) - at;
        if !self.differences || size > TWIN_SIZE || !self.resources.is_single() {
            return Ok(at);
        }
        self.fuel.spend(1 + u64::from(size) / 8)?;
        let hash = self.json.hash(at);
        let twins = self.twins.entry(hash).or_default();
        if let Some(&twin) = twins.iter().find(|&&twin| self.json.same(twin, at)) {
            return Ok(twin);
        }
        twins.push(at);
        Ok(at)
    }

    fn resolve(&mut self, at: At) -> Result<At> {
        self.resources.resolve(&mut self.json, at, self.options, &mut self.fuel)
    }

    /// The schema that a reference means.
    pub fn target(&mut self, at: At, keyword: Keyword, scope: ScopeId) -> Result<At> {
        let target = self.resolve(at)?;
        if keyword == Keyword::Ref {
            return Ok(target);
        }
        let text = self.json.text(at);
        Ok(self.resources.dynamic(text, target, scope, keyword == Keyword::RecursiveRef))
    }

    /// The set that a reference means.
    pub fn reference(&mut self, at: At, keyword: Keyword, scope: ScopeId) -> Result<SetId> {
        let target = self.target(at, keyword, scope)?;
        self.schema_set(target, scope)
    }

    /// The sets of a list of schemas.
    pub fn schema_list(&mut self, list: At, scope: ScopeId) -> Result<Vec<SetId>> {
        if self.json.kind(list) != Type::Array {
            return Err(self.malformed(list, "an array of schemas"));
        }
        let schemas: Vec<At> = self.json.items(list).collect();
        if schemas.is_empty() {
            return Err(Error::new(Kind::Syntax, "a list of schemas must not be empty")
                .at(self.json.place(list)));
        }
        schemas.into_iter().map(|schema| self.schema_set(schema, scope)).collect()
    }

    /// A bound: an integer that is not negative, saturated at the greatest u64.
    pub fn count(&self, at: At) -> Result<u64> {
        let wanted = "an integer that is not negative";
        if self.json.kind(at) != Type::Number {
            return Err(self.malformed(at, wanted));
        }
        let value = self.decimal(at)?;
        if !value.is_integer() || value.is_negative() {
            let message = format!("expected {wanted}, found {}", quote(self.json.text(at)));
            return Err(Error::new(Kind::Syntax, message).at(self.json.place(at)));
        }
        if value.is_zero() {
            return Ok(0);
        }
        let digits = value.magnitude();
        let power = u32::try_from(value.exponent).unwrap_or(u32::MAX);
        let scale = 10u64.checked_pow(power).unwrap_or(u64::MAX);
        Ok(u64::try_from(digits).unwrap_or(u64::MAX).saturating_mul(scale))
    }
}
