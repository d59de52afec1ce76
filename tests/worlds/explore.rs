//! What a constraint lets be written in a world: all beginnings, through its masks.

use super::support::Random;
use super::texts::{Place, World, sequences};
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Matcher, TokenId};
use std::collections::{BTreeSet, HashMap};

/// The vocabularies of a world. All have all single bytes.
pub struct Vocabularies {
    pub bytes: Vocabulary,
    /// All strings of up to three bytes of the world.
    pub short: Vocabulary,
    /// Two hundred pieces, each of two others.
    pub random: Vocabulary,
}

impl Vocabularies {
    pub fn new(world: &World) -> Self {
        let bytes: Vec<u8> = world.bytes().into_iter().collect();
        let letters: Vec<char> = bytes.iter().map(|&byte| char::from(byte)).collect();
        // Each character stands for a byte here.
        let short = sequences(&letters, 2).into_iter().chain(sequences(&letters, 3));
        let short = short.map(|text| text.chars().map(|c| c as u8).collect());
        let mut random = Random(0x5EED);
        let mut pieces: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
        while pieces.len() < 200 {
            let mut piece = || pieces[random.below(pieces.len())].clone();
            let longer = [piece(), piece()].concat();
            if longer.len() <= 8 && !pieces.contains(&longer) {
                pieces.push(longer);
            }
        }
        Self {
            bytes: with(std::iter::empty()),
            short: with(short),
            random: with(pieces.into_iter().skip(bytes.len())),
        }
    }
}

/// All bytes, these, and an end.
fn with(texts: impl Iterator<Item = Vec<u8>>) -> Vocabulary {
    let texts = (0..=255u8).map(|byte| vec![byte]).chain(texts);
    let mut tokens: Vec<Token> = texts.map(|text| Token::Text(text.into())).collect();
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    Vocabulary::new(tokens, vec![end]).expect("a vocabulary")
}

/// A beginning that is allowed.
struct Node {
    place: Place,
    length: usize,
    /// It is a whole document.
    whole: bool,
    next: Vec<(u8, usize)>,
}

/// All beginnings that are allowed byte by byte and can be completed within some length.
pub struct Trie {
    nodes: Vec<Node>,
    /// Longest text.
    most: usize,
}

/// What is known of a continuation.
#[derive(PartialEq)]
enum Known {
    Allowed(usize),
    Barred,
    /// It leaves the world, or is too long.
    Beyond,
}

impl Trie {
    /// Tries all bytes of the world after every beginning.
    pub fn new(constraint: &Constraint, world: World, most: usize, name: &str) -> Self {
        let root = Node { place: Place::default(), length: 0, whole: false, next: Vec::new() };
        let mut trie = Self { nodes: vec![root], most };
        trie.grow(0, &mut constraint.matcher(), world, name);
        trie
    }

    fn grow(&mut self, at: usize, matcher: &mut Matcher, world: World, name: &str) {
        let allowed = mask(matcher, name);
        self.nodes[at].whole = matcher.can_stop();
        let Node { place, length, .. } = self.nodes[at];
        for byte in allowed.into_iter().filter_map(|token| u8::try_from(token).ok()) {
            let Some(place) = world.step(place, byte) else { continue };
            if length + 1 + place.owed() > self.most {
                continue;
            }
            let next = self.nodes.len();
            self.nodes.push(Node { place, length: length + 1, whole: false, next: Vec::new() });
            self.nodes[at].next.push((byte, next));
            matcher.accept(byte.into()).expect("a token of the mask");
            self.grow(next, matcher, world, name);
            matcher.rollback(1).expect("one was accepted");
        }
    }

    /// The number of beginnings.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The texts that are whole documents.
    pub fn accepted(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut work = vec![(0, Vec::new())];
        while let Some((at, text)) = work.pop() {
            if self.nodes[at].whole {
                found.insert(String::from_utf8(text.clone()).expect("documents are UTF-8"));
            }
            for &(byte, next) in &self.nodes[at].next {
                work.push((next, [&text[..], &[byte]].concat()));
            }
        }
        found
    }

