//! `matrix`: the same detection on many toolkits, side by side.
//!
//! An entry is a command line of `check`, run in a thread: what one fails for
//! stops no other. With `--build` each has a build directory of its own.

mod build;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::Write as _,
    num::NonZero,
    panic,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum as _;

use super::{check, print_line, remarks, requirement};
use crate::{
    cli::{self, Command, MatrixOptions, Parsed},
    engine,
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Kind, Scratch},
    },
    matrix::{
        Answer, Done, Entry, Record,
        entries::{self, Lists},
        formats::FORMATS,
    },
    model::Report,
    request::{self, Request},
    ui::{Bars, Sink},
};

/// Runs it.
pub(super) fn run(options: &MatrixOptions, mut host: Host) -> Result<(), Error> {
    let entries = entries_of(options, &host)?;
    let recorded = recorded(options, &host)?;
    let place = match options.build {
        true => Some(build::Place::enter(options, &host)?),
        false => None,
    };
    let scratch = Scratch::new(None)?;
    host.runner.set_scratch(scratch.path().to_owned());
    let bars = Bars::new(entries.len(), options.quiet);
    let dirs = entries.iter().map(|entry| place.as_ref().map(|place| place.of(entry)));
    let work: Vec<(Entry, Option<Utf8PathBuf>)> =
        entries.iter().cloned().zip(dirs.collect::<Vec<_>>()).collect();
    let jobs = options.jobs.or_else(|| thread::available_parallelism().ok());
    let mut rows = side_by_side(&work, jobs.map_or(1, NonZero::get), &host, &bars);
    bars.finish();
    host.runner.interrupt.check()?;
    if let Some(place) = &place {
        place.build(&mut rows, options, &host)?;
    }
    tell(options, rows, recorded, &host)
}

/// The entries that the command line and its file name.
fn entries_of(options: &MatrixOptions, host: &Host) -> Result<Vec<Entry>, Error> {
    let text = |values: &[OsString], option: &str| {
        let text = |value: &OsString| {
            value.to_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| {
                Error::new(Code::Usage, format!("`{option}={}` names nothing", value.display()))
                    .hint(format!("Write it as in `{option} stub:12.5`."))
            })
        };
        values.iter().map(text).collect::<Result<Vec<_>, _>>()
    };
    let mut lists = Lists {
        toolkits: text(&options.toolkit, "--toolkit")?,
        gdrcopy: text(&options.gdrcopy, "--gdrcopy")?,
        require: options.require.clone(),
        ..Lists::default()
    };
    let Some(file) = &options.config else { return entries::list(&[(&lists, &host.cwd)]) };
    let path = request::build_dir(Some(file), host)?;
    let mut config = entries::read(&path, &fs::read_to_string(&path)?)?;
    // What the command line says of each goes for those of the file as well.
    config.require.splice(0..0, options.require.iter().cloned());
    if lists.gdrcopy.is_empty() {
        lists.gdrcopy.clone_from(&config.gdrcopy);
    } else {
        config.gdrcopy.clone_from(&lists.gdrcopy);
    }
    lists.arguments.clone_from(&config.arguments);
    let base = path.parent().unwrap_or(&host.cwd).to_owned();
    entries::list(&[(&lists, &host.cwd), (&config, &base)])
}

/// What is recorded, and where it is to be: read before anything is run.
fn recorded(
    options: &MatrixOptions,
    host: &Host,
) -> Result<Option<(Utf8PathBuf, Option<Record>)>, Error> {
    let Some(file) = &options.expect else { return Ok(None) };
    let path = request::build_dir(Some(file), host)?;
    if fs::kind(path.as_std_path()) == Kind::Missing {
        return match options.update {
            true => Ok(Some((path, None))),
            false => Err(Error::new(Code::Read, format!("there is no record `{path}`"))
                .hint("Record the answers of this run with `--update`.")),
        };
    }
    let record = Record::read(&path, &fs::read_to_string(&path)?)?;
    Ok(Some((path, Some(record))))
}

