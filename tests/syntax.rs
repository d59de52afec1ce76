//! Text grammars: the shared cases, the grammars of `grammars/`, and random grammars against an
//! independent recogniser.
//!
//! Every text is tried byte by byte and token by token, and before each token the mask must say
//! what accepting then does.

mod support;

use constrain::schema::Options;
use constrain::syntax::Syntax;
use constrain::{Constraint, Grammar, Vocabulary};
use serde::Deserialize;
use support::{Random, Tokenizer};

#[derive(Deserialize)]
struct Case {
    id: String,
    syntax: String,
    grammar: String,
    /// `error`: compiling must fail.
    #[serde(default)]
    expect: String,
    tests: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    valid: bool,
}

fn compile(text: &str, syntax: &str) -> constrain::Result<Grammar> {
    Grammar::from_text(text, syntax.parse()?, &Options::default())
}

/// Whether a text is accepted: byte by byte and token by token, which must agree.
fn accepts(constraint: &Constraint, tokens: &Tokenizer, text: &str) -> Result<bool, String> {
    let mut bytes = constraint.matcher();
    let valid = text.bytes().all(|byte| bytes.accept_bytes(&[byte]).is_ok()) && bytes.can_stop();
    let mut matcher = constraint.matcher();
    let mut alive = true;
    for id in tokens.split(text.as_bytes()) {
        let allowed = matcher.mask().map_err(|error| error.to_string())?.contains(id);
        let accepted = matcher.accept(id).is_ok();
        if allowed != accepted {
            return Err(format!("{text:?}: the mask says {allowed} of token {id}"));
        }
        alive &= accepted;
        if !alive {
            break;
        }
    }
    let by_tokens = alive && matcher.can_stop();
    if by_tokens != valid {
        return Err(format!("{text:?}: bytes say {valid}, tokens say {by_tokens}"));
    }
    Ok(valid)
}

fn check(case: &Case, vocabulary: &Vocabulary, tokens: &Tokenizer) -> Result<(), String> {
    let compiled = compile(&case.grammar, &case.syntax)
        .and_then(|grammar| Constraint::new(&grammar, vocabulary));
    let constraint = match compiled {
        Err(_) if case.expect == "error" => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok(_) if case.expect == "error" => return Err("it compiles".to_owned()),
        Ok(constraint) => constraint,
    };
    for Text { text, valid } in &case.tests {
        let found = accepts(&constraint, tokens, text)?;
        if found != *valid {
            return Err(format!("{text:?} should be {valid}"));
        }
    }
    Ok(())
}

#[test]
fn shared_cases() {
    let Some(lines) = support::shared("cases/grammar.jsonl") else { return };
    let vocabulary = support::synthetic();
    let tokens = Tokenizer::new(&vocabulary);
    let (mut right, mut count, mut wrong) = (0, 0, Vec::new());
    for line in lines.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        count += 1;
        match check(&case, &vocabulary, &tokens) {
            Ok(()) => right += 1,
            Err(why) => wrong.push(format!("{}: {why}", case.id)),
        }
    }
    eprintln!("{right} of {count} cases are right");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A grammar of alternatives of sequences: capital letters are rules, `A` is the start.
#[derive(Debug)]
struct Plain {
    rules: Vec<Vec<String>>,
}

impl Plain {
    /// A grammar whose alternatives mention one rule at most.
    fn random(random: &mut Random) -> Self {
        let count = 1 + random.below(4);
        let letter = |random: &mut Random| char::from(b'a' + random.below(2) as u8);
        let alternative = |random: &mut Random| {
            let length = [0, 1, 1, 2, 2, 3][random.below(6)];
            let mut text: Vec<char> = (0..length).map(|_| letter(random)).collect();
            if random.below(3) > 0 {
                let rule = char::from(b'A' + random.below(count) as u8);
                text.insert(random.below(length + 1), rule);
            }
            text.into_iter().collect()
        };
        let rules = (0..count)
            .map(|_| (0..1 + random.below(3)).map(|_| alternative(random)).collect())
            .collect();
        Self { rules }
    }

