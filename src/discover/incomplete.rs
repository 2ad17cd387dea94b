//! Why a directory that exists is no CUDA toolkit, and which one is meant: what
//! each kind of installation looks like when only a part of it is there.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    layout::{Layout, versioned_names},
    shape::{has_headers, target_names},
};
use crate::{host::fs, model::CudaVersion};

/// What a directory is, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// What it is, a sentence.
    pub means: String,
    /// What to do.
    pub advice: Advice,
}

/// What to do about a directory that is no whole toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// To name this one instead.
    Name(Utf8PathBuf),
    /// Something else, a sentence.
    Hint(String),
}

impl Incomplete {
    fn new(means: String, hint: impl Into<String>) -> Self {
        Self { means, advice: Advice::Hint(hint.into()) }
    }

    fn meant(means: String, dir: &Utf8Path) -> Self {
        Self { means, advice: Advice::Name(dir.to_owned()) }
    }
}

/// A directory that was named, and what was found in it.
struct Named<'a> {
    root: &'a Utf8Path,
    layout: &'a Layout,
    machine: &'a str,
}

/// A kind of directory that is no whole toolkit.
type Kind<'a> = fn(&Named<'a>) -> Option<Incomplete>;

/// What a directory is that has no cuda.h of its own: the kinds in the order in
/// which they are recognised.
pub fn without_headers<'a>(
    root: &'a Utf8Path,
    layout: &'a Layout,
    machine: &'a str,
) -> Option<Incomplete> {
    let kinds: [Kind<'a>; 7] = [
        Named::part_of_a_toolkit,
        Named::for_another_machine,
        Named::toolkits_below,
        Named::debians_rest,
        Named::conda_runtime,
        Named::runtime_alone,
        Named::compiler_alone,
    ];
    let named = Named { root, layout, machine };
    kinds.iter().find_map(|kind| kind(&named))
}

