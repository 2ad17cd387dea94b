//! The C compiler: found, identified, and run on a source text.
//!
//! Every process goes through [`Host`]: the `cc` crate is asked for the name
//! of a compiler only, and gets an environment in which it cannot start one,
//! since its own identification run has no time limit and leaves no trace in
//! the log. What is believed of a compiler is in [`super::identity`]; whether
//! its answers mean anything is shown by [`super::control`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};

mod find;

pub use super::identity::Kind;
use super::{
    diagnostics::{first_error_line, tidy},
    identity::{Facts, QUESTION},
};
use crate::{
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Scratch},
        process::{Completed, Invocation, Status},
    },
    model::{Mode, ToolIdentity},
    request::Request,
    ui::{Event, Sink},
};

/// The variable that changes how long one process may take, in seconds.
pub const TIME_LIMIT_VARIABLE: &str = "UCX_CONFIGURE_TIME_LIMIT";

/// How long one compiler run may take otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A source text with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its name, such as `cuda/handle_type_fabric.c`; diagnostics show it.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// A compiler run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The process, without what changes from run to run (scratch directory,
    /// intermediate names): it can go into a report, and be pasted.
    pub completed: Completed,
    /// Whether the compiler accepted the source.
    pub ok: bool,
}

impl Trial {
    /// The first line that says what went wrong.
    pub fn first_error_line(&self) -> Option<String> {
        first_error_line(&self.completed.stderr)
            .or_else(|| first_error_line(&self.completed.stdout))
    }

    /// The command, in a form that can be pasted.
    pub fn command(&self) -> String {
        let invocation = Invocation { cwd: None, ..self.completed.invocation.clone() };
        invocation.to_string()
    }

    /// Why this run says nothing about its question: the compiler crashed,
    /// hung, or could not write. None when it did its work.
    pub fn fault(&self) -> Option<String> {
        match &self.completed.status {
            Status::Exited(_) if self.ok => None,
            Status::Exited(_) => FAULTS
                .iter()
                .find(|(mark, _)| self.completed.stderr.contains(mark))
                .map(|(_, meaning)| (*meaning).to_owned()),
            status => Some(status.to_string()),
        }
    }

    /// Whether a signal to us ended it.
    pub fn interrupted(&self) -> bool {
        self.completed.status == Status::Interrupted
    }
}

/// What compilers and linkers say when the fault is not the source's.
const FAULTS: [(&str, &str); 5] = [
    ("internal compiler error", "the compiler crashed"),
    ("PLEASE submit a bug report", "the compiler crashed"),
    ("No space left on device", "the file system for scratch files is full"),
    ("Killed signal terminated program", "a part of the compiler was killed"),
    ("cannot execute", "a part of the compiler is missing"),
];

/// A C compiler.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// The command as words: wrapper and flags included.
    pub command: Vec<String>,
    /// Who it is, as reports say it.
    pub identity: ToolIdentity,
    /// GNU, LLVM or another.
    pub kind: Kind,
    /// The machine it compiles for, such as `x86_64`.
    pub machine: String,
    /// How many bytes a pointer has there.
    pub pointer_size: u32,
    /// How it was found, in words.
    pub found_by: String,
    bench: Arc<Bench>,
}

/// Where trials happen.
#[derive(Debug)]
struct Bench {
    scratch: Scratch,
    cwd: Utf8PathBuf,
    time_limit: Duration,
    trials: AtomicUsize,
}

