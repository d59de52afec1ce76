//! Sets of code points as sorted, disjoint, non-adjacent ranges without surrogates.

/// An inclusive range of code points.
pub(super) type Range = (u32, u32);

/// The last code point.
pub(super) const LAST: u32 = 0x10_FFFF;
/// Surrogates are no scalar values: no range ever holds one.
const SURROGATES: Range = (0xD800, 0xDFFF);
/// Every scalar value.
pub(super) const ALL: [Range; 2] = [(0, SURROGATES.0 - 1), (SURROGATES.1 + 1, LAST)];

/// Sorts, joins what overlaps or touches, and cuts surrogates out.
pub(super) fn normalise(ranges: &mut Vec<Range>) {
    ranges.retain(|r| r.0 <= r.1);
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for &(first, last) in ranges.iter() {
        match joined.last_mut() {
            Some(previous) if first <= previous.1.saturating_add(1) => {
                previous.1 = previous.1.max(last);
            }
            _ => joined.push((first, last)),
        }
    }
    *ranges = intersect(&joined, &ALL);
}

/// Ranges in both; the inputs are sorted and disjoint.
pub(super) fn intersect(a: &[Range], b: &[Range]) -> Vec<Range> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (first, last) = (x.0.max(y.0), x.1.min(y.1));
        if first <= last {
            out.push((first, last));
        }
        if x.1 < y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}
