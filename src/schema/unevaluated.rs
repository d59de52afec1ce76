//! `unevaluatedProperties` and `unevaluatedItems`: what the rest of the schema has looked at.
//!
//! A schema with one of these is a union of *branches*: ways to be valid, each with its parts and with what
//! it evaluated. `anyOf` has a branch for every set of members that may hold together; a branch need not
//! say that the other members fail, since evaluating less only makes the condition stricter, and the branch
//! in which they hold is there too. In each branch the keyword is ordinary: it rules the keys outside
//! the evaluated ones, or the items behind them.
//!
//! `{"anyOf":[{"properties":{"a":true}},{"properties":{"b":true}}],"unevaluatedProperties":false}` has the
//! branches {a}, {b} and {a, b}, hence the keys `a` and `b` and no others.
//!
//! The number of branches is bounded; beyond it the schema is refused as too complex.

use super::array::ArrayShape;
use super::draft::Draft;
use super::json::{At, Type};
use super::keywords::{Keyword, Keywords};
use super::normal::{Compiler, Parts};
use super::object::ObjectShape;
use super::resolve::ScopeId;
use super::sets::SetId;
use super::text::Text;
use crate::error::{Error, Kind, Result};
use std::rc::Rc;

/// What a branch has evaluated.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    keys: Text,
    /// Items up to here; `usize::MAX` is all.
    items: usize,
    /// Items in these sets, wherever they stand.
    like: Vec<SetId>,
}

/// One way to be valid.
#[derive(Debug, Clone)]
struct Branch {
    parts: Parts,
    seen: Seen,
}

/// The most branches of one schema.
const BRANCHES: usize = 512;

/// How deep branches look into schemas that stand in place.
const DEPTH: u32 = 48;

