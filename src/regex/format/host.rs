//! Addresses, host names and mailboxes.

use super::regex;
use crate::expr::{ExprId, Exprs};

/// `IPv4address` of RFC 3986: no leading zeros.
pub(super) const IPV4: &str = concat!(
    r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}",
    r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])",
);

/// A regular expression for IPv6 addresses in which `::` stands for at least `least` groups.
///
/// The branches are those of `IPv6address` in RFC 3986: before `::` up to n groups, after it
/// exactly 7 - n, of which the last two may be written as an IPv4 address.
pub(super) fn ipv6(least: usize) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last_two = format!("(?:{group}:{group}|{IPV4})");
    let mut branches = vec![format!("(?:{group}:){{6}}{last_two}")];
    for after in 0..=8 - least {
        let before = match (8 - least).checked_sub(after) {
            None => continue,
            Some(0) => String::new(),
            Some(1) => format!("(?:{group})?"),
            Some(n) => format!("(?:(?:{group}:){{0,{}}}{group})?", n - 1),
        };
        let after = match after {
            0 => String::new(),
            1 => group.to_owned(),
            n => format!("(?:{group}:){{{}}}{last_two}", n - 2),
        };
        branches.push(format!("{before}::{after}"));
    }
    format!("(?:{})", branches.join("|"))
}

/// One label of a host name.
const LABEL: &str = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/// Code points of a host name.
const HOSTNAME_MAX: u64 = 253;

/// Labels in Punycode: the top-level domains of countries and territories in other scripts.
const A_LABELS: &[&str] = &[
    "xn--2scrj9c",
    "xn--3e0b707e",
    "xn--3hcrj9c",
    "xn--45br5cyl",
    "xn--45brj9c",
    "xn--54b7fta0cc",
    "xn--80ao21a",
    "xn--90a3ac",
    "xn--90ae",
    "xn--90ais",
    "xn--clchc0ea0b2g2a9gcd",
    "xn--d1alf",
    "xn--e1a4c",
    "xn--fiqs8s",
    "xn--fiqz9s",
    "xn--fpcrj9c3d",
    "xn--fzc2c9e2c",
    "xn--gecrj9c",
    "xn--h2breg3eve",
    "xn--h2brj9c",
    "xn--h2brj9c8c",
    "xn--j1amh",
    "xn--j6w193g",
    "xn--kprw13d",
    "xn--kpry57d",
    "xn--l1acc",
    "xn--lgbbat1ad8j",
    "xn--mgb9awbf",
    "xn--mgba3a4f16a",
    "xn--mgbaam7a8h",
    "xn--mgbah1a3hjkrd",
    "xn--mgbai9azgqp6j",
    "xn--mgbayh7gpa",
    "xn--mgbbh1a",
    "xn--mgbbh1a71e",
    "xn--mgbc0a9azcg",
    "xn--mgbcpq6gpa1a",
    "xn--mgberp4a5d4ar",
    "xn--mgbgu82a",
    "xn--mgbpl2fh",
    "xn--mgbtx2b",
    "xn--mgbx4cd0ab",
    "xn--mix891f",
    "xn--node",
    "xn--o3cw4h",
    "xn--ogbpf8fl",
    "xn--p1ai",
    "xn--pgbs0dh",
    "xn--qxa6a",
    "xn--qxam",
    "xn--rvc1e0am3e",
    "xn--s9brj9c",
    "xn--wgbh1c",
    "xn--wgbl6a",
    "xn--xkc2al3hye2a",
    "xn--xkc2dl3a5ee0h",
    "xn--y9a3aq",
    "xn--yfro4i67o",
    "xn--ygbi2ammx",
];

pub(super) fn hostname(exprs: &mut Exprs) -> ExprId {
    let label = ascii_label(exprs);
    let dot = exprs.literal(".");
    let names = joined(exprs, label, dot);
    let short = exprs.repeat(ExprId::ANY_CHAR, 1, Some(HOSTNAME_MAX));
    exprs.and(&[names, short])
}

/// A label that IDNA reserves for nothing, or a known A-label.
fn ascii_label(exprs: &mut Exprs) -> ExprId {
    let label = regex(exprs, LABEL);
    let reserved = regex(exprs, "(?s:..--.*)");
    let free = exprs.not(reserved);
    let plain = exprs.and(&[label, free]);
    let known = exprs.literals(A_LABELS);
    exprs.or(&[plain, known])
}

/// One or more of `item` with `separator` between.
fn joined(exprs: &mut Exprs, item: ExprId, separator: ExprId) -> ExprId {
    let next = exprs.concat(&[separator, item]);
    let others = exprs.repeat(next, 0, None);
    exprs.concat(&[item, others])
}

/// `Mailbox` of RFC 5321.
pub(super) fn email(exprs: &mut Exprs) -> ExprId {
    let local = local_part(exprs, "");
    let local = at_most(exprs, local, 64);
    let host = hostname(exprs);
    mailbox(exprs, local, host)
}

/// `Mailbox` of RFC 6531.
pub(super) fn idn_email(exprs: &mut Exprs) -> ExprId {
    let ascii = local_part(exprs, "");
    let ascii = at_most(exprs, ascii, 64);
    let other = local_part(exprs, r"\u{80}-\u{10FFFF}");
    let other = at_most(exprs, other, 16);
    let local = exprs.or(&[ascii, other]);
    let host = idn_domain(exprs);
    mailbox(exprs, local, host)
}

