//! `install`: modules, headers, files for pkg-config and CMake, by package.
//!
//! Everything is looked at before anything is written. The manifest is written
//! first, and names what was there from an earlier run as well: an interrupted
//! run can be repeated, or undone.

use std::{collections::BTreeMap, fmt::Write as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Place, packages, refuse_stub};
use crate::{
    build::MODULE_DIR,
    cli::InstallOptions,
    emit::{self, installed},
    error::{Code, Error},
    host::fs,
    manifest::{Installed, Manifest, sum},
    model::{Module, Package, Report},
    toolkit::embedded::HOOK_RUNTIME,
};

/// Libraries of UCX whose modules ours would be taken for.
const OF_UCX: [&str; 2] = ["libuct.so", "libucs.so"];

/// The header, among the embedded sources.
const HEADER: &str = "hook-runtime/include/hook_runtime.h";

/// A file to install.
struct Item {
    package: Package,
    /// Without DESTDIR.
    path: Utf8PathBuf,
    what: What,
}

enum What {
    File(Vec<u8>, u32),
    Link(String),
}

impl Item {
    fn recorded(&self) -> Installed {
        match &self.what {
            What::File(bytes, _) => Installed::Sha256(sum(bytes)),
            What::Link(target) => Installed::Link(target.clone()),
        }
    }

    /// Writes it; returns whether that changed anything.
    fn write(&self, place: &Place) -> Result<bool, Error> {
        let path = place.below_destdir(&self.path);
        match &self.what {
            What::Link(target) => fs::symlink(target, &path),
            What::File(bytes, mode) => {
                // A link in its place would be written through.
                if path.is_symlink() {
                    fs::remove_file_if_there(&path)?;
                }
                fs::write_if_changed(&path, bytes, *mode)
            }
        }
    }
}

pub(super) fn install(
    report: &Report,
    build_dir: &Utf8Path,
    place: &Place,
    options: &InstallOptions,
) -> Result<(), Error> {
    refuse_stub(
        report,
        build_dir,
        options.allow_stub,
        "What the modules know of CUDA comes from the stub, not from a CUDA that is used.",
        "Configure with the toolkit that will be used, or add `--allow-stub`.",
    )?;
    refuse_ucx(place)?;
    let wanted = packages(&options.component);
    let items = items(report, build_dir, place, &wanted)?;
    let dirs = missing_dirs(&items, place)?;
    let modules = place.below_destdir(&place.path("libdir", installed::MODULES)?);
    let mut manifests = BTreeMap::new();
    for package in wanted {
        let path = place.manifest(package)?;
        let old = Manifest::read(&path)?;
        let of_package = || items.iter().filter(|item| item.package == package);
        refuse_others(of_package(), old.as_ref(), place)?;
        if of_package().next().is_some() || old.is_some() {
            manifests.insert(package, (path, old));
        }
    }
    fs::create_dir_all(&modules)?;
    let _lock = Place::lock(&modules)?;
    let mut counts = (0_usize, 0_usize);
    for (package, (path, old)) in &manifests {
        let items: Vec<&Item> = items.iter().filter(|item| item.package == *package).collect();
        let changed = put(*package, report.on_stub(), &items, &dirs, path, old.as_ref(), place)?;
        counts = (counts.0 + items.len(), counts.1 + changed);
    }
    super::tell(options.quiet, tell(&manifests, counts, place).trim_end())
}

/// What came of it.
fn tell(
    manifests: &BTreeMap<Package, (Utf8PathBuf, Option<Manifest>)>,
    (files, changed): (usize, usize),
    place: &Place,
) -> String {
    let names: Vec<&str> = manifests.keys().map(|package| package.name()).collect();
    let below = match place.destdir.as_str() {
        "" => String::new(),
        destdir => format!(" below {destdir}"),
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}: {files} files{below}, {changed} of them written", names.join(", "));
    for (path, _) in manifests.values() {
        let _ = writeln!(text, "{path} says which");
    }
    text
}

/// Writes the files of one package, and takes those away that an earlier run
/// installed and this one does not.
fn put(
    package: Package,
    on_stub: bool,
    items: &[&Item],
    dirs: &[Utf8PathBuf],
    path: &Utf8Path,
    old: Option<&Manifest>,
    place: &Place,
) -> Result<usize, Error> {
    let mut manifest = Manifest::new(package, on_stub);
    for item in items {
        manifest.files.insert(item.path.clone(), item.recorded());
    }
    let ours = |dir: &&Utf8PathBuf| items.iter().any(|item| item.path.starts_with(dir));
    manifest.dirs.extend(dirs.iter().filter(ours).cloned());
    manifest.dirs.extend(old.iter().flat_map(|old| old.dirs.iter().cloned()));
    let mut both = manifest.clone();
    for (path, installed) in old.iter().flat_map(|old| &old.files) {
        both.files.entry(path.clone()).or_insert_with(|| installed.clone());
    }
    both.write(path)?;
    let mut changed = 0;
    for item in items {
        if let Some(dir) = place.below_destdir(&item.path).parent() {
            fs::create_dir_all(dir)?;
        }
        changed += usize::from(item.write(place)?);
    }
    for (stale, installed) in old.iter().flat_map(|old| &old.files) {
        let file = place.below_destdir(stale);
        // What leads elsewhere was not written by an earlier run.
        let leads_out = stale.as_str().split('/').any(|part| part == "..");
        let is_stale = !manifest.files.contains_key(stale) && (!leads_out || place.holds(stale)?);
        if is_stale && Installed::at(&file)?.as_ref() == Some(installed) {
            fs::remove_file_if_there(&file)?;
        }
    }
    if manifest.files.is_empty() {
        fs::remove_file_if_there(path)?;
    } else {
        manifest.write(path)?;
    }
    Ok(changed)
}

