//! Tests, as judges of mutants.

use crate::copy::{BUILD, Copy, cargo};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Memory that a test may have: mutants may ask for it without end.
const KILOBYTES: u32 = 6_000_000;

/// Tests that take longer do not judge.
const LONGEST: Duration = Duration::from_secs(60);

/// A test that passes without a mutant.
pub struct Test {
    program: PathBuf,
    /// Its program and its name.
    pub name: String,
    /// What it takes, in seconds.
    pub time: f64,
    /// Numbers of the mutants that make a difference somewhere on its way.
    pub reached: Vec<usize>,
}

/// Builds all test programs, and runs each test alone. What each of them reaches is noted in a file, and done again only
/// for programs that were built since.
pub fn tests(copy: &Copy, notes: &Path) -> Result<Vec<Test>, Box<dyn Error>> {
    let known = fs::read_to_string(notes).unwrap_or_default();
    let (mut text, mut tests) = (String::new(), Vec::new());
    for program in programs(copy)? {
        let built = fs::metadata(&program)?.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        let key = format!("{} {built} ", program.display());
        let before = known.lines().filter(|line| line.starts_with(&key)).collect::<Vec<_>>();
        let lines = if before.is_empty() {
            measure(copy, &program, &key)?
        } else {
            before.into_iter().map(str::to_owned).collect()
        };
        for line in lines {
            text += &format!("{line}\n");
            tests.extend(read(&program, &line[key.len()..]));
        }
        fs::write(notes, &text)?;
    }
    let seconds: f64 = tests.iter().map(|test| test.time).sum();
    println!("{} tests, which take {seconds:.0} s without a mutant", tests.len());
    Ok(tests)
}

/// A line of the notes: the test, its time or why it is left out, the mutants.
fn read(program: &Path, line: &str) -> Option<Test> {
    let mut words = line.split(' ');
    let name = format!("{} {}", name(program), words.next()?);
    let Ok(time) = words.next()?.parse() else {
        println!("left out: {name}");
        return None;
    };
    let reached = words.filter_map(|word| word.parse().ok()).collect();
    Some(Test { program: program.to_owned(), name, time, reached })
}

/// Runs the tests of a program, for the notes.
fn measure(copy: &Copy, program: &Path, key: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let list = Command::new(program).args(["--list", "--format=terse"]).output()?;
    let record = copy.folder().join("mutants-reached");
    let mut lines = Vec::new();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        drop(fs::remove_file(&record));
        let began = Instant::now();
        let variable = ("MUTANTS_REACHED", record.display().to_string());
        let failed = run(copy, program, test, &variable, LONGEST)?;
        let time = match failed {
            None => format!("{:.3}", began.elapsed().as_secs_f64()),
            Some(_) => "fails".to_owned(),
        };
        let mut reached: Vec<usize> = fs::read_to_string(&record)
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect();
        reached.sort_unstable();
        reached.dedup();
        let reached: Vec<String> = reached.iter().map(usize::to_string).collect();
        lines.push(format!("{key}{test} {time} {}", reached.join(" ")).trim_end().to_owned());
    }
    let (count, name) = (lines.len(), name(program));
    println!("{count} tests of {name}");
    Ok(lines)
}

impl Test {
    /// Runs with a mutant; says why it fails, if it does.
    pub fn judge(&self, copy: &Copy, mutant: usize) -> Result<Option<String>, Box<dyn Error>> {
        let test = self.name.rsplit(' ').next().unwrap_or_default();
        let limit = Duration::from_secs_f64(2.0 + 5.0 * self.time);
        run(copy, &self.program, test, &("MUTANT", mutant.to_string()), limit)
    }
}

/// The test programs, built.
fn programs(copy: &Copy) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let output = cargo(copy.folder()).args(["test", "--no-run", "--tests"]).args(BUILD).output()?;
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["profile"]["test"] == true {
            programs.extend(message["executable"].as_str().map(PathBuf::from));
        }
    }
    if programs.is_empty() || !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    programs.sort();
    Ok(programs)
}

/// The name of a program without the hash that cargo gives it.
fn name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or(&*name, |(name, _)| name).to_owned()
}

/// Runs a test in a process of its own, which may take this much time of the processor, and three times as much in all;
/// says why it fails, if it does.
fn run(
    copy: &Copy,
    program: &Path,
    test: &str,
    (variable, value): &(&str, String),
    limit: Duration,
) -> Result<Option<String>, Box<dyn Error>> {
    let seconds = limit.as_secs_f64().ceil();
    // `exec`, so that killing the child kills the program.
    let script = format!(
        "ulimit -c 0; ulimit -v {KILOBYTES}; ulimit -t {seconds}; exec \"$0\" --exact \"$1\""
    );
    let child = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .arg(test)
        .current_dir(copy.folder())
        .env("CARGO_MANIFEST_DIR", copy.folder())
        .env(variable, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    wait(child, 3 * limit)
}

/// Asks again and again whether a process has ended, less often the longer it takes.
fn wait(mut child: Child, limit: Duration) -> Result<Option<String>, Box<dyn Error>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| status.to_string()));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Some("takes too long".to_owned()));
        }
        let pause = began.elapsed() / 20;
        std::thread::sleep(pause.clamp(Duration::from_micros(500), Duration::from_millis(50)));
    }
}
