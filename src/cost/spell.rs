//! The fewest tokens that spell a text.

use super::NEVER;
use crate::vocab::{Trie, Vocabulary};

/// Spelling over a vocabulary.
#[derive(Debug)]
pub struct Spell {
    vocabulary: Vocabulary,
    /// The fewest tokens of 0, 1, ... spaces, up to the longest token of spaces alone.
    spaces: Vec<u64>,
}

impl Spell {
    /// Looks up the tokens of spaces, which fill strings that must be long.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let trie = vocabulary.trie();
        let (mut node, mut length, mut longest) = (Trie::ROOT, 0, 0);
        while let Some(child) = trie.child(node, b' ') {
            (node, length) = (child, length + 1);
            if !trie.tokens(node).is_empty() {
                longest = length;
            }
        }
        let mut spell = Self { vocabulary: vocabulary.shallow(), spaces: Vec::new() };
        let mut spaces = spell.fewest(&vec![b' '; longest]);
        spaces.reverse();
        spell.spaces = spaces;
        spell
    }

    /// The fewest tokens that spell `text`; [`NEVER`] if none do.
    pub fn tokens(&self, text: &[u8]) -> u64 {
        self.fewest(text).first().copied().unwrap_or(0)
    }

    /// The fewest tokens of every suffix of `text`, the empty one included.
    fn fewest(&self, text: &[u8]) -> Vec<u64> {
        let trie = self.vocabulary.trie();
        let mut fewest = vec![NEVER; text.len() + 1];
        fewest[text.len()] = 0;
        for start in (0..text.len()).rev() {
            let mut node = Trie::ROOT;
            for (end, &byte) in (start + 1..).zip(&text[start..]) {
                let Some(child) = trie.child(node, byte) else { break };
                node = child;
                if !trie.tokens(node).is_empty() {
                    fewest[start] = fewest[start].min(fewest[end].saturating_add(1));
                }
            }
        }
        fewest
    }

    /// The tokens of `n` spaces: as many of the longest as fit, the rest in the fewest.
    pub fn spaces(&self, n: u64) -> u64 {
        let longest = self.spaces.len() as u64 - 1;
        match n.checked_div(longest) {
            Some(whole) => whole.saturating_add(self.spaces[(n % longest) as usize]),
            None if n == 0 => 0,
            None => NEVER,
        }
    }

    /// Whether every byte is a token.
    pub fn any_byte(&self) -> bool {
        self.vocabulary.missing_bytes() == &[0; 4]
    }

    /// At least the tokens of any number of spaces up to `n`.
    pub fn spaces_at_most(&self, n: u64) -> u64 {
        if self.spaces.len() > 1 || n == 0 { n } else { NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::vocab::Token;

    #[test]
    fn fewest_not_greedy() -> Result<()> {
        let texts: [&[u8]; 7] = [b"a", b"b", b"c", b"ab", b"bcc", b" ", b"    "];
        let mut tokens: Vec<Token> = texts.iter().map(|&text| Token::Text(text.into())).collect();
        tokens.push(Token::Special("<end>".into()));
        let spell = Spell::new(&Vocabulary::new(tokens, vec![7])?);
        // Greedy would take `ab`, `c`, `c`.
        assert_eq!(spell.tokens(b"abcc"), 2);
        assert_eq!((spell.tokens(b""), spell.tokens(b"ax")), (0, NEVER));
        let spaces: Vec<u64> = [0, 3, 4, 9, 4_000].map(|n| spell.spaces(n)).to_vec();
        assert_eq!(spaces, [0, 3, 1, 3, 1_000]);
        // Of spaces up to four the dearest are three.
        assert_eq!(spell.spaces_at_most(0), 0);
        for n in 0..9 {
            let dearest = (0..=n).map(|n| spell.spaces(n)).max();
            assert!(Some(spell.spaces_at_most(n)) >= dearest && spell.spaces_at_most(n) <= n);
        }
        Ok(())
    }
}
