//! Directories that people name: what can be wrong with one, and which one
//! they may have meant.

use std::{ffi::OsStr, path::PathBuf};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::Remark;
use crate::{
    env_vars,
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Kind},
    },
};

/// A directory as typed, looked at as far as its text goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// Text that outputs can carry.
    Plain(Utf8PathBuf),
    /// Bytes that are not UTF-8: no text file can carry them.
    Odd(PathBuf),
}

/// Refuses what no makefile and no header can carry.
///
/// # Errors
///
/// There is a control character in it.
pub(super) fn named(option: &str, value: &OsStr) -> Result<Named, Error> {
    use std::os::unix::ffi::OsStrExt as _;
    if value.as_bytes().iter().any(u8::is_ascii_control) {
        let shown = value.to_string_lossy().escape_debug().to_string();
        let breaks = value.as_bytes().iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        return Err(Error::new(
            Code::UnusablePath,
            format!("`{option}`: a path with a control character cannot be used: `{shown}`"),
        )
        .means(if breaks {
            "A line break ends a line of a makefile or a header, whatever quotes are round it."
        } else {
            "A makefile or a header, and whoever reads it, may take it for something else."
        })
        .hint("Rename the directory, or name it through a link with a plain name."));
    }
    Ok(match value.to_str() {
        Some(text) => Named::Plain(text.into()),
        None => Named::Odd(value.into()),
    })
}

/// A path that has to be plain text.
///
/// # Errors
///
/// It is not.
pub(super) fn plain(option: &str, value: &OsStr) -> Result<Utf8PathBuf, Error> {
    match named(option, value)? {
        Named::Plain(path) => Ok(path),
        Named::Odd(path) => Err(not_utf8(option, &path)),
    }
}

/// The error for bytes that are not UTF-8.
pub(super) fn not_utf8(option: &str, path: &std::path::Path) -> Error {
    Error::new(Code::UnusablePath, format!("`{option}`: `{}` is not UTF-8", path.display()))
        .means("The report and the outputs are UTF-8 text and cannot carry it.")
        .hint("Name it through a link with a plain name.")
}

/// Expands a `~` that the shell left alone, as it does behind `=`.
pub(super) fn expand_tilde(
    option: &str,
    path: Utf8PathBuf,
    host: &Host,
    remarks: &mut Vec<Remark>,
) -> Utf8PathBuf {
    let Some(rest) = path.as_str().strip_prefix('~') else { return path };
    let home = host.env.get(env_vars::HOME).filter(|home| home.starts_with('/'));
    let Some(home) = home.filter(|_| rest.is_empty() || rest.starts_with('/')) else { return path };
    let expanded = Utf8PathBuf::from(format!("{}{rest}", home.trim_end_matches('/')));
    remarks.push(super::remarks::tilde(option, &path, &expanded));
    expanded
}

/// Refuses a directory that is not there.
///
/// # Errors
///
/// It is not there, or not a directory.
pub(super) fn must_exist(option: &str, typed: &Utf8Path, host: &Host) -> Result<(), Error> {
    let path = host.absolute(typed);
    let error = |what: String| Error::new(Code::NoSuchDirectory, format!("`{option}`: {what}"));
    let relative = |error: Error| {
        if typed.is_relative() {
            error.means(format!("It was looked for in `{}`.", host.cwd))
        } else {
            error
        }
    };
    match fs::kind(path.as_std_path()) {
        Kind::Directory => Ok(()),
        Kind::File | Kind::Special => Err(file(option, typed, error)),
        Kind::Dangling(target) => {
            let error = error(format!("`{typed}` is a link to `{target}`, which does not exist"));
            let real = path.parent().map(|parent| parent.join(&target));
            Err(match real.and_then(|real| nearest(&real)) {
                Some(near) => error.did_you_mean(format!("{option}={near}")),
                None => error.hint("Mend the link, or name the directory that it should lead to."),
            })
        }
        Kind::Unreachable(said) => {
            Err(error(format!("`{typed}` cannot be looked at")).said(said).hint(
                "Mend the path: links in a circle and directories without permission lead nowhere.",
            ))
        }
        Kind::Missing => {
            let missing = error(format!("the directory `{typed}` does not exist"));
            if typed.as_str().starts_with('~') {
                return Err(missing
                    .means("The shell does not expand `~` behind an equals sign.")
                    .hint(format!("Write `{option}=$HOME/...`.")));
            }
            let missing = relative(missing);
            Err(match nearest(&path) {
                Some(near) => missing.did_you_mean(format!("{option}={near}")),
                None => {
                    let base = existing_base(&path);
                    missing
                        .means(format!("`{base}` exists, and nothing in it has a similar name."))
                        .hint(format!("`{option}` without a value looks in the usual places."))
                }
            })
        }
    }
}

