//! The bodies of the fuzz targets on a stable toolchain: committed seeds, and random bytes.
//!
//! `CONSTRAIN_FUZZ=N` runs N random inputs per body in place of a few.

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub)]
mod bodies;
mod support;

use std::path::Path;
use support::Random;

#[test]
fn seeds_and_regressions_pass() {
    for (name, body) in bodies::BODIES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            body(&std::fs::read(&file).unwrap());
        }
    }
}

#[test]
fn random_bytes_pass() {
    let count = std::env::var("CONSTRAIN_FUZZ").map_or(150, |n| n.parse().unwrap());
    for (name, body) in bodies::BODIES {
        for seed in 0..count {
            let mut random = Random(seed * 2 + 1);
            let len = 20 + seed as usize % 400;
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let result = std::panic::catch_unwind(|| body(&bytes));
            assert!(result.is_ok(), "{name}, random input {seed}");
        }
    }
}
