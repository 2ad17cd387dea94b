//! Where to look when nobody said where: the order, as data.
//!
//! The same table is searched, printed in the help text and in "looked in".
//! The current directory is in none of it.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    host::{Host, fs, process::find_program},
    model::CudaVersion,
};

/// The variable whose value is put before the fixed places, for tests and for
/// systems that are not mounted at `/`.
pub const ROOT_VARIABLE: &str = "UCX_CONFIGURE_ROOT";

/// One place to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The directory that an environment variable names.
    Variable(&'static str),
    /// What the compiler finds by itself, with the user's CPPFLAGS and
    /// LDFLAGS, and with CPATH and its like.
    Compiler,
    /// The directory above the one where PATH has a program.
    AboveProgram(&'static str),
    /// A fixed directory.
    Fixed(&'static str),
    /// Directories below a fixed one that end in a version, the newest first.
    Versioned(&'static str, &'static str),
}

/// Where CUDA is looked for, in this order.
pub const CUDA_PLACES: &[Place] = &[
    Place::Variable("CUDA_HOME"),
    Place::Variable("CUDA_PATH"),
    Place::Variable("CUDA_ROOT"),
    Place::Variable("CUDAToolkit_ROOT"),
    Place::Compiler,
    Place::AboveProgram("nvcc"),
    Place::Fixed("/usr/local/cuda"),
    Place::Versioned("/usr/local", "cuda-"),
    Place::Fixed("/opt/cuda"),
];

/// Where gdrcopy is looked for, in this order.
pub const GDRCOPY_PLACES: &[Place] = &[
    Place::Variable("GDRCOPY_HOME"),
    Place::Variable("GDRCOPY_ROOT"),
    Place::Compiler,
    Place::Fixed("/usr/local"),
    Place::Fixed("/usr/local/gdrcopy"),
    Place::Fixed("/opt/gdrcopy"),
];

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Compiler => f.write_str("the compiler's own directories"),
            Self::AboveProgram(name) => write!(f, "`{name}` in PATH"),
            Self::Fixed(dir) => f.write_str(dir),
            Self::Versioned(dir, prefix) => write!(f, "{dir}/{prefix}X.Y, the newest first"),
        }
    }
}

/// One directory to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The place it came from.
    pub place: Place,
    /// The directory; none for what the compiler finds by itself.
    pub root: Option<Utf8PathBuf>,
}

/// The directories to try, in order; those that are not there are left out,
/// and none is there twice.
pub fn candidates(places: &[Place], host: &Host) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for &place in places {
        for root in roots(place, host) {
            let known = |candidate: &Candidate| match (&candidate.root, &root) {
                (Some(known), Some(root)) => same_dir(known, root),
                (known, root) => known == root,
            };
            if !found.iter().any(known) {
                found.push(Candidate { place, root });
            }
        }
    }
    found
}

/// The directories of one place.
fn roots(place: Place, host: &Host) -> Vec<Option<Utf8PathBuf>> {
    let prefix = host.env.get(ROOT_VARIABLE).unwrap_or("");
    let dir = |path: Utf8PathBuf| path.is_dir().then_some(Some(path));
    match place {
        Place::Compiler => vec![None],
        Place::Variable(name) => value(name, host).and_then(dir).into_iter().collect(),
        Place::AboveProgram(name) => {
            let program = find_program(name, &host.env.path_dirs()).0;
            let real = program.and_then(|path| fs::canonical(&path).ok());
            let above = real.and_then(|path| Some(path.parent()?.parent()?.to_owned()));
            above.and_then(dir).into_iter().collect()
        }
        Place::Fixed(path) => dir(format!("{prefix}{path}").into()).into_iter().collect(),
        Place::Versioned(parent, start) => {
            let parent = Utf8PathBuf::from(format!("{prefix}{parent}"));
            let mut versions: Vec<(CudaVersion, String)> = fs::names(&parent)
                .into_iter()
                .filter_map(|name| Some((name.strip_prefix(start)?.parse().ok()?, name)))
                .collect();
            versions.sort_by(|one, other| other.cmp(one));
            versions.into_iter().filter_map(|(_, name)| dir(parent.join(name))).collect()
        }
    }
}

