//! The environment, read once.

#![expect(clippy::disallowed_methods, reason = "this is the gate to the environment")]

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
};

use camino::Utf8PathBuf;

/// Variables that say nothing to a compiler or to cargo: of terminals, sessions, make, and
/// those that a child of ours gets from us.
const NO_MATTER: [&str; 32] = [
    "_",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DISPLAY",
    "EDITOR",
    "HISTFILE",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "MAIL",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "OLDPWD",
    "PAGER",
    "PS1",
    "PWD",
    "SHELL",
    "SHLVL",
    "STY",
    "TERM",
    "TMPDIR",
    "UCX_CONFIGURE_TIME_LIMIT",
    "UCX_CONFIGURE_RUNTIME_SOURCE",
    "USER",
    "VISUAL",
    "WINDOWID",
    "XDG_CACHE_HOME",
];

/// Beginnings of such names.
const NO_MATTER_FROM: [&str; 7] = ["DBUS_", "LC_", "LESS", "SSH_", "TMUX", "VTE_", "XDG_SESSION"];

/// The environment as it was when the program started.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    variables: BTreeMap<OsString, OsString>,
}

impl Snapshot {
    /// Reads the process's environment.
    pub fn take() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// An environment of one's own, for tests.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            variables: pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        }
    }

    /// The same environment without some variables.
    #[must_use]
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        for name in names {
            self.variables.remove(OsStr::new(name));
        }
        self
    }

    /// The same environment with one variable set.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The value of a variable, if it is set and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name)).and_then(|value| value.to_str())
    }

    /// The value of a variable, if it is set, whatever its bytes.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Every variable, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(key, value)| (key.as_os_str(), value.as_os_str()))
    }

    /// The variables that a compiler or cargo may look at: all, except those
    /// that are known to say nothing to them.
    pub fn that_matter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.iter().filter(|(name, _)| {
            !name.to_str().is_some_and(|name| {
                NO_MATTER.contains(&name)
                    || NO_MATTER_FROM.iter().any(|from| name.starts_with(from))
            })
        })
    }

    /// The directories of PATH, those that are not absolute left out: what is
    /// found must not depend on where a user happens to stand.
    pub fn path_dirs(&self) -> Vec<Utf8PathBuf> {
        let Some(path) = self.get_os("PATH") else { return Vec::new() };
        std::env::split_paths(path)
            .filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok())
            .filter(|dir| dir.is_absolute())
            .collect()
    }
}

/// The arguments of the process, the program's name left out.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

/// The path of this program.
///
/// # Errors
///
/// The system cannot tell.
pub fn current_exe() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}

/// The working directory.
///
/// # Errors
///
/// It does not exist, or is not UTF-8.
pub fn current_dir() -> io::Result<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(std::env::current_dir()?).map_err(|path| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} is not UTF-8", path.display()))
    })
}

/// Changes the working directory.
///
/// # Errors
///
/// It cannot be entered.
pub fn set_current_dir(dir: &camino::Utf8Path) -> io::Result<()> {
    std::env::set_current_dir(dir)
}
