//! All small grammars of text, against the words that they derive.
//!
//! A grammar has the rules S and A, each with one or two different alternatives of up to two symbols out of `a`, `b`,
//! S and A: left recursion, hidden left recursion, rules that may be empty, cycles, ambiguity and rules that derive
//! nothing are all among them.
//! The reference is the definition: the least sets of words (up to some length) that are closed under
//! the alternatives, and the beginnings of words, which are least sets too.

use super::Slice;
use constrain::schema::Options;
use constrain::syntax::Syntax;
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Grammar, Kind, Matcher, TokenId};

/// Longest word.
const LENGTH: usize = 6;
/// Words of up to that length, numbered: the word `w` of n letters is `1w` in binary, less one.
const WORDS: usize = (1 << (LENGTH + 1)) - 1;

/// A set of words: one bit each.
type Words = u128;

fn word(letters: &[u8]) -> usize {
    letters.iter().fold(1, |code, letter| code * 2 + usize::from(letter - b'a')) - 1
}

fn length(word: usize) -> u32 {
    (word + 1).ilog2()
}

/// All words of the first followed by one of the second, but for those that are too long.
fn concat(first: Words, second: Words) -> Words {
    let mut found = 0;
    let each = |set: Words| (0..WORDS).filter(move |word| set >> word & 1 == 1);
    for one in each(first) {
        for two in each(second) {
            let tail = length(two);
            if length(one) + tail <= LENGTH as u32 {
                found |= 1 << (((one + 1) << tail) + (two + 1 - (1 << tail)) - 1);
            }
        }
    }
    found
}

/// Symbols: 0 and 1 are letters, 2 and 3 rules.
type Alternative = Vec<usize>;

fn alternatives() -> Vec<Alternative> {
    let mut found = vec![vec![]];
    found.extend((0..4).map(|symbol| vec![symbol]));
    found.extend((0..16).map(|pair| vec![pair / 4, pair % 4]));
    found
}

/// One alternative, or two different ones.
fn bodies() -> Vec<Vec<Alternative>> {
    let all = alternatives();
    let mut found: Vec<Vec<Alternative>> = all.iter().map(|one| vec![one.clone()]).collect();
    for (i, one) in all.iter().enumerate() {
        found.extend(all[i + 1..].iter().map(|two| vec![one.clone(), two.clone()]));
    }
    found
}

struct Reference {
    words: Words,
    beginnings: Words,
    /// Every rule that the start leads to derives something.
    sound: bool,
}

fn reference(rules: &[Vec<Alternative>; 2]) -> Reference {
    let letter = |symbol: usize| 1 << word(&[b'a' + symbol as u8]);
    // Whether rules derive anything, of any length.
    let mut productive = [true, true, false, false];
    for _ in 0..2 {
        for (rule, body) in rules.iter().enumerate() {
            productive[rule + 2] |= body.iter().any(|way| way.iter().all(|&s| productive[s]));
        }
    }
    let mut words = [letter(0), letter(1), 0, 0];
    fixpoint(&mut words, rules, |words, way| {
        way.iter().fold(1, |found, &symbol| concat(found, words[symbol]))
    });
    let mut begun = [letter(0) | 1, letter(1) | 1, 0, 0];
    fixpoint(&mut begun, rules, |begun, way| {
        if !way.iter().all(|&symbol| productive[symbol]) {
            return 0;
        }
        let (mut found, mut before) = (1, 1);
        for &symbol in way {
            found |= concat(before, begun[symbol]);
            before = concat(before, words[symbol]);
        }
        found
    });
    let uses_other = rules[0].iter().flatten().any(|&symbol| symbol == 3);
    let sound = productive[2] && (productive[3] || !uses_other);
    Reference { words: words[2], beginnings: begun[2], sound }
}

/// The least sets that are closed under the alternatives.
fn fixpoint(
    sets: &mut [Words; 4],
    rules: &[Vec<Alternative>; 2],
    of: impl Fn(&[Words; 4], &Alternative) -> Words,
) {
    loop {
        let before = *sets;
        for (rule, body) in rules.iter().enumerate() {
            for way in body {
                let more = of(sets, way);
                sets[rule + 2] |= more;
            }
        }
        if *sets == before {
            return;
        }
    }
}

