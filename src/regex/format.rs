//! The formats of JSON Schema as expressions. (Interface.)
use crate::expr::{ExprId, Exprs};

/// A standard format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format { Date, Time, DateTime, Duration, Email, IdnEmail, Hostname, IdnHostname, Ipv4, Ipv6, Uri, UriReference, Iri, IriReference, UriTemplate, Uuid, JsonPointer, RelativeJsonPointer, Regex }

#[allow(unused_variables)]
impl Format {
    /// The format with this name in JSON Schema, if it is a standard one.
    pub fn named(name: &str) -> Option<Self> { todo!() }
    /// The strings of the format.
    pub fn expr(self, exprs: &mut Exprs) -> ExprId { todo!() }
}
