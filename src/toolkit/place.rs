//! Directories that are made once and are whole or not there.
//!
//! A tree is made beside its place and renamed into it, with a stamp inside
//! that says what it was made from. A run that was killed leaves at most the
//! half-made tree under a name that the next run clears away.

use std::{thread, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

use crate::{
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Lock},
    },
};

/// The file that says what a tree was made from.
pub const STAMP: &str = ".ucx-configure-toolkit";

/// How often a run looks whether another one, that makes the same, is done.
const POLL: Duration = Duration::from_millis(50);

/// A sum over names and contents, as a stamp takes it.
#[derive(Default)]
pub(crate) struct Sum(Sha256);

impl Sum {
    /// Adds a part; its length goes in as well, so that parts do not run into
    /// each other.
    #[must_use]
    pub(crate) fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The sum in hexadecimal.
    pub(crate) fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Whether the tree is there and was made from what `stamp` says.
pub(crate) fn is_complete(tree: &Utf8Path, stamp: &str) -> bool {
    fs::read(&tree.join(STAMP)).is_ok_and(|found| found == stamp.as_bytes())
}

/// The tree at `tree`, made by `make` unless it is already there. `make` gets
/// an empty directory that becomes the tree; the tree's own path must not get
/// into it.
///
/// # Errors
///
/// `make` fails, a file cannot be written, or something that is not ours is in
/// the tree's place.
pub(crate) fn complete(
    tree: &Utf8Path,
    stamp: &str,
    host: &Host,
    make: impl FnOnce(&Utf8Path) -> Result<(), Error>,
) -> Result<Utf8PathBuf, Error> {
    if is_complete(tree, stamp) {
        return Ok(tree.to_owned());
    }
    let (Some(parent), Some(name)) = (tree.parent(), tree.file_name()) else {
        return Err(Error::new(
            Code::UnusablePath,
            format!("`{tree}` cannot be a toolkit's place"),
        )
        .hint("Name a directory that does not exist yet."));
    };
    fs::create_dir_all(parent)?;
    let _lock = wait_for(parent, host)?;
    if is_complete(tree, stamp) {
        return Ok(tree.to_owned());
    }
    refuse_foreign(tree)?;
    let partial = parent.join(format!(".{name}.partial"));
    let old = parent.join(format!(".{name}.old"));
    fs::remove_dir_all_if_there(&old)?;
    fs::remove_dir_all_if_there(&partial)?;
    fs::create_dir_all(&partial)?;
    let made = make(&partial)
        .and_then(|()| host.runner.interrupt.check())
        .and_then(|()| fs::write_new(&partial.join(STAMP), stamp.as_bytes(), 0o644))
        .and_then(|()| swap(&partial, tree, &old));
    if made.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_dir_all_if_there(&partial);
    }
    made.map(|()| tree.to_owned())
}

/// Puts the new tree into its place, an old one of ours aside first: a
/// directory that is not empty cannot be renamed over.
fn swap(partial: &Utf8Path, tree: &Utf8Path, old: &Utf8Path) -> Result<(), Error> {
    if tree.exists() {
        fs::rename(tree, old)?;
    }
    fs::rename(partial, tree)?;
    fs::remove_dir_all_if_there(old)
}

/// An error if something is in the tree's place that we did not make.
fn refuse_foreign(tree: &Utf8Path) -> Result<(), Error> {
    let ours =
        !tree.exists() || tree.join(STAMP).is_file() || tree.is_dir() && fs::names(tree).is_empty();
    if ours {
        return Ok(());
    }
    Err(Error::new(Code::NotOurs, format!("`{tree}` exists, and was not made by this program"))
        .means("A toolkit is only put where nothing is, or where an earlier one of ours is.")
        .hint("Name another directory, or remove this one."))
}

/// Waits until no other run works in `parent`.
fn wait_for(parent: &Utf8Path, host: &Host) -> Result<Lock, Error> {
    loop {
        if let Some(lock) = Lock::try_take_dir(parent)? {
            return Ok(lock);
        }
        host.runner.interrupt.check()?;
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{env::Snapshot, fs::Scratch, process::Runner};

    fn host() -> Host {
        Host { env: Snapshot::default(), cwd: Utf8PathBuf::from("/"), runner: Runner::new() }
    }

    #[test]
    fn a_tree_is_made_once_and_again_when_its_source_changes() {
        let scratch = Scratch::new(None).unwrap();
        let tree = scratch.path().join("parent/tree");
        let make = |text: &'static str| {
            move |dir: &Utf8Path| fs::write_new(&dir.join("file"), text.as_bytes(), 0o644)
        };
        complete(&tree, "1", &host(), make("a")).unwrap();
        complete(&tree, "1", &host(), |_| panic!("it is there")).unwrap();
        assert_eq!(fs::read_to_string(&tree.join("file")).unwrap(), "a");
        complete(&tree, "2", &host(), make("b")).unwrap();
        assert_eq!(fs::read_to_string(&tree.join("file")).unwrap(), "b");
        assert_eq!(fs::names(&scratch.path().join("parent")), ["tree"], "nothing is left beside");
    }

    #[test]
    fn a_failure_leaves_nothing_and_what_a_killed_run_left_is_cleared() {
        let scratch = Scratch::new(None).unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir_all(&scratch.path().join(".tree.partial/half")).unwrap();
        let failed = complete(&tree, "1", &host(), |dir| {
            assert!(fs::names(dir).is_empty());
            Err(Error::new(Code::Internal, "made to fail"))
        });
        assert_eq!(failed.unwrap_err().code, Code::Internal);
        assert!(fs::names(scratch.path()).is_empty());
    }

    #[test]
    fn what_is_not_ours_stays() {
        let scratch = Scratch::new(None).unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir_all(&tree).unwrap();
        fs::write_new(&tree.join("theirs"), b"", 0o644).unwrap();
        let error = complete(&tree, "1", &host(), |_| Ok(())).unwrap_err();
        assert_eq!(error.code, Code::NotOurs);
        assert!(tree.join("theirs").is_file());
    }

    #[test]
    fn sums_keep_parts_apart() {
        assert_ne!(
            Sum::default().part(b"ab").part(b"c").hex(),
            Sum::default().part(b"a").part(b"bc").hex()
        );
    }
}