impl Compiler<'_> {
    /// The parts of a schema with `unevaluatedProperties` or `unevaluatedItems`.
    pub fn annotated_parts(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<Parts> {
        let mut out = Parts::never();
        for branch in self.branches(keywords.at, scope, 0)? {
            out = self.or_parts(&out, &branch.parts)?;
        }
        Ok(out)
    }

    /// The branches of a schema at a place.
    fn branches(&mut self, at: At, scope: ScopeId, depth: u32) -> Result<Vec<Branch>> {
        if depth > DEPTH {
            let message = "unevaluated keywords look into schemas nested too deep";
            let kind = Kind::TooComplex { what: "nesting", limit: DEPTH.into() };
            return Err(Error::new(kind, message).at(self.json.place(at)));
        }
        let nothing = Seen { keys: Text::None, items: 0, like: Vec::new() };
        match self.json.kind(at) {
            Type::True => return Ok(vec![Branch { parts: Parts::any(), seen: nothing }]),
            Type::False => return Ok(Vec::new()),
            _ => {}
        }
        let scope = self.resources.enter(scope, at);
        let keywords = self.keywords(at);
        let parts = self.own_parts(&keywords, scope)?;
        let seen = self.own_seen(&keywords, scope)?;
        let mut branches = vec![Branch { parts, seen }];
        for keyword in [Keyword::Ref, Keyword::DynamicRef, Keyword::RecursiveRef] {
            if let Some(reference) = keywords.get(keyword) {
                let target = self.target(reference, keyword, scope)?;
                let arms = self.branches(target, scope, depth + 1)?;
                branches = self.product(&branches, &arms)?;
            }
        }
        if let Some(list) = keywords.get(Keyword::AllOf) {
            for schema in self.schemas(list)? {
                let arms = self.branches(schema, scope, depth + 1)?;
                branches = self.product(&branches, &arms)?;
            }
        }
        branches = self.branch_any_of(&keywords, scope, depth, branches)?;
        branches = self.branch_one_of(&keywords, scope, depth, branches)?;
        branches = self.branch_conditions(&keywords, scope, depth, branches)?;
        self.rule(&keywords, scope, branches)
    }

    fn schemas(&self, list: At) -> Result<Vec<At>> {
        if self.json.kind(list) != Type::Array {
            return Err(self.malformed(list, "an array of schemas"));
        }
        Ok(self.json.items(list).collect())
    }

    /// What the keywords of the schema itself evaluate.
    fn own_seen(&mut self, keywords: &Keywords, scope: ScopeId) -> Result<Seen> {
        let mut keys = Text::None;
        if let Some(map) = keywords.get(Keyword::Properties) {
            let names: Vec<At> = self.json.members(map).map(|member| member.0).collect();
            keys = Text::literals(
                names.into_iter().map(|key| self.names.intern(self.json.text(key))).collect(),
            );
        }
        if let Some(map) = keywords.get(Keyword::PatternProperties) {
            let patterns: Vec<At> = self.json.members(map).map(|member| member.0).collect();
            for pattern in patterns {
                let matched = Text::expr(self.pattern(pattern)?);
                keys = keys.or(&matched, &mut self.tools())?;
            }
        }
        if keywords.get(Keyword::AdditionalProperties).is_some() {
            keys = Text::All;
        }
        let mut items = 0;
        let tuple = |at: At| self.json.kind(at) == Type::Array;
        if let Some(at) = keywords.get(Keyword::PrefixItems) {
            items = self.json.items(at).count();
        }
        if let Some(at) = keywords.get(Keyword::Items) {
            items = if tuple(at) { self.json.items(at).count() } else { usize::MAX };
            if tuple(at) && keywords.get(Keyword::AdditionalItems).is_some() {
                items = usize::MAX;
            }
        }
        let mut like = Vec::new();
        // Draft 2020-12: the items that `contains` found count as evaluated.
        if keywords.draft >= Draft::Draft202012
            && let Some(at) = keywords.get(Keyword::Contains)
        {
            like.push(self.schema_set(at, scope)?);
        }
        Ok(Seen { keys, items, like })
    }

    /// Both together, for each pair.
    fn product(&mut self, a: &[Branch], b: &[Branch]) -> Result<Vec<Branch>> {
        let mut out = Vec::new();
        for x in a {
            for y in b {
                let parts = self.and_parts(&x.parts, &y.parts)?;
                if !parts.is_never() {
                    let seen = self.join(&x.seen, &y.seen)?;
                    self.push(&mut out, Branch { parts, seen })?;
                }
            }
        }
        Ok(out)
    }

    fn join(&mut self, a: &Seen, b: &Seen) -> Result<Seen> {
        let keys = a.keys.or(&b.keys, &mut self.tools())?;
        let mut like = a.like.clone();
        like.extend(b.like.iter().filter(|set| !a.like.contains(set)));
        Ok(Seen { keys, items: a.items.max(b.items), like })
    }

    /// Adds a branch; branches that evaluated the same are one.
    fn push(&mut self, out: &mut Vec<Branch>, branch: Branch) -> Result<()> {
        self.fuel.spend(4)?;
        if let Some(known) = out.iter_mut().find(|known| known.seen == branch.seen) {
            known.parts = self.or_parts(&known.parts, &branch.parts)?;
            return Ok(());
        }
        out.push(branch);
        self.check_count("branches under an unevaluated keyword", out.len(), BRANCHES)
    }

    /// Every non-empty set of members of `anyOf`.
    fn branch_any_of(
        &mut self,
        keywords: &Keywords,
        scope: ScopeId,
        depth: u32,
        branches: Vec<Branch>,
    ) -> Result<Vec<Branch>> {
        let Some(list) = keywords.get(Keyword::AnyOf) else { return Ok(branches) };
        let (mut without, mut with) = (branches, Vec::new());
        for schema in self.schemas(list)? {
            let arms = self.branches(schema, scope, depth + 1)?;
            let mut joined = self.product(&without, &arms)?;
            joined.extend(self.product(&with, &arms)?);
            for branch in joined {
                self.push(&mut with, branch)?;
            }
        }
        without.clear();
        Ok(with)
    }

    /// Exactly one member of `oneOf`.
    fn branch_one_of(
        &mut self,
        keywords: &Keywords,
        scope: ScopeId,
        depth: u32,
        branches: Vec<Branch>,
    ) -> Result<Vec<Branch>> {
        let Some(list) = keywords.get(Keyword::OneOf) else { return Ok(branches) };
        let schemas = self.schemas(list)?;
        let sets = self.schema_list(list, scope)?;
        let mut out = Vec::new();
        for (i, &schema) in schemas.iter().enumerate() {
            let arms = self.branches(schema, scope, depth + 1)?;
            for mut branch in self.product(&branches, &arms)? {
                for other in
                    sets.iter().enumerate().filter(|other| other.0 != i).map(|other| *other.1)
                {
                    let other = self.parts(other)?;
                    branch.parts = self.minus(&branch.parts, &other)?;
                }
                if !branch.parts.is_never() {
                    self.push(&mut out, branch)?;
                }
            }
        }
        Ok(out)
    }

    /// `not`, `if` and dependent schemas.
    fn branch_conditions(
        &mut self,
        keywords: &Keywords,
        scope: ScopeId,
        depth: u32,
        mut branches: Vec<Branch>,
    ) -> Result<Vec<Branch>> {
        if let Some(at) = keywords.get(Keyword::Not) {
            let set = self.schema_set(at, scope)?;
            branches = self.subtracted(branches, set)?;
        }
        if let Some(at) = keywords.get(Keyword::If) {
            let condition = self.schema_set(at, scope)?;
            let arms = self.branches(at, scope, depth + 1)?;
            let mut yes = self.product(&branches, &arms)?;
            let mut no = self.subtracted(branches, condition)?;
            for (keyword, side) in [(Keyword::Then, &mut yes), (Keyword::Else, &mut no)] {
                if let Some(at) = keywords.get(keyword) {
                    let arms = self.branches(at, scope, depth + 1)?;
                    *side = self.product(side, &arms)?;
                }
            }
            branches = Vec::new();
            for branch in yes.into_iter().chain(no) {
                self.push(&mut branches, branch)?;
            }
        }
        for (name, schema) in self.dependent_schemas(keywords)? {
            let arms = self.branches(schema, scope, depth + 1)?;
            let absent = Rc::new(ObjectShape::with(name, SetId::NEVER, false));
            let absent = Parts::any_but_objects(vec![absent]);
            let present = Rc::new(ObjectShape::with(name, SetId::ANY, true));
            let present = Parts { objects: vec![present], ..Parts::never() };
            let nothing = Seen { keys: Text::None, items: 0, like: Vec::new() };
            let without =
                self.product(&branches, &[Branch { parts: absent, seen: nothing.clone() }])?;
            let with = self.product(&branches, &[Branch { parts: present, seen: nothing }])?;
            let with = self.product(&with, &arms)?;
            branches = Vec::new();
            for branch in without.into_iter().chain(with) {
                self.push(&mut branches, branch)?;
            }
        }
        Ok(branches)
    }

    fn subtracted(&mut self, branches: Vec<Branch>, set: SetId) -> Result<Vec<Branch>> {
        let cut = self.parts(set)?;
        let mut out = Vec::with_capacity(branches.len());
        for branch in branches {
            let parts = self.minus(&branch.parts, &cut)?;
            if !parts.is_never() {
                out.push(Branch { parts, ..branch });
            }
        }
        Ok(out)
    }

    /// Applies the unevaluated keywords of the schema to its branches.
    fn rule(
        &mut self,
        keywords: &Keywords,
        scope: ScopeId,
        branches: Vec<Branch>,
    ) -> Result<Vec<Branch>> {
        let mut branches = branches;
        if let Some(at) = keywords.get(Keyword::UnevaluatedProperties) {
            let set = self.schema_set(at, scope)?;
            for branch in &mut branches {
                let shape = match &branch.seen.keys {
                    Text::All => ObjectShape::any(),
                    Text::None => ObjectShape { rest: set, ..ObjectShape::any() },
                    keys => ObjectShape {
                        classes: vec![(keys.clone(), SetId::ANY)],
                        rest: set,
                        ..ObjectShape::any()
                    },
                };
                let ruled = Parts::any_but_objects(vec![Rc::new(shape)]);
                branch.parts = self.and_parts(&branch.parts, &ruled)?;
                branch.seen.keys = Text::All;
            }
        }
        if let Some(at) = keywords.get(Keyword::UnevaluatedItems) {
            let set = self.schema_set(at, scope)?;
            for branch in &mut branches {
                if branch.seen.items != usize::MAX {
                    let mut rest = set;
                    for &like in &branch.seen.like {
                        rest = self.sets.or(rest, like);
                    }
                    let shape = ArrayShape {
                        prefix: vec![SetId::ANY; branch.seen.items],
                        rest,
                        ..ArrayShape::any()
                    };
                    let ruled = Parts { arrays: vec![Rc::new(shape)], ..Parts::any() };
                    branch.parts = self.and_parts(&branch.parts, &ruled)?;
                }
                branch.seen.items = usize::MAX;
            }
        }
        Ok(branches)
    }
}