fn gbnf(rules: &[Vec<Alternative>; 2]) -> String {
    let symbol = |&symbol: &usize| ["\"a\"", "\"b\"", "root", "other"][symbol];
    let way = |way: &Alternative| match way[..] {
        [] => "\"\"".to_owned(),
        _ => way.iter().map(symbol).collect::<Vec<_>>().join(" "),
    };
    let body = |body: &Vec<Alternative>| body.iter().map(way).collect::<Vec<_>>().join(" | ");
    format!("root ::= {}\nother ::= {}\n", body(&rules[0]), body(&rules[1]))
}

/// All words of one to three letters, and an end.
fn vocabulary() -> Vocabulary {
    let words = (1..word(b"aaaa")).map(|word| text(word).into());
    let mut tokens: Vec<Token> = words.map(Token::Text).collect();
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    Vocabulary::new(tokens, vec![end]).expect("a vocabulary")
}

fn text(word: usize) -> Vec<u8> {
    let length = length(word);
    (0..length).rev().map(|bit| b'a' + (((word + 1) >> bit) & 1) as u8).collect()
}

/// Compares after every beginning of up to `LENGTH` letters; returns how many tokens were compared.
fn compare(reference: &Reference, matcher: &mut Matcher, grammar: &str) -> usize {
    let at = word(matcher.text());
    let shown = String::from_utf8_lossy(matcher.text()).into_owned();
    let mask: Vec<TokenId> =
        matcher.mask().unwrap_or_else(|e| panic!("{e}:\n{grammar}")).iter().collect();
    assert!(!mask.is_empty(), "a dead end after {shown:?}:\n{grammar}");
    assert_eq!(matcher.can_stop(), reference.words >> at & 1 == 1, "{shown:?} of\n{grammar}");
    let (mut compared, mut longer) = (0, Vec::new());
    for (id, bytes) in matcher.constraint().vocabulary().text_tokens() {
        if shown.len() + bytes.len() <= LENGTH {
            let next = word(&[shown.as_bytes(), bytes].concat());
            let wanted = reference.beginnings >> next & 1 == 1;
            let masked = mask.binary_search(&id).is_ok();
            assert_eq!(masked, wanted, "{:?} after {shown:?} of\n{grammar}", text(next));
            compared += 1;
            if wanted && bytes.len() == 1 {
                longer.push(id);
            }
        }
    }
    for id in longer {
        matcher.accept(id).expect("a token of the mask");
        compared += compare(reference, matcher, grammar);
        matcher.rollback(1).expect("one was accepted");
    }
    compared
}

#[test]
fn small_grammars_derive_their_words() {
    let slice = Slice::chosen(100);
    let vocabulary = vocabulary();
    let bodies = bodies();
    let (mut grammars, mut unsound, mut refused, mut tokens) = (0, 0, 0, 0);
    let all =
        bodies.iter().flat_map(|one| bodies.iter().map(move |two| [one.clone(), two.clone()]));
    for (_, rules) in all.enumerate().filter(|(i, _)| slice.has(*i)) {
        let text = gbnf(&rules);
        let reference = reference(&rules);
        grammars += 1;
        let grammar = match Grammar::from_text(&text, Syntax::Gbnf, &Options::default()) {
            Ok(grammar) if reference.sound => grammar,
            Ok(_) => panic!("a rule derives nothing, but it compiles:\n{text}"),
            Err(error) if reference.sound => panic!("{error}:\n{text}"),
            Err(error) => {
                assert_eq!(*error.kind(), Kind::Unsatisfiable, "{error}:\n{text}");
                unsound += 1;
                continue;
            }
        };
        let constraint = match Constraint::new(&grammar, &vocabulary) {
            Ok(constraint) => constraint,
            Err(error) => {
                assert!(matches!(error.kind(), Kind::TooComplex { .. }), "{error}:\n{text}");
                refused += 1;
                continue;
            }
        };
        tokens += compare(&reference, &mut constraint.matcher(), &text);
    }
    eprintln!(
        "{grammars} grammars, {unsound} unsound, {refused} refused: {tokens} tokens compared"
    );
}
