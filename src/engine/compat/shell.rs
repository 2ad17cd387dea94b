//! The variables that a configure script has, and its two ways to ask a
//! compiler: compile a file, compile and link one.
//!
//! Flags are held as the text that they are in the original, and are split on
//! blanks when a command is made, as an unquoted variable is in a shell: a
//! directory with a blank in its name therefore falls into two words.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::made::Place;
use crate::{
    error::{Code, Error},
    host::{
        Host, fs,
        process::{Completed, Invocation, Status},
    },
    model::{Attempt, Check, Component, Evidence, Family, Message, MessageKind, Outcome, Verdict},
    probe::{Compiler, Source, Trial, tidy},
    request::{Request, Variable},
    ui::{Event, Sink},
};

/// The substitutions that the two macros set; what the environment holds
/// under these names is there when the script starts.
const SET_HERE: [&str; 10] = [
    "CUDA_CPPFLAGS",
    "CUDA_LDFLAGS",
    "CUDA_LIBS",
    "CUDART_LIBS",
    "CUDART_STATIC_LIBS",
    "NVML_LIBS",
    "NVCC",
    "GDR_COPY_CPPFLAGS",
    "GDR_COPY_LDFLAGS",
    "GDR_COPY_LIBS",
];

/// How many lines of a compiler's output a report keeps.
const KEPT_LINES: usize = 12;

/// What CUDA came to.
#[derive(Debug, Default)]
pub(super) struct Cuda {
    /// `cuda_happy`.
    pub happy: bool,
    /// `have_cuda_static`.
    pub static_runtime: bool,
    /// `nvcc_happy`; without CUDA the original never sets it, and takes
    /// everything but "no" for a yes.
    pub nvcc_happy: Option<bool>,
    /// Whether the macro came to its end, so that conditionals have values.
    pub decided: bool,
    /// DIR.
    pub place: Place,
}

/// What gdrcopy came to.
#[derive(Debug, Default)]
pub(super) struct GdrCopy {
    /// `gdrcopy_happy`.
    pub happy: bool,
    /// Whether the macro came to its end.
    pub decided: bool,
    /// DIR.
    pub place: Place,
}

/// A configure script's world.
pub(super) struct Shell<'a> {
    /// What is wanted.
    pub request: &'a Request,
    /// The machine.
    pub host: &'a Host,
    /// Who is told.
    pub sink: &'a mut dyn Sink,
    /// The C compiler.
    pub compiler: Compiler,
    /// Where commands run: the build directory, so that relative paths mean
    /// what they mean to the original.
    pub cwd: Utf8PathBuf,
    /// `CPPFLAGS` at this point of the script.
    pub cppflags: String,
    /// `LDFLAGS` at this point of the script.
    pub ldflags: String,
    /// `LIBS` at this point of the script.
    pub libs: String,
    variables: BTreeMap<&'static str, String>,
    /// Macros for config.h: name to value.
    pub defines: BTreeMap<&'static str, String>,
    /// What CUDA came to.
    pub cuda: Cuda,
    /// What gdrcopy came to.
    pub gdrcopy: GdrCopy,
    /// What the headers say of their versions.
    pub levels: super::levels::Levels,
    /// Every question with its answer.
    pub checks: Vec<Check>,
    /// Everything that was said.
    pub messages: Vec<Message>,
}

impl<'a> Shell<'a> {
    /// Sets the variables as the script finds them when it starts.
    pub(super) fn start(
        request: &'a Request,
        host: &'a Host,
        sink: &'a mut dyn Sink,
    ) -> Result<Self, Error> {
        let compiler = Compiler::find(request, host, sink)?;
        let cwd = compiler.cwd().to_owned();
        let variables = SET_HERE
            .into_iter()
            .map(|name| (name, inherited(request, host, name).unwrap_or_default()))
            .collect();
        Ok(Self {
            request,
            host,
            sink,
            compiler,
            cwd,
            cppflags: request.variable(Variable::Cppflags).to_owned(),
            ldflags: request.variable(Variable::Ldflags).to_owned(),
            libs: request.variable(Variable::Libs).to_owned(),
            variables,
            defines: BTreeMap::new(),
            cuda: Cuda::default(),
            gdrcopy: GdrCopy::default(),
            levels: super::levels::Levels::default(),
            checks: Vec::new(),
            messages: Vec::new(),
        })
    }

