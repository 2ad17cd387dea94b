//! Errors in four parts: what failed, what the tool said, what it means, what
//! to do.
//!
//! Each part lives with the error, so that the renderer is generic and stays
//! small. Codes are stable: they are documented in the table [`CODES`], and
//! each has a case under `tests/failing/`.

use std::fmt;

use crate::exit::Exit;

/// An error for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Which kind of error.
    pub code: Code,
    /// What failed: one sentence, lower case, no full stop.
    pub what: String,
    /// The exact command that failed, ready to paste.
    pub command: Option<String>,
    /// What the tool said, its own words.
    pub said: Option<String>,
    /// What it means, or where was looked: a sentence each.
    pub means: Vec<String>,
    /// What to do: a sentence each.
    pub hints: Vec<String>,
    /// What to change in the command line that was typed; whoever shows the
    /// error makes the whole command of it.
    pub remedies: Vec<Remedy>,
}

/// A change to a command line after which it can be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// This argument in the place of those that name the same option or
    /// variable, or besides: `--with-cuda=/usr/local/cuda`, `CC=gcc`.
    Set(String),
    /// Without the arguments that are this, to the letter, or name this
    /// option.
    Drop(String),
}

impl Error {
    /// An error with only its first part.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            command: None,
            said: None,
            means: Vec::new(),
            hints: Vec::new(),
            remedies: Vec::new(),
        }
    }

    /// Adds the command that failed.
    #[must_use]
    pub fn command(mut self, command: impl fmt::Display) -> Self {
        self.command = Some(command.to_string());
        self
    }

    /// Adds what the tool said.
    #[must_use]
    pub fn said(mut self, said: impl Into<String>) -> Self {
        let said = said.into();
        self.said = Some(if said.trim().is_empty() { "(nothing)".to_owned() } else { said });
        self
    }

    /// Adds what it means.
    #[must_use]
    pub fn means(mut self, means: impl Into<String>) -> Self {
        self.means.push(means.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a change to the command line that helps.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// Asks whether an argument was meant, which then is the remedy.
    #[must_use]
    pub fn did_you_mean(self, argument: impl Into<String>) -> Self {
        let argument = argument.into();
        self.hint(format!("Did you mean `{argument}`?")).remedy(Remedy::Set(argument))
    }

    /// The exit code that this error ends a run with.
    pub fn exit(&self) -> Exit {
        self.code.row().exit
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// The stable codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A command line that cannot be used.
    Usage,
    /// An option that is nearly one of ours.
    NearMiss,
    /// `--enable-option-checking=fatal` met an option that is not ours.
    UnknownOption,
    /// `--with-cuda=` without a value, or the like.
    EmptyValue,
    /// A path that cannot be used in a build.
    UnusablePath,
    /// A directory that does not exist.
    NoSuchDirectory,
    /// A toolkit version that we have no stub or wheels for.
    UnknownVersion,
    /// CUDA was asked for and is not there.
    CudaNotMet,
    /// NVML was needed and is not there.
    NvmlNotMet,
    /// gdrcopy was asked for and is not there.
    GdrCopyNotMet,
    /// Something that needs CUDA was asked for without it.
    NeedsCuda,
    /// A `--require` that does not hold.
    RequirementNotMet,
    /// An entry of a matrix failed, or is not as it was recorded.
    MatrixNotMet,
    /// A UCX is where modules would go that it would take for its own.
    WouldBreakUcx,
    /// Something is wrong with a tree of modules.
    TreeNotRight,
    /// No C compiler was found.
    NoCompiler,
    /// The C compiler cannot build an empty program.
    CompilerBroken,
    /// The C compiler is one for another machine than `--host` names.
    WrongCompiler,
    /// cargo was not found.
    NoCargo,
    /// cargo failed.
    BuildFailed,
    /// libclang could not be loaded, or bindgen failed.
    BindingsFailed,
    /// A file could not be read.
    Read,
    /// A file could not be written.
    Write,
    /// A file of that name is there, and it is not ours.
    NotOurs,
    /// Another run works in this build directory.
    Busy,
    /// No pip and no uv.
    NoPip,
    /// Wheels could not be fetched.
    FetchFailed,
    /// A wheel is not what its sum says.
    WrongSum,
    /// `--recheck` without an earlier run.
    NothingToRecheck,
    /// Stopped by a signal.
    Interrupted,
    /// A fault of ours.
    Internal,
}

/// What is known of a code.
#[derive(Debug, Clone, Copy)]
pub struct CodeRow {
    /// Which.
    pub code: Code,
    /// The name that messages show, such as `E0101`.
    pub name: &'static str,
    /// How a run with this error ends.
    pub exit: Exit,
    /// What it is about, one sentence.
    pub doc: &'static str,
}

const fn row(code: Code, name: &'static str, exit: Exit, doc: &'static str) -> CodeRow {
    CodeRow { code, name, exit, doc }
}

/// Every code.
pub const CODES: &[CodeRow] = &[
    row(Code::Usage, "E0101", Exit::Usage, "The command line cannot be used."),
    row(Code::NearMiss, "E0102", Exit::Usage, "An option is nearly, but not quite, one of ours."),
    row(
        Code::UnknownOption,
        "E0103",
        Exit::Usage,
        "Option checking is fatal, and an option is not ours.",
    ),
    row(
        Code::EmptyValue,
        "E0104",
        Exit::Usage,
        "An option has an empty value, which is nearly always an unset variable.",
    ),
    row(
        Code::UnusablePath,
        "E0105",
        Exit::Usage,
        "A path holds characters that no makefile or header can carry.",
    ),
    row(Code::NoSuchDirectory, "E0106", Exit::NotMet, "A directory that was given does not exist."),
    row(
        Code::UnknownVersion,
        "E0107",
        Exit::Usage,
        "There is no stub toolkit, or no wheels, of that version.",
    ),
    row(Code::CudaNotMet, "E0201", Exit::NotMet, "CUDA was asked for and is not there."),
    row(Code::NvmlNotMet, "E0202", Exit::NotMet, "NVML was needed and is not there."),
    row(Code::GdrCopyNotMet, "E0203", Exit::NotMet, "gdrcopy was asked for and is not there."),
    row(
        Code::NeedsCuda,
        "E0204",
        Exit::NotMet,
        "Something that needs CUDA was asked for without CUDA.",
    ),
    row(Code::RequirementNotMet, "E0205", Exit::NotMet, "A requirement does not hold."),
    row(
        Code::MatrixNotMet,
        "E0206",
        Exit::NotMet,
        "An entry of a matrix failed, or is not as it was recorded.",
    ),
    row(
        Code::WouldBreakUcx,
        "E0207",
        Exit::NotMet,
        "A UCX is where modules would go that it would take for its own.",
    ),
    row(
        Code::TreeNotRight,
        "E0208",
        Exit::NotMet,
        "`verify` found something wrong with a tree of modules.",
    ),
    row(Code::NoCompiler, "E0301", Exit::CompilerBroken, "No C compiler was found."),
    row(
        Code::CompilerBroken,
        "E0302",
        Exit::CompilerBroken,
        "The C compiler cannot build an empty program.",
    ),
    row(
        Code::WrongCompiler,
        "E0303",
        Exit::CompilerBroken,
        "The C compiler compiles for another machine than `--host` names.",
    ),
    row(
        Code::NoCargo,
        "E0401",
        Exit::BuildFailed,
        "cargo, which builds hook-runtime, was not found.",
    ),
    row(Code::BuildFailed, "E0402", Exit::BuildFailed, "cargo could not build hook-runtime."),
    row(
        Code::BindingsFailed,
        "E0403",
        Exit::BuildFailed,
        "Bindings could not be generated from the headers.",
    ),
    row(Code::Read, "E0501", Exit::Io, "A file could not be read."),
    row(Code::Write, "E0502", Exit::Io, "A file could not be written."),
    row(
        Code::NotOurs,
        "E0503",
        Exit::Io,
        "A file of that name is there already, and was not written by this program.",
    ),
    row(Code::Busy, "E0504", Exit::Busy, "Another run works in the same build directory."),
    row(Code::NoPip, "E0601", Exit::Fetch, "Neither pip nor uv was found to fetch wheels with."),
    row(Code::FetchFailed, "E0602", Exit::Fetch, "Wheels could not be fetched."),
    row(Code::WrongSum, "E0603", Exit::Fetch, "A wheel is not the file that it should be."),
    row(Code::NothingToRecheck, "E0701", Exit::Usage, "There is no earlier run to repeat."),
    row(Code::Interrupted, "E0901", Exit::Interrupted, "A signal ended the run."),
    row(Code::Internal, "E0999", Exit::Internal, "A fault of this program."),
];

impl Code {
    /// The row of this code.
    pub fn row(self) -> &'static CodeRow {
        // The test below holds the table complete; the last row is the right
        // one for anything that it would miss.
        CODES.iter().find(|row| row.code == self).unwrap_or(&CODES[CODES.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_one_row() {
        let codes: BTreeSet<_> = CODES.iter().map(|row| row.code).collect();
        let names: BTreeSet<_> = CODES.iter().map(|row| row.name).collect();
        assert_eq!(codes.len(), CODES.len());
        assert_eq!(names.len(), CODES.len());
        assert_eq!(codes.len(), Code::Internal as usize + 1, "every variant has a row");
        assert!(CODES.iter().all(|row| row.doc.ends_with('.')));
    }
}
