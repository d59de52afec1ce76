//! Tokens by id while a file is read, and which of them end generation.
use super::{MAX_IDS, MAX_TEXT_BYTES, MAX_TOKEN_BYTES, Token, TokenId, Vocabulary, bad};
use crate::error::{Result, quote};
use hashbrown::HashMap;

/// Names of special tokens with which models end their turn.
const END_NAMES: &[&str] = &[
    "</s>",
    "<eos>",
    "[EOS]",
    "<EOT>",
    "<|eos|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|endofturn|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
];

/// Ends a turn, except where [`HARMONY_RETURN`] exists: there it only ends one of its messages.
const MESSAGE_END: &str = "<|end|>";
const HARMONY_RETURN: &str = "<|return|>";

/// Unused ids that a vocabulary may have beyond as many as it has tokens. Memory is by the largest
/// id, so a file of ten bytes must not name id 10⁷.
const SPARE_IDS: usize = 1 << 16;

/// One token of a file.
struct Entry<'a> {
    id: TokenId,
    /// The text as it stands in the file.
    name: &'a str,
    token: Token,
}

/// The tokens read so far, in the order of the file; later ones replace earlier ones of the same id.
#[derive(Default)]
pub(super) struct TokenTable<'a> {
    entries: Vec<Entry<'a>>,
    text_bytes: usize,
}

impl<'a> TokenTable<'a> {
    /// Adds a text token; `bytes` is `None` if there are too many. Empty text makes an unused id.
    pub(super) fn text(
        &mut self,
        id: TokenId,
        name: &'a str,
        bytes: Option<Vec<u8>>,
    ) -> Result<()> {
        let bytes = bytes.filter(|bytes| bytes.len() <= MAX_TOKEN_BYTES).ok_or_else(|| {
            bad(format!("token {id} is longer than {MAX_TOKEN_BYTES} bytes"))
                .help("check that the file is a tokenizer")
        })?;
        self.text_bytes += bytes.len();
        if self.text_bytes > MAX_TEXT_BYTES {
            return Err(bad(format!("the tokens have more than {MAX_TEXT_BYTES} bytes"))
                .help("check that the file is a tokenizer"));
        }
        let token = if bytes.is_empty() { Token::Unused } else { Token::Text(bytes.into()) };
        self.entries.push(Entry { id, name, token });
        Ok(())
    }

    /// Adds a special token.
    pub(super) fn special(&mut self, id: TokenId, name: &'a str) {
        let token = if name.is_empty() { Token::Unused } else { Token::Special(name.into()) };
        self.entries.push(Entry { id, name, token });
    }

    /// The names of the tokens so far, with their ids.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'a str, TokenId)> {
        self.entries.iter().map(|entry| (entry.name, entry.id))
    }

    /// The vocabulary, which ends with the special tokens of known names, with `ids` and `names`.
    pub(super) fn build(self, ids: &[TokenId], names: &[String]) -> Result<Vocabulary> {
        let mut end = ids.to_vec();
        if !names.is_empty() {
            let by_name: HashMap<&str, TokenId> = self.names().collect();
            for name in names {
                let id = by_name.get(&**name).ok_or_else(|| {
                    bad(format!("the end token {} is not in the vocabulary", quote(name)))
                        .help("name tokens that end generation as the tokenizer writes them")
                })?;
                end.push(*id);
            }
        }
        let tokens = self.into_tokens()?;
        let named = |name: &str| {
            let same = move |token: &Token| matches!(token, Token::Special(n) if &**n == name);
            tokens.iter().position(same)
        };
        let mut known: Vec<usize> = END_NAMES.iter().filter_map(|name| named(name)).collect();
        if named(HARMONY_RETURN).is_none() {
            known.extend(named(MESSAGE_END));
        }
        end.extend(known.into_iter().filter_map(|id| TokenId::try_from(id).ok()));
        Vocabulary::new(tokens, end)
    }

    /// The tokens by id, if the ids are not out of proportion.
    fn into_tokens(self) -> Result<Vec<Token>> {
        let len = self.entries.iter().map(|entry| entry.id as usize + 1).max().unwrap_or(0);
        let present = self.entries.len();
        if len > MAX_IDS.min(2 * present + SPARE_IDS) {
            let message = format!("{present} tokens have ids up to {}", len - 1);
            return Err(bad(message).help("check that the file is a tokenizer"));
        }
        let mut tokens = vec![Token::Unused; len];
        for entry in self.entries {
            tokens[entry.id as usize] = entry.token;
        }
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specials(names: &[&'static str]) -> TokenTable<'static> {
        let mut table = TokenTable::default();
        for (name, id) in names.iter().zip(0..) {
            table.special(id, name);
        }
        table
    }

    #[test]
    fn known_ends_are_special_tokens() {
        let table = specials(&["<s>", "</s>", "<|im_end|>", "<|end|>"]);
        assert_eq!(table.build(&[], &[]).unwrap().end_tokens(), [1, 2, 3]);
        let mut text = TokenTable::default();
        text.text(0, "</s>", Some(b"</s>".to_vec())).unwrap();
        assert!(text.build(&[], &[]).unwrap_err().to_string().contains("no token ends generation"));
    }

    #[test]
    fn a_message_end_is_no_end_beside_a_return() {
        let table = specials(&["<|end|>", "<|return|>", "<|call|>"]);
        assert_eq!(table.build(&[], &[]).unwrap().end_tokens(), [1, 2]);
    }

    #[test]
    fn ends_by_id_and_by_name() {
        let mut table = specials(&["<s>", "<x>", "<y>"]);
        table.text(3, "stop", Some(b"stop".to_vec())).unwrap();
        let vocabulary = table.build(&[1], &["stop".to_owned()]).unwrap();
        assert_eq!(vocabulary.end_tokens(), [1, 3]);
        let error = specials(&["<s>"]).build(&[], &["</x>".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("</x>"));
    }

    #[test]
    fn memory_is_by_the_tokens_present() {
        let with_id = |id| {
            let mut table = specials(&["</s>"]);
            table.special(id, "<x>");
            table.build(&[], &[])
        };
        assert_eq!(with_id(65_539).unwrap().len(), 65_540);
        assert!(with_id(65_540).unwrap_err().to_string().contains("ids up to 65540"));
        assert!(with_id(u32::MAX).is_err());
    }

    #[test]
    fn later_entries_replace_earlier_ones() {
        let mut table = specials(&["</s>", "<x>"]);
        table.text(1, "x", Some(b"x".to_vec())).unwrap();
        assert_eq!(table.build(&[], &[]).unwrap().bytes(1), Some(&b"x"[..]));
    }
}
