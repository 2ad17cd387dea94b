//! nvcc: identified by what it says of itself, and by a dry run; then put to
//! work on a small kernel with the flags that a build would use.
//!
//! A script that exits with 0 is not nvcc, and an nvcc that cannot find its
//! host compiler is of no use.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    compiler::{Source, Trial},
    diagnostics::{first_error_line, tidy},
    host_compiler,
    identity::{Facts, Kind, QUESTION},
    known::{self, Known},
};
use crate::{
    discover::pc,
    env_vars,
    error::Error,
    host::{
        Host, fs,
        process::{Completed, Invocation, find_program},
    },
    model::{Attempt, CudaVersion, Outcome, ToolIdentity},
    ui::{Event, Sink},
};

/// What asking nvcc came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NvccAnswer {
    /// Who it is, if it works.
    pub identity: Option<ToolIdentity>,
    /// The release it says it is of.
    pub release: Option<CudaVersion>,
    /// It exits with 0 and does nothing of what it was asked.
    pub idle: bool,
    /// What was tried.
    pub attempts: Vec<Attempt>,
    /// What to do, where that is known.
    pub hint: Option<String>,
}

/// How nvcc is to be run.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// A directory of one's own.
    pub dir: &'a Utf8Path,
    /// The working directory, for relative flags.
    pub cwd: &'a Utf8Path,
    /// Flags for the compilation.
    pub flags: &'a [String],
    /// How long one run may take.
    pub time_limit: std::time::Duration,
    /// What is known already.
    pub known: Option<&'a Known>,
}

/// Asks one nvcc: its version, its dry run, a compilation; the first failure
/// ends it.
pub fn ask(
    command: &[String],
    source: &Source<'_>,
    setting: &Setting<'_>,
    host: &Host,
    sink: &mut dyn Sink,
) -> NvccAnswer {
    let mut answer = NvccAnswer::default();
    let mut bench = Bench { command, source, setting, host, sink };
    let version = bench.run(vec!["--version".to_owned()], false).completed;
    let release = release(&version.stdout).filter(|_| version.success());
    answer.attempts.push(attempt(
        "ask nvcc for its version",
        &version,
        release.is_some(),
        "It does not say which release of nvcc it is: it is not nvcc.",
    ));
    answer.idle = version.success() && release.is_none();
    let Some((release, full)) = release else { return answer };
    answer.release = Some(release);
    if let Err(error) = bench.write() {
        answer.attempts.push(Attempt {
            what: "write the source for nvcc".to_owned(),
            place: None,
            command: None,
            said: error.said,
            outcome: Outcome::Failed,
            meaning: Some(error.what),
        });
        return answer;
    }
    if let Some(target) = bench.compile(&mut answer) {
        answer.identity = Some(ToolIdentity {
            command: command.to_vec(),
            kind: "nvcc".to_owned(),
            version: full,
            target,
        });
    }
    answer
}

/// Where an nvcc takes headers from, and where it says that it is at home: what
/// its dry run names, links and wrappers seen through. Nothing is compiled.
pub fn home(
    command: &[String],
    source: &Source<'_>,
    setting: &Setting<'_>,
    host: &Host,
    sink: &mut dyn Sink,
) -> Vec<Utf8PathBuf> {
    let mut bench = Bench { command, source, setting, host, sink };
    if bench.write().is_err() {
        return Vec::new();
    }
    let file = format!("{}/{}", setting.dir, bench.file());
    let plan = bench.run(vec!["--dryrun".to_owned(), "-c".to_owned(), file], true).completed;
    if !plan.success() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for root in roots(&plan.stderr).into_iter().chain(roots(&plan.stdout)) {
        let root = fs::canonical(&root).unwrap_or(root);
        if !found.contains(&root) {
            found.push(root);
        }
    }
    found
}

