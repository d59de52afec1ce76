//! The rejection rule: a token drawn from one law becomes a token drawn from another.
//!
//! A drafter drew `x` from its law `q`; wanted is a draw from the law `p` of the step. Take `x` with
//! probability `min(1, p(x) / q(x))`; else draw from what `p` has more than `q`, renormalised. Then
//! every token `y` comes out with probability
//! `q(y) min(1, p(y) / q(y)) + (1 - Σ min(p, q)) max(p(y) - q(y), 0) / Σ max(p - q, 0) = p(y)`,
//! since `1 - Σ min(p, q) = Σ max(p - q, 0)`. (Leviathan et al. 2022, Chen et al. 2023.)
//!
//! By hand: `p` = (a 0.5, b 0.5), `q` = (a 0.8, b 0.2). A drafted `b` is always taken (0.2); an `a`
//! with probability 0.625 (0.5 in all); the other 0.3 become `b`, the only token of which `p` has
//! more.
//!
//! Both laws are those after mask, penalties, temperature and filters: the law that the token would
//! be drawn from, and the law that the draft *was* drawn from. A draft that was not drawn at all has
//! the law that is sure of it, and is taken with probability `p(x)`. Whether there is a draft at all
//! must not depend on which token was drawn.

use crate::vocab::TokenId;

/// Tokens with their probabilities, which sum to 1; the others have none.
pub(crate) type Law = Vec<(TokenId, f64)>;

/// The token that comes out, for two uniform numbers in `[0, 1)`: one decides whether the draft is
/// taken, the other what comes instead.
pub(crate) fn decide(
    target: &[(TokenId, f64)],
    draft: &[(TokenId, f64)],
    drafted: TokenId,
    (accept, instead): (f64, f64),
) -> TokenId {
    let (p, q) = (probability(target, drafted), probability(draft, drafted));
    if accept * q < p {
        return drafted;
    }
    let surplus = |&(token, p): &(TokenId, f64)| (p - probability(draft, token)).max(0.0);
    let place = instead * target.iter().map(surplus).sum::<f64>();
    let mut sum = 0.0;
    let more = target.iter().find(|row| {
        sum += surplus(row);
        sum > place
    });
    // No surplus: the laws are equal up to rounding, and the draft is as good a draw as any.
    more.map_or(drafted, |row| row.0)
}

/// The token on which a uniform number in `[0, 1)` falls.
pub(crate) fn pick(law: &[(TokenId, f64)], number: f64) -> Option<TokenId> {
    let place = number * law.iter().map(|row| row.1).sum::<f64>();
    let mut sum = 0.0;
    let found = law.iter().find(|row| {
        sum += row.1;
        sum > place
    });
    found.or(law.last()).map(|row| row.0)
}

