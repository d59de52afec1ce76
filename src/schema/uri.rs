//! References between schemas: RFC 3986 resolution, as much of it as identifiers need.
//!
//! `join("http://a/b/c.json", "../d.json#/x")` is `http://a/d.json#/x`. Texts only: nothing is
//! fetched, ever.

/// The parts of a URI reference; `None` where the delimiter is absent.
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

fn split(uri: &str) -> Parts<'_> {
    let (rest, fragment) = cut(uri, '#');
    let (rest, query) = cut(rest, '?');
    let colon = rest.find(':').filter(|&i| {
        let head = rest.get(..i).unwrap_or("");
        head.starts_with(|c: char| c.is_ascii_alphabetic())
            && head.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    let (scheme, rest) = match colon {
        Some(i) => (rest.get(..i), rest.get(i + 1..).unwrap_or("")),
        None => (None, rest),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (rest.get(..end), rest.get(end..).unwrap_or(""))
        }
        None => (None, rest),
    };
    Parts { scheme, authority, path, query, fragment }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    }
}

/// Resolves `reference` against `base` (RFC 3986, 5.2).
pub(super) fn join(base: &str, reference: &str) -> String {
    let (b, r) = (split(base), split(reference));
    let (scheme, authority, path, query);
    if r.scheme.is_some() {
        (scheme, authority, path, query) = (r.scheme, r.authority, remove_dots(r.path), r.query);
    } else if r.authority.is_some() {
        (scheme, authority, path, query) = (b.scheme, r.authority, remove_dots(r.path), r.query);
    } else if r.path.is_empty() {
        (scheme, authority, path) = (b.scheme, b.authority, b.path.to_owned());
        query = r.query.or(b.query);
    } else {
        let whole = if r.path.starts_with('/') {
            r.path.to_owned()
        } else if b.authority.is_some() && b.path.is_empty() {
            format!("/{}", r.path)
        } else {
            let stem = b.path.rfind('/').map_or("", |i| b.path.get(..=i).unwrap_or(""));
            format!("{stem}{}", r.path)
        };
        (scheme, authority, path, query) = (b.scheme, b.authority, remove_dots(&whole), r.query);
    }
    let mut out = String::with_capacity(base.len() + reference.len());
    if let Some(scheme) = scheme {
        out.push_str(&scheme.to_ascii_lowercase());
        out.push(':');
    }
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(authority);
    }
    out.push_str(&path);
    for (mark, part) in [('?', query), ('#', r.fragment)] {
        if let Some(part) = part {
            out.push(mark);
            out.push_str(part);
        }
    }
    out
}

/// A URI as (without its fragment, fragment).
pub(super) fn without_fragment(uri: &str) -> (&str, &str) {
    uri.split_once('#').unwrap_or((uri, ""))
}

fn remove_dots(path: &str) -> String {
    if !path.contains("./") && !path.ends_with('.') {
        return path.to_owned();
    }
    let mut out: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let last = segments.len() - 1;
    for (i, segment) in segments.into_iter().enumerate() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    out.pop();
                }
                if i == last {
                    out.push("");
                }
            }
            segment => out.push(segment),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, out.join("/"))
}

/// Decodes `%XX`; `None` when that is no UTF-8 or an escape is broken.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = (bytes.next()? as char).to_digit(16)?;
            let low = (bytes.next()? as char).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, 5.4.1 and 5.4.2.
    #[test]
    fn joins_as_the_standard_says() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
        ];
        for (reference, wanted) in cases {
            assert_eq!(join(base, reference), wanted, "{reference}");
        }
        assert_eq!(join("", "item.json"), "item.json");
        assert_eq!(join("urn:x:y", "#/a"), "urn:x:y#/a");
    }

    #[test]
    fn decodes_percent_escapes() {
        assert_eq!(percent_decode("a%20b%C3%A9").as_deref(), Some("a b\u{e9}"));
        assert_eq!(percent_decode("%zz"), None);
        assert_eq!(percent_decode("%ff"), None);
    }
}
