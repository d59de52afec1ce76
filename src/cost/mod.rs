//! What it costs to finish: the number of tokens that completes a configuration.
//!
//! A budget of tokens is kept by never allowing a token after which the document can no longer be
//! completed with what is left. So each configuration has a *cost*, and a token is allowed under a
//! budget of `left` tokens if the cost of the configuration after it is at most `left - 1`.
//!
//! # How
//!
//! The cost of a configuration is the number of tokens of one completion of it, which is planned
//! terminal by terminal and spelled as one text:
//!
//! ```text
//! spell       the fewest tokens of a text               "name": with the tokens `"na`, `me"`: 2
//! nodes       the completion of each node of the grammar: a least fixpoint
//! owed        what an open container still needs         object without `name`: comma, key, colon, value, brace
//! texts       texts of nodes and frames, and how many tokens they take on top of others
//! members     what an open object owes, out of the texts of its members
//! near        texts that are nearly ones that were spelled before
//! prices      stacks, threads: memoised with the configurations
//! ends        the states that the tokens of a table end in
//! narrow      the mask under a budget
//! everywhere  with how many tokens left no mask can be narrower than without a budget: nothing else is made before
//! plan        a whole document in few tokens
//! ```
//!
//! Worked example, with the tokens `true`, `":`, `,"`, `""}` and single bytes: after `{"a":` for an
//! object whose `a` is a boolean and whose `b` (a string) is required too, the text of the completion is
//! `true,"b":""}`. Its tokens are `true`, `,"`, `b`, `":`, `""}`; with the end token the cost is 6.
//!
//! Nothing of this is made while the budget is ample: `everywhere` bounds all costs by bytes that the grammar tells
//! without a price or a text, and with more tokens left than that nobody looks at a cost.
//!
//! The *minimum*, which is reported and refused by, may be lower than the cost of the start: it comes
//! from a search that also tries other texts, see `plan`.
//!
//! # Invariants
//!
//! * *Achievable.* A cost is the length of some completion in tokens: never below the least. It is at
//!   most the number of bytes of that completion, if every byte is a token.
//! * *Consistent.* A configuration of cost `n > 1` allows a token after which the cost is at most
//!   `n - 1`; cost 1 allows the end token. By induction a mask under a budget is never empty,
//!   and the output ends within it. It holds by construction: the completion is *stable*, which means
//!   that after a token of it the planned completion is its rest (the shortest text of a terminal,
//!   the plan of a container).
//! * *Pure.* A cost is a function of the configuration, whatever was computed before: masks under a
//!   budget are the same after a rollback as in a fresh replay.
//!
//! # Where it is not the least
//!
//! Where a longer text takes fewer tokens than the shortest one; where an object must have more
//! properties than are required, or has dependent ones (one key is planned after the other); where a
//! container owes more than 2,048 bytes (tokens do not reach across its terminals then). What cannot
//! be planned (over 256 distinct keys, a pattern whose shortest string was not found) costs
//! [`NEVER`]: no budget is enough then.
//!
//! One thing is not proved: values of unique items that are not strings get a margin for being
//! different (see `owed`). Where that proves too low, the budget gives way.

mod ends;
mod everywhere;
mod members;
mod narrow;
mod near;
mod nodes;
mod owed;
mod plan;
mod prices;
mod spell;
mod texts;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::HashMap;

use crate::error::Result;
use crate::expr::ExprId;
use crate::grammar::NodeId;
use crate::machine::Program;
use crate::machine::shortest::Rest;
use crate::machine::states::{Excess, StateId};
use crate::vocab::Vocabulary;

use ends::EndTables;
pub use everywhere::Room;
pub use narrow::{Judge, NEAR};
pub use plan::Plan;

use nodes::Nodes;
use spell::Spell;

/// The cost of what cannot be planned; no budget is as large.
pub const NEVER: u64 = u64::MAX;

/// Most tokens per code point of a text that is too long to be spelled.
const PER_CHARACTER: u64 = 12;

