//! `uninstall`: the files of a manifest, if they are still the ones that were
//! installed, then the directories that were made for them.

use camino::{Utf8Path, Utf8PathBuf};

use super::Place;
use crate::{
    emit::installed,
    error::{Code, Error},
    host::fs,
    manifest::{Installed, Manifest},
    model::Package,
};

/// Runs it; returns what there is to say.
pub(super) fn uninstall(place: &Place, packages: &[Package]) -> Result<String, Error> {
    let modules = place.below_destdir(&place.path("libdir", installed::MODULES)?);
    let mut found = Vec::new();
    for package in packages {
        let path = place.manifest(*package)?;
        if let Some(manifest) = Manifest::read(&path)? {
            refuse_strangers(&path, &manifest, place)?;
            found.push((path, manifest));
        }
    }
    if found.is_empty() {
        return Ok(format!("{modules}: nothing is installed here, nothing changed"));
    }
    let lock = Place::lock(&modules)?;
    // Everything is looked at before anything is changed.
    let changed = found.iter().map(|(_, manifest)| changed(manifest, place));
    let changed = changed.collect::<Result<Vec<_>, Error>>()?.concat();
    if let Some(first) = changed.first() {
        let error =
            Error::new(Code::NotOurs, format!("`{first}` was changed since it was installed"));
        let others = changed.iter().skip(1).map(|path| format!("`{path}` as well."));
        return Err(others
            .fold(error, Error::means)
            .means("Nothing was removed.")
            .hint("Move it away, or install again, and run the same command again."));
    }
    let mut lines = Vec::new();
    for (path, manifest) in &found {
        for file in manifest.files.keys() {
            fs::remove_file_if_there(&place.below_destdir(file))?;
        }
        fs::remove_file_if_there(path)?;
        lines.push(format!("{}: {} files removed", manifest.package.name(), manifest.files.len()));
    }
    drop(lock);
    for (_, manifest) in &found {
        // The deepest first.
        for dir in manifest.dirs.iter().rev().filter(|dir| is_made_for(dir, manifest)) {
            fs::remove_dir_if_empty(&place.below_destdir(dir));
        }
    }
    Ok(lines.join("\n"))
}

/// Refuses a manifest that names files which `install` puts nowhere: it was
/// changed, or other directories are meant.
fn refuse_strangers(path: &Utf8Path, manifest: &Manifest, place: &Place) -> Result<(), Error> {
    for file in manifest.files.keys() {
        if !place.holds(file)? {
            let what = format!("`{path}` names `{file}`, which is not where files are installed");
            return Err(Error::new(Code::Read, what)
                .means(format!(
                    "They go below `{}` and `{}`. Nothing was removed.",
                    place.path("libdir", "")?,
                    place.path("includedir", "")?
                ))
                .hint("Name the directories as with `install`: `--prefix`, `--libdir`, `--includedir`.")
                .hint("If they are named so, the manifest was changed: remove the files by hand."));
        }
    }
    Ok(())
}

/// Whether a directory is above a file of the manifest; others are left alone.
fn is_made_for(dir: &Utf8Path, manifest: &Manifest) -> bool {
    dir.is_absolute() && manifest.files.keys().any(|file| file.starts_with(dir))
}

/// The files that are not what was installed; one that is gone is no fault.
fn changed(manifest: &Manifest, place: &Place) -> Result<Vec<Utf8PathBuf>, Error> {
    let mut changed = Vec::new();
    for (path, installed) in &manifest.files {
        let there = place.below_destdir(path);
        if differs(&there, installed)? {
            changed.push(there);
        }
    }
    Ok(changed)
}

fn differs(path: &Utf8Path, installed: &Installed) -> Result<bool, Error> {
    if path.is_dir() && !path.is_symlink() {
        return Ok(true);
    }
    Ok(Installed::at(path)?.is_some_and(|there| there != *installed))
}
