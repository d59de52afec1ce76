//! Named sets of code points: `\d`, `\w`, `\s`, `.` and `\p{…}` as ECMA-262 defines them.
//!
//! The Unicode tables come from `regex-syntax`, which matches names loosely (`\p{greek}`). ECMA-262
//! does not, so a name is looked up only after it has passed the rules here: `\p{Lu}`,
//! `\p{General_Category=Uppercase_Letter}`, `\p{Script=Greek}`, `\p{scx=Grek}`, `\p{Alphabetic}`.

use super::ast::class_of;
use regex_syntax::hir::{Class, ClassUnicode, HirKind};

/// Values of `General_Category`, short and long.
const CATEGORIES: &str = "\
    C Other Cc Control cntrl Cf Format Cn Unassigned Co Private_Use Cs Surrogate L Letter LC \
    Cased_Letter Ll Lowercase_Letter Lm Modifier_Letter Lo Other_Letter Lt Titlecase_Letter \
    Lu Uppercase_Letter M Mark Combining_Mark Mc Spacing_Mark Me Enclosing_Mark Mn \
    Nonspacing_Mark N Number Nd Decimal_Number digit Nl Letter_Number No Other_Number P \
    Punctuation punct Pc Connector_Punctuation Pd Dash_Punctuation Pe Close_Punctuation Pf \
    Final_Punctuation Pi Initial_Punctuation Po Other_Punctuation Ps Open_Punctuation S \
    Symbol Sc Currency_Symbol Sk Modifier_Symbol Sm Math_Symbol So Other_Symbol Z Separator \
    Zl Line_Separator Zp Paragraph_Separator Zs Space_Separator";

/// Binary properties of ECMA-262.
const BINARY: &str = "\
    ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C \
    Bidi_Mirrored Bidi_M Case_Ignorable CI Cased Changes_When_Casefolded CWCF \
    Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded \
    CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash \
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp \
    Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres \
    Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext \
    Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC \
    ID_Start IDS Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase \
    Lower Math Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space \
    Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI Sentence_Terminal STerm \
    Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper \
    Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS";

/// Why a property cannot be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PropertyError {
    /// ECMA-262 has no property of this name.
    Unknown,
    /// There is such a property, but no table of it here.
    NoTable,
}

/// The set `\p{name}`.
pub(super) fn property(name: &str) -> Result<ClassUnicode, PropertyError> {
    let legal = match name.split_once('=') {
        Some(("General_Category" | "gc", value)) => is_in(CATEGORIES, value),
        Some(("Script" | "sc" | "Script_Extensions" | "scx", value)) => is_script_name(value),
        Some(_) => false,
        None => is_in(CATEGORIES, name) || is_in(BINARY, name),
    };
    if !legal {
        return Err(PropertyError::Unknown);
    }
    match name.rsplit('=').next() {
        // No string of scalar values holds a surrogate.
        Some("Cs" | "Surrogate") => return Ok(ClassUnicode::empty()),
        // Aliases that the tables do not know.
        Some("cntrl") => return lookup("Cc"),
        Some("digit") => return lookup("Nd"),
        Some("punct") => return lookup("P"),
        Some("Combining_Mark") => return lookup("M"),
        Some("space") => return lookup("White_Space"),
        _ => {}
    }
    let script = name.contains('=') && !name.starts_with(['G', 'g']);
    lookup(name).map_err(|error| if script { PropertyError::Unknown } else { error })
}

fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// Whether `name` is spelled as the names of scripts are: `Greek`, `Grek`, `Old_Italic`.
fn is_script_name(name: &str) -> bool {
    name.split('_').all(|word| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn lookup(name: &str) -> Result<ClassUnicode, PropertyError> {
    let hir = regex_syntax::parse(&format!(r"\p{{{name}}}")).map_err(|_| PropertyError::NoTable)?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        HirKind::Class(Class::Bytes(class)) => {
            class.to_unicode_class().ok_or(PropertyError::NoTable)
        }
        _ => Err(PropertyError::NoTable),
    }
}

/// `\d`.
pub(super) fn digit() -> ClassUnicode {
    class_of(&[('0', '9')])
}

/// `\w`; when case is ignored, it also holds what folds to a letter of ASCII.
pub(super) fn word(ignore_case: bool) -> ClassUnicode {
    let mut class = class_of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
    if ignore_case {
        class.union(&class_of(&[('\u{17f}', '\u{17f}'), ('\u{212a}', '\u{212a}')]));
    }
    class
}

/// `\s`: `WhiteSpace` and `LineTerminator` of ECMA-262.
pub(super) fn space() -> ClassUnicode {
    class_of(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// What ends a line in ECMA-262.
pub(super) fn line_terminator() -> ClassUnicode {
    class_of(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
}

/// Every code point but those of `class`.
pub(super) fn complement(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}
