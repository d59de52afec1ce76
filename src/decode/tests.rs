//! The strategies on scripted models: what they change and what they must not.

use super::*;
use crate::model::Model;
use crate::model::scripted::{self, ScriptedModel};
use crate::sample::Settings;
use crate::vocab::{Token, Vocabulary};
use std::collections::BTreeMap;

/// A model over the built-in vocabulary with heads that are often right.
fn model(seed: u64) -> ScriptedModel {
    ScriptedModel::noise(seed).with_heads(5, scripted::noise(seed))
}

fn strategies() -> Vec<Drafts> {
    let mut all = Vec::new();
    for most in [1, 3, 15] {
        for source in Source::ALL {
            all.push(Drafts { most, ..Drafts::of(source) });
        }
        all.push(Drafts { sources: Source::ALL.to_vec(), most, ..Drafts::default() });
    }
    all
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"title": {"type": "string", "maxLength": 12},
    "tags": {"type": "array", "items": {"enum": ["alpha", "beta"]}, "maxItems": 3}},
    "required": ["title", "tags"], "additionalProperties": false}"#;

/// Drafts of every source and length, and of all together, give the output of plain sampling, with
/// end tokens, stop texts and the maximum inside of drafts.
#[test]
fn drafts_change_nothing_but_the_number_of_passes() -> crate::Result<()> {
    let grammar = crate::schema::compile(SCHEMA, &crate::schema::Options::default())?;
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for seed in 0..30 {
        let (mut main, mut assistant) = (model(seed % 4), model(seed % 4 + seed % 2));
        let prompt = main.plain("the title and the tags, the title and the tags")?.tokens;
        let settings = Settings { seed, ..Settings::drawing(0.7) };
        let mut plain = Request::new(prompt).with(settings);
        plain.max_tokens = [7, 60][seed as usize % 2];
        plain.log_probs = Some(0);
        match seed % 3 {
            0 => plain.stop = vec!["the".into(), "a".into()],
            _ => {
                // Some are in a hurry: a draft must not take what the end needs.
                let constraint = Constraint::new(&grammar, main.vocabulary())?;
                plain.max_tokens += constraint.min_tokens()? as usize;
                plain.constraint = Some(constraint);
            }
        }
        let expected = Decoder::new(&mut main).run(&plain)?;
        assert!(plain.constraint.is_none() || expected.finish == FinishReason::Complete);
        for mut drafts in strategies() {
            if seed % 5 == 0 {
                drafts.shortlist = Some(Shortlist::new((0..300).filter(|id| id % 2 == 0)));
            }
            let name = format!("{:?}", drafts.sources);
            let request = Request { strategy: Strategy::Draft(drafts), ..plain.clone() };
            let mut decoder = Decoder::new(&mut main).with_assistant(&mut assistant);
            let outcome = decoder.run(&request)?;
            assert_eq!(outcome.tokens, expected.tokens, "seed {seed}, {:?}", request.strategy);
            assert_eq!((&outcome.bytes, outcome.finish), (&expected.bytes, expected.finish));
            assert_eq!(outcome.log_probs, expected.log_probs);
            let statistics = outcome.statistics;
            assert!(statistics.passes <= expected.statistics.passes);
            let (drafted, accepted) = counts.entry(name).or_default();
            *drafted += statistics.drafted_tokens;
            *accepted += statistics.accepted_tokens;
        }
    }
    for (sources, (drafted, accepted)) in counts {
        assert!(drafted > accepted && accepted > 0, "{sources}: {accepted} of {drafted}");
    }
    Ok(())
}

/// Five tokens of text and one that ends.
fn small_vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = ["a", "b", "ab", "ba", "c"]
        .iter()
        .map(|text| Token::Text(text.as_bytes().into()))
        .collect();
    tokens.push(Token::Special("<end>".into()));
    Vocabulary::new(tokens, vec![5]).expect("a vocabulary")
}

/// Logits that depend on the last token and the length.
fn small_law(salt: u32) -> impl Fn(&[TokenId], &mut [f32]) + Send + 'static {
    move |tokens, row| {
        let last = tokens.last().copied().unwrap_or(0);
        for (id, logit) in (0..).zip(row) {
            let hash = (id * 7 + last * 13 + tokens.len() as u32 * 3 + salt * 5) % 11;
            *logit = hash as f32 / 5.0;
        }
    }
}

