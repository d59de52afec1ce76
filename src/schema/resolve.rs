//! Where references lead: identifiers, anchors, JSON pointers, dynamic scopes.
//!
//! A *resource* is a document, or a schema in it with its own `$id`. In the preorder arena of
//! [`super::json`] a resource is a range of indices, so the base of any value is that of the
//! innermost range around it. Resources are indexed once per document, by walking the places where
//! schemas stand; a text that names no identifier or anchor needs no walk.
//!
//! Example: in `{"$id":"http://a/r","$defs":{"s":{"$id":"s","$anchor":"x"}},"$ref":"s#x"}` the
//! resources are `http://a/r` and `http://a/s`; the reference joins to `http://a/s#x`, whose anchor
//! `x` is the value at `/$defs/s`.
//!
//! Dynamic references depend on the resources that evaluation passed through. That path matters
//! only through "which resource came first that has a dynamic anchor of this name", so a [`ScopeId`]
//! stands for that map and equal maps have equal ids: recursion stays finite.
//!
//! Nothing is fetched: other documents come from [`super::Options::documents`], and the drafts' own meta-schemas
//! are built in.

use super::dialect::Dialect;
use super::draft::{Draft, Holds, holds};
use super::json::{At, Json, Type};
use super::{Options, metaschemas, uri};
use crate::error::{Error, Kind, Result, quote};
use crate::limits::Fuel;

/// A set of bindings of dynamic anchors; 0 has none.
pub(super) type ScopeId = u32;

/// The name under which `$recursiveAnchor: true` is kept: no anchor can have it.
const RECURSIVE: &str = "#recursive";

#[derive(Debug)]
struct Resource {
    start: At,
    end: At,
    base: String,
    dialect: Dialect,
    /// Name, place, whether it is dynamic.
    anchors: Vec<(String, At, bool)>,
}

/// All resources of all documents read so far.
#[derive(Debug, Default)]
pub(super) struct Resources {
    list: Vec<Resource>,
    /// Bindings by [`ScopeId`] less one: sorted by name.
    scopes: Vec<Vec<(String, At)>>,
    /// Whether any resource has a dynamic anchor.
    dynamic: bool,
}

impl Resources {
    /// Indexes the document at `root`, which was retrieved from `base`.
    pub fn index(&mut self, json: &Json, root: At, base: &str, options: &Options) -> Result<()> {
        let inherited = self.list.first().map_or(Dialect::default(), |first| first.dialect);
        let dialect = dialect_of(json, root, options)?.unwrap_or(inherited);
        let base = uri::without_fragment(base).0.to_owned();
        self.list.push(Resource {
            start: root,
            end: json.end(root),
            base,
            dialect,
            anchors: Vec::new(),
        });
        let names = ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$schema"];
        if json.has_any(&names) {
            self.walk(json, root, self.list.len() - 1, options)?;
        }
        Ok(())
    }

    fn walk(&mut self, json: &Json, root: At, resource: usize, options: &Options) -> Result<()> {
        let mut todo = vec![(root, resource)];
        while let Some((at, outer)) = todo.pop() {
            let resource = self.identify(json, at, outer, options)?;
            for (key, value) in json.members(at) {
                let holds = holds(json.text(key));
                match holds {
                    Holds::Nothing => {}
                    Holds::One | Holds::OneOrList if json.is_object(value) => {
                        todo.push((value, resource))
                    }
                    Holds::Map => {
                        todo.extend(json.members(value).map(|(_, schema)| (schema, resource)))
                    }
                    _ => todo.extend(json.items(value).map(|schema| (schema, resource))),
                }
            }
        }
        Ok(())
    }

