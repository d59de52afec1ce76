//! The formats of JSON Schema as expressions.
//!
//! Each format is written as plain regular expressions, joined by intersection and complement where
//! that is shorter: `hostname` is "labels joined by dots" & "at most 253 code points".
//!
//! A format is the grammar of its RFC. Where an RFC leaves room, the language here is the smaller
//! reading, so that validators agree on every string of it. The deliberate narrowings:
//!
//! | format | narrowing | why |
//! |---|---|---|
//! | `time`, `date-time` | a leap second only with `Z` or an offset of whole quarters of an hour | all offsets in use; any offset would need 1,440 times the states |
//! | `email` | no `\ ` (escaped space) in a quoted local part | validators disagree |
//! | `idn-email` | a local part with other characters than ASCII has at most 16 | the limit of 64 counts bytes |
//! | `hostname` | a label with `--` in places 3 and 4 must be one of a list of A-labels | whether Punycode is well-formed is not regular |
//! | `hostname` | at most 3 labels, or 7 of at most 35 characters, or 15 of 15 | the limit of 253 characters itself would need a state for each length that is left |
//! | `idn-hostname` | at most 3 labels, each of at most 7 to 14 characters if not ASCII, of common writing systems, in lower case and composed | the limits count the encoding in ASCII; see `format/idn.rs` |
//! | `regex` | no back-references, names or properties; groups nested to 4, look-around not in groups | not regular |

use super::{Flags, whole_with};
use crate::expr::{ExprId, Exprs};
use crate::limits::{Fuel, Limits};

mod date;
mod host;
mod idn;
#[cfg(test)]
mod tests;
mod text;
mod uri;

/// A standard format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A day of the calendar (RFC 3339).
    Date,
    /// A time of day with its offset (RFC 3339).
    Time,
    /// A date and a time (RFC 3339).
    DateTime,
    /// A duration (RFC 3339, appendix A).
    Duration,
    /// A mailbox (RFC 5321).
    Email,
    /// A mailbox with characters beyond ASCII (RFC 6531).
    IdnEmail,
    /// A host name (RFC 1123).
    Hostname,
    /// A host name with characters beyond ASCII (RFC 5890).
    IdnHostname,
    /// An IPv4 address in dotted decimals.
    Ipv4,
    /// An IPv6 address (RFC 4291).
    Ipv6,
    /// A URI with its scheme (RFC 3986).
    Uri,
    /// A URI or a relative reference (RFC 3986).
    UriReference,
    /// A URI with characters beyond ASCII (RFC 3987).
    Iri,
    /// An IRI or a relative reference (RFC 3987).
    IriReference,
    /// A URI template of any level (RFC 6570).
    UriTemplate,
    /// A UUID (RFC 4122).
    Uuid,
    /// A JSON pointer (RFC 6901).
    JsonPointer,
    /// A relative JSON pointer.
    RelativeJsonPointer,
    /// A regular expression (ECMA-262).
    Regex,
}

/// The formats by name.
const NAMES: &[(&str, Format)] = &[
    ("date", Format::Date),
    ("time", Format::Time),
    ("date-time", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("idn-email", Format::IdnEmail),
    ("hostname", Format::Hostname),
    ("idn-hostname", Format::IdnHostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("uri", Format::Uri),
    ("uri-reference", Format::UriReference),
    ("iri", Format::Iri),
    ("iri-reference", Format::IriReference),
    ("uri-template", Format::UriTemplate),
    ("uuid", Format::Uuid),
    ("json-pointer", Format::JsonPointer),
    ("relative-json-pointer", Format::RelativeJsonPointer),
    ("regex", Format::Regex),
];

impl Format {
    /// The format with this name in JSON Schema, if it is a standard one.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Its name in JSON Schema.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// All standard formats.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(_, format)| *format)
    }

    /// The strings of the format.
    pub fn expr(self, exprs: &mut Exprs) -> ExprId {
        match self {
            Self::Date => date::date(exprs),
            Self::Time => date::time(exprs),
            Self::DateTime => date::date_time(exprs),
            Self::Duration => date::duration(exprs),
            Self::Email => host::email(exprs),
            Self::IdnEmail => host::idn_email(exprs),
            Self::Hostname => host::hostname(exprs),
            Self::IdnHostname => {
                let stop = regex(exprs, idn::STOPS);
                idn::names(exprs, stop, idn::Use::Host)
            }
            Self::Ipv4 => regex(exprs, host::IPV4),
            Self::Ipv6 => regex(exprs, &host::ipv6(1)),
            Self::Uri => uri::uri(exprs, uri::Charset::Ascii),
            Self::UriReference => uri::reference(exprs, uri::Charset::Ascii),
            Self::Iri => uri::uri(exprs, uri::Charset::Unicode),
            Self::IriReference => uri::reference(exprs, uri::Charset::Unicode),
            Self::UriTemplate => uri::template(exprs),
            Self::Uuid => regex(exprs, text::UUID),
            Self::JsonPointer => regex(exprs, text::JSON_POINTER),
            Self::RelativeJsonPointer => text::relative_json_pointer(exprs),
            Self::Regex => text::regex_format(exprs),
        }
    }

    /// All formats.
    #[cfg(test)]
    pub const ALL: [Format; 19] = [
        Self::Date,
        Self::Time,
        Self::DateTime,
        Self::Duration,
        Self::Email,
        Self::IdnEmail,
        Self::Hostname,
        Self::IdnHostname,
        Self::Ipv4,
        Self::Ipv6,
        Self::Uri,
        Self::UriReference,
        Self::Iri,
        Self::IriReference,
        Self::UriTemplate,
        Self::Uuid,
        Self::JsonPointer,
        Self::RelativeJsonPointer,
        Self::Regex,
    ];

    /// The bytes of the longest of the shortest texts that complete a string of the format, wherever it is, without a
    /// quote and an escape that is under way. A search finds it, too long to be made each time; see its test.
    pub fn longest_rest(self) -> u64 {
        match self {
            Self::JsonPointer | Self::RelativeJsonPointer => 1,
            Self::Duration | Self::UriTemplate => 3,
            Self::Ipv6 => 5,
            Self::Uri | Self::UriReference | Self::Iri | Self::IriReference => 6,
            Self::Ipv4 => 7,
            Self::Time | Self::Regex => 9,
            Self::Date => 10,
            Self::Email | Self::IdnEmail | Self::Hostname | Self::IdnHostname => 17,
            Self::DateTime => 20,
            Self::Uuid => 36,
        }
    }
}

/// A plain regular expression of this module.
fn regex(exprs: &mut Exprs, pattern: &str) -> ExprId {
    let limits = Limits { pattern_bytes: usize::MAX, ..Limits::default() };
    let built = whole_with(exprs, pattern, Flags::default(), &limits, &mut Fuel::new(1 << 20));
    debug_assert!(built.is_ok(), "{built:?}: {pattern}");
    // The texts are constants, and a test builds all of them.
    built.unwrap_or(ExprId::NEVER)
}
