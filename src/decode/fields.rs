//! The fields of an object, decoded side by side (non-autoregressive at the level of fields).
//!
//! Each field is an object with that one key, under a constraint of its own, in a sequence of its
//! own; the sequences share the prompt, and one pass of the model gives all of them a token. At the
//! end the values are put together in one object.
//!
//! By hand: the fields `name` and `age`. Two sequences begin with `{"name": ` and `{"age": `; after
//! five passes they hold `{"name": "Ada"}` and `{"age": 36}`, and the output is
//! `{"name": "Ada", "age": 36}`.
//!
//! What the model says for one field it does not know when it fills in the others: faster, and less
//! consistent. Valid all the same: each value is valid under its constraint, and the whole is checked
//! against the constraint of the request.

use crate::Constraint;
use crate::decode::output::within;
use crate::decode::run::check_cancelled;
use crate::decode::track::SEQUENCE;
use crate::decode::{Decoder, FinishReason, Outcome, Request, Statistics};
use crate::error::{Error, Kind, Result, quote};
use crate::matcher::Matcher;
use crate::model::Batch;
use crate::sample::{Sampler, Step};
use crate::vocab::TokenId;
use std::time::Instant;

/// A field of a flat object.
#[derive(Clone)]
pub struct Field {
    /// Its key.
    pub name: String,
    /// What an object with this key alone must satisfy.
    pub constraint: Constraint,
}

