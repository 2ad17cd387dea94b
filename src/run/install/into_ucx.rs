//! `install --into-ucx`: libucm_cuda in the place of UCX's own, and back.
//!
//! Each file of UCX's is kept beside its place under another name, and each
//! is exchanged by one rename: at no moment is there none. What was done is in
//! a file there, written before the first exchange, so that an interrupted run
//! can be repeated or undone.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::refuse_stub;
use crate::{
    build::{MODULE_DIR, elf::Dynamic},
    cli::InstallOptions,
    error::{Code, Error},
    host::{Host, fs},
    manifest::sum,
    model::Module,
    request,
    run::report_file,
    verify::Image,
};

/// What was done, in the directory it was done in.
const MANIFEST: &str = "ucx-configure-install.json";

/// How the name of a kept original begins. It is no name of a library, so
/// neither UCX nor ldconfig takes it for one.
const KEPT: &str = "original-of-ucx-";

/// The version of the manifest's form.
const FORMAT: u32 = 1;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// UCX's files by name, with the sums of their contents.
    originals: BTreeMap<String, String>,
    /// The sum of what is in their place.
    installed: String,
}

/// Runs it for the UCX that was given.
pub(super) fn run(
    given: &std::ffi::OsStr,
    options: &InstallOptions,
    host: &Host,
) -> Result<(), Error> {
    let given = request::build_dir(Some(given), host)?;
    let dir = module_dir(&given)?;
    let lock = fs::Lock::try_take_dir(&dir)?;
    if lock.is_none() {
        return Err(Error::new(Code::Busy, format!("another run works in `{dir}`"))
            .hint("Wait for it, and run the same command again."));
    }
    if options.undo {
        return undo(&dir, options.quiet);
    }
    let build_dir = request::build_dir(options.build_dir.as_deref(), host)?;
    super::tell(options.quiet, &install(&dir, &build_dir, options.allow_stub)?)
}

/// Where UCX's modules are.
fn module_dir(given: &Utf8Path) -> Result<Utf8PathBuf, Error> {
    if !given.is_dir() {
        return Err(Error::new(
            Code::NoSuchDirectory,
            format!("`--into-ucx`: the directory `{given}` does not exist"),
        )
        .hint("Name the prefix that UCX is installed in, or its `lib/ucx`."));
    }
    let places = [given.join("lib/ucx"), given.join("lib64/ucx"), given.to_owned()];
    let found = places.iter().find(|dir| !files(dir).is_empty() || dir.join(MANIFEST).is_file());
    found.cloned().ok_or_else(|| no_module(given, "It has no file of that name."))
}

fn no_module(dir: &Utf8Path, why: &str) -> Error {
    Error::new(Code::Read, format!("there is no libucm_cuda of UCX in `{dir}`"))
        .means(why)
        .means("A UCX that was built without CUDA never loads such a module.")
        .hint("Name the prefix of a UCX that was configured with CUDA, or its `lib/ucx`.")
}

/// The module's files in a directory, links left out: those lead to them.
fn files(dir: &Utf8Path) -> Vec<String> {
    let start = format!("{}.so", Module::UcmCuda.library());
    let is_of_chain = |name: &String| {
        let rest =
            name.strip_prefix(&start).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        rest.is_some_and(|rest| rest.chars().all(|letter| letter == '.' || letter.is_ascii_digit()))
    };
    let is_file = |name: &String| {
        let path = dir.join(name);
        path.is_file() && !path.is_symlink()
    };
    fs::names(dir).into_iter().filter(is_of_chain).filter(is_file).collect()
}

fn install(dir: &Utf8Path, build_dir: &Utf8Path, allow_stub: bool) -> Result<String, Error> {
    let report = report_file::read(build_dir)?;
    refuse_stub(
        &report,
        build_dir,
        allow_stub,
        "What the module knows of CUDA comes from the stub, not from the CUDA that UCX uses.",
        "Configure it with the toolkit that UCX was built with, or add `--allow-stub`.",
    )?;
    let library = Module::UcmCuda.library();
    let source = build_dir.join(MODULE_DIR).join(format!("{library}.so.0.0.0"));
    if !source.is_file() {
        return Err(Error::new(Code::Read, format!("there is no `{source}`"))
            .means("The build directory was configured with `--no-build`, or without CUDA.")
            .hint("Run `ucx-configure` there, or name another build directory with `-B DIR`."));
    }
    let ours = fs::read(&source)?;
    let machine = Image::read(&source).map(|image| image.machine);
    let old = read_manifest(dir)?;
    let mut manifest =
        Manifest { format: FORMAT, originals: BTreeMap::new(), installed: sum(&ours) };
    let mut waiting = Vec::new();
    for name in files(dir) {
        let path = dir.join(&name);
        let there = sum(&fs::read(&path)?);
        if let Some(old) = &old
            && let Some(original) = old.originals.get(&name)
            && !is_of_ucx(&path)?
        {
            // One of ours, perhaps an older one: what it stands for stays kept.
            check_kept(dir, &name, original)?;
            manifest.originals.insert(name.clone(), original.clone());
            if there != manifest.installed {
                waiting.push(name);
            }
            continue;
        }
        if !is_of_ucx(&path)? {
            return Err(no_module(dir, &format!("`{name}` is not a module of UCX's.")));
        }
        if Image::read(&path).map(|image| image.machine) != machine {
            return Err(no_module(dir, &format!("`{name}` is for another kind of machine.")));
        }
        fs::keep(&path, &dir.join(kept(&name)))?;
        manifest.originals.insert(name.clone(), there);
        waiting.push(name);
    }
    if manifest.originals.is_empty() {
        return Err(no_module(dir, "Only links have that name."));
    }
    write_manifest(dir, &manifest)?;
    for name in &waiting {
        fs::write_if_changed(&dir.join(name), &ours, 0o755)?;
    }
    Ok(done(dir, manifest.originals.len(), waiting.is_empty()))
}