    /// The value of a substitution.
    pub(super) fn get(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// The value of any substitution at this point of the script.
    pub(super) fn substitution(&self, name: &str) -> String {
        match name {
            "CC" => self.compiler.command.join(" "),
            "CPPFLAGS" => self.cppflags.clone(),
            "LDFLAGS" => self.ldflags.clone(),
            "LIBS" => self.libs.clone(),
            "CFLAGS" => self.request.variable(Variable::Cflags).to_owned(),
            "NVCCFLAGS" => self.request.variable(Variable::Nvccflags).to_owned(),
            name => self.get(name).to_owned(),
        }
    }

    /// Sets a substitution.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.insert(name, value.into());
    }

    /// Sets a macro of config.h.
    pub(super) fn define(&mut self, name: &'static str, value: impl Into<String>) {
        self.defines.insert(name, value.into());
    }

    /// Says something, and keeps it. An error is kept alone: it is the run's
    /// result, and whoever ends the run prints it.
    pub(super) fn message(&mut self, kind: MessageKind, code: &str, text: &str) {
        let message = Message { kind, code: code.to_owned(), text: text.to_owned(), hint: None };
        if kind != MessageKind::Error {
            self.sink.event(&Event::Message(&message));
        }
        self.messages.push(message);
    }

    /// A decision, for the log.
    pub(super) fn decided(&mut self, text: &str) {
        self.sink.event(&Event::Decided(text));
    }

    /// Announces a question.
    pub(super) fn checking(&mut self, label: &str) {
        self.sink.event(&Event::Checking(label));
    }

    /// Takes the answer.
    pub(super) fn answered(&mut self, check: Check) {
        self.sink.event(&Event::Answered(&check));
        self.checks.push(check);
    }

    /// Proves that the compiler makes programs at all, and learns whether the
    /// C library still has a librt: the original's configure has put `-lrt` in
    /// front of `LIBS`, twice, before it comes to CUDA.
    pub(super) fn prove_compiler(&mut self) -> Result<(), Error> {
        const SOURCE: &str = "int main(void) { return 0; }\n";
        let label = "whether the C compiler works";
        self.checking(label);
        let with_rt = format!("-lrt -lrt {}", self.libs);
        let mut last = self.link(SOURCE, &with_rt)?;
        if last.ok {
            self.libs = with_rt;
        } else {
            let libs = self.libs.clone();
            last = self.link(SOURCE, &libs)?;
        }
        self.answered(Check {
            id: "control.ok".to_owned(),
            label: label.to_owned(),
            family: Family::Tool,
            component: None,
            verdict: if last.ok { Verdict::Yes } else { Verdict::Broken },
            detail: None,
            detail_is_answer: false,
            evidence: Evidence {
                attempts: vec![attempt("compile and link an empty program", &last.completed)],
                hint: None,
            },
            preset: None,
            cached: false,
        });
        if last.ok { Ok(()) } else { Err(self.broken(&last, &last.completed.status.to_string())) }
    }

    /// Compiles a text.
    pub(super) fn compile(&mut self, text: &str) -> Result<Trial, Error> {
        let flags = self.compile_flags();
        let trial = self.compiler.compile(self.host, self.sink, &source(text), &flags);
        self.sound(trial)
    }

    /// Preprocesses a text behind the macros of some headers, of which
    /// nothing else reaches the output.
    pub(super) fn preprocess(&mut self, text: &str, headers: &[&str]) -> Result<Trial, Error> {
        let mut flags = self.compile_flags();
        flags.extend(headers.iter().flat_map(|header| ["-imacros", header]).map(str::to_owned));
        let trial = self.compiler.preprocess(self.host, self.sink, &source(text), &flags);
        self.sound(trial)
    }

    /// Compiles and links a text, with these `LIBS`.
    pub(super) fn link(&mut self, text: &str, libs: &str) -> Result<Trial, Error> {
        let flags = self.compile_flags();
        let (ldflags, libs) = (words(&self.ldflags), words(libs));
        let source = source(text);
        let trial = self.compiler.link(self.host, self.sink, &source, &flags, &ldflags, &libs);
        self.sound(trial)
    }

