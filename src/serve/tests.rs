//! The scheduler against the loop of one request, and under everything that can go wrong.

use super::*;
use crate::decode::{Decoder, FinishReason, Outcome, Request, SoftLanding, Strategy};
use crate::error::{Error, Kind, Result};
use crate::limits::Cancel;
use crate::model::scripted::{ScriptedModel, noise, vocabulary};
use crate::model::{Batch, Model, Prompt, Sequence};
use crate::sample::Settings;
use crate::sample::random::mix;
use crate::syntax::Syntax;
use crate::vocab::{TokenId, Vocabulary};
use crate::{Constraint, Grammar, schema};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a test may do to a pass before the model sees it.
type Tap = Box<dyn FnMut(&Batch) -> Result<()> + Send>;

/// A scripted model whose passes are watched.
struct Watched {
    model: ScriptedModel,
    tap: Tap,
}

impl Model for Watched {
    fn vocabulary(&self) -> &Vocabulary {
        self.model.vocabulary()
    }
    fn name(&self) -> String {
        self.model.name()
    }
    fn context_len(&self) -> usize {
        self.model.context_len()
    }
    fn max_sequences(&self) -> usize {
        self.model.max_sequences()
    }
    fn sequence_len(&self, sequence: Sequence) -> usize {
        self.model.sequence_len(sequence)
    }
    fn eval(&mut self, batch: &Batch) -> Result<()> {
        (self.tap)(batch)?;
        self.model.eval(batch)
    }
    fn logits(&self, index: usize) -> Result<&[f32]> {
        self.model.logits(index)
    }
    fn truncate(&mut self, sequence: Sequence, len: usize) -> Result<()> {
        self.model.truncate(sequence, len)
    }
    fn copy(&mut self, from: Sequence, to: Sequence) -> Result<()> {
        self.model.copy(from, to)
    }
    fn tokenize(&self, text: &str, special: bool) -> Result<Vec<TokenId>> {
        self.model.tokenize(text, special)
    }
    fn chat(&self, messages: &[crate::model::Message]) -> Result<Prompt> {
        self.model.chat(messages)
    }
}

fn serve(options: Options, mut model: impl Model + Send + 'static) -> (Client, JoinHandle<Stats>) {
    let (client, scheduler) = channel(options);
    let thread = std::thread::spawn(move || scheduler.run(&mut model).expect("sequences"));
    (client, thread)
}

fn end((client, thread): (Client, JoinHandle<Stats>)) -> Stats {
    drop(client);
    thread.join().expect("the scheduler does not panic")
}

fn constraint(text: &str) -> Result<Constraint> {
    Constraint::new(&schema::compile(text, &schema::Options::default())?, &vocabulary())
}

const SCHEMAS: [&str; 4] = [
    r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "kind": {"enum": ["a very long constant text", "another long constant text"]}},
        "required": ["name", "kind"], "additionalProperties": false}"#,
    r#"{"type": "array", "items": {"type": "integer"}, "maxItems": 9}"#,
    r#"{"const": {"everything": ["is", "forced"], "here": true}}"#,
    r#"{"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 3}"#,
];

/// A request of every kind that there is, by its number.
fn request(model: &ScriptedModel, constraints: &[Constraint], number: u64) -> Result<Request> {
    let draw = |purpose: u64, below: u64| mix(number * 16 + purpose) % below;
    let common = "what all prompts begin with, ".repeat(draw(0, 3) as usize * 5);
    let prompt = model.plain(&format!("{common}{}", "x".repeat(draw(1, 200) as usize)))?.tokens;
    let settings = match draw(2, 3) {
        0 => Settings::greedy(),
        _ => Settings { seed: number / 2, ..Settings::drawing(0.9) },
    };
    let constraint = constraints.get(draw(3, 5) as usize).cloned();
    let soft_landing = (draw(4, 4) == 0).then_some(SoftLanding { from: 0.5, strength: 2.0 });
    let stop = if draw(5, 2) == 0 { vec!["e".to_owned(), "}".to_owned()] } else { Vec::new() };
    Ok(Request {
        constraint,
        soft_landing,
        stop,
        strategy: if draw(6, 5) == 0 { Strategy::Greedy } else { Strategy::Sample },
        max_tokens: draw(7, 3) as usize * 40 + draw(8, 10) as usize,
        log_probs: (draw(9, 3) == 0).then_some(2),
        index: number % 3,
        ..Request::new(prompt).with(settings)
    })
}

