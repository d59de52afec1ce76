//! Text grammars: the shared cases, the grammars of `grammars/`, and random grammars against an
//! independent recogniser.
//!
//! Every text is tried byte by byte and token by token, and before each token the mask must say
//! what accepting then does.

mod support;

use constrain::schema::Options;
use constrain::syntax::Syntax;
use constrain::tags::{Marker, Tag, Tags};
use constrain::vocab::Token;
use constrain::{Constraint, Grammar, Matcher, TokenId, Vocabulary};
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
    rules: Vec<Vec<Vec<char>>>,
}

impl Plain {
    /// Left recursion, rules that may be empty, cycles and ambiguity come by themselves.
    fn random(random: &mut Random) -> Self {
        let count = 1 + random.below(4);
        let symbol = |random: &mut Random| match random.below(2) {
            0 => char::from(b'a' + random.below(2) as u8),
            _ => char::from(b'A' + random.below(count) as u8),
        };
        let alternative = |random: &mut Random| {
            let length = [0, 1, 1, 2, 2, 3][random.below(6)];
            (0..length).map(|_| symbol(random)).collect()
        };
        let rules = (0..count)
            .map(|_| (0..1 + random.below(3)).map(|_| alternative(random)).collect())
            .collect();
        Self { rules }
    }

    fn gbnf(&self) -> String {
        let symbol = |c: &char| {
            if c.is_ascii_uppercase() { format!("{c} ") } else { format!("\"{c}\" ") }
        };
        let alternative = |text: &Vec<char>| match text[..] {
            [] => "\"\"".to_owned(),
            _ => text.iter().map(symbol).collect(),
        };
        let mut out = String::from("root ::= A\n");
        for (i, rule) in self.rules.iter().enumerate() {
            let body: Vec<String> = rule.iter().map(alternative).collect();
            out += &format!("{} ::= {}\n", char::from(b'A' + i as u8), body.join(" | "));
        }
        out
    }

    /// Whether every rule that the start leads to derives something.
    fn is_productive(&self) -> bool {
        let mut productive = vec![false; self.rules.len()];
        for _ in &self.rules {
            for (i, rule) in self.rules.iter().enumerate() {
                productive[i] |= rule.iter().any(|alternative| {
                    alternative.iter().all(|&c| rule_of(c).is_none_or(|rule| productive[rule]))
                });
            }
        }
        let mut reached = vec![0];
        let mut next = 0;
        while let Some(&rule) = reached.get(next) {
            next += 1;
            for other in self.rules[rule].iter().flatten().filter_map(|&c| rule_of(c)) {
                if !reached.contains(&other) {
                    reached.push(other);
                }
            }
        }
        reached.into_iter().all(|rule| productive[rule])
    }
}

fn rule_of(symbol: char) -> Option<usize> {
    symbol.is_ascii_uppercase().then(|| (symbol as u8 - b'A') as usize)
}

/// Earley's recogniser, as in textbooks: an item is a rule, one of its alternatives, how much of
/// that is read, and where it began. Unlike the engine it keeps left recursion, empty rules and
/// all readings as they are.
struct Earley<'g> {
    grammar: &'g Plain,
    sets: Vec<std::collections::BTreeSet<(usize, usize, usize, usize)>>,
}

impl<'g> Earley<'g> {
    fn new(grammar: &'g Plain) -> Self {
        let first = (0..grammar.rules[0].len()).map(|alternative| (0, alternative, 0, 0));
        let mut recogniser = Self { grammar, sets: vec![first.collect()] };
        recogniser.close();
        recogniser
    }

    fn next(&self, (rule, alternative, read, _): (usize, usize, usize, usize)) -> Option<char> {
        self.grammar.rules[rule][alternative].get(read).copied()
    }

    /// Predicts and completes until nothing is new.
    fn close(&mut self) {
        let here = self.sets.len() - 1;
        loop {
            let mut new = Vec::new();
            for &item in &self.sets[here] {
                match self.next(item) {
                    Some(c) => {
                        let Some(rule) = rule_of(c) else { continue };
                        let alternatives = 0..self.grammar.rules[rule].len();
                        new.extend(alternatives.map(|alternative| (rule, alternative, 0, here)));
                    }
                    None => {
                        let waits = |&&from: &&_| self.next(from).and_then(rule_of) == Some(item.0);
                        new.extend(self.sets[item.3].iter().filter(waits).map(
                            |&(rule, alternative, read, start)| {
                                (rule, alternative, read + 1, start)
                            },
                        ));
                    }
                }
            }
            let before = self.sets[here].len();
            self.sets[here].extend(new);
            if self.sets[here].len() == before {
                return;
            }
        }
    }

    /// Reads letters; `false` if no text goes on like this (they are read all the same).
    fn read(&mut self, letters: &[u8]) -> bool {
        for &letter in letters {
            let from = &self.sets[self.sets.len() - 1];
            let moved = from
                .iter()
                .filter(|&&item| self.next(item) == Some(char::from(letter)))
                .map(|&(rule, alternative, read, start)| (rule, alternative, read + 1, start));
            let moved = moved.collect();
            self.sets.push(moved);
            self.close();
        }
        !self.sets[self.sets.len() - 1].is_empty()
    }

