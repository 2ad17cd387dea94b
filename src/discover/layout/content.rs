//! What directories hold, and which of them count by it.

use camino::{Utf8Path, Utf8PathBuf};

use super::{HEADERS, LIBRARIES, Parts, Target};
use crate::{
    discover::{library::classify, shape},
    host::fs,
};

/// What cuda_runtime.h includes, and CUDA 13 has in a component of its own.
const PART_OF_RUNTIME_H: &str = "crt/host_config.h";

/// Directories that compilers and linkers search by themselves; naming them
/// would only change the order of others.
const BUILT_IN: [&str; 5] = ["/usr/include", "/usr/lib", "/usr/lib64", "/lib", "/lib64"];

/// Whether a directory is, its links followed, one of a toolkit's for another
/// machine: `lib64` of a toolkit that can do both leads to the host's.
pub(super) fn is_of_another_target(dir: &Utf8Path, machine: &str) -> bool {
    let ours = shape::target_names(machine);
    let Some(real) = fs::canonical(dir).ok().filter(|_| !ours.is_empty()) else { return false };
    let parts: Vec<&str> = real.components().map(|part| part.as_str()).collect();
    parts.windows(3).any(|parts| {
        let [targets, name, kind] = parts else { return false };
        *targets == "targets"
            && shape::ALL_TARGETS.contains(name)
            && !ours.contains(name)
            && matches!(*kind, "include" | "lib" | "lib64")
    })
}

/// A flag for each directory that a compiler does not search by itself.
pub(super) fn flags(flag: &str, dirs: &[Utf8PathBuf]) -> Vec<String> {
    dirs.iter().filter(|dir| !is_built_in(dir)).map(|dir| format!("{flag}{dir}")).collect()
}

/// Whether compilers and linkers search a directory by themselves.
pub fn is_built_in(dir: &Utf8Path) -> bool {
    let is_multiarch = || {
        let parent = dir.parent().is_some_and(|dir| dir == "/usr/lib" || dir == "/lib");
        parent && dir.file_name().is_some_and(|name| name.contains("-linux-gnu"))
    };
    BUILT_IN.contains(&dir.as_str()) || is_multiarch()
}

/// The directories with headers of CUDA's, or with what those include.
pub(super) fn with_headers(dirs: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
    let wanted: Vec<&str> = HEADERS.into_iter().chain([PART_OF_RUNTIME_H]).collect();
    with_content(dirs, &wanted, |dir, name| dir.join(name).is_file())
}

/// The directories with libraries that can be linked with.
pub(super) fn with_libraries(
    dirs: &[Utf8PathBuf],
    wanted: &[&str],
    machine: &str,
) -> Vec<Utf8PathBuf> {
    with_content(dirs, wanted, |dir, name| library_in(dir, name, machine).is_some())
}

/// The directories that were chosen among all, and those that were named,
/// which count whatever they hold.
pub(super) fn or_named(
    chosen: Vec<Utf8PathBuf>,
    named: &[Utf8PathBuf],
    all: &[Utf8PathBuf],
) -> Vec<Utf8PathBuf> {
    if named.is_empty() {
        return chosen;
    }
    let counts = |dir: &&Utf8PathBuf| chosen.contains(dir) || named.contains(dir);
    let mut kept: Vec<Utf8PathBuf> = Vec::new();
    for dir in all.iter().filter(counts) {
        if !kept.contains(dir) {
            kept.push(dir.clone());
        }
    }
    kept
}

/// Directories that were named and hold nothing of CUDA's, and the one below
/// that was probably meant.
pub fn idle(parts: &Parts, target: &Target<'_>) -> Vec<(Utf8PathBuf, Option<Utf8PathBuf>)> {
    let has_header = |dir: &Utf8Path| !with_headers(&[dir.to_owned()]).is_empty();
    let has_library = |dir: &Utf8Path| {
        let is_there = |name: &&str| {
            library_in(dir, name, target.machine).is_some()
                || versioned(dir, name, target.machine).is_some()
        };
        LIBRARIES.iter().any(is_there)
    };
    let below = |dir: &Utf8Path, names: &[&str], has: &dyn Fn(&Utf8Path) -> bool| {
        names.iter().map(|name| dir.join(name)).find(|dir| has(dir))
    };
    let headers = parts.include_dirs.iter().filter(|dir| !has_header(dir));
    let headers = headers.map(|dir| (dir.clone(), below(dir, &["include"], &has_header)));
    let libraries = parts.library_dirs.iter().filter(|dir| !has_library(dir));
    let names = ["lib64", "lib", "stubs"];
    let libraries = libraries.map(|dir| (dir.clone(), below(dir, &names, &has_library)));
    headers.chain(libraries).collect()
}

/// The directories that add something to what the earlier ones hold. The same
/// directory under another name, as when `lib64` is a link to `targets/*/lib`,
/// adds nothing.
pub(super) fn with_content(
    dirs: &[Utf8PathBuf],
    wanted: &[&str],
    has: impl Fn(&Utf8Path, &str) -> bool,
) -> Vec<Utf8PathBuf> {
    let mut missing: Vec<&str> = wanted.to_vec();
    let mut chosen = Vec::new();
    for dir in dirs {
        let before = missing.len();
        missing.retain(|name| !has(dir, name));
        if missing.len() < before {
            chosen.push(dir.clone());
        }
    }
    chosen
}

/// The library that a linker would find in a directory, if it would do.
pub(super) fn library_in(dir: &Utf8Path, name: &str, machine: &str) -> Option<Utf8PathBuf> {
    let file =
        if name.ends_with("_static") { format!("lib{name}.a") } else { format!("lib{name}.so") };
    let path = dir.join(file);
    (path.is_file() && classify(&path, machine).trouble().is_none()).then_some(path)
}

/// The best of a library's versioned names in a directory: the shortest, which
/// is the one that programs look for.
pub(super) fn versioned(dir: &Utf8Path, name: &str, machine: &str) -> Option<Utf8PathBuf> {
    let mut found = versioned_names(&[dir.to_owned()], name);
    found.retain(|path| classify(path, machine).trouble().is_none());
    let numbers = |path: &Utf8PathBuf| -> Vec<u32> {
        let text = path.file_name().and_then(|file| file.split_once(".so.")).map_or("", |it| it.1);
        text.split('.').map(|part| part.parse().unwrap_or_default()).collect()
    };
    let rank = |path: &Utf8PathBuf| {
        let numbers = numbers(path);
        (numbers.len(), std::cmp::Reverse(numbers))
    };
    found.into_iter().min_by_key(rank)
}

/// The versioned names of a library in the directories: what driver packages
/// and wheels have where a development link is missing.
pub fn versioned_names(dirs: &[Utf8PathBuf], library: &str) -> Vec<Utf8PathBuf> {
    let start = format!("lib{library}.so.");
    let in_dir = |dir: &Utf8PathBuf| -> Vec<Utf8PathBuf> {
        let names = fs::names(dir);
        names.iter().filter(|name| name.starts_with(&start)).map(|name| dir.join(name)).collect()
    };
    dirs.iter().flat_map(in_dir).collect()
}
