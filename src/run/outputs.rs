//! The files in the build directory: whose they are, and how they are written.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    build::MODULE_DIR,
    emit::{EMITTERS, Emitter},
    error::{Code, Error, Remedy},
    host::fs::{self, Kind},
    model::Report,
    ui::{Event, Sink},
};

/// The log of the run.
pub(super) const LOG: &str = "config.log";

/// The name that stands at the beginning of every file of ours.
const MARK: &[u8] = b"ucx-configure";

/// How far into a file the mark is looked for: every output has it in its
/// first lines.
const HEAD: usize = 512;

/// The names of our files.
fn names() -> impl Iterator<Item = &'static str> {
    EMITTERS.iter().filter_map(|emitter| emitter.file).chain([LOG])
}

/// Refuses to work where a file of somebody else has the name of an output.
///
/// # Errors
///
/// There is one.
pub(super) fn refuse_files_of_others(build_dir: &Utf8Path) -> Result<(), Error> {
    names().try_for_each(|name| refuse_file_of_others(&build_dir.join(name), "-B"))
}

/// Refuses to write over a file that is not ours; `option` names the directory
/// that it is in.
///
/// # Errors
///
/// It is there.
pub(super) fn refuse_file_of_others(path: &Utf8Path, option: &str) -> Result<(), Error> {
    match fs::kind(path.as_std_path()) {
        Kind::Missing | Kind::Dangling(_) => Ok(()),
        Kind::File if is_ours(path)? => Ok(()),
        Kind::Special => Err(fs::special(path)),
        Kind::Unreachable(said) => Err(unreachable(path, said, option)),
        _ => Err(not_ours(path, option)),
    }
}

/// Whether we wrote it, or it is empty, as what was cut short can be: then
/// there is nothing in it to lose.
fn is_ours(path: &Utf8Path) -> Result<bool, Error> {
    let content = fs::read(path)?;
    let head = &content[..content.len().min(HEAD)];
    Ok(head.is_empty() || head.windows(MARK.len()).any(|window| window == MARK))
}

fn not_ours(path: &Utf8Path, option: &str) -> Error {
    let name = path.file_name().unwrap_or_default();
    let error = Error::new(
        Code::NotOurs,
        format!("`{path}` is there already, and this program did not write it"),
    )
    .means(format!("Every `{name}` of ours names `ucx-configure` in its first lines."));
    if option != "-B" {
        return error
            .hint(format!("Name another directory with `{option} DIR`, or move the file away."));
    }
    error
        .hint("Name another build directory with `-B DIR`, or move the file away.")
        .remedy(Remedy::Set(format!("--build-dir={}", beside(path))))
}

/// The system cannot even say what is there: links in a circle, a name that is
/// too long, no permission.
fn unreachable(path: &Utf8Path, said: String, option: &str) -> Error {
    Error::new(Code::Write, format!("`{path}` cannot be looked at"))
        .said(said)
        .means("Whether it is one of ours cannot be told, so nothing is written.")
        .hint(format!("Name a directory that can be written to with `{option} DIR`."))
}

/// How many names are tried: nobody has so many build directories, and where
/// none can be looked at there is no end.
const NAMES: usize = 100;

/// A directory below that of a file, whose name nobody has taken.
fn beside(path: &Utf8Path) -> Utf8PathBuf {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    let more = (2..=NAMES).map(|n| format!("build{n}"));
    let names = std::iter::once("build".to_owned()).chain(more);
    let is_free = |dir: &Utf8PathBuf| fs::kind(dir.as_std_path()) == Kind::Missing;
    names.map(|name| dir.join(name)).find(is_free).unwrap_or_else(|| dir.join("build"))
}

/// Writes every output that has changed.
///
/// # Errors
///
/// One cannot be rendered or written; those before it are whole.
pub(super) fn write_all(
    report: &Report,
    build_dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    // Rendered before the first is written: a fault of one changes none.
    let mut texts = Vec::new();
    for emitter in EMITTERS {
        if let Some(name) = emitter.file {
            texts.push((build_dir.join(name), (emitter.render)(report)?));
        }
    }
    texts.into_iter().try_for_each(|(path, text)| write(&path, &text, sink))
}