    /// `$CFLAGS $CPPFLAGS`.
    fn compile_flags(&self) -> Vec<String> {
        words(&format!("{} {}", self.request.variable(Variable::Cflags), self.cppflags))
    }

    /// Ends the run where the compiler did not do its work: that is no answer.
    fn sound(&self, trial: Trial) -> Result<Trial, Error> {
        self.host.runner.interrupt.check()?;
        match trial.fault() {
            Some(fault) => Err(self.broken(&trial, &fault)),
            None => Ok(trial),
        }
    }

    fn broken(&self, trial: &Trial, fault: &str) -> Error {
        let name = self.compiler.command.join(" ");
        Error::new(Code::CompilerBroken, format!("the C compiler `{name}` does not work"))
            .command(trial.command())
            .said(kept(&trial.completed.stderr))
            .means(format!("It could not build a small program: {fault}."))
            .hint("Check CC, CFLAGS, CPPFLAGS, LDFLAGS and LIBS.")
    }

    /// Runs another compiler on a text, in the way its caller spells out from
    /// the paths of a source file and an object file. It may fail in any way.
    pub(super) fn run_other(
        &mut self,
        name: &str,
        text: &str,
        invocation: impl Fn(&str, &str) -> Invocation,
    ) -> Result<Completed, Error> {
        let dir = self.compiler.scratch_dir()?;
        let prefix = format!("{dir}/");
        fs::write_if_changed(&dir.join(name), text.as_bytes(), 0o644)?;
        let at = |prefix: &str| {
            invocation(&format!("{prefix}{name}"), &format!("{prefix}conftest.o"))
                .cwd(self.cwd.clone())
                .time_limit(self.compiler.time_limit())
        };
        let done = self.host.runner.run(at(&prefix));
        let completed = Completed {
            invocation: at(""),
            stdout: tidy(&done.stdout, &prefix),
            stderr: tidy(&done.stderr, &prefix),
            ..done
        };
        fs::remove_dir_all_if_there(&dir)?;
        self.sink.event(&Event::Ran { completed: &completed, source: Some((name, text)) });
        self.host.runner.interrupt.check()?;
        Ok(completed)
    }

    /// The evidence of the first question about a component that was not
    /// answered with a yes, else of the last one that was.
    pub(super) fn evidence(&self, component: Component) -> Evidence {
        let about = || self.checks.iter().filter(|check| check.component == Some(component));
        about()
            .find(|check| !check.verdict.is_yes())
            .or_else(|| about().next_back())
            .map_or_else(Evidence::default, |check| check.evidence.clone())
    }
}

/// Splits as an unquoted variable is split.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split([' ', '\t', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A variable as a script inherits it: the last `NAME=VALUE` argument, else
/// the environment.
pub(super) fn inherited(request: &Request, host: &Host, name: &str) -> Option<String> {
    let argument = request
        .command_line
        .iter()
        .rev()
        .find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
    argument.or_else(|| host.env.get(name)).map(str::to_owned)
}

/// What was tried, for the report.
pub(super) fn attempt(what: &str, completed: &Completed) -> Attempt {
    let success = completed.success();
    let said = kept(&completed.stderr);
    let invocation = Invocation { cwd: None, ..completed.invocation.clone() };
    Attempt {
        what: what.to_owned(),
        place: None,
        command: Some(invocation.to_string()),
        said: (!success && !said.is_empty()).then_some(said),
        outcome: match completed.status {
            Status::Exited(0) => Outcome::Satisfied,
            Status::Exited(_) => Outcome::Rejected,
            _ => Outcome::Failed,
        },
        meaning: (!success).then(|| format!("the command ended with {}", completed.status)),
    }
}

/// The beginning of what a tool said.
fn kept(text: &str) -> String {
    text.lines().take(KEPT_LINES).collect::<Vec<_>>().join("\n")
}

fn source(text: &str) -> Source<'_> {
    Source { name: "conftest.c", text }
}

/// Whether a path is a directory, seen from where the script runs.
pub(super) fn is_dir(cwd: &Utf8Path, path: &str) -> bool {
    cwd.join(path).is_dir()
}
