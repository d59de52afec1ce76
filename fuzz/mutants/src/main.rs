//! Mutation testing: would the tests see it if a line of the engine were wrong?
//!
//! Building a project once per mutant takes days, so here one build holds all mutants, and an environment variable
//! says which of them is on: `a < b` becomes `lt(on(17), &(a), &(b))`, which is `a <= b` if `MUTANT` is 17. Then each
//! mutant costs the tests that run until one fails.
//!
//! 1. All places of the engine that can be mutated are collected (`find.rs`): what a function returns, conditions,
//!    operators. A sample of them is drawn, no two of which overlap.
//! 2. A copy of the project gets them. What does not compile is taken out, by the lines of the errors, and drawn no more.
//! 3. All test programs are built. Those that pass without a mutant are the judges, the quickest first.
//! 4. For each mutant they run until a test fails, a program dies, or takes five times as long as without.
//!
//! Usage: `mutants COPY COUNT SEED`, with COPY a copy of the project that will be changed (its `target` folder is used
//! again). Progress and the missed mutants go to standard output.

mod copy;
mod find;
mod judge;

use copy::Copy;
use judge::{Judge, Verdict};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = args.as_slice() else {
        return Err("usage: mutants COPY COUNT SEED".into());
    };
    let mut copy = Copy::open(folder)?;
    let places = copy.len();
    copy.draw(count.parse()?, seed.parse()?);
    let drawn = copy.drawn().len();
    println!("{places} mutants in the engine, {drawn} drawn");
    let unviable = copy.settle()?;
    println!("{unviable} do not compile");
    let judges = Judge::all(&copy)?;
    let (mut caught, mut missed) = (0, Vec::new());
    for (number, mutant) in copy.drawn() {
        let began = Instant::now();
        let verdict = judges.iter().find_map(|judge| judge.run(number));
        let said = match &verdict {
            Some(Verdict { program, why }) => format!("{program}: {why}"),
            None => "MISSED".to_owned(),
        };
        println!("{:5.1} s  {mutant}  {said}", began.elapsed().as_secs_f64());
        match verdict {
            Some(_) => caught += 1,
            None => missed.push(mutant),
        }
    }
    println!("{caught} of {} caught", caught + missed.len());
    missed.iter().for_each(|mutant| println!("missed: {mutant}"));
    Ok(())
}