/// The roots that a plan names: above its directories for headers, and `TOP`.
fn roots(plan: &str) -> Vec<Utf8PathBuf> {
    let value = |name: &str| {
        let mut values =
            plan.lines().filter_map(|line| line.strip_prefix("#$ ")?.strip_prefix(name));
        values.rfind(|text| !text.trim().is_empty()).unwrap_or_default()
    };
    let includes = shlex::split(value("INCLUDES=")).unwrap_or_default();
    let dirs = includes.iter().filter_map(|word| word.strip_prefix("-I"));
    let above = dirs.filter_map(|dir| pc::root(Utf8Path::new(dir)).map(Utf8Path::to_owned));
    let top = value("TOP=").trim();
    let top = (!top.is_empty()).then(|| Utf8PathBuf::from(top));
    above.chain(top).filter(|dir| dir.is_absolute()).collect()
}

/// One nvcc at work on one source.
struct Bench<'a> {
    command: &'a [String],
    source: &'a Source<'a>,
    setting: &'a Setting<'a>,
    host: &'a Host,
    sink: &'a mut dyn Sink,
}

impl Bench<'_> {
    fn file(&self) -> String {
        self.source.name.replace('/', "-")
    }

    fn write(&self) -> Result<(), Error> {
        let file = self.setting.dir.join(self.file());
        fs::write_if_changed(&file, self.source.text.as_bytes(), 0o644).map(|_| ())
    }

    fn run(&mut self, args: Vec<String>, with_source: bool) -> Trial {
        self.run_command(self.command, args, with_source)
    }

    /// Runs it; what is told and kept has no scratch directory in it.
    fn run_command(&mut self, command: &[String], args: Vec<String>, with_source: bool) -> Trial {
        let prefix = format!("{}/", self.setting.dir);
        let build = |args: Vec<String>| {
            Invocation::new(command.first().cloned().unwrap_or_default())
                .args(command.iter().skip(1).cloned())
                .args(args)
                .cwd(self.setting.cwd)
                .time_limit(self.setting.time_limit)
        };
        let plain: Vec<String> = args.iter().map(|arg| arg.replace(&prefix, "")).collect();
        let words = command.iter().chain(&plain).map(String::as_str);
        let key = known::key(words.chain(["\0", self.source.text]));
        let known = self.setting.known.and_then(|known| known.trial(&key, || build(plain.clone())));
        let is_known = known.is_some();
        let trial = known.unwrap_or_else(|| {
            let done = self.start(command, build(args));
            let completed = Completed {
                invocation: build(plain),
                stdout: tidy(&done.stdout, &prefix),
                stderr: tidy(&done.stderr, &prefix),
                ..done
            };
            let there = self.setting.dir.join("probe.o").is_file();
            Trial { ok: completed.success() && there, completed }
        });
        if let Some(known) = self.setting.known.filter(|_| !is_known) {
            known.keep(key.clone(), &trial);
        }
        let is_told = |known: &Known| self.sink.listens() && known.is_to_be_told(&key);
        if self.setting.known.is_none_or(is_told) {
            let file = self.file();
            let source = with_source.then_some((file.as_str(), self.source.text));
            self.sink.event(&Event::Ran { completed: &trial.completed, source });
        }
        trial
    }

    /// Starts it; where answers are kept, it says what it reads.
    fn start(&self, command: &[String], mut invocation: Invocation) -> Completed {
        let Some(known) = self.setting.known.filter(|known| known.records()) else {
            return self.host.runner.run(invocation);
        };
        let compiles = invocation.args.iter().any(|arg| arg == "-c")
            && !invocation.args.iter().any(|arg| arg == "--dryrun");
        let file = self.setting.dir.join("probe.d");
        if compiles {
            invocation = invocation.args(["-MD", "-MF", file.as_str()]);
        }
        let since = std::time::SystemTime::now();
        let done = self.host.runner.run(invocation);
        known.record(|reads| {
            reads.nvcc(command, &self.host.env.path_dirs(), since);
            let text = fs::read_to_string(&file).unwrap_or_default();
            reads.dependencies(&text, self.setting.cwd, self.setting.dir.as_str(), since);
            if compiles && text.is_empty() {
                reads.give_up("nvcc does not say what it read");
            }
        });
        done
    }

    /// The dry run, then the compilation; what the dry run calls the target.
    fn compile(&mut self, answer: &mut NvccAnswer) -> Option<String> {
        let prefix = format!("{}/", self.setting.dir);
        let mut compile: Vec<String> =
            vec!["-c".to_owned(), "-o".to_owned(), format!("{prefix}probe.o")];
        compile.extend(self.setting.flags.iter().cloned());
        compile.push(format!("{prefix}{}", self.file()));
        let mut dry = vec!["--dryrun".to_owned()];
        dry.extend(compile.iter().cloned());
        let plan = self.run(dry, true).completed;
        let plans = plan.success() && is_plan(&plan.stderr, &plan.stdout);
        answer.attempts.push(attempt(
            "ask nvcc for its plan (`--dryrun`)",
            &plan,
            plans,
            "It does not say what it would run: it, or a part of it, is missing or is not nvcc.",
        ));
        answer.idle = plan.success() && !plans;
        if !plans {
            return None;
        }
        let Trial { ok: made, completed: done } = self.run(compile, true);
        // What nvcc says itself counts before what a table knows of it.
        let refused = host_compiler::refused(&done.stderr).filter(|_| !made);
        if let Some((attempt, hint)) =
            answer.release.filter(|_| !made).and_then(|it| self.too_new(it))
        {
            answer.attempts.push(attempt);
            answer.hint = Some(hint);
        }
        let meaning = match refused {
            Some(newest) => {
                answer.hint = Some(self.older(Kind::Gcc, newest));
                format!("It takes gcc up to {newest}, and its host compiler is a newer one.")
            }
            None => "It does not compile a kernel.".to_owned(),
        };
        answer.attempts.push(attempt("compile a kernel", &done, made, &meaning));
        answer.idle = done.success() && !made;
        made.then(|| target(&plan.stderr, &plan.stdout))
    }
}

