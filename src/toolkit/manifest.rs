//! The table that a directory of fixtures is unpacked and built from.
//!
//! It is data: which file goes where, which library is compiled from which
//! sources, and for which versions. `fixtures/toolkit/README.md` explains the
//! words.

use serde::Deserialize;

use super::library::Kind;
use crate::error::{Code, Error};

/// A manifest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The version of this form; one so far.
    schema: u32,
    package: std::collections::BTreeMap<String, Package>,
    pub(crate) compile: Compile,
    #[serde(default)]
    file: Vec<File>,
    #[serde(default)]
    library: Vec<Library>,
    /// Programs that are compiled, after the libraries.
    #[serde(default)]
    pub(crate) program: Vec<Program>,
    /// The ways in which some libraries can begin their functions.
    pub(crate) prologue: Option<Prologue>,
    /// The mock driver's own tests: whoever runs them reads them.
    #[serde(default, rename = "test")]
    _tests: Vec<toml::Table>,
}

/// Something that exists in several versions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    /// The macro that selects the version.
    pub(crate) define: String,
    /// The versions that exist, ascending.
    pub(crate) versions: Vec<String>,
}

/// How libraries are compiled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compile {
    /// For every source.
    pub(crate) cflags: Vec<String>,
    /// Directories with headers, relative to the sources.
    #[serde(default)]
    pub(crate) include: Vec<String>,
    /// For a shared library on top.
    pub(crate) shared: Vec<String>,
}

/// A file that is copied.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    package: String,
    /// Where it is among the fixtures.
    pub(crate) source: String,
    /// Where it goes.
    pub(crate) path: String,
    /// Whether `@MAJOR@` and the like are replaced.
    #[serde(default)]
    pub(crate) expand: bool,
    since: Option<String>,
    until: Option<String>,
}

/// A library that is compiled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Library {
    package: String,
    /// Shared or static.
    pub(crate) kind: LibraryKind,
    /// Where it goes.
    pub(crate) path: String,
    /// The name inside, for a shared one.
    pub(crate) soname: Option<String>,
    /// What it is compiled from.
    pub(crate) sources: Vec<String>,
    /// Links that point to it.
    #[serde(default)]
    pub(crate) links: Vec<String>,
    /// Whether the choice of [`Prologue`] is its own.
    #[serde(default)]
    pub(crate) prologue: bool,
    /// Flags for its sources.
    #[serde(default)]
    pub(crate) cflags: Vec<String>,
    /// Flags for the linker.
    #[serde(default)]
    pub(crate) ldflags: Vec<String>,
    /// Libraries that it needs.
    #[serde(default)]
    pub(crate) libs: Vec<String>,
    since: Option<String>,
    until: Option<String>,
}

/// A program that is compiled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    /// Where it goes.
    pub(crate) path: String,
    /// What it is compiled from.
    pub(crate) sources: Vec<String>,
    /// Libraries that it needs.
    pub(crate) libs: Vec<String>,
    /// The first version that it can be compiled for.
    pub(crate) since: Option<String>,
}

/// The opening bytes of a library's functions, chosen by a macro.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prologue {
    /// The macro.
    pub(crate) define: String,
    /// Its values.
    pub(crate) families: Vec<String>,
    /// The value that is taken otherwise.
    pub(crate) default: String,
}

/// How a library is linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LibraryKind {
    /// At run time.
    Shared,
    /// At link time.
    Static,
}

impl From<LibraryKind> for Kind {
    fn from(kind: LibraryKind) -> Self {
        match kind {
            LibraryKind::Shared => Self::Shared,
            LibraryKind::Static => Self::Static,
        }
    }
}

/// A version as two numbers, which order as versions do.
pub(crate) type Version = (u32, u32);

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// It is not one, which is a fault of ours: it is embedded.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            Error::new(Code::Internal, "an embedded manifest cannot be read")
                .said(error.to_string())
        })?;
        if manifest.schema != 1 {
            return Err(Error::new(Code::Internal, "an embedded manifest is of another form"));
        }
        Ok(manifest)
    }

    /// A package.
    ///
    /// # Errors
    ///
    /// There is none of that name, a fault of ours.
    pub(crate) fn package(&self, name: &str) -> Result<&Package, Error> {
        self.package.get(name).ok_or_else(|| {
            Error::new(Code::Internal, format!("an embedded manifest has no package `{name}`"))
        })
    }

    /// The files of a package at a version.
    pub(crate) fn files(&self, package: &str, version: Version) -> impl Iterator<Item = &File> {
        self.file.iter().filter(move |row| {
            row.package == package && counts(row.since.as_deref(), row.until.as_deref(), version)
        })
    }

    /// The libraries of a package at a version.
    pub(crate) fn libraries(
        &self,
        package: &str,
        version: Version,
    ) -> impl Iterator<Item = &Library> {
        self.library.iter().filter(move |row| {
            row.package == package && counts(row.since.as_deref(), row.until.as_deref(), version)
        })
    }
}

/// Whether a row counts for a version: from `since` on, before `until`.
fn counts(since: Option<&str>, until: Option<&str>, version: Version) -> bool {
    since.is_none_or(|since| numbers(since) <= version)
        && until.is_none_or(|until| version < numbers(until))
}

/// The numbers of a version; the tests hold the manifests to have two.
pub(crate) fn numbers(text: &str) -> Version {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
