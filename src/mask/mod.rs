//! From states to tokens: token tables, boundaries, and masks assembled from them.
//!
//! One operation carries everything: the *token table* of a state over a *boundary*
//! ([`tables::Tables::table`]). A boundary is a set of nodes of the vocabulary's trie: the places
//! inside tokens at which something before has ended. The table says which tokens end inside the
//! terminal, and at which places inside tokens the terminal is complete: again boundaries, at
//! which the walk goes on with what follows. The mask of a configuration is the union of the
//! tables that this chain reaches ([`collect`]).
//!
//! Worked example: after `{"name": "Bo` the state is *body of a string*. Its table over the whole
//! vocabulary (boundary: the root) has all tokens without a quote inside, and one boundary: the
//! places right after a quote. What follows the string is *comma* or *closing brace*; their
//! tables over that boundary are short lists (`","`, `"}`, ...), made once per vocabulary. So the
//! mask is one copied bitmask and a few bits more, although 1,301 tokens close a string in half
//! a thousand ways.
//!
//! Invariant: a table is a pure function of (boundary, state), so it is never stale. Tables of
//! universal states over universal boundaries belong to the vocabulary; all others to their
//! constraint.

pub mod allowed;
mod classes;
mod closing;
pub(crate) mod collect;
pub mod configs;
mod counted;
mod escapes;
mod lengths;
mod literals;
mod reach;
pub mod set;
mod spans;
pub mod tables;
mod walk;
mod ways;
mod wide;

pub use allowed::Allowed;
pub use configs::{Arrival, Basis, ConfigId, Configs, Lead, Memo};
pub use lengths::{any_string, cumulative, walk_string};
pub use set::TokenSet;
pub use tables::{BoundaryId, TableId, Tables, TokenTable};
