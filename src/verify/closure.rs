//! A program and the libraries that the loader would load with it, found as
//! the loader finds them, without running anything.

use std::collections::{BTreeSet, VecDeque};

use camino::{Utf8Path, Utf8PathBuf};

use super::Image;
use crate::host::{Host, fs};

/// Directories that loaders have built in.
const DEFAULT_DIRS: &[&str] = &["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Where further directories are listed.
const CONFIGURATION: &str = "/etc/ld.so.conf";

/// Libraries of the system, and of the driver: not looked into.
const SYSTEM: &[&str] = &[
    "ld-linux",
    "libc.so",
    "libdl.so",
    "libgcc_s.so",
    "libm.so",
    "libpthread.so",
    "librt.so",
    "libstdc++.so",
    "libcuda.so",
    "libnvidia",
];

/// Whether a library is left out.
fn is_system(name: &str) -> bool {
    SYSTEM.iter().any(|prefix| name.starts_with(prefix))
}

/// What is loaded together.
#[derive(Debug)]
pub(super) struct Closure {
    /// The program first, then its libraries in the loader's order.
    pub(super) images: Vec<Image>,
    /// Libraries of which no file was found.
    pub(super) unresolved: Vec<String>,
}

/// Finds everything that a program is linked to.
pub(super) fn of(program: Image, host: &Host) -> Closure {
    with_dirs(program, &[], host)
}

/// The same with more directories, after those of LD_LIBRARY_PATH.
pub(super) fn with_dirs(program: Image, more: &[Utf8PathBuf], host: &Host) -> Closure {
    let fixed = fixed_dirs(program.machine);
    let variable: Vec<Utf8PathBuf> = host
        .env
        .get("LD_LIBRARY_PATH")
        .unwrap_or_default()
        .split([':', ';'])
        .filter(|dir| !dir.is_empty())
        .map(|dir| host.absolute(Utf8Path::new(dir)))
        .chain(more.iter().cloned())
        .collect();
    // The program's RPATH is for its libraries' libraries, too.
    let of_root =
        if program.runpath.is_empty() { expand(&program.rpath, &program.path) } else { Vec::new() };
    let mut known = BTreeSet::new();
    let mut left = VecDeque::from([program]);
    let mut closure = Closure { images: Vec::new(), unresolved: Vec::new() };
    while let Some(image) = left.pop_front() {
        let mut dirs = Vec::new();
        if image.runpath.is_empty() {
            dirs.extend(expand(&image.rpath, &image.path));
            dirs.extend(of_root.iter().cloned());
        }
        dirs.extend(variable.iter().cloned());
        dirs.extend(expand(&image.runpath, &image.path));
        dirs.extend(fixed.iter().cloned());
        for name in &image.dynamic.needed {
            if is_system(name) || !known.insert(name.clone()) {
                continue;
            }
            let places = dirs.iter().map(|dir| dir.join(name));
            let mut fitting = places
                .filter(|path| path.is_file())
                .filter_map(|path| Image::read(&path))
                .filter(|found| found.machine == image.machine);
            match fitting.next() {
                Some(found) => left.push_back(found),
                None => closure.unresolved.push(name.clone()),
            }
        }
        closure.images.push(image);
    }
    closure
}

/// Run paths with `$ORIGIN` filled in.
fn expand(dirs: &[String], of: &Utf8Path) -> Vec<Utf8PathBuf> {
    let real = fs::canonical(of).unwrap_or_else(|_| of.to_owned());
    let origin = real.parent().map_or("/", Utf8Path::as_str);
    let filled = |dir: &String| dir.replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
    dirs.iter().map(filled).map(Utf8PathBuf::from).collect()
}

/// What the loader's configuration lists, then its own directories.
fn fixed_dirs(machine: &str) -> Vec<Utf8PathBuf> {
    let mut dirs = Vec::new();
    configured(Utf8Path::new(CONFIGURATION), &mut dirs, 0);
    for dir in ["/lib", "/usr/lib"] {
        dirs.push(Utf8PathBuf::from(format!("{dir}/{machine}-linux-gnu")));
    }
    dirs.extend(DEFAULT_DIRS.iter().map(Utf8PathBuf::from));
    dirs
}

fn configured(file: &Utf8Path, dirs: &mut Vec<Utf8PathBuf>, depth: usize) {
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(pattern) = line.strip_prefix("include ").map(str::trim) else {
            if line.starts_with('/') {
                dirs.push(Utf8PathBuf::from(line));
            }
            continue;
        };
        // A configuration that includes itself ends here.
        if depth > 4 {
            continue;
        }
        let place = file.parent().unwrap_or(Utf8Path::new("/")).join(pattern);
        let (Some(dir), Some(name)) = (place.parent(), place.file_name()) else { continue };
        let (start, end) = name.split_once('*').unwrap_or((name, ""));
        for found in fs::names(dir) {
            if found.starts_with(start) && found.ends_with(end) {
                configured(&dir.join(found), dirs, depth + 1);
            }
        }
    }
}
