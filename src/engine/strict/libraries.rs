//! The library files that were seen, each with what it is, and what follows
//! from that.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    conclude::{features, floor},
    found::{Found, Installation},
    tell::Remark,
    why_not::glibc_gap,
};
use crate::{
    discover::{layout::versioned_names, library::describe},
    host::fs,
    model::{LibraryClass, LibraryFile, MessageKind, Verdict},
};

/// The libraries, as `-l` names them, and the question about each.
const CUDA: [(&str, &str); 4] = [
    ("cuda", "cuda.library.cuda"),
    ("cudart", "cuda.library.cudart"),
    ("cudart_static", "cuda.library.cudart_static"),
    ("nvidia-ml", "nvml.library.nvidia_ml"),
];

/// The same of gdrcopy.
const GDRCOPY: [(&str, &str); 1] = [("gdrapi", "gdrcopy.library.gdrapi")];

/// Every file that was seen; `machine` is the one that is compiled for.
pub(super) fn all(found: &Found, machine: &str) -> Vec<LibraryFile> {
    let of = |installation: &Option<Installation>, names: &[(&str, &str)]| -> Vec<LibraryFile> {
        let Some(installation) = installation else { return Vec::new() };
        names.iter().flat_map(|(name, id)| seen(installation, name, id, machine)).collect()
    };
    let mut files = of(&found.cuda, &CUDA);
    files.extend(of(&found.gdrcopy, &GDRCOPY));
    files
}

/// The files of one library: those that a linker would take by that name, in
/// the order of the search, and versioned ones where there is no such file.
fn seen(installation: &Installation, name: &str, id: &str, machine: &str) -> Vec<LibraryFile> {
    let layout = &installation.layout;
    let linked = installation.answer(id).filter(|answer| answer.check.verdict.is_yes());
    let linked = linked.and_then(|answer| answer.library.clone());
    let mut dirs = layout.link_dirs();
    dirs.extend(layout.looked_for_libraries.iter().cloned());
    dirs.extend(layout.root.iter().map(|root| root.join("compat")));
    let file = match name.ends_with("_static") {
        true => format!("lib{name}.a"),
        false => format!("lib{name}.so"),
    };
    let mut paths: Vec<Utf8PathBuf> = linked.iter().cloned().collect();
    let by_link = dirs.iter().map(|dir| dir.join(&file));
    paths.extend(by_link.filter(|path| path.is_symlink() || path.exists()));
    if paths.is_empty() {
        paths = versioned_names(&dirs, name);
    }
    let mut known: Vec<Utf8PathBuf> = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        // One file under several names of its directory is there once.
        let place = path.parent().and_then(|dir| fs::canonical(dir).ok());
        let place = place.unwrap_or_default().join(path.file_name().unwrap_or_default());
        if !known.contains(&place) {
            known.push(place);
            files.push(describe(name, &path, machine, linked.as_ref() == Some(&path)));
        }
    }
    files
}

/// What is to be said about the libraries that were linked with.
pub(super) fn remarks(found: &Found) -> Vec<Remark> {
    let mut told: Vec<Remark> = Vec::new();
    let files = &found.libraries;
    for installation in [&found.cuda, &found.gdrcopy].into_iter().flatten() {
        for (name, path) in &installation.layout.names {
            let is_linked = files.iter().any(|file| file.linked && file.name == *name);
            if is_linked {
                let word = installation.layout.link_word(name);
                let text = format!(
                    "lib{name} is there only under a versioned name, `{path}`: it is linked by that name (`{word}`)"
                );
                told.push((MessageKind::Note, "N0320", text, None));
            }
        }
    }
    told.extend(files.iter().filter(|file| file.linked).filter_map(compat));
    told.extend(gaps(found, files));
    told.extend(old_driver(found, files));
    told.extend(old_gdrcopy(found));
    told
}

/// A library of cuda-compat was linked with: somebody's flags lead there.
fn compat(file: &LibraryFile) -> Option<Remark> {
    let trouble = file.class.trouble().filter(|_| file.class == LibraryClass::Compat)?;
    let dir = file.path.parent()?;
    let hint = format!("Take `{dir}` out of LDFLAGS and LIBRARY_PATH: stubs are to link with.");
    let text = format!("`{}` was linked with; it {trouble}", file.path);
    Some((MessageKind::Warning, "W0322", text, Some(hint)))
}

/// A library needs a newer C library than the one that is linked with, and
/// the linker did not mind.
fn gaps(found: &Found, files: &[LibraryFile]) -> Vec<Remark> {
    let answers = found.cuda.iter().flat_map(|cuda| &cuda.answers);
    let Some(libc) = answers.into_iter().find_map(|answer| answer.libc.clone()) else {
        return Vec::new();
    };
    let linked = files.iter().filter(|file| file.linked && file.glibc.is_some());
    let gap = |file: &LibraryFile| {
        let text = glibc_gap(&file.path, Utf8Path::new(&libc))?;
        let hint = "Link with a sysroot that is as new, or take an older toolkit.".to_owned();
        let text = text.trim_end_matches('.').to_owned();
        Some((MessageKind::Warning, "W0323", text, Some(hint)))
    };
    linked.filter_map(gap).collect()
}

/// The driver that was linked with is older than what will be needed.
fn old_driver(found: &Found, files: &[LibraryFile]) -> Option<Remark> {
    if !found.cuda_on() {
        return None;
    }
    let linked = files.iter().filter(|file| file.linked);
    let (branch, file) =
        linked.filter_map(|file| Some((file.driver_branch()?, file))).min_by_key(|it| it.0)?;
    let floor = floor(&features(found, false));
    if floor.branch <= branch {
        return None;
    }
    let why: Vec<String> = floor
        .above(branch)
        .map(|reason| format!("R{} for {}", reason.branch, reason.why))
        .collect();
    let text = format!(
        "the driver here is R{branch} (`{}`), and UCX will need {}",
        file.path,
        why.join("; ")
    );
    let hint = format!(
        "Install a driver of R{} or newer where UCX will run, or configure on an older toolkit: \
         `--max-driver={branch}` refuses one that needs more.",
        floor.branch
    );
    Some((MessageKind::Warning, "W0324", text, Some(hint)))
}

/// A gdrcopy with the names of 1.x.
fn old_gdrcopy(found: &Found) -> Option<Remark> {
    let tree = found.gdrcopy.as_ref().filter(|_| found.gdrcopy_on())?;
    if tree.verdict("gdrcopy.declaration.copy_to_mapping") != Verdict::No {
        return None;
    }
    let text = format!(
        "{} is older than gdrcopy 2.0: it has no gdr_copy_to_mapping, and UCX v1.19.0 does not compile with it",
        tree.place()
    );
    Some((
        MessageKind::Warning,
        "W0325",
        text,
        Some("Install gdrcopy 2.0 or newer, or write `--without-gdrcopy`.".to_owned()),
    ))
}