/// Writes the report of a run that failed; the other outputs stay as the last
/// run that succeeded left them.
///
/// # Errors
///
/// It cannot be rendered or written.
pub(super) fn write_report(
    report: &Report,
    build_dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let is_report = |emitter: &&Emitter| emitter.id == "json";
    let Some(emitter) = EMITTERS.iter().find(is_report) else { return Ok(()) };
    let Some(name) = emitter.file else { return Ok(()) };
    write(&build_dir.join(name), &(emitter.render)(report)?, sink)
}

/// Writes one file, and tells.
///
/// # Errors
///
/// It cannot be written.
pub(super) fn write(path: &Utf8PathBuf, text: &str, sink: &mut dyn Sink) -> Result<(), Error> {
    let changed = fs::write_if_changed(path, text.as_bytes(), 0o644)?;
    sink.event(&Event::Wrote { path, changed });
    Ok(())
}

/// Removes what a run that was killed left half written: scratch files beside
/// the outputs, scratch directories in the state directory. The lock is ours,
/// so nobody uses them. A compiler that the killed run left behind may still
/// write there; what cannot be removed now is for the next run.
pub(super) fn remove_scratch(build_dir: &Utf8Path, state_dir: &Utf8Path) {
    for dir in [build_dir, state_dir, &build_dir.join(MODULE_DIR)] {
        for name in fs::names(dir) {
            let path = dir.join(&name);
            let kind = fs::kind(path.as_std_path());
            if name.starts_with(fs::SCRATCH_FILE) && kind != Kind::Directory {
                let _ = fs::remove_file_if_there(&path);
            }
            if dir == state_dir && name.starts_with(fs::SCRATCH_DIR) && kind == Kind::Directory {
                let _ = fs::remove_dir_all_if_there(&path);
            }
        }
    }
}

/// Whether an earlier run left outputs that say yes.
pub(super) fn has_earlier_success(build_dir: &Utf8Path) -> bool {
    let others = EMITTERS.iter().filter(|emitter| emitter.id != "json");
    others
        .filter_map(|emitter| emitter.file)
        .any(|name| fs::kind(build_dir.join(name).as_std_path()) == Kind::File)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::Scratch;

    #[test]
    fn a_file_of_somebody_else_is_not_touched() {
        let scratch = Scratch::new(None).unwrap();
        let dir = scratch.path();
        assert!(refuse_files_of_others(dir).is_ok());
        for name in names() {
            let path = dir.join(name);
            fs::write_if_changed(&path, b"/* by hand */\n", 0o644).unwrap();
            assert_eq!(refuse_files_of_others(dir).unwrap_err().code, Code::NotOurs, "{name}");
            fs::write_if_changed(&path, b"# by ucx-configure\n", 0o644).unwrap();
            assert!(refuse_files_of_others(dir).is_ok(), "{name}");
            fs::write_if_changed(&path, b"", 0o644).unwrap();
            assert!(refuse_files_of_others(dir).is_ok(), "{name}: nothing to lose");
            fs::remove_file_if_there(&path).unwrap();
            fs::symlink("/dev/null", &path).unwrap();
            assert_eq!(refuse_files_of_others(dir).unwrap_err().code, Code::NotOurs, "{name}");
            fs::remove_file_if_there(&path).unwrap();
            fs::create_dir_all(&path).unwrap();
            assert_eq!(refuse_files_of_others(dir).unwrap_err().code, Code::NotOurs, "{name}");
            fs::remove_dir_all_if_there(&path).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_looked_at_ends_with_what_the_system_said() {
        let scratch = Scratch::new(None).unwrap();
        let circle = scratch.path().join("loop");
        fs::symlink("loop", &circle).unwrap();
        for dir in [circle.clone(), circle.join("b"), scratch.path().join("n".repeat(300))] {
            let error = refuse_files_of_others(&dir).unwrap_err();
            assert_eq!(error.code, Code::Write, "{dir}");
            assert!(error.said.is_some_and(|said| said.contains("os error")), "{dir}");
            // Nothing below it is free, and the search for a name ends all the same.
            assert_eq!(beside(&dir.join("config.h")), dir.join("build"));
        }
    }
}