    fn forget(&mut self, letters: usize) {
        self.sets.truncate(self.sets.len() - letters);
    }

    fn is_complete(&self) -> bool {
        let mut items = self.sets[self.sets.len() - 1].iter();
        items.any(|&item| item.0 == 0 && item.3 == 0 && self.next(item).is_none())
    }
}

/// Tokens of one and more letters, and an end.
fn letters() -> Vocabulary {
    let texts = ["a", "b", "aa", "ab", "ba", "abb", "baab", "aaaa", "bbbbbb"];
    let mut tokens: Vec<Token> =
        texts.iter().map(|text| Token::Text(text.as_bytes().into())).collect();
    tokens.push(Token::Special("<end>".into()));
    Vocabulary::new(tokens, vec![texts.len() as TokenId]).unwrap()
}

/// Compares the matcher with the recogniser after every text of up to `left` more letters.
fn compare(matcher: &mut Matcher, earley: &mut Earley<'_>, vocabulary: &Vocabulary, left: usize) {
    let mut expected: Vec<TokenId> = Vec::new();
    for (id, bytes) in vocabulary.text_tokens() {
        if earley.read(bytes) {
            expected.push(id);
        }
        earley.forget(bytes.len());
    }
    if earley.is_complete() {
        expected.extend(vocabulary.end_tokens());
    }
    let text = || String::from_utf8_lossy(matcher.text()).into_owned();
    assert_eq!(matcher.can_stop(), earley.is_complete(), "after {:?}", text());
    let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
    assert_eq!(mask, expected, "after {:?}", String::from_utf8_lossy(matcher.text()));
    for letter in (left > 0).then_some([b'a', b'b']).into_iter().flatten() {
        let viable = earley.read(&[letter]);
        assert_eq!(matcher.accept_bytes(&[letter]).is_ok(), viable, "{:?}", char::from(letter));
        if viable {
            compare(matcher, earley, vocabulary, left - 1);
            matcher.rollback(1).unwrap();
        }
        earley.forget(1);
    }
}

/// How many random grammars are tried: 5,000 with `CONSTRAIN_SLOW`.
fn count() -> usize {
    if std::env::var_os("CONSTRAIN_SLOW").is_some() { 5_000 } else { 400 }
}

#[test]
fn random_grammars_derive_what_they_say() {
    let vocabulary = letters();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut compiled = 0;
    while compiled < count() {
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
        eprintln!("{text}");
        compare(&mut constraint.matcher(), &mut Earley::new(&plain), &vocabulary, 6);
    }
}

/// Tokens of many letters, each of which can be read in many ways.
#[test]
fn long_tokens_of_ambiguous_grammars() {
    let grammars = [
        "root ::= A\nA ::= D C\nB ::= C \"b\" A\nC ::= D\nD ::= \"\" | A B | \"a\" D",
        "root ::= \"a\" root root | \"a\"",
        "root ::= \"a\" root \"a\" root | \"a\" root | root \"a\" root \"b\" | \"a\"",
        "root ::= (\"a\" | \"aa\" | \"a\" root)*",
        "root ::= root \"a\" root | root root \"a\" | \"a\" root \"a\" | \"a\"?",
    ];
    let mut tokens: Vec<Token> =
        (1..=64).map(|length| Token::Text("a".repeat(length).into_bytes().into())).collect();
    tokens.push(Token::Text(b"b".as_slice().into()));
    tokens.push(Token::Special("<end>".into()));
    let vocabulary = Vocabulary::new(tokens, vec![65]).unwrap();
    for text in grammars {
        let grammar = compile(text, "gbnf").unwrap();
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let mut matcher = constraint.matcher();
        for step in 0..100 {
            let mask = matcher.mask().unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!((0..64).all(|id| mask.contains(id)), "{text}");
            matcher.accept(step % 64).unwrap_or_else(|error| panic!("{error}: {text}"));
        }
        eprintln!("{text}: {:?}", constraint.stats());
    }
}

/// Whether all of `text` is free text with `min` to `max` tags `ab`, then `b` or not, then `a`.
fn is_tagged(text: &str, min: u64, max: u64) -> bool {
    let Some(at) = text.find("ab") else { return min == 0 };
    let rest = &text[at + 2..];
    let after = |part: &str| {
        let rest = rest.strip_prefix(part);
        max > 0 && rest.is_some_and(|rest| is_tagged(rest, min.saturating_sub(1), max - 1))
    };
    after("a") || after("ba")
}

