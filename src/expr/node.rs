//! The arena: nodes, what is known of each, and adding one.
use super::choice::Conjunction;
use super::intern::{Slices, Texts, Values};
use super::table::Table;
use super::{Document, ExprId, LiteralId, Transition, class};
use crate::error::{Error, Kind, Result};
use crate::limits::Fuel;
use hashbrown::HashMap;
use std::sync::Arc;

/// "No upper bound" of a count or a length.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Room beyond the limit for one call of a constructor.
const SLACK: usize = 1 << 16;

/// An expression; children are older than parents, but for [`Node::Later`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// No string.
    Never,
    /// The empty string.
    Epsilon,
    /// One code point of a class (an id of `Exprs::classes`).
    Class(u32),
    /// The first, which is no `Concat`, then the second.
    Concat(ExprId, ExprId),
    /// Any of a list (an id of `Exprs::lists`).
    Or(u32),
    /// All of a list.
    And(u32),
    /// Everything else.
    Not(ExprId),
    /// Item, least and greatest count.
    Repeat(ExprId, u64, u64),
    /// What is left of one literal from a byte offset.
    Literal(LiteralId, u32),
    /// What is left of many literals.
    Set(SetNode),
    /// What `Exprs::definitions` says; the flag is whether it holds the empty string.
    Later(u32, bool),
    /// A state of the suffix automaton of a document (an index of `Exprs::documents`).
    Span(u32, u32),
}

/// Strings `lo..hi` of a sorted set, all with the same first `depth` bytes, without those bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SetNode {
    /// Id of `Exprs::sets`.
    pub(super) set: u32,
    pub(super) lo: u32,
    pub(super) hi: u32,
    pub(super) depth: u32,
    /// Id of `Exprs::filters`, 0 for all of `lo..hi`; else the words that cover `lo..hi`.
    /// The first and the last string are always in.
    pub(super) filter: u32,
}

/// Whether a language is empty, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Live,
    Dead,
    Unknown,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Info {
    /// Bounds of the lengths; exact for an expression without `And` and `Not`.
    pub(super) min: u64,
    pub(super) max: u64,
    /// Matches the empty string.
    pub(super) nullable: bool,
    /// Holds an `And` or a `Not`.
    pub(super) boolean: bool,
    pub(super) life: Life,
}

/// The arena of expressions, see the [module](self).
#[derive(Debug, Clone)]
pub struct Exprs {
    pub(super) nodes: Values<Node>,
    pub(super) infos: Vec<Info>,
    pub(super) tables: Vec<Table>,
    /// The runs of all tables.
    pub(super) runs: Vec<Transition>,
    pub(super) lists: Slices<ExprId>,
    pub(super) classes: Slices<class::Range>,
    /// Shared by clones until one of them adds a text.
    pub(super) texts: Arc<Texts>,
    pub(super) sets: Arc<Slices<LiteralId>>,
    pub(super) filters: Slices<u64>,
    /// Concatenations whose first half is one itself.
    pub(super) joined: HashMap<(ExprId, ExprId), ExprId>,
    /// Exact sets of lengths, see `length.rs`.
    pub(super) length_sets: HashMap<ExprId, Option<super::length::Lengths>>,
    pub(super) clamped: HashMap<(ExprId, u64), ExprId>,
    /// See [`Exprs::clamp`].
    pub(super) derivatives: HashMap<ExprId, Option<u64>>,
    /// What each [`Node::Later`] stands for.
    pub(super) definitions: Vec<ExprId>,
    /// What [`Node::Span`] takes pieces of.
    pub(super) documents: Vec<Document>,
    /// Empty, with room: a buffer of `Exprs::all_of`.
    pub(super) conjunction: Conjunction,
    /// Work of constructors, which have no fuel; the next method that has some pays for it.
    pub(super) unpaid: u64,
    limit: usize,
    overflowed: bool,
}