fn file(option: &str, typed: &Utf8Path, error: impl Fn(String) -> Error) -> Error {
    let error = error(format!("`{typed}` is a file, not a directory"));
    // Somebody who names bin/nvcc or include/cuda.h has nearly named the root.
    let parent = typed.parent();
    let root = parent
        .filter(|parent| {
            matches!(parent.file_name(), Some("bin" | "include" | "lib" | "lib64" | "stubs"))
        })
        .and_then(Utf8Path::parent)
        .filter(|root| !root.as_str().is_empty());
    match root {
        Some(root) => error.did_you_mean(format!("{option}={root}")),
        None => error.hint("Name the directory that holds `include` and `lib64`."),
    }
}

/// The longest beginning of a path that is a directory.
fn existing_base(path: &Utf8Path) -> &Utf8Path {
    path.ancestors()
        .find(|base| fs::kind(base.as_std_path()) == Kind::Directory)
        .unwrap_or(Utf8Path::new("/"))
}

/// How alike names have to be, 1 being the same.
const ALIKE: f64 = 0.6;

/// An existing directory with nearly this name.
fn nearest(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let base = existing_base(path);
    let mut rest = path.strip_prefix(base).ok()?.components();
    let Some(Utf8Component::Normal(name)) = rest.next() else { return None };
    let rest = rest.as_path();
    let mut candidates: Vec<(bool, f64, Utf8PathBuf)> = fs::names(base)
        .into_iter()
        .filter_map(|candidate| {
            let alike = similarity(name, &candidate);
            let found = base.join(&candidate);
            let is_there = fs::kind(found.join(rest).as_std_path()) == Kind::Directory;
            let is_directory = is_there || fs::kind(found.as_std_path()) == Kind::Directory;
            (alike >= ALIKE && is_directory).then_some((is_there, alike, found))
        })
        .collect();
    candidates.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    let (is_there, _, found) = candidates.into_iter().next()?;
    if rest.as_str().is_empty() {
        return Some(found);
    }
    let whole = found.join(rest);
    if is_there { Some(whole) } else { nearest(&whole).or(Some(found)) }
}

/// How alike two names are. One that only goes on, as `cuda` in `cuda-12.8`,
/// is alike however long it is.
fn similarity(name: &str, candidate: &str) -> f64 {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    let alike = strsim::normalized_damerau_levenshtein(&name, &candidate);
    if name.len() >= 3 && candidate.starts_with(&name) { alike.max(ALIKE) } else { alike }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::{Scratch, create_dir_all};

    #[test]
    fn finds_the_nearest_name() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        for dir in ["local/cuda-12.5", "local/cuda-12.8/lib64", "local/share", "loca"] {
            create_dir_all(&root.join(dir)).unwrap();
        }
        for (typed, expected) in [
            ("local/cuda-12.8x", Some("local/cuda-12.8")),
            ("local/cuda", Some("local/cuda-12.5")),
            ("local/CUDA-12.8", Some("local/cuda-12.8")),
            ("locl/cuda-12.8", Some("local/cuda-12.8")),
            ("locl/cuda-12.8x", Some("local/cuda-12.8")),
            ("local/cuda-12.8/lib46", Some("local/cuda-12.8/lib64")),
            ("local/rocm", None),
        ] {
            let found = nearest(&root.join(typed));
            assert_eq!(found, expected.map(|dir| root.join(dir)), "{typed}");
        }
    }
}
