//! Patterns against tables written by hand, against `regress` (ECMA-262) and `regex-automata`.

use super::*;
use crate::expr::View;
use regex_automata::meta::Regex as Oracle;
use std::fmt::Write;

fn fuel() -> Fuel {
    Fuel::new(2_000_000)
}

/// Strings that a pattern accepts and rejects.
fn check(text: &str, accepted: &[&str], rejected: &[&str]) {
    let mut exprs = Exprs::new();
    let expr = pattern(&mut exprs, text, &Limits::default(), &mut fuel()).unwrap();
    for (strings, expected) in [(accepted, true), (rejected, false)] {
        for string in strings {
            let found = exprs.matches(expr, string, &mut fuel()).unwrap();
            assert_eq!(found, expected, "{text} on {string:?}");
        }
    }
}

fn error(text: &str) -> Error {
    let mut exprs = Exprs::new();
    pattern(&mut exprs, text, &Limits::default(), &mut fuel()).expect_err(text)
}

#[test]
fn anchors_are_exact_anywhere() {
    check("foo", &["foo", "xfoo", "foox", "\nfoo\n"], &["", "fo", "f oo"]);
    check("^foo", &["foo", "foox"], &["xfoo", "\nfoo"]);
    check("foo$", &["foo", "xfoo"], &["foox", "foo\n"]);
    check("^a|b$", &["a", "ax", "b", "xb", "ab"], &["", "xa", "bx"]);
    check("^(a|b)$", &["a", "b"], &["ab", "ax", "xb"]);
    check("(^|x)foo", &["foo", "xfoo", "axfoo"], &["yfoo"]);
    check("foo(?:$|,)", &["foo", "foo,bar"], &["foobar"]);
    check("a^b|$a", &[], &["ab", "a", "", "b"]);
    check("^^^a$$$", &["a"], &["aa"]);
    check("a*^b", &["b", "bb"], &["ab"]);
    check("(?:^a)+$|(?:b$)+", &["a", "b", "xb"], &["aa", "bx", ""]);
    check("^", &["", "x"], &[]);
    check("", &["", "x"], &[]);
    check("[]", &[], &["", "x"]);
    check("^[^]$", &["\n", "x", "\u{10ffff}"], &["", "xx"]);
    check("(?:)", &["", "x"], &[]);
}

#[test]
fn assertions_look_at_their_surroundings() {
    check(r"\bfoo\b", &["foo", "a foo.", "-foo"], &["foot", "_foo", "foo1"]);
    check(r"\Boo\B", &["foot"], &["foo", "oot", "oo"]);
    check(r"^\b$", &[], &["", "a"]);
    check(r"é\b", &["éa"], &["é", "é "]);
    check("^(?!ab)[a-c]+$", &["a", "ba", "ac"], &["ab", "abc", ""]);
    check("(?=.*[0-9])(?=.*[a-z])^.{3,5}$", &["a11", "11aa1"], &["111", "aaa", "1a", "a1111a"]);
    check("^(?!.*foo)(?!.*bar).*$", &["", "fo", "ba o"], &["foo", "xbar", "foobar"]);
    check("^((?!ab).)*$", &["", "ba", "aab".get(..2).unwrap()], &["ab", "xaby", "aab"]);
    check("^<((?!>>).)*>>$", &["<>>", "<a>b>>"], &["<>>>", "<a>>b>>", "<>"]);
    check("^(?:a(?=b|$)|b)*$", &["a", "ab", "aba", "bb"], &["aa", "abaa"]);
    check("(?<=x)a", &["xa", "yxa"], &["a", "ya"]);
    check("(?<!x)a", &["a", "ya", "xaa"], &["xa"]);
    check("(?<=^|,)a", &["a", ",a", "b,a"], &["ba"]);
    check(r"^.*(?<!\.tmp)$", &["", "a.txt", "tmp"], &[".tmp", "a.tmp"]);
    check(r"^(?!x)\w*(?<!ab)(?<!cd)$", &["", "b", "abc"], &["xb", "ab", "acd"]);
    check(r"(?<!ab)c|^(?=.*z).*(?<=yy)", &["c", "abyyz", "zyy"], &["abc", "yy", "zy"]);
    check(r"a(?<=ba)c", &["bac"], &["ac", "aac"]);
    check("(?=a(?!b(?=c)))a.", &["ab", "abd", "ac"], &["abc", "a"]);
    check("(?:(?=a)|b)*c", &["c", "bc", "ac"], &["", "b"]);
    check("^(?:^a|b){2,3}$", &["ab", "bb", "abb", "bbb"], &["aa", "ba", "abbb", "b"]);
    check("^(?=a)*b$", &["b"], &["a", "ab"]);
}

