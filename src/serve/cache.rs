//! Compiled constraints, kept for those who ask for the same schema again.
//!
//! A constraint learns while it is used: the second request under a schema finds the masks of the first. So a
//! service that is sent schemas keeps constraints, as long as there is room for what they hold.
//!
//! By hand, room for 10 MB: A and B hold 4 MB each, A was asked for last. C takes 3: B goes, and who still
//! uses B keeps it until it is done.
//!
//! With a [`Store`], what was compiled is kept for the next process, too.
//!
//! # Invariants
//! * A constraint is found by all of what it was made from, texts and options, compared byte by byte; a
//!   hash only says where to look.
//! * Who asks for what is being compiled waits for it; nothing is compiled twice at a time, and other content is not held up.
//! * What fails is not kept. The bound holds after every call, but for the constraint that the call returned.

use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::schema;
use crate::serve::store::{self, Store};
use crate::syntax::Syntax;
use crate::vocab::Vocabulary;
use hashbrown::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a constraint is made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Content {
    text: String,
    /// None for a schema.
    syntax: Option<&'static str>,
    /// All options, spelled out.
    options: String,
}

impl Content {
    /// All of it as bytes, with the vocabulary and the version of whoever reads texts as grammars.
    fn note(&self, vocabulary: &Vocabulary) -> Vec<u8> {
        let version = env!("CARGO_PKG_VERSION");
        let Self { text, syntax, options } = self;
        let mut note = vocabulary.hash().to_vec();
        for part in [version, syntax.unwrap_or_default(), options, text] {
            note.extend((part.len() as u64).to_le_bytes());
            note.extend(part.as_bytes());
        }
        note
    }
}

/// Most warnings that are kept until somebody takes them.
const WARNINGS_MAX: usize = 100;

/// A place for a constraint, which is empty while it is compiled.
type Cell = Arc<Mutex<Option<Constraint>>>;

struct Entry {
    cell: Cell,
    /// What it was counted as.
    bytes: usize,
    /// When it was asked for last.
    used: u64,
}

#[derive(Default)]
struct State {
    entries: HashMap<Arc<Content>, Entry>,
    bytes: usize,
    clock: u64,
    hits: u64,
    misses: u64,
    loaded: u64,
    warnings: Vec<Error>,
}

/// Constraints over one vocabulary, by what they were made from. For any number of threads.
///
/// ```
/// use constrain::{model::scripted, schema, serve::ConstraintCache};
/// let cache = ConstraintCache::new(&scripted::vocabulary(), 64 << 20);
/// let options = schema::Options::default();
/// cache.schema(r#"{"type": "integer"}"#, &options)?;
/// cache.schema(r#"{"type": "integer"}"#, &options)?;
/// assert_eq!((cache.stats().hits, cache.stats().misses), (1, 1));
/// # Ok::<(), constrain::Error>(())
/// ```
pub struct ConstraintCache {
    vocabulary: Vocabulary,
    limit: usize,
    store: Option<Box<dyn Store>>,
    state: Mutex<State>,
}

/// Where a constraint was.
#[derive(Debug, Clone, Copy)]
enum Found {
    Here,
    Stored,
    Nowhere,
}

/// What a cache holds, and how often it helped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Constraints in it.
    pub constraints: usize,
    /// What they hold, about, when they were asked for last.
    pub bytes: usize,
    /// How often one was there.
    pub hits: u64,
    /// How often one was compiled.
    pub misses: u64,
    /// How often one was loaded from the store.
    pub loaded: u64,
}

impl ConstraintCache {
    /// An empty cache of constraints over `vocabulary` that together hold about `bytes`.
    pub fn new(vocabulary: &Vocabulary, bytes: usize) -> Self {
        Self { vocabulary: vocabulary.clone(), limit: bytes, store: None, state: Mutex::default() }
    }

    /// The same with a store: what is compiled is put there, and what is not in memory is looked for there first.
    /// What is damaged is stored anew, with a [warning](ConstraintCache::take_warnings). The store is to be the
    /// user's own: whoever may write into it can decide what a schema means.
    ///
    /// Constraints about a known document are not stored: there is a new one for each.
    pub fn with_store(self, store: impl Store + 'static) -> Self {
        Self { store: Some(Box::new(store)), ..self }
    }

    /// What went wrong with the store since this was asked for last; constraints were compiled instead.
    pub fn take_warnings(&self) -> Vec<Error> {
        std::mem::take(&mut self.lock().warnings)
    }