impl Bench<'_> {
    /// Whether the host compiler is newer than nvcc takes: that is said before
    /// nvcc's own words, which are many.
    fn too_new(&mut self, release: CudaVersion) -> Option<(Attempt, String)> {
        let limit = host_compiler::of(release)?;
        let words: Vec<String> = self.command.iter().chain(self.setting.flags).cloned().collect();
        let variable = self.host.env.get(env_vars::NVCC_CCBIN);
        let named = host_compiler::named(&words, variable);
        let program = match Utf8Path::new(&named).is_dir() {
            true => Utf8Path::new(&named).join("gcc").into_string(),
            false => named,
        };
        let question = self.setting.dir.join("host.c");
        fs::write_if_changed(&question, QUESTION.as_bytes(), 0o644).ok()?;
        let args = ["-E", "-x", "c", question.as_str()].map(str::to_owned);
        let done = self.run_command(std::slice::from_ref(&program), args.into(), false).completed;
        let facts = Facts::parse(&done.stdout)?;
        let newest = limit.newest(facts.kind)?;
        let major: u32 = facts.version.split('.').next()?.parse().ok()?;
        if major <= newest {
            return None;
        }
        let (kind, version) = (facts.kind.name(), &facts.version);
        let mut attempt = attempt("look at nvcc's host compiler", &done, true, "");
        attempt.outcome = Outcome::Rejected;
        attempt.meaning = Some(format!(
            "nvcc {release} takes {kind} up to {newest}, and its host compiler `{program}` is {kind} {version}."
        ));
        Some((attempt, self.older(facts.kind, newest)))
    }

    /// What to do where the newest host compiler that it takes is this one.
    fn older(&self, kind: Kind, newest: u32) -> String {
        let kind = kind.name();
        let dirs = self.host.env.path_dirs();
        let older = (newest.saturating_sub(4)..=newest)
            .rev()
            .map(|major| format!("{kind}-{major}"))
            .find(|name| find_program(name, &dirs).0.is_some());
        match older {
            Some(older) => format!("Write `NVCCFLAGS=-ccbin={older}`."),
            None => format!(
                "Install {kind} {newest} or older, and name it: `NVCCFLAGS=-ccbin={kind}-{newest}`."
            ),
        }
    }
}

