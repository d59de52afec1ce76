//! A compiled constraint: a grammar over a vocabulary, immutable, shared by threads.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::HashMap;

use crate::cost::{self, Costs, Judge, Plan};
use crate::error::{Error, Kind, Result, quote};
use crate::expr::Document;
use crate::grammar::{Grammar, Node, NodeId, SpecialSpec, Terminal};
use crate::limits::{Cancel, Fuel};
use crate::machine::{Program, Sequence, States, Thread};
use crate::mask::{Basis, Configs, Tables, TokenSet};
use crate::observe::Span;
use crate::vocab::{TokenId, Vocabulary};

/// A grammar made ready for a vocabulary. `Send + Sync`; cloning it copies one pointer.
///
/// ```
/// use constrain::{Constraint, schema, vocab::{Token, Vocabulary}};
///
/// // A vocabulary of single bytes and an end token.
/// let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
/// tokens.push(Token::Special("<end>".into()));
/// let vocabulary = Vocabulary::new(tokens, vec![256])?;
///
/// let grammar = schema::compile(r#"{"enum": ["yes", "no"]}"#, &schema::Options::default())?;
/// let mut matcher = Constraint::new(&grammar, &vocabulary)?.matcher();
/// matcher.accept_bytes(br#""n"#)?;
/// assert!(matcher.mask()?.contains(u32::from(b'o')));
/// assert!(!matcher.mask()?.contains(u32::from(b'e')));
/// # Ok::<(), constrain::Error>(())
/// ```
#[derive(Clone)]
pub struct Constraint(Arc<Inner>);

struct Inner {
    vocabulary: Vocabulary,
    basis: Basis,
    /// The configuration before the first byte, and what it stands on.
    start: (Sequence, Vec<Thread>),
    /// What sequences learn, until it is too much and they start afresh.
    configs: Mutex<Arc<Configs>>,
    costs: OnceLock<Costs>,
    plan: OnceLock<Result<Option<Arc<Plan>>>>,
    /// Masks and moves that were known when they were asked for, then those that were computed.
    counts: [AtomicU64; 4],
}

/// What all constraints of a vocabulary share.
struct Universe {
    states: Arc<States>,
    tables: Arc<Tables>,
    costs: cost::Common,
}

impl Universe {
    fn of(vocabulary: &Vocabulary) -> Arc<Universe> {
        vocabulary.derived(|| {
            let states = Arc::new(States::universal(vocabulary.trie().max_len()));
            let tables = Arc::new(Tables::universal(vocabulary.shallow(), &states));
            let costs = cost::Common::new(vocabulary);
            Universe { states, tables, costs }
        })
    }
}

/// How much a constraint holds in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Configurations met so far.
    pub configurations: u32,
    /// Moves from one of them to another by a token that are known.
    pub moves: u32,
    /// Bytes of configurations, stacks, masks and moves, about. When they are too many, the
    /// constraint starts afresh.
    pub configuration_bytes: usize,
    /// Masks that were known when they were asked for. What matchers that still live have found since they
    /// last computed something is not counted yet.
    pub mask_hits: u64,
    /// Masks that were computed.
    pub mask_misses: u64,
    /// Moves that were known, as above.
    pub move_hits: u64,
    /// Moves that were computed, or tried and refused.
    pub move_misses: u64,
    /// Terminal states of this constraint.
    pub states: u32,
    /// Token tables of this constraint.
    pub tables: u32,
    /// Bytes of those tables' token sets.
    pub table_bytes: usize,
    /// Terminal states shared by all constraints of the vocabulary.
    pub shared_states: u32,
    /// Token tables shared by all constraints of the vocabulary.
    pub shared_tables: u32,
}

impl Constraint {
    /// Compiles `grammar` for `vocabulary`: checks now that it can be satisfied, and leaves the
    /// token tables to the steps that first need them.
    ///
    /// # Errors
    /// [`Kind::Unsatisfiable`] if nothing matches, [`Kind::TooComplex`] when a budget of the
    /// grammar's [`crate::Limits`] is exceeded, [`Kind::BadGrammar`] for a special token that
    /// the vocabulary does not have, [`Kind::BudgetTooSmall`] if a field has fewer tokens than its
    /// shortest value takes.
    pub fn new(grammar: &Grammar, vocabulary: &Vocabulary) -> Result<Self> {
        Self::compile(Arc::new(grammar.clone()), vocabulary, None)
    }

    /// The same as [`Constraint::new`] without copying the grammar, and able to be cancelled.
    ///
    /// # Errors
    /// As [`Constraint::new`]; [`Kind::Cancelled`] once `cancel` is raised.
    pub fn compile(
        grammar: Arc<Grammar>,
        vocabulary: &Vocabulary,
        cancel: Option<Cancel>,
    ) -> Result<Self> {
        Span::compile().within(|| Self::compiled(grammar, vocabulary, cancel))
    }

    fn compiled(
        grammar: Arc<Grammar>,
        vocabulary: &Vocabulary,
        cancel: Option<Cancel>,
    ) -> Result<Self> {
        let universe = Universe::of(vocabulary);
        let mut fuel = Fuel::new(grammar.limits.fuel);
        if let Some(cancel) = cancel {
            fuel = fuel.with_cancel(cancel);
        }
        let (specials, indices) = specials(&grammar, vocabulary)?;
        let states = Arc::clone(&universe.states);
        let program = Program::new(grammar, states, indices, &mut fuel)?;
        let tables = Tables::local(Arc::clone(&universe.tables));
        let mut start = (Sequence::new(), Vec::new());
        start.0.begin(&program, &mut start.1);
        start.0.check()?;
        let vocabulary = vocabulary.clone();
        let configs = Mutex::new(Arc::new(Configs::new(&start, program.limits().cache_bytes)));
        let basis = Basis { program, tables, specials };
        let constraint = Self(Arc::new(Inner {
            vocabulary,
            basis,
            start,
            configs,
            costs: OnceLock::new(),
            plan: OnceLock::new(),
            counts: Default::default(),
        }));
        if constraint.basis().program.has_budgets() {
            let configs = constraint.configs();
            let basis = constraint.basis();
            Judge { costs: constraint.costs(), basis, configs: &configs }.check_parts()?;
        }
        Ok(constraint)
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.0.vocabulary
    }