impl Exprs {
    /// An arena for about `limit` expressions, derivatives included.
    ///
    /// Beyond the limit every method with fuel fails before it adds anything, and works again
    /// after [`Exprs::set_limit`]. Constructors cannot fail: what they add between two such calls
    /// is as large as their input. Should that ever reach twice the limit, they return
    /// [`ExprId::NEVER`] and spoil the arena: all methods with fuel then fail for good.
    pub fn with_limit(limit: usize) -> Self {
        let mut exprs = Self {
            nodes: Values::default(),
            infos: Vec::new(),
            tables: Vec::new(),
            runs: Vec::new(),
            lists: Slices::default(),
            classes: Slices::default(),
            texts: Arc::default(),
            sets: Arc::default(),
            filters: Slices::default(),
            joined: HashMap::default(),
            length_sets: HashMap::default(),
            clamped: HashMap::default(),
            derivatives: HashMap::default(),
            definitions: Vec::new(),
            documents: Vec::new(),
            conjunction: Conjunction::default(),
            unpaid: 0,
            limit: 0,
            overflowed: false,
        };
        exprs.set_limit(limit);
        exprs.filters.intern(&[]);
        let all = exprs.classes.intern(&class::ALL);
        exprs.add(Node::Never);
        exprs.add(Node::Epsilon);
        exprs.add(Node::Class(all));
        exprs.add(Node::Repeat(ExprId::ANY_CHAR, 0, UNBOUNDED));
        exprs
    }

