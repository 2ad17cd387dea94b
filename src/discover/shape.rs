//! From the directory that somebody names to the directories that a toolkit is
//! made of: most have one root, some lie in several below or beside it.

use camino::{Utf8Path, Utf8PathBuf};

use super::layout::HEADERS;
use crate::{host::fs, model::CudaVersion};

/// NVIDIA's wheels for CUDA 11 and 12 unpack into one directory each.
const WHEELS: [&str; 5] = ["cuda_runtime", "cuda_nvcc", "cuda_crt", "cuda_cccl", "nvml_dev"];

/// The archives that NVIDIA distributes by component; a name goes on with
/// system and version.
const ARCHIVES: [&str; 6] =
    ["cuda_cudart", "cuda_nvcc", "cuda_crt", "cuda_cccl", "cuda_nvml_dev", "cuda_driver_dev"];

/// What a directory comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// The root: the directory that was named, or the toolkit below it.
    pub(super) root: Utf8PathBuf,
    /// The directories with `include` and `lib` in them, in order.
    pub(super) parts: Vec<Utf8PathBuf>,
    /// Whether `targets/MACHINE` comes before the root's own directories,
    /// which hold much besides CUDA.
    pub(super) targets_first: bool,
    /// Where nvcc may be.
    pub(super) nvcc: Vec<Utf8PathBuf>,
    /// What to say about the choice.
    pub(super) note: Option<String>,
}

/// Every name that NVIDIA gives a machine below `targets`.
pub(super) const ALL_TARGETS: [&str; 6] = [
    "x86_64-linux",
    "sbsa-linux",
    "aarch64-linux",
    "ppc64le-linux",
    "aarch64-qnx",
    "armv7-linux-gnueabihf",
];

/// The names that NVIDIA gives a machine below `targets`.
pub(super) fn target_names(machine: &str) -> &'static [&'static str] {
    match machine {
        "x86_64" => &["x86_64-linux"],
        // Servers first; `aarch64-linux` is what Jetson boards have.
        "aarch64" => &["sbsa-linux", "aarch64-linux"],
        "powerpc64le" => &["ppc64le-linux"],
        _ => &[],
    }
}

/// Directories for headers below a part, in order.
pub(super) fn header_dirs(part: &Utf8Path, machine: &str, targets_first: bool) -> Vec<Utf8PathBuf> {
    let targets =
        target_names(machine).iter().map(|name| part.join("targets").join(name).join("include"));
    let mut dirs = vec![part.join("include")];
    if targets_first {
        dirs.splice(0..0, targets);
    } else {
        dirs.extend(targets);
    }
    // Fedora's packages put them one level down.
    dirs.push(part.join("include/cuda"));
    dirs
}

/// Whether one of the directories for headers holds a header of CUDA's.
pub(super) fn has_headers(root: &Utf8Path, machine: &str) -> bool {
    header_dirs(root, machine, false)
        .iter()
        .any(|dir| HEADERS.iter().any(|name| dir.join(name).is_file()))
}

impl Shape {
    /// What the directory comes to; `machine` is the one that is compiled for.
    pub(super) fn of(root: &Utf8Path, machine: &str) -> Self {
        if let Some(shape) = Self::wheels(root) {
            return shape;
        }
        if has_headers(root, machine) {
            return Self::plain(root);
        }
        Self::archives(root, machine)
            .or_else(|| Self::sdk(root, machine))
            .unwrap_or_else(|| Self::plain(root))
    }

    fn plain(root: &Utf8Path) -> Self {
        let mut nvcc = vec![root.join("bin/nvcc")];
        // `ROOT/targets/x86_64-linux` is a part of a toolkit whose programs
        // are above it.
        let targets = root.parent().filter(|dir| dir.file_name() == Some("targets"));
        nvcc.extend(targets.and_then(Utf8Path::parent).map(|above| above.join("bin/nvcc")));
        Self {
            root: root.to_owned(),
            parts: vec![root.to_owned()],
            targets_first: root.join("conda-meta").is_dir(),
            nvcc,
            note: None,
        }
    }