/// What two outcomes must share: everything but counts of passes and times.
fn essence(outcome: Result<Outcome>) -> std::result::Result<Outcome, Kind> {
    let strip = |outcome| Outcome { statistics: crate::decode::Statistics::default(), ..outcome };
    outcome.map(strip).map_err(|error| error.kind().clone())
}

#[test]
fn every_request_gets_what_a_decoder_gives_it() -> Result<()> {
    let constraints = SCHEMAS.iter().map(|text| constraint(text)).collect::<Result<Vec<_>>>()?;
    let mut alone = ScriptedModel::noise(3).with_context_len(700);
    let requests = (0..60).map(|n| request(&alone, &constraints, n)).collect::<Result<Vec<_>>>()?;
    let mut expected = Vec::new();
    for request in &requests {
        let mut text = String::new();
        let outcome = Decoder::new(&mut alone).stream(request, &mut |piece| text.push_str(piece));
        expected.push((essence(outcome), text));
    }
    let of_kind = |wanted: FinishReason| {
        expected
            .iter()
            .filter(|(outcome, _)| outcome.as_ref().is_ok_and(|o| o.finish == wanted))
            .count()
    };
    let kinds = [FinishReason::Complete, FinishReason::MaxTokens, FinishReason::Stop(0)];
    let counts = kinds.map(of_kind);
    assert!(counts.iter().all(|&count| count > 1), "the requests are of few kinds: {counts:?}");
    assert!(expected.iter().any(|(outcome, _)| outcome.is_err()));
    for (sequences, helpers, prompt_tokens) in [(1, 0, 64), (3, 1, 1), (8, 3, 100), (64, 1, 512)] {
        let model = ScriptedModel::noise(3).with_context_len(700).with_sequences(sequences);
        let served = serve(Options { queue: 64, prompt_tokens, helpers }, model);
        let tickets: Vec<Ticket> =
            requests.iter().map(|r| served.0.submit(r.clone())).collect::<Result<_>>()?;
        for (number, (mut ticket, (outcome, text))) in
            tickets.into_iter().zip(&expected).enumerate()
        {
            let streamed: String = ticket.by_ref().collect();
            assert_eq!(&essence(ticket.wait()), outcome, "request {number}, {sequences} sequences");
            if outcome.is_ok() {
                assert_eq!(&streamed, text, "request {number}, {sequences} sequences");
            }
        }
        let stats = end(served);
        let failed = expected.iter().filter(|(outcome, _)| outcome.is_err()).count() as u64;
        assert_eq!((stats.failed, stats.finished), (failed, 60 - failed));
        assert_eq!((stats.running, stats.waiting), (0, 0));
        let tokens =
            expected.iter().flat_map(|(outcome, _)| outcome).map(|o| o.tokens.len() as u64);
        assert_eq!(stats.tokens, tokens.sum::<u64>());
    }
    Ok(())
}

#[test]
fn what_is_forced_takes_few_passes() -> Result<()> {
    let served = serve(Options::default(), ScriptedModel::noise(1));
    // No two of these letters make a token: there is one spelling.
    let text = "zqzqzq".repeat(40);
    let options = schema::Options::default();
    let grammar = Grammar::from_text(&text, Syntax::Choice, &options)?;
    let forced = Constraint::new(&grammar, &vocabulary())?;
    let request = Request::new(vec![70; 10]).constrained(forced);
    let outcome = served.0.submit(request)?.wait()?;
    assert_eq!((outcome.text(), outcome.finish), (text, FinishReason::Complete));
    let statistics = outcome.statistics;
    assert_eq!((statistics.tokens, statistics.forced_tokens), (240, 240));
    assert!(statistics.passes <= 240 / 30, "{statistics:?}");
    end(served);
    Ok(())
}

/// How many tokens each sequence has in a pass.
type Pass = Vec<(Sequence, usize)>;

/// A model whose passes are recorded.
fn recorded(model: ScriptedModel) -> (Watched, Arc<Mutex<Vec<Pass>>>) {
    let passes = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&passes);
    let tap = move |batch: &Batch| {
        let mut counts = Pass::new();
        for entry in batch.entries() {
            match counts.last_mut() {
                Some((sequence, count)) if *sequence == entry.sequence => *count += 1,
                _ => counts.push((entry.sequence, 1)),
            }
        }
        record.lock().expect("no panic").push(counts);
        Ok(())
    };
    (Watched { model, tap: Box::new(tap) }, passes)
}

