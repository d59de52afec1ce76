//! Beam search: the most likely output as a whole, approximately.
//!
//! At each step every beam proposes its best tokens, scored by the sum of log-probabilities; the
//! best `width` that go on become the new beams, and those that end are set aside. By hand, width
//! 2: from `a` (-0.5) and `b` (-1.0) with continuations `aa` -2.5, `ab` -2.6, `ba` -1.2, `bb` -3:
//! the new beams are `ba` and `aa`, although `a` was the better beginning; greedy choice would have
//! ended at -2.5.
//!
//! Scores are those of the model's own law unless asked otherwise: renormalised over the mask, what
//! is forced would be free, and outputs with much forced text would win for that alone. An output
//! ends by an end token, whose log-probability counts. Two spellings of one text are two outputs.
//!
//! Each beam has a matcher and a sequence of its own; the sequences live in two banks, and at each
//! step the parents in one are copied to their children in the other.

use crate::decode::output::{Guard, Output};
use crate::decode::run::check_cancelled;
use crate::decode::{Beam, Decoder, FinishReason};
use crate::error::{Error, Kind, Result};
use crate::model::Batch;
use crate::sample::Step;
use crate::sample::logprob::log_probs;
use crate::vocab::TokenId;
use std::time::Instant;

/// A beginning of an output.
#[derive(Clone)]
struct Hypothesis {
    guard: Guard,
    tokens: Vec<TokenId>,
    /// Sum of log-probabilities.
    score: f64,
    /// Index of its logits in the last batch.
    row: usize,
    sequence: u32,
}

/// A finished output.
struct Finished {
    tokens: Vec<TokenId>,
    score: f64,
}

/// A way to go on: which beam, with which token, to which score.
struct Candidate {
    parent: usize,
    token: TokenId,
    score: f64,
}

/// Runs a request and leaves the best output in `output`.
pub(crate) fn run(
    decoder: &mut Decoder<'_>,
    beam: &Beam,
    output: &mut Output<'_>,
    guard: Guard,
) -> Result<FinishReason> {
    let request = output.request.clone();
    check(decoder, beam, output)?;
    let row = decoder.prefill(output)?;
    let room = decoder.main.model.context_len() - request.prompt.len();
    // An end token needs no room: nothing is computed after it. With a budget it comes in time.
    let room = room + usize::from(guard.is_budgeted());
    let most = request.max_tokens.min(room);
    let end = guard.end();
    // The search overwrites sequence 0, so nothing of it can be kept for the next request.
    decoder.main.held.clear();
    let first = Hypothesis { guard, tokens: Vec::new(), score: 0.0, row, sequence: 0 };
    let mut beams = vec![first];
    let mut finished: Vec<Finished> = Vec::new();
    for _ in 0..most {
        check_cancelled(&request)?;
        let candidates = candidates(decoder, beam, &mut beams, output)?;
        let survivors = survivors(decoder, beam, &candidates, (&beams, &mut finished));
        // With as many ends as beams, a longer output would rarely be better.
        if survivors.is_empty() || finished.len() >= beam.width {
            break;
        }
        beams = advance(decoder, &beams, &survivors, output)?;
    }
    let value = |score: f64, len: usize| score / (len as f64).powf(beam.length_penalty);
    // An end token counts as one; ties go to the one found first.
    let best = finished.iter().map(|f| (value(f.score, f.tokens.len() + 1), &f.tokens));
    let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let (tokens, finish) = match best {
        Some((_, tokens)) => (tokens.clone(), end),
        None => {
            let best = beams.into_iter().reduce(|a, b| if b.score > a.score { b } else { a });
            let tokens = best.map(|beam| beam.tokens).unwrap_or_default();
            let full = most < request.max_tokens;
            (tokens, if full { FinishReason::ContextFull } else { FinishReason::MaxTokens })
        }
    };
    for &token in &tokens {
        let bytes = decoder.model().vocabulary().bytes(token).unwrap_or_default();
        output.text.push(bytes, |_| false);
    }
    output.tokens = tokens;
    Ok(finish)
}

