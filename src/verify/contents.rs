//! What each package should have, and what is there: by the manifest that
//! `install` left, by the report of a build directory, or by UCX's names.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::audit::{Kind, Problem};
use crate::{
    emit::installed,
    error::Error,
    host::fs,
    manifest::{Installed, Manifest},
    model::{Module, Package, Report},
};

/// How it is known what should be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The manifest of an installation.
    Manifest,
    /// The report of a build directory.
    Report,
    /// The names of UCX's modules: those of CUDA come together.
    Names,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Its name.
    pub package: Package,
    /// How it is known what should be there.
    pub source: Source,
    /// The files that should be there.
    pub expected: Vec<Utf8PathBuf>,
    /// Those that are not.
    pub missing: Vec<Utf8PathBuf>,
    /// Those that are not what was installed.
    pub changed: Vec<Utf8PathBuf>,
    /// Files of the package's modules that should not be there.
    pub unexpected: Vec<Utf8PathBuf>,
}

/// The names of a module's files: UCX opens the second; in a build directory
/// and an installation of ours the third is there as well.
const SUFFIXES: [&str; 3] = [".so.0.0.0", ".so.0", ".so"];

/// The packages of a directory: `given` by the user, with modules in `dir`. A
/// manifest that cannot be gone by goes into `problems`, and its package is
/// looked at as if it had none.
pub(super) fn of(given: &Utf8Path, dir: &Utf8Path, problems: &mut Vec<Problem>) -> Vec<Contents> {
    let mut all = Vec::new();
    let report = report(given);
    for package in Package::ALL {
        let name = installed::manifest(package);
        let path = dir.join(name.rsplit('/').next().unwrap_or(&name));
        let by_others = || match &report {
            Some(report) => by_report(report, package, dir),
            None => by_names(package, dir),
        };
        let known = Manifest::read(&path)
            .and_then(|found| found.map(|manifest| by_manifest(&manifest, dir)).transpose());
        all.extend(match known {
            Ok(Some(contents)) => Some(contents),
            Ok(None) => by_others(),
            Err(error) => {
                problems.push(unusable(&path, error));
                by_others()
            }
        });
    }
    all
}

/// What is wrong with a manifest.
fn unusable(path: &Utf8Path, error: Error) -> Problem {
    let said = error.said.map(|said| format!(" ({said})")).unwrap_or_default();
    let what = format!("cannot be gone by: {}{said}", error.what);
    Problem { kind: Kind::Unreadable, file: path.to_string(), what }
}

/// The report of a build directory; what is none is none of its business here.
fn report(dir: &Utf8Path) -> Option<Report> {
    let text = fs::read_to_string(&dir.join("ucx-configure.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn by_manifest(manifest: &Manifest, dir: &Utf8Path) -> Result<Contents, Error> {
    // It says where files are without DESTDIR, whose part of the path is what
    // the directory has more.
    let modules = manifest.files.keys().find_map(|path| {
        let parent = path.parent()?;
        (parent.file_name() == Some(installed::MODULES)).then_some(parent)
    });
    let relative = modules.map(|dir| dir.as_str().trim_start_matches('/')).unwrap_or_default();
    let root = dir.as_str().strip_suffix(relative).map(|root| root.trim_end_matches('/'));
    let root = root.unwrap_or_default().to_owned();
    let (mut missing, mut changed) = (Vec::new(), Vec::new());
    let place = |path: &Utf8PathBuf| Utf8PathBuf::from(format!("{root}{path}"));
    for (path, installed) in &manifest.files {
        let path = place(path);
        match Installed::at(&path)? {
            None => missing.push(path),
            Some(there) if there != *installed => changed.push(path),
            Some(_) => {}
        }
    }
    let expected: Vec<Utf8PathBuf> = manifest.files.keys().map(place).collect();
    let unexpected = unexpected(manifest.package, dir, &expected);
    Ok(Contents {
        package: manifest.package,
        source: Source::Manifest,
        expected,
        missing,
        changed,
        unexpected,
    })
}

fn by_report(report: &Report, package: Package, dir: &Utf8Path) -> Option<Contents> {
    let of_package = |module: &&Module| Package::of(**module) == package;
    let modules = report.modules.iter().filter(of_package);
    let expected = modules.flat_map(|module| SUFFIXES.map(|suffix| chain(*module, suffix, dir)));
    whole(package, Source::Report, expected.collect(), dir)
}

/// With one of CUDA's modules all three have to be there, and gdrcopy's needs
/// them; each under the name by which UCX opens it.
fn by_names(package: Package, dir: &Utf8Path) -> Option<Contents> {
    let is_there =
        |module: &Module| SUFFIXES.iter().any(|suffix| chain(*module, suffix, dir).exists());
    let wanted = match package {
        Package::UcxCuda => Module::ALL.iter().any(is_there),
        Package::UcxGdrcopy => is_there(&Module::UctCudaGdrcopy),
    };
    let modules =
        Module::ALL.into_iter().filter(|module| wanted && Package::of(*module) == package);
    let expected = modules.map(|module| chain(module, ".so.0", dir)).collect();
    let mut contents = whole(package, Source::Names, expected, dir)?;
    contents.unexpected.clear();
    Some(contents)
}

fn whole(
    package: Package,
    source: Source,
    expected: Vec<Utf8PathBuf>,
    dir: &Utf8Path,
) -> Option<Contents> {
    let unexpected = unexpected(package, dir, &expected);
    if expected.is_empty() && unexpected.is_empty() {
        return None;
    }
    let missing = expected.iter().filter(|path| !path.exists()).cloned().collect();
    Some(Contents { package, source, expected, missing, changed: Vec::new(), unexpected })
}

fn chain(module: Module, suffix: &str, dir: &Utf8Path) -> Utf8PathBuf {
    dir.join(format!("{}{suffix}", module.library()))
}

/// The files of a package's modules that nobody expects.
fn unexpected(package: Package, dir: &Utf8Path, expected: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
    let known: BTreeSet<&Utf8PathBuf> = expected.iter().collect();
    let of_package = |name: &String| {
        let modules = Module::ALL.into_iter().filter(|module| Package::of(*module) == package);
        modules.into_iter().any(|module| {
            let rest = name.strip_prefix(module.library());
            rest.is_some_and(|rest| rest.starts_with(".so"))
        })
    };
    let names = fs::names(dir).into_iter().filter(of_package);
    names.map(|name| dir.join(name)).filter(|path| !known.contains(path)).collect()
}