/// A model that never wants to end.
fn endless() -> ScriptedModel {
    ScriptedModel::new(vocabulary(), |tokens, row| {
        noise(5)(tokens, row);
        row[vocabulary().end_tokens()[0] as usize] = -100.0;
    })
}

#[test]
fn a_long_prompt_holds_nobody_up() -> Result<()> {
    let (model, passes) = recorded(endless().with_sequences(4));
    let served = serve(Options { prompt_tokens: 64, ..Options::default() }, model);
    let client = &served.0;
    let quick = |n: u32, max_tokens| Request { max_tokens, ..Request::new(vec![n; 5]) };
    let mut first = client.submit(quick(65, 4000))?;
    first.next();
    let long = client
        .submit(Request { max_tokens: 2, ..Request::new((0..3000).map(|i| i % 97).collect()) })?;
    let short = client.submit(quick(66, 3))?;
    short.wait()?;
    // The long prompt is far from done.
    let before = client.stats();
    assert!(before.prompt_tokens < 3000, "{before:?}");
    long.wait()?;
    first.cancel();
    assert_eq!(first.wait().map_err(|error| error.kind().clone()), Err(Kind::Cancelled));
    end(served);
    // Whoever goes on is in every pass, and prompts take no more than their share of it.
    let passes = passes.lock().expect("no panic");
    let last = passes.iter().rposition(|pass| pass.iter().any(|part| part.0 == 0)).expect("some");
    for pass in &passes[1..last] {
        assert!(pass.contains(&(0, 1)), "{pass:?}");
        let prompts: usize = pass.iter().map(|part| part.1).filter(|&count| count > 1).sum();
        assert!(prompts <= 64, "{pass:?}");
    }
    Ok(())
}

#[test]
fn what_prompts_share_is_computed_once() -> Result<()> {
    let shared: Vec<TokenId> = (0..640).map(|i| i * 7 % 250).collect();
    let (model, _) = recorded(endless().with_sequences(8));
    let served = serve(Options::default(), model);
    let request = |n: u32| {
        let prompt = [&shared[..], &[n; 40]].concat();
        Request { max_tokens: 5, ..Request::new(prompt) }
    };
    for _ in 0..2 {
        let tickets: Vec<Ticket> =
            (0..8).map(|n| served.0.submit(request(n))).collect::<Result<_>>()?;
        for ticket in tickets {
            ticket.wait()?;
        }
    }
    let stats = end(served);
    // 640 once; after it, the first time 40 for each.
    assert!(stats.prompt_tokens <= 640 + 16 * 40, "{stats:?}");
    assert_eq!(stats.prompt_tokens + stats.shared_tokens, 16 * 680);
    Ok(())
}

#[test]
fn too_many_are_refused_and_the_cancelled_make_room() -> Result<()> {
    let served = serve(Options { queue: 2, ..Options::default() }, endless().with_sequences(1));
    let client = &served.0;
    let forever = || Request { max_tokens: 3000, ..Request::new(vec![65; 5]) };
    let mut running = client.submit(forever())?;
    running.next();
    let (waiting, dropped) = (client.submit(forever())?, client.submit(forever())?);
    let refused = client.submit(forever()).map_err(|error| error.kind().clone());
    assert_eq!(refused.err(), Some(Kind::Overloaded { limit: 2 }));
    // A ticket that is dropped, one that is cancelled, a request that is.
    drop(dropped);
    running.cancel();
    assert!(matches!(running.wait(), Err(error) if *error.kind() == Kind::Cancelled));
    let cancel = Cancel::default();
    waiting.cancel();
    assert!(waiting.wait().is_err());
    let ticket = client.submit(Request { cancel: Some(cancel.clone()), ..forever() })?;
    cancel.cancel();
    assert!(matches!(ticket.wait(), Err(error) if *error.kind() == Kind::Cancelled));
    let outcome = client.submit(Request { max_tokens: 4, ..forever() })?.wait()?;
    assert_eq!(outcome.tokens.len(), 4);
    let stats = end(served);
    assert_eq!((stats.finished, stats.failed, stats.running), (1, 4, 0));
    Ok(())
}

