//! The twelve fixed logits: a law small enough to see all of it.
//!
//! The tokens have texts, so that a schema or a grammar can mask them; the golden figures of the
//! stages over these logits are in the tests of the library.

use super::TwelveArgs;
use super::table::{self, Named};
use crate::compile::{Form, byte_vocabulary};
use crate::input;
use crate::report::Failure;
use constrain::matcher::Mask;
use constrain::sample::Step;
use constrain::sample::trace::trace;
use constrain::{Matcher, TokenId};
use serde::Serialize;

/// The tokens and their logits.
const TWELVE: [(&str, f32); 12] = [
    ("\"yes\"", 5.0),
    ("true", 4.6),
    ("\"no\"", 4.1),
    ("false", 3.2),
    ("1", 2.9),
    ("null", 2.2),
    ("42", 1.5),
    ("\"", 0.9),
    ("{", 0.1),
    ("[", -0.8),
    ("0.5", -2.0),
    ("perhaps", -4.5),
];

#[derive(Serialize)]
struct Wire {
    tokens: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    id: TokenId,
    logit: f32,
    p: f64,
    taken_by: Option<&'static str>,
}

/// Runs `constrain lab`.
pub fn run(args: &TwelveArgs) -> Result<(), Failure> {
    let settings = super::settings(&args.filters, 1.0)?;
    let logits = TWELVE.map(|row| row.1);
    let allowed = allowed(args)?;
    if let Some(&id) = allowed.iter().flatten().chain(&args.used).find(|&&id| id >= 12) {
        return Err(Failure::new(format!("there is no token {id}")).help("the ids are 0 to 11"));
    }
    let mask = allowed.as_deref().map(Mask::Sparse);
    let position = args.used.len() as u64;
    let step = Step { logits: &logits, mask, history: &args.used, position };
    let rows = trace(&settings, &step)?;
    if args.json {
        let row = |row: &constrain::sample::trace::TokenTrace| Row {
            id: row.token,
            logit: row.logit,
            p: row.probability,
            taken_by: row.taken_by.map(|stage| stage.name()),
        };
        let wire = Wire { tokens: rows.iter().map(row).collect() };
        let json = serde_json::to_string(&wire);
        let json = json.map_err(|error| Failure::new(format!("the table: {error}")))?;
        return input::print(&format!("{json}\n"));
    }
    let named: Vec<Named> = rows
        .iter()
        .zip(TWELVE)
        .map(|(row, (text, _))| Named { text: text.into(), row: *row })
        .collect();
    input::print(&table::render(&named, &rows, &settings))
}

/// The ids that the mask allows, ascending; `None` without a mask.
fn allowed(args: &TwelveArgs) -> Result<Option<Vec<TokenId>>, Failure> {
    if let Some(ids) = &args.mask {
        let mut ids = ids.clone();
        ids.sort_unstable();
        ids.dedup();
        return Ok(Some(ids));
    }
    if !args.schema.is_given() {
        return Ok(None);
    }
    let schema = Form::read(&args.schema)?;
    // Over single bytes a mask is exact for any text: a token is allowed if its bytes are.
    let matcher =
        schema.constraint(&schema.compile()?.without_budgets(), &byte_vocabulary()?)?.matcher();
    let after = |text: &str| -> Result<Matcher, constrain::Error> {
        let mut matcher = matcher.fork();
        matcher.accept_bytes(args.after.as_bytes())?;
        matcher.accept_bytes(text.as_bytes())?;
        Ok(matcher)
    };
    after("")?;
    let fits = (0..).zip(TWELVE).filter(|(_, (text, _))| after(text).is_ok());
    let ids: Vec<TokenId> = fits.map(|(id, _)| id).collect();
    match ids.is_empty() {
        false => Ok(Some(ids)),
        true => Err(Failure::new("the constraint allows none of the twelve tokens here")
            .help("go on with --after until one of them fits")),
    }
}