#[test]
fn tags_begin_at_the_first_marker() {
    let vocabulary = letters();
    for (min, max) in [(0, u64::MAX), (1, u64::MAX), (0, 1), (1, 1), (2, 3)] {
        let (begin, end) = (Marker::text("ab"), Marker::text("a"));
        let tags = Tags::new().tag(Tag::text(begin, "b?", Syntax::Regex, end)).at_least(min);
        let tags = if max == u64::MAX { tags } else { tags.at_most(max) };
        let grammar = tags.grammar(&Options::default()).unwrap();
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        for text in all_strings(9) {
            let mut matcher = constraint.matcher();
            let found = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop();
            assert_eq!(found, is_tagged(&text, min, max), "{text:?} with {min} to {max} tags");
        }
    }
    let until = compile("start: %until (\"ab\" | \"aa\" \"b\"?)", "lark").unwrap();
    let without = compile("start: %without (\"ab\" | \"bba\")", "lark").unwrap();
    let until = Constraint::new(&until, &vocabulary).unwrap();
    let without = Constraint::new(&without, &vocabulary).unwrap();
    for text in all_strings(9) {
        let matches = |constraint: &Constraint| {
            let mut matcher = constraint.matcher();
            matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop()
        };
        let ends = (0..=text.len())
            .find(|&end| ["ab", "aa", "aab"].iter().any(|marker| text[..end].ends_with(marker)));
        assert_eq!(matches(&until), ends == Some(text.len()), "{text:?}");
        let occurs = text.contains("ab") || text.contains("bba");
        assert_eq!(matches(&without), !occurs, "{text:?}");
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
fn tool_calls() {
    let call = [
        ("time", "{\"type\": \"object\", \"additionalProperties\": false}"),
        (
            "weather",
            "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}},\
          \"required\": [\"city\"], \"additionalProperties\": false}",
        ),
    ];
    let tag = Tag::tools(Marker::text("<call>"), &call, Marker::text("</call>")).unwrap();
    let vocabulary = support::synthetic();
    let tokens = Tokenizer::new(&vocabulary);
    let check = |tags: &Tags, cases: &[(&str, bool)]| {
        let grammar = tags.grammar(&Options::default()).unwrap();
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        for (text, valid) in cases {
            assert_eq!(accepts(&constraint, &tokens, text).unwrap(), *valid, "{text:?}");
        }
    };
    let time = "<call>{\"name\": \"time\", \"arguments\": {}}</call>";
    let weather = "<call>{\"name\":\"weather\",\"arguments\":{\"city\":\"<call>\"}}</call>";
    let tags = Tags::new().tag(tag);
    check(
        &tags,
        &[
            ("", true),
            ("nothing to call", true),
            (time, true),
            (&format!("let me see {time} and {weather}."), true),
            ("<call> is how a call begins", false),
            ("<call>{\"name\": \"time\", \"arguments\": {\"a\": 1}}</call>", false),
            ("<call>{\"name\": \"date\", \"arguments\": {}}</call>", false),
        ],
    );
    let exactly_one = tags.clone().at_least(1).at_most(1);
    check(&exactly_one, &[(time, true), ("no", false), (&format!("{time}{time}"), false)]);
    let thinking = exactly_one.only_tags().reasoning(
        Marker::text("<think>"),
        Marker::text("</think>"),
        Some(20),
    );
    check(
        &thinking,
        &[
            (&format!("<think>short</think>\n{time}"), true),
            (&format!("<think>a <call> is needed</think>{time}\n"), true),
            (&format!("<think>as long as it may be!</think>{time}"), false),
            (&format!("<think>short</think>so {time}"), false),
            (time, false),
        ],
    );
}

#[test]
fn special_tokens_begin_and_end_tags() {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    let names = ["<|call|>", "<|end|>", "<|other|>"];
    tokens.extend(names.map(|name| Token::Special(name.into())));
    let vocabulary = Vocabulary::new(tokens, vec![258]).unwrap();
    let tag =
        Tag::text(Marker::token("<|call|>"), "[0-9]+", Syntax::Regex, Marker::token("<|end|>"));
    let grammar = Tags::new().tag(tag).at_most(1).grammar(&Options::default()).unwrap();
    let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
    let mut matcher = constraint.matcher();
    let allowed = |matcher: &mut Matcher| -> Vec<TokenId> {
        matcher.mask().unwrap().iter().filter(|&id| id > 255).collect()
    };
    matcher.accept_bytes(b"the text <|call|> is text").unwrap();
    assert_eq!(allowed(&mut matcher), [256, 258]);
    matcher.accept(256).unwrap();
    assert!(matcher.accept_bytes(b"x").is_err() && !matcher.can_stop());
    matcher.accept_bytes(b"12").unwrap();
    assert_eq!(allowed(&mut matcher), [257]);
    matcher.accept(257).unwrap();
    matcher.accept_bytes(b" done").unwrap();
    assert_eq!(allowed(&mut matcher), [258]);
}

#[test]
fn tags_that_cannot_be_are_refused() {
    let tag = |begin: &str| Tag::text(Marker::text(begin), "x", Syntax::Regex, Marker::text("."));
    let bad = [
        Tags::new().tag(tag("")),
        Tags::new().tag(tag("<a")).tag(tag("<a>")),
        Tags::new().tag(tag("<a")).at_least(2).at_most(1),
        Tags::new().tag(Tag::json(Marker::text("<"), "{\"type\": 1}", Marker::text(">"))),
    ];
    for tags in bad {
        assert!(tags.grammar(&Options::default()).is_err(), "{tags:?}");
    }
    assert!(Tag::tools(Marker::text("<"), &[], Marker::text(">")).is_err());
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
    assert_eq!(count, 12, "a grammar is missing");
}
