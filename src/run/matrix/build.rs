//! `matrix --build`: hook-runtime for each entry. Entries with the same flags
//! have the same modules, which are built once; and all builds share one
//! directory of cargo's, so that other crates are compiled once.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    build::{self, Shared},
    cli::MatrixOptions,
    error::Error,
    host::{Host, fs::Lock},
    matrix::{Build, Done, Entry},
    model::Module,
    request::{self, Request, STATE_DIR},
    run::{configure::enter, outputs},
    ui::{Bars, Silent},
};

/// Where the entries' build directories are.
pub(super) struct Place {
    dir: Utf8PathBuf,
    state: Utf8PathBuf,
    _lock: Lock,
}

/// What decides what a build makes.
type Key = (BTreeMap<String, bool>, Vec<Module>);

impl Place {
    /// Makes it ours for this run.
    pub(super) fn enter(options: &MatrixOptions, host: &Host) -> Result<Self, Error> {
        let dir = request::build_dir(options.build_dir.as_deref(), host)?;
        let (state, lock) = enter(&dir, host)?;
        Ok(Self { dir, state, _lock: lock })
    }

    /// The build directory of an entry.
    pub(super) fn of(&self, entry: &Entry) -> Utf8PathBuf {
        self.dir.join(entry.directory())
    }

    /// Writes the outputs of every entry that did not fail, and builds its
    /// modules. What one fails for is its error.
    pub(super) fn build(
        &self,
        rows: &mut [Done],
        options: &MatrixOptions,
        host: &Host,
    ) -> Result<(), Error> {
        let mut groups: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (at, done) in rows.iter().enumerate().filter(|(_, done)| done.error.is_none()) {
            let key = (done.report.cfg.clone(), done.report.modules.clone());
            groups.entry(key).or_default().push(at);
        }
        let bars = Bars::new(groups.len(), options.quiet);
        // In the order in which their first entries were named.
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort();
        for group in groups {
            host.runner.interrupt.check()?;
            self.group(&group, rows, options, host, &bars);
        }
        host.runner.interrupt.check()
    }

    /// Builds for entries with the same flags.
    fn group(
        &self,
        group: &[usize],
        rows: &mut [Done],
        options: &MatrixOptions,
        host: &Host,
        bars: &Bars,
    ) {
        let Some(first) = group.first().and_then(|at| rows.get(*at)) else { return };
        let (name, report) = (first.entry.name.clone(), first.report.clone());
        let mut row = bars.row(&name);
        let request = Request {
            state_dir: Some(self.state.clone()),
            offline: options.offline,
            ..Request::bare(self.dir.clone())
        };
        let built = build::build_shared(&report, &request, &self.of(&first.entry), host, &mut row);
        drop(row);
        let code = built.as_ref().err().map(|error| error.code.row().name);
        bars.done(&name, code.unwrap_or("built"));
        for at in group {
            let Some(done) = rows.get_mut(*at) else { continue };
            let dir = self.of(&done.entry);
            let result = built.clone().and_then(|shared| finish(&dir, &shared, done));
            match result {
                Ok(()) => {
                    let same_as = (done.entry.name != name).then(|| name.clone());
                    done.build = Some(Build { dir, same_as });
                }
                Err(error) => done.error = Some(error),
            }
        }
    }
}

/// Makes an entry's directory a whole build directory.
fn finish(dir: &Utf8Path, shared: &Shared, done: &Done) -> Result<(), Error> {
    outputs::refuse_files_of_others(dir)?;
    crate::host::fs::create_dir_all(&dir.join(STATE_DIR))?;
    outputs::write_all(&done.report, dir, &mut Silent)?;
    build::install_shared(shared, &done.report.modules, dir, &mut Silent)
}