/// How an object is written: before its first key, between a key and its value, between fields, at
/// its end.
type Style = [&'static str; 4];

/// The styles that a constraint may want, the usual one first.
const STYLES: [Style; 3] =
    [["{", ": ", ", ", "}"], ["{", ":", ",", "}"], ["{\n  ", ": ", ",\n  ", "\n}"]];

/// One field on its way.
struct Branch {
    matcher: Matcher,
    tokens: Vec<TokenId>,
    /// Bytes of the matcher's text before the value.
    start: usize,
    sampler: Sampler,
    /// Index of its logits in the last batch.
    row: usize,
    sequence: u32,
    done: bool,
}

impl Branch {
    /// The value as far as it goes, without the end of its object.
    fn value(&self) -> &[u8] {
        let value = self.matcher.text().get(self.start..).unwrap_or_default().trim_ascii();
        match self.done {
            true => value.strip_suffix(b"}").unwrap_or(value).trim_ascii_end(),
            false => value,
        }
    }
}

impl Decoder<'_> {
    /// Decodes the fields of an object side by side. The request's constraint, if it has one, is
    /// that of the whole object; its strategy is not looked at.
    ///
    /// # Errors
    /// As [`Decoder::stream`]; [`Kind::BadArgument`] without fields, with more of them than the model
    /// has sequences to spare, or with a stop text or log-probabilities.
    pub fn fields(&mut self, fields: &[Field], request: &Request) -> Result<Outcome> {
        let began = Instant::now();
        self.check(request)?;
        self.check_fields(fields, request)?;
        let mut statistics =
            Statistics { prompt_tokens: request.prompt.len(), ..Statistics::default() };
        statistics.reused_tokens = self.main.reuse(&request.prompt)?;
        let kept = self.main.held.len();
        self.main.feed(&request.prompt[kept..], false)?;
        statistics.prompt_time = began.elapsed();
        let clock = Instant::now();
        let (mut branches, style) = self.begin(fields, request)?;
        statistics.time_model(clock.elapsed(), 1);
        let room = self.main.model.context_len() - request.prompt.len();
        while branches.iter().any(|branch| !branch.done) {
            check_cancelled(request)?;
            let said: usize = branches.iter().map(|branch| branch.tokens.len()).sum();
            let longest = branches.iter().map(|b| b.start + b.tokens.len()).max().unwrap_or(0);
            if said >= request.max_tokens || longest >= room {
                break;
            }
            let clock = Instant::now();
            let mut batch = Batch::new();
            for branch in branches.iter_mut().filter(|branch| !branch.done) {
                let last = branch.tokens.last().copied().unwrap_or_default();
                branch.row = batch.push(last, branch.sequence, true);
            }
            self.main.model.eval(&batch)?;
            statistics.time_model(clock.elapsed(), 1);
            for branch in branches.iter_mut().filter(|branch| !branch.done) {
                self.advance(branch)?;
            }
        }
        let whole = branches.iter().all(|branch| branch.done);
        let bytes = join(fields, &branches, style)?;
        if let (true, Some(constraint)) = (whole, &request.constraint) {
            let mut matcher = constraint.matcher();
            matcher.accept_bytes(&bytes)?;
            if !matcher.can_stop() {
                let message = "the fields together are not what the constraint of the whole allows";
                return Err(Error::new(Kind::BadArgument, message));
            }
        }
        let tokens: Vec<TokenId> = branches.into_iter().flat_map(|branch| branch.tokens).collect();
        statistics.tokens = tokens.len();
        statistics.total_time = began.elapsed();
        let finish = if whole { FinishReason::Complete } else { FinishReason::MaxTokens };
        Ok(Outcome { bytes, tokens, finish, log_probs: Vec::new(), statistics })
    }

    fn check_fields(&self, fields: &[Field], request: &Request) -> Result<()> {
        let bad = |message: String| Err(Error::new(Kind::BadArgument, message));
        let (count, room) = (fields.len(), self.main.model.max_sequences());
        if count == 0 || count >= room {
            let message =
                format!("{count} fields need {} sequences, the model holds {room}", count + 1);
            return bad(message);
        }
        if !request.stop.is_empty() || request.log_probs.is_some() {
            return bad("fields side by side know no stop texts and no log-probabilities".into());
        }
        let hash = self.main.model.vocabulary().hash();
        match fields.iter().find(|field| field.constraint.vocabulary().hash() != hash) {
            None => Ok(()),
            Some(field) => bad(format!(
                "the constraint of field {} was compiled for another vocabulary than the model's",
                quote(&field.name)
            )),
        }
    }

    /// Begins a sequence per field, and chooses the first token of its value.
    fn begin(&mut self, fields: &[Field], request: &Request) -> Result<(Vec<Branch>, Style)> {
        let (mut branches, mut style) = (Vec::new(), STYLES[0]);
        for (sequence, field) in (1..).zip(fields) {
            let key = key(&field.name)?;
            let prefix = |style: &Style| format!("{}{key}{}", style[0], style[1]);
            let own = STYLES.iter().find(|style| {
                let mut matcher = field.constraint.matcher();
                let space: &[u8] = if style[1] == ":" { b"" } else { b" " };
                matcher.accept_bytes(prefix(style).trim_end().as_bytes()).is_ok()
                    && matcher.accept_bytes(space).is_ok()
            });
            let Some(own) = own else {
                let name = quote(&field.name);
                let message = format!("the constraint of field {name} is not an object with it");
                return Err(Error::new(Kind::BadArgument, message));
            };
            style = *own;
            // The space before a value is often part of its first token: the model says it itself.
            let prefix = prefix(own).trim_end().to_owned();
            // Of the tokens of all fields, each has its share; the beginning counts as one.
            let mut matcher = within(&field.constraint, request.max_tokens / fields.len() + 1)?;
            matcher.accept_bytes(prefix.as_bytes())?;
            let said = self.main.model.tokenize(&prefix, false)?;
            self.main.model.truncate(sequence, 0)?;
            self.main.model.copy(SEQUENCE, sequence)?;
            self.main.model.eval(&Batch::prompt(sequence, &said))?;
            // Streams of answers are small numbers: those of fields are far above them.
            let stream = u64::from(sequence) << 40 | request.index;
            let mut branch = Branch {
                matcher,
                tokens: Vec::new(),
                start: prefix.len(),
                sampler: Sampler::new(request.settings.clone(), stream)?,
                row: said.len().saturating_sub(1),
                sequence,
                done: false,
            };
            self.advance(&mut branch)?;
            branches.push(branch);
        }
        Ok((branches, style))
    }

    /// Chooses the next token of a field.
    fn advance(&self, branch: &mut Branch) -> Result<()> {
        let logits = self.main.row(branch.row)?;
        let mask = Some(branch.matcher.mask()?);
        let position = branch.tokens.len() as u64;
        let step = Step { logits, mask, history: &branch.tokens, position };
        let token = branch.sampler.sample(&step)?;
        branch.matcher.accept(token)?;
        if !self.main.model.vocabulary().is_end(token) {
            branch.tokens.push(token);
        }
        // An object that may end has ended: only white space could follow.
        branch.done = branch.matcher.can_stop();
        Ok(())
    }
}

/// A key in quotes.
fn key(name: &str) -> Result<String> {
    serde_json::to_string(name).map_err(|error| Error::new(Kind::BadArgument, error.to_string()))
}

