//! A whole document in few tokens.
//!
//! The search walks from thread to thread by whole tokens. All tokens that lead to the same thread
//! are one step, so that a string of any length is one or two places, not one per spelling.
//!
//! First best first: by the tokens so far and the cost of the rest, which leads straight to a good
//! document. Then by breadth, for one with fewer tokens: if there is none, or one is found, the result
//! is the least there is, for tokens are what is counted. If that takes too long (beyond [`EXACT`]
//! threads or [`WORK`] places in tables), the first result stands.
//!
//! By hand, for `{"a": true}` and the tokens `{"`, `a`, `":`, `true`, `}` besides bytes: the aligned cost
//! is 8 (`{`, `"`, `a`, `"`, `:`, `true`, `}`, end). From the start, `{"` leads into the key; `a`, then `":`
//! ends before the value; 6 in all.
//!
//! What a search cannot know is the text of undeclared keys and of items that must differ. At
//! first it takes them for different; so what it finds is tried on a real matcher. If that fails,
//! it searches again without tokens that reach from such a text into the next. In a search by
//! breadth all ways there are stay in: if none of them is shorter, none that is right is.
//!
//! Invariant: the result depends on the grammar and the vocabulary alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::{HashMap, HashSet};

use super::NEVER;
use super::ends::Ends;
use super::narrow::{Judge, Narrow};
use crate::error::Result;
use crate::machine::{StateId, Thread};
use crate::mask::{BoundaryId, TokenSet};
use crate::vocab::TokenId;

/// Most threads of the exhaustive search, and of the other one.
const EXACT: usize = 600;
const GREEDY: usize = 1_000;
/// Most places of the vocabulary's trie that the tables of the searches take, each table once (some 100 ns per
/// place); half of them for the searches that are not exhaustive. A pattern can have thousands of states that nearly
/// all tokens go through.
const WORK: u64 = 1_000_000;

/// The tokens of a document, the end token included.
#[derive(Debug, Clone)]
pub struct Plan {
    tokens: Vec<TokenId>,
    exact: bool,
}

impl Plan {
    /// The tokens, the end token last.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Whether no document has fewer.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

/// A thread that was reached: from where, by which token, after how many.
struct Place {
    thread: Thread,
    from: usize,
    token: TokenId,
    tokens: u64,
}

/// Searches for a short document from `threads`, of which `accepts` must say that it is one.
pub(super) fn search(
    judge: &Judge<'_>,
    threads: &[Thread],
    accepts: &dyn Fn(&[TokenId]) -> bool,
) -> Result<Option<Plan>> {
    let mut plan: Option<Plan> = None;
    let mut work = Work { most: WORK / 2, ..Work::default() };
    for vague in [true, false] {
        let found = way(judge, threads, GREEDY, Search::greedy(vague), &mut work)?;
        if let Way::Found(tokens) = found
            && accepts(&tokens)
        {
            plan = Some(Plan { tokens, exact: false });
            break;
        }
    }
    // Shorter than that, the end token not counted.
    let most = plan.as_ref().map_or(u64::MAX, |plan| (plan.tokens.len() as u64).saturating_sub(2));
    work.most = WORK;
    match way(judge, threads, EXACT, Search::exhaustive(most), &mut work)? {
        Way::Found(tokens) if accepts(&tokens) => Ok(Some(Plan { tokens, exact: true })),
        Way::None => Ok(plan.map(|plan| Plan { exact: true, ..plan })),
        Way::Found(_) | Way::Unknown => Ok(plan),
    }
}

/// What a search came to.
enum Way {
    /// The tokens of a way to the end, the end token included.
    Found(Vec<TokenId>),
    /// There is none.
    None,
    /// It took too long.
    Unknown,
}

/// The tables that were looked at.
#[derive(Default)]
struct Work {
    seen: HashSet<(BoundaryId, StateId)>,
    /// What they take. Counted whether or not a table was known before, so that the result depends on nothing else.
    spent: u64,
    most: u64,
}

impl Work {
    /// Counts a table.
    fn count(&mut self, boundary: BoundaryId, state: StateId, ends: &Ends) {
        if self.seen.insert((boundary, state)) {
            self.spent += ends.work;
        }
    }
}

/// Searches for a way to the end among the first `most` threads.
fn way(
    judge: &Judge<'_>,
    threads: &[Thread],
    most: usize,
    mut search: Search,
    work: &mut Work,
) -> Result<Way> {
    judge.study(|narrow| {
        for &thread in threads {
            search.reach(narrow, thread, usize::MAX, 0, 0);
        }
        for _ in 0..most {
            if work.spent > work.most {
                break;
            }
            let Some((_, _, Reverse(at))) = search.queue.pop() else { return Ok(Way::None) };
            if search.places[at].thread == Thread::END {
                return Ok(Way::Found(search.tokens(narrow, at)));
            }
            search.expand(narrow, at, work);
        }
        Ok(Way::Unknown)
    })
}

struct Search {
    places: Vec<Place>,
    known: HashMap<Thread, u64>,
    /// Places by their rank, then the later ones first, then in the order of their discovery.
    queue: BinaryHeap<(Reverse<u64>, u64, Reverse<usize>)>,
    /// By breadth, else best first.
    breadth: bool,
    /// Whether tokens may go on where it depends on text that is not known what may follow.
    vague: bool,
    /// Most tokens of a way, without the end token.
    most: u64,
}

impl Search {
    /// Best first; `vague`: also by tokens that may turn out to be wrong.
    fn greedy(vague: bool) -> Self {
        Self {
            places: Vec::new(),
            known: HashMap::new(),
            queue: BinaryHeap::new(),
            breadth: false,
            vague,
            most: u64::MAX,
        }
    }

