//! Fetches files from the package index, through the user's own pip.
//!
//! Mirrors, proxies and credentials are pip's business. What it brings is only
//! used if its sum is the one that was asked for.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

use super::{place, wheel_table::Wheel};
use crate::{
    error::{Code, Error},
    host::{
        Host, fs,
        process::{Completed, Invocation},
    },
    packages::{self, About, Item},
    ui::{Event, Sink},
};

/// How long one wheel may take.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The ways to start pip, in the order in which they are tried.
const WAYS: &[&[&str]] = &[
    &["python3", "-m", "pip"],
    &["python", "-m", "pip"],
    &["pip3"],
    &["pip"],
    &["uv", "tool", "run", "pip"],
];

/// The platforms that a wheel for Linux may name, without the machine.
const PLATFORMS: &[&str] = &[
    "manylinux1",
    "manylinux2010",
    "manylinux_2_12",
    "manylinux2014",
    "manylinux_2_17",
    "manylinux_2_27",
    "manylinux_2_28",
];

/// A pip that can be started.
#[derive(Debug, Clone)]
pub(super) struct Pip {
    words: &'static [&'static str],
}

impl Pip {
    /// Finds one that answers.
    ///
    /// # Errors
    ///
    /// None does.
    pub(super) fn find(host: &Host, sink: &mut dyn Sink) -> Result<Self, Error> {
        let mut tried = Vec::new();
        for words in WAYS {
            let pip = Self { words };
            let completed = host.runner.run(pip.start(host).arg("--version"));
            sink.event(&Event::Ran { completed: &completed, source: None });
            host.runner.interrupt.check()?;
            if completed.success() {
                return Ok(pip);
            }
            tried.push(format!("`{}`: {}", words.join(" "), answer(&completed)));
        }
        Err(Error::new(Code::NoPip, "neither pip nor uv was found to fetch wheels with")
            .means(format!("Tried {}.", tried.join("; ")))
            .hint(packages::hint(Item::Pip, host, &About::default(), Some("uv")))
            .hint("Or use a toolkit that is installed: `--with-cuda=DIR`."))
    }

    fn start(&self, host: &Host) -> Invocation {
        Invocation::new(self.words.first().copied().unwrap_or_default())
            .args(self.words.iter().skip(1).copied())
            .cwd(host.cwd.clone())
    }

    /// Fetches one wheel into an empty directory and returns its file.
    ///
    /// # Errors
    ///
    /// pip fails, or brings another file.
    pub(super) fn fetch(
        &self,
        wheel: &Wheel,
        machine: &str,
        dir: &Utf8Path,
        host: &Host,
        sink: &mut dyn Sink,
    ) -> Result<Utf8PathBuf, Error> {
        let list = dir.join("requirements.txt");
        let line = format!("{}=={} --hash=sha256:{}\n", wheel.name, wheel.version, wheel.sha256);
        fs::write_new(&list, line.as_bytes(), 0o644)?;
        let mut invocation = self
            .start(host)
            .args(["download", "--require-hashes", "--no-deps", "--only-binary=:all:"])
            .args(["--disable-pip-version-check", "--no-input", "--progress-bar", "off"])
            .time_limit(TIME_LIMIT);
        for platform in PLATFORMS {
            invocation = invocation.args(["--platform", &format!("{platform}_{machine}")]);
        }
        let invocation = invocation.args(["--dest", dir.as_str(), "--requirement", list.as_str()]);
        let completed = host.runner.run(invocation);
        sink.event(&Event::Ran { completed: &completed, source: None });
        host.runner.interrupt.check()?;
        if !completed.success() {
            return Err(failure(wheel, &completed));
        }
        let found = fs::names(dir).into_iter().find(|name| name.ends_with(".whl"));
        let file = dir.join(found.ok_or_else(|| {
            failure(wheel, &completed).means("It ended well, but there is no wheel.")
        })?);
        check_sum(wheel, &fs::read(&file)?)?;
        Ok(file)
    }
}

/// How a way to start pip ended, in a few words.
fn answer(completed: &Completed) -> String {
    let last = completed.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(|| completed.status.to_string(), str::to_owned)
}

/// An error unless a wheel is the file that the table means.
pub(super) fn check_sum(wheel: &Wheel, bytes: &[u8]) -> Result<(), Error> {
    let found = place::hex(&Sha256::digest(bytes));
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(wrong_sum(wheel).means(format!("Its SHA-256 is {found}, and should be {}.", wheel.sha256)))
}

fn wrong_sum(wheel: &Wheel) -> Error {
    Error::new(
        Code::WrongSum,
        format!("the wheel {} {} is not the file that it should be", wheel.name, wheel.version),
    )
    .hint("A mirror or a proxy may have changed it: fetch it from another index.")
}

