//! Puts one question: runs its probe, and turns what happened into an answer
//! with evidence.

use camino::Utf8PathBuf;

use super::{ground::Ground, hints, why_not};
use crate::{
    discover::{
        library::{DRIVER_LIBRARIES, c_library, classify, taken},
        source::same_dir,
    },
    engine::schedule::{Tape, Task},
    host::Host,
    model::{Attempt, Check, CudaVersion, Evidence, LibraryClass, Outcome, ToolIdentity, Verdict},
    probe::{
        Compiler, Source, Trial,
        catalog::{Probe, Stage},
        nvcc,
    },
    request::Given,
    ui::Sink,
};

/// What to do about an nvcc that is there and does not work, where nothing
/// better is known.
const OTHER_NVCC: &str = "Name another nvcc with `NVCC=PATH`; only tests and examples need it.";

/// Where it is an nvcc, it may lack flags.
const FLAGS_OF_NVCC: &str = "Give it the flags that it lacks with `NVCCFLAGS=FLAGS`. ";

/// An answer, and what it shows besides.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The question with its answer.
    pub(super) check: Check,
    /// The compiler said yes, but to something outside the installation.
    pub(super) elsewhere: bool,
    /// The file that the linker took.
    pub(super) library: Option<Utf8PathBuf>,
    /// The C library that it took.
    pub(super) libc: Option<Utf8PathBuf>,
    /// The nvcc that works.
    pub(super) nvcc: Option<ToolIdentity>,
    /// The release that an nvcc says it is of, whether it works or not.
    pub(super) nvcc_release: Option<CudaVersion>,
    /// An nvcc exits with 0 and does nothing.
    pub(super) idle_nvcc: bool,
    /// The compiler warned, and only we kept that from being an error.
    pub(super) warned: bool,
}

/// One question on its ground.
pub(super) struct Question<'a> {
    pub(super) probe: &'static Probe,
    pub(super) ground: &'a Ground,
    pub(super) compiler: &'a Compiler,
    pub(super) host: &'a Host,
    pub(super) needs: Vec<usize>,
}

impl Task for Question<'_> {
    type Answer = Answer;

    fn needs(&self) -> &[usize] {
        &self.needs
    }

    fn run(&self, tape: &mut Tape) -> Answer {
        self.put(tape)
    }

    fn is_yes(answer: &Answer) -> bool {
        answer.check.verdict.is_yes()
    }
}

/// The questions of a plan; needs outside the plan were settled before.
pub(super) fn questions<'a>(
    probes: &[&'static Probe],
    ground: &'a Ground,
    compiler: &'a Compiler,
    host: &'a Host,
) -> Vec<Question<'a>> {
    let number = |id: &str| probes.iter().position(|probe| probe.id == id);
    probes
        .iter()
        .map(|&probe| Question {
            probe,
            ground,
            compiler,
            host,
            // What is given holds whatever else is there.
            needs: match ground.user.given.contains_key(probe.id) {
                true => Vec::new(),
                false => probe.needs.iter().filter_map(|id| number(id)).collect(),
            },
        })
        .collect()
}

