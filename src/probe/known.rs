//! What is known already: runs that were made, now or earlier, and what other
//! runs showed.
//!
//! One run can answer several questions. Whoever reads such a run keeps here
//! what each question's own run would have said; the question is then put as
//! ever, and gets its answer from here. What is not here is run. Runs that
//! were really made can be kept for later, with what they read.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{compiler::Trial, reads::Reads};
use crate::{
    host::process::{Completed, Invocation, Status},
    toolkit::place::hex,
};

/// What a run came to: everything that does not follow from its command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Whether it did what it was asked.
    pub ok: bool,
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether output was dropped.
    pub truncated: bool,
}

impl Said {
    /// A run that succeeds, and prints this.
    pub fn yes(stdout: &str) -> Self {
        Self { ok: true, stdout: stdout.to_owned(), ..Self::default() }
    }

    /// A run that fails, and says this.
    pub fn no(stderr: String) -> Self {
        Self { code: 1, stderr, ..Self::default() }
    }

    fn of(trial: &Trial) -> Option<Self> {
        let Status::Exited(code) = trial.completed.status else { return None };
        let Completed { stdout, stderr, truncated, .. } = trial.completed.clone();
        Some(Self { ok: trial.ok, code, stdout, stderr, truncated })
    }

    fn trial(&self, invocation: Invocation) -> Trial {
        let completed = Completed {
            invocation,
            status: Status::Exited(self.code),
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
            truncated: self.truncated,
            took: Duration::ZERO,
        };
        Trial { ok: self.ok, completed }
    }
}

/// Everything that is known, by what makes a run this one and no other.
#[derive(Debug, Default)]
pub struct Known {
    kept: Mutex<Kept>,
    /// What the runs read; none where nothing is kept for later.
    reads: Option<Mutex<Reads>>,
    is_warm: bool,
}

#[derive(Debug, Default)]
struct Kept {
    /// Runs that were made, now or earlier.
    made: HashMap<String, Said>,
    /// What other runs showed.
    shown: HashMap<String, Said>,
    /// Runs that nobody was told of.
    untold: HashSet<String>,
    /// Whether a run was made now.
    is_new: bool,
}

impl Known {
    /// Knows what was kept of earlier runs, and records for later ones.
    pub fn recording(made: BTreeMap<String, Said>, reads: Reads) -> Self {
        let is_warm = !made.is_empty();
        let untold = made.keys().cloned().collect();
        let kept = Kept { made: made.into_iter().collect(), untold, ..Kept::default() };
        Self { kept: Mutex::new(kept), reads: Some(Mutex::new(reads)), is_warm }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether runs are to say what they read.
    pub(super) fn records(&self) -> bool {
        self.reads.is_some()
    }

    /// Records what a run read.
    pub(super) fn record(&self, record: impl FnOnce(&mut Reads)) {
        if let Some(reads) = &self.reads {
            record(&mut reads.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether nearly everything is known from earlier runs.
    pub fn is_warm(&self) -> bool {
        self.is_warm
    }

    /// What came of a run, if that is known.
    pub(super) fn trial(
        &self,
        key: &str,
        invocation: impl FnOnce() -> Invocation,
    ) -> Option<Trial> {
        let kept = self.lock();
        let said = kept.made.get(key).or_else(|| kept.shown.get(key))?.clone();
        drop(kept);
        Some(said.trial(invocation()))
    }

    /// Keeps a run that was made. One that did not come to its end says
    /// nothing about the next.
    pub(super) fn keep(&self, key: String, trial: &Trial) {
        let said = Said::of(trial).filter(|_| trial.fault().is_none());
        if said.is_none() {
            self.record(|reads| reads.give_up("a run did not come to its end"));
        }
        let mut kept = self.lock();
        kept.is_new = true;
        if let Some(said) = said {
            kept.made.insert(key.clone(), said);
        }
        kept.untold.insert(key);
    }

    /// Keeps what a run would have said; one that was made says it better.
    pub(super) fn deduce(&self, key: String, said: Said) {
        self.lock().shown.entry(key).or_insert(said);
    }

    /// Whether a run was made and nobody was told; from now on somebody was.
    pub(super) fn is_to_be_told(&self, key: &str) -> bool {
        self.lock().untold.remove(key)
    }

    /// The runs to be kept for later, and what those of now read; none where
    /// there is nothing new, or something cannot be told.
    pub fn for_later(&self) -> Option<(BTreeMap<String, Said>, Reads)> {
        let reads = self.reads.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = self.lock();
        if !kept.is_new || reads.trouble.is_some() {
            return None;
        }
        // What nobody was told of was of no use now.
        let used = kept.made.iter().filter(|(key, _)| !kept.untold.contains(*key));
        Some((used.map(|(key, said)| (key.clone(), said.clone())).collect(), reads))
    }
}

/// What makes a run this one and no other, as one word.
pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part.as_bytes());
    }
    hex(&sum.finalize())
}