#[test]
fn classes_and_escapes_are_those_of_ecma() {
    check(r"^\d$", &["0", "9"], &["٣", "a"]);
    check(r"^\w$", &["_", "Z"], &["é", "-"]);
    check(r"^\s$", &[" ", "\u{feff}", "\u{2029}", "\u{b}", "\u{3000}"], &["\u{85}", "a"]);
    check(r"^\S\D\W$", &["aa-"], &[" a-", "a1-", "aaa"]);
    check("^.$", &["a", "\u{85}", "😀"], &["\n", "\r", "\u{2028}", "\u{2029}", ""]);
    check(r"^\x41\u0042\u{43}\cJ\0\t$", &["ABC\n\0\t"], &["ABC"]);
    check(r"^\ud83d\ude00$", &["😀"], &["\u{fffd}"]);
    check(r"^[\ud83d\ude00-\ud83d\ude02]$", &["😁"], &["😃"]);
    check(r"\ud800", &[], &["", "a"]);
    check(r"^[\ud800-\uffff]$", &["\u{e000}", "\u{ffff}"], &["\u{d7ff}", "😀"]);
    check(r"^\p{Lu}\P{L}\p{Script=Greek}\p{scx=Grek}$", &["A1αβ"], &["a1αβ", "Aaαβ", "A1ab"]);
    check(r"^[\p{L}\p{N}_-]+$", &["é9-_"], &["a b"]);
    check(r"^[\w-]+$|^[a-]$|^[-a]$", &["a-b", "-"], &["+"]);
    check(r"^[\b]$", &["\u{8}"], &["b"]);
    check(r"^(?i:k)ab$", &["kab", "Kab", "\u{212a}ab"], &["kAb"]);
    check("^(?i:[^a]ß)$", &["bß", "bẞ"], &["Aß", "aß", "bss"]);
    check("^(?<year>[0-9]{4})$", &["2024"], &["24"]);
    check("^a{2}b{1,}c{0,2}?d??$", &["aab", "aabbccd"], &["ab", "aa", "aabccc"]);
    check("(?i:\u{17f})", &["s", "S"], &["t"]);
}

#[test]
fn annex_b_reads_what_the_flag_u_refuses() {
    check(r"^\-\@\_\'\:$", &["-@_':"], &["\\-"]);
    check("^a{$", &["a{"], &["a"]);
    check("^{name}$", &["{name}"], &["name"]);
    check("^x{,5}$", &["x{,5}"], &["xx"]);
    check("^]}$", &["]}"], &[]);
    check(r"^[\w-.]$", &["-", ".", "a"], &["/"]);
    check(r"^\012\8$", &["\n8"], &[]);
    check(r"^\c$", &["\\c"], &["c"]);
    check(r"^\x4\-$", &["x4-"], &[]);
    // What the flag gives a meaning keeps it.
    check(r"^\p{L}\-\u{61}$", &["é-a"], &["p{L}-a"]);
}