impl Question<'_> {
    /// Puts it.
    pub(super) fn put(&self, sink: &mut dyn Sink) -> Answer {
        if let Some(given) = self.ground.user.given.get(self.probe.id) {
            return self.given(given);
        }
        match self.probe.stage {
            Stage::Header(name) => self.header(name, sink),
            Stage::Link(libraries) => self.link(libraries, sink),
            Stage::Nvcc => self.nvcc(sink),
            Stage::Check | Stage::Preprocess | Stage::Control => self.declaration(sink),
        }
    }

    /// The answer that was given; nothing is run.
    fn given(&self, given: &Given) -> Answer {
        let attempt = Attempt {
            what: "take the answer of `--answers`".to_owned(),
            place: None,
            command: None,
            said: None,
            outcome: if given.answer { Outcome::Satisfied } else { Outcome::Rejected },
            meaning: Some(format!(
                "It was given, not found out: {}.",
                given.reason.trim_end_matches('.')
            )),
        };
        let verdict = if given.answer { Verdict::Yes } else { Verdict::No };
        let mut check = self.check(verdict, vec![attempt]);
        check.detail = Some("given".to_owned());
        check.preset = Some(given.reason.clone());
        plain(check)
    }

    fn source(&self) -> Source<'static> {
        Source { name: self.probe.file, text: self.probe.text }
    }

    fn header(&self, name: &str, sink: &mut dyn Sink) -> Answer {
        let flags = self.ground.cflags();
        let trial = self.compiler.compile(self.host, sink, &self.source(), &flags);
        let layout = &self.ground.layout;
        let place = layout.header(name);
        let mut attempt = tried(format!("compile `#include <{name}>`"), &trial);
        attempt.place.clone_from(&place);
        let mut elsewhere = false;
        match &place {
            None if trial.ok && layout.is_scoped() => {
                elsewhere = true;
                attempt.outcome = Outcome::Rejected;
                attempt.meaning = Some(format!(
                    "The compiler finds a {name} elsewhere, but {} has none: parts of one \
                     installation are used together.",
                    layout.described()
                ));
            }
            _ if trial.ok => {}
            Some(path) => {
                attempt.outcome = Outcome::Rejected;
                attempt.meaning = Some(why_not::of_header(path, &trial.completed.stderr));
            }
            None => {
                attempt.outcome = Outcome::Absent;
                attempt.meaning = Some(if layout.is_scoped() {
                    format!("There is no {name} in the installation.")
                } else {
                    format!("The compiler finds no {name} by itself.")
                });
            }
        }
        let yes = trial.ok && !elsewhere;
        let mut attempts = vec![attempt];
        if !yes && place.is_none() {
            attempts.extend(layout.looked_for_headers.iter().map(|dir| absent(dir.join(name))));
        }
        let mut answer = Answer { elsewhere, ..self.answer(&trial, yes, attempts) };
        if let Some(hint) = why_not::header_hint(&answer.check, layout, &trial.completed.stderr) {
            answer.check.evidence.hint = Some(hint);
        }
        answer
    }

    fn link(&self, libraries: &[&str], sink: &mut dyn Sink) -> Answer {
        let ground = self.ground;
        let name = libraries.first().copied().unwrap_or_default();
        let trial = self.compiler.link(
            self.host,
            sink,
            &self.source(),
            &ground.cflags(),
            &ground.ldflags(),
            &ground.libs(libraries),
        );
        let library = taken(&trial.completed.stdout, name);
        let word = ground.layout.link_word(name);
        let mut attempt = tried(format!("link `{}` with {word}", symbol(self.probe)), &trial);
        attempt.place.clone_from(&library);
        let outside = trial.ok && !DRIVER_LIBRARIES.contains(&name) && self.is_outside(&library);
        let mut attempts = Vec::new();
        let mut hint = None;
        if outside {
            attempt.outcome = Outcome::Rejected;
            attempt.meaning = Some(
                "The linker takes it from elsewhere: parts of one installation are used together."
                    .to_owned(),
            );
        } else if !trial.ok {
            let failed = why_not::Link {
                name,
                symbol: symbol(self.probe),
                layout: &ground.layout,
                machine: &self.compiler.machine,
                triple: &self.compiler.identity.target,
                trace: &trial.completed.stdout,
            };
            attempts = failed.explain(&mut attempt);
            hint = failed.hint();
        }
        attempts.insert(0, attempt);
        let mut answer = self.answer(&trial, trial.ok && !outside, attempts);
        if answer.check.verdict == Verdict::No && hint.is_some() {
            answer.check.evidence.hint = hint;
        }
        if let Some(path) = library.as_ref().filter(|_| answer.check.verdict.is_yes()) {
            let class = classify(path, &self.compiler.machine);
            answer.check.detail = match (class, ground.layout.versioned_name(name)) {
                (LibraryClass::Stub, _) => Some("stub".to_owned()),
                (_, Some(file)) => file.file_name().map(str::to_owned),
                _ => None,
            };
        }
        let libc = c_library(&trial.completed.stdout);
        Answer { elsewhere: outside, library, libc, ..answer }
    }

    /// Whether the linker took a file that is not the installation's.
    fn is_outside(&self, library: &Option<Utf8PathBuf>) -> bool {
        let layout = &self.ground.layout;
        let dirs = layout.link_dirs();
        let parent = library.as_ref().and_then(|path| path.parent());
        match parent {
            _ if layout.looked_for_libraries.is_empty() => false,
            Some(parent) => !dirs.iter().any(|dir| same_dir(dir, parent)),
            // The linker does not say: then what lies there decides.
            None => dirs.is_empty(),
        }
    }

    fn declaration(&self, sink: &mut dyn Sink) -> Answer {
        let flags = self.ground.cflags();
        let trial = self.compiler.check_syntax(self.host, sink, &self.source(), &flags);
        let mut attempt = tried(format!("compile probes/{}", self.probe.file), &trial);
        if !trial.ok {
            attempt.outcome = Outcome::Rejected;
            attempt.meaning = Some("The headers do not have what the probe uses.".to_owned());
        }
        let warned = trial.ok
            && trial.completed.stderr.contains("warning:")
            && flags.iter().any(|flag| flag == "-Werror");
        Answer { warned, ..self.answer(&trial, trial.ok, vec![attempt]) }
    }

    fn nvcc(&self, sink: &mut dyn Sink) -> Answer {
        let mut attempts = Vec::new();
        let mut release = None;
        let mut idle_nvcc = false;
        let mut hint = None;
        for command in &self.ground.nvcc {
            let Ok(dir) = self.compiler.scratch_dir() else { break };
            let flags = self.ground.nvcc_flags();
            let setting = nvcc::Setting {
                dir: &dir,
                cwd: &self.host.cwd,
                flags: &flags,
                time_limit: self.compiler.time_limit().max(crate::host::process::TIME_LIMIT),
                known: self.compiler.known(),
            };
            let mut answer = nvcc::ask(command, &self.source(), &setting, self.host, sink);
            attempts.append(&mut answer.attempts);
            release = release.or(answer.release);
            idle_nvcc |= answer.idle;
            hint = hint.or(answer.hint.take());
            if let Some(identity) = answer.identity {
                let mut check = self.check(Verdict::Yes, attempts);
                check.detail = Some(command.join(" "));
                check.detail_is_answer = true;
                let nvcc = Some(identity);
                return Answer { nvcc, nvcc_release: release, ..plain(check) };
            }
        }
        if attempts.is_empty() {
            let place = self.ground.layout.nvcc.first().cloned();
            attempts.push(Attempt {
                what: "look for nvcc".to_owned(),
                place,
                command: None,
                said: None,
                outcome: Outcome::Absent,
                meaning: Some("There is no nvcc that may be executed.".to_owned()),
            });
        }
        let is_there = attempts.iter().any(|attempt| attempt.outcome != Outcome::Absent);
        let mut check = self.check(Verdict::No, attempts);
        if is_there {
            // To install the nvcc that is there already helps nobody.
            check.evidence.hint = hint.or_else(|| {
                let flags = if release.is_some() { FLAGS_OF_NVCC } else { "" };
                Some(format!("{flags}{OTHER_NVCC}"))
            });
        }
        Answer { nvcc_release: release, idle_nvcc, ..plain(check) }
    }

    fn check(&self, verdict: Verdict, attempts: Vec<Attempt>) -> Check {
        let hint = (verdict == Verdict::No)
            .then(|| hints::for_probe(self.probe.id, &self.ground.layout, self.compiler, self.host))
            .flatten();
        Check {
            id: self.probe.id.to_owned(),
            label: self.probe.label.to_owned(),
            family: self.probe.family,
            component: self.probe.component,
            verdict,
            detail: None,
            detail_is_answer: false,
            evidence: Evidence { attempts, hint },
            preset: None,
            cached: false,
        }
    }

    /// The answer to a compiler run; a fault of the compiler is never a "no".
    fn answer(&self, trial: &Trial, yes: bool, mut attempts: Vec<Attempt>) -> Answer {
        if let Some(fault) = trial.fault() {
            if let Some(first) = attempts.first_mut() {
                first.outcome = Outcome::Failed;
                first.meaning = Some(format!("Nothing was learnt: {fault}."));
            }
            let mut check = self.check(Verdict::Broken, attempts);
            check.detail = Some(fault);
            return plain(check);
        }
        plain(self.check(if yes { Verdict::Yes } else { Verdict::No }, attempts))
    }
}

