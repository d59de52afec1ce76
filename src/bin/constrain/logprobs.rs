//! `--logprobs`: how likely the model found each token, in the shape that services use for it.

use constrain::decode::Outcome;
use constrain::sample::logprob::{LogProb, StepLogProbs};
use constrain::{TokenId, Vocabulary};
use serde_json::{Value, json};

/// The log-probabilities of an answer, `null` if they were not asked for.
///
/// `logprob` is the model's own, `constrained` the one among the allowed tokens, `mask_mass` the
/// probability that the model gave to the allowed tokens together.
pub fn json(outcome: &Outcome, vocabulary: &Vocabulary) -> Value {
    let Some(mean) = outcome.mean_log_prob() else { return Value::Null };
    let steps = outcome.log_probs.iter().map(|step| step_json(step, vocabulary));
    json!({ "mean": mean, "content": steps.collect::<Vec<Value>>() })
}

fn step_json(step: &StepLogProbs, vocabulary: &Vocabulary) -> Value {
    let mut value = token_json(&step.chosen, vocabulary);
    let others = step.alternatives.iter().map(|other| token_json(other, vocabulary));
    value["mask_mass"] = json!(step.mask_mass);
    value["top_logprobs"] = others.collect();
    value
}

fn token_json(token: &LogProb, vocabulary: &Vocabulary) -> Value {
    let bytes = bytes(token.token, vocabulary);
    json!({
        "id": token.token,
        "token": String::from_utf8_lossy(bytes),
        "bytes": bytes,
        "logprob": token.raw,
        "constrained": token.constrained,
    })
}

/// What a token says; nothing for one that ends the answer.
fn bytes(token: TokenId, vocabulary: &Vocabulary) -> &[u8] {
    vocabulary.bytes(token).unwrap_or_default()
}