/// `Local-part`: atoms joined by dots, or a quoted string; `more` are characters beyond ASCII.
fn local_part(exprs: &mut Exprs, more: &str) -> ExprId {
    let atom = format!("[A-Za-z0-9!#$%&'*+\\-/=?^_`{{|}}~{more}]+");
    regex(exprs, &format!(r#"{atom}(?:\.{atom})*|"(?:[ !#-\[\]-~{more}]|\\[!-~])*""#))
}

fn at_most(exprs: &mut Exprs, expr: ExprId, max: u64) -> ExprId {
    let short = exprs.repeat(ExprId::ANY_CHAR, 1, Some(max));
    exprs.and(&[expr, short])
}

fn mailbox(exprs: &mut Exprs, local: ExprId, host: ExprId) -> ExprId {
    // In a mailbox, `::` stands for at least two groups.
    let literal = regex(exprs, &format!(r"\[(?:{IPV4}|IPv6:{})\]", ipv6(2)));
    let domain = exprs.or(&[host, literal]);
    let at = exprs.literal("@");
    exprs.concat(&[local, at, domain])
}

/// Labels of one writing system each: what they may start with, what may only follow, and the
/// greatest length. All are in lower case, composed, and stand for themselves in IDNA; what needs
/// a neighbour (the dot in Catalan l·l, keraia, joiners) comes with it.
const SCRIPTS: &[(&str, &str, u64)] = &[
    (
        concat!(
            "[0-9a-zß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľłńņňōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżž]",
            "|l·l",
        ),
        "",
        18,
    ),
    ("[0-9α-ωά-ώΐΰ]|͵[α-ω]", "", 18),
    ("[0-9а-џґ]", "", 18),
    ("[0-9ա-ֆ]", "", 18),
    ("[0-9ა-ჺ]", "", 18),
    ("[0-9ก-ะาเ-ๆ]", "|[ัิ-ฺ็-๎]", 18),
    ("[0-9अ-हऽ]", r"|[ँ-ःा-ौ०-९]|\u{94d}[\u{200c}\u{200d}]?", 11),
    ("[0-9〇々ぁ-ゖァ-ヺーㇰ-ㇿ㐀-䶿一-鿿]|・*[ぁ-ゖァ-ヺ一-鿿]・*", "", 11),
    ("[0-9가-힣]", "", 11),
];

/// Full stops that separate labels.
const STOPS: &str = "[.\u{3002}\u{ff0e}\u{ff61}]";

/// Greatest length with labels beyond ASCII: at worst, each two code points (a letter and a dot)
/// become ten in ASCII.
const IDN_MAX: u64 = 50;

pub(super) fn idn_hostname(exprs: &mut Exprs) -> ExprId {
    let stop = regex(exprs, STOPS);
    idn_name(exprs, stop)
}

/// Domains of mailboxes: validators want each label to start and end with a letter or digit in the
/// Unicode sense, and split at the ASCII full stop only.
fn idn_domain(exprs: &mut Exprs) -> ExprId {
    let stop = exprs.literal(".");
    let name = idn_name(exprs, stop);
    let end = r"[\p{Alphabetic}\p{N}]";
    let label = format!("{end}(?:[^.]*{end})?");
    let ends = regex(exprs, &format!(r"{label}(?:\.{label})*"));
    exprs.and(&[name, ends])
}

fn idn_name(exprs: &mut Exprs, stop: ExprId) -> ExprId {
    let ascii = ascii_label(exprs);
    let plain = joined(exprs, ascii, stop);
    let plain = at_most(exprs, plain, HOSTNAME_MAX);
    let mut labels = vec![ascii];
    for (first, more, max) in SCRIPTS {
        let text = format!("(?:{first})(?:(?:{first}{more}|-)*(?:{first}{more}))?");
        labels.push(short_label(exprs, &text, *max));
    }
    let label = exprs.or(&labels);
    let left_to_right = joined(exprs, label, stop);
    let left_to_right = at_most(exprs, left_to_right, IDN_MAX);
    let right_to_left = right_to_left(exprs, stop);
    exprs.or(&[plain, left_to_right, right_to_left])
}

/// Labels of a regular expression with at most `max` code points, and no `--` in places 3 and 4.
fn short_label(exprs: &mut Exprs, text: &str, max: u64) -> ExprId {
    let label = regex(exprs, text);
    let reserved = regex(exprs, "(?s:..--.*)");
    let free = exprs.not(reserved);
    let short = exprs.repeat(ExprId::ANY_CHAR, 1, Some(max));
    exprs.and(&[label, free, short])
}

/// Names with Hebrew or Arabic labels. By the Bidi rule (RFC 5893) every label then starts with
/// a letter, and a label has digits of one kind.
fn right_to_left(exprs: &mut Exprs, stop: ExprId) -> ExprId {
    let hebrew = "[א-ת][׳״]?(?:(?:[א-ת][׳״]?|[0-9-])*(?:[א-ת][׳״]?|[0-9]))?";
    let letter = "[ء-ؿف-يٱ-ٴٹ-ۓەۺ-ۼ۽۾]";
    let arabic = ["0-9", "٠-٩", "۰-۹"]
        .map(|digits| format!("{letter}(?:(?:{letter}|[{digits}-])*(?:{letter}|[{digits}]))?"));
    let ascii = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
    let text = format!("{ascii}|{hebrew}|{}", arabic.join("|"));
    let label = short_label(exprs, &text, 11);
    let names = joined(exprs, label, stop);
    at_most(exprs, names, IDN_MAX)
}
