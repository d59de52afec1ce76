//! From the bytes of tokens to text that can be shown: whole characters, and nothing that may turn
//! out to be the beginning of a stop text.
//!
//! By hand, stop text `END`, tokens `a E`, `N`, `x`: after the first the text `a ` is shown and
//! `E` held back, after the second `EN`; the third rules `END` out, and `ENx` is shown at once.

/// The output so far and how much of it was shown.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    bytes: Vec<u8>,
    shown: usize,
    stops: Vec<Vec<u8>>,
}

impl TextStream {
    /// An empty output with stop texts; empty ones never occur.
    pub fn new(stops: &[String]) -> Self {
        let stops = stops.iter().map(|stop| stop.clone().into_bytes()).collect();
        Self { bytes: Vec::new(), shown: 0, stops }
    }

    /// Appends the bytes of a token. If a stop text occurs now where the output `may_end`, cuts it
    /// before the leftmost such occurrence and returns the index of that text.
    pub fn push(&mut self, token: &[u8], may_end: impl Fn(usize) -> bool) -> Option<usize> {
        let old = self.bytes.len();
        self.bytes.extend_from_slice(token);
        let longest = self.stops.iter().map(Vec::len).max().unwrap_or(0);
        for at in (old + 1).saturating_sub(longest)..self.bytes.len() {
            let after = &self.bytes[at..];
            // What ended before this token was judged then.
            let is_here = |stop: &Vec<u8>| {
                !stop.is_empty() && at + stop.len() > old && after.starts_with(stop)
            };
            let found = self.stops.iter().position(is_here);
            if found.is_some() && may_end(at) {
                self.bytes.truncate(at);
                return found;
            }
        }
        None
    }

    /// Shows what can be shown, everything if the output is `finished`.
    pub fn show(&mut self, finished: bool, sink: &mut dyn FnMut(&str)) {
        let held = if finished { 0 } else { self.held_back() };
        let end = (self.bytes.len() - held).max(self.shown);
        let mut open = &self.bytes[self.shown..end];
        while !open.is_empty() {
            let (valid, bad) = match std::str::from_utf8(open) {
                Ok(text) => (text, 0),
                Err(error) => {
                    let valid = std::str::from_utf8(&open[..error.valid_up_to()]).unwrap_or("");
                    let rest = open.len() - valid.len();
                    (valid, error.error_len().unwrap_or(if finished { rest } else { 0 }))
                }
            };
            if !valid.is_empty() {
                sink(valid);
            }
            if bad > 0 {
                sink("\u{fffd}");
            }
            let step = valid.len() + bad;
            self.shown += step;
            open = &open[step..];
            if bad == 0 {
                break;
            }
        }
    }

    /// The output so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The output.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Length of the longest end of the output that begins a stop text.
    fn held_back(&self) -> usize {
        let begins = |len: usize| {
            let end = &self.bytes[self.bytes.len() - len..];
            self.stops.iter().any(|stop| stop.starts_with(end))
        };
        let longest = self.stops.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
        (1..=longest.min(self.bytes.len())).rev().find(|&len| begins(len)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::mix;

    fn run(stops: &[&str], tokens: &[&[u8]]) -> (Vec<String>, Option<usize>, Vec<u8>) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut stream = TextStream::new(&stops);
        let mut shown = Vec::new();
        let mut stopped = None;
        for token in tokens {
            stopped = stream.push(token, |_| true);
            if stopped.is_some() {
                break;
            }
            stream.show(false, &mut |text| shown.push(text.to_owned()));
        }
        stream.show(true, &mut |text| shown.push(text.to_owned()));
        (shown, stopped, stream.into_bytes())
    }

    #[test]
    fn holds_back_what_may_be_a_stop_text() {
        let (shown, stopped, bytes) = run(&["END"], &[b"a E", b"N", b"x"]);
        assert_eq!((shown, stopped), (vec!["a ".to_owned(), "ENx".to_owned()], None));
        assert_eq!(bytes, b"a ENx");
    }

    #[test]
    fn stops_across_tokens_at_the_leftmost_occurrence() {
        assert_eq!(
            run(&["END"], &[b"a E", b"N", b"D b"]),
            (vec!["a ".to_owned()], Some(0), b"a ".to_vec())
        );
        let (_, stopped, bytes) = run(&["late", "x l"], &[b"1 x late"]);
        assert_eq!((stopped, bytes), (Some(1), b"1 ".to_vec()));
        let (_, stopped, bytes) = run(&["aab", ""], &[b"a", b"a", b"a", b"b"]);
        assert_eq!((stopped, bytes), (Some(0), b"a".to_vec()));
    }

    #[test]
    fn stops_only_where_the_output_may_end() {
        let mut stream = TextStream::new(&["b".to_owned(), "bc".to_owned()]);
        assert_eq!(stream.push(b"ab", |cut| cut == 3), None);
        assert_eq!(stream.push(b"cb", |cut| cut == 3), Some(0));
        assert_eq!(stream.into_bytes(), b"abc");
    }

    #[test]
    fn pieces_are_whole_characters_and_add_up() {
        let samples: [&[u8]; 4] =
            ["naïve 日本 🎉".as_bytes(), b"\xff\xe2\x82", b"a\xf0\x9f\x8e", b"\xe2\x82\xacb\xc3"];
        for seed in 0..400 {
            let mut all = Vec::new();
            for i in 0..3 {
                all.extend_from_slice(samples[(mix(seed * 3 + i) % 4) as usize]);
            }
            let tokens: Vec<&[u8]> = all.chunks(1 + (mix(seed) % 3) as usize).collect();
            let (shown, _, bytes) = run(&[], &tokens);
            assert_eq!(shown.concat(), String::from_utf8_lossy(&all));
            assert_eq!(bytes, all);
        }
    }
}