#[test]
fn errors_say_where_and_what_to_do() {
    for text in [
        "(",
        ")",
        "(a",
        "a)",
        "*",
        "+a",
        "a**",
        "a++",
        "[",
        "[a",
        "[z-a]",
        r"\",
        "(?",
        "(?<a",
        "(?<1>)",
        "{2}x",
        "^+",
        r"\b*",
        "a{5,2}",
        "a{99999999999999999999}",
        "(?i)a",
        "(?P<a>b)",
        r"^\A",
        r"a\Z",
        r"\p{Foo}",
        r"\p{greek}",
        r"\pL",
        r"(?<=a)*",
        "[[[[",
        "(?#x)",
        r"\u{110000}\p{L",
        "(?ii:a)",
    ] {
        assert_eq!(*error(text).kind(), Kind::BadRegex, "{text}");
    }
    for text in [r"(a)\1", r"(?<x>a)\k<x>", r"\k<x>", "(?P=x)", "(?R)", r"(?:a(?<=ba))+c"] {
        assert!(matches!(error(text).kind(), Kind::Unsupported { .. }), "{text}");
    }
    let message = error("^a+*$").to_string();
    assert!(message.contains("nothing to repeat, at character 4, before \"*$\""), "{message}");
    assert!(error(r"^a\Z").to_string().ends_with("write $"));
    assert!(error(&"(".repeat(8_000)).to_string().len() < 1_024);
    assert_eq!(*error(&"a".repeat(9_000)).kind(), Kind::TooLarge);
    assert_eq!(*error(&"(".repeat(251)).kind(), Kind::TooDeep);
}

#[test]
fn simple_patterns_come_out_simple() {
    let mut exprs = Exprs::new();
    let mut build = |text| pattern(&mut exprs, text, &Limits::default(), &mut fuel()).unwrap();
    let (letters, word, start, dots) =
        (build("^[a-z]+$"), build("foo"), build("^foo"), build("^.*$"));
    let (merged, many) = (build("^.*.*.*z"), build("^.*z"));
    assert_eq!(exprs.display(merged, 99), exprs.display(many, 99));
    let letter = exprs.class(&[('a', 'z')]);
    assert_eq!(exprs.view(letters), View::Repeat { item: letter, min: 1, max: None });
    let foo = exprs.literal("foo");
    assert_eq!(word, exprs.concat(&[ExprId::ANY, foo, ExprId::ANY]));
    assert_eq!(start, exprs.concat(&[foo, ExprId::ANY]));
    assert!(matches!(exprs.view(dots), View::Repeat { min: 0, max: None, .. }));
}

/// Random patterns and strings over a small alphabet: a generator that needs no crate.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn string(&mut self) -> String {
        let len = self.below(7);
        (0..len).map(|_| ['a', 'b', '-', '\n', 'é', 'A'][self.below(6) as usize]).collect()
    }

    /// A pattern; those with `look` have look-around too.
    fn pattern(&mut self, depth: u32, look: bool, out: &mut String) {
        let atoms =
            ["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\W", r"\s", "é", "^", "$", r"\b", r"\B"];
        let looks = ["(?=", "(?!", "(?<=a", "(?<!b", "(?<=[^a-]", "(?<=^|b"];
        match self.below(if depth == 0 { 4 } else { 10 }) {
            0..=3 => out.push_str(atoms[self.below(atoms.len() as u64) as usize]),
            4 | 5 => (0..self.below(4)).for_each(|_| self.pattern(depth - 1, look, out)),
            6 => {
                out.push_str("(?:");
                self.pattern(depth - 1, look, out);
                out.push('|');
                self.pattern(depth - 1, look, out);
                out.push(')');
            }
            7 if look => {
                let at = self.below(looks.len() as u64) as usize;
                out.push_str(looks[at]);
                if at < 2 {
                    self.pattern(depth - 1, look, out);
                }
                out.push(')');
            }
            _ => {
                out.push_str("(?:");
                self.pattern(depth - 1, look, out);
                out.push(')');
                let counts = ["*", "+", "?", "{2}", "{1,3}", "*?", "{0}", "{2,}"];
                out.push_str(counts[self.below(counts.len() as u64) as usize]);
            }
        }
    }
}

