//! What could have come next, in words: from a mask over the byte vocabulary.
//!
//! The bytes `"`, `}`, space, tab, line feed, carriage return become: `"\""`, `"}"` or white space.

use constrain::Mask;

/// More kinds than this are not listed one by one.
const PARTS_MAX: usize = 24;

/// Id of the token that ends in the byte vocabulary.
const END: u32 = 256;

/// The allowed bytes of a mask over the byte vocabulary, in words.
pub fn describe(mask: &Mask<'_>) -> String {
    let allowed: Vec<bool> = (0..=END).map(|id| mask.contains(id)).collect();
    let is_allowed = |byte: u8| allowed.get(usize::from(byte)).copied().unwrap_or(false);
    let mut parts = ranges(&is_allowed);
    if b" \t\r\n".iter().any(|&byte| is_allowed(byte)) && !is_allowed(b'!') {
        parts.push("white space".to_string());
    }
    if (0x80..=0xff).any(is_allowed) {
        parts.push("other characters".to_string());
    }
    if allowed.last() == Some(&true) {
        parts.push("the end of the text".to_string());
    }
    if parts.len() > PARTS_MAX {
        parts.truncate(PARTS_MAX);
        parts.push("others".to_string());
    }
    match parts.split_last() {
        None => "nothing".to_string(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The allowed visible ASCII characters: runs of three and more as a range.
fn ranges(is_allowed: &dyn Fn(u8) -> bool) -> Vec<String> {
    let mut parts = Vec::new();
    let mut start: u8 = 0x21;
    // A space among other characters is one of them; alone it is white space.
    if is_allowed(b' ') && is_allowed(b'!') {
        start = b' ';
    }
    while start < 0x7f {
        let length = (start..0x7f).take_while(|&byte| is_allowed(byte)).count() as u8;
        match length {
            0 => {}
            1 | 2 => parts.extend((start..start + length).map(show)),
            _ => parts.push(format!("{} to {}", show(start), show(start + length - 1))),
        }
        start += length.max(1);
    }
    parts
}

fn show(byte: u8) -> String {
    match byte {
        b'"' => "'\"'".to_string(),
        // In quotes it would look as if it belonged to them.
        b'\\' => "a backslash".to_string(),
        byte => format!("\"{}\"", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(allowed: &[u8], end: bool, expected: &str) {
        let mut ids: Vec<u32> = allowed.iter().map(|&byte| u32::from(byte)).collect();
        ids.extend(end.then_some(END));
        ids.sort_unstable();
        assert_eq!(describe(&Mask::Sparse(&ids)), expected);
    }

    #[test]
    fn sets_of_bytes_in_words() {
        check(b"", false, "nothing");
        check(b"", true, "the end of the text");
        check(b"\"} \t\r\n", false, "'\"', \"}\" or white space");
        check(b"0123456789.", false, "\".\" or \"0\" to \"9\"");
        check(b"ab\xc3\xa9", true, "\"a\", \"b\", other characters or the end of the text");
        check(b" !\"#", false, "\" \" to \"#\"");
        check(b"\\n", false, "a backslash or \"n\"");
    }

    #[test]
    fn scattered_sets_are_cut() {
        let odd: Vec<u8> = (0x21..0x7f).step_by(2).collect();
        assert!(
            describe(&Mask::Sparse(&odd.iter().map(|&b| u32::from(b)).collect::<Vec<_>>()))
                .ends_with("or others")
        );
    }
}
