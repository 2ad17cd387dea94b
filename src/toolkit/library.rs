//! Compiles small libraries, several at once: link stubs and the mock driver.

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;

use crate::{
    error::{Code, Error},
    host::{
        Host, fs,
        process::{Completed, Invocation, find_program},
    },
    probe::{Compiler, first_error_line},
    ui::{Event, Sink},
};

/// What a compiler makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A shared library.
    Shared,
    /// An archive.
    Static,
    /// A program.
    Program,
}

/// A library or a program to compile.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Where it goes.
    pub(crate) output: Utf8PathBuf,
    /// What it is.
    pub(crate) kind: Kind,
    /// Where the compiler runs; `sources` are relative to it.
    pub(crate) cwd: Utf8PathBuf,
    /// What it is compiled from.
    pub(crate) sources: Vec<String>,
    /// Flags for the compiler, in front of the sources.
    pub(crate) flags: Vec<String>,
    /// Flags for the linker, behind them.
    pub(crate) libs: Vec<String>,
    /// Names of links to the library, in its directory.
    pub(crate) links: Vec<String>,
}

/// Compiles all of them, in parallel: one compiler run for a shared library,
/// one for each source of a static one.
///
/// # Errors
///
/// The first job, in the order given, that failed.
pub(crate) fn build(
    jobs: &[Job],
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let scratch = compiler.scratch_dir()?;
    let results: Vec<(Vec<Completed>, Result<(), Error>)> = jobs
        .par_iter()
        .enumerate()
        .map(|(index, job)| {
            let mut ran = Vec::new();
            let objects = scratch.join(index.to_string());
            let result = run(job, &objects, compiler, host, &mut ran);
            (ran, result)
        })
        .collect();
    for completed in results.iter().flat_map(|(ran, _)| ran) {
        sink.event(&Event::Ran { completed, source: None });
    }
    let _ = fs::remove_dir_all_if_there(&scratch);
    host.runner.interrupt.check()?;
    results.into_iter().try_for_each(|(_, result)| result)
}

/// Compiles one library and makes its links.
fn run(
    job: &Job,
    objects: &Utf8Path,
    compiler: &Compiler,
    host: &Host,
    ran: &mut Vec<Completed>,
) -> Result<(), Error> {
    if let Some(dir) = job.output.parent() {
        fs::create_dir_all(dir)?;
    }
    let name = job.output.file_name().unwrap_or_default();
    let start = |output: &Utf8Path| {
        Invocation::new(compiler.command.first().cloned().unwrap_or_default())
            .args(compiler.command.iter().skip(1).cloned())
            .args(job.flags.iter().cloned())
            .args(["-o", output.as_str()])
            .cwd(job.cwd.clone())
            .time_limit(compiler.time_limit())
    };
    match job.kind {
        Kind::Shared | Kind::Program => {
            let invocation = start(&job.output)
                .args((job.kind == Kind::Shared).then_some("-shared"))
                .args(job.sources.iter().cloned())
                .args(job.libs.iter().cloned());
            step(name, invocation, host, ran)?;
        }
        Kind::Static => {
            fs::create_dir_all(objects)?;
            let mut members = Vec::new();
            for (index, source) in job.sources.iter().enumerate() {
                let object = objects.join(format!("{index}.o"));
                step(name, start(&object).arg("-c").arg(source.clone()), host, ran)?;
                members.push(object.into_string());
            }
            // D: no times and owners, so that the same sources give the same bytes.
            let archive = Invocation::new(archiver(compiler, host))
                .args(["rcsD", job.output.as_str()])
                .args(members);
            step(name, archive, host, ran)?;
        }
    }
    for link in &job.links {
        fs::symlink(name, &job.output.with_file_name(link))?;
    }
    Ok(())
}

/// Runs one process; its failure is an error in four parts.
fn step(
    library: &str,
    invocation: Invocation,
    host: &Host,
    ran: &mut Vec<Completed>,
) -> Result<(), Error> {
    let completed = host.runner.run(invocation);
    let error = (!completed.success()).then(|| {
        let said = first_error_line(&completed.stderr).unwrap_or_default();
        Error::new(Code::CompilerBroken, format!("`{library}` cannot be compiled"))
            .command(&completed.invocation)
            .said(said)
            .means(format!("A small C file of our own did not compile: {}.", completed.status))
            .hint("Run the command by hand; set CC to a compiler that can make shared libraries.")
    });
    ran.push(completed);
    error.map_or(Ok(()), Err)
}

/// The archiver that belongs to a compiler: the one for its machine, or the
/// system's.
fn archiver(compiler: &Compiler, host: &Host) -> String {
    let dirs = host.env.path_dirs();
    [format!("{}-ar", compiler.identity.target), "ar".to_owned(), "llvm-ar".to_owned()]
        .into_iter()
        .find(|name| find_program(name, &dirs).0.is_some())
        .unwrap_or_else(|| "ar".to_owned())
}