/// Tokens of a law are few after filters, and most likely first: a scan finds one soon.
fn probability(law: &[(TokenId, f64)], token: TokenId) -> f64 {
    law.iter().find(|row| row.0 == token).map_or(0.0, |row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::{Purpose, uniform};

    const WORDS: u32 = 8;
    const DRAWS: u64 = 200_000;

    /// What the models would say without a mask, and the tokens that the mask allows.
    const TARGET: [f64; 8] = [0.30, 0.20, 0.15, 0.12, 0.10, 0.08, 0.04, 0.01];
    const DRAFT: [f64; 8] = [0.10, 0.30, 0.05, 0.25, 0.02, 0.20, 0.05, 0.03];
    const ALLOWED: [TokenId; 6] = [0, 2, 3, 5, 6, 7];

    fn full(law: &[f64; 8]) -> Law {
        (0..WORDS).zip(law.iter().copied()).collect()
    }

    fn only(law: &[f64; 8], keep: &[TokenId]) -> Law {
        let kept: Law = full(law).into_iter().filter(|row| keep.contains(&row.0)).collect();
        let sum: f64 = kept.iter().map(|row| row.1).sum();
        kept.into_iter().map(|(token, p)| (token, p / sum)).collect()
    }

    fn sure_of(token: TokenId) -> Law {
        vec![(token, 1.0)]
    }

    fn draw(law: &[(TokenId, f64)], number: f64) -> TokenId {
        pick(law, number).expect("a law has tokens")
    }

    /// Chi-square of the tokens that `rule` gives against the target's law under the mask, and the
    /// share of drafts that were taken.
    fn judge(stream: u64, rule: impl Fn([f64; 3]) -> (TokenId, TokenId)) -> (f64, f64) {
        let wanted = only(&TARGET, &ALLOWED);
        let mut counts = [0_u32; 8];
        let mut taken = 0;
        for i in 0..DRAWS {
            let numbers = [Purpose::Draft, Purpose::Accept, Purpose::Residual]
                .map(|purpose| uniform(20, stream, i, purpose));
            let (drafted, token) = rule(numbers);
            counts[token as usize] += 1;
            taken += u32::from(drafted == token);
        }
        let forbidden = (0..WORDS).filter(|token| !ALLOWED.contains(token));
        if forbidden.into_iter().any(|token| counts[token as usize] > 0) {
            return (f64::INFINITY, f64::from(taken) / DRAWS as f64);
        }
        let chi = wanted.iter().map(|&(token, p)| {
            let expected = p * DRAWS as f64;
            (f64::from(counts[token as usize]) - expected).powi(2) / expected
        });
        (chi.sum(), f64::from(taken) / DRAWS as f64)
    }

    /// 5 degrees of freedom: exceeded with probability 1e-6.
    const CRITICAL: f64 = 35.9;

    /// Draws a draft from `drawn`, and applies the rule for the laws `p` and `q`.
    fn rejection(drawn: Law, p: Law, q: Law) -> impl Fn([f64; 3]) -> (TokenId, TokenId) {
        move |[number, accept, instead]| {
            let drafted = draw(&drawn, number);
            (drafted, decide(&p, &q, drafted, (accept, instead)))
        }
    }

    #[test]
    fn the_law_is_the_targets_whatever_the_draft() {
        let p = only(&TARGET, &ALLOWED);
        let shortlist = only(&DRAFT, &[0, 3, 5]);
        let drafts = [
            ("unmasked", full(&DRAFT), 0.41),
            ("masked", only(&DRAFT, &ALLOWED), 0.57),
            ("shortlist", shortlist, 0.4),
            ("sure", sure_of(3), 0.17),
            ("sure of a forbidden token", sure_of(1), 0.0),
            ("the target itself", p.clone(), 1.0),
        ];
        for (stream, (name, q, least)) in (0..).zip(drafts) {
            let (chi, taken) = judge(stream, rejection(q.clone(), p.clone(), q));
            assert!(chi < CRITICAL, "{name}: chi-square {chi}");
            assert!(taken >= least && taken <= 1.0, "{name}: {taken} of the drafts were taken");
        }
    }

    #[test]
    fn planted_mistakes_are_caught() {
        let (p, q) = (only(&TARGET, &ALLOWED), only(&DRAFT, &ALLOWED));
        let thin: Law = full(&TARGET).into_iter().filter(|r| ALLOWED.contains(&r.0)).collect();
        let no_residual = {
            let (p, q) = (p.clone(), q.clone());
            move |[number, accept, instead]: [f64; 3]| {
                let drafted = draw(&q, number);
                let taken = accept * probability(&q, drafted) < probability(&p, drafted);
                (drafted, if taken { drafted } else { draw(&p, instead) })
            }
        };
        let mistakes = [
            ("drawn masked, judged unmasked", {
                judge(1, rejection(q.clone(), p.clone(), full(&DRAFT)))
            }),
            ("judged by the unmasked target", {
                judge(2, rejection(q.clone(), full(&TARGET), q.clone()))
            }),
            ("redrawn from the target instead of the surplus", judge(3, no_residual)),
            ("a sure draft judged as a drawn one", {
                judge(4, rejection(sure_of(3), p.clone(), q.clone()))
            }),
            ("a target that was not renormalised", judge(5, rejection(q.clone(), thin, q))),
        ];
        for (name, (chi, _)) in mistakes {
            assert!(chi > 10.0 * CRITICAL, "{name}: not caught, chi-square {chi}");
        }
    }

    #[test]
    fn edges() {
        let p = [(1, 0.5), (2, 0.5)];
        assert_eq!(decide(&p, &p, 1, (0.999_999, 0.5)), 1);
        assert_eq!(decide(&p, &[(3, 1.0)], 3, (0.0, 0.0)), 1);
        assert_eq!(decide(&p, &[(3, 1.0)], 3, (0.0, 0.999_999)), 2);
        assert_eq!(decide(&p, &[(1, 1.0)], 1, (0.5, 0.0)), 2);
        assert_eq!(decide(&[(7, 1.0)], &[(7, 1.0)], 7, (0.999_999, 0.0)), 7);
    }
}