#[test]
fn random_patterns_agree_with_an_ecma_engine() {
    let mut random = Random(1);
    let mut judged = 0;
    for round in 0..3_000 {
        let mut text = String::new();
        random.pattern(4, true, &mut text);
        let Ok(oracle) = regress::Regex::with_flags(&text, "u") else { continue };
        let mut exprs = Exprs::new();
        let expr = match pattern(&mut exprs, &text, &Limits::default(), &mut fuel()) {
            Ok(expr) => expr,
            Err(error) if matches!(error.kind(), Kind::TooComplex { .. }) => continue,
            Err(error) => panic!("{text}: {error}"),
        };
        for _ in 0..20 {
            let string = random.string();
            let found = exprs.matches(expr, &string, &mut Fuel::new(10_000_000)).unwrap();
            let expected = oracle.find(&string).is_some();
            assert_eq!(found, expected, "{text} on {string:?} in round {round}");
            judged += 1;
        }
    }
    assert!(judged > 40_000, "{judged}");
}

#[test]
fn random_plain_regexes_agree_with_another_engine() {
    let mut random = Random(2);
    let mut judged = 0;
    for round in 0..3_000 {
        let mut text = String::new();
        random.pattern(4, false, &mut text);
        let flags = Flags {
            ignore_case: random.below(2) == 0,
            dot_all: random.below(2) == 0,
            multi_line: random.below(2) == 0,
            extended: false,
        };
        let syntax = regex_automata::util::syntax::Config::new()
            .case_insensitive(flags.ignore_case)
            .dot_matches_new_line(flags.dot_all)
            .multi_line(flags.multi_line);
        // `\A` and `\z` make the search a match of the whole.
        let Ok(oracle) = Oracle::builder().syntax(syntax).build(&format!(r"\A(?:{text})\z")) else {
            continue;
        };
        let mut exprs = Exprs::new();
        let expr = whole_with(&mut exprs, &text, flags, &Limits::default(), &mut fuel()).unwrap();
        for _ in 0..20 {
            let string = random.string();
            let found = exprs.matches(expr, &string, &mut Fuel::new(10_000_000)).unwrap();
            let expected = oracle.is_match(&string);
            assert_eq!(found, expected, "{text} {flags:?} on {string:?} in round {round}");
            judged += 1;
        }
    }
    assert!(judged > 50_000, "{judged}");
}

