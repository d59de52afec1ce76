//! One real step of a model: the tokens that it finds likeliest, and what each stage took.

use super::StepArgs;
use super::table::{self, Named};
use crate::args::Verbosity;
use crate::compile::Form;
use crate::input;
use crate::mask::token_text;
use crate::model::{self, Change};
use crate::report::Failure;
use constrain::model::{Batch, Message, Model, Role};
use constrain::sample::Step;
use constrain::sample::logprob::log_probs;
use constrain::sample::trace::trace;
use constrain::{Matcher, TokenId};
use serde_json::json;

/// Tokens that go through the model at a time.
const CHUNK: usize = 64;

/// Runs `constrain lab step`.
pub fn run(args: &StepArgs, verbosity: &Verbosity) -> Result<(), Failure> {
    let settings = super::settings(&args.filters, 1.0)?;
    let schema = args.schema.is_given().then(|| Form::read(&args.schema)).transpose()?;
    let grammar = schema.as_ref().map(Form::compile).transpose()?;
    let weights = model::load(&args.model, verbosity)?;
    let mut model = weights.model(Change::default())?;
    let mut tokens = model.chat(&[Message::new(Role::User, &args.prompt)])?.tokens;
    let said = model.tokenize(&args.after, false)?;
    let mut matcher: Option<Matcher> = None;
    if let (Some(schema), Some(grammar)) = (&schema, &grammar) {
        let mut open = schema.constraint(grammar, model.vocabulary())?.matcher();
        open.accept_bytes(args.after.as_bytes())?;
        matcher = Some(open);
    }
    tokens.extend_from_slice(&said);
    let logits = last_logits(&mut *model, &tokens)?;
    let mask = matcher.as_mut().map(Matcher::mask).transpose()?;
    let position = said.len() as u64;
    let step = Step { logits: &logits, mask, history: &said, position };
    let mut rows = trace(&settings, &step)?;
    // What the model thought of the allowed tokens together; any of them tells.
    let mass = log_probs(&step, 0, 0)?.mask_mass;
    rows.sort_by(|a, b| b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token)));
    let kept = rows.iter().filter(|row| row.taken_by.is_none()).count();
    let shown = &rows[..args.limit.min(rows.len())];
    let text = |id: TokenId| token_text(model.vocabulary(), id);
    if args.json {
        let row = |row: &constrain::sample::trace::TokenTrace| {
            json!({
                "id": row.token,
                "token": text(row.token),
                "logit": row.logit,
                "p": row.probability,
                "taken_by": row.taken_by.map(|stage| stage.name()),
            })
        };
        let tokens: Vec<_> = shown.iter().map(row).collect();
        let value = json!({ "mask_mass": mass, "kept": kept, "tokens": tokens });
        return input::print(&format!("{value}\n"));
    }
    let named: Vec<Named> =
        shown.iter().map(|row| Named { text: text(row.token), row: *row }).collect();
    input::print(&table::render(&named, &rows, &settings))?;
    input::print(&format!(
        "the {} likeliest of {} tokens; {kept} may be drawn; the mask kept {mass:.4} of the \
         model's probability\n",
        named.len(),
        logits.len()
    ))
}

/// The logits after some tokens, in a sequence of their own.
pub fn last_logits(model: &mut dyn Model, tokens: &[TokenId]) -> Result<Vec<f32>, Failure> {
    model.truncate(0, 0)?;
    let mut last = 0;
    for chunk in tokens.chunks(CHUNK) {
        model.eval(&Batch::prompt(0, chunk))?;
        last = chunk.len().saturating_sub(1);
    }
    Ok(model.logits(last)?.to_vec())
}
