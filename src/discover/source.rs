//! Where to look when nobody said where: the order, as data.
//!
//! The same table is searched, printed in the help text and in "looked in".
//! The current directory is in none of it.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use super::{layout::Parts, python};
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
    /// What files of pkg-config say, the newest release first.
    PkgConfig,
    /// What the nvcc in PATH says of itself, asked by a dry run.
    Nvcc,
    /// What the compiler finds by itself, with the user's CPPFLAGS and
    /// LDFLAGS, and with CPATH and its like.
    Compiler,
    /// A fixed directory.
    Fixed(&'static str),
    /// Directories below a fixed one that end in a version, the newest first.
    Versioned(&'static str, &'static str),
    /// NVIDIA's wheels in the packages of the active Python.
    Wheels,
    /// Where drivers are installed, and the loader's cache: for the driver's
    /// libraries alone, where a toolkit has none.
    Driver,
}

/// Where CUDA is looked for, in this order.
pub const CUDA_PLACES: &[Place] = &[
    Place::Variable("CUDA_HOME"),
    Place::Variable("CUDA_PATH"),
    Place::Variable("CUDA_ROOT"),
    Place::Variable("CUDAToolkit_ROOT"),
    Place::Variable("CONDA_PREFIX"),
    Place::PkgConfig,
    Place::Nvcc,
    Place::Compiler,
    Place::Fixed("/usr/local/cuda"),
    Place::Versioned("/usr/local", "cuda-"),
    Place::Fixed("/opt/cuda"),
    Place::Wheels,
    Place::Driver,
];

/// Variables of the table that say nothing about CUDA by themselves: one that
/// names another directory than the others is no conflict.
const NO_HINT: [&str; 1] = ["CONDA_PREFIX"];

/// Where gdrcopy is looked for, in this order.
pub const GDRCOPY_PLACES: &[Place] = &[
    Place::Variable("GDRCOPY_HOME"),
    Place::Variable("GDRCOPY_ROOT"),
    Place::Variable("CONDA_PREFIX"),
    Place::Compiler,
    Place::Fixed("/usr/local"),
    Place::Fixed("/usr/local/gdrcopy"),
    Place::Fixed("/opt/gdrcopy"),
];

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::PkgConfig => {
                f.write_str("pkg-config (cuda-X.Y, cudart-X.Y, nvidia-ml-X.Y), the newest first")
            }
            Self::Nvcc => f.write_str("`nvcc` in PATH, asked by its dry run"),
            Self::Compiler => f.write_str("the compiler's own directories"),
            Self::Fixed(dir) => f.write_str(dir),
            Self::Versioned(dir, prefix) => write!(f, "{dir}/{prefix}X.Y, the newest first"),
            Self::Wheels => f.write_str("the wheels of the active Python"),
            Self::Driver => f.write_str(
                "the driver's directories and the loader's cache, for libcuda and libnvidia-ml alone",
            ),
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
    /// What is to be searched before it.
    pub parts: Parts,
}

/// The directories that one place comes to, as far as files say it; those that
/// are not there are left out. Tools are not asked here: an nvcc counts by
/// where it lies, and files of pkg-config do not count.
pub fn candidates(place: Place, host: &Host) -> Vec<Candidate> {
    let candidate = |root| Candidate { place, root, parts: Parts::default() };
    roots(place, host).into_iter().map(candidate).collect()
}

/// The directories of one place.
fn roots(place: Place, host: &Host) -> Vec<Option<Utf8PathBuf>> {
    let prefix = host.env.get(ROOT_VARIABLE).unwrap_or("");
    let dir = |path: Utf8PathBuf| path.is_dir().then_some(Some(path));
    match place {
        Place::Compiler => vec![None],
        Place::PkgConfig | Place::Driver => Vec::new(),
        Place::Variable(name) => value(name, host).and_then(dir).into_iter().collect(),
        Place::Nvcc => above_nvcc(host).into_iter().filter_map(dir).collect(),
        Place::Fixed(path) => below(prefix, path).and_then(dir).into_iter().collect(),
        Place::Versioned(parent, start) => {
            let parent = Utf8PathBuf::from(format!("{prefix}{parent}"));
            let mut versions: Vec<(CudaVersion, String)> = fs::names(&parent)
                .into_iter()
                .filter_map(|name| Some((name.strip_prefix(start)?.parse().ok()?, name)))
                .collect();
            versions.sort_by(|one, other| other.cmp(one));
            versions.into_iter().filter_map(|(_, name)| dir(parent.join(name))).collect()
        }
        Place::Wheels => python::wheel_dirs(host).into_iter().filter_map(dir).collect(),
    }
}