#[test]
fn plain_regexes_match_as_a_whole() {
    let mut exprs = Exprs::new();
    let mut matches = |text: &str, flags: Flags, string: &str| {
        let expr = whole_with(&mut exprs, text, flags, &Limits::default(), &mut fuel()).unwrap();
        exprs.matches(expr, string, &mut fuel()).unwrap()
    };
    let none = Flags::default();
    assert!(matches("ab|cd", none, "cd") && !matches("ab|cd", none, "abd"));
    assert!(matches(r"\d+", none, "٣4") && matches("(?i)k", none, "\u{212a}"));
    assert!(matches("a b # c", Flags { extended: true, ..none }, "ab"));
    assert!(
        matches("a.b", Flags { dot_all: true, ..none }, "a\nb") && !matches("a.b", none, "a\nb")
    );
    assert!(matches("(?!if)[a-z]+", none, "x") && !matches("(?!if$)[a-z]+", none, "if"));
    assert!(matches(r#""(?:[^"\\]|\\.)*""#, none, r#""a\"b""#));
    for text in ["(", "a**(", "[z-a]", r"(?-u:\xff)", r"\1", "(?P=x)"] {
        assert!(whole(&mut Exprs::new(), text, &Limits::default(), &mut fuel()).is_err(), "{text}");
    }
}

/// Runs on a stack of 512 KiB: what recursed on its input would overflow it.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn hostile_patterns_end_with_an_answer() {
    let nest =
        |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    let ladder = (1..=120).map(|n| "a".repeat(n)).collect::<Vec<_>>().join("|");
    let patterns = vec![
        "(a+)+b".to_owned(),
        "(a|a)*b".into(),
        "^(a|a)*$".into(),
        "(a{1000}){1000}".into(),
        "a{10}{10}".into(),
        "(((((a{10}){10}){10}){10}){10}){10}".into(),
        "[ab]*a[ab]{13}".into(),
        "(a|b)*a(a|b){25}".into(),
        ".*a.{30}b".into(),
        r"\p{L}{1000}".into(),
        r"(\w{100}){100}".into(),
        r"\p{L}\p{N}\p{P}".repeat(300),
        "(){4294967295}".into(),
        "(a?){10000}".into(),
        "(a*)*".into(),
        "(|a)*".into(),
        "(".repeat(8_000),
        nest("(", "", ")", 4_000),
        nest("(", "a", ")*", 250),
        nest("(?=", "a", ")", 250),
        nest("(?:^|", "a", ")*", 250),
        nest("(?!(?=", "a", "))", 20),
        nest("(?:b|", "^", ")+", 240),
        "(?=".repeat(500),
        format!("a{}", "+".repeat(5_000)),
        "[[[[".into(),
        r"\".into(),
        r"\b".repeat(1_000),
        r"(?:\b\w)*".into(),
        r"(?:\b{0}a)".into(),
        "[z-a]".into(),
        r"[^\x00-\u{10FFFF}]".into(),
        format!("(?i:{})", "k".repeat(2_000)),
        ".*".repeat(500) + "z",
        ladder,
        "(?:^a){1000}".into(),
        "(?:(?:^a){1000}){1000}".into(),
        "(?:(?:(?:a|b$){1,999}){1,999}){1,999}".into(),
        "(?:a*$|b*^)*".repeat(50),
        format!("[{}]", r"\p{L}\w".repeat(900)),
        "(?<=a)".repeat(1_000),
        "(?<=ab)".repeat(800),
        "a?".repeat(3_000) + "^",
        "(?:a|".repeat(240) + "^" + &")".repeat(240),
    ];
    on_small_stack(move || {
        for text in patterns {
            let mut exprs = Exprs::new();
            let mut start: String = text.chars().take(40).collect();
            let _ = write!(start, " ({} bytes)", text.len());
            match pattern(&mut exprs, &text, &Limits::default(), &mut fuel()) {
                Ok(expr) => {
                    let _ = exprs.matches(expr, "aaaaabbbbbaa", &mut fuel());
                    let _ = exprs.is_never(expr, &mut fuel());
                }
                Err(error) => assert!(error.to_string().len() < 1_024, "{start}"),
            }
            let _ = whole(&mut exprs, &text, &Limits::default(), &mut fuel());
        }
    });
}

/// The official suite in the shared test data, if it is there.
pub(super) fn official_suite() -> Option<std::path::PathBuf> {
    let shared = std::env::var_os("CONSTRAIN_SHARED").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        std::path::PathBuf::from,
    );
    let root = shared.join("json-schema-test-suite");
    if !root.is_dir() {
        eprintln!("skipped: no shared test data (CONSTRAIN_SHARED)");
        return None;
    }
    Some(root)
}

#[test]
fn the_patterns_of_the_official_suite_agree() {
    let Some(root) = official_suite() else { return };
    let mut judged = 0;
    for draft in ["draft4", "draft7", "draft2020-12"] {
        for file in
            ["pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"]
        {
            let Ok(text) = std::fs::read_to_string(root.join(draft).join(file)) else { continue };
            let groups: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            for group in groups {
                let Some(text) = group["schema"]["pattern"].as_str() else { continue };
                let mut exprs = Exprs::new();
                let expr = pattern(&mut exprs, text, &Limits::default(), &mut fuel()).unwrap();
                for test in group["tests"].as_array().unwrap() {
                    let Some(string) = test["data"].as_str() else { continue };
                    let found = exprs.matches(expr, string, &mut fuel()).unwrap();
                    assert_eq!(test["valid"], found, "{draft} {text} on {string:?}");
                    judged += 1;
                }
            }
        }
    }
    assert!(judged > 100, "{judged}");
}
