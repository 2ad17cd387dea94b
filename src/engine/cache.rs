//! Answers that are kept from run to run.
//!
//! An entry belongs to one question to one compiler in one environment: its
//! name is a sum over the compiler's command and stamp, the environment, the
//! wishes and our version. It holds the compiler runs that were made, by what
//! makes each the one it is (words, source), and everything that they read or
//! looked for in vain. As long as all of that is unchanged, each run would say
//! the same again. Deleting an entry costs time and changes nothing.
//!
//! An entry is replaced in one step and sums itself up, so that two runs at
//! once do no harm, and a damaged one is noticed and removed. One whose files
//! changed just before they were read is not kept: a clock is too coarse to
//! tell what happened within one of its ticks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::{
    host::{Host, fs, process::find_program},
    probe::{Known, Said, compiler::is_batch, reads::Reads},
    request::{Request, Variable},
    toolkit::{place::Sum, wheel},
};

/// The form of an entry; another number reads none of the old ones.
const FORM: &str = "ucx-configure answers 1";

/// How many entries are kept: more, and the oldest go.
const MOST_ENTRIES: usize = 64;

/// How large an entry may be.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How much earlier than a run a file must have changed last.
pub(super) const TICK: Duration = Duration::from_millis(12);

/// The same on file systems that count in seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// What is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Entry {
    made: BTreeMap<String, Said>,
    /// Paths and stamps. Texts, since comparing paths costs more than reading
    /// their stamps.
    files: BTreeMap<String, String>,
    absent: BTreeSet<String>,
    header_dirs: Vec<Utf8PathBuf>,
    library_dirs: Vec<Utf8PathBuf>,
    program_dirs: Vec<Utf8PathBuf>,
}

/// The place of one entry.
#[derive(Debug)]
pub(super) struct Store {
    path: Utf8PathBuf,
    begin: SystemTime,
    entry: Entry,
}

impl Store {
    /// Looks for the entry; none where no answer is to be kept.
    pub(super) fn open(request: &Request, host: &Host, command: &[String]) -> Option<Self> {
        if !request.cache || !is_batch(request) {
            return None;
        }
        let dir = wheel::cache_dir(host).ok()?.with_file_name("answers");
        let path = dir.join(address(request, host, command));
        let entry = load(&path).filter(Entry::holds).unwrap_or_default();
        Some(Self { path, begin: SystemTime::now(), entry })
    }

    /// What is known from earlier runs, ready to learn more.
    pub(super) fn known(&mut self, command: &[String], host: &Host) -> Known {
        let mut reads = Reads {
            header_dirs: std::mem::take(&mut self.entry.header_dirs),
            library_dirs: std::mem::take(&mut self.entry.library_dirs),
            program_dirs: std::mem::take(&mut self.entry.program_dirs),
            ..Reads::default()
        };
        for word in command.iter().filter(|word| !word.starts_with('-')) {
            match word.contains('/') {
                true => reads.file(host.absolute(Utf8Path::new(word)), self.begin),
                false => drop(reads.programs.insert(word.clone())),
            }
        }
        Known::recording(std::mem::take(&mut self.entry.made), reads)
    }

    /// Keeps what is new. What cannot be kept is asked again next time: that
    /// is all that can go wrong.
    pub(super) fn close(self, known: &Known, host: &Host) {
        let Some((made, reads)) = known.for_later() else { return };
        let Some(entry) = self.renewed(made, &reads, host) else { return };
        let Ok(text) = serde_json::to_string(&entry) else { return };
        let Some(dir) = self.path.parent().filter(|_| text.len() <= MOST_BYTES) else { return };
        let _ = fs::create_dir_all(dir)
            .and_then(|()| fs::replace(&self.path, with_sum(&text).as_bytes(), 0o600));
        prune(dir);
    }

    /// The entry with what is new; none where it could be wrong.
    fn renewed(&self, made: BTreeMap<String, Said>, reads: &Reads, host: &Host) -> Option<Entry> {
        if reads.header_dirs.is_empty() {
            return None;
        }
        let places = reads.places(&host.env.path_dirs());
        let mut files = self.entry.files.clone();
        for (path, since) in places.files {
            let stamp = fs::stamp(&path)?;
            let tick = if stamp.is_coarse { COARSE_TICK } else { TICK };
            if stamp.changed.checked_add(tick)? > since.unwrap_or(self.begin) {
                return None;
            }
            files.insert(path.into_string(), stamp.text);
        }
        let mut absent = self.entry.absent.clone();
        absent.extend(places.absent.into_iter().map(Utf8PathBuf::into_string));
        let entry = Entry {
            made,
            files,
            absent,
            header_dirs: reads.header_dirs.clone(),
            library_dirs: reads.library_dirs.clone(),
            program_dirs: reads.program_dirs.clone(),
        };
        entry.holds().then_some(entry)
    }
}

