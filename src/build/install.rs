//! Puts modules in their place under UCX's names, and takes away those that
//! are no longer wanted.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Built, cargo::Made, elf::Dynamic};
use crate::{
    error::{Code, Error},
    host::fs,
    model::Module,
    ui::{Event, Sink},
};

/// Libraries of CUDA and gdrcopy: opened at run time, never linked to, so that
/// one build runs on nodes with and without them.
const NEVER_NEEDED: &[&str] = &["libcuda.", "libcudart.", "libnvidia-ml.", "libgdrapi."];

/// Looks at each module and installs it with its links.
pub(super) fn install(
    made: &[Made],
    dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<Vec<Built>, Error> {
    let mut contents = Vec::new();
    for one in made {
        let bytes = fs::read(&one.file)?;
        verify(one.module, &bytes).map_err(|fault| wrong(one, &fault))?;
        contents.push(bytes);
    }
    fs::create_dir_all(dir)?;
    let mut built = Vec::new();
    for (one, bytes) in made.iter().zip(contents) {
        let [file, versioned, plain] = chain(one.module, dir);
        let name = file.file_name().unwrap_or_default().to_owned();
        let mut changed = fs::write_if_changed(&file, &bytes, 0o755)?;
        for link in [versioned, plain] {
            changed |= fs::symlink(&name, &link)?;
        }
        sink.event(&Event::Wrote { path: &file, changed });
        built.push(Built { module: one.module, path: file, changed });
    }
    Ok(built)
}

/// Removes the files of modules that are not wanted.
pub(super) fn remove_stale(
    wanted: &[Module],
    dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<Vec<Utf8PathBuf>, Error> {
    let mut removed = Vec::new();
    for module in Module::ALL.into_iter().filter(|module| !wanted.contains(module)) {
        // The links go first: none is left that leads nowhere.
        for path in chain(module, dir).into_iter().rev() {
            if fs::remove_file_if_there(&path)? {
                sink.event(&Event::Decided(&format!("removed {path}: it is no longer wanted")));
                removed.push(path);
            }
        }
    }
    Ok(removed)
}

/// A module's file and its two links.
fn chain(module: Module, dir: &Utf8Path) -> [Utf8PathBuf; 3] {
    [".so.0.0.0", ".so.0", ".so"].map(|suffix| dir.join(format!("{}{suffix}", module.library())))
}

/// Whether a module is what it should be; what is wrong with it if not.
fn verify(module: Module, bytes: &[u8]) -> Result<(), String> {
    let dynamic = Dynamic::read(bytes).ok_or("it is not a shared library")?;
    let wanted = format!("{}.so.0", module.library());
    if dynamic.soname.as_deref() != Some(wanted.as_str()) {
        let found = dynamic.soname.as_deref().unwrap_or("none");
        return Err(format!("its SONAME is `{found}` instead of `{wanted}`"));
    }
    let unwanted = |name: &&String| NEVER_NEEDED.iter().any(|prefix| name.starts_with(prefix));
    match dynamic.needed.iter().find(unwanted) {
        Some(name) => Err(format!("it is linked to `{name}`, which it should open at run time")),
        None => Ok(()),
    }
}

fn wrong(made: &Made, fault: &str) -> Error {
    Error::new(Code::BuildFailed, format!("`{}` is not what it should be", made.file))
        .said(fault.to_owned())
        .means(format!("The module {} was built, but not installed.", made.module.library()))
        .hint("Look for linker flags in RUSTFLAGS or in cargo's configuration that add libraries or names.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::Silent;

    #[test]
    fn what_is_no_library_is_refused() {
        assert!(verify(Module::UcmCuda, b"!<arch>\n").unwrap_err().contains("not a shared"));
    }

    #[test]
    fn only_unwanted_modules_of_ours_are_removed() {
        let scratch = fs::Scratch::new(None).unwrap();
        let dir = scratch.path();
        for module in [Module::UcmCuda, Module::UctCuda] {
            let [file, versioned, plain] = chain(module, dir);
            fs::write_new(&file, b"", 0o755).unwrap();
            fs::symlink(file.file_name().unwrap(), &versioned).unwrap();
            fs::symlink(file.file_name().unwrap(), &plain).unwrap();
        }
        fs::write_new(&dir.join("libuct_ib.so"), b"", 0o755).unwrap();
        let removed = remove_stale(&[Module::UcmCuda], dir, &mut Silent).unwrap();
        assert_eq!(removed.len(), 3);
        assert_eq!(
            fs::names(dir),
            ["libucm_cuda.so", "libucm_cuda.so.0", "libucm_cuda.so.0.0.0", "libuct_ib.so"]
        );
    }
}