impl Compiler {
    /// Finds the compiler that the request names, or the system's, and asks
    /// who it is.
    ///
    /// # Errors
    ///
    /// There is none, it cannot be started, or it does not preprocess.
    pub fn find(request: &Request, host: &Host, sink: &mut dyn Sink) -> Result<Self, Error> {
        let (command, found_by) = match find::named(request)? {
            Some(command) => {
                find::require_program(&command, host)?;
                (command, "CC".to_owned())
            }
            None => find::system(request.host.as_deref(), host)?,
        };
        let parent = request.state_dir.as_deref();
        if let Some(dir) = parent {
            fs::create_dir_all(dir)?;
        }
        let seconds = host.env.get(TIME_LIMIT_VARIABLE).and_then(|text| text.parse().ok());
        let bench = Arc::new(Bench {
            scratch: Scratch::new(parent)?,
            cwd: working_dir(request, host),
            time_limit: seconds.map_or(TIME_LIMIT, Duration::from_secs),
            trials: AtomicUsize::new(0),
        });
        identify(command, found_by, bench, host, sink)
    }

    /// Compiles to an object file.
    pub fn compile(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        flags: &[String],
    ) -> Trial {
        self.run(host, sink, source, &["-c", "-o", "{dir}probe.o"], flags, &[])
    }

    /// Checks the syntax and the declarations alone: faster, no file written.
    /// A compiler that we do not know compiles instead.
    pub fn check_syntax(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        flags: &[String],
    ) -> Trial {
        match self.kind {
            Kind::Gcc | Kind::Clang => self.run(host, sink, source, &["-fsyntax-only"], flags, &[]),
            Kind::Nvhpc | Kind::Other => self.compile(host, sink, source, flags),
        }
    }

    /// Preprocesses; the text is in `completed.stdout`.
    pub fn preprocess(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        flags: &[String],
    ) -> Trial {
        self.run(host, sink, source, &["-E"], flags, &[])
    }

    /// Preprocesses; the lines that begin with `mark` are in
    /// `completed.stdout`. A CUDA header alone would fill what is kept of a
    /// stream, so the text goes through a file.
    pub fn preprocess_marked(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        flags: &[String],
        mark: &str,
    ) -> Trial {
        let mode = ["-E", "-o", "{dir}probe.i"];
        let words = Words { command: &self.command, mode: &mode, flags, libs: &[], mark };
        run(&self.bench, host, sink, source, &words)
    }

    /// Compiles and links a program; it is never run.
    pub fn link(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        cflags: &[String],
        ldflags: &[String],
        libs: &[String],
    ) -> Trial {
        let flags: Vec<String> = cflags.iter().chain(ldflags).cloned().collect();
        self.run(host, sink, source, &["-o", "{dir}probe"], &flags, libs)
    }

    /// A directory of one's own under the scratch directory, for runs of other
    /// tools; it goes with the last copy of this compiler.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn scratch_dir(&self) -> Result<Utf8PathBuf, Error> {
        self.bench.room()
    }

    /// Where it runs.
    pub fn cwd(&self) -> &Utf8Path {
        &self.bench.cwd
    }

    /// How long one process may take.
    pub fn time_limit(&self) -> Duration {
        self.bench.time_limit
    }

    fn run(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        mode: &[&str],
        flags: &[String],
        libs: &[String],
    ) -> Trial {
        let words = Words { command: &self.command, mode, flags, libs, mark: "" };
        run(&self.bench, host, sink, source, &words)
    }
}

/// Where a compiler runs: where the user stands; in compat mode in the build
/// directory, which is where the original always runs.
fn working_dir(request: &Request, host: &Host) -> Utf8PathBuf {
    let build_dir = host.absolute(&request.build_dir);
    if request.mode == Mode::Compat && build_dir.is_dir() { build_dir } else { host.cwd.clone() }
}

/// The parts of a compiler's command line, in autoconf's order; `{dir}` in
/// `mode` stands for the trial's directory.
struct Words<'a> {
    command: &'a [String],
    mode: &'a [&'a str],
    flags: &'a [String],
    libs: &'a [String],
    /// What lines of `probe.i` begin with that are kept; none if empty.
    mark: &'a str,
}