fn check(decoder: &Decoder<'_>, beam: &Beam, output: &Output<'_>) -> Result<()> {
    let bad = |message: String, help: &str| Err(Error::new(Kind::BadArgument, message).help(help));
    let (width, sequences) = (beam.width, decoder.main.model.max_sequences());
    if width == 0 || width > 128 || width * 2 > sequences {
        let message =
            format!("{width} beams need {} sequences, the model holds {sequences}", width * 2);
        return bad(message, "1 to 128 beams; give the model two sequences per beam");
    }
    if !(0.0..=10.0).contains(&beam.length_penalty) {
        let message = format!("the length penalty {} is out of range", beam.length_penalty);
        return bad(message, "give a number from 0 to 10");
    }
    if !output.request.stop.is_empty() || output.request.log_probs.is_some() {
        let message = "beams know no stop texts and no log-probabilities".to_owned();
        return bad(message, "use another strategy for them");
    }
    Ok(())
}

/// The best continuations of all beams, best first.
fn candidates(
    decoder: &Decoder<'_>,
    beam: &Beam,
    beams: &mut [Hypothesis],
    output: &mut Output<'_>,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for (parent, hypothesis) in beams.iter_mut().enumerate() {
        let clock = Instant::now();
        let mask = Some(hypothesis.guard.mask()?);
        output.statistics.mask_time += clock.elapsed();
        let clock = Instant::now();
        let logits = decoder.main.row(hypothesis.row)?;
        let position = hypothesis.tokens.len() as u64;
        let step = Step { logits, mask, history: &hypothesis.tokens, position };
        // Twice as many as beams: if half of them end, there are still enough that go on.
        let best = log_probs(&step, 0, beam.width * 2)?.alternatives;
        output.statistics.sample_time += clock.elapsed();
        candidates.extend(best.iter().map(|next| {
            let score = if beam.constrained_score { next.constrained } else { next.raw };
            Candidate { parent, token: next.token, score: hypothesis.score + score }
        }));
    }
    // Stable: ties go to the better parent, then to the better or lower token.
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(beam.width * 2);
    Ok(candidates)
}

/// Sets ends aside, and returns the candidates that go on.
fn survivors<'c>(
    decoder: &Decoder<'_>,
    beam: &Beam,
    candidates: &'c [Candidate],
    (beams, finished): (&[Hypothesis], &mut Vec<Finished>),
) -> Vec<&'c Candidate> {
    let mut survivors = Vec::new();
    for (rank, candidate) in candidates.iter().enumerate() {
        if decoder.main.model.vocabulary().is_end(candidate.token) {
            // An end counts only if it beats what goes on: else one beam would not be greedy.
            if rank >= beam.width {
                continue;
            }
            let tokens = beams[candidate.parent].tokens.clone();
            finished.push(Finished { tokens, score: candidate.score });
        } else if survivors.len() < beam.width {
            survivors.push(candidate);
        }
    }
    survivors
}

