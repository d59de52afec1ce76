//! Host names beyond ASCII.
//!
//! A label is legal in IDNA if tables of Unicode say so for each character, if it is in composed
//! form and lower case, if some characters have the right neighbours, if right-to-left labels keep
//! the Bidi rule, and if its encoding in ASCII fits 63 characters. Here is what surely keeps all of
//! that: labels out of lists of characters that stand for themselves, so few of them that the
//! longest encoding fits (four characters for the prefix, one for a delimiter, and for each
//! character beyond ASCII at most five, or three within one small block).

use super::host::{ascii_label, joined, known_a_labels};
use super::regex;
use crate::expr::{ExprId, Exprs};

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The format `idn-hostname`.
    Host,
    /// The domain of a mailbox: labels start and end with a letter or digit in the Unicode sense.
    Mailbox,
}

/// What labels are made of: alternatives of a regular expression.
#[derive(Debug, Clone, Copy)]
struct Script {
    /// Letters and digits.
    letters: &'static str,
    /// Signs that belong to the letter before, letters in the Unicode sense.
    signs: &'static str,
    /// Signs that are none.
    marks: &'static str,
    /// What may start or end a label but is no letter there.
    others: &'static str,
    /// How many of all these a label may have.
    max: usize,
}

/// Small alphabets of one block, to be completed by `..ALPHABET`.
const ALPHABET: Script = Script { letters: "", signs: "", marks: "", others: "", max: 14 };

const SCRIPTS: &[Script] = &[
    Script {
        letters: "[0-9a-zß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľłńņňōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżž]",
        ..ALPHABET
    },
    Script { letters: "[0-9α-ωά-ώΐΰ]", ..ALPHABET },
    Script { letters: "[0-9а-џґ]", ..ALPHABET },
    Script { letters: "[0-9ա-ֆ]", ..ALPHABET },
    Script { letters: "[0-9ა-ჺ]", ..ALPHABET },
    Script {
        letters: "[0-9ก-ะาเ-ๆ]", signs: "[ัิ-ู]", marks: "[ฺ็-๎]", ..ALPHABET
    },
    Script {
        letters: "[0-9अ-हऽ]",
        signs: "[ँ-ःा-ौ]",
        marks: r"\u{94d}[\u{200c}\u{200d}]?",
        max: 10,
        ..ALPHABET
    },
    // A mix of all that is written from left to right.
    Script {
        letters: concat!(
            "[0-9a-zß-öø-ÿα-ωά-ώа-џա-ֆა-ჺก-ะาเ-ๆअ-हऽ〇々ぁ-ゖァ-ヺーㇰ-ㇿ㐀-䶿一-鿿가-힣۰-۹]",
            "|l·l",
        ),
        // Greek keraia, the Tibetan tsheg, and the middle dot of Katakana beside kana or Han.
        others: "͵[α-ω]|་|・[ぁ-ゖァ-ヺ一-鿿]|[ぁ-ゖァ-ヺ一-鿿]・",
        max: 7,
        ..ALPHABET
    },
];

/// Full stops that separate labels.
pub(super) const STOPS: &str = "[.\u{3002}\u{ff0e}\u{ff61}]";

/// At most three labels, so that a name has at most 191 characters in ASCII.
const LABELS: u64 = 3;

/// Names whose labels are separated by `stop`.
pub(super) fn names(exprs: &mut Exprs, stop: ExprId, wanted: Use) -> ExprId {
    let known = known_a_labels(exprs);
    let mut labels = vec![known, regex(exprs, &ascii_label("[A-Za-z0-9]", 63))];
    for script in SCRIPTS {
        labels.push(regex(exprs, &label(*script, wanted)));
    }
    let label = exprs.or(&labels);
    let left_to_right = joined(exprs, label, stop, LABELS);
    let right_to_left = right_to_left(exprs, stop);
    exprs.or(&[left_to_right, right_to_left])
}

/// One label. Hyphens stand alone between other characters.
fn label(script: Script, wanted: Use) -> String {
    let any_of = |parts: &[&str]| {
        let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
        format!("(?:{})", parts.join("|"))
    };
    let Script { letters, signs, marks, others, max } = script;
    let any = any_of(&[letters, signs, marks, others]);
    let (first, last) = match wanted {
        Use::Host => (any_of(&[letters, others]), any.clone()),
        Use::Mailbox => (any_of(&[letters]), any_of(&[letters, signs])),
    };
    format!("{first}(?:(?:-?{any}){{0,{}}}-?{last})?", max - 2)
}

/// Names with Hebrew or Arabic labels. By the Bidi rule (RFC 5893) every label then starts with
/// a letter, and a label has digits of one kind.
fn right_to_left(exprs: &mut Exprs, stop: ExprId) -> ExprId {
    let mut labels = vec![regex(exprs, &ascii_label("[A-Za-z]", 63))];
    // Geresh and gershayim come after a letter.
    labels.push(regex(exprs, "[א-ת][׳״]?(?:-?(?:[א-ת][׳״]?|[0-9])){0,8}"));
    let letter = "[ء-ؿف-يٱ-ٴٹ-ۓەۺ-ۼ۽۾]";
    for digits in ["0-9", "٠-٩", "۰-۹"] {
        labels.push(regex(exprs, &format!("{letter}(?:-?(?:{letter}|[{digits}])){{0,13}}")));
    }
    // A non-joiner is between letters that would join.
    let joining = "[بت-خس-ؿف-هيٹ-ڇښ-ڿہھیې]";
    let parted = format!(r"(?:{letter}|{joining}\u{{200c}}{joining})");
    labels.push(regex(exprs, &format!("{parted}{{1,6}}")));
    let label = exprs.or(&labels);
    joined(exprs, label, stop, LABELS)
}
