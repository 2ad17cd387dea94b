//! The only way out: environment, files, processes.
//!
//! Clippy refuses `std::env`, `std::fs` and `Command::new` elsewhere, so that
//! errors carry paths, writes are atomic, and tests can give another world.

pub mod env;
pub mod fs;
pub mod pkg_config;
pub mod process;
pub mod signal;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::{Code, Error};

/// The machine, as one run sees it.
#[derive(Debug)]
pub struct Host {
    /// The environment, as it was at the start.
    pub env: env::Snapshot,
    /// The working directory, absolute.
    pub cwd: Utf8PathBuf,
    /// Starts processes, and counts them.
    pub runner: process::Runner,
}

impl Host {
    /// The real machine.
    ///
    /// # Errors
    ///
    /// The working directory does not exist or is not UTF-8.
    pub fn real() -> Result<Self, Error> {
        let cwd = env::current_dir().map_err(|error| {
            Error::new(Code::Read, "the working directory cannot be read")
                .said(error.to_string())
                .means("It was removed, or its name is not UTF-8, which no makefile can carry.")
                .hint("Change to another directory, and name the build directory with `-B DIR`.")
        })?;
        Ok(Self { env: env::Snapshot::take(), cwd, runner: process::Runner::new() })
    }

    /// The real machine for what has nothing to do with where the user stands.
    pub fn from_nowhere() -> Self {
        let (env, runner) = (env::Snapshot::take(), process::Runner::new());
        Self { env, cwd: Utf8PathBuf::from("/"), runner }
    }

    /// The same machine from another directory, where children then run as
    /// well.
    ///
    /// # Errors
    ///
    /// That directory cannot be entered.
    pub fn at(self, cwd: Utf8PathBuf) -> Result<Self, Error> {
        env::set_current_dir(&cwd).map_err(|error| {
            Error::new(Code::Read, format!("the directory `{cwd}` cannot be entered"))
                .said(error.to_string())
        })?;
        Ok(Self { cwd, ..self })
    }

    /// Makes a path absolute without touching the disk: `..` and symbolic
    /// links stay as they are.
    pub fn absolute(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.cwd.join(path)
    }
}
