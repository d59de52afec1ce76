//! Addresses, host names and mailboxes.

use super::{idn, regex};
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

/// One label of at most `max` (5 or more) characters without hyphens in both places 3 and 4: those
/// labels are reserved (RFC 5891). Written so that it needs no intersection. `first` may start it.
pub(super) fn ascii_label(first: &str, max: usize) -> String {
    let (end, any) = ("[A-Za-z0-9]", "[A-Za-z0-9-]");
    let long = format!("(?:{any}{end}|{end}-){any}{{0,{}}}{end}", max - 5);
    format!("{first}(?:{any}{{0,2}}{end}|{any}{long})?")
}

/// How many labels of what length: a name of 3 labels has at most 3·63 + 2 = 191 characters.
/// The limit of 253 characters itself would need a state for each length that is left.
const NAMES: &[(u64, usize)] = &[(3, 63), (7, 35), (15, 15)];

/// None of [`A_LABELS`] is longer.
const A_LABEL_MAX: usize = 22;

/// Labels in Punycode: the top-level domains of countries and territories in other scripts.
pub(super) const A_LABELS: &str = "\
    xn--2scrj9c xn--3e0b707e xn--3hcrj9c xn--45br5cyl xn--45brj9c xn--54b7fta0cc xn--80ao21a \
    xn--90a3ac xn--90ae xn--90ais xn--clchc0ea0b2g2a9gcd xn--d1alf xn--e1a4c xn--fiqs8s \
    xn--fiqz9s xn--fpcrj9c3d xn--fzc2c9e2c xn--gecrj9c xn--h2breg3eve xn--h2brj9c \
    xn--h2brj9c8c xn--j1amh xn--j6w193g xn--kprw13d xn--kpry57d xn--l1acc xn--lgbbat1ad8j \
    xn--mgb9awbf xn--mgba3a4f16a xn--mgbaam7a8h xn--mgbah1a3hjkrd xn--mgbai9azgqp6j \
    xn--mgbayh7gpa xn--mgbbh1a xn--mgbbh1a71e xn--mgbc0a9azcg xn--mgbcpq6gpa1a \
    xn--mgberp4a5d4ar xn--mgbgu82a xn--mgbpl2fh xn--mgbtx2b xn--mgbx4cd0ab xn--mix891f \
    xn--node xn--o3cw4h xn--ogbpf8fl xn--p1ai xn--pgbs0dh xn--qxa6a xn--qxam xn--rvc1e0am3e \
    xn--s9brj9c xn--wgbh1c xn--wgbl6a xn--xkc2al3hye2a xn--xkc2dl3a5ee0h xn--y9a3aq \
    xn--yfro4i67o xn--ygbi2ammx";

pub(super) fn hostname(exprs: &mut Exprs) -> ExprId {
    let known = known_a_labels(exprs);
    let dot = exprs.literal(".");
    let mut names = Vec::new();
    for &(count, max) in NAMES {
        let mut label = regex(exprs, &ascii_label("[A-Za-z0-9]", max));
        if max > A_LABEL_MAX {
            label = exprs.or(&[label, known]);
        }
        names.push(joined(exprs, label, dot, count));
    }
    exprs.or(&names)
}

/// The labels of [`A_LABELS`].
pub(super) fn known_a_labels(exprs: &mut Exprs) -> ExprId {
    let labels: Vec<&str> = A_LABELS.split(' ').collect();
    exprs.literals(&labels)
}

/// One to `count` of `item` with `separator` between.
pub(super) fn joined(exprs: &mut Exprs, item: ExprId, separator: ExprId, count: u64) -> ExprId {
    let next = exprs.concat(&[separator, item]);
    let others = exprs.repeat(next, 0, Some(count - 1));
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
    // Validators split at the ASCII full stop only.
    let stop = exprs.literal(".");
    let host = idn::names(exprs, stop, idn::Use::Mailbox);
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
