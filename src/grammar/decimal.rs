//! Exact decimals of any size.
/// An exact decimal number: `sign * digits * 10^exponent`, normalised (no trailing zero digits).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    pub(crate) negative: bool,
    pub(crate) digits: Vec<u8>,
    pub(crate) exponent: i64,
}
