//! What is wrong with modules: names, run paths, libraries and functions that
//! are not there, files that packages lack.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::{
    Image,
    contents::Source,
    modules::{Found, Missing, Modules},
};
use crate::host::fs;

/// Libraries that only a machine with a GPU has: that they are absent is no
/// fault of a module.
const OF_DRIVER: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// Directories that no run path may lead to, and why.
const NEVER: [(&str, &str); 2] = [
    ("stubs", "stubs are to link with, and fail every call"),
    ("compat", "it holds a driver for machines with an older one"),
];

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Which kind.
    pub kind: Kind,
    /// The file that it is about.
    pub file: String,
    /// What is wrong, a fragment.
    pub what: String,
}

/// Which kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It is not what its name says: no ELF file, no manifest.
    Unreadable,
    /// It cannot be loaded here, and not for want of a driver.
    DoesNotLoad,
    /// Its name inside is not the one that it is loaded by.
    Soname,
    /// A run path leads where none may.
    RunPath,
    /// The driver or NVML lacks a function that it is linked to.
    MissingFunction,
    /// The entry of a function of the driver cannot be hooked in any way.
    Prologue,
    /// A file of a package is not there.
    MissingFile,
    /// A file is not what was installed.
    ChangedFile,
    /// A file of a module is there that nobody expects.
    UnexpectedFile,
}

/// What became of the entry of one function of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prologue {
    /// The function.
    pub function: String,
    /// `bistro`, `reloc`, `absent`, `waiting` or `missed`.
    pub outcome: String,
    /// What was tried, and why not otherwise.
    pub why: String,
}

/// Finds everything that is wrong, besides what was found before.
pub(super) fn all(found: &mut Modules) {
    let mut problems = std::mem::take(&mut found.problems);
    let mut notes = Vec::new();
    for module in &found.modules {
        if !module.is_elf {
            let what = "is no 64-bit ELF file: build or install the modules again";
            problems.push(problem(Kind::Unreadable, &module.file, what));
            continue;
        }
        name(module, &mut problems);
        run_paths(module, &found.dir, &mut problems, &mut notes);
        loading(module, &mut problems, &mut notes);
        for missing in &module.missing {
            let functions = missing.functions.join(" ");
            if missing.linked {
                let what = format!("is linked to what `{}` has not: {functions}", missing.library);
                problems.push(problem(Kind::MissingFunction, &module.file, what));
            } else {
                notes.push(format!(
                    "`{}` looks up what `{}` has not, and does without: {functions}",
                    module.file, missing.library
                ));
            }
        }
    }
    for prologue in found.prologues.iter().filter(|prologue| prologue.outcome == "missed") {
        let what = format!("calls of `{}` are not seen: {}", prologue.function, prologue.why);
        problems.push(problem(Kind::Prologue, "libucm_cuda", what));
    }
    notes.extend(found.prologues.iter().filter_map(refused));
    files(found, &mut problems);
    found.problems = problems;
    found.notes.splice(0..0, notes);
    found.ok = found.problems.is_empty();
}

/// That an entry cannot be patched, where that was tried.
fn refused(prologue: &Prologue) -> Option<String> {
    const NOT_TRIED: [&str; 3] = ["not loaded", "not in this build", "not used"];
    let tried = !["bistro", "absent"].contains(&prologue.outcome.as_str());
    let reason = prologue.why.split("bistro: ").nth(1)?.split("; reloc").next()?;
    let is_reason = !NOT_TRIED.iter().any(|word| reason.starts_with(word));
    (tried && is_reason)
        .then(|| format!("the entry of `{}` cannot be patched: {reason}", prologue.function))
}

fn problem(kind: Kind, file: &str, what: impl Into<String>) -> Problem {
    Problem { kind, file: file.to_owned(), what: what.into() }
}

/// UCX opens modules as `.so.0`, and the loader knows a library that is loaded
/// by its name inside.
fn name(module: &Found, problems: &mut Vec<Problem>) {
    let stem = module.file.split(".so").next().unwrap_or_default();
    let wanted = format!("{stem}.so.0");
    if module.soname.as_deref() != Some(wanted.as_str()) {
        let is = module.soname.as_deref().unwrap_or("none");
        let what = format!("its SONAME is `{is}`, and not `{wanted}`");
        problems.push(problem(Kind::Soname, &module.file, what));
    }
}

fn run_paths(module: &Found, dir: &Utf8Path, problems: &mut Vec<Problem>, notes: &mut Vec<String>) {
    for (tag, paths) in [("RPATH", &module.rpath), ("RUNPATH", &module.runpath)] {
        for path in paths {
            if let Some(why) = never(path, dir) {
                let what = format!("its {tag} has `{path}`: {why}");
                problems.push(problem(Kind::RunPath, &module.file, what));
            } else if !filled(path, dir).is_dir() {
                // Often where it was built; whoever makes that directory is obeyed.
                notes.push(format!(
                    "the {tag} of `{}` has `{path}`, which is not here",
                    module.file
                ));
            }
        }
    }
}

/// A run path with `$ORIGIN` filled in.
fn filled(path: &str, dir: &Utf8Path) -> Utf8PathBuf {
    path.replace("${ORIGIN}", dir.as_str()).replace("$ORIGIN", dir.as_str()).into()
}

