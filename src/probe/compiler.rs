//! The C compiler: found, identified, and run on a source text.
//!
//! Every process goes through [`Host`], with a time limit and a trace in the
//! log. What came of a run may be known already ([`super::known`]); then none
//! is made. What is believed of a compiler is in [`super::identity`]; whether
//! its answers mean anything is shown by [`super::control`].

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};

mod find;
mod record;
mod run;

use self::run::{Bench, Words, run};
pub use super::identity::Kind;
use super::{
    diagnostics::first_error_line,
    identity::{Facts, QUESTION},
    known::{Known, Said},
};
use crate::{
    error::{Code, Error, Remedy},
    host::{
        Host,
        fs::{self, Scratch},
        process::{Completed, Invocation, Status},
    },
    model::{Mode, ToolIdentity},
    request::{self, ProbeMode, Request},
    ui::{Ahead, Sink},
};

/// The variable that changes how long one process may take, in seconds.
pub const TIME_LIMIT_VARIABLE: &str = crate::env_vars::UCX_CONFIGURE_TIME_LIMIT;

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

/// How far a source is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// To an object file.
    Compile,
    /// Through the compiler's checks alone.
    Check,
    /// To a program.
    Link,
}

impl How {
    const fn words(self, kind: Kind) -> &'static [&'static str] {
        match self {
            Self::Compile => &["-c", "-o", "{dir}probe.o"],
            // An error in a header's macro is one of the line that uses it.
            Self::Check if matches!(kind, Kind::Gcc) => {
                &["-fsyntax-only", "-ftrack-macro-expansion=0"]
            }
            Self::Check => &["-fsyntax-only"],
            Self::Link => &["-o", "{dir}probe"],
        }
    }
}

/// A command that was found, and the place where it will be run.
#[derive(Debug)]
pub struct Located {
    command: Vec<String>,
    found_by: String,
    bench: Arc<Bench>,
}

impl Located {
    /// Makes the place; `known` is what is known of the command already.
    ///
    /// # Errors
    ///
    /// The place for scratch files cannot be made.
    pub fn new(
        command: Vec<String>,
        found_by: String,
        known: Option<Known>,
        request: &Request,
        host: &Host,
    ) -> Result<Self, Error> {
        let parent = request.state_dir.as_deref();
        if let Some(dir) = parent {
            fs::create_dir_all(dir)?;
        }
        let bench = Arc::new(Bench {
            scratch: Scratch::new(parent)?,
            cwd: working_dir(request, host),
            time_limit: request::time_limit(host)?.unwrap_or(TIME_LIMIT),
            trials: AtomicUsize::new(0),
            known,
        });
        Ok(Self { command, found_by, bench })
    }
}

impl Compiler {
    /// Finds the compiler that the request names, or the system's, and asks
    /// who it is.
    ///
    /// # Errors
    ///
    /// There is none, it cannot be started, or it does not preprocess.
    pub fn find(request: &Request, host: &Host, sink: &mut dyn Sink) -> Result<Self, Error> {
        let (command, found_by) = Self::locate(request, host)?;
        let known = is_batch(request).then(Known::default);
        let located = Located::new(command, found_by, known, request, host)?;
        Self::identify(located, request.mode, host, sink)
    }

