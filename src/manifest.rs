//! What was installed of a package: a file beside its modules, with the sum of
//! each file, so that `uninstall` takes nothing away that is not ours.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    error::{Code, Error},
    host::fs,
    model::Package,
    toolkit::place::hex,
};

/// The version of its form.
const FORMAT: u32 = 1;

/// Who wrote it.
const TOOL: &str = "ucx-configure install";

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: u32,
    tool: String,
    /// Whose files they are.
    pub package: Package,
    /// Whether it was configured on a stub toolkit.
    pub on_stub: bool,
    /// Each file by its path, without DESTDIR.
    pub files: BTreeMap<Utf8PathBuf, Installed>,
    /// The directories that were made for them.
    pub dirs: BTreeSet<Utf8PathBuf>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Installed {
    /// A file, with the sum of what it holds.
    Sha256(String),
    /// A link, with where it leads.
    Link(String),
}

impl Installed {
    /// What is at a path; none where nothing is.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn at(path: &Utf8Path) -> Result<Option<Self>, Error> {
        if let Ok(target) = path.read_link_utf8() {
            return Ok(Some(Self::Link(target.into_string())));
        }
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(Self::Sha256(sum(&fs::read(path)?))))
    }
}

impl Manifest {
    /// One without a file.
    pub fn new(package: Package, on_stub: bool) -> Self {
        let (files, dirs) = (BTreeMap::new(), BTreeSet::new());
        Self { format: FORMAT, tool: TOOL.to_owned(), package, on_stub, files, dirs }
    }

    /// Reads one; none where there is none.
    ///
    /// # Errors
    ///
    /// It is there, and is none that this program reads.
    pub fn read(path: &Utf8Path) -> Result<Option<Self>, Error> {
        if !path.is_file() {
            return Ok(None);
        }
        match serde_json::from_str::<Self>(&fs::read_to_string(path)?) {
            Ok(manifest) if manifest.format == FORMAT && manifest.tool == TOOL => {
                manifest.refuse_relative(path)?;
                Ok(Some(manifest))
            }
            other => Err(Error::new(Code::Read, format!("`{path}` cannot be read"))
                .said(other.err().map_or("another version of its form".to_owned(), |e| e.to_string()))
                .means("It says what was installed, and was written by another version of this program, or changed.")
                .hint("Remove the installed files by hand, and this one.")),
        }
    }

    /// `install` writes absolute paths alone: another one was put in by
    /// somebody else, and would lead to wherever the program was started.
    fn refuse_relative(&self, path: &Utf8Path) -> Result<(), Error> {
        let relative = self.files.keys().chain(&self.dirs).find(|file| !file.is_absolute());
        relative.map_or(Ok(()), |file| {
            Err(Error::new(Code::Read, format!("`{path}` names `{file}`, which is not absolute"))
                .means("It was changed since it was written; nothing that it says is done.")
                .hint("Remove the installed files by hand, and this one."))
        })
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, path: &Utf8Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(Code::Internal, "what is installed cannot be written as JSON")
                .said(error.to_string())
        })?;
        fs::write_if_changed(path, format!("{text}\n").as_bytes(), 0o644).map(drop)
    }
}

/// As sha256sum prints it.
pub fn sum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