    /// Takes note of the identifiers of one schema; returns the resource that it is in.
    fn identify(&mut self, json: &Json, at: At, outer: usize, options: &Options) -> Result<usize> {
        let (mut resource, mut dialect) = (outer, self.list[outer].dialect);
        if options.draft.is_none()
            && let Some(own) = dialect_of(json, at, options)?
        {
            // Another draft counts where a resource begins, as the outer draft sees it.
            let has_id = json.member(at, dialect.draft.id_keyword()).is_some();
            dialect = if has_id || at == self.list[outer].start { own } else { dialect };
        }
        let draft = dialect.draft;
        if draft.ref_alone() && json.member(at, "$ref").is_some() {
            return Ok(resource);
        }
        let text = |key| json.member(at, key).and_then(|value| json.string(value));
        if let Some(id) = text(draft.id_keyword()) {
            let (place, fragment) = uri::without_fragment(id);
            if !place.is_empty() {
                let base = uri::join(&self.list[outer].base, place);
                resource = self.list.len();
                self.list.push(Resource {
                    start: at,
                    end: json.end(at),
                    base,
                    dialect,
                    anchors: Vec::new(),
                });
            }
            if draft.ref_alone() && !fragment.is_empty() && !fragment.starts_with('/') {
                self.anchor(json, resource, fragment, at, false)?;
            }
        }
        if draft >= Draft::Draft201909 {
            for (keyword, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                if let Some(name) = text(keyword) {
                    self.anchor(json, resource, name, at, dynamic)?;
                }
            }
            let recursive = json.member(at, "$recursiveAnchor").map(|value| json.kind(value));
            if recursive == Some(Type::True) && draft == Draft::Draft201909 {
                self.anchor(json, resource, RECURSIVE, at, true)?;
            }
        }
        Ok(resource)
    }

    fn anchor(
        &mut self,
        json: &Json,
        resource: usize,
        name: &str,
        at: At,
        dynamic: bool,
    ) -> Result<()> {
        let anchors = &mut self.list[resource].anchors;
        if name != RECURSIVE && anchors.iter().any(|a| a.0 == name && a.1 != at) {
            let message = format!("the anchor {} is defined twice", quote(name));
            return Err(Error::new(Kind::BadRef, message).at(json.place(at)));
        }
        self.dynamic |= dynamic;
        match anchors.iter_mut().find(|a| a.0 == name) {
            Some(known) => known.2 |= dynamic,
            None => anchors.push((name.to_owned(), at, dynamic)),
        }
        Ok(())
    }

    /// The innermost resource around `at`.
    fn around(&self, at: At) -> Option<&Resource> {
        if let [only] = self.list.as_slice() {
            return Some(only);
        }
        self.list.iter().filter(|r| r.start <= at && at < r.end).max_by_key(|r| r.start)
    }

    /// Whether everything belongs to one resource.
    pub fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    /// The draft and the vocabularies that rule at `at`.
    pub fn dialect(&self, at: At) -> Dialect {
        self.around(at).map_or(Dialect::default(), |r| r.dialect)
    }

    /// The scope after evaluation went from `scope` into the schema at `at`.
    pub fn enter(&mut self, scope: ScopeId, at: At) -> ScopeId {
        if !self.dynamic {
            return 0;
        }
        let mut bindings = self.bindings(scope).to_vec();
        let before = bindings.len();
        if let Some(resource) = self.around(at) {
            for (name, place, _) in resource.anchors.iter().filter(|a| a.2) {
                if !bindings.iter().any(|b| b.0 == *name) {
                    bindings.push((name.clone(), *place));
                }
            }
        }
        if bindings.len() == before {
            return scope;
        }
        bindings.sort();
        let known = self.scopes.iter().position(|s| *s == bindings);
        let index = known.unwrap_or_else(|| {
            self.scopes.push(bindings);
            self.scopes.len() - 1
        });
        index as ScopeId + 1
    }

    fn bindings(&self, scope: ScopeId) -> &[(String, At)] {
        (scope as usize).checked_sub(1).and_then(|i| self.scopes.get(i)).map_or(&[], Vec::as_slice)
    }

    /// The schema that a `$dynamicRef` or `$recursiveRef` which statically leads to `target` means.
    pub fn dynamic(&self, reference: &str, target: At, scope: ScopeId, recursive: bool) -> At {
        let name = if recursive { RECURSIVE } else { uri::without_fragment(reference).1 };
        let Some(resource) = self.around(target) else { return target };
        let marked = resource.anchors.iter().any(|a| a.0 == name && a.2 && a.1 == target);
        if !marked {
            return target;
        }
        self.bindings(scope).iter().find(|b| b.0 == name).map_or(target, |b| b.1)
    }