    fn step(&self, at: usize, byte: u8, world: World) -> Known {
        let node = &self.nodes[at];
        if let Some(&(_, next)) = node.next.iter().find(|(known, _)| *known == byte) {
            return Known::Allowed(next);
        }
        match world.step(node.place, byte) {
            Some(place) if node.length + 1 + place.owed() <= self.most => Known::Barred,
            _ => Known::Beyond,
        }
    }

    /// After every beginning the mask of another vocabulary has the tokens that lead to another one.
    /// Each is reached by one chain of tokens, of which the last is chosen anew. Returns how many
    /// tokens were compared.
    pub fn check(&self, constraint: &Constraint, world: World, name: &str) -> usize {
        let bytes = world.bytes();
        let tokens = constraint.vocabulary().text_tokens();
        let tokens: Vec<(TokenId, &[u8])> =
            tokens.filter(|(_, text)| text.iter().all(|byte| bytes.contains(byte))).collect();
        let by_text = tokens.iter().map(|&(id, text)| (text, id)).collect();
        let mut check = Check { trie: self, world, name, tokens, by_text, visited: 0, compared: 0 };
        check.visit(0, &mut constraint.matcher());
        assert_eq!(check.visited, self.len(), "{name}: each beginning is reached by some tokens");
        check.compared
    }
}

struct Check<'c> {
    trie: &'c Trie,
    world: World,
    name: &'c str,
    tokens: Vec<(TokenId, &'c [u8])>,
    by_text: HashMap<&'c [u8], TokenId>,
    visited: usize,
    compared: usize,
}

impl Check<'_> {
    fn visit(&mut self, at: usize, matcher: &mut Matcher) {
        self.visited += 1;
        let allowed = mask(matcher, self.name);
        let text = matcher.text().to_vec();
        assert_eq!(matcher.can_stop(), self.trie.nodes[at].whole, "{}: after {text:?}", self.name);
        let mut chosen = Vec::new();
        for &(id, token) in &self.tokens {
            let mut known = Known::Allowed(at);
            for &byte in token {
                let Known::Allowed(at) = known else { break };
                known = self.trie.step(at, byte, self.world);
            }
            if known == Known::Beyond {
                continue;
            }
            self.compared += 1;
            let masked = allowed.binary_search(&id).is_ok();
            let (name, shown) = (self.name, String::from_utf8_lossy(&text));
            let token_shown = String::from_utf8_lossy(token);
            assert_eq!(masked, known != Known::Barred, "{name}: {token_shown:?} after {shown:?}");
            if let Known::Allowed(next) = known
                && self.last(next, &text, token)
            {
                chosen.push((id, next));
            }
        }
        for (id, next) in chosen {
            matcher.accept(id).expect("a token of the mask");
            self.visit(next, matcher);
            matcher.rollback(1).expect("one was accepted");
        }
    }

    /// Whether the beginning is reached by this token: one of those that it ends with.
    fn last(&self, beginning: usize, text: &[u8], token: &[u8]) -> bool {
        let whole = [text, token].concat();
        let ends = (1..=whole.len().min(8))
            .filter(|n| self.by_text.contains_key(&whole[whole.len() - n..]));
        let ends: Vec<usize> = ends.collect();
        ends[beginning * 31 % ends.len()] == token.len()
    }
}

/// The allowed tokens, never none.
fn mask(matcher: &mut Matcher, name: &str) -> Vec<TokenId> {
    let end = matcher.constraint().vocabulary().end_tokens()[0];
    let mask: Vec<TokenId> =
        matcher.mask().unwrap_or_else(|e| panic!("{name}: {e}")).iter().collect();
    let text = String::from_utf8_lossy(matcher.text());
    assert!(!mask.is_empty(), "{name}: a dead end after {text:?}");
    assert_eq!(mask.last() == Some(&end), matcher.can_stop(), "{name}: the end after {text:?}");
    mask
}
