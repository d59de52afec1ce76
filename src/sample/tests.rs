//! The pipeline against golden numbers, a naive twin, and the laws of probability.

use super::*;
use crate::Kind;
use crate::sample::random::mix;
use crate::sample::trace::trace;

/// The twelve logits of the lab.
const LAB: [f32; 12] = [5.0, 4.6, 4.1, 3.2, 2.9, 2.2, 1.5, 0.9, 0.1, -0.8, -2.0, -4.5];

fn step<'a>(logits: &'a [f32], mask: Option<Mask<'a>>) -> Step<'a> {
    Step { logits, mask, history: &[], position: 0 }
}

fn law(settings: &Settings, step: &Step<'_>) -> Result<Vec<(TokenId, f64)>> {
    Sampler::new(settings.clone(), 0)?.law(step)
}

/// The kept ids and probabilities by sorting everything, in floating point, stage after stage.
fn naive(settings: &Settings, logits: &[f32], allowed: &[TokenId]) -> Vec<(TokenId, f64)> {
    let mut rows: Vec<(TokenId, f64)> =
        allowed.iter().map(|&id| (id, f64::from(logits[id as usize] + 0.0))).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let max = rows[0].1;
    rows.iter_mut().for_each(|row| row.1 = ((row.1 - max) / settings.temperature).exp());
    let keep = if settings.top_k == 0 { rows.len() } else { settings.top_k.min(rows.len()) };
    rows.truncate(keep);
    let sum: f64 = rows.iter().map(|row| row.1).sum();
    let mut before = 0.0;
    let crossing = rows.iter().position(|row| {
        before += row.1 / sum;
        before >= settings.top_p
    });
    if settings.top_p < 1.0 {
        rows.truncate(crossing.map_or(rows.len(), |index| index + 1));
    }
    // What weighs less than 2^-42 of the best is never drawn (see `weight`).
    rows.retain(|row| row.1 >= settings.min_p.max(2_f64.powi(-42)));
    let sum: f64 = rows.iter().map(|row| row.1).sum();
    rows.into_iter().map(|(id, weight)| (id, weight / sum)).collect()
}

fn words(ids: &[TokenId], len: usize) -> Vec<u32> {
    let mut words = vec![0; len.div_ceil(32)];
    ids.iter().for_each(|id| words[*id as usize / 32] |= 1 << (id % 32));
    words
}

/// A row of one of four shapes: a bell, a peak, a plain, few distinct values (ties).
fn row(seed: u64, len: usize) -> Vec<f32> {
    (0..len as u64)
        .map(|i| {
            let hash = mix(seed << 32 | i);
            let bell =
                (0..4).map(|b| (hash >> (b * 16) & 0xffff) as f32 / 65536.0).sum::<f32>() - 2.0;
            match seed % 4 {
                0 => bell * 8.0,
                1 => bell + if hash.is_multiple_of(97) { 12.0 } else { 0.0 },
                2 => bell / 10.0,
                _ => (bell * 3.0).round(),
            }
        })
        .collect()
}

#[test]
fn lab_probabilities() -> Result<()> {
    let golden: [(f64, &[f64]); 5] = [
        (0.2, &[0.8721, 0.1180, 0.0097, 0.0001]),
        (0.7, &[0.5009, 0.2829, 0.1385, 0.0383, 0.0249, 0.0092]),
        (1.0, &[0.4026, 0.2699, 0.1637, 0.0666, 0.0493, 0.0245]),
        (1.5, &[0.3078, 0.2357, 0.1689, 0.0927, 0.0759, 0.0476]),
        (2.0, &[0.2537, 0.2077, 0.1617, 0.1031, 0.0888, 0.0626]),
    ];
    for (temperature, expected) in golden {
        let law = law(&Settings::drawing(temperature), &step(&LAB, None))?;
        for (place, (expected, (id, p))) in expected.iter().zip(law).enumerate() {
            assert_eq!(id as usize, place);
            assert!((p - expected).abs() < 5e-5, "p({id}) = {p} at temperature {temperature}");
        }
    }
    Ok(())
}

