//! From a directory as typed to one that exists, or to the error that says
//! which one was probably meant.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    error::{Code, Error},
    host::{Host, fs},
};

/// How alike a name has to be to the one typed to be suggested.
const ALIKE: f64 = 0.75;

/// The absolute form of a directory that an option names. A leading `~` that
/// the shell left alone is the home directory.
///
/// # Errors
///
/// It does not exist, or is not a directory.
pub fn resolve(option: &str, typed: &Utf8Path, host: &Host) -> Result<Utf8PathBuf, Error> {
    let path = expand(typed, host);
    if path.is_dir() {
        return Ok(path);
    }
    if path.exists() {
        let what = format!("`{option}={typed}`: this is not a directory");
        return Err(Error::new(Code::NoSuchDirectory, what)
            .means("The root of an installation is expected, the directory above `include`.")
            .hint(format!("Give the directory, or `{option}` alone to have it found.")));
    }
    let what = format!("`{option}={typed}`: there is no such directory");
    let error = Error::new(Code::NoSuchDirectory, what);
    let error = if path == typed { error } else { error.means(format!("It means `{path}`.")) };
    Err(match nearest(&path) {
        Some(near) => error.did_you_mean(format!("{option}={near}")),
        None => error.hint(format!("Give the directory, or `{option}` alone to have it found.")),
    })
}

/// Absolute, without a trailing slash, `~` expanded.
fn expand(typed: &Utf8Path, host: &Host) -> Utf8PathBuf {
    let path = host.absolute(typed);
    let home = host.env.get("HOME").filter(|home| home.starts_with('/'));
    let rest = typed.as_str().strip_prefix('~');
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = match (home, rest) {
        (Some(home), Some(rest)) if !path.exists() => Utf8PathBuf::from(format!("{home}{rest}")),
        _ => path,
    };
    // Components drop `.` and doubled or trailing slashes, and keep `..`,
    // which after a symbolic link is not what it looks like.
    path.components().collect()
}

/// The directory that exists and looks most like one that does not: the first
/// component that is missing is compared with its neighbours.
pub fn nearest(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let missing = path.ancestors().take_while(|dir| !dir.exists()).last()?;
    let parent = missing.parent()?;
    let name = missing.file_name()?;
    let rest = path.strip_prefix(missing).ok().filter(|rest| !rest.as_str().is_empty());
    let whole = |other: &str| match rest {
        Some(rest) => parent.join(other).join(rest),
        None => parent.join(other),
    };
    fs::names(parent)
        .iter()
        .filter(|other| whole(other).is_dir())
        .map(|other| (strsim::jaro_winkler(name, other), whole(other)))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{env::Snapshot, fs::Scratch, process::Runner};

    #[test]
    fn directories_are_made_absolute_or_refused() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        for dir in ["cuda-12.8/lib", "other", "sp ace"] {
            fs::create_dir_all(&root.join(dir)).unwrap();
        }
        fs::write_if_changed(&root.join("file"), b"", 0o644).unwrap();
        let env = Snapshot::from_pairs([("HOME", root.as_str())]);
        let host = Host { env, cwd: root.join("other"), runner: Runner::new() };
        let ok = |typed: &str| resolve("--with-cuda", Utf8Path::new(typed), &host);
        assert_eq!(ok("../cuda-12.8/").unwrap(), root.join("other/../cuda-12.8"));
        assert_eq!(ok("~/sp ace").unwrap(), root.join("sp ace"));
        let typo = ok(root.join("cuda-12.8x").as_str()).unwrap_err();
        assert_eq!(typo.code, Code::NoSuchDirectory);
        let hint = format!("Did you mean `--with-cuda={}`?", root.join("cuda-12.8"));
        assert_eq!(typo.hints, [hint]);
        let deep = ok(root.join("cuda-12.0/lib").as_str()).unwrap_err();
        assert!(deep.hints[0].contains("cuda-12.8/lib"), "{deep:?}");
        assert!(ok(root.join("zzz").as_str()).unwrap_err().hints[0].contains("alone"));
        assert!(ok(root.join("file").as_str()).unwrap_err().what.contains("not a directory"));
    }
}
