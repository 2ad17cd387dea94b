//! Many toolkits in one run: which, what each came to, and how that is told.
//!
//! This is data and pure functions; `run::matrix` runs the entries.
//!
//! | file | what |
//! |---|---|
//! | `entries` | the entries that a command line and a TOML file name |
//! | `facts` | what is recorded of an entry, and held against a file |
//! | `formats` | one file for each way to tell, one table of them |

pub mod entries;
pub mod facts;
pub mod formats;

use camino::Utf8PathBuf;

pub use entries::Entry;
pub use facts::{Facts, Record};

use crate::{error::Error, model::Report};

/// What became of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Which.
    pub entry: Entry,
    /// What was found out, as far as it came.
    pub report: Report,
    /// Why it failed, if it did.
    pub error: Option<Error>,
    /// Its modules, where they were built.
    pub build: Option<Build>,
}

/// The modules of an entry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Build {
    /// Its build directory.
    pub dir: Utf8PathBuf,
    /// The entry with the same flags whose modules these are as well.
    pub same_as: Option<String>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The entries, in the order in which they were named.
    pub rows: Vec<Done>,
    /// Where answers differ from what was recorded, by the entry's name; none
    /// where nothing was recorded.
    pub changes: Option<Vec<Change>>,
}

/// An answer that is not the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// The entry.
    pub entry: String,
    /// What changed, a fragment.
    pub what: String,
}

impl Answer {
    /// Why an entry fails the run: its error, or, where answers are held
    /// against a record, what is not as recorded.
    pub fn faults(&self, done: &Done) -> Vec<String> {
        match &self.changes {
            None => done.error.iter().map(|error| error.what.clone()).collect(),
            Some(changes) => {
                let of_entry = changes.iter().filter(|change| change.entry == done.entry.name);
                of_entry.map(|change| change.what.clone()).collect()
            }
        }
    }

    /// Whether nothing failed.
    pub fn is_good(&self) -> bool {
        match &self.changes {
            None => self.rows.iter().all(|done| done.error.is_none()),
            Some(changes) => changes.is_empty(),
        }
    }
}