    /// Which command it is, and how that was found; nothing is started.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn locate(request: &Request, host: &Host) -> Result<(Vec<String>, String), Error> {
        match find::named(request)? {
            Some(command) => {
                find::require_program(&command, host)?;
                Ok((command, "CC".to_owned()))
            }
            None => find::system(request.host.as_deref(), host),
        }
    }

    /// Who a command most likely is, by its name: what can be asked while it
    /// is asked who it really is. None where the name says nothing.
    pub fn assumed(located: &Located, request: &Request, host: &Host) -> Option<Self> {
        let kind = find::kind_by_name(&located.command, request, host)?;
        let target = format!("{}-linux-gnu", std::env::consts::ARCH);
        let command = located.command.clone();
        let identity = ToolIdentity {
            command: command.clone(),
            kind: kind.name().to_owned(),
            version: String::new(),
            target,
        };
        Some(Self {
            command,
            identity,
            kind,
            machine: std::env::consts::ARCH.to_owned(),
            pointer_size: 8,
            found_by: located.found_by.clone(),
            bench: Arc::clone(&located.bench),
        })
    }

    /// Asks a command who it is.
    ///
    /// # Errors
    ///
    /// It cannot be started, or does not preprocess.
    pub fn identify(
        located: Located,
        mode: Mode,
        host: &Host,
        sink: &mut dyn Sink,
    ) -> Result<Self, Error> {
        identify(located.command, located.found_by, (mode, located.bench), host, sink)
    }

    /// An error if it is one for another machine than `--host` names.
    ///
    /// # Errors
    ///
    /// It is.
    pub fn must_be_for(&self, triple: Option<&str>, host: &Host) -> Result<(), Error> {
        match triple {
            Some(triple) => find::require_machine(&self.command, &self.machine, triple, host),
            None => Ok(()),
        }
    }

    /// Asks who it is, ahead: the answer is kept for [`Self::identify`].
    pub fn ask_identity_ahead(&self, host: &Host) {
        ask_identity(&self.bench, &self.command, host, &mut Ahead);
    }

    /// Compiles to an object file.
    pub fn compile(
        &self,
        host: &Host,
        sink: &mut dyn Sink,
        source: &Source<'_>,
        flags: &[String],
    ) -> Trial {
        self.run(host, sink, source, How::Compile.words(self.kind), flags, &[])
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
        self.run(host, sink, source, self.how_to_check().words(self.kind), flags, &[])
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
        self.run(host, sink, source, How::Link.words(self.kind), &flags, libs)
    }

    /// How declarations are checked.
    pub const fn how_to_check(&self) -> How {
        match self.kind {
            Kind::Gcc | Kind::Clang => How::Check,
            Kind::Nvhpc | Kind::Other => How::Compile,
        }
    }

    /// What is known already, where one run may answer several questions.
    pub fn known(&self) -> Option<&Known> {
        self.bench.known.as_ref()
    }

    /// Keeps the answer to a question that another run has answered: the run
    /// that the question would have is not made.
    pub fn deduce(&self, how: How, source: &Source<'_>, words: (&[String], &[String]), said: Said) {
        let Some(known) = &self.bench.known else { return };
        let (flags, libs) = words;
        let mode = how.words(self.kind);
        let words = Words { command: &self.command, mode, flags, libs, mark: "" };
        known.deduce(words.key(source), said);
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

/// Whether one run may answer several questions.
pub fn is_batch(request: &Request) -> bool {
    request.mode == Mode::Strict && request.probe_mode == ProbeMode::Batch
}

/// The run that says who a compiler is.
fn ask_identity(bench: &Bench, command: &[String], host: &Host, sink: &mut dyn Sink) -> Trial {
    let source = Source { name: "control/identity.c", text: QUESTION };
    let words = Words { command, mode: &["-E"], flags: &[], libs: &[], mark: "" };
    run(bench, host, sink, &source, &words)
}

/// Asks a compiler who it is.
fn identify(
    command: Vec<String>,
    found_by: String,
    (mode, bench): (Mode, Arc<Bench>),
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Compiler, Error> {
    let trial = ask_identity(&bench, &command, host, sink);
    if trial.interrupted() {
        host.runner.interrupt.check()?;
    }
    if let (true, Some(facts)) = (trial.ok, Facts::parse(&trial.completed.stdout)) {
        // The original asks nothing of the kind.
        if facts.is_cplusplus && mode == Mode::Strict {
            return Err(speaks_cplusplus(&command, &trial));
        }
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

/// A C++ compiler takes the questions, which are C, for C++, and its answers
/// would be about that.
fn speaks_cplusplus(command: &[String], trial: &Trial) -> Error {
    let what = format!("CC is a C++ compiler: `{}`", command.join(" "));
    let error = Error::new(Code::CompilerBroken, what)
        .command(trial.command())
        .means("It defines `__cplusplus`; headers and sources in C may mean something else to it.");
    let program = command.first().map_or("", String::as_str);
    let names = [("clang++", "clang"), ("g++", "gcc"), ("c++", "cc")];
    let c_compiler = names
        .into_iter()
        .find(|(name, _)| program.contains(name))
        .map_or_else(|| "gcc".to_owned(), |(name, c_name)| program.replace(name, c_name));
    error.hint(format!("Write `CC={c_compiler}`.")).remedy(Remedy::Set(format!("CC={c_compiler}")))
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
