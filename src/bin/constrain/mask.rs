//! `constrain mask`: the tokens of a vocabulary that may come after a text.

use crate::args::MaskArgs;
use crate::compile::Form;
use crate::input;
use crate::model;
use crate::report::{Failure, Source, excerpt};
use constrain::vocab::Token;
use constrain::{Kind, TokenId, Vocabulary};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// Runs the sub-command.
pub fn run(args: &MaskArgs) -> Result<ExitCode, Failure> {
    let document = args.document.input.as_deref().map(input::read).transpose()?;
    let form = Form::read(&args.schema)?;
    let form = form.with_document(document.as_ref().map(|document| document.text.as_str()))?;
    let grammar = form.compile()?;
    let vocabulary = model::vocabulary(&args.tokenizer)?;
    form.check(&vocabulary)?;
    let mut matcher = form.constraint(&grammar, &vocabulary)?.matcher();
    if let Err(error) = matcher.accept_bytes(args.after.as_bytes()) {
        if *error.kind() != Kind::Rejected {
            return Err(error.into());
        }
        let after = Source { name: "--after".to_string(), text: args.after.clone() };
        let place = excerpt(&after, error.place());
        input::say(&format!(
            "constrain: no text that satisfies the constraint begins like this\n{place}"
        ));
        return Ok(ExitCode::from(1));
    }
    let can_stop = matcher.can_stop();
    let mask = matcher.mask()?;
    let count = mask.count();
    let ids = (0..vocabulary.len()).filter_map(|id| TokenId::try_from(id).ok());
    let shown: Vec<TokenId> =
        ids.filter(|&id| mask.contains(id)).take(args.limit.unwrap_or(usize::MAX)).collect();
    if args.json {
        let tokens: Vec<Value> = shown.iter().map(|&id| token_json(&vocabulary, id)).collect();
        let value = json!({
            "vocabulary": vocabulary.len(),
            "allowed": count,
            "can_stop": can_stop,
            "tokens": tokens,
        });
        input::print(&format!("{value:#}\n"))?;
    } else {
        let mut out = String::new();
        for &id in &shown {
            let _ = writeln!(out, "{id}\t{}", token_text(&vocabulary, id));
        }
        input::print(&out)?;
        if shown.len() < count {
            input::say(&format!("{} of {count} allowed tokens", shown.len()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn token_json(vocabulary: &Vocabulary, id: TokenId) -> Value {
    match vocabulary.token(id) {
        Some(Token::Text(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => json!({"id": id, "text": text}),
            Err(_) => json!({"id": id, "bytes": bytes.to_vec()}),
        },
        Some(Token::Special(name)) => json!({"id": id, "special": name}),
        _ => json!({"id": id}),
    }
}

/// A token on one line: text in quotes with escapes, special tokens bare.
pub fn token_text(vocabulary: &Vocabulary, id: TokenId) -> String {
    match vocabulary.token(id) {
        Some(Token::Text(bytes)) => escape_bytes(bytes),
        Some(Token::Special(name)) => name.escape_debug().to_string(),
        _ => String::new(),
    }
}

/// Bytes in quotes: what is UTF-8 as text, the rest as `\xNN`.
fn escape_bytes(bytes: &[u8]) -> String {
    let mut out = String::from('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' => out.push(c),
                c => out.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_on_one_line() {
        assert_eq!(escape_bytes(b" a\n\"'"), r#"" a\n\"'""#);
        assert_eq!(escape_bytes("é".as_bytes()), "\"é\"");
        assert_eq!(escape_bytes(b"\xc3x\xff"), r#""\xc3x\xff""#);
    }
}