    /// `site-packages`, its `nvidia`, or one wheel's directory in that.
    fn wheels(root: &Utf8Path) -> Option<Self> {
        let is_packages = matches!(root.file_name(), Some("site-packages" | "dist-packages"));
        let below = root.join("nvidia");
        let parent = root.parent().filter(|dir| dir.file_name() == Some("nvidia"));
        let (base, named) = match root.file_name() {
            _ if is_packages && below.is_dir() => (below, None),
            Some("nvidia") => (root.to_owned(), None),
            Some(name) if WHEELS.contains(&name) => (parent?.to_owned(), Some(name)),
            _ => return None,
        };
        let parts: Vec<Utf8PathBuf> =
            WHEELS.iter().map(|name| base.join(name)).filter(|dir| dir.is_dir()).collect();
        // From CUDA 13 on, one directory holds them all.
        let mut whole: Vec<(u32, Utf8PathBuf)> = fs::names(&base)
            .iter()
            .filter_map(|name| Some((name.strip_prefix("cu")?.parse().ok()?, base.join(name))))
            .filter(|(_, dir)| dir.join("include").is_dir())
            .collect();
        whole.sort();
        if let Some((_, dir)) = whole.pop().filter(|_| named.is_none()) {
            let note = (!parts.is_empty()).then(|| {
                format!("`{base}` holds wheels of several releases: those in `{dir}` are taken")
            });
            return Some(Self { note, ..Self::plain(&dir) });
        }
        if parts.is_empty() {
            return None;
        }
        let nvcc = vec![base.join("cuda_nvcc/bin/nvcc")];
        Some(Self { root: base, parts, targets_first: false, nvcc, note: None })
    }

    /// NVIDIA's archives side by side, or one of them.
    fn archives(root: &Utf8Path, machine: &str) -> Option<Self> {
        let is_archive =
            |name: &str| ARCHIVES.iter().any(|part| name.starts_with(&format!("{part}-linux-")));
        let base = match root.file_name().is_some_and(is_archive) {
            true => root.parent()?,
            false => root,
        };
        let names = fs::names(base);
        let systems: &[&str] = match machine {
            "aarch64" => &["linux-sbsa", "linux-aarch64"],
            "powerpc64le" => &["linux-ppc64le"],
            _ => &["linux-x86_64"],
        };
        let newest = |part: &&str| {
            systems.iter().find_map(|system| {
                let start = format!("{part}-{system}-");
                names.iter().rfind(|name| name.starts_with(&start)).map(|name| base.join(name))
            })
        };
        let parts: Vec<Utf8PathBuf> = ARCHIVES.iter().filter_map(newest).collect();
        if parts.is_empty() {
            return None;
        }
        let nvcc = parts.iter().map(|part| part.join("bin/nvcc")).collect();
        Some(Self { root: base.to_owned(), parts, targets_first: false, nvcc, note: None })
    }

    /// NVIDIA's HPC SDK, at any of its levels: it has a toolkit for each of
    /// several releases.
    fn sdk(root: &Utf8Path, machine: &str) -> Option<Self> {
        let system = match machine {
            "powerpc64le" => "Linux_ppc64le".to_owned(),
            other => format!("Linux_{other}"),
        };
        let mut places = vec![root.join("cuda")];
        places.extend((root.file_name() == Some("cuda")).then(|| root.to_owned()));
        for versions in [root.join(system), root.to_owned()] {
            let dirs = versioned(&versions).into_iter().map(|(_, dir)| dir.join("cuda"));
            places.extend(dirs.filter(|dir| dir.is_dir()));
        }
        let releases = |dir: &Utf8PathBuf| -> Vec<Utf8PathBuf> {
            let found = versioned(dir).into_iter().map(|(_, dir)| dir);
            found.filter(|dir| has_headers(dir, machine)).collect()
        };
        let (place, found) = places.iter().find_map(|dir| {
            let found = releases(dir);
            (!found.is_empty()).then_some((dir, found))
        })?;
        let (newest, others) = found.split_first()?;
        let list: Vec<String> = others.iter().map(|dir| format!("`{dir}`")).collect();
        let also = match &list[..] {
            [] => String::new(),
            list => format!("; there is also {}", list.join(", ")),
        };
        let mut shape = Self::plain(newest);
        shape.note = Some(format!("`{root}` is NVIDIA's HPC SDK: `{newest}` is taken{also}"));
        shape.nvcc.extend(place.parent().map(|sdk| sdk.join("compilers/bin/nvcc")));
        Some(shape)
    }
}

/// The directories whose names are versions, the newest first.
fn versioned(dir: &Utf8Path) -> Vec<(CudaVersion, Utf8PathBuf)> {
    let mut found: Vec<(CudaVersion, Utf8PathBuf)> = fs::names(dir)
        .into_iter()
        .filter_map(|name| Some((name.parse().ok()?, dir.join(name))))
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}