    /// The constraint of a schema.
    ///
    /// # Errors
    /// As [`Grammar::from_schema`] and [`Constraint::new`].
    pub fn schema(&self, text: &str, options: &schema::Options) -> Result<Constraint> {
        self.get(text, None, options)
    }

    /// The constraint of a text grammar.
    ///
    /// # Errors
    /// As [`Grammar::from_text`] and [`Constraint::new`].
    pub fn text(
        &self,
        text: &str,
        syntax: Syntax,
        options: &schema::Options,
    ) -> Result<Constraint> {
        self.get(text, Some(syntax), options)
    }

    /// What it holds now.
    pub fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats {
            constraints: state.entries.len(),
            bytes: state.bytes,
            hits: state.hits,
            misses: state.misses,
            loaded: state.loaded,
        }
    }

    fn get(
        &self,
        text: &str,
        syntax: Option<Syntax>,
        options: &schema::Options,
    ) -> Result<Constraint> {
        // Who stops a compilation is no part of what is compiled.
        let spelled = format!("{:?}", schema::Options { cancel: None, ..options.clone() });
        let syntax_name = syntax.map(Syntax::name);
        let content =
            Arc::new(Content { text: text.to_owned(), syntax: syntax_name, options: spelled });
        let cell = self.lock().cell(&content);
        let mut place = cell.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, made) = match &*place {
            Some(constraint) => (Found::Here, Ok(constraint.clone())),
            None => match self.load(&content, options) {
                Some(constraint) => (Found::Stored, Ok(constraint)),
                None => (Found::Nowhere, self.compile(text, syntax, options)),
            },
        };
        *place = made.as_ref().ok().cloned();
        drop(place);
        if let (Found::Nowhere, Ok(constraint)) = (found, &made) {
            self.save(&content, options, constraint);
        }
        self.lock().note(&content, &cell, made.as_ref().ok(), (found, self.limit));
        made
    }

    /// The store, if what is made with these options is kept there.
    fn store_for(&self, options: &schema::Options) -> Option<&dyn Store> {
        let is_general = options.document.as_ref().is_none_or(|document| document.is_unknown());
        self.store.as_deref().filter(|_| is_general)
    }

    /// The constraint from the store.
    fn load(&self, content: &Content, options: &schema::Options) -> Option<Constraint> {
        let store = self.store_for(options)?;
        let note = content.note(&self.vocabulary);
        let loaded = store::load(store, &note, &self.vocabulary, &options.limits);
        loaded.unwrap_or_else(|error| {
            self.warn(error);
            None
        })
    }

    /// Puts the constraint into the store.
    fn save(&self, content: &Content, options: &schema::Options, constraint: &Constraint) {
        let Some(store) = self.store_for(options) else { return };
        if let Err(error) = store::save(store, &content.note(&self.vocabulary), constraint) {
            self.warn(error);
        }
    }

    fn warn(&self, error: Error) {
        let mut state = self.lock();
        if state.warnings.len() < WARNINGS_MAX {
            state.warnings.push(error);
        }
    }

    fn compile(
        &self,
        text: &str,
        syntax: Option<Syntax>,
        options: &schema::Options,
    ) -> Result<Constraint> {
        let grammar = match syntax {
            None => Grammar::from_schema(text, options),
            Some(syntax) => Grammar::from_text(text, syntax, options),
        };
        Constraint::compile(Arc::new(grammar?), &self.vocabulary, options.cancel.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The place for what is made from `content`.
    fn cell(&mut self, content: &Arc<Content>) -> Cell {
        self.clock += 1;
        let used = self.clock;
        let new = || Entry { cell: Cell::default(), bytes: 0, used };
        let entry = self.entries.entry(Arc::clone(content)).or_insert_with(new);
        entry.used = used;
        Arc::clone(&entry.cell)
    }

    /// Counts what was found or made in `cell`, and makes room for it.
    fn note(
        &mut self,
        content: &Arc<Content>,
        cell: &Cell,
        made: Option<&Constraint>,
        (found, limit): (Found, usize),
    ) {
        match found {
            Found::Here => self.hits += 1,
            Found::Stored => self.loaded += 1,
            Found::Nowhere => self.misses += 1,
        }
        // Meanwhile it may have been evicted, and made again by somebody else.
        let entry = self.entries.get_mut(content);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.cell, cell)) else { return };
        self.bytes -= entry.bytes;
        match made {
            None => {
                self.entries.remove(content);
            }
            Some(constraint) => {
                entry.bytes = size(content, constraint);
                self.bytes += entry.bytes;
                self.evict(content, limit);
            }
        }
    }

    /// Drops what was not used for the longest time, but for one, until the rest fits.
    fn evict(&mut self, kept: &Arc<Content>, limit: usize) {
        while self.bytes > limit {
            // What is being compiled counts nothing yet.
            let others = self.entries.iter().filter(|(key, entry)| *key != kept && entry.bytes > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used) else { return };
            let oldest = Arc::clone(oldest.0);
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

/// What a constraint holds, about.
fn size(content: &Content, constraint: &Constraint) -> usize {
    /// Of a terminal state with its row of bytes, and of a table beside its sets.
    const STATE: usize = 1 << 10;
    let stats = constraint.stats();
    let counted = (stats.states + stats.tables) as usize * STATE;
    // The grammar and its expressions grow with the text.
    let texts = (content.text.len() + content.options.len()) * 8;
    texts + counted + stats.table_bytes + stats.configuration_bytes
}

impl fmt::Debug for ConstraintCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstraintCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Whitespace;
    use crate::limits::Cancel;
    use crate::model::scripted::vocabulary;
    use crate::schema::Options;

    fn schema_of(n: usize) -> String {
        format!(r#"{{"type": "string", "pattern": "^[a-f]{{{n}}}$"}}"#)
    }

    #[test]
    fn the_same_content_is_the_same_constraint() -> Result<()> {
        let cache = ConstraintCache::new(&vocabulary(), usize::MAX);
        let options = Options::default();
        let first = cache.schema(&schema_of(3), &options)?;
        assert!(first.is_same(&cache.schema(&schema_of(3), &options)?));
        // Who may stop it does not matter; everything else does.
        let stoppable = Options { cancel: Some(Cancel::default()), ..Options::default() };
        assert!(first.is_same(&cache.schema(&schema_of(3), &stoppable)?));
        let compact = Options { whitespace: Whitespace::Compact, ..Options::default() };
        assert!(!first.is_same(&cache.schema(&schema_of(3), &compact)?));
        assert!(!first.is_same(&cache.schema(&schema_of(4), &options)?));
        let choice = cache.text("true", Syntax::Choice, &options)?;
        assert!(!choice.is_same(&cache.text("true", Syntax::Regex, &options)?));
        assert!(!choice.is_same(&cache.schema("true", &options)?));
        assert_eq!((cache.stats().hits, cache.stats().misses), (2, 6));
        Ok(())
    }

    #[test]
    fn the_longest_unused_goes_first() -> Result<()> {
        let options = Options::default();
        let vocabulary = vocabulary();
        let size = {
            let cache = ConstraintCache::new(&vocabulary, usize::MAX);
            cache.schema(&schema_of(1), &options)?;
            cache.stats().bytes
        };
        let cache = ConstraintCache::new(&vocabulary, size * 3 + size / 2);
        let get = |n| cache.schema(&schema_of(n), &options);
        let kept = [get(1)?, get(2)?, get(3)?];
        get(1)?;
        get(4)?;
        assert!(cache.stats().bytes <= size * 4 && cache.stats().constraints == 3);
        assert!(get(1)?.is_same(&kept[0]) && get(3)?.is_same(&kept[2]));
        assert!(!get(2)?.is_same(&kept[1]));
        // What a sequence learns counts when it is asked for again.
        let mut matcher = get(2)?.matcher();
        let before = cache.stats().bytes;
        for byte in *b"\"ab" {
            matcher.accept_bytes(&[byte])?;
            matcher.mask()?;
        }
        get(2)?;
        assert!(cache.stats().bytes != before);
        // One that is larger than everything is returned all the same, alone.
        let small = ConstraintCache::new(&vocabulary, 1);
        small.schema(&schema_of(1), &options)?;
        small.schema(&schema_of(2), &options)?;
        assert_eq!(small.stats().constraints, 1);
        Ok(())
    }

    #[test]
    fn failures_are_not_kept() {
        let cache = ConstraintCache::new(&vocabulary(), usize::MAX);
        let cancelled = Options { cancel: Some(Cancel::default()), ..Options::default() };
        if let Some(cancel) = &cancelled.cancel {
            cancel.cancel();
        }
        assert!(cache.schema(&schema_of(3), &cancelled).is_err());
        assert!(cache.schema("{", &Options::default()).is_err());
        assert_eq!(cache.stats().constraints, 0);
        assert!(cache.schema(&schema_of(3), &Options::default()).is_ok());
    }

    /// A store in memory, which outlives caches; with `broken` nothing can be put there.
    #[derive(Clone, Default)]
    struct Shelf {
        items: Arc<Mutex<std::collections::BTreeMap<String, Vec<u8>>>>,
        broken: bool,
    }

    impl Shelf {
        fn cache(&self) -> ConstraintCache {
            ConstraintCache::new(&vocabulary(), usize::MAX).with_store(self.clone())
        }

        fn len(&self) -> usize {
            self.items.lock().expect("no test panics here").len()
        }
    }

    impl Store for Shelf {
        fn load(&self, name: &str) -> Result<Option<Vec<u8>>> {
            Ok(self.items.lock().expect("no test panics here").get(name).cloned())
        }

        fn save(&self, name: &str, bytes: &[u8]) -> Result<()> {
            if self.broken {
                return Err(Error::new(crate::error::Kind::Io, "it is broken"));
            }
            self.items.lock().expect("no test panics here").insert(name.to_owned(), bytes.to_vec());
            Ok(())
        }
    }

    #[test]
    fn the_next_process_finds_what_was_stored() -> Result<()> {
        let shelf = Shelf::default();
        let options = Options::default();
        let schema =
            r#"{"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"]}"#;
        let first = shelf.cache();
        first.schema(schema, &options)?;
        first.text("\"yes\"", Syntax::Choice, &options)?;
        let counts = |cache: &ConstraintCache| {
            let CacheStats { hits, misses, loaded, .. } = cache.stats();
            (hits, misses, loaded)
        };
        assert_eq!((counts(&first), shelf.len()), ((0, 2, 0), 2));
        let next = shelf.cache();
        let constraint = next.schema(schema, &options)?;
        next.schema(schema, &options)?;
        next.text("\"yes\"", Syntax::Choice, &options)?;
        assert_eq!(counts(&next), (1, 0, 2));
        assert!(first.take_warnings().is_empty() && next.take_warnings().is_empty());
        let mut matcher = constraint.matcher();
        assert!(matcher.accept_bytes(br#"{"a": "x"}"#).is_ok() && matcher.can_stop());
        assert!(constraint.matcher().accept_bytes(br#"{"a": 2"#).is_err());
        // Other options, and another vocabulary, are something else.
        let compact = Options { whitespace: Whitespace::Compact, ..Options::default() };
        next.schema(schema, &compact)?;
        let tokens = (0..=255u8).map(|byte| crate::vocab::Token::Text([byte].into()));
        let end = [crate::vocab::Token::Special("<end>".into())];
        let other = Vocabulary::new(tokens.chain(end).collect(), vec![256])?;
        let other = ConstraintCache::new(&other, usize::MAX).with_store(shelf.clone());
        other.schema(schema, &options)?;
        assert_eq!((counts(&next), counts(&other)), ((1, 1, 2), (0, 1, 0)));
        assert_eq!(shelf.len(), 4);
        // What is about one document is that document's.
        let document = Some(crate::expr::Document::new("abc")?);
        next.schema(schema, &Options { document, ..Options::default() })?;
        assert_eq!(shelf.len(), 4);
        Ok(())
    }

    #[test]
    fn what_is_damaged_is_stored_anew() -> Result<()> {
        let shelf = Shelf::default();
        let options = Options::default();
        shelf.cache().schema(&schema_of(3), &options)?;
        shelf.cache().schema(&schema_of(4), &options)?;
        let items: Vec<(String, Vec<u8>)> =
            shelf.items.lock().expect("no test panics here").clone().into_iter().collect();
        let (name, whole) = &items[0];
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        for bad in [&flipped[..], &whole[..middle], b"", &items[1].1] {
            shelf.save(name, bad)?;
            let cache = shelf.cache();
            for n in [3, 4] {
                let mut matcher = cache.schema(&schema_of(n), &options)?.matcher();
                matcher.accept_bytes(format!("\"{}\"", "a".repeat(n)).as_bytes())?;
                assert!(matcher.can_stop());
            }
            let warnings = cache.take_warnings();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].message().contains(&name[..8]), "{}", warnings[0]);
            assert_eq!((cache.stats().misses, cache.stats().loaded), (1, 1));
            assert_eq!(shelf.load(name)?.as_ref(), Some(whole));
        }
        // A store that cannot be written is a warning.
        let cache = Shelf { broken: true, ..shelf }.cache();
        cache.schema(&schema_of(5), &options)?;
        assert_eq!(cache.take_warnings().len(), 1);
        Ok(())
    }

    #[test]
    fn many_threads_compile_once() {
        let cache = ConstraintCache::new(&vocabulary(), usize::MAX);
        let options = Options::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..40 {
                        assert!(cache.schema(&schema_of(n % 10), &options).is_ok());
                    }
                });
            }
        });
        assert_eq!((cache.stats().misses, cache.stats().constraints), (10, 10));
    }
}