/// The directory that a variable names; a relative one is none, since what is
/// found must not depend on where the user stands.
fn value(name: &str, host: &Host) -> Option<Utf8PathBuf> {
    host.env.get(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute())
}

/// Variables that are set and name no directory, or another one than the
/// first: each deserves a word.
pub fn remarks(places: &[Place], host: &Host) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut first: Option<(&str, Utf8PathBuf)> = None;
    for place in places {
        let Place::Variable(name) = place else { continue };
        let Some(text) = host.env.get(name).filter(|text| !text.is_empty()) else { continue };
        match value(name, host) {
            None => remarks.push(format!("{name} is `{text}`, which is not an absolute path")),
            Some(path) if !path.is_dir() => {
                remarks.push(format!("{name} is `{text}`, which is not a directory"));
            }
            Some(path) => match &first {
                None => first = Some((name, path)),
                Some((winner, known)) if !same_dir(known, &path) => remarks.push(format!(
                    "{name} is `{text}`, but {winner}, which comes first, is `{known}`"
                )),
                Some(_) => {}
            },
        }
    }
    remarks
}

/// Whether two paths lead to the same directory.
pub fn same_dir(one: &Utf8Path, other: &Utf8Path) -> bool {
    one == other
        || match (fs::canonical(one), fs::canonical(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        env::Snapshot,
        fs::{Scratch, create_dir_all, symlink, write_if_changed},
        process::Runner,
    };

    fn host(pairs: &[(&str, &str)]) -> Host {
        let env = Snapshot::from_pairs(pairs.iter().copied());
        Host { env, cwd: "/".into(), runner: Runner::new() }
    }

    #[test]
    fn candidates_come_in_the_order_of_the_table() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        for dir in ["usr/local/cuda-9.2", "usr/local/cuda-12.10", "usr/local/cuda-12.9", "home"] {
            create_dir_all(&root.join(dir)).unwrap();
        }
        create_dir_all(&root.join("tool/bin")).unwrap();
        write_if_changed(&root.join("tool/bin/nvcc"), b"", 0o755).unwrap();
        symlink("cuda-12.9", &root.join("usr/local/cuda")).unwrap();
        let (path, home) = (root.join("tool/bin"), root.join("home"));
        let host = host(&[
            (ROOT_VARIABLE, root.as_str()),
            ("CUDA_PATH", home.as_str()),
            ("CUDA_HOME", "relative/dir"),
            ("PATH", path.as_str()),
        ]);
        let real = fs::canonical(root).unwrap();
        let name = |candidate: Candidate| match candidate.root {
            Some(dir) => fs::canonical(&dir).unwrap().strip_prefix(&real).unwrap().to_string(),
            None => "compiler".to_owned(),
        };
        let found: Vec<String> = candidates(CUDA_PLACES, &host).into_iter().map(name).collect();
        let expected = [
            "home",
            "compiler",
            "tool",
            "usr/local/cuda-12.9",
            "usr/local/cuda-12.10",
            "usr/local/cuda-9.2",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            remarks(CUDA_PLACES, &host),
            ["CUDA_HOME is `relative/dir`, which is not an absolute path"]
        );
    }

    #[test]
    fn conflicting_variables_are_named() {
        let host = host(&[("CUDA_HOME", "/usr"), ("CUDA_PATH", "/etc"), ("CUDA_ROOT", "/gone")]);
        assert_eq!(
            remarks(CUDA_PLACES, &host),
            [
                "CUDA_PATH is `/etc`, but CUDA_HOME, which comes first, is `/usr`",
                "CUDA_ROOT is `/gone`, which is not a directory"
            ]
        );
    }
}
