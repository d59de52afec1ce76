//! Flags that would have no effect: a flag that does nothing is a misunderstanding, and refused.
//!
//! What contradicts whatever the files say (`--stop-inside` without `--stop`) is the parser's to refuse, see `args`. What
//! depends on a schema or on other values has a row here: `--reasoning-field why` under a schema without a property
//! `why` ends with "--reasoning-field has no effect: no property of the schema is named "why"".

use crate::report::Failure;

/// A flag, and what it needs.
#[derive(Debug)]
pub struct Flag<'a> {
    /// As it is typed.
    pub name: &'static str,
    pub is_given: bool,
    /// Whether it has an effect.
    pub works: bool,
    /// Why it would have none: a clause.
    pub why: &'a str,
    /// What to do.
    pub help: &'a str,
}

/// Refuses the first flag that is given and does not work.
pub fn refuse(flags: &[Flag<'_>]) -> Result<(), Failure> {
    match flags.iter().find(|flag| flag.is_given && !flag.works) {
        None => Ok(()),
        Some(Flag { name, why, help, .. }) => {
            Err(Failure::new(format!("{name} has no effect: {why}")).help(*help))
        }
    }
}