/// Runs the entries, so many at once, and returns them in their order.
fn side_by_side(
    work: &[(Entry, Option<Utf8PathBuf>)],
    jobs: usize,
    host: &Host,
    bars: &Bars,
) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let all: Mutex<BTreeMap<usize, Done>> = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((entry, dir)) = work.get(at) else { return };
            if host.runner.interrupt.is_set() {
                return;
            }
            let mut row = bars.row(&entry.name);
            let done = alone(entry, dir.as_deref(), host, &mut row);
            drop(row);
            let code = done.error.as_ref().map(|error| error.code.row().name);
            bars.done(&entry.name, code.unwrap_or("ok"));
            all.lock().unwrap_or_else(PoisonError::into_inner).insert(at, done);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.min(work.len()) {
            scope.spawn(worker);
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Runs one. A fault of ours in it is its own error.
fn alone(entry: &Entry, dir: Option<&Utf8Path>, host: &Host, sink: &mut dyn Sink) -> Done {
    let run = panic::AssertUnwindSafe(|| detect(entry, dir, host, sink));
    let (report, error) = panic::catch_unwind(run).unwrap_or_else(|_| {
        let error = Error::new(Code::Internal, "a fault of this program ended the entry")
            .hint("Please report it, with the message above and the command line.");
        (check::blank(&entry.arguments, &error), Some(error))
    });
    Done { entry: entry.clone(), report, error, build: None }
}

/// What `check` does, except that a build directory keeps the stub toolkits.
fn detect(
    entry: &Entry,
    dir: Option<&Utf8Path>,
    host: &Host,
    sink: &mut dyn Sink,
) -> (Report, Option<Error>) {
    let understood = understand(entry, dir, host);
    let (request, requirements) = match understood {
        Ok(understood) => understood,
        Err(error) => return (check::blank(&entry.arguments, &error), Some(error)),
    };
    let engine::Outcome { mut report, error } = engine::configure(&request, host, sink);
    let error = error.or_else(|| host.runner.interrupt.check().err());
    let error = error
        .or_else(|| requirement::hold(&requirements, &report).err())
        .or_else(|| requirement::cap(&request, &report).err());
    remarks::record(&mut report, &request, error.as_ref());
    (report, error)
}

fn understand(
    entry: &Entry,
    dir: Option<&Utf8Path>,
    host: &Host,
) -> Result<(Request, Vec<requirement::Requirement>), Error> {
    let arguments: Vec<OsString> = entry.arguments.iter().map(OsString::from).collect();
    let typed = match cli::parse(&arguments)? {
        Parsed::Run(typed) => typed,
        Parsed::Show(_) => {
            return Err(Error::new(Code::Usage, "the arguments of an entry ask for a text")
                .hint("Leave `--help` and `--version` out of them."));
        }
    };
    let Command::Check(check) = &typed.command else {
        return Err(Error::new(Code::Usage, "the arguments of an entry name a command")
            .hint("Leave the command out: an entry is a run of `check`."));
    };
    let requirements = requirement::parse(&check.require)?;
    let request = request::resolve(&typed, host)?.request;
    let build_dir = dir.map_or_else(|| request.build_dir.clone(), Utf8Path::to_owned);
    let state_dir = dir.map(|dir| dir.join(request::STATE_DIR));
    // Answers are kept by whoever repeats a run; here each is another.
    Ok((Request { cache: false, build_dir, state_dir, ..request }, requirements))
}

/// Tells what it came to, holds it against what is recorded, or records it.
fn tell(
    options: &MatrixOptions,
    rows: Vec<Done>,
    recorded: Option<(Utf8PathBuf, Option<Record>)>,
    host: &Host,
) -> Result<(), Error> {
    let now = Record::of(&rows);
    let mut notes = Vec::new();
    let changes = match &recorded {
        Some((path, before)) if options.update => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let changed = fs::write_if_changed(path, now.text()?.as_bytes(), 0o644)?;
            notes = updated(path, before.as_ref(), &now, changed);
            Some(Vec::new())
        }
        Some((_, Some(record))) => Some(now.changes(record)),
        _ => None,
    };
    let answer = Answer { rows, changes };
    let id = options.format.to_possible_value().map(|value| value.get_name().to_owned());
    let format = FORMATS.iter().find(|format| Some(format.id) == id.as_deref());
    let format = format.ok_or_else(|| Error::new(Code::Internal, "the format has no row"))?;
    print_line((format.render)(&answer)?.trim_end())?;
    for note in &notes {
        // Beside the answer, which a program may read.
        let _ = writeln!(anstream::stderr(), "note: {note}");
    }
    host.runner.interrupt.check()?;
    if answer.is_good() { Ok(()) } else { Err(failed(&answer, recorded.map(|(path, _)| path))) }
}

/// What `--update` recorded, and what is recorded no longer.
fn updated(path: &Utf8Path, before: Option<&Record>, now: &Record, changed: bool) -> Vec<String> {
    let count = now.names().count();
    let things = if count == 1 { "entry" } else { "entries" };
    let what = if changed { "recorded in" } else { "as they were in" };
    let mut notes = vec![format!("{count} {things} {what} `{path}`")];
    let gone = before.iter().flat_map(|before| before.names());
    let gone = gone.filter(|name| !now.names().any(|other| other == *name));
    notes.extend(gone.map(|name| format!("`{name}` is not in this run, and recorded no longer")));
    notes
}

/// The error that a run with failing entries ends with.
fn failed(answer: &Answer, record: Option<Utf8PathBuf>) -> Error {
    match (record, &answer.changes) {
        (Some(path), Some(changes)) => {
            let entries: std::collections::BTreeSet<&str> =
                changes.iter().map(|change| change.entry.as_str()).collect();
            let list: Vec<String> = entries.iter().map(|name| format!("`{name}`")).collect();
            Error::new(Code::MatrixNotMet, format!("not as `{path}` records: {}", list.join(", ")))
                .hint("If the change is wanted, record it with `--update`.")
        }
        _ => {
            let failing = answer.rows.iter().filter(|done| done.error.is_some());
            let list: Vec<String> = failing.map(|done| format!("`{}`", done.entry.name)).collect();
            let count = answer.rows.len();
            let what = format!("{} of {count} entries failed: {}", list.len(), list.join(", "));
            // Each one's own hint comes first.
            let own = answer.rows.iter().filter_map(|done| {
                let hint = done.error.as_ref()?.hints.first()?;
                Some(format!("`{}`: {hint}", done.entry.name))
            });
            own.fold(Error::new(Code::MatrixNotMet, what), Error::hint)
                .hint("What is meant to fail can be recorded: `--expect FILE --update`.")
        }
    }
}