/// What a directory is that has headers, and lacks a library.
pub fn without_libraries<'a>(
    root: &'a Utf8Path,
    layout: &'a Layout,
    machine: &'a str,
) -> Option<Incomplete> {
    let kinds: [Kind<'a>; 3] =
        [Named::libraries_for_another_machine, Named::wheels, Named::headers_alone];
    let named = Named { root, layout, machine };
    kinds.iter().find_map(|kind| kind(&named))
}

impl Named<'_> {
    /// `include` or `lib64` of a toolkit.
    fn part_of_a_toolkit(&self) -> Option<Incomplete> {
        let part =
            matches!(self.root.file_name(), Some("include" | "lib" | "lib64" | "bin" | "stubs"));
        let mut above = self.root.ancestors().skip(1).take(2);
        let toolkit = above.find(|dir| part && has_headers(dir, self.machine))?;
        Some(Incomplete::meant(
            format!("`{}` is a part of the toolkit in `{toolkit}`.", self.root),
            toolkit,
        ))
    }

    /// A toolkit, or a part of one, for other machines alone.
    fn for_another_machine(&self) -> Option<Incomplete> {
        let ours = target_names(self.machine);
        let mut others = self.other_targets();
        if let Some(name) = self.root.file_name().filter(|name| !ours.contains(name))
            && self.root.parent().and_then(Utf8Path::file_name) == Some("targets")
        {
            others.push(name.to_owned());
        }
        let name = others.first().filter(|_| !ours.is_empty())?;
        Some(Incomplete::new(
            format!(
                "It is a toolkit for another machine (`targets/{name}`); the compiler is for {}.",
                self.machine
            ),
            format!(
                "{}name a toolkit for {} with `--with-cuda=DIR`.",
                compile_for(name),
                self.machine
            ),
        ))
    }

    /// The names below `targets` with something in them.
    fn other_targets(&self) -> Vec<String> {
        let ours = target_names(self.machine);
        let targets = self.root.join("targets");
        let names = fs::names(&targets).into_iter();
        let is_other = |name: &String| !ours.contains(&name.as_str());
        names
            .filter(is_other)
            .filter(|name| {
                ["include", "lib"].iter().any(|dir| targets.join(name).join(dir).is_dir())
            })
            .collect()
    }

    /// `/usr/local`, `/opt`: toolkits are in it.
    fn toolkits_below(&self) -> Option<Incomplete> {
        let mut found: Vec<(Option<CudaVersion>, Utf8PathBuf)> = fs::names(self.root)
            .into_iter()
            .filter(|name| name == "cuda" || name.starts_with("cuda-"))
            .map(|name| {
                (name.strip_prefix("cuda-").and_then(|it| it.parse().ok()), self.root.join(name))
            })
            .filter(|(_, dir)| has_headers(dir, self.machine))
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        let (_, newest) = found.first()?;
        let list: Vec<String> = found.iter().map(|(_, dir)| format!("`{dir}`")).collect();
        Some(Incomplete::meant(
            format!("It is no toolkit itself, but there are toolkits in it: {}.", list.join(", ")),
            newest,
        ))
    }

    /// What Debian's packages leave at `/usr/lib/cuda`.
    fn debians_rest(&self) -> Option<Incomplete> {
        let below_lib = self.root.parent().filter(|dir| dir.file_name() == Some("lib"))?;
        let usr = below_lib.parent().filter(|dir| has_headers(dir, self.machine))?;
        Some(Incomplete::meant(
            format!(
                "The distribution's packages have headers and libraries in `{usr}`; `{}` is for programs that want one directory, and holds none.",
                self.root
            ),
            usr,
        ))
    }

    /// An environment with conda's `cudatoolkit`.
    fn conda_runtime(&self) -> Option<Incomplete> {
        let is_conda = self.root.join("conda-meta").is_dir();
        let runtime = self.runtime().filter(|_| is_conda)?;
        Some(Incomplete::new(
            format!(
                "This conda environment holds run-time libraries alone (`{runtime}`), without headers."
            ),
            "Install the development packages (`cuda-cudart-dev`, `cuda-driver-dev`, `cuda-nvml-dev` of conda-forge), or name the toolkit that its nvcc stands for, as in `--with-cuda=/usr/local/cuda`.",
        ))
    }

    /// NVIDIA's `base` and `runtime` images, and run-time packages.
    fn runtime_alone(&self) -> Option<Incomplete> {
        let runtime = self.runtime()?;
        Some(Incomplete::new(
            format!("It holds run-time libraries alone (`{runtime}`), without headers."),
            "Build in NVIDIA's `devel` image instead of `base` or `runtime`, or install the development packages (`cuda-cudart-dev-X-Y`, `cuda-driver-dev-X-Y`, `cuda-nvml-dev-X-Y`).",
        ))
    }

    fn runtime(&self) -> Option<Utf8PathBuf> {
        let link = self.layout.library("libcudart.so");
        link.or_else(|| {
            versioned_names(&self.layout.looked_for_libraries, "cudart").into_iter().next()
        })
    }

    /// nvcc's part of a split installation.
    fn compiler_alone(&self) -> Option<Incomplete> {
        let parts = ["bin/nvcc", "include/crt"].map(|name| self.root.join(name));
        let part = parts.iter().find(|path| path.exists())?;
        Some(Incomplete::new(
            format!("It is one part of a split installation: it has `{part}`, and no cuda.h."),
            "Name the parts: `--with-cuda-include=DIR` for each directory with headers (cudart's and nvcc's), `--with-cuda-libdir=DIR` for each with libraries or stubs, `--with-nvml=DIR`, `--with-nvcc=PATH`.",
        ))
    }

    /// Headers that would do, and libraries that would not.
    fn libraries_for_another_machine(&self) -> Option<Incomplete> {
        let ours = target_names(self.machine);
        let others = self.other_targets();
        let name =
            others.first().filter(|_| !ours.is_empty() && self.layout.link_dirs().is_empty())?;
        Some(Incomplete::new(
            format!(
                "Its libraries are for another machine (`targets/{name}`); the compiler is for {}.",
                self.machine
            ),
            format!(
                "{}name a toolkit for {} with `--with-cuda=DIR`.",
                compile_for(name),
                self.machine
            ),
        ))
    }

    /// NVIDIA's wheels bring no library of the driver, and no stub.
    fn wheels(&self) -> Option<Incomplete> {
        let is_wheels = self.root.components().any(|part| part.as_str() == "nvidia")
            && self.layout.versioned_name("cudart").is_some();
        let version = is_wheels.then(|| self.release()).flatten();
        let example = version.unwrap_or_else(|| "12.8".to_owned());
        is_wheels.then(|| {
            Incomplete::new(
                "NVIDIA's wheels hold neither the driver's libraries nor stubs of them.".to_owned(),
                format!("Install the driver, name a directory with stubs with `--with-cuda-libdir=DIR`, or let stubs be made: `--with-cuda=wheel:{example}`."),
            )
        })
    }

    /// The release that the headers say they are of, read as text.
    fn release(&self) -> Option<String> {
        let text = fs::read_to_string(&self.layout.header("cuda.h")?).ok()?;
        let line = text.lines().find(|line| line.starts_with("#define CUDA_VERSION"))?;
        let number = line.split_whitespace().nth(2)?.parse().ok()?;
        Some(CudaVersion::from_macro(number).to_string())
    }

    /// Headers, and no directory with libraries at all.
    fn headers_alone(&self) -> Option<Incomplete> {
        let own = self.layout.library_dirs.iter().chain(&self.layout.stub_dirs);
        if own.count() > 0 {
            return None;
        }
        Some(Incomplete::new(
            format!(
                "`{}` has headers and no libraries: it is one part of a split installation, or its run-time part is not installed.",
                self.root
            ),
            "Name the directories with libraries and stubs with `--with-cuda-libdir=DIR`, once for each.",
        ))
    }
}

/// Says how to compile for the machine of a target's name.
fn compile_for(target: &str) -> String {
    let machine = match target {
        "x86_64-linux" => "x86_64",
        "sbsa-linux" | "aarch64-linux" => "aarch64",
        "ppc64le-linux" => "powerpc64le",
        _ => return "Take a compiler for it, or ".to_owned(),
    };
    format!("Compile for it with `--host={machine}-linux-gnu`, or ")
}
