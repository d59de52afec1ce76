//! URIs (RFC 3986), IRIs (RFC 3987) and URI templates (RFC 6570).

use super::{host, regex};
use crate::expr::{ExprId, Exprs};

/// Which characters stand for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// RFC 3986.
    Ascii,
    /// RFC 3987.
    Unicode,
}

/// `ucschar`.
const UCSCHAR: &str = concat!(
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}",
    r"\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}",
    r"\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}",
    r"\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}",
);

/// `iprivate`.
const IPRIVATE: &str = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}";

const PERCENT: &str = "%[0-9A-Fa-f]{2}";
const SCHEME: &str = r"[A-Za-z][A-Za-z0-9+\-.]*";
const UNRESERVED: &str = r"A-Za-z0-9\-._~";
const SUB_DELIMS: &str = r"!$&'()*+,;=";

/// The rules that URIs and references share.
struct Rules {
    /// `"//" authority path-abempty`
    network: String,
    /// `path-absolute`
    absolute: String,
    /// `path-rootless`
    rootless: String,
    /// `path-noscheme`
    no_scheme: String,
    /// `[ "?" query ] [ "#" fragment ]`
    tail: String,
}

fn rules(charset: Charset) -> Rules {
    let (unicode, private) = match charset {
        Charset::Ascii => ("", ""),
        Charset::Unicode => (UCSCHAR, IPRIVATE),
    };
    let name = format!("{UNRESERVED}{SUB_DELIMS}{unicode}");
    let one_of = |more: &str| format!("(?:[{name}{more}]|{PERCENT})");
    let (segment_char, query, fragment) =
        (one_of(":@"), one_of(&format!(":@/?{private}")), one_of(":@/?"));
    let path = format!("(?:/{segment_char}*)*");
    let future = format!("[Vv][0-9A-Fa-f]+\\.[{UNRESERVED}{SUB_DELIMS}:]+");
    let literal = format!(r"\[(?:{}|{future})\]", host::ipv6(1));
    let host = format!("(?:{literal}|{}*)", one_of(""));
    let authority = format!("(?:{}*@)?{host}(?::[0-9]*)?", one_of(":"));
    Rules {
        network: format!("//{authority}{path}"),
        absolute: format!("/(?:{segment_char}+{path})?"),
        rootless: format!("{segment_char}+{path}"),
        no_scheme: format!("{}+{path}", one_of("@")),
        tail: format!(r"(?:\?{query}*)?(?:#{fragment}*)?"),
    }
}

/// `URI`, or `IRI`.
pub(super) fn uri(exprs: &mut Exprs, charset: Charset) -> ExprId {
    let Rules { network, absolute, rootless, tail, .. } = rules(charset);
    regex(exprs, &format!("{SCHEME}:(?:{network}|{absolute}|{rootless})?{tail}"))
}

/// `URI-reference`, or `IRI-reference`.
pub(super) fn reference(exprs: &mut Exprs, charset: Charset) -> ExprId {
    let Rules { network, absolute, no_scheme, tail, .. } = rules(charset);
    let relative = regex(exprs, &format!("(?:{network}|{absolute}|{no_scheme})?{tail}"));
    let uri = uri(exprs, charset);
    exprs.or(&[uri, relative])
}

/// `URI-Template`.
pub(super) fn template(exprs: &mut Exprs) -> ExprId {
    let literal = format!("[!#$&'()*+,\\-./0-9:;=?@A-Z\\[\\]_a-z~{UCSCHAR}{IPRIVATE}]");
    let character = format!("(?:[A-Za-z0-9_]|{PERCENT})");
    let name = format!(r"{character}+(?:\.{character}+)*");
    let variable = format!(r"{name}(?::[1-9][0-9]{{0,3}}|\*)?");
    let expression = format!(r"\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}}");
    regex(exprs, &format!("(?:{literal}|{PERCENT}|{expression})*"))
}