/// pip's failure in four parts.
fn failure(wheel: &Wheel, completed: &Completed) -> Error {
    let said: Vec<&str> = completed.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let said = said[said.len().saturating_sub(LAST_LINES)..].join("\n");
    let has = |marks: &[&str]| marks.iter().any(|mark| completed.stderr.contains(mark));
    if has(&["DO NOT MATCH THE HASHES"]) {
        return wrong_sum(wheel).command(&completed.invocation).said(said);
    }
    let error = Error::new(
        Code::FetchFailed,
        format!("the wheel {} {} could not be fetched", wheel.name, wheel.version),
    )
    .command(&completed.invocation)
    .said(said);
    if has(NO_NETWORK) {
        error
            .means("The package index could not be reached from this machine.")
            .hint("Look at the network and pip's proxy settings, or name a mirror in PIP_INDEX_URL.")
            .hint("A toolkit fetched elsewhere with `ucx-configure toolkit fetch` can be copied: `--with-cuda=DIR`.")
    } else if has(NOT_THERE) {
        error
            .means("The package index does not have this wheel, or hides it from this pip.")
            .hint("Name an index that has NVIDIA's wheels in PIP_INDEX_URL, or update pip.")
    } else if has(&["No space left on device"]) {
        error
            .means("The file system of the cache directory or of TMPDIR is full.")
            .hint("Free space there and run again.")
    } else {
        error
            .means(format!("pip did not succeed: {}.", completed.status))
            .hint("Run the command by hand.")
    }
}

/// How many of pip's last lines an error shows.
const LAST_LINES: usize = 6;

/// What pip says without a network.
const NO_NETWORK: &[&str] = &[
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "NewConnectionError",
    "ConnectTimeoutError",
    "Max retries exceeded",
    "Connection refused",
    "ProxyError",
    "Network is unreachable",
];

/// What it says when an index does not have the file.
const NOT_THERE: &[&str] = &["No matching distribution found", "Could not find a version"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::{env::Snapshot, fs::Scratch, process::Runner},
        ui::Silent,
    };

    const WHEEL: Wheel = Wheel {
        name: "a-wheel",
        version: "1.0",
        sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        size: 0,
        nvcc: false,
    };

    /// A host whose only program is a `python3` that plays pip.
    fn host(script: &str) -> (Scratch, Host) {
        let scratch = Scratch::new(None).unwrap();
        let script = format!("#!/bin/sh\n{script}\n");
        fs::write_new(&scratch.path().join("python3"), script.as_bytes(), 0o755).unwrap();
        let env = Snapshot::from_pairs([("PATH", scratch.path().as_str())]);
        let runner = Runner::with_environment(&env);
        let cwd = scratch.path().to_owned();
        (scratch, Host { env, cwd, runner })
    }

    fn fetch(script: &str) -> Result<Utf8PathBuf, Error> {
        let (scratch, host) = host(script);
        let dir = scratch.path().join("wheels");
        fs::create_dir_all(&dir).unwrap();
        let pip = Pip::find(&host, &mut Silent)?;
        pip.fetch(&WHEEL, "x86_64", &dir, &host, &mut Silent)
    }

    #[test]
    fn without_pip_the_error_names_every_way_that_was_tried() {
        let error = fetch("echo 'No module named pip' >&2; exit 1").unwrap_err();
        assert_eq!(error.code, Code::NoPip);
        assert!(error.means[0].contains("`python3 -m pip`: No module named pip"));
        assert!(error.means[0].contains("`uv tool run pip`: could not be started"));
    }

    #[test]
    fn pip_is_given_the_sum_and_its_file_is_summed_again() {
        let plays = "case \"$*\" in *--version*) exit 0 ;; esac
while [ \"$1\" != --dest ]; do shift; done
read -r line < \"$4\"
case \"$line\" in *--hash=sha256:e3b0c442*) ;; *) echo no hash >&2; exit 1 ;; esac
printf '%s' \"$CONTENT\" > \"$2/a_wheel-1.0-py3-none-any.whl\"";
        assert!(fetch(plays).unwrap().as_str().ends_with("a_wheel-1.0-py3-none-any.whl"));
        let error = fetch(&plays.replace("$CONTENT", "other")).unwrap_err();
        assert_eq!(error.code, Code::WrongSum);
    }

    #[test]
    fn failures_keep_pips_last_words() {
        for (said, code, means) in [
            (
                "WARNING: Retrying\nERROR: HTTPSConnectionPool: Max retries exceeded with url",
                Code::FetchFailed,
                "could not be reached",
            ),
            ("ERROR: No matching distribution found for x", Code::FetchFailed, "does not have"),
            ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", Code::WrongSum, ""),
            ("ERROR: other", Code::FetchFailed, "did not succeed: exit code 1"),
        ] {
            let script =
                format!("case \"$*\" in *--version*) exit 0 ;; esac\necho '{said}' >&2\nexit 1");
            let error = fetch(&script).unwrap_err();
            assert_eq!(error.code, code, "{said}");
            assert_eq!(error.said.as_deref(), Some(said));
            assert!(error.means.iter().any(|text| text.contains(means)) || means.is_empty());
            assert!(!error.hints.is_empty());
        }
    }
}
