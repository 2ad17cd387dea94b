//! `verify`: what the hooks would see, for people or as JSON.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use serde::Serialize;

use super::print_line;
use crate::{
    cli::{Format, VerifyOptions},
    error::{Code, Error},
    host::{Host, fs},
    request,
    verify::{
        modules::{self, Modules},
        program::{self, Answer, How, User},
    },
};

/// How many problems the error names.
const SHOWN: usize = 10;

/// Runs it.
pub(super) fn run(options: &VerifyOptions, host: &Host) -> Result<(), Error> {
    if let Some(file) = &options.program {
        let file = Utf8PathBuf::try_from(std::path::PathBuf::from(file)).map_err(|path| {
            let path = path.as_path().display();
            Error::new(Code::UnusablePath, format!("`{path}` is not UTF-8"))
        })?;
        let answer = program::answer(&host.absolute(&file), host)?;
        return show(options.format, &answer, program_text);
    }
    let dir = request::build_dir(options.dir.as_deref(), host)?;
    let found = modules::look(&dir, host)?;
    show(options.format, &found, modules_text)?;
    if found.ok {
        return Ok(());
    }
    let count = found.problems.len();
    let things = if count == 1 { "one thing is".to_owned() } else { format!("{count} things are") };
    let what = format!("{things} wrong with the modules in `{}`", found.dir);
    Err(found
        .problems
        .iter()
        .take(SHOWN)
        .fold(Error::new(Code::TreeNotRight, what), |error, problem| {
            error.means(format!("`{}` {}.", problem.file, problem.what))
        })
        .hint("`--format json` has all of them, each with its kind."))
}

/// `loaded`: the files that are mapped into this process, for `verify` to see
/// what became of a preloaded module.
pub(super) fn loaded() -> Result<(), Error> {
    let maps = fs::read_to_string("/proc/self/maps".into())?;
    let files = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let files: std::collections::BTreeSet<&str> = files.collect();
    print_line(&files.into_iter().collect::<Vec<_>>().join("\n"))
}

fn show<T: Serialize>(format: Format, answer: &T, text: fn(&T) -> String) -> Result<(), Error> {
    match format {
        Format::Text => print_line(text(answer).trim_end()),
        Format::Json => {
            let json = serde_json::to_string_pretty(answer).map_err(|error| {
                Error::new(Code::Internal, "the answer cannot be written as JSON")
                    .said(error.to_string())
            })?;
            print_line(&json)
        }
    }
}

fn program_text(answer: &Answer) -> String {
    let mut text = format!("{} ({})\n", answer.program, answer.machine);
    for runtime in &answer.shared_runtimes {
        let _ = writeln!(text, "  shared CUDA runtime: {runtime}");
    }
    for user in &answer.users {
        let _ = writeln!(text, "  {}", user_text(user));
    }
    text.push_str("missed, by mode (UCX_MEM_CUDA_HOOK_MODE):\n");
    for mode in &answer.modes {
        if mode.missed.is_empty() {
            let _ = writeln!(text, "  {:<13} nothing that can be told from here", mode.mode);
        }
        for user in &mode.missed {
            let _ = writeln!(text, "  {:<13} {}", mode.mode, user_text(user));
        }
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "recommendation: {}", answer.recommendation);
    text
}

fn user_text(user: &User) -> String {
    let how = match user.how {
        How::Slots => "calls through import slots",
        How::StaticRuntime => "has a static CUDA runtime inside, whose calls use no slot",
        How::EntryPoints => "calls pointers from cuGetProcAddress or cudaGetDriverEntryPoint",
        How::Dlsym => "calls pointers from dlsym",
    };
    let functions = match user.functions.as_slice() {
        [] => "functions not told".to_owned(),
        names => names.join(" "),
    };
    format!("{} {how}: {functions}", user.file)
}

fn modules_text(found: &Modules) -> String {
    let mut text = format!("modules in {}\n", found.dir);
    for module in &found.modules {
        let soname = module.soname.as_deref().unwrap_or("no SONAME");
        let loads = if module.loads { "loads here" } else { "does not load here" };
        let whose = if module.of_ucx { ", one of UCX's" } else { "" };
        let _ = writeln!(text, "  {:<32} {soname}, {loads}{whose}", module.file);
        let mut more = |title: &str, words: &[String]| {
            if !words.is_empty() {
                let _ = writeln!(text, "  {:<32} {title} {}", "", words.join(" "));
            }
        };
        more("needs", &module.needed);
        more("RPATH", &module.rpath);
        more("RUNPATH", &module.runpath);
        more("not here:", &module.unresolved);
        for line in module.said.iter().flat_map(|said| said.lines()) {
            let _ = writeln!(text, "  {:<32} | {line}", "");
        }
    }
    for name in &found.absent {
        let _ = writeln!(text, "  {name:<32} not there");
    }
    for contents in &found.packages {
        let (all, missing) = (contents.expected.len(), contents.missing.len());
        let there = all - missing;
        let name = contents.package.name();
        let _ = write!(text, "package {name}: {there} of {all} files");
        if !contents.changed.is_empty() {
            let _ = write!(text, ", {} changed", contents.changed.len());
        }
        text.push('\n');
    }
    for (title, path) in [("driver", &found.driver), ("NVML", &found.nvml)] {
        let place = path.as_ref().map_or("not here", |path| path.as_str());
        let _ = writeln!(text, "{title}: {place}");
    }
    if !found.prologues.is_empty() {
        let patched = found.prologues.iter().filter(|row| row.outcome == "bistro").count();
        let all = found.prologues.len();
        let _ = writeln!(text, "entries of the driver's functions: {patched} of {all} patched");
    }
    for note in &found.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.push_str(found.coverage.as_deref().unwrap_or_default());
    text
}
