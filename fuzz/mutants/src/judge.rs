//! Test programs, as judges of mutants.

use crate::copy::{BUILD, Copy, cargo};
use serde_json::Value;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Memory a program may have: mutants may ask for it without end.
const KILOBYTES: u32 = 12_000_000;

/// How a mutant was caught.
pub struct Verdict {
    pub program: String,
    pub why: String,
}

/// A test program that passes without a mutant.
pub struct Judge {
    program: PathBuf,
    folder: PathBuf,
    pub name: String,
    /// What it takes without a mutant.
    time: Duration,
}

impl Judge {
    /// Builds all test programs; those that pass, the quickest first.
    pub fn all(copy: &Copy) -> Result<Vec<Self>, Box<dyn Error>> {
        let output =
            cargo(copy.folder()).args(["test", "--no-run", "--tests"]).args(BUILD).output()?;
        let mut judges = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line)?;
            let (Some(program), true) =
                (message["executable"].as_str(), message["profile"]["test"] == true)
            else {
                continue;
            };
            let name = message["target"]["name"].as_str().unwrap_or_default().to_owned();
            let (program, folder) = (program.into(), copy.folder().to_owned());
            let mut judge = Self { program, folder, name, time: Duration::from_secs(3600) };
            let began = Instant::now();
            match judge.run(0) {
                Some(Verdict { why, .. }) => {
                    println!("left out, fails without a mutant: {} ({why})", judge.name)
                }
                None => judges.push({
                    judge.time = began.elapsed();
                    judge
                }),
            }
        }
        if judges.is_empty() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        judges.sort_by_key(|judge| judge.time);
        for judge in &judges {
            println!("{:5.1} s  {}", judge.time.as_secs_f64(), judge.name);
        }
        Ok(judges)
    }

    /// Runs with a mutant until the first failure, if there is one.
    pub fn run(&self, mutant: usize) -> Option<Verdict> {
        let verdict =
            |why: &str| Some(Verdict { program: self.name.clone(), why: why.trim().to_owned() });
        let mut child = match self.start(mutant) {
            Ok(child) => child,
            Err(error) => return verdict(&error.to_string()),
        };
        let (sender, lines) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                BufReader::new(stdout)
                    .lines()
                    .map_while(Result::ok)
                    .for_each(|line| drop(sender.send(line)));
            });
        }
        let end = Instant::now() + 5 * self.time + Duration::from_secs(20);
        let found = loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.ends_with("FAILED") => break verdict(&line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break verdict("takes too long"),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        if found.is_some() {
            drop(child.kill());
        }
        match child.wait() {
            Ok(status) if found.is_none() && !status.success() => verdict(&status.to_string()),
            _ => found,
        }
    }

    fn start(&self, mutant: usize) -> std::io::Result<std::process::Child> {
        // `exec`, so that killing the child kills the program.
        let script = format!("ulimit -v {KILOBYTES}; exec \"$0\"");
        Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg(Path::new(&self.program))
            .current_dir(&self.folder)
            .env("MUTANT", mutant.to_string())
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}