    fn gbnf(&self) -> String {
        let symbol = |c: char| {
            if c.is_ascii_uppercase() { format!("{c} ") } else { format!("\"{c}\" ") }
        };
        let alternative = |text: &String| match text.as_str() {
            "" => "\"\"".to_owned(),
            text => text.chars().map(symbol).collect(),
        };
        let mut out = String::from("root ::= A\n");
        for (i, rule) in self.rules.iter().enumerate() {
            let body: Vec<String> = rule.iter().map(alternative).collect();
            out += &format!("{} ::= {}\n", char::from(b'A' + i as u8), body.join(" | "));
        }
        out
    }

    /// All strings of up to `length` letters, by the definition: the least sets of strings that
    /// contain what their alternatives make of them.
    fn strings(&self, length: usize) -> std::collections::BTreeSet<String> {
        use std::collections::BTreeSet;
        let mut sets = vec![BTreeSet::new(); self.rules.len()];
        loop {
            let before: usize = sets.iter().map(BTreeSet::len).sum();
            for (i, rule) in self.rules.iter().enumerate() {
                for alternative in rule {
                    let mut made = BTreeSet::from([String::new()]);
                    for c in alternative.chars() {
                        let letter = BTreeSet::from([c.to_string()]);
                        let parts = match c {
                            'A'..='Z' => &sets[(c as u8 - b'A') as usize],
                            _ => &letter,
                        };
                        let join = |a: &String| {
                            let a = a.clone();
                            parts.iter().map(move |b| format!("{a}{b}"))
                        };
                        made = made.iter().flat_map(join).filter(|s| s.len() <= length).collect();
                    }
                    sets[i].extend(made);
                }
            }
            if sets.iter().map(BTreeSet::len).sum::<usize>() == before {
                return sets.swap_remove(0);
            }
        }
    }

    /// Whether every rule that the start leads to derives something.
    fn is_productive(&self) -> bool {
        let mut productive = vec![false; self.rules.len()];
        let index = |c: char| c.is_ascii_uppercase().then(|| (c as u8 - b'A') as usize);
        for _ in &self.rules {
            for (i, rule) in self.rules.iter().enumerate() {
                productive[i] |= rule.iter().any(|alternative| {
                    alternative.chars().all(|c| index(c).is_none_or(|rule| productive[rule]))
                });
            }
        }
        let mut reached = vec![0];
        let mut next = 0;
        while let Some(&rule) = reached.get(next) {
            next += 1;
            for other in self.rules[rule].iter().flat_map(|text| text.chars()).filter_map(index) {
                if !reached.contains(&other) {
                    reached.push(other);
                }
            }
        }
        reached.into_iter().all(|rule| productive[rule])
    }
}

/// All strings of `a` and `b` up to a length.
fn all_strings(length: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let to = out.len();
        for i in from..to {
            out.push(format!("{}a", out[i]));
            out.push(format!("{}b", out[i]));
        }
        from = to;
    }
    out
}

#[test]
fn random_grammars_derive_what_they_say() {
    let vocabulary = support::bytes();
    let strings = all_strings(6);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut compiled = 0;
    for _ in 0..1_000 {
        let plain = Plain::random(&mut random);
        let text = plain.gbnf();
        let grammar = match compile(&text, "gbnf") {
            Ok(grammar) if plain.is_productive() => grammar,
            Ok(_) => panic!("a rule derives nothing, but it compiles:\n{text}"),
            Err(error) if plain.is_productive() => panic!("{error}:\n{text}"),
            Err(_) => continue,
        };
        compiled += 1;
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let expected = plain.strings(6);
        for string in &strings {
            let mut matcher = constraint.matcher();
            let found = matcher.accept_bytes(string.as_bytes()).is_ok() && matcher.can_stop();
            assert_eq!(found, expected.contains(string), "{string:?} of\n{text}");
        }
    }
    assert!(compiled > 300, "too few grammars are left: {compiled}");
}

#[test]
fn grammars_of_the_folder() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars");
    let vocabulary = support::synthetic();
    let tokens = Tokenizer::new(&vocabulary);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(syntax) = Syntax::from_path(&path) else { continue };
        let text = std::fs::read_to_string(&path).unwrap();
        let grammar = Grammar::from_text(&text, syntax, &Options::default())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let cases = std::fs::read_to_string(path.with_extension("cases.jsonl")).unwrap();
        for line in cases.lines() {
            let Text { text, valid } = serde_json::from_str(line).unwrap();
            let found = accepts(&constraint, &tokens, &text).unwrap();
            assert_eq!(found, valid, "{}: {text:?}", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 7, "a grammar is missing");
}