impl Entry {
    /// Whether everything that was read, and every place where nothing was, is
    /// unchanged.
    fn holds(&self) -> bool {
        let is_same = |(path, text): (&String, &String)| {
            fs::stamp(Utf8Path::new(path)).is_some_and(|stamp| stamp.text == *text)
        };
        let is_there = |path: &String| Utf8Path::new(path).exists();
        self.files.iter().all(is_same) && !self.absent.iter().any(is_there)
    }
}

/// The name of an entry.
fn address(request: &Request, host: &Host, command: &[String]) -> String {
    let mut sum = Sum::default().part(FORM.as_bytes()).part(env!("CARGO_PKG_VERSION").as_bytes());
    for word in command {
        sum = sum.part(word.as_bytes());
        let (found, _) = find_program(word, &host.env.path_dirs());
        if let Some(stamp) = found.and_then(|path| fs::stamp(&path)) {
            sum = sum.part(stamp.text.as_bytes());
        }
    }
    for (name, value) in host.env.that_matter() {
        sum = sum.part(name.as_encoded_bytes()).part(value.as_encoded_bytes());
    }
    sum = sum.part(host.cwd.as_str().as_bytes());
    let wishes = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        request.cuda.value,
        request.cuda_parts,
        request.gdrcopy.value,
        request.gdrcopy_libdir,
        request.host
    );
    sum = sum.part(wishes.as_bytes());
    for variable in Variable::ALL {
        sum = sum.part(request.variable(variable).as_bytes());
    }
    format!("{}.json", sum.hex())
}

/// The text of an entry, behind a line that sums it up.
fn with_sum(text: &str) -> String {
    format!("{FORM} {}\n{text}", Sum::default().part(text.as_bytes()).hex())
}

/// Reads an entry; one that is not whole is removed.
fn load(path: &Utf8Path) -> Option<Entry> {
    let bytes = fs::read(path).ok()?;
    let text = std::str::from_utf8(&bytes).ok();
    let body = text.and_then(|text| text.split_once('\n')).map(|(_, body)| body);
    let whole = body.filter(|body| text == Some(with_sum(body).as_str()));
    let entry = whole.and_then(|body| serde_json::from_str(body).ok());
    if entry.is_none() {
        let _ = fs::remove_file_if_there(path);
    }
    entry
}

/// Removes the oldest entries where there are too many, and what writers that
/// were killed left.
fn prune(dir: &Utf8Path) {
    let names = fs::names(dir);
    if names.len() <= MOST_ENTRIES {
        return;
    }
    let mut by_age: Vec<(SystemTime, Utf8PathBuf)> = names
        .into_iter()
        .map(|name| dir.join(name))
        .filter_map(|path| Some((fs::stamp(&path)?.changed, path)))
        .collect();
    by_age.sort();
    let surplus = by_age.len().saturating_sub(MOST_ENTRIES * 3 / 4);
    for (_, path) in by_age.into_iter().take(surplus) {
        let _ = fs::remove_file_if_there(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::Scratch;

    #[test]
    fn the_oldest_entries_go() {
        let scratch = Scratch::new(None).unwrap();
        for index in 0..=MOST_ENTRIES {
            fs::replace(&scratch.path().join(format!("{index:03}.json")), b"{}", 0o600).unwrap();
            if index + 1 == MOST_ENTRIES {
                prune(scratch.path());
                assert_eq!(fs::names(scratch.path()).len(), MOST_ENTRIES, "as many as may be");
                // What is older than a tick is told from what is new.
                std::thread::sleep(TICK * 2);
            }
        }
        prune(scratch.path());
        let names = fs::names(scratch.path());
        assert_eq!(names.len(), MOST_ENTRIES * 3 / 4);
        assert!(names.contains(&format!("{MOST_ENTRIES:03}.json")), "the newest stays");
    }
}