#[test]
fn lab_keep_sets() -> Result<()> {
    // Number of tokens kept by top-p 0.5, 0.9, 0.95 and min-p 0.05, 0.1, 0.2.
    let golden = [
        (0.2, [1, 2, 2, 2, 2, 1]),
        (0.7, [1, 3, 4, 4, 3, 3]),
        (1.0, [2, 4, 5, 6, 5, 3]),
        (1.5, [2, 6, 7, 8, 6, 5]),
        (2.0, [3, 7, 8, 10, 8, 6]),
    ];
    for (temperature, counts) in golden {
        let plain = Settings::drawing(temperature);
        let top_p = [0.5, 0.9, 0.95].map(|top_p| Settings { top_p, ..plain.clone() });
        let min_p = [0.05, 0.1, 0.2].map(|min_p| Settings { min_p, ..plain.clone() });
        for (settings, count) in top_p.iter().chain(&min_p).zip(counts) {
            let ids: Vec<TokenId> = law(settings, &step(&LAB, None))?.iter().map(|r| r.0).collect();
            assert_eq!(ids, (0..count).collect::<Vec<_>>(), "{settings:?}");
        }
    }
    Ok(())
}

#[test]
fn lab_penalties_come_before_temperature() -> Result<()> {
    for (temperature, expected) in [(0.5, 0.0269), (1.0, 0.0836), (2.0, 0.1111)] {
        let mut settings = Settings::drawing(temperature);
        settings.penalties.frequency = 1.0;
        let law = law(&settings, &Step { history: &[0, 0], ..step(&LAB, None) })?;
        let p = law.iter().find(|row| row.0 == 0).map_or(0.0, |row| row.1);
        assert!((p - expected).abs() < 5e-5, "{p} at temperature {temperature}");
    }
    Ok(())
}

#[test]
fn lab_mask_and_trace() -> Result<()> {
    let mask = Some(Mask::Sparse(&[2, 5, 8]));
    let found = law(&Settings::drawing(1.0), &step(&LAB, mask))?;
    for ((id, p), (expected_id, expected)) in
        found.iter().zip([(2, 0.8562), (5, 0.1281), (8, 0.0157)])
    {
        assert!(*id == expected_id && (p - expected).abs() < 5e-5, "p({id}) = {p}");
    }
    let settings = Settings { top_k: 5, top_p: 0.9, min_p: 0.2, ..Settings::drawing(1.0) };
    let words = words(&(0..11).collect::<Vec<_>>(), 12);
    let rows = trace(&settings, &step(&LAB, Some(Mask::Dense(&words))))?;
    let taken: Vec<Option<Stage>> = rows.iter().map(|row| row.taken_by).collect();
    let mut expected = vec![None, None, None, Some(Stage::MinP), Some(Stage::TopP)];
    expected.extend([Some(Stage::TopK); 6]);
    expected.push(Some(Stage::Mask));
    assert_eq!(taken, expected);
    let law = law(&settings, &step(&LAB, Some(Mask::Dense(&words))))?;
    for (id, p) in law {
        assert!((rows[id as usize].probability - p).abs() < 1e-12);
    }
    let greedy = trace(&Settings::greedy(), &step(&LAB, None))?;
    assert!(greedy[1..].iter().all(|row| row.taken_by == Some(Stage::Temperature)));
    assert_eq!((greedy[0].taken_by, greedy[0].probability), (None, 1.0));
    Ok(())
}

#[test]
fn keep_sets_equal_a_naive_sort_on_10_000_rows() -> Result<()> {
    for seed in 0..10_000_u64 {
        let len = 1 + (mix(seed) % if seed % 50 == 0 { 3000 } else { 150 }) as usize;
        let logits = row(seed, len);
        let ids: Vec<TokenId> = (0..len as TokenId)
            .filter(|&id| id == 0 || !mix(seed ^ u64::from(id)).is_multiple_of(3))
            .collect();
        let pick = |salt: u64, choices: &[f64]| {
            choices[(mix(seed + salt) % choices.len() as u64) as usize]
        };
        let settings = Settings {
            temperature: pick(1, &[0.3, 0.7, 1.0, 1.7]),
            top_k: pick(2, &[0.0, 0.0, 1.0, 7.0, 40.0, 1e6]) as usize,
            top_p: pick(3, &[0.0, 0.3, 0.9, 0.95, 0.999, 1.0, 1.0]),
            min_p: pick(4, &[0.0, 0.0, 0.01, 0.1, 1.0]),
            ..Settings::drawing(1.0)
        };
        let dense = words(&ids, len);
        let (sparse, dense) = (Mask::Sparse(&ids), Mask::Dense(&dense));
        let found = law(&settings, &step(&logits, Some(sparse)))?;
        assert_eq!(found, law(&settings, &step(&logits, Some(dense)))?, "seed {seed}");
        let expected = naive(&settings, &logits, &ids);
        let ids_of = |law: &[(TokenId, f64)]| law.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(ids_of(&found), ids_of(&expected), "seed {seed}: {settings:?}");
        for (a, b) in found.iter().zip(&expected) {
            assert!((a.1 - b.1).abs() < 1e-8, "seed {seed}: {a:?} {b:?}");
        }
        // The quick paths draw what the law says: the token whose interval holds the number.
        let draw = mix(seed + 9) >> 11;
        let mut sampler = Sampler::new(settings, 0)?;
        let token = sampler.sample_with(&step(&logits, Some(sparse)), draw)?;
        assert_eq!(token, sampler.sample_with(&step(&logits, Some(dense)), draw)?);
        let u = draw as f64 / 2_f64.powi(53);
        let mut sum = 0.0;
        let near = expected.iter().find(|row| {
            sum += row.1;
            sum > u + 1e-7
        });
        sum = 0.0;
        let nearer = expected.iter().find(|row| {
            sum += row.1;
            sum > u - 1e-7
        });
        let either = [near, nearer].map(|row| row.or(expected.last()).map(|row| row.0));
        assert!(either.contains(&Some(token)), "seed {seed}: {token} not in {either:?}");
    }
    Ok(())
}

