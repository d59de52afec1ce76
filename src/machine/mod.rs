//! (not written yet)
pub mod number;