/// The symbol that a link question is about, as its label says it.
pub(super) fn symbol(probe: &Probe) -> &'static str {
    probe.label.split(' ').nth(1).unwrap_or_default()
}

/// The line without what the compiler guesses was meant: that depends on what
/// else was read.
fn without_guess(line: String) -> String {
    match line.find("; did you mean") {
        Some(at) => line[..at].to_owned(),
        None => line,
    }
}

/// An answer that shows nothing besides.
fn plain(check: Check) -> Answer {
    Answer {
        check,
        elsewhere: false,
        library: None,
        libc: None,
        nvcc: None,
        nvcc_release: None,
        idle_nvcc: false,
        warned: false,
    }
}

/// What a compiler run says about itself.
fn tried(what: String, trial: &Trial) -> Attempt {
    Attempt {
        what,
        place: None,
        command: Some(trial.command()),
        said: if trial.ok { None } else { trial.first_error_line().map(without_guess) },
        outcome: if trial.ok { Outcome::Satisfied } else { Outcome::Rejected },
        meaning: None,
    }
}

/// A file that was looked for and is not there.
pub(super) fn absent(place: Utf8PathBuf) -> Attempt {
    Attempt {
        what: "look for the file".to_owned(),
        place: Some(place),
        command: None,
        said: None,
        outcome: Outcome::Absent,
        meaning: None,
    }
}