#[test]
fn a_ticket_can_be_waited_for_a_while() -> Result<()> {
    let served = serve(Options::default(), endless());
    let mut ticket = served.0.submit(Request { max_tokens: 3000, ..Request::new(vec![65; 5]) })?;
    let mut rounds = 0;
    let outcome = loop {
        rounds += 1;
        if let Some(outcome) = ticket.wait_for(std::time::Duration::from_micros(50)) {
            break outcome?;
        }
        assert!(rounds < 10_000_000, "stuck");
    };
    assert_eq!(outcome.tokens.len(), 3000);
    assert_eq!(essence(ticket.wait()), essence(Ok(outcome)));
    end(served);
    Ok(())
}

#[test]
fn a_pass_that_fails_fails_those_in_it() -> Result<()> {
    let mut passes = 0;
    let tap = move |_: &Batch| {
        passes += 1;
        match passes {
            3 => Err(Error::new(Kind::Model, "out of memory")),
            _ => Ok(()),
        }
    };
    let served = serve(Options::default(), Watched { model: endless(), tap: Box::new(tap) });
    let request = || Request { max_tokens: 20, ..Request::new(vec![65; 5]) };
    let failed = served.0.submit(request())?.wait();
    assert!(matches!(failed, Err(error) if error.message().contains("out of memory")));
    let outcome = served.0.submit(request())?.wait()?;
    let mut alone = endless();
    assert_eq!(outcome.tokens, Decoder::new(&mut alone).run(&request())?.tokens);
    end(served);
    Ok(())
}

#[test]
fn logits_that_are_no_numbers_concern_one_request() -> Result<()> {
    let model = ScriptedModel::new(vocabulary(), |tokens, row| {
        noise(5)(tokens, row);
        if tokens[0] == 66 && tokens.len() > 8 {
            row[65] = f32::NAN;
        }
    });
    let served = serve(Options::default(), model);
    let submit = |n| served.0.submit(Request { max_tokens: 20, ..Request::new(vec![n; 5]) });
    let (good, bad) = (submit(65)?, submit(66)?);
    assert!(matches!(bad.wait(), Err(error) if error.message().contains("position 4")));
    assert!(good.wait().is_ok());
    end(served);
    Ok(())
}

#[test]
fn what_is_refused_says_why() -> Result<()> {
    let served = serve(Options::default(), ScriptedModel::noise(1).with_context_len(20));
    let base = Request::new(vec![65; 5]);
    let beam = Strategy::Beam(crate::decode::Beam::default());
    let forced = constraint(SCHEMAS[2])?;
    for (request, kind) in [
        (Request { prompt: Vec::new(), ..base.clone() }, Kind::BadArgument),
        (Request { prompt: vec![65; 20], ..base.clone() }, Kind::TooLarge),
        (Request { strategy: beam, ..base.clone() }, Kind::BadArgument),
        (base.clone().with(Settings::drawing(f64::NAN)), Kind::BadArgument),
    ] {
        let refused = served.0.submit(request)?.wait().map_err(|error| error.kind().clone());
        assert_eq!(refused, Err(kind));
    }
    let short = Request { max_tokens: 2, ..base }.constrained(forced);
    let refused = served.0.submit(short)?.wait().map_err(|error| error.kind().clone());
    assert!(matches!(refused, Err(Kind::BudgetTooSmall { .. })));
    end(served);
    Ok(())
}

#[test]
fn nobody_waits_for_a_scheduler_that_is_gone() -> Result<()> {
    let request = || Request { max_tokens: 3000, ..Request::new(vec![65; 5]) };
    // It never ran.
    let (client, scheduler) = channel(Options::default());
    let ticket = client.submit(request())?;
    drop(scheduler);
    assert!(matches!(ticket.wait(), Err(error) if *error.kind() == Kind::Cancelled));
    assert!(client.submit(request()).is_err() && client.ask(|model| model.name()).is_err());
    // Its model panics.
    let tap = |_: &Batch| -> Result<()> { panic!("a bug in a model") };
    let (client, scheduler) = channel(Options::default());
    let ticket = client.submit(request())?;
    let thread = std::thread::spawn(move || {
        let mut model = Watched { model: endless(), tap: Box::new(tap) };
        let _ = scheduler.run(&mut model);
    });
    assert!(ticket.wait().is_err() && thread.join().is_err());
    assert!(client.submit(request()).is_err());
    // It is closed while it works.
    let served = serve(Options::default(), endless());
    let mut ticket = served.0.submit(request())?;
    ticket.next();
    served.0.close();
    assert!(served.0.submit(request()).is_err());
    assert_eq!(ticket.wait()?.tokens.len(), 3000);
    assert_eq!(end(served).finished, 1);
    Ok(())
}