/// The object, up to the first field that is not done.
fn join(fields: &[Field], branches: &[Branch], style: Style) -> Result<Vec<u8>> {
    let mut bytes = style[0].as_bytes().to_vec();
    for (index, (field, branch)) in fields.iter().zip(branches).enumerate() {
        if index > 0 {
            bytes.extend_from_slice(style[2].as_bytes());
        }
        bytes.extend_from_slice(key(&field.name)?.as_bytes());
        bytes.extend_from_slice(style[1].as_bytes());
        bytes.extend_from_slice(branch.value());
        if !branch.done {
            return Ok(bytes);
        }
    }
    bytes.extend_from_slice(style[3].as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;
    use crate::schema;

    const PROPERTIES: [(&str, &str); 4] = [
        ("na\"me", r#"{"type": "string", "maxLength": 6}"#),
        ("age", r#"{"type": "integer", "minimum": 0, "maximum": 150}"#),
        ("tags", r#"{"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}"#),
        ("ok", r#"{"type": "boolean"}"#),
    ];

    fn object(properties: &[(&str, &str)]) -> String {
        let pairs =
            properties.iter().map(|(name, of)| format!("{}: {of}", key(name).expect("a key")));
        let names: Vec<String> = properties.iter().map(|row| key(row.0).expect("a key")).collect();
        format!(
            r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": false}}"#,
            pairs.collect::<Vec<_>>().join(", "),
            names.join(", ")
        )
    }

    #[test]
    fn fields_make_a_valid_whole_in_fewer_passes() -> Result<()> {
        use crate::grammar::Whitespace;
        for seed in 0..24 {
            let mut model = ScriptedModel::noise(seed);
            let whitespace = [Whitespace::Flexible, Whitespace::Compact, Whitespace::Pretty(2)];
            let whitespace = whitespace[seed as usize % 3];
            let options = schema::Options { whitespace, ..schema::Options::default() };
            let constraint =
                |text: &str| Constraint::new(&schema::compile(text, &options)?, model.vocabulary());
            let whole = constraint(&object(&PROPERTIES))?;
            let fields = PROPERTIES.iter().map(|row| {
                Ok(Field { name: row.0.to_owned(), constraint: constraint(&object(&[*row]))? })
            });
            let fields = fields.collect::<Result<Vec<Field>>>()?;
            let prompt = model.plain("fill in")?.tokens;
            let settings = Settings { seed, ..Settings::drawing(0.9) };
            let request = Request::new(prompt).constrained(whole).with(settings);
            let mut decoder = Decoder::new(&mut model);
            let outcome = decoder.fields(&fields, &request)?;
            assert_eq!(outcome.finish, FinishReason::Complete);
            let value: serde_json::Value =
                serde_json::from_slice(&outcome.bytes).expect("a document");
            assert_eq!(value.as_object().map(|object| object.len()), Some(4));
            assert!(outcome.statistics.passes < outcome.tokens.len());
            // The same again is the same, also after something else.
            decoder.run(&request)?;
            assert_eq!(decoder.fields(&fields, &request)?.bytes, outcome.bytes);
            // With few tokens, each field is short; with too few, nothing is computed.
            let short = Request { max_tokens: 48, ..request };
            let outcome = decoder.fields(&fields, &short)?;
            assert_eq!(outcome.finish, FinishReason::Complete);
            assert!(outcome.tokens.len() <= 48, "{} tokens", outcome.tokens.len());
            let few = decoder.fields(&fields, &Request { max_tokens: 4, ..short });
            let kind = few.map_err(|error| error.kind().clone());
            assert!(matches!(kind, Err(Kind::BudgetTooSmall { .. })), "{kind:?}");
        }
        Ok(())
    }

    #[test]
    fn what_cannot_be_decoded_side_by_side_is_refused() -> Result<()> {
        let mut model = ScriptedModel::noise(1).with_sequences(3);
        let options = schema::Options::default();
        let field = |name: &str, text: &str| -> Result<Field> {
            let constraint =
                Constraint::new(&schema::compile(text, &options)?, model.vocabulary())?;
            Ok(Field { name: name.to_owned(), constraint })
        };
        let good = field("ok", &object(&PROPERTIES[3..]))?;
        let bad = field("other", &object(&PROPERTIES[3..]))?;
        let request = Request::new(model.plain("x")?.tokens);
        let mut decoder = Decoder::new(&mut model);
        for fields in [vec![], vec![good.clone(); 3], vec![bad]] {
            let result = decoder.fields(&fields, &request).map_err(|error| error.kind().clone());
            assert_eq!(result, Err(Kind::BadArgument));
        }
        let request = Request { log_probs: Some(1), ..request };
        assert!(decoder.fields(&[good], &request).is_err());
        Ok(())
    }
}
