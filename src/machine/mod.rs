//! The byte automaton of a grammar: terminal states, stacks, and configurations of both.
//!
//! ```text
//! program   a grammar made ready: what is productive, how deep it nests
//!   flow      what may be empty, what begins with what
//!   state     one terminal state and its move by one byte (UTF-8, JSON escapes)
//!   states    all of them, interned, with memoised moves; universal ones shared
//!   shortest  the shortest text that completes a terminal
//!   number    the automaton of a set of numbers
//!   objects   which keys may come next        arrays   which items may come next
//!                                             unique   items that must differ
//!                                             values   what items are compared by
//! run       configurations: threads of (state, stack), closed under completion
//!   rules     sequences and repetitions         containers   arrays and objects
//!   within    budgets of tokens of parts
//!   stack     frames on hash-consed stacks
//! ```
//!
//! The machine knows no tokens: it runs on bytes. Everything in it that costs something is a
//! function of interned ids and memoised.

pub(crate) mod arrays;
pub mod concurrent;
mod flow;
pub mod number;
pub(crate) mod objects;
pub mod program;
pub mod run;
pub(crate) mod shortest;
pub mod stack;
pub mod state;
pub mod states;
#[cfg(test)]
mod tests;
mod unique;
pub(crate) mod values;

pub use program::Program;
pub use run::{Doubt, Output, Sequence, Thread};
pub use states::{StateId, States};