/// The shortest texts that complete terminals.
type Rests = Mutex<HashMap<StateId, Arc<Rest>>>;

/// What the costs of all constraints of a vocabulary share.
#[derive(Debug, Clone)]
pub struct Common {
    spell: Arc<Spell>,
    ends: Arc<EndTables>,
    /// What completes universal states.
    rests: Arc<Rests>,
}

impl Common {
    /// Looks up what it takes to spell.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        Self {
            spell: Arc::new(Spell::new(vocabulary)),
            ends: Arc::default(),
            rests: Arc::default(),
        }
    }
}

/// The costs of the parts of a constraint.
#[derive(Debug)]
pub struct Costs {
    vocabulary: Vocabulary,
    spell: Arc<Spell>,
    terminals: Mutex<HashMap<StateId, u64>>,
    bounds: Mutex<HashMap<StateId, u64>>,
    /// What completes the states of the constraint.
    rests: Rests,
    universal_rests: Arc<Rests>,
    /// What bounds are made of, by level and expression.
    longest: Mutex<HashMap<(bool, ExprId), Option<u64>>>,
    /// The completions of nodes, by depth where that matters.
    texts: Mutex<HashMap<(NodeId, u8), Arc<texts::Pieces>>>,
    nodes: OnceLock<Result<Nodes>>,
    /// Without and with the prices of nodes.
    everywhere: [OnceLock<Room>; 2],
    distinct: owed::Distinct,
    members: members::Members,
    near: Mutex<near::Near>,
    ends: EndTables,
}

impl Costs {
    /// Nothing computed yet.
    pub fn new(vocabulary: &Vocabulary, common: &Common) -> Self {
        Self {
            vocabulary: vocabulary.shallow(),
            spell: Arc::clone(&common.spell),
            terminals: Mutex::default(),
            bounds: Mutex::default(),
            rests: Mutex::default(),
            universal_rests: Arc::clone(&common.rests),
            longest: Mutex::default(),
            texts: Mutex::default(),
            nodes: OnceLock::new(),
            everywhere: Default::default(),
            distinct: owed::Distinct::default(),
            members: members::Members::default(),
            near: Mutex::default(),
            ends: EndTables::local(Arc::clone(&common.ends)),
        }
    }

    /// The costs of the nodes, made at the first call.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if the fuel of the grammar's limits is used up.
    fn nodes(&self, program: &Program) -> Result<&Nodes> {
        let made = self.nodes.get_or_init(|| Nodes::new(self, program));
        made.as_ref().map_err(Clone::clone)
    }

    /// The tokens of a terminal from one of its states, along its shortest text.
    fn terminal(&self, program: &Program, state: StateId, excess: Excess) -> u64 {
        let known = lock(&self.terminals).get(&state).copied();
        let own = known.unwrap_or_else(|| {
            let tokens = match &*self.rest(program, state) {
                Rest::Text(text) => self.spell.tokens(text),
                Rest::Long(points) => points.saturating_mul(PER_CHARACTER),
                Rest::Special(_) => 1,
                Rest::Unknown => NEVER,
            };
            lock(&self.terminals).insert(state, tokens);
            tokens
        });
        own.saturating_add(self.spell.spaces(u64::from(excess.min)))
    }

    /// At least the cost of any state that tokens lead to from `state`; [`NEVER`] if that is not
    /// known without looking.
    fn bound(&self, program: &Program, state: StateId, excess: Excess) -> u64 {
        let known = lock(&self.bounds).get(&state).copied();
        let own = known.unwrap_or_else(|| {
            // Bytes bound tokens only if all of them are tokens.
            let bytes = program.states().longest_rest(state, &mut lock(&self.longest));
            let bytes = bytes.filter(|_| self.spell.any_byte());
            let bound = bytes.unwrap_or(NEVER);
            lock(&self.bounds).insert(state, bound);
            bound
        });
        own.saturating_add(self.spell.spaces_at_most(u64::from(excess.min)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Entries are inserted whole, so a panic elsewhere leaves nothing half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