#[test]
fn greedy_takes_the_lowest_of_the_best() -> Result<()> {
    let mut sampler = Sampler::new(Settings::greedy(), 0)?;
    let mut logits = row(3, 100);
    for id in [70, 41, 99] {
        logits[id] = 50.0;
    }
    assert_eq!(sampler.sample(&step(&logits, None))?, 41);
    let even: Vec<TokenId> = (0..100).filter(|id| id % 2 == 0).collect();
    assert_eq!(sampler.sample(&step(&logits, Some(Mask::Sparse(&even))))?, 70);
    assert_eq!(sampler.sample(&step(&logits, Some(Mask::Dense(&words(&even, 100)))))?, 70);
    // Below 1e-5 a temperature is 0: the scaled logits would overflow.
    for temperature in [1e-45, 1e-6] {
        let mut tiny = Sampler::new(Settings::drawing(temperature), 0)?;
        assert_eq!(tiny.sample(&step(&logits, None))?, 41);
    }
    Ok(())
}

#[test]
fn extreme_settings() -> Result<()> {
    let one = |settings: Settings| law(&settings, &step(&LAB, None)).map(|law| law.len());
    assert_eq!(one(Settings { top_p: 0.0, ..Settings::drawing(1.0) })?, 1);
    assert_eq!(one(Settings { top_p: 1.0, ..Settings::drawing(1.0) })?, 12);
    assert_eq!(one(Settings { min_p: 1.0, ..Settings::drawing(1.0) })?, 1);
    assert_eq!(one(Settings { top_k: 1, ..Settings::drawing(100.0) })?, 1);
    assert_eq!(one(Settings { top_k: usize::MAX, ..Settings::drawing(1.0) })?, 12);
    let flat = [7.0_f32; 1000];
    let half = law(&Settings { top_p: 0.5, ..Settings::drawing(1.0) }, &step(&flat, None))?;
    assert_eq!(half.iter().map(|row| row.0).collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn one_allowed_token_needs_no_logit() -> Result<()> {
    let logits = [f32::NAN, f32::NEG_INFINITY, 0.0];
    for settings in [Settings::greedy(), Settings::default()] {
        let mut sampler = Sampler::new(settings, 0)?;
        for id in 0..3 {
            assert_eq!(sampler.sample(&step(&logits, Some(Mask::Sparse(&[id]))))?, id);
            assert_eq!(sampler.sample(&step(&logits, Some(Mask::Dense(&[1 << id]))))?, id);
        }
    }
    Ok(())
}

#[test]
fn unusable_logits_are_errors_that_name_the_position() -> Result<()> {
    let bad = |id: usize, value: f32| {
        let mut logits = row(0, 70);
        logits[id] = value;
        logits
    };
    let rows = [
        bad(3, f32::NAN),
        bad(69, -f32::NAN),
        bad(5, f32::INFINITY),
        vec![f32::NEG_INFINITY; 70],
        vec![f32::NAN; 70],
        vec![f32::INFINITY; 70],
    ];
    for settings in [Settings::greedy(), Settings::default()] {
        let mut sampler = Sampler::new(settings, 0)?;
        for logits in &rows {
            let all: Vec<TokenId> = (0..70).collect();
            for mask in [None, Some(Mask::Sparse(&all)), Some(Mask::Dense(&words(&all, 70)))] {
                let step = Step { position: 17, ..step(logits, mask) };
                let Err(error) = sampler.sample(&step) else { panic!("no error") };
                assert_eq!(*error.kind(), Kind::Model);
                assert!(error.message().contains("position 17"), "{error}");
                assert!(sampler.law(&step).is_err());
            }
        }
        // What the mask forbids may be anything, and minus infinity is never drawn.
        let logits = [f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY];
        for position in 0..50 {
            let step = Step { position, ..step(&logits, Some(Mask::Sparse(&[1, 3]))) };
            assert_eq!(sampler.sample(&step)?, 1);
        }
    }
    Ok(())
}

#[test]
fn masks_that_do_not_fit_are_errors() -> Result<()> {
    let mut sampler = Sampler::new(Settings::default(), 0)?;
    for mask in [Mask::Sparse(&[3, 12]), Mask::Dense(&[1, 1]), Mask::Dense(&[])] {
        assert_eq!(
            sampler.sample(&step(&LAB, Some(mask))).map_err(|e| e.kind().clone()),
            Err(Kind::Model)
        );
    }
    for mask in [Mask::Sparse(&[]), Mask::Dense(&[0])] {
        assert_eq!(
            sampler.sample(&step(&LAB, Some(mask))).map_err(|e| e.kind().clone()),
            Err(Kind::DeadEnd)
        );
    }
    // Bits beyond the row are not tokens.
    assert_eq!(sampler.sample(&step(&LAB, Some(Mask::Dense(&[1 << 31 | 1 << 4]))))?, 4);
    Ok(())
}

#[test]
fn draws_follow_the_law() -> Result<()> {
    let filters = [
        Settings::drawing(1.0),
        Settings { top_p: 0.9, ..Settings::drawing(1.5) },
        Settings { top_k: 4, min_p: 0.02, ..Settings::drawing(0.7) },
    ];
    const DRAWS: u64 = 50_000;
    for (stream, settings) in (0..).zip(filters) {
        let mut sampler = Sampler::new(Settings { seed: 11, ..settings }, stream)?;
        let law = sampler.law(&step(&LAB, None))?;
        let mut counts = [0_u32; 12];
        for position in 0..DRAWS {
            let token = sampler.sample(&Step { position, ..step(&LAB, None) })?;
            counts[token as usize] += 1;
        }
        let expected = |p: f64| p * DRAWS as f64;
        let chi: f64 = law
            .iter()
            .map(|&(id, p)| (f64::from(counts[id as usize]) - expected(p)).powi(2) / expected(p))
            .sum();
        // 11 degrees of freedom at most; 45 is exceeded with probability 5e-6.
        assert!(chi < 45.0, "chi-square {chi} in stream {stream}");
        assert!(counts[law.len()..].iter().all(|&count| count == 0), "a token outside the law");
    }
    Ok(())
}

/// What was not collected weighs between the bounds, whatever stands at tokens that are not allowed.
#[test]
fn bounds_of_blocks_hold_what_was_not_collected() {
    use crate::sample::gather::Row;
    use crate::sample::rest::{Bounds, Effort, Scale};
    use crate::sample::weight::NOTHING;
    for seed in 0..200 {
        let len = 1_000 + (mix(seed) % 200) as usize;
        let ids: Vec<TokenId> =
            (0..len as u32).filter(|&id| !mix(u64::from(id) + seed).is_multiple_of(3)).collect();
        let mut logits = row(seed, len);
        for id in (0..len).filter(|&id| ids.binary_search(&(id as u32)).is_err()) {
            logits[id] = [f32::NAN, f32::INFINITY, 1e30, logits[id]][(mix(id as u64) % 4) as usize];
        }
        let words = words(&ids, len);
        let row = Row::new(&logits, Some(Mask::Dense(&words)), 0).unwrap();
        let mut bounds = Bounds::default();
        let peak = row.peak(&mut bounds).unwrap();
        let temperature = [0.3, 1.0, 2.0][seed as usize % 3];
        let high = peak.logit - [1.0, 3.0, 10.0][(seed / 3) as usize % 3];
        let mut candidates = Vec::new();
        row.collect(high, &bounds, &mut candidates);
        let scale = Scale::new(peak.logit, temperature, NOTHING);
        let ((low, most), tokens) = row.rest((scale, Effort::Blocks), (&candidates, high), &bounds);
        let units = |id: &TokenId| f64::from(logits[*id as usize] - peak.logit) / temperature;
        let left: Vec<&TokenId> = ids.iter().filter(|id| logits[**id as usize] < high).collect();
        assert_eq!(left.len() + candidates.len(), ids.len());
        let exact: f64 = left.iter().map(|id| units(id).exp()).sum();
        // What is deeper than the last unit may be counted or not.
        let deep = left.iter().filter(|id| units(id) < -NOTHING).count() as f64 * (-NOTHING).exp();
        assert!(low - deep <= exact && exact <= most, "{low} {exact} {most}, seed {seed}");
        assert!(tokens >= left.len());
    }
}