/// The directories above the one where the nvcc of PATH is, links followed and
/// not.
pub fn above_nvcc(host: &Host) -> Vec<Utf8PathBuf> {
    let Some(program) = find_program("nvcc", &host.env.path_dirs()).0 else { return Vec::new() };
    let real = fs::canonical(&program).ok();
    let above = |path: Utf8PathBuf| Some(path.parent()?.parent()?.to_owned());
    real.into_iter().chain([program]).filter_map(above).collect()
}

/// How many links may lead to a fixed place.
const LINKS: usize = 8;

/// A fixed place below the directory that stands for `/`: an absolute link
/// means a path below it, too.
fn below(prefix: &str, path: &str) -> Option<Utf8PathBuf> {
    let mut place = Utf8PathBuf::from(format!("{prefix}{path}"));
    if prefix.is_empty() {
        return Some(place);
    }
    for _ in 0..LINKS {
        match fs::link_target(&place) {
            Some(target) if target.starts_with('/') && !target.starts_with(prefix) => {
                place = format!("{prefix}{target}").into();
            }
            _ => return Some(place),
        }
    }
    None
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
        if NO_HINT.contains(name) {
            continue;
        }
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

/// A place, and what it came to where it gave nothing to try: what "looked in"
/// says of it.
pub fn looked_in(place: Place, host: &Host) -> String {
    let state = match place {
        Place::Variable(name) => match host.env.get(name) {
            None | Some("") => Some("not set".to_owned()),
            Some(text) => Some(format!("`{text}`")),
        },
        Place::Nvcc => match find_program("nvcc", &host.env.path_dirs()).0 {
            None => Some("there is none".to_owned()),
            Some(path) => Some(format!("`{path}`")),
        },
        Place::Fixed(_) | Place::Versioned(..) | Place::Wheels => {
            roots(place, host).is_empty().then(|| "not there".to_owned())
        }
        Place::PkgConfig | Place::Compiler | Place::Driver => None,
    };
    match state {
        Some(state) => format!("{place} ({state})"),
        None => place.to_string(),
    }
}

/// The places as a list for people, a line each.
pub fn order(places: &[Place]) -> impl Iterator<Item = String> {
    places.iter().enumerate().map(|(index, place)| format!("{:>2}. {place}", index + 1))
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
        let all = CUDA_PLACES.iter().flat_map(|place| candidates(*place, &host));
        let mut found: Vec<String> = all.map(name).collect();
        found.dedup();
        let expected = [
            "home",
            "tool",
            "compiler",
            "usr/local/cuda-12.9",
            "usr/local/cuda-12.10",
            "usr/local/cuda-12.9",
            "usr/local/cuda-9.2",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            remarks(CUDA_PLACES, &host),
            ["CUDA_HOME is `relative/dir`, which is not an absolute path"]
        );
    }

    #[test]
    fn links_of_another_root_stay_below_it() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        create_dir_all(&root.join("usr/local/cuda-12.9")).unwrap();
        create_dir_all(&root.join("etc/alternatives")).unwrap();
        symlink("/etc/alternatives/cuda", &root.join("usr/local/cuda")).unwrap();
        symlink("/usr/local/cuda-12.9", &root.join("etc/alternatives/cuda")).unwrap();
        let prefix = root.as_str();
        assert_eq!(below(prefix, "/usr/local/cuda").unwrap(), root.join("usr/local/cuda-12.9"));
        assert_eq!(below("", "/usr/local/cuda").unwrap(), "/usr/local/cuda");
        symlink("/etc/circle", &root.join("etc/circle")).unwrap();
        assert_eq!(below(prefix, "/etc/circle"), None);
    }

    #[test]
    fn the_order_is_a_list_for_people() {
        let lines: Vec<String> = order(CUDA_PLACES).collect();
        assert_eq!(lines.len(), CUDA_PLACES.len());
        assert_eq!(lines[0], " 1. environment variable CUDA_HOME");
        assert!(lines.last().unwrap().contains("the loader's cache"));
        let host = host(&[("CUDA_HOME", "/gone"), ("PATH", "/nowhere")]);
        assert_eq!(looked_in(CUDA_PLACES[0], &host), "environment variable CUDA_HOME (`/gone`)");
        assert!(looked_in(CUDA_PLACES[1], &host).ends_with("(not set)"));
        assert!(looked_in(Place::Nvcc, &host).ends_with("(there is none)"));
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