    /// How many expressions there are.
    #[allow(clippy::len_without_is_empty)] // never empty: four are built in
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Changes the limit of [`Exprs::with_limit`].
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.clamp(16, u32::MAX as usize / 16);
    }

    /// Whether the arena still is within its limit.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if not.
    pub fn check(&self) -> Result<()> {
        if !self.overflowed && self.used() <= self.limit {
            return Ok(());
        }
        let limit = self.limit as u64;
        Err(Error::new(
            Kind::TooComplex { what: "expressions", limit },
            format!("strings and patterns need more than {limit} expressions"),
        )
        .help("simplify the patterns, or raise Limits::expressions"))
    }

    /// Pays for what constructors did since the last call.
    ///
    /// # Errors
    /// When the fuel is used up.
    pub(crate) fn pay(&mut self, fuel: &mut Fuel) -> Result<()> {
        fuel.spend(std::mem::take(&mut self.unpaid))
    }

    pub(super) fn node(&self, expr: ExprId) -> Node {
        self.nodes.get(expr.0)
    }

    pub(super) fn info(&self, expr: ExprId) -> Info {
        self.infos[expr.0 as usize]
    }

    pub(super) fn life(&self, expr: ExprId) -> Life {
        self.infos[expr.0 as usize].life
    }

    pub(super) fn set_life(&mut self, expr: ExprId, life: Life) {
        self.infos[expr.0 as usize].life = life;
    }

    /// Matches the empty string and nothing else: [`ExprId::EPSILON`] or an exhausted literal.
    pub(super) fn is_empty_string(&self, expr: ExprId) -> bool {
        let info = self.info(expr);
        info.nullable && info.max == 0
    }

    /// How many parts a union (perhaps with the empty string) or an intersection has; 1 for all else.
    pub(crate) fn width(&self, expr: ExprId) -> usize {
        let inner = match self.node(expr) {
            Node::Repeat(item, 0, 1) => item,
            _ => expr,
        };
        match self.node(inner) {
            Node::Or(list) | Node::And(list) => self.lists.get(list).len(),
            _ => 1,
        }
    }

    /// Interns `node`, which must be normalised.
    pub(super) fn add(&mut self, node: Node) -> ExprId {
        let hash = self.nodes.hash(&node);
        if let Some(found) = self.nodes.find(&node, hash) {
            return ExprId(found);
        }
        let info = self.describe(node);
        self.add_new(node, hash, info)
    }

    /// Interns a leaf of which the lengths are known.
    pub(super) fn add_leaf(&mut self, node: Node, min: u64, max: u64) -> ExprId {
        let hash = self.nodes.hash(&node);
        if let Some(found) = self.nodes.find(&node, hash) {
            return ExprId(found);
        }
        let info = Info { min, max, nullable: min == 0, boolean: false, life: Life::Live };
        self.add_new(node, hash, info)
    }

    fn add_new(&mut self, node: Node, hash: u32, info: Info) -> ExprId {
        if self.used() > 2 * self.limit + SLACK {
            self.overflowed = true;
            return ExprId::NEVER;
        }
        self.infos.push(info);
        self.tables.push(Table::MISSING);
        ExprId(self.nodes.insert(node, hash))
    }

    /// What counts against the limit: nodes, and what they hold beyond four items each.
    fn used(&self) -> usize {
        let pooled = self.runs.len() + self.lists.pool_len() + self.classes.pool_len();
        let pooled = pooled + 2 * self.filters.pool_len() + self.joined.len();
        let pooled = pooled + self.texts.pool_len() / 4;
        self.nodes.len().max(pooled / 4)
    }

    /// Properties of a node out of those of its children. Literals, sets and pieces
    /// come by [`Exprs::add_leaf`].
    fn describe(&self, node: Node) -> Info {
        let leaf = |min, max, life| Info { min, max, nullable: min == 0, boolean: false, life };
        match node {
            Node::Never => Info { nullable: false, ..leaf(UNBOUNDED, 0, Life::Dead) },
            Node::Epsilon | Node::Literal(..) | Node::Set(_) | Node::Span(..) => {
                leaf(0, 0, Life::Live)
            }
            Node::Class(_) => leaf(1, 1, Life::Live),
            Node::Concat(a, b) => {
                let (a, b) = (self.info(a), self.info(b));
                Info {
                    min: a.min.saturating_add(b.min),
                    max: a.max.saturating_add(b.max),
                    nullable: a.nullable && b.nullable,
                    boolean: a.boolean || b.boolean,
                    life: if a.life == Life::Live { b.life } else { Life::Unknown },
                }
            }
            Node::Repeat(item, min, max) => {
                let item = self.info(item);
                let nullable = min == 0 || item.nullable;
                Info {
                    min: item.min.saturating_mul(min),
                    max: item.max.saturating_mul(max),
                    nullable,
                    boolean: item.boolean,
                    life: if nullable { Life::Live } else { item.life },
                }
            }
            Node::Later(_, nullable) => Info {
                min: u64::from(!nullable),
                max: UNBOUNDED,
                nullable,
                boolean: true,
                life: if nullable { Life::Live } else { Life::Unknown },
            },
            Node::Not(item) => self.describe_not(item),
            Node::Or(list) => self.describe_or(list),
            Node::And(list) => self.describe_and(list),
        }
    }

    fn describe_not(&self, item: ExprId) -> Info {
        let item = self.info(item);
        let live = !item.nullable || item.max != UNBOUNDED;
        Info {
            min: u64::from(item.nullable),
            max: UNBOUNDED,
            nullable: !item.nullable,
            boolean: true,
            life: if live { Life::Live } else { Life::Unknown },
        }
    }

    fn describe_or(&self, list: u32) -> Info {
        let mut out =
            Info { min: UNBOUNDED, max: 0, nullable: false, boolean: false, life: Life::Unknown };
        for &part in self.lists.get(list) {
            let part = self.info(part);
            out.min = out.min.min(part.min);
            out.max = out.max.max(part.max);
            out.nullable |= part.nullable;
            out.boolean |= part.boolean;
            if part.life == Life::Live {
                out.life = Life::Live;
            }
        }
        out
    }

    fn describe_and(&self, list: u32) -> Info {
        let mut out =
            Info { min: 0, max: UNBOUNDED, nullable: true, boolean: true, life: Life::Unknown };
        for &part in self.lists.get(list) {
            let part = self.info(part);
            out.min = out.min.max(part.min);
            out.max = out.max.min(part.max);
            out.nullable &= part.nullable;
        }
        if out.nullable || self.is_live_window(list) {
            out.life = Life::Live;
        }
        out
    }

    /// `X & .{m,n}` with a plain `X` of which the least or the greatest length is in the window
    /// (both are lengths of strings of `X`). Most intersections with lengths are of this kind.
    fn is_live_window(&self, list: u32) -> bool {
        let [a, b] = *self.lists.get(list) else {
            return false;
        };
        let (ExprId::ANY_CHAR, min, max, x) = (match (self.counts(a), self.counts(b)) {
            ((ExprId::ANY_CHAR, min, max), _) => (ExprId::ANY_CHAR, min, max, self.info(b)),
            ((..), (item, min, max)) => (item, min, max, self.info(a)),
        }) else {
            return false;
        };
        let holds = |length: u64| min <= length && length <= max;
        !x.boolean && x.life == Life::Live && (holds(x.min) || holds(x.max))
    }
}