impl Bench {
    /// A fresh directory.
    fn room(&self) -> Result<Utf8PathBuf, Error> {
        let number = self.trials.fetch_add(1, Ordering::Relaxed);
        let dir = self.scratch.path().join(number.to_string());
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

/// Writes the source, runs the command, tells the sink.
fn run(
    bench: &Bench,
    host: &Host,
    sink: &mut dyn Sink,
    source: &Source<'_>,
    words: &Words<'_>,
) -> Trial {
    let program = words.command.first().cloned().unwrap_or_default();
    let file_name = source.name.replace('/', "-");
    let invocation = |dir: &str| {
        Invocation::new(program.clone())
            .args(words.command.iter().skip(1).cloned())
            .args(words.mode.iter().map(|word| word.replace("{dir}", dir)))
            .args(words.flags.iter().cloned())
            .arg(format!("{dir}{file_name}"))
            .args(words.libs.iter().cloned())
            .cwd(bench.cwd.clone())
            .time_limit(bench.time_limit)
    };
    let written = bench.room().and_then(|dir| {
        fs::write_if_changed(&dir.join(&file_name), source.text.as_bytes(), 0o644).map(|_| dir)
    });
    let completed = match written {
        Ok(dir) => {
            let prefix = format!("{dir}/");
            let mut done = host.runner.run(invocation(&prefix));
            if !words.mark.is_empty() {
                done.stdout.push_str(&marked(&dir.join("probe.i"), words.mark));
            }
            // Objects and programs can be large; the next trial needs none.
            let _ = fs::remove_dir_all_if_there(&dir);
            Completed {
                invocation: invocation(""),
                stdout: tidy(&done.stdout, &prefix),
                stderr: tidy(&done.stderr, &prefix),
                ..done
            }
        }
        Err(error) => Completed {
            invocation: invocation(""),
            status: Status::NotStarted(std::io::ErrorKind::Other, full_text(&error)),
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            took: Duration::ZERO,
        },
    };
    sink.event(&Event::Ran { completed: &completed, source: Some((&file_name, source.text)) });
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

/// Asks a compiler who it is.
fn identify(
    command: Vec<String>,
    found_by: String,
    bench: Arc<Bench>,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Compiler, Error> {
    let source = Source { name: "control/identity.c", text: QUESTION };
    let words = Words { command: &command, mode: &["-E"], flags: &[], libs: &[], mark: "" };
    let trial = run(&bench, host, sink, &source, &words);
    if trial.interrupted() {
        host.runner.interrupt.check()?;
    }
    if let (true, Some(facts)) = (trial.ok, Facts::parse(&trial.completed.stdout)) {
        return Ok(Compiler {
            identity: facts.identity(&command),
            command,
            kind: facts.kind,
            machine: facts.machine,
            pointer_size: facts.pointer_size,
            found_by,
            bench,
        });
    }
    let name = command.join(" ");
    let error = Error::new(
        Code::CompilerBroken,
        format!("the C compiler `{name}` cannot preprocess an empty program"),
    );
    Err(broken(error, &trial).hint(
        "Run the command above by hand with any C file; set CC to a compiler for which it works.",
    ))
}

/// The middle parts of an error about a compiler that does not work.
pub(super) fn broken(error: Error, trial: &Trial) -> Error {
    let error = error.command(trial.command()).said(trial.first_error_line().unwrap_or_default());
    match (&trial.completed.status, trial.fault()) {
        (Status::TimedOut(_), Some(fault)) => {
            error.means(format!("It hangs: {fault} (`{TIME_LIMIT_VARIABLE}` changes the limit)."))
        }
        (_, Some(fault)) => error.means(format!("It did not do its work: {fault}.")),
        (Status::Exited(0), None) if trial.completed.truncated => {
            error.means("It exits with 0, and printed more than any compiler would.")
        }
        (Status::Exited(0), None) => {
            error.means("It exits with 0 whatever it is given, and did nothing of what was asked.")
        }
        (status, None) => error.means(format!("It ended with {status}.")),
    }
}

#[cfg(test)]
mod tests;