    /// The schema that the reference text at `at` leads to.
    pub fn resolve(
        &mut self,
        json: &mut Json,
        at: At,
        options: &Options,
        fuel: &mut Fuel,
    ) -> Result<At> {
        let Some(reference) = json.string(at).map(str::to_owned) else {
            return Err(Error::new(Kind::Syntax, "a reference must be a string").at(json.place(at)));
        };
        fuel.spend(1 + reference.len() as u64 / 16)?;
        let failed = |json: &Json, why: &str| {
            Error::new(Kind::BadRef, format!("the reference {} {why}", quote(&reference)))
                .at(json.place(at))
        };
        let Some(current) = self.around(at) else { return Err(failed(json, "stands nowhere")) };
        let (start, joined);
        let fragment = if let Some(fragment) = reference.strip_prefix('#') {
            start = self.list.iter().position(|r| std::ptr::eq(r, current)).unwrap_or(0);
            fragment
        } else {
            joined = uri::join(&current.base, &reference);
            let (place, fragment) = uri::without_fragment(&joined);
            if !self.list.iter().any(|r| r.base == place) {
                self.load(json, place, options)?;
            }
            let Some(found) = self.list.iter().position(|r| r.base == place) else {
                return Err(failed(
                    json,
                    "leads to a document that is not at hand; nothing is fetched",
                )
                .help("copy it into \"$defs\"; in the library, Options::documents takes it"));
            };
            start = found;
            fragment
        };
        let Some(fragment) = uri::percent_decode(fragment) else {
            return Err(failed(json, "has a broken % escape"));
        };
        if fragment.is_empty() {
            return Ok(self.list[start].start);
        }
        if fragment.starts_with('/') {
            return follow(json, self.list[start].start, &fragment)
                .ok_or_else(|| failed(json, "leads to nothing in the document"));
        }
        // A document has two resources where its address and its identifier differ.
        let same = self.list.iter().filter(|r| r.start == self.list[start].start);
        let mut anchors = same.flat_map(|r| &r.anchors);
        let anchor = anchors.find(|a| a.0 == fragment && a.0 != RECURSIVE);
        anchor.map(|a| a.1).ok_or_else(|| failed(json, "names an anchor that does not exist"))
    }

    fn load(&mut self, json: &mut Json, place: &str, options: &Options) -> Result<()> {
        let document =
            options.documents.iter().find(|(uri, _)| uri::without_fragment(uri).0 == place);
        let document = document.map(|(_, text)| text.as_str());
        let Some(text) = document.or_else(|| metaschemas::document(place)) else { return Ok(()) };
        let root = json.read(text, &options.limits)?;
        self.index(json, root, place, options)
    }
}

/// The dialect that a schema's `$schema`, or the option, names.
fn dialect_of(json: &Json, at: At, options: &Options) -> Result<Option<Dialect>> {
    if let Some(draft) = options.draft {
        return Ok(Some(Dialect::of(draft)));
    }
    let named = json.member(at, "$schema");
    let Some((at, uri)) = named.and_then(|at| Some((at, json.string(at)?))) else {
        return Ok(None);
    };
    Dialect::named(uri, options).map_err(|error| error.at(json.place(at)))
}

/// Follows a JSON pointer, percent-decoded already.
fn follow(json: &Json, from: At, pointer: &str) -> Option<At> {
    let mut at = from;
    for token in pointer.split('/').skip(1) {
        let unescaped;
        let name = if token.contains('~') {
            unescaped = unescape(token)?;
            unescaped.as_str()
        } else {
            token
        };
        at = match json.kind(at) {
            Type::Array => {
                let canonical = name.len() == 1 || !name.starts_with(['0', '+']);
                json.items(at).nth(name.parse().ok().filter(|_| canonical)?)?
            }
            _ => json.member(at, name)?,
        };
    }
    Some(at)
}

/// A token of a JSON pointer without its escapes; `None` if one is broken.
fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}
