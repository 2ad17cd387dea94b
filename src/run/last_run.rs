//! The last run in a build directory, for `--recheck`: its arguments, the
//! variables that it took from the environment, and where it was started.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::{
    cli::{self, Parsed, Typed},
    error::{Code, Error},
    host::{Host, fs},
    request::{STATE_DIR, Variable},
};

/// Its file, in the state directory.
const FILE: &str = "last-run.json";

/// The version of its form.
const FORMAT: u32 = 1;

/// The options that may come with `--recheck`: they say how to run, not what
/// is wanted.
const WITH_RECHECK: &[&str] =
    &["recheck", "build-dir", "quiet", "no-build", "no-cache", "probe-mode", "rebuild", "offline"];

/// A word that may be any bytes; nearly always it is text, and then the file
/// can be read by people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Word {
    fn new(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(word.as_bytes().to_vec()),
        }
    }

    fn into_os(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// What is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastRun {
    format: u32,
    cwd: Utf8PathBuf,
    arguments: Vec<Word>,
    /// The variables from the environment that arguments could have given.
    environment: BTreeMap<String, Word>,
}

impl LastRun {
    /// What is to be kept of this run.
    pub(super) fn of(typed: &Typed, host: &Host) -> Self {
        let environment = Variable::ALL
            .into_iter()
            .filter_map(|variable| {
                let value = host.env.get_os(variable.name())?;
                Some((variable.name().to_owned(), Word::new(value)))
            })
            .collect();
        Self {
            format: FORMAT,
            cwd: host.cwd.clone(),
            arguments: typed.arguments.iter().map(|argument| Word::new(argument)).collect(),
            environment,
        }
    }

    /// Keeps it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn write(&self, state_dir: &Utf8Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(Code::Internal, "the command line cannot be kept").said(error.to_string())
        })?;
        fs::write_if_changed(&state_dir.join(FILE), (text + "\n").as_bytes(), 0o644).map(drop)
    }

    /// The last run in this build directory.
    ///
    /// # Errors
    ///
    /// There was none, or what was kept of it cannot be read.
    pub(super) fn read(build_dir: &Utf8Path) -> Result<Self, Error> {
        let nothing = |what: String| {
            Error::new(Code::NothingToRecheck, what)
                .hint("Run `ucx-configure` with the options that you want, or name the build directory with `-B DIR`.")
        };
        let path = build_dir.join(STATE_DIR).join(FILE);
        if fs::kind(path.as_std_path()) != fs::Kind::File {
            return Err(nothing(format!("`--recheck`: there was no run in `{build_dir}` yet")));
        }
        let text = fs::read_to_string(&path)?;
        match serde_json::from_str::<Self>(&text) {
            Ok(run) if run.format == FORMAT => Ok(run),
            Ok(run) => Err(nothing(format!(
                "`--recheck`: `{path}` was written by another version of this program"
            ))
            .means(format!("Its format is {}, and this one reads {FORMAT}.", run.format))),
            Err(error) => {
                Err(nothing(format!("`--recheck`: `{path}` cannot be read"))
                    .said(error.to_string()))
            }
        }
    }

    /// The command line that repeats it, with the few options of now that say
    /// how to run, and the machine as it was seen then.
    ///
    /// # Errors
    ///
    /// Options were given that say what is wanted.
    pub(super) fn repeat(
        self,
        now: &Typed,
        build_dir: Utf8PathBuf,
        host: Host,
    ) -> Result<(Typed, Host), Error> {
        refuse_wishes(now)?;
        let then: Vec<OsString> = self.arguments.into_iter().map(Word::into_os).collect();
        let Parsed::Run(mut typed) = cli::parse(&then)? else {
            return Err(Error::new(Code::Internal, "what was kept of the last run is not a run"));
        };
        typed.options.build_dir = Some(build_dir.into_string().into());
        typed.options.quiet |= now.options.quiet;
        typed.options.no_build |= now.options.no_build;
        typed.options.no_cache |= now.options.no_cache;
        typed.options.offline |= now.options.offline;
        // Of the moment: the last run's wish is not repeated.
        typed.options.rebuild = now.options.rebuild;
        if now.options.probe_mode.is_some() {
            typed.options.probe_mode.clone_from(&now.options.probe_mode);
        }
        let host = host.at(self.cwd).map_err(|error| {
            error
                .means("The last run was started there; relative directories begin there.")
                .hint("Run without `--recheck`, with all the options that you want.")
        })?;
        // What was not set then is not to come from the environment of now.
        let mut env = host.env.without(Variable::ALL.into_iter().map(Variable::name));
        for (name, value) in self.environment {
            env = env.with(name, value.into_os());
        }
        Ok((*typed, Host { env, ..host }))
    }
}

fn refuse_wishes(now: &Typed) -> Result<(), Error> {
    let option = now
        .occurrences
        .keys()
        .find(|name| !WITH_RECHECK.contains(&name.as_str()))
        .map(|name| format!("--{name}"));
    let variable = now.assignments.first().map(|(name, _)| name.clone());
    let foreign = now.foreign.first().cloned();
    match option.or(variable).or(foreign) {
        None => Ok(()),
        Some(wish) => Err(Error::new(
            Code::Usage,
            format!("`--recheck` repeats the last run, and `{wish}` would change it"),
        )
        .means("`-B`, `-q`, `--no-build`, `--no-cache`, `--probe-mode`, `--rebuild` and `--offline` may come with it.")
        .hint("Run without `--recheck`, with all the options that you want.")),
    }
}