fn attempt(what: &str, done: &Completed, good: bool, meaning: &str) -> Attempt {
    let command = Invocation { cwd: None, ..done.invocation.clone() };
    let said = first_error_line(&done.stderr).or_else(|| first_error_line(&done.stdout));
    let ended = match done.success() {
        true => meaning.to_owned(),
        false => format!("{} ({}).", meaning.trim_end_matches('.'), done.status),
    };
    Attempt {
        what: what.to_owned(),
        place: Some(Utf8PathBuf::from(&done.invocation.program)),
        command: Some(command.to_string()),
        said: if good { None } else { said },
        outcome: if good { Outcome::Satisfied } else { Outcome::Rejected },
        meaning: (!good).then_some(ended),
    }
}

/// The release and the full version in the text of `nvcc --version`.
fn release(text: &str) -> Option<(CudaVersion, String)> {
    // Cuda compilation tools, release 12.5, V12.5.82
    let line = text.lines().find(|line| line.contains("release "))?;
    let release = line.split("release ").nth(1)?.split(',').next()?.trim().parse().ok()?;
    let full = line.rsplit_once(", V").map(|(_, full)| full.trim().to_owned());
    Some((release, full.unwrap_or_else(|| format!("{release}"))))
}

/// Whether a dry run's text is one: nvcc marks its lines with `#$ `.
fn is_plan(stderr: &str, stdout: &str) -> bool {
    stderr.lines().chain(stdout.lines()).any(|line| line.starts_with("#$ "))
}

/// The machine that nvcc compiles for, as the dry run names it: a directory
/// below `targets`, or how wide an address is. Both have a first, empty line.
fn target(stderr: &str, stdout: &str) -> String {
    let value = |name: &str| {
        let lines = stderr.lines().chain(stdout.lines());
        let values = lines.filter_map(|line| line.strip_prefix("#$ ")?.strip_prefix(name));
        values.map(str::trim).find(|value| !value.is_empty()).map(str::to_owned)
    };
    value("_TARGET_DIR_=targets/")
        .or_else(|| value("_TARGET_SIZE_=").map(|size| format!("{size}-bit")))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_nvcc_says() {
        let text = "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\nBuilt on Thu_Jun__6_02:18:23_PDT_2024\nCuda compilation tools, release 12.5, V12.5.82\nBuild cuda_12.5.r12.5/compiler.34385749_0\n";
        assert_eq!(release(text), Some((CudaVersion::new(12, 5), "12.5.82".to_owned())));
        assert_eq!(release(""), None);
        assert_eq!(release("release notes"), None);
        assert!(is_plan("#$ _SPACE_= \n#$ _CUDART_=cudart\n", ""));
        assert!(!is_plan("would do a lot\n", ""));
        let plan = "#$ _TARGET_SIZE_=\n#$ _TARGET_DIR_=\n#$ _TARGET_SIZE_=64\n";
        assert_eq!(target(plan, ""), "64-bit");
        assert_eq!(target("", "#$ _TARGET_DIR_=targets/x86_64-linux\n"), "x86_64-linux");
        assert_eq!(target("", ""), "");
        let plan = "#$ TOP=\n#$ INCLUDES=\n#$ TOP=/c/bin/..\n#$ INCLUDES=\"-I/c/bin/../targets/x86_64-linux/include\"  \n";
        assert_eq!(roots(plan), ["/c/bin/..", "/c/bin/.."]);
        assert_eq!(roots("#$ INCLUDES=\"-I/a b/include\"\n"), ["/a b"]);
        assert!(roots("#$ TOP=relative\n").is_empty() && roots("").is_empty());
    }
}
