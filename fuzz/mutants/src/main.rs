//! Mutation testing: would the tests see it if a line of the engine were wrong?
//!
//! Building a project once per mutant takes days, so one build holds all mutants, and an environment variable says
//! which of them is on: `a < b` becomes `lt(17, &(a), &(b))`, which is `a <= b` if `MUTANT` is 17. And running all tests
//! for each mutant takes days, so for each mutant only those run that could see it.
//!
//! 1. All places of the engine that can be mutated are collected (`find.rs`): what a function returns, conditions,
//!    operators.
//! 2. A copy of the project gets them all (`copy.rs`). What does not compile is taken out, by the places of the errors.
//! 3. Each test runs once alone, without a mutant, and notes which mutants would have made a difference in their places
//!    (`switch.rs`): `a < b` and `a <= b` differ only where both are equal. Tests that fail then are left out, for example
//!    one that reads the engine's source.
//! 4. For each mutant the tests that noted it run, each in its own process, until one fails, dies, or takes five times
//!    the processor time that it takes without (and two seconds). Those come first that take little time and often caught
//!    mutants of the same file. When SECONDS are up, the mutant counts as missed.
//!
//! By hand: 17 is the `<` of a bound. Of 700 tests 12 come there with both sides equal; the quickest of them takes 0.01 s
//! and passes, the second fails: caught after 0.02 s.
//!
//! By hand: `mutants-names` in the copy has the numbers, `MUTANT=17 cargo test` there runs the tests with one.
//!
//! Usage: `mutants PROJECT COPY SECONDS [again]`. COPY is made or brought up to date, builds go to its `target` folder or to
//! `CARGO_TARGET_DIR`. What is known (verdicts, what does not compile, what tests reach) is in files `mutants-*` in COPY, so
//! that a second start goes on where the first one was: mutants that were missed because the time was up are judged
//! again if there are more SECONDS now than then, with `again` all that were missed, for instance by new tests. The order
//! is mixed: any beginning of a run is a fair sample. Missed mutants and progress go to standard output, at the end a table.

mod copy;
mod find;
mod judge;
mod results;

use copy::Copy;
use judge::Test;
use results::{Results, Verdict};
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (project, folder, seconds, again) = match args.as_slice() {
        [project, folder, seconds] => (project, folder, seconds.parse()?, false),
        [project, folder, seconds, again] if again == "again" => {
            (project, folder, seconds.parse()?, true)
        }
        _ => return Err("usage: mutants PROJECT COPY SECONDS [again]".into()),
    };
    let mut copy = Copy::open(project, folder)?;
    println!("{} mutants in the engine", copy.numbers().count());
    let names = copy.numbers().map(|number| format!("{number} {}\n", copy.name(number)));
    fs::write(copy.folder().join("mutants-names"), names.collect::<String>())?;
    let refused = settle(&mut copy)?;
    println!("{} do not compile", refused.len());
    let tests = judge::tests(&copy, &copy.folder().join("mutants-reach"))?;
    let mut results = Results::open(&copy.folder().join("mutants-results"))?;
    let open = open(&copy, &refused, &results, (seconds, again));
    let mut run = Run { copy: &copy, tests: &tests, seconds, experience: HashMap::new() };
    run.all(&open, &mut results)?;
    println!("{}", results.report(&copy, &refused));
    Ok(())
}

/// Takes out what does not compile, beginning with what did not in an earlier run.
fn settle(copy: &mut Copy) -> Result<Vec<usize>, Box<dyn Error>> {
    let notes = copy.folder().join("mutants-refused");
    let known = fs::read_to_string(&notes).unwrap_or_default();
    let known: Vec<&str> = known.lines().collect();
    let known: Vec<usize> =
        copy.numbers().filter(|&number| known.contains(&copy.name(number))).collect();
    let refused = copy.settle(&known)?;
    let names: Vec<String> =
        refused.iter().map(|&number| format!("{}\n", copy.name(number))).collect();
    fs::write(notes, names.concat())?;
    Ok(refused)
}

/// The mutants that are to be judged, mixed.
fn open(
    copy: &Copy,
    refused: &[usize],
    results: &Results,
    (seconds, again): (f64, bool),
) -> Vec<usize> {
    let is_open = |&number: &usize| match results.get(copy.name(number)) {
        _ if refused.contains(&number) => false,
        None => true,
        Some(Verdict::Caught(_)) => false,
        Some(Verdict::Left(_, _, before)) => again || seconds > *before,
        Some(Verdict::Missed(_) | Verdict::Unreached) => again,
    };
    let mut open: Vec<usize> = copy.numbers().filter(is_open).collect();
    open.sort_by_key(|&number| (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7);
    open
}

struct Run<'a> {
    copy: &'a Copy,
    tests: &'a [Test],
    /// For a mutant.
    seconds: f64,
    /// How often a test was tried for mutants of a file, and how many it caught.
    experience: HashMap<(usize, String), (u32, u32)>,
}

impl Run<'_> {
    fn all(&mut self, open: &[usize], results: &mut Results) -> Result<(), Box<dyn Error>> {
        let (began, mut caught) = (Instant::now(), 0);
        for (done, &number) in open.iter().enumerate() {
            let (name, verdict) = (self.copy.name(number).to_owned(), self.one(number)?);
            match verdict {
                Verdict::Caught(_) => caught += 1,
                _ => println!("{name}  {verdict}"),
            }
            results.add(name, verdict)?;
            let done = done + 1;
            if done % 50 == 0 || done == open.len() {
                let each = began.elapsed().as_secs_f64() / 60.0 / done as f64;
                let left = each * (open.len() - done) as f64;
                let missed = done - caught;
                println!(
                    "{done} of {}: {caught} caught, {missed} missed; {left:.0} minutes left",
                    open.len()
                );
            }
        }
        Ok(())
    }

    fn one(&mut self, number: usize) -> Result<Verdict, Box<dyn Error>> {
        let name = self.copy.name(number);
        let file = name.split(':').next().unwrap_or_default().to_owned();
        let reaches = |test: &usize| self.tests[*test].reached.binary_search(&number).is_ok();
        let mut tests: Vec<usize> = (0..self.tests.len()).filter(reaches).collect();
        if tests.is_empty() {
            return Ok(Verdict::Unreached);
        }
        let worth = |test: usize| {
            let (tried, caught) =
                self.experience.get(&(test, file.clone())).copied().unwrap_or_default();
            (f64::from(caught) + 0.1) / f64::from(tried + 1) / (0.01 + self.tests[test].time)
        };
        tests.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)));
        let (began, mut passed) = (Instant::now(), 0);
        for &test in &tests {
            // A test that would take more than the rest of the time is left out.
            if began.elapsed().as_secs_f64() + self.tests[test].time > self.seconds {
                continue;
            }
            let why = self.tests[test].judge(self.copy, number)?;
            let experience = self.experience.entry((test, file.clone())).or_default();
            experience.0 += 1;
            if let Some(why) = why {
                experience.1 += 1;
                return Ok(Verdict::Caught(format!("{}, {why}", self.tests[test].name)));
            }
            passed += 1;
        }
        Ok(match tests.len() {
            all if all == passed => Verdict::Missed(all),
            all => Verdict::Left(passed, all, self.seconds),
        })
    }
}
