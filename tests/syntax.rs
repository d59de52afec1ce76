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
use constrain::{Constraint, Grammar, Kind, Matcher, TokenId, Vocabulary};
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
        // Every third one as it is printed.
        let grammar = match compiled % 3 {
            0 => compile(&grammar.to_gbnf().unwrap(), "gbnf").unwrap(),
            _ => grammar,
        };
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
fn lark_templates_and_directives() {
    let text = r#"
        start: list{pair{NAME, "="}, ","} | list{NUMBER, ";"} end
        list{item, comma}: item (comma item)*        // used before and after
        pair{key, sign}: key sign (NUMBER | nested{pair{key, ":"}})
        nested{x}: "(" list{x, ","} ")" | "(" nested{x} ")"
        end: "!"
        %extend end: "?" | LAST
        NAME.2: /[a-z]+/
        NUMBER.-1: /[0-9]+/
        %declare _INDENT _DEDENT
        LAST: "x"
        %override LAST: "."
    "#;
    let grammar = compile(text, "lark").unwrap();
    let vocabulary = support::synthetic();
    let tokens = Tokenizer::new(&vocabulary);
    let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
    let cases = [
        ("a=1", true),
        ("a=1,b=(c:2,d:3)", true),
        ("a=((c:2))", true),
        ("1;2!", true),
        ("1?", true),
        ("1.", true),
        ("1x", false),
        ("1,2!", false),
        ("a=1;b=2", false),
        ("a:1", false),
        ("a=(c=2)", false),
    ];
    for (text, valid) in cases {
        assert_eq!(accepts(&constraint, &tokens, text).unwrap(), valid, "{text:?}");
    }
    let errors = [
        ("start: f{\"a\"}", "there is no template"),
        ("start: f{\"a\"}\nf{x, y}: x y", "takes 2 arguments, not 1"),
        ("start: f{\"a\"}\nf{x}: f{x x}", "lists of arguments"),
        ("start: f{\"a\"\nf{x}: x", "expected"),
        ("f{x}: x\nf{y}: y\nstart: \"a\"", "defined twice"),
        ("start: _INDENT\n%declare _INDENT", "has no text"),
        ("%extend start: \"a\"", "not defined before"),
        ("start: %frobnicate", "expected a literal"),
    ];
    for (text, part) in errors {
        let error = compile(text, "lark").unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// What must become of a hostile text.
enum Fate {
    /// It compiles, and a text of it is accepted, another one is not.
    Fine(&'static str, &'static str),
    /// It is refused, for one of these reasons.
    Refused(&'static [Kind]),
}

/// Texts made to break compilers of grammars: deep, huge, empty, ambiguous, without end.
fn hostile() -> Vec<(&'static str, String, Fate)> {
    use Fate::{Fine, Refused};
    const BAD: Fate = Refused(&[Kind::BadGrammar]);
    const BAD_REGEX: Fate = Refused(&[Kind::BadRegex, Kind::TooDeep, Kind::TooLarge]);
    const UNSUPPORTED: Fate = Refused(&[Kind::Unsupported { keyword: String::new() }]);
    const UNSATISFIABLE: Fate = Refused(&[Kind::Unsatisfiable]);
    const TOO_COMPLEX: Fate = Refused(&[Kind::TooComplex { what: "", limit: 0 }]);
    let nested = |open: usize, close: usize| {
        format!("root ::= {}\"a\"{}", "(".repeat(open), ")".repeat(close))
    };
    let chain = |count: usize, last: &str| {
        let rules: String = (0..count).map(|i| format!("r{i} ::= r{}\n", i + 1)).collect();
        format!("{rules}r{count} ::= {last}\n")
    };
    let doubled = |last: &str| {
        let rules: String = (0..40).map(|i| format!("r{i} ::= r{} r{}\n", i + 1, i + 1)).collect();
        format!("{rules}r40 ::= {last}\n")
    };
    let words: Vec<String> = (0..60_000).map(|i| format!("\"w{i}\"")).collect();
    let powers: Vec<String> = (1..120).map(|length| "a".repeat(length)).collect();
    let letters: String = ('a'..='t').map(|c| format!("(?!.*{c})")).collect();
    vec![
        ("gbnf", "root ::= x\nx ::= y x \"b\" | \"a\"\ny ::= \"\"".into(), Fine("abb", "b")),
        ("gbnf", "root ::= a\na ::= b \"x\" | \"a\"\nb ::= a \"y\"".into(), Fine("ayx", "ax")),
        ("lark", "start: y*\ny: \"a\"?".into(), Fine("aaa", "b")),
        ("gbnf", "root ::= ((\"a\"*)*)*".into(), Fine("aaa", "b")),
        ("gbnf", "root ::= root root root | root root | \"a\" | \"\"".into(), Fine("aaaa", "b")),
        ("lark", "start: \"a\" start".into(), UNSATISFIABLE),
        ("lark", "start: \"a\" | b\nb: c\nc: b".into(), UNSATISFIABLE),
        ("gbnf", "root ::= missing".into(), BAD),
        ("gbnf", String::new(), BAD),
        ("w3c", "/* nothing */".into(), BAD),
        ("ebnf", "a = \"x\" ; a = \"y\" ;".into(), BAD),
        ("lark", "start: A\nA: b\nb: \"x\"".into(), BAD),
        ("gbnf", nested(250, 250), Fine("a", "b")),
        ("gbnf", nested(1_000, 1_000), Refused(&[Kind::TooDeep])),
        ("gbnf", nested(100_000, 0), Refused(&[Kind::TooDeep])),
        ("lark", format!("start: {}", "[(".repeat(60_000)), Refused(&[Kind::TooDeep])),
        ("ebnf", format!("a = {}", "{ [".repeat(60_000)), Refused(&[Kind::TooDeep])),
        ("gbnf", "root ::= \"a\"{1000000} | \"b\"".into(), Fine("b", "c")),
        ("gbnf", "root ::= (((\"a\"{1000}){1000}){1000}){1000} | \"b\"".into(), Fine("b", "c")),
        ("gbnf", "root ::= \"a\"{0,1000000} \"b\"".into(), Fine("aaab", "c")),
        ("gbnf", chain(5_000, "\"a\""), Fine("a", "b")),
        ("gbnf", chain(40_000, "\"a\" r0 | \"b\""), Fine("aab", "ba")),
        ("gbnf", chain(200_000, "\"a\""), Refused(&[Kind::TooLarge])),
        ("gbnf", doubled("\"a\" | \"b\" r0"), Fine("a", "c")),
        ("gbnf", doubled("\"a\"?"), Fine("aaaa", "b")),
        ("gbnf", format!("root ::= {}", words.join(" | ")), Fine("w59999", "w60000")),
        ("gbnf", format!("root ::= \"{}\"", "x".repeat(900_000)), Fine("x", "y")),
        ("gbnf", format!("root ::= \"{}\"", "x".repeat(5_000_000)), Refused(&[Kind::TooLarge])),
        ("gbnf", "\u{feff}root ::= \"a\0\"\r\n | \"b\"\r\n".into(), Fine("b", "c")),
        ("gbnf", "root ::= \"\\U00110000\"".into(), BAD),
        ("gbnf", "root ::= [\\ud800]".into(), BAD),
        (
            "gbnf",
            "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"c\"".into(),
            Fine("abcba", "cc"),
        ),
        ("gbnf", format!("root ::= {}\"z\"", "(\"a\" | \"aa\")* ".repeat(30)), Fine("aaaz", "b")),
        ("lark", "%import .files.X\nstart: X".into(), UNSUPPORTED),
        ("regex", "(a+)+b".into(), Fine("aab", "aac")),
        ("regex", "(a|a)*b|(a|a)*".into(), Fine("aaab", "c")),
        ("regex", "(a{1000}){1000}|b".into(), Fine("b", "c")),
        ("regex", "a{10}{10}{10}{10}{10}{10}{10}|b".into(), Fine("b", "c")),
        ("regex", "[ab]*a[ab]{13}".into(), Fine("baabbabbabbabba", "c")),
        ("regex", ".*a.{30}b".into(), Fine("a123456789012345678901234567890b", "\n")),
        ("regex", r"\p{L}{1000}|\d".into(), Fine("7", "ab!")),
        ("regex", r"(\w{100}){100}|!".into(), Fine("!", "?")),
        ("regex", format!("({})?", r"\p{L}\p{N}\p{P}".repeat(300)), Fine("", "1")),
        ("regex", "(a?){10000}".into(), Fine("aa", "b")),
        ("regex", "(a*)*(|b)*".into(), Fine("aab", "ba")),
        ("regex", "(".repeat(100_000), BAD_REGEX),
        ("regex", format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)), BAD_REGEX),
        // A repetition beside an assertion is written out, and neighbouring texts become one.
        ("regex", "(?:(?:ab^?){1000}){500}".into(), TOO_COMPLEX),
        ("regex", "(?:(?:c|d||(?:mab$){0,999}){1,999}){0,999}".into(), TOO_COMPLEX),
        ("regex", "(?:(?:^ab||c||d(?:e|f$)g,999}){1,999}){1,999}".into(), TOO_COMPLEX),
        ("regex", "(?:(x|||abcd?:(?:ef$)^0,999}){1,999}){1,999}".into(), TOO_COMPLEX),
        // What an assertion says of large classes is found once, and nothing is before what cannot go on.
        ("regex", r"(?:(?:a^?b\b<c){2000})?x".into(), Fine("x", "b")),
        ("regex", r"(?:(?:a^?,\b<c){1000})x".into(), UNSATISFIABLE),
        // A literal that grows with each repetition is only looked at where something is asked of it.
        ("regex", format!(r"(?:{}\b<,|b){{1000}}", ",x".repeat(20)), Fine("b,x", "x")),
        ("regex", format!("(?:(?=(?:{0})*$){0}){{2000}}", "xy".repeat(20)), TOO_COMPLEX),
        ("regex", "(?=".repeat(500), BAD_REGEX),
        ("regex", "[[[[".into(), BAD_REGEX),
        ("regex", "a\\".into(), BAD_REGEX),
        ("regex", "(?=(?!(?=b)c)[ab]+$).*".into(), Fine("ab", "c")),
        ("regex", r"(?<!x)(a+)\1".into(), UNSUPPORTED),
        ("regex", "[z-a]".into(), BAD_REGEX),
        ("regex", r"[^\x00-\x{10FFFF}]".into(), UNSATISFIABLE),
        ("regex", "a{99999999999999999999}".into(), BAD_REGEX),
        ("regex", "a{5,2}".into(), BAD_REGEX),
        ("regex", format!("(?i){}", "k".repeat(2_000)), Fine("kK\u{212a}", "x")),
        ("regex", format!("{}z", ".*".repeat(500)), Fine("abz", "\n")),
        ("regex", powers.join("|"), Fine("aaa", "b")),
        ("regex", format!("{letters}.*"), Fine("uvw", "ua")),
        ("choice", "\n\n".into(), BAD),
        ("choice", words.join("\n"), Fine("\"w59999\"", "w")),
    ]
}

/// On a small stack: nothing recurses on what strangers write.
#[test]
fn hostile_texts_meet_their_fate() {
    let run = || {
        let vocabulary = support::synthetic();
        for (syntax, text, fate) in hostile() {
            let name = || format!("{syntax}: {}", text.chars().take(60).collect::<String>());
            let made =
                compile(&text, syntax).and_then(|grammar| Constraint::new(&grammar, &vocabulary));
            match (made, fate) {
                (Ok(constraint), Fate::Fine(good, bad)) => {
                    let mut matcher = constraint.matcher();
                    let accepted = matcher.accept_bytes(good.as_bytes());
                    assert!(accepted.is_ok(), "{}: {accepted:?}", name());
                    matcher.mask().unwrap_or_else(|error| panic!("{}: {error}", name()));
                    matcher.reset();
                    assert!(matcher.accept_bytes(bad.as_bytes()).is_err(), "{}", name());
                }
                (Err(error), Fate::Refused(kinds)) => {
                    let same = |kind: &Kind| {
                        std::mem::discriminant(kind) == std::mem::discriminant(error.kind())
                    };
                    assert!(kinds.iter().any(same), "{}: {error}", name());
                    assert!(error.to_string().len() < 1_100, "{}", name());
                }
                (Ok(_), Fate::Refused(_)) => panic!("{}: it compiles", name()),
                (Err(error), Fate::Fine(..)) => panic!("{}: {error}", name()),
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn literals_are_never_special_tokens() {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    tokens.push(Token::Special("<|im_end|>".into()));
    let vocabulary = Vocabulary::new(tokens, vec![256]).unwrap();
    let constraint =
        |text: &str| Constraint::new(&compile(text, "gbnf").unwrap(), &vocabulary).unwrap();
    let mut literal = constraint("root ::= \"<|im_end|>\"").matcher();
    assert!(!literal.mask().unwrap().contains(256));
    literal.accept_bytes(b"<|im_end|>").unwrap();
    let named = "root ::= \"a\" <|im_end|> \"b\" <[256]> !<[256]>";
    let mut matcher = constraint(named).matcher();
    matcher.accept_bytes(b"a").unwrap();
    assert_eq!(matcher.mask().unwrap().iter().collect::<Vec<_>>(), [256]);
    matcher.accept(256).unwrap();
    matcher.accept_bytes(b"b").unwrap();
    matcher.accept(256).unwrap();
    assert_eq!(matcher.mask().unwrap().count(), 256);
}

/// The grammars that come with llama.cpp's Rust crate, where its sources are on this machine.
#[test]
fn grammars_of_llama_cpp() {
    let Some(grammars) = support::llama_grammars() else { return };
    let samples = [
        ("arithmetic", "(1+x_1)*2=y\n", "x=\n"),
        ("c", "int f(char c){int x = 1;if(x<2){g (x, 3);}return -x;}", "int f({"),
        ("chess", "1. e4 e5\n2. Nf3 Nc6\n", "1. e4 e5\n"),
        ("japanese", "\u{3042}", "abc"),
        ("json", "{\"a\":[1,true,\"x\"]}", "{\"a\": 1}"),
        ("json_arr", "[\n1,\n2]", "{}"),
        ("list", "- a\n- b\n", "a\n"),
    ];
    let vocabulary = support::synthetic();
    let tokens = Tokenizer::new(&vocabulary);
    assert_eq!(grammars.len(), samples.len());
    for ((name, text), (sample, good, bad)) in grammars.into_iter().zip(samples) {
        assert_eq!(name, sample);
        let grammar = compile(&text, "gbnf").unwrap_or_else(|error| panic!("{name}: {error}"));
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        for (text, valid) in [(good, true), (bad, false)] {
            assert_eq!(accepts(&constraint, &tokens, text).unwrap(), valid, "{name}: {text:?}");
        }
    }
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
        // What holds a schema cannot be written as GBNF; everything else means the same then.
        let printed = match grammar.to_gbnf() {
            Ok(gbnf) => {
                let again = compile(&gbnf, "gbnf").unwrap_or_else(|e| panic!("{e}:\n{gbnf}"));
                Some(Constraint::new(&again, &vocabulary).unwrap())
            }
            Err(error) => {
                assert!(text.contains("%json"), "{}: {error}", path.display());
                None
            }
        };
        let cases = std::fs::read_to_string(path.with_extension("cases.jsonl")).unwrap();
        for line in cases.lines() {
            let Text { text, valid } = serde_json::from_str(line).unwrap();
            let found = accepts(&constraint, &tokens, &text).unwrap();
            assert_eq!(found, valid, "{}: {text:?}", path.display());
            if let Some(printed) = &printed {
                let found = accepts(printed, &tokens, &text).unwrap();
                assert_eq!(found, valid, "{} as GBNF: {text:?}", path.display());
            }
        }
        count += 1;
    }
    assert_eq!(count, 13, "a grammar is missing");
}

#[test]
fn dates_are_those_of_the_calendar() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars/date.gbnf");
    let grammar = compile(&std::fs::read_to_string(path).unwrap(), "gbnf").unwrap();
    let constraint = Constraint::new(&grammar, &support::synthetic()).unwrap();
    // The last two digits, and the centuries, in all their classes.
    let years = (0..=104).chain(1896..=2004).chain([2100, 2200, 2396, 2400, 9996, 9999]);
    for year in years {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for month in 0..=13 {
            let days = match month {
                2 => 28 + i32::from(leap),
                4 | 6 | 9 | 11 => 30,
                1..=12 => 31,
                _ => 0,
            };
            for day in 0..=32 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                let mut matcher = constraint.matcher();
                let found = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop();
                assert_eq!(found, (1..=days).contains(&day), "{text}");
            }
        }
    }
}