/// Texts with a forced part in the middle, which has several spellings.
const TEXTS: &str = "(a|c)bab(ab|ba|c)?(a|c)";

/// The probability of every output, by walking all of them.
fn exact(request: &Request, constraint: &Constraint) -> crate::Result<BTreeMap<Vec<TokenId>, f64>> {
    let mut law = BTreeMap::new();
    let mut open = vec![(request.prompt.clone(), constraint.matcher(), 1.0)];
    let mut sampler = crate::sample::Sampler::new(request.settings.clone(), 0)?;
    let start = request.prompt.len();
    while let Some((tokens, mut matcher, p)) = open.pop() {
        let mut row = vec![0.0; 6];
        small_law(0)(&tokens, &mut row);
        let history = &tokens[start..];
        let (mask, position) = (Some(matcher.mask()?), history.len() as u64);
        let step = crate::sample::Step { logits: &row, mask, history, position };
        for (token, q) in sampler.law(&step)? {
            let mut next = matcher.fork();
            next.accept(token)?;
            let tokens = [tokens.as_slice(), &[token]].concat();
            match next.is_complete() {
                true => {
                    let text: Vec<TokenId> =
                        tokens[start..].iter().copied().filter(|&id| id != 5).collect();
                    *law.entry(text).or_insert(0.0) += p * q;
                }
                false => open.push((tokens, next, p * q)),
            }
        }
    }
    Ok(law)
}

/// Outputs of every source under both verifications, some 200,000 draws each, follow the exact law of all outputs.
#[test]
fn outputs_of_every_drafter_and_verifier_follow_the_law() -> crate::Result<()> {
    const RUNS: u64 = 60_000;
    let vocabulary = small_vocabulary();
    let options = crate::schema::Options::default();
    let grammar = crate::Grammar::from_text(TEXTS, crate::syntax::Syntax::Regex, &options)?;
    let constraint = Constraint::new(&grammar, &vocabulary)?;
    let mut main = ScriptedModel::new(vocabulary.clone(), small_law(0)).with_heads(3, small_law(1));
    let mut assistant = ScriptedModel::new(vocabulary, small_law(2));
    let settings = Settings { top_p: 0.9, seed: 6, ..Settings::drawing(1.3) };
    let plain = Request::new(vec![0, 1, 4, 0]).constrained(constraint.clone()).with(settings);
    let law = exact(&plain, &constraint)?;
    assert!(law.len() > 20 && (law.values().sum::<f64>() - 1.0).abs() < 1e-9, "{law:?}");
    let mut decoder = Decoder::new(&mut main).with_assistant(&mut assistant);
    let shortlist = Some(Shortlist::new([0, 2, 4]));
    let mut strategies = vec![Strategy::Sample];
    for verification in [Verification::Match, Verification::Rejection] {
        let of = |source| Drafts { verification, most: 3, ..Drafts::of(source) };
        strategies.extend(Source::ALL.map(|source| Strategy::Draft(of(source))));
        strategies
            .push(Strategy::Draft(Drafts { shortlist: shortlist.clone(), ..of(Source::Model) }));
        let sources = Source::ALL.to_vec();
        strategies.push(Strategy::Draft(Drafts { sources, ..of(Source::Model) }));
    }
    for strategy in strategies {
        let mut counts: BTreeMap<Vec<TokenId>, u64> = BTreeMap::new();
        let (mut drafted, mut accepted) = (0, 0);
        for index in 0..RUNS {
            let request = Request { strategy: strategy.clone(), index, ..plain.clone() };
            let outcome = decoder.run(&request)?;
            drafted += outcome.statistics.drafted_tokens;
            accepted += outcome.statistics.accepted_tokens;
            *counts.entry(outcome.tokens).or_default() += 1;
        }
        assert!(strategy == Strategy::Sample || accepted > 0 && accepted < drafted, "{strategy:?}");
        assert!(counts.keys().all(|tokens| law.contains_key(tokens)), "{strategy:?}");
        let chi: f64 = law
            .iter()
            .map(|(tokens, p)| {
                let expected = p * RUNS as f64;
                let found = counts.get(tokens).copied().unwrap_or(0) as f64;
                (found - expected).powi(2) / expected
            })
            .sum();
        // Its mean, and six standard deviations.
        let free = law.len() as f64 - 1.0;
        assert!(chi < free + 6.0 * (2.0 * free).sqrt(), "{strategy:?}: chi-square {chi} of {free}");
    }
    Ok(())
}

