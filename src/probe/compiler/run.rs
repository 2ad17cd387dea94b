//! One run of a compiler: its command line, its directory, what comes of it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Source, Trial, record};
use crate::{
    error::Error,
    host::{
        Host,
        fs::{self, Scratch},
        process::{Completed, Invocation, Status},
    },
    probe::{
        diagnostics::tidy,
        known::{self, Known},
    },
    ui::{Event, Sink},
};

/// Where trials happen.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) scratch: Scratch,
    pub(super) cwd: Utf8PathBuf,
    pub(super) time_limit: Duration,
    pub(super) trials: AtomicUsize,
    /// What is known already; none where every question gets its own run.
    pub(super) known: Option<Known>,
}

/// The parts of a compiler's command line, in autoconf's order; `{dir}` in
/// `mode` stands for the trial's directory.
pub(super) struct Words<'a> {
    pub(super) command: &'a [String],
    pub(super) mode: &'a [&'a str],
    pub(super) flags: &'a [String],
    pub(super) libs: &'a [String],
    /// What lines of `probe.i` begin with that are kept; none if empty.
    pub(super) mark: &'a str,
}

impl Words<'_> {
    /// The process, for a source in `dir`.
    pub(super) fn invocation(&self, bench: &Bench, dir: &str, file_name: &str) -> Invocation {
        Invocation::new(self.command.first().cloned().unwrap_or_default())
            .args(self.command.iter().skip(1).cloned())
            .args(self.mode.iter().map(|word| word.replace("{dir}", dir)))
            .args(self.flags.iter().cloned())
            .arg(format!("{dir}{file_name}"))
            .args(self.libs.iter().cloned())
            .cwd(bench.cwd.clone())
            .time_limit(bench.time_limit)
    }

    /// What makes the run this one and no other.
    pub(super) fn key(&self, source: &Source<'_>) -> String {
        let words = [self.command, self.flags, self.libs];
        // A part that no word can be keeps the lists apart.
        let words =
            words.into_iter().flat_map(|list| list.iter().map(String::as_str).chain(["\0"]));
        let rest = self.mode.iter().copied().chain(["\0", self.mark, source.name, source.text]);
        known::key(words.chain(rest))
    }
}

impl Bench {
    /// A fresh directory.
    pub(super) fn room(&self) -> Result<Utf8PathBuf, Error> {
        let number = self.trials.fetch_add(1, Ordering::Relaxed);
        let dir = self.scratch.path().join(number.to_string());
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

/// Runs it, unless it is known what comes of it; tells the sink.
pub(super) fn run(
    bench: &Bench,
    host: &Host,
    sink: &mut dyn Sink,
    source: &Source<'_>,
    words: &Words<'_>,
) -> Trial {
    let file_name = source.name.replace('/', "-");
    let tell = |trial: &Trial, sink: &mut dyn Sink| {
        let completed = &trial.completed;
        sink.event(&Event::Ran { completed, source: Some((&file_name, source.text)) });
    };
    let Some(known) = &bench.known else {
        let trial = start(bench, host, source, &file_name, words);
        tell(&trial, sink);
        return trial;
    };
    let key = words.key(source);
    let invocation = || words.invocation(bench, "", &file_name);
    let trial = known.trial(&key, invocation).unwrap_or_else(|| {
        let trial = start(bench, host, source, &file_name, words);
        known.keep(key.clone(), &trial);
        trial
    });
    if sink.listens() && known.is_to_be_told(&key) {
        tell(&trial, sink);
    }
    trial
}

/// Writes the source and runs the command.
fn start(
    bench: &Bench,
    host: &Host,
    source: &Source<'_>,
    file_name: &str,
    words: &Words<'_>,
) -> Trial {
    let written = bench.room().and_then(|dir| {
        fs::write_new(&dir.join(file_name), source.text.as_bytes(), 0o644).map(|()| dir)
    });
    let completed = match written {
        Ok(dir) => {
            let prefix = format!("{dir}/");
            let mut invocation = words.invocation(bench, &prefix, file_name);
            let records = bench.known.as_ref().filter(|known| known.records());
            let at = words.command.len().saturating_sub(1);
            if records.is_some() {
                record::ask(&mut invocation, at, words.mode, source.name, &prefix);
            }
            let since = SystemTime::now();
            let mut done = host.runner.run(invocation);
            if let Some(known) = records {
                let run = record::Run { words: words.libs, dir: &dir, cwd: &bench.cwd, since };
                known.record(|reads| run.record(reads, &mut done, words.mode, source.name));
            }
            if !words.mark.is_empty() {
                done.stdout.push_str(&marked(&dir.join("probe.i"), words.mark));
            }
            // Objects and programs can be large; the next trial needs none.
            let _ = fs::remove_dir_all_if_there(&dir);
            Completed {
                invocation: words.invocation(bench, "", file_name),
                stdout: tidy(&done.stdout, &prefix),
                stderr: tidy(&done.stderr, &prefix),
                ..done
            }
        }
        Err(error) => Completed {
            invocation: words.invocation(bench, "", file_name),
            status: Status::NotStarted(std::io::ErrorKind::Other, full_text(&error)),
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            took: Duration::ZERO,
        },
    };
    Trial { ok: completed.success(), completed }
}

/// The lines of a file that begin with the mark.
fn marked(file: &Utf8Path, mark: &str) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter(|line| line.trim_start().starts_with(mark));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// An error in one line.
fn full_text(error: &Error) -> String {
    match &error.said {
        Some(said) => format!("{}: {said}", error.what),
        None => error.what.clone(),
    }
}
