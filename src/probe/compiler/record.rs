//! Asks a run what it reads, and takes the answer out of what it says.

use std::time::SystemTime;

use camino::Utf8Path;

use crate::{
    host::{
        fs,
        process::{Completed, Invocation},
    },
    probe::{
        batch::{PROGRAM, UNIT},
        reads::Reads,
    },
};

/// Where the dependencies go.
const FILE: &str = "probe.d";

/// What a run does, by its mode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It reads headers.
    Compile,
    /// It links; its source includes nothing.
    Link,
    /// It preprocesses what includes nothing.
    Nothing,
}

fn does(mode: &[&str]) -> Does {
    match mode {
        ["-E"] => Does::Nothing,
        ["-o", _] => Does::Link,
        _ => Does::Compile,
    }
}

/// Adds the words that make a run say what it reads, behind the command.
pub(super) fn ask(invocation: &mut Invocation, at: usize, mode: &[&str], name: &str, dir: &str) {
    let mut words: Vec<String> = match does(mode) {
        Does::Compile => {
            ["-MD", "-MF"].map(str::to_owned).into_iter().chain([format!("{dir}{FILE}")]).collect()
        }
        Does::Link if name == PROGRAM => vec!["-v".to_owned()],
        _ => return,
    };
    if name == UNIT {
        words.push("-v".to_owned());
    }
    let at = at.min(invocation.args.len());
    invocation.args.splice(at..at, words);
}

/// Parts what a driver says under `-v` before it compiles from what the
/// compiler says of the source.
fn split(stderr: &str) -> (&str, &str) {
    const LAST: [&str; 3] =
        ["End of search list.", "GGC heuristics: ", "Compiler executable checksum: "];
    let mut end = 0;
    let mut at = 0;
    for line in stderr.split_inclusive('\n') {
        at += line.len();
        if LAST.iter().any(|last| line.starts_with(last)) {
            end = at;
        }
    }
    stderr.split_at(end)
}

/// A run that has ended.
pub(super) struct Run<'a> {
    /// The libraries that it was told.
    pub(super) words: &'a [String],
    /// Its directory.
    pub(super) dir: &'a Utf8Path,
    /// Where it ran.
    pub(super) cwd: &'a Utf8Path,
    /// When it began.
    pub(super) since: SystemTime,
}

impl Run<'_> {
    /// Records what it read, and leaves of its words those that it would have
    /// said without being asked.
    pub(super) fn record(
        &self,
        reads: &mut Reads,
        done: &mut Completed,
        mode: &[&str],
        name: &str,
    ) {
        match does(mode) {
            Does::Nothing => {}
            Does::Link => {
                if name == PROGRAM {
                    reads.verbose(&done.stderr, self.cwd, self.since);
                    // What remains of it matters to nobody: a link that fails
                    // is made again for each question.
                    done.stderr.clear();
                }
                reads.link(&done.stdout, self.words, self.cwd, self.since);
                reads.link("", &done.invocation.args, self.cwd, self.since);
            }
            Does::Compile => {
                if name == UNIT {
                    let (said, rest) = split(&done.stderr);
                    reads.verbose(said, self.cwd, self.since);
                    done.stderr = rest.to_owned();
                }
                let text = fs::read_to_string(&self.dir.join(FILE)).unwrap_or_default();
                let scratch = format!("{}/", self.dir);
                reads.dependencies(&text, self.cwd, &scratch, self.since);
                let is_told = !text.is_empty() || reads.missing_header(&done.stderr);
                if !is_told {
                    reads.give_up("a compilation does not say what it read");
                }
            }
        }
    }
}