fn choices(texts: &str, vocabulary: &Vocabulary) -> crate::Result<Constraint> {
    let options = crate::schema::Options::default();
    let grammar = crate::Grammar::from_text(texts, crate::syntax::Syntax::Choice, &options)?;
    Constraint::new(&grammar, vocabulary)
}

/// Under a constraint, a stop text ends only what is whole.
#[test]
fn a_stop_text_never_cuts_a_document() -> crate::Result<()> {
    let mut model = ScriptedModel::following("one. two. three");
    let prompt = model.plain("count")?.tokens;
    let constraint = choices("one\none. two\none. two. three\n", model.vocabulary())?;
    let base = Request::new(prompt).constrained(constraint).with(Settings::greedy());
    for (stop, expected) in [
        (". ", "one"),
        (". t", "one"),
        (" two", "one. two. three"),
        (". three", "one. two"),
        ("e", "one. two. three"),
    ] {
        let request = Request { stop: vec![stop.to_owned()], ..base.clone() };
        let mut shown = String::new();
        let mut sink = |text: &str| shown.push_str(text);
        let outcome = Decoder::new(&mut model).stream(&request, &mut sink)?;
        assert_eq!((outcome.text().as_str(), shown.as_str()), (expected, expected), "{stop:?}");
        let whole = expected.ends_with("three");
        let finish = if whole { FinishReason::Complete } else { FinishReason::Stop(0) };
        assert_eq!(outcome.finish, finish, "{stop:?}");
    }
    Ok(())
}

/// An amateur changes outputs, never their form; one that agrees, or does not count, changes nothing.
#[test]
fn contrast_stays_inside_the_constraint() -> crate::Result<()> {
    let grammar = crate::schema::compile(SCHEMA, &crate::schema::Options::default())?;
    let mut changed = 0;
    for seed in 0..20 {
        let (mut main, mut same, mut other) = (model(seed), model(seed), model(seed + 100));
        let constraint = Constraint::new(&grammar, main.vocabulary())?;
        let prompt = main.plain("tags")?.tokens;
        let settings =
            Settings { seed, ..Settings::drawing(if seed % 2 == 0 { 0.0 } else { 0.8 }) };
        let plain = Request::new(prompt).constrained(constraint.clone()).with(settings);
        let expected = Decoder::new(&mut main).run(&plain)?;
        let with = |alpha: f64, beta: f64| Request {
            strategy: Strategy::Contrastive(Contrastive { alpha, beta }),
            ..plain.clone()
        };
        let mut run = |request: &Request, amateur: &mut ScriptedModel| {
            Decoder::new(&mut main).with_assistant(amateur).run(request)
        };
        assert_eq!(run(&with(0.0, 0.0), &mut other)?.tokens, expected.tokens);
        assert_eq!(run(&with(0.0, 0.5), &mut same)?.tokens, expected.tokens);
        let outcome = run(&with(0.1, 0.5), &mut other)?;
        changed += usize::from(outcome.tokens != expected.tokens);
        let mut matcher = constraint.matcher();
        matcher.accept_bytes(&outcome.bytes)?;
        assert!(outcome.finish != FinishReason::Complete || matcher.can_stop());
    }
    assert!(changed > 10, "the amateur had no say");
    Ok(())
}

