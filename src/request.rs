//! What the user wants, resolved: no strings that mean several things, and
//! every value knows where it came from.
//!
//! `cli` says what was typed; this says what is meant. Making a request has no
//! side effects: it may look at the environment snapshot, at whether a
//! directory exists, and into the file of `--answers`, nothing more.

mod directories;
mod given;
mod parts;
mod remarks;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

pub use crate::discover::Parts as CudaParts;

pub use self::{
    given::{Answers, Given},
    resolve::{Link, Resolved, STATE_DIR, build_dir, given_dirs, resolve, time_limit},
};

use crate::model::{CudaVersion, GdrVersion, Mode};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// An argument, as typed.
    Argument(String),
    /// An environment variable.
    Environment(String),
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

impl<T> Sourced<T> {
    /// A value that nobody gave.
    pub const fn default_value(value: T) -> Self {
        Self { value, source: Source::Default }
    }
}

/// Where something is to be taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location<V> {
    /// A directory, as typed. Strict answers use its absolute form; compat
    /// answers keep what was typed, as the original does.
    Dir(Utf8PathBuf),
    /// Our embedded stub of that version.
    Stub(V),
    /// NVIDIA's wheels of that version.
    Wheel(V),
}

/// A wish for a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want<V> {
    /// `--without-X`, `--with-X=no`.
    No,
    /// Nothing said, or `guess`: take it if it is there.
    Guess,
    /// `--with-X`, `--with-X=yes`: it has to be there.
    Yes,
    /// `--with-X=` without a value: an error, except in compat mode.
    Empty,
    /// `--with-X=DIR` and the like: it has to be there.
    At(Location<V>),
}

impl<V> Want<V> {
    /// Whether its absence is an error.
    pub const fn is_demand(&self) -> bool {
        matches!(self, Self::Yes | Self::Empty | Self::At(_))
    }
}

/// The variables that a configure takes from the environment or as
/// `NAME=VALUE`; the argument wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The C compiler, wrapper and flags included.
    Cc,
    /// Preprocessor flags.
    Cppflags,
    /// Compiler flags.
    Cflags,
    /// Linker flags.
    Ldflags,
    /// Libraries.
    Libs,
    /// The CUDA compiler.
    Nvcc,
    /// Its flags.
    Nvccflags,
}

impl Variable {
    /// Every variable.
    pub const ALL: [Self; 7] = [
        Self::Cc,
        Self::Cppflags,
        Self::Cflags,
        Self::Ldflags,
        Self::Libs,
        Self::Nvcc,
        Self::Nvccflags,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cc => "CC",
            Self::Cppflags => "CPPFLAGS",
            Self::Cflags => "CFLAGS",
            Self::Ldflags => "LDFLAGS",
            Self::Libs => "LIBS",
            Self::Nvcc => "NVCC",
            Self::Nvccflags => "NVCCFLAGS",
        }
    }

    /// What it is, for the help text.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Cc => "C compiler command, a wrapper such as ccache included",
            Self::Cppflags => "C preprocessor flags, such as -I DIR",
            Self::Cflags => "C compiler flags",
            Self::Ldflags => "linker flags, such as -L DIR",
            Self::Libs => "libraries to pass to the linker",
            Self::Nvcc => "CUDA compiler",
            Self::Nvccflags => "CUDA compiler flags",
        }
    }
}

/// Where hook-runtime's bindings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bindings {
    /// Those kept in the crate: reproducible.
    Kept,
    /// bindgen over the found headers.
    Generate,
}

/// How questions are put to the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeMode {
    /// One run answers as many as it can; what stays unclear is asked alone.
    Batch,
    /// Each by a run of its own.
    Single,
}

/// Everything that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Strict, or as UCX v1.19.0 does it.
    pub mode: Mode,
    /// The arguments as typed, for the report and `--recheck`.
    pub command_line: Vec<String>,
    /// CUDA.
    pub cuda: Sourced<Want<CudaVersion>>,
    /// `--with-cuda-include` and its like.
    pub cuda_parts: CudaParts,
    /// `--max-driver`: the newest driver branch that may be needed.
    pub max_driver: Option<u32>,
    /// gdrcopy.
    pub gdrcopy: Sourced<Want<GdrVersion>>,
    /// `--with-gdrcopy-libdir`.
    pub gdrcopy_libdir: Option<Sourced<Utf8PathBuf>>,
    /// `--with-iodemo-cuda`.
    pub iodemo_cuda: bool,
    /// False with `--disable-bistro`.
    pub bistro: bool,
    /// CC and its like. A variable that is set and empty is here with an
    /// empty value; one that is not set is not here.
    pub variables: BTreeMap<Variable, Sourced<String>>,
    /// `--host`.
    pub host: Option<String>,
    /// `--build`.
    pub build: Option<String>,
    /// The installation directories, in autoconf's names, unexpanded
    /// (`${prefix}/lib`), defaults included.
    pub install_dirs: BTreeMap<String, String>,
    /// `-B`, absolute.
    pub build_dir: Utf8PathBuf,
    /// Where state between runs may be kept (`BUILD/.ucx-configure`); none
    /// when nothing may be written, as with `check`.
    pub state_dir: Option<Utf8PathBuf>,
    /// False with `--no-build`.
    pub build_runtime: bool,
    /// False with `--no-cache`.
    pub cache: bool,
    /// `--probe-mode`; compat mode always asks one by one.
    pub probe_mode: ProbeMode,
    /// True with `--rebuild`: hook-runtime is built even if it is up to date.
    pub rebuild: bool,
    /// `--bindings`.
    pub bindings: Bindings,
    /// Pass `--offline` to cargo.
    pub offline: bool,
    /// `-q`.
    pub quiet: bool,
    /// `--answers`: what is given instead of found out.
    pub given: Answers,
    /// What is to be said before anything else: options given twice, options
    /// of UCX that are not ours, and the like.
    pub remarks: Vec<Remark>,
}

/// Something to say about the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// A warning, with its code.
    Warning(&'static str, String),
    /// A note, with its code.
    Note(&'static str, String),
}

impl Request {
    /// What an empty command line means, except that installation directories
    /// are not filled in: a guess in strict mode, nothing written.
    pub fn bare(build_dir: Utf8PathBuf) -> Self {
        Self {
            mode: Mode::Strict,
            command_line: Vec::new(),
            cuda: Sourced::default_value(Want::Guess),
            cuda_parts: CudaParts::default(),
            max_driver: None,
            gdrcopy: Sourced::default_value(Want::Guess),
            gdrcopy_libdir: None,
            iodemo_cuda: false,
            bistro: true,
            variables: BTreeMap::new(),
            host: None,
            build: None,
            install_dirs: BTreeMap::new(),
            build_dir,
            state_dir: None,
            build_runtime: true,
            cache: true,
            probe_mode: ProbeMode::Batch,
            rebuild: false,
            bindings: Bindings::Kept,
            offline: false,
            quiet: false,
            given: Answers::new(),
            remarks: Vec::new(),
        }
    }

    /// The value of a variable, empty where it is not set.
    pub fn variable(&self, variable: Variable) -> &str {
        self.variables.get(&variable).map_or("", |sourced| sourced.value.as_str())
    }

    /// Whether a variable is set, be it to nothing.
    pub fn is_set(&self, variable: Variable) -> bool {
        self.variables.contains_key(&variable)
    }
}
