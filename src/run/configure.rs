//! `ucx-configure`: detect, write, build.

use std::{
    io::Write as _,
    thread,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};

use super::{explain, last_run::LastRun, outputs, remarks, requirement};
use crate::{
    build,
    cli::Typed,
    engine,
    error::{Code, Error},
    exit::Exit,
    host::{
        Host,
        fs::{self, Lock, Scratch},
    },
    model::{Report, Tool},
    request::{self, Request, Resolved},
    ui::{Channel, ConfigLog, Fanout, Progress, Settings, Sink, summary},
};

/// How long a second run in the same build directory waits for the first.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// How often it looks.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Runs it.
pub(super) fn run(typed: &Typed, host: Host) -> Result<(), Error> {
    // Seen from where we stand, also when the last run stood elsewhere.
    let build_dir = request::build_dir(typed.options.build_dir.as_deref(), &host)?;
    if !typed.options.recheck {
        let Resolved { request, links } = request::resolve(typed, &host)?;
        let this_run = LastRun::of(typed, &host);
        return locked(&request, &links, &this_run, host);
    }
    let last = LastRun::read(&build_dir)?;
    let (typed, host) = last.clone().repeat(typed, build_dir, host)?;
    let Resolved { request, links } = request::resolve(&typed, &host)?;
    locked(&request, &links, &last, host)
}

/// The part that works in the build directory, alone.
fn locked(
    request: &Request,
    links: &[request::Link],
    this_run: &LastRun,
    mut host: Host,
) -> Result<(), Error> {
    outputs::refuse_files_of_others(&request.build_dir)?;
    let (state_dir, _lock) = enter(&request.build_dir, &host)?;
    let scratch = Scratch::new(Some(&state_dir))?;
    host.runner.set_scratch(scratch.path().to_owned());
    let host = &host;
    this_run.write(&state_dir)?;
    links.iter().try_for_each(request::Link::make)?;

    let mut progress =
        Progress::new(Settings { mode: request.mode, quiet: request.quiet }, Channel::Stdout);
    let mut log = ConfigLog::new(&tool(), &request.command_line, &facts(host));
    let mut sink = Fanout(vec![&mut progress, &mut log]);
    let (report, result) = detect_and_build(request, host, &mut sink);
    drop(sink);
    progress.finish();
    let exit = result.as_ref().err().map_or(Exit::Done, Error::exit);
    let text = log.finish(report.as_ref(), result.as_ref().err(), exit);
    let written =
        fs::write_if_changed(&request.build_dir.join(outputs::LOG), text.as_bytes(), 0o644);
    // What the run failed for matters more than that its log failed, too.
    result.and_then(|()| written.map(drop))?;
    if let Some(report) = report.filter(|_| !request.quiet) {
        // Nobody reads any more: the files are there all the same.
        let not_built = (!request.build_runtime).then_some("not built: --no-build");
        let text = summary(&report, Some(&request.build_dir), not_built);
        let _ = anstream::stdout().write_all(text.as_bytes());
    }
    Ok(())
}

/// Everything that is logged. The report comes back with the error, as far as
/// there is one.
fn detect_and_build(
    request: &Request,
    host: &Host,
    sink: &mut dyn Sink,
) -> (Option<Report>, Result<(), Error>) {
    remarks::tell(request, sink);
    let engine::Outcome { mut report, error } = engine::configure(request, host, sink);
    let error = error
        .or_else(|| host.runner.interrupt.check().err())
        .or_else(|| requirement::cap(request, &report).err());
    remarks::record(&mut report, request, error.as_ref());
    let result = match error {
        Some(error) => Err(failed(error, &report, &request.build_dir, host, sink)),
        None => finish(&report, request, host, sink),
    };
    (Some(report), result)
}

/// Writes the outputs and builds the modules.
fn finish(
    report: &Report,
    request: &Request,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    outputs::write_all(report, &request.build_dir, sink)?;
    host.runner.interrupt.check()?;
    if request.build_runtime {
        build::build_runtime(report, request, host, sink).map(drop)
    } else {
        build::remove_stale(&report.modules, &request.build_dir, sink).map(drop)
    }
}

/// Leaves the report of a run that failed. The other outputs stay as they
/// were, so that nothing that depends on them is built anew for nothing; the
/// error says so.
fn failed(
    error: Error,
    report: &Report,
    build_dir: &Utf8Path,
    host: &Host,
    sink: &mut dyn Sink,
) -> Error {
    // An interrupted run knows too little for a report.
    if error.code == Code::Interrupted {
        return error;
    }
    let error = if outputs::has_earlier_success(build_dir) {
        error.means(format!(
            "The outputs of the last successful run in `{build_dir}` are unchanged, except for the report and the log."
        ))
    } else {
        error
    };
    // That the report cannot be written is a fault beside the one told.
    let _ = outputs::write_report(report, build_dir, sink);
    // What is shown is the short form of what `explain` has to say.
    match error.code {
        Code::CudaNotMet | Code::NvmlNotMet | Code::GdrCopyNotMet | Code::NeedsCuda => {
            let command = explain::command_for(build_dir, host);
            error.hint(format!("`{command}` shows every step that led here."))
        }
        _ => error,
    }
}

/// Makes a build directory ours for this run, and cleans up what a run that
/// was killed left. Returns the state directory.
///
/// # Errors
///
/// It cannot be made, or another run works in it.
pub(super) fn enter(build_dir: &Utf8Path, host: &Host) -> Result<(Utf8PathBuf, Lock), Error> {
    let state_dir = build_dir.join(request::STATE_DIR);
    fs::create_dir_all(&state_dir)?;
    let lock = lock(&state_dir, host)?;
    outputs::remove_scratch(build_dir, &state_dir);
    Ok((state_dir, lock))
}

/// Waits a moment for another run to end.
fn lock(state_dir: &Utf8Path, host: &Host) -> Result<Lock, Error> {
    let begin = Instant::now();
    loop {
        if let Some(lock) = Lock::try_take(&state_dir.join("lock"))? {
            return Ok(lock);
        }
        host.runner.interrupt.check()?;
        if begin.elapsed() >= LOCK_PATIENCE {
            let dir = state_dir.parent().unwrap_or(state_dir);
            return Err(Error::new(Code::Busy, format!("another run works in `{dir}`"))
                .means(format!("It was waited for, {} seconds.", LOCK_PATIENCE.as_secs()))
                .hint("Wait until it has ended, or name another build directory with `-B DIR`."));
        }
        thread::sleep(LOCK_POLL);
    }
}

/// Who we are.
pub(super) fn tool() -> Tool {
    Tool { name: "ucx-configure".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// What the log says of the machine: the variables that we read.
fn facts(host: &Host) -> Vec<(&'static str, String)> {
    let variables = crate::env_vars::ENV_VARS.iter();
    let set = variables.filter_map(|row| {
        let value = host.env.get_os(row.name)?;
        Some((row.name, value.to_string_lossy().into_owned()))
    });
    std::iter::once(("working directory", host.cwd.to_string())).chain(set).collect()
}
