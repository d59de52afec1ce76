//! Dates and times of RFC 3339.

use super::regex;
use crate::expr::{ExprId, Exprs};

/// Any day but 29 February, and 29 February in the years that have it.
const DATE: &str = concat!(
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))",
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29",
);

const HOUR: &str = "(?:[01][0-9]|2[0-3])";
const MINUTE: &str = "[0-5][0-9]";
const FRACTION: &str = r"(?:\.[0-9]+)?";

pub(super) fn date(exprs: &mut Exprs) -> ExprId {
    regex(exprs, DATE)
}

pub(super) fn time(exprs: &mut Exprs) -> ExprId {
    let usual = format!("{HOUR}:{MINUTE}:{MINUTE}{FRACTION}(?:[Zz]|[+-]{HOUR}:{MINUTE})");
    let usual = regex(exprs, &usual);
    let leap = leap_second(exprs);
    exprs.or(&[usual, leap])
}

/// Second 60, which is there at 23:59 UTC only: at `01:29` local time with the offset `+01:30` or,
/// on the other side, `-22:30`. Offsets are multiples of a quarter of an hour.
fn leap_second(exprs: &mut Exprs) -> ExprId {
    let mut hours = Vec::new();
    for hour in 0..24 {
        let mut minutes = Vec::new();
        for minute in [14, 29, 44, 59] {
            let ahead = (hour * 60 + minute + 1) % (24 * 60);
            let behind = (24 * 60 - ahead) % (24 * 60);
            let offset =
                |sign: char, minutes: i32| format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            let mut zones = vec![offset('+', ahead), offset('-', behind)];
            if ahead == 0 {
                zones.extend(["Z".to_owned(), "z".to_owned()]);
            }
            let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
            let text = exprs.literal(&format!("{minute}:60"));
            let fraction = regex(exprs, FRACTION);
            let zones = exprs.literals(&zones);
            minutes.push(exprs.concat(&[text, fraction, zones]));
        }
        let text = exprs.literal(&format!("{hour:02}:"));
        let minutes = exprs.or(&minutes);
        hours.push(exprs.concat(&[text, minutes]));
    }
    exprs.or(&hours)
}

pub(super) fn date_time(exprs: &mut Exprs) -> ExprId {
    let date = date(exprs);
    let separator = exprs.class(&[('T', 'T'), ('t', 't')]);
    let time = time(exprs);
    exprs.concat(&[date, separator, time])
}

/// `dur-year` may be followed by `dur-month`, that by `dur-day`; no unit is skipped. Weeks are alone.
pub(super) fn duration(exprs: &mut Exprs) -> ExprId {
    let day = "[0-9]+D";
    let month = format!("[0-9]+M(?:{day})?");
    let date = format!("(?:{day}|{month}|[0-9]+Y(?:{month})?)");
    let second = "[0-9]+S";
    let minute = format!("[0-9]+M(?:{second})?");
    let time = format!("T(?:{second}|{minute}|[0-9]+H(?:{minute})?)");
    regex(exprs, &format!("P(?:{date}(?:{time})?|{time}|[0-9]+W)"))
}