#[test]
fn a_strategy_that_the_models_cannot_serve_is_refused() -> crate::Result<()> {
    let mut main = ScriptedModel::noise(1);
    let mut foreign = ScriptedModel::noise_over(small_vocabulary(), 1);
    let request = Request::new(main.plain("x")?.tokens);
    let strategies = [
        Strategy::Draft(Drafts::of(Source::Heads)),
        Strategy::Draft(Drafts::of(Source::Model)),
        Strategy::Contrastive(Contrastive::default()),
        Strategy::Contrastive(Contrastive { alpha: f64::NAN, beta: 0.0 }),
        Strategy::Contrastive(Contrastive { alpha: 0.1, beta: 11.0 }),
    ];
    for (index, strategy) in strategies.into_iter().enumerate() {
        let request = Request { strategy, ..request.clone() };
        let kind = |result: crate::Result<Outcome>| result.map_err(|error| error.kind().clone());
        assert_eq!(kind(Decoder::new(&mut main).run(&request)), Err(crate::Kind::BadArgument));
        if index > 0 {
            let mut decoder = Decoder::new(&mut main).with_assistant(&mut foreign);
            assert_eq!(kind(decoder.run(&request)), Err(crate::Kind::BadArgument));
        }
    }
    Ok(())
}

/// A text that each shipped schema accepts.
fn shipped() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of schemas") {
        let path = entry.expect("an entry").path();
        let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".cases.jsonl")) else {
            continue;
        };
        let schema = std::fs::read_to_string(format!("{stem}.json")).expect("a schema");
        let cases = std::fs::read_to_string(&path).expect("cases");
        let cases = cases.lines().filter_map(|line| serde_json::from_str(line).ok());
        let accepted = cases.filter(|case: &serde_json::Value| case["valid"] == true);
        let shortest = accepted.filter_map(|case| case["text"].as_str().map(str::to_owned));
        found.push((schema, shortest.min_by_key(String::len).expect("an accepted text")));
    }
    found.sort();
    found
}

/// Every strategy, eight schemas, ten seeds: an independent validator accepts what is finished.
#[test]
fn every_strategy_gives_valid_documents() -> crate::Result<()> {
    let drafts = |source| Strategy::Draft(Drafts::of(source));
    let mut strategies = vec![
        Strategy::Sample,
        Strategy::Greedy,
        Strategy::Beam(Beam { width: 2, ..Beam::default() }),
        Strategy::Contrastive(Contrastive { alpha: 0.02, beta: 0.5 }),
        Strategy::Draft(Drafts {
            sources: Source::ALL.to_vec(),
            verification: Verification::Rejection,
            ..Drafts::default()
        }),
    ];
    strategies.extend(Source::ALL.map(drafts));
    let schemas = shipped();
    assert!(schemas.len() >= 8, "{} schemas", schemas.len());
    let mut finished = vec![0; strategies.len()];
    for (schema, text) in &schemas {
        let options = crate::schema::Options::default();
        let grammar = crate::schema::compile(schema, &options)?;
        let value = serde_json::from_str(schema).expect("JSON");
        let validator = jsonschema::options().should_validate_formats(true).build(&value);
        let validator = validator.expect("a schema");
        // It wants to say the accepted text, but at this temperature often says something else.
        let mut main = ScriptedModel::following(text).with_heads(4, scripted::noise(1));
        let mut amateur = ScriptedModel::noise(3);
        let constraint = Constraint::new(&grammar, main.vocabulary())?;
        let prompt = main.plain(text)?.tokens;
        let mut decoder = Decoder::new(&mut main).with_assistant(&mut amateur);
        for (strategy, finished) in strategies.iter().zip(&mut finished) {
            for seed in 0..10 {
                let settings = Settings { seed, ..Settings::drawing(1.8) };
                let request = Request::new(prompt.clone()).constrained(constraint.clone());
                let request = Request { strategy: strategy.clone(), ..request.with(settings) };
                let outcome = decoder.run(&request)?;
                // The validator computes in doubles: it cannot judge longer or smaller numbers.
                let digits = outcome.bytes.split(|byte| !byte.is_ascii_digit());
                let exponent = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] | 32 == b'e';
                let judged = digits.into_iter().all(|digits| digits.len() <= 15)
                    && !outcome.bytes.windows(2).any(exponent);
                if outcome.finish == FinishReason::Complete && judged {
                    *finished += 1;
                    let value = serde_json::from_slice(&outcome.bytes).expect("JSON");
                    assert!(validator.is_valid(&value), "{strategy:?}: {}", outcome.text());
                }
            }
        }
    }
    for (strategy, finished) in strategies.iter().zip(finished) {
        assert!(finished >= 20, "{strategy:?}: only {finished} were finished");
    }
    Ok(())
}