    /// By breadth, all ways of at most so many tokens.
    fn exhaustive(most: u64) -> Self {
        Self { breadth: true, most, ..Self::greedy(true) }
    }

    fn reach(
        &mut self,
        narrow: &mut Narrow<'_>,
        thread: Thread,
        from: usize,
        token: TokenId,
        tokens: u64,
    ) {
        if tokens > self.most || self.known.get(&thread).is_some_and(|&known| known <= tokens) {
            return;
        }
        let parts = narrow.basis.program.has_budgets();
        let rest = if self.breadth && !parts { 0 } else { narrow.thread(thread) };
        if parts && rest == NEVER {
            return;
        }
        let rest = if self.breadth { 0 } else { rest };
        self.known.insert(thread, tokens);
        let rank = tokens.saturating_add(rest);
        self.queue.push((Reverse(rank), tokens, Reverse(self.places.len())));
        self.places.push(Place { thread, from, token, tokens });
    }

    /// Reaches every thread one token after a place.
    fn expand(&mut self, narrow: &mut Narrow<'_>, from: usize, work: &mut Work) {
        let Place { thread, tokens, .. } = self.places[from];
        if self.known.get(&thread).is_some_and(|&known| known < tokens) {
            return;
        }
        let tokens = tokens + 1;
        let mut after = Vec::new();
        let thread = narrow.ticked(&[thread]).first().copied().unwrap_or(thread);
        let mut todo = narrow.begin(&[thread], &mut |narrow, at, index| {
            let special = narrow.basis.specials.get(index as usize).and_then(first);
            let followers = narrow.followers_of(at, None);
            after.extend(special.iter().flat_map(|&id| followers.iter().map(move |&t| (t, id))));
        });
        let tables = &narrow.basis.tables;
        let states = narrow.basis.program.states();
        while let Some((boundary, at)) = todo.pop() {
            let inside = boundary != BoundaryId::ROOT;
            if inside && !self.vague && narrow.in_doubt(at) {
                continue;
            }
            let ends = narrow.costs.ends.get(tables, states, boundary, at.state);
            work.count(boundary, at.state, &ends);
            let mut groups: Vec<_> =
                ends.iter().filter_map(|(s, t)| Some((first(t)?, *s))).collect();
            // Not in the order of states, which depends on what was computed before.
            groups.sort_unstable_by_key(|&(id, _)| id);
            for (id, state) in groups {
                let info = states.get(state);
                if info.continues() || info.special().is_some() {
                    let (state, excess) = states.refill(state, at.excess);
                    after.push((Thread { state, excess, stack: at.stack }, id));
                }
                if info.accepts() {
                    let followers = narrow.followers_of(at, info.literal());
                    after.extend(followers.into_iter().map(|thread| (thread, id)));
                }
            }
            let table = tables.get(tables.table(states, boundary, at.state));
            narrow.follow(at, table, &mut todo);
        }
        for (thread, token) in after {
            self.reach(narrow, thread, from, token, tokens);
        }
    }

    fn tokens(&self, narrow: &Narrow<'_>, mut at: usize) -> Vec<TokenId> {
        let vocabulary = narrow.basis.tables.vocabulary();
        let mut tokens: Vec<TokenId> = vocabulary.end_tokens().iter().take(1).copied().collect();
        while let Some(place) = self.places.get(at).filter(|place| place.from != usize::MAX) {
            tokens.push(place.token);
            at = place.from;
        }
        tokens.reverse();
        tokens
    }
}

/// The lowest token of a set.
fn first(set: &TokenSet) -> Option<TokenId> {
    match set {
        TokenSet::Sparse(ids) => ids.iter().min().copied(),
        TokenSet::Dense(words) => {
            let at = words.iter().position(|&word| word != 0)?;
            Some(at as TokenId * 32 + words[at].trailing_zeros())
        }
    }
}