/// Why a run path may not have a directory, if so.
fn never(path: &str, dir: &Utf8Path) -> Option<String> {
    let filled = filled(path, dir);
    if !filled.is_absolute() {
        return Some("what it leads to depends on where a program is started".to_owned());
    }
    // Where a link leads counts as well as what it is called.
    let real = fs::canonical(&filled).unwrap_or_else(|_| filled.clone());
    let has = |name: &str| {
        [&filled, &real].iter().any(|path| path.components().any(|part| part.as_str() == name))
    };
    let why = NEVER.iter().find(|(name, _)| has(name)).map(|(_, why)| *why)?;
    Some(if real == filled { why.to_owned() } else { format!("{why} (it is `{real}`)") })
}

fn loading(module: &Found, problems: &mut Vec<Problem>, notes: &mut Vec<String>) {
    if module.loads {
        return;
    }
    let is_of_driver = |name: &&String| OF_DRIVER.contains(&name.as_str());
    let (driver, others): (Vec<&String>, Vec<&String>) =
        module.unresolved.iter().partition(is_of_driver);
    if others.is_empty() && !driver.is_empty() {
        let names: Vec<&str> = driver.iter().map(|name| name.as_str()).collect();
        notes.push(format!(
            "`{}` would not load here: it is linked to the driver's {}, which this machine has not",
            module.file,
            names.join(" and ")
        ));
        return;
    }
    let what = match others.as_slice() {
        [] => {
            let said = module.said.as_deref().unwrap_or_default();
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            format!("does not load here: {}", last.unwrap_or("the loader says nothing"))
        }
        names => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!("does not load here: there is no {}", names.join(", no "))
        }
    };
    problems.push(problem(Kind::DoesNotLoad, &module.file, what));
}

fn files(found: &Modules, problems: &mut Vec<Problem>) {
    for contents in &found.packages {
        let package = contents.package.name();
        let is_of = match contents.source {
            Source::Manifest => format!("is of {package} as it was installed"),
            Source::Report => format!("is of {package} as it was configured"),
            Source::Names => format!("is of {package}, whose modules come together"),
        };
        for path in &contents.missing {
            let what = format!("{is_of}, and not there");
            problems.push(problem(Kind::MissingFile, path.as_str(), what));
        }
        for path in &contents.changed {
            let what = format!("{is_of}, and was changed since");
            problems.push(problem(Kind::ChangedFile, path.as_str(), what));
        }
        for path in &contents.unexpected {
            let what = format!("has the name of a module of {package}, and nobody expects it");
            problems.push(problem(Kind::UnexpectedFile, path.as_str(), what));
        }
    }
}

/// The functions that a module is linked to or looks up, and that a library
/// which is here has not: of the driver and of NVML, by the beginnings of
/// their names.
pub(super) fn missing(image: &Image, here: [Option<&Utf8Path>; 2]) -> Vec<Missing> {
    let is_of = |name: &str, start: &str| {
        let letter = name.strip_prefix(start).and_then(|rest| rest.chars().next());
        letter.is_some_and(|letter| letter.is_ascii_uppercase())
    };
    let mut all = Vec::new();
    for (path, start) in here.into_iter().zip(["cu", "nvml"]) {
        let Some(library) = path.and_then(Image::read) else { continue };
        for (linked, names) in [(true, &image.imports), (false, &image.words)] {
            let wanted = names.iter().filter(|name| is_of(name, start));
            let functions: Vec<String> =
                wanted.filter(|name| !library.exports.contains(*name)).cloned().collect();
            if !functions.is_empty() {
                all.push(Missing { library: library.path.clone(), linked, functions });
            }
        }
    }
    all
}

/// The rows of the driver's functions in a coverage report.
pub(super) fn prologues(coverage: &str) -> Vec<Prologue> {
    let row = |line: &str| {
        let mut words = line.strip_prefix("  ")?.splitn(2, char::is_whitespace);
        let function = words.next().filter(|name| name.starts_with("cu"))?;
        let rest = words.next()?.trim_start();
        let (outcome, why) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // The runtime's functions are hooked by slots alone.
        (!function.starts_with("cuda")).then(|| Prologue {
            function: function.to_owned(),
            outcome: outcome.to_owned(),
            why: why.trim().to_owned(),
        })
    };
    coverage.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_is_read_by_rows() {
        let text = "hooks (bistro,reloc): 1 by bistro, ...\n  cuMemAlloc_v2                   bistro   bistro: entry patched; reloc: no slot\n  \
                    cuMemFree_v2                    missed   bistro: too short; reloc: no slot\n  cudaMalloc                      reloc    bistro: not used\n";
        let rows = prologues(text);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].outcome, "bistro");
        assert_eq!(rows[1].function, "cuMemFree_v2");
        assert_eq!(rows[1].why, "bistro: too short; reloc: no slot");
        let said = "the entry of `cuMemFree_v2` cannot be patched: too short";
        assert_eq!(refused(&rows[1]).as_deref(), Some(said));
        assert_eq!(refused(&rows[0]), None);
    }

    #[test]
    fn run_paths_lead_to_no_stub() {
        let dir = Utf8Path::new("/opt/ucx/lib/ucx");
        for path in
            ["/usr/local/cuda/lib64/stubs", "/usr/local/cuda/compat", "lib", "", "$ORIGIN/stubs"]
        {
            assert!(never(path, dir).is_some(), "{path}");
        }
        for path in ["/usr/local/cuda/lib64", "$ORIGIN", "${ORIGIN}/..", "/opt/substubs"] {
            assert_eq!(never(path, dir), None, "{path}");
        }
        let scratch = fs::Scratch::new(None).unwrap();
        let (stubs, link) = (scratch.path().join("stubs"), scratch.path().join("lib"));
        fs::create_dir_all(&stubs).unwrap();
        fs::symlink("stubs", &link).unwrap();
        assert!(never(link.as_str(), dir).unwrap().contains("/stubs`"), "a link counts");
    }
}