    /// The document that values are pieces of, if the grammar has such values and it is known.
    pub fn document(&self) -> Option<&Document> {
        self.0.basis.program.grammar().exprs.document()
    }

    /// Whether both are clones of one constraint.
    pub(crate) fn is_same(&self, other: &Constraint) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How much it holds in memory.
    pub fn stats(&self) -> Stats {
        let universe = Universe::of(self.vocabulary());
        let (configs, Basis { program, tables, .. }) = (self.configs(), self.basis());
        let [mask_hits, move_hits, mask_misses, move_misses] =
            self.0.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        Stats {
            configurations: configs.count(),
            moves: configs.moves(),
            configuration_bytes: configs.bytes(),
            mask_hits,
            mask_misses,
            move_hits,
            move_misses,
            states: program.states().count(),
            tables: tables.count(),
            table_bytes: tables.bytes(),
            shared_states: universe.states.count(),
            shared_tables: universe.tables.count(),
        }
    }

    /// Counts masks and moves: those that were known, and those that were not.
    pub(crate) fn count(&self, found: [u64; 2], missed: [u64; 2]) {
        for (count, more) in self.0.counts.iter().zip(found.into_iter().chain(missed)) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(crate) fn basis(&self) -> &Basis {
        &self.0.basis
    }

    /// What it costs to finish.
    pub(crate) fn costs(&self) -> &Costs {
        let make = || Costs::new(self.vocabulary(), &Universe::of(self.vocabulary()).costs);
        self.0.costs.get_or_init(make)
    }

    /// A whole document in few tokens, if one was found; searched for at the first call.
    pub(crate) fn plan(&self) -> Result<Option<Arc<Plan>>> {
        let search = || {
            let configs = Configs::new(&self.0.start, self.0.basis.program.limits().cache_bytes);
            let judge = Judge { costs: self.costs(), basis: self.basis(), configs: &configs };
            Ok(judge.plan(&|tokens| self.accepts(tokens))?.map(Arc::new))
        };
        self.0.plan.get_or_init(search).clone()
    }

    /// Whether tokens, the end token last, are a document.
    fn accepts(&self, tokens: &[TokenId]) -> bool {
        let mut matcher = self.matcher();
        tokens.iter().all(|&token| matcher.accept(token).is_ok())
    }

    /// The configurations that sequences share now.
    pub(crate) fn configs(&self) -> Arc<Configs> {
        Arc::clone(&self.0.configs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Those to go on with in place of `full`.
    pub(crate) fn configs_after(&self, full: &Arc<Configs>) -> Arc<Configs> {
        let mut current = self.0.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, full) || current.is_full() {
            *current = Arc::new(self.fresh_configs());
        }
        Arc::clone(&current)
    }

    /// Empty ones, for whoever has a use of their own for them.
    pub(crate) fn fresh_configs(&self) -> Configs {
        Configs::new(&self.0.start, self.0.basis.program.limits().cache_bytes)
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The sets of special tokens that the grammar names, and which node names which.
fn specials(
    grammar: &Grammar,
    vocabulary: &Vocabulary,
) -> Result<(Vec<TokenSet>, HashMap<NodeId, u32>)> {
    let (mut sets, mut indices) = (Vec::new(), HashMap::new());
    for (id, node) in grammar.nodes() {
        if let Node::Terminal(Terminal::Special(spec)) = node {
            let ids = special_ids(spec, vocabulary)?;
            indices.insert(id, sets.len() as u32);
            sets.push(TokenSet::new(ids, vocabulary.len()));
        }
    }
    Ok((sets, indices))
}

fn special_ids(spec: &SpecialSpec, vocabulary: &Vocabulary) -> Result<Vec<TokenId>> {
    let missing = |what: String| {
        Error::new(Kind::BadGrammar, format!("the vocabulary has no token {what}"))
            .help("name a token of this model, see `constrain inspect --tokenizer`")
    };
    match spec {
        SpecialSpec::Id(id) if (*id as usize) < vocabulary.len() => Ok(vec![*id]),
        SpecialSpec::Id(id) => Err(missing(format!("{id}"))),
        SpecialSpec::Named(name) => {
            let text = || {
                let mut texts = vocabulary.text_tokens();
                texts.find(|(_, bytes)| *bytes == name.as_bytes()).map(|(id, _)| id)
            };
            match vocabulary.special(name).or_else(text) {
                Some(id) => Ok(vec![id]),
                None => Err(missing(quote(name))),
            }
        }
        SpecialSpec::Not(specs) => {
            let mut excluded = vocabulary.end_tokens().to_vec();
            for spec in specs {
                match spec {
                    // One level: the negation of a negation does not occur in the syntaxes.
                    SpecialSpec::Not(_) => return Err(missing("of a double negation".to_owned())),
                    spec => excluded.extend(special_ids(spec, vocabulary)?),
                }
            }
            excluded.sort_unstable();
            let used = |&id: &TokenId| vocabulary.is_special(id) || vocabulary.bytes(id).is_some();
            let ids = (0..vocabulary.len() as TokenId).filter(used);
            Ok(ids.filter(|id| excluded.binary_search(id).is_err()).collect())
        }
    }
}