/// Moves to the survivors: copies sequences, accepts tokens, computes their logits in one pass.
fn advance(
    decoder: &mut Decoder<'_>,
    beams: &[Hypothesis],
    survivors: &[&Candidate],
    output: &mut Output<'_>,
) -> Result<Vec<Hypothesis>> {
    let clock = Instant::now();
    // The banks are the even and the odd sequences.
    let bank = 1 - beams[0].sequence % 2;
    let mut batch = Batch::new();
    let mut children = Vec::new();
    for (slot, survivor) in (0..).zip(survivors) {
        let parent = &beams[survivor.parent];
        let sequence = slot * 2 + bank;
        decoder.main.model.copy(parent.sequence, sequence)?;
        let mut guard = parent.guard.clone();
        guard.accept(survivor.token)?;
        let mut tokens = parent.tokens.clone();
        tokens.push(survivor.token);
        let row = batch.push(survivor.token, sequence, true);
        children.push(Hypothesis { guard, tokens, score: survivor.score, row, sequence });
    }
    decoder.main.model.eval(&batch)?;
    output.statistics.time_model(clock.elapsed(), 1);
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Constraint;
    use crate::decode::{Request, Strategy};
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;

    /// Few enough for all their spellings to be tried.
    const TEXTS: &str = "a\nan\nand\nthe\nin\ning\nion\n19\n120\n10\nno\nnone\ntrue\nfalse\ngood";

    fn request(model: &ScriptedModel, strategy: Strategy) -> Result<Request> {
        let options = crate::schema::Options::default();
        let grammar = crate::Grammar::from_text(TEXTS, crate::syntax::Syntax::Choice, &options)?;
        let constraint = Constraint::new(&grammar, model.vocabulary())?;
        let prompt = model.plain("choose")?.tokens;
        Ok(Request { strategy, ..Request::new(prompt).constrained(constraint) })
    }

    /// The sum of log-probabilities of every output, by trying them all.
    fn all(
        model: &mut ScriptedModel,
        request: &Request,
        raw: bool,
    ) -> Result<Vec<(Vec<TokenId>, f64)>> {
        let constraint = request.constraint.as_ref().expect("a constraint");
        let end = model.vocabulary().end_tokens()[0];
        let mut outputs = Vec::new();
        let mut open = vec![(Vec::new(), constraint.matcher(), 0.0)];
        while let Some((tokens, mut matcher, score)) = open.pop() {
            model.truncate(0, 0)?;
            let said = [request.prompt.as_slice(), &tokens].concat();
            model.eval(&Batch::prompt(0, &said))?;
            let logits = model.logits(said.len() - 1)?;
            let allowed: Vec<TokenId> = matcher.mask()?.iter().collect();
            let log_sum = |ids: &mut dyn Iterator<Item = TokenId>| {
                ids.map(|id| f64::from(logits[id as usize]).exp()).sum::<f64>().ln()
            };
            let sum = match raw {
                true => log_sum(&mut (0..logits.len() as TokenId)),
                false => log_sum(&mut allowed.iter().copied()),
            };
            for token in allowed {
                let score = score + f64::from(logits[token as usize]) - sum;
                if token == end {
                    outputs.push((tokens.clone(), score));
                    continue;
                }
                let mut next = matcher.fork();
                next.accept(token)?;
                open.push(([tokens.as_slice(), &[token]].concat(), next, score));
            }
        }
        Ok(outputs)
    }

    #[test]
    fn enough_beams_find_the_best_of_all_outputs() -> Result<()> {
        let mut won_by_length = 0;
        for seed in 0..30 {
            let mut model = ScriptedModel::noise(seed).with_sequences(128);
            for (penalty, constrained_score) in [(0.0, false), (1.0, false), (0.6, true)] {
                let beam = Beam { width: 64, length_penalty: penalty, constrained_score };
                let request = request(&model, Strategy::Beam(beam))?;
                let outcome = Decoder::new(&mut model).run(&request)?;
                let outputs = all(&mut model, &request, !constrained_score)?;
                assert!(outputs.len() < 64, "{} outputs", outputs.len());
                let value =
                    |row: &(Vec<TokenId>, f64)| row.1 / (row.0.len() as f64 + 1.0).powf(penalty);
                let best = outputs.iter().max_by(|a, b| value(a).total_cmp(&value(b)));
                let sum = outputs.iter().max_by(|a, b| a.1.total_cmp(&b.1));
                assert_eq!(Some(&outcome.tokens), best.map(|row| &row.0), "seed {seed}");
                assert_eq!(outcome.finish, FinishReason::Complete);
                won_by_length += usize::from(best.map(|r| &r.0) != sum.map(|r| &r.0));
            }
        }
        assert!(won_by_length > 0, "the length penalty was not tested");
        Ok(())
    }

    #[test]
    fn one_beam_is_greedy() -> Result<()> {
        for seed in 0..12 {
            let mut model = ScriptedModel::noise(seed);
            let one = Beam { width: 1, length_penalty: 0.0, constrained_score: false };
            let request = request(&model, Strategy::Beam(one))?;
            let outcome = Decoder::new(&mut model).run(&request)?;
            let greedy = Request { strategy: Strategy::Greedy, ..request }.with(Settings::greedy());
            let expected = Decoder::new(&mut model).run(&greedy)?;
            assert_eq!((outcome.tokens, outcome.finish), (expected.tokens, expected.finish));
        }
        Ok(())
    }

    #[test]
    fn limits_and_bad_beams() -> Result<()> {
        let mut model = ScriptedModel::noise(3);
        let good =
            Request { constraint: None, ..request(&model, Strategy::Beam(Beam::default()))? };
        let short = Request { max_tokens: 3, ..good.clone() };
        let outcome = Decoder::new(&mut model).run(&short)?;
        assert_eq!((outcome.tokens.len(), outcome.finish), (3, FinishReason::MaxTokens));
        let bad = [
            Beam { width: 0, ..Beam::default() },
            Beam { width: 5, ..Beam::default() },
            Beam { length_penalty: f64::NAN, ..Beam::default() },
        ];
        for beam in bad {
            let request = Request { strategy: Strategy::Beam(beam), ..good.clone() };
            assert!(Decoder::new(&mut model).run(&request).is_err());
        }
        Ok(())
    }
}
