//! A machine of one's own: a clean environment, stub toolkits, and copies of
//! them with something changed.

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{
    discover::source::ROOT_VARIABLE,
    engine::{self, Outcome},
    host::{
        Host,
        env::Snapshot,
        fs::{self, Scratch},
        process::Runner,
    },
    model::{Check, CudaVersion, GdrVersion, Verdict},
    probe::Compiler,
    request::{Location, Request, Source, Sourced, Variable, Want},
    toolkit::stub,
    ui::Silent,
};

/// A scratch directory, a request and an environment.
pub(super) struct World {
    pub(super) scratch: Scratch,
    pub(super) request: Request,
    pub(super) env: Vec<(String, String)>,
}

impl World {
    pub(super) fn new() -> Self {
        let scratch = Scratch::new(None).unwrap();
        let empty = scratch.path().join("empty");
        fs::create_dir_all(&empty).unwrap();
        let env = vec![
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            (ROOT_VARIABLE.to_owned(), empty.into_string()),
        ];
        let request = Request::bare(scratch.path().join("build"));
        Self { scratch, request, env }
    }

    /// `--with-cuda=DIR`.
    pub(super) fn on(dir: &Utf8Path) -> Self {
        let mut world = Self::new();
        world.cuda(Want::At(Location::Dir(dir.to_owned())));
        world
    }

    pub(super) fn cuda(&mut self, want: Want<CudaVersion>) {
        let source = Source::Argument("--with-cuda".to_owned());
        self.request.cuda = Sourced { value: want, source };
    }

    pub(super) fn gdrcopy(&mut self, want: Want<GdrVersion>) {
        let source = Source::Argument("--with-gdrcopy".to_owned());
        self.request.gdrcopy = Sourced { value: want, source };
    }

    pub(super) fn set(&mut self, variable: Variable, value: &str) {
        let source = Source::Argument(variable.name().to_owned());
        self.request.variables.insert(variable, Sourced { value: value.to_owned(), source });
    }

    pub(super) fn env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(super) fn path(&self, name: &str) -> Utf8PathBuf {
        self.scratch.path().join(name)
    }

    pub(super) fn host(&self) -> Host {
        let env = Snapshot::from_pairs(self.env.iter().cloned());
        let runner = Runner::with_environment(&env);
        Host { env, cwd: self.scratch.path().to_owned(), runner }
    }

    pub(super) fn run(&self) -> Outcome {
        engine::configure(&self.request, &self.host(), &mut Silent)
    }

    /// An executable file.
    pub(super) fn script(&self, name: &str, text: &str) -> Utf8PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write_if_changed(&path, format!("#!/bin/sh\n{text}\n").as_bytes(), 0o755).unwrap();
        path
    }
}

/// A compiler, for making stubs.
fn compiler(host: &Host) -> Compiler {
    Compiler::find(&Request::bare("/nonexistent".into()), host, &mut Silent).unwrap()
}

fn kept() -> Utf8PathBuf {
    Utf8PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stubs")
}

/// A stub toolkit.
pub(crate) fn toolkit(version: &str) -> Utf8PathBuf {
    let host = Host::real().unwrap();
    let version = version.parse().unwrap();
    stub::materialise(version, &kept(), &compiler(&host), &host, &mut Silent).unwrap()
}

/// A stub gdrcopy.
pub(crate) fn gdrcopy(version: &str) -> Utf8PathBuf {
    let host = Host::real().unwrap();
    let version = version.parse().unwrap();
    stub::materialise_gdrcopy(version, &kept(), &compiler(&host), &host, &mut Silent).unwrap()
}

/// A tree of links to another tree's files, without those whose path is in
/// `without`.
pub(crate) fn copy(from: &Utf8Path, to: &Utf8Path, without: &[&str]) {
    copy_below(from, to, "", without);
}

fn copy_below(from: &Utf8Path, to: &Utf8Path, below: &str, without: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for name in fs::names(from) {
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if without.contains(&path.as_str()) {
            continue;
        }
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy_below(&from, &to, &path, without);
        } else {
            fs::symlink(fs::canonical(&from).unwrap().as_str(), &to).unwrap();
        }
    }
}

/// The check of that name.
pub(super) fn check<'a>(outcome: &'a Outcome, id: &str) -> Option<&'a Check> {
    outcome.report.checks.iter().find(|check| check.id == id)
}

/// Its verdict; skipped where it was not put.
pub(super) fn verdict(outcome: &Outcome, id: &str) -> Verdict {
    check(outcome, id).map_or(Verdict::Skipped, |check| check.verdict)
}

/// The names of the quirks that were told.
pub(super) fn quirks(outcome: &Outcome) -> Vec<&str> {
    outcome.report.differences.iter().map(|difference| difference.quirk.as_str()).collect()
}

/// The value of a define.
pub(super) fn define(outcome: &Outcome, name: &str) -> Option<String> {
    match &outcome.report.answers.define(name).unwrap().value {
        ucx_configure::model::DefineValue::Defined(value) => Some(value.clone()),
        ucx_configure::model::DefineValue::Undefined => None,
    }
}

/// The words of a substitution.
pub(super) fn words(outcome: &Outcome, name: &str) -> Vec<String> {
    match &outcome.report.answers.substitution(name).unwrap().value {
        ucx_configure::model::SubstValue::Words(words) => words.clone(),
        ucx_configure::model::SubstValue::Text(text) => vec![text.clone()],
    }
}