/// Everything that is to be installed.
fn items(
    report: &Report,
    build_dir: &Utf8Path,
    place: &Place,
    wanted: &[Package],
) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let files = installed::installed(report);
    for file in files.into_iter().filter(|file| wanted.contains(&file.package)) {
        let what = match file.content {
            installed::Content::Module(module) => What::File(built(module, build_dir)?, 0o755),
            installed::Content::Link(module) => {
                What::Link(format!("{}.so.0.0.0", module.library()))
            }
            installed::Content::Emitted(id) => What::File(emitted(id, report)?.into_bytes(), 0o644),
            installed::Content::Header => What::File(header()?.to_vec(), 0o644),
        };
        let path = place.path(file.dir, &file.name)?;
        items.push(Item { package: file.package, path, what });
    }
    if items.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|package| package.name()).collect();
        return Err(Error::new(
            Code::NeedsCuda,
            format!("there is nothing to install for {}", names.join(" and ")),
        )
        .means(format!("`{build_dir}` was configured without it."))
        .hint("Run `ucx-configure` there with CUDA, and with gdrcopy for `ucx-gdrcopy`."));
    }
    Ok(items)
}

/// A module as it was built.
fn built(module: Module, build_dir: &Utf8Path) -> Result<Vec<u8>, Error> {
    let source = build_dir.join(MODULE_DIR).join(format!("{}.so.0.0.0", module.library()));
    if source.is_file() {
        return fs::read(&source);
    }
    Err(Error::new(Code::Read, format!("there is no `{source}`"))
        .means("The build directory was configured with `--no-build`, or its build failed.")
        .hint("Run `ucx-configure` there, or name another build directory with `-B DIR`."))
}

fn emitted(id: &str, report: &Report) -> Result<String, Error> {
    let emitter = emit::find(id)
        .ok_or_else(|| Error::new(Code::Internal, format!("there is no format `{id}`")))?;
    (emitter.render)(report)
}

fn header() -> Result<&'static [u8], Error> {
    let found = HOOK_RUNTIME.iter().find(|(name, _)| *name == HEADER);
    found
        .map(|(_, content)| *content)
        .ok_or_else(|| Error::new(Code::Internal, "the header is not embedded"))
}

/// The directories that are not there yet, without DESTDIR.
fn missing_dirs(items: &[Item], place: &Place) -> Result<Vec<Utf8PathBuf>, Error> {
    let mut missing: Vec<Utf8PathBuf> = Vec::new();
    for dir in items.iter().flat_map(|item| item.path.ancestors().skip(1)) {
        let there = place.below_destdir(dir);
        if there.is_file() {
            return Err(Error::new(Code::NotOurs, format!("`{there}` is a file"))
                .means("A directory of that name is needed.")
                .hint("Install to another prefix, or move it away."));
        }
        if !there.is_dir() && dir != "/" {
            missing.push(dir.to_owned());
        }
    }
    missing.sort();
    missing.dedup();
    Ok(missing)
}

/// Refuses a tree with a UCX in it: it would load our transports for its own,
/// which have the same names and another ABI.
fn refuse_ucx(place: &Place) -> Result<(), Error> {
    let libdir = place.path("libdir", "")?;
    let prefix = place.path("exec_prefix", "")?;
    let mut dirs = vec![libdir];
    dirs.extend(["lib", "lib64"].map(|name| prefix.join(name)));
    for dir in dirs.iter().map(|dir| place.below_destdir(dir)) {
        let is_of_ucx = |name: &String| {
            let rest = OF_UCX.iter().find_map(|library| name.strip_prefix(library));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(name) = fs::names(&dir).into_iter().find(is_of_ucx) {
            return Err(Error::new(
                Code::WouldBreakUcx,
                format!("`{}` is there: it is a UCX's", dir.join(name)),
            )
            .means("Our transport modules have the names that UCX loads, and not its ABI: it would load them and fail.")
            .hint("Install to a prefix of its own, such as `--prefix=/opt/ucx-cuda`.")
            .hint("To give that UCX our memory hooks, use `install --into-ucx DIR`."));
        }
    }
    Ok(())
}

/// Refuses to write over a file that no earlier run installed.
fn refuse_others<'a>(
    items: impl Iterator<Item = &'a Item>,
    old: Option<&Manifest>,
    place: &Place,
) -> Result<(), Error> {
    for item in items {
        let there = place.below_destdir(&item.path);
        let is_known = old.is_some_and(|old| old.files.contains_key(&item.path));
        if is_known && !there.is_dir() {
            continue;
        }
        match fs::kind(there.as_std_path()) {
            fs::Kind::Missing => {}
            fs::Kind::File | fs::Kind::Dangling(_)
                if Installed::at(&there)? == Some(item.recorded()) => {}
            _ => {
                return Err(Error::new(
                    Code::NotOurs,
                    format!("`{there}` is there already, and this program did not install it"),
                )
                .means("It is another file than the one that would go there.")
                .hint("Install to another prefix, or move it away."));
            }
        }
    }
    Ok(())
}