/// What an installation came to.
fn done(dir: &Utf8Path, count: usize, nothing_to_do: bool) -> String {
    if nothing_to_do {
        return format!("{dir}: already in place, nothing changed");
    }
    format!(
        "{dir}: {count} file(s) of libucm_cuda replaced, the originals kept as {KEPT}*\n\
         put them back with `ucx-configure install --into-ucx {dir} --undo`"
    )
}

/// Puts the originals back.
fn undo(dir: &Utf8Path, quiet: bool) -> Result<(), Error> {
    let Some(manifest) = read_manifest(dir)? else {
        return super::tell(quiet, &format!("{dir}: nothing was installed here, nothing changed"));
    };
    // Everything is looked at before anything is changed.
    let mut waiting = Vec::new();
    for (name, original) in &manifest.originals {
        let (path, kept) = (dir.join(name), dir.join(kept(name)));
        let there = if path.is_file() { Some(sum(&fs::read(&path)?)) } else { None };
        if there.as_ref() == Some(original) {
            continue;
        }
        if there.is_some() && is_of_ucx(&path)? {
            return Err(Error::new(Code::NotOurs, format!("`{path}` was changed since"))
                .means("It is a module of UCX's, but not the one that was replaced: perhaps UCX was updated.")
                .hint(format!("Remove `{dir}/{MANIFEST}` and `{dir}/{KEPT}*` if it is the right one.")));
        }
        check_kept(dir, name, original)?;
        waiting.push((kept, path));
    }
    for (kept, path) in &waiting {
        fs::rename(kept, path)?;
    }
    for name in manifest.originals.keys() {
        fs::remove_file_if_there(&dir.join(kept(name)))?;
    }
    fs::remove_file_if_there(&dir.join(MANIFEST))?;
    super::tell(quiet, &format!("{dir}: {} file(s) of UCX's are back in place", waiting.len()))
}

fn kept(name: &str) -> String {
    format!("{KEPT}{name}")
}

/// Holds a kept original against its sum.
fn check_kept(dir: &Utf8Path, name: &str, original: &str) -> Result<(), Error> {
    let kept = dir.join(kept(name));
    if kept.is_file() && sum(&fs::read(&kept)?) == original {
        return Ok(());
    }
    Err(Error::new(Code::Read, format!("the original of `{dir}/{name}` is not there"))
        .means(format!("It was kept as `{kept}`, and is gone or was changed."))
        .hint("Install UCX again to get it back."))
}

/// Whether a file is UCX's module: it has the name inside and needs libucm,
/// which ours does not.
fn is_of_ucx(path: &Utf8Path) -> Result<bool, Error> {
    let dynamic = Dynamic::read(&fs::read(path)?).unwrap_or_default();
    let soname = dynamic.soname.unwrap_or_default();
    let needs_ucm = dynamic
        .needed
        .iter()
        .any(|name| name.strip_prefix("libucm").is_some_and(|rest| rest.starts_with(['.', '-'])));
    Ok(soname.starts_with(Module::UcmCuda.library()) && needs_ucm)
}

fn read_manifest(dir: &Utf8Path) -> Result<Option<Manifest>, Error> {
    let path = dir.join(MANIFEST);
    if !path.is_file() {
        return Ok(None);
    }
    let read = serde_json::from_str::<Manifest>(&fs::read_to_string(&path)?);
    match read {
        Ok(manifest) if manifest.format == FORMAT => Ok(Some(manifest)),
        other => Err(Error::new(Code::Read, format!("`{path}` cannot be read"))
            .said(other.err().map_or("another version of its form".to_owned(), |e| e.to_string()))
            .hint("Install UCX again, and remove the file.")),
    }
}

fn write_manifest(dir: &Utf8Path, manifest: &Manifest) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| {
        Error::new(Code::Internal, "what was done cannot be written as JSON")
            .said(error.to_string())
    })?;
    fs::write_if_changed(&dir.join(MANIFEST), format!("{text}\n").as_bytes(), 0o644)?;
    Ok(())
}
