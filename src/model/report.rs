//! Everything that is known at the end of a run.
//!
//! A report is plain data in a deterministic order: no time stamps, no paths
//! of scratch files. Every output is rendered from it alone.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::{
    Answers, Check, Component, CudaVersion, DriverFloor, Evidence, FeatureId, GdrVersion,
    LibraryFile, Module, Verdict,
};

/// The version of the JSON form. It changes when a reader would have to.
pub const SCHEMA_VERSION: u32 = 1;

/// Whose rules decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Ours: the quirks mended, each difference told.
    Strict,
    /// UCX v1.19.0's, quirks included.
    Compat,
}

/// Who made the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Always `ucx-configure`.
    pub name: String,
    /// Our version.
    pub version: String,
}

/// Which compiler answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolIdentity {
    /// The command as words, wrapper included: `["ccache", "gcc"]`.
    pub command: Vec<String>,
    /// `gcc`, `clang`, `nvcc`, ...
    pub kind: String,
    /// Its version, such as `12.2.0`.
    pub version: String,
    /// The machine it compiles for, such as `x86_64-linux-gnu`.
    pub target: String,
}

/// Where a toolkit came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolkitKind {
    /// An installation on this machine.
    Installed,
    /// NVIDIA's wheels, assembled by us.
    Wheel,
    /// Our embedded stub toolkit: enough to build, nothing to run on.
    Stub,
}

/// The versions that the parts of a toolkit say of themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// `CUDA_VERSION` of cuda.h.
    pub cuda_h: Option<CudaVersion>,
    /// `CUDART_VERSION` of cuda_runtime_api.h.
    pub cudart_h: Option<CudaVersion>,
    /// What libcudart's name says.
    pub cudart_library: Option<String>,
    /// `NVML_API_VERSION` and the release that nvml.h fits to.
    pub nvml_h: Option<String>,
    /// What nvcc says.
    pub nvcc: Option<CudaVersion>,
}

/// The CUDA toolkit that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolkit {
    /// Its root, where it has one; none when the compiler found it by itself.
    pub root: Option<Utf8PathBuf>,
    /// Where the root's links lead, where that is another directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_root: Option<Utf8PathBuf>,
    /// Installed, wheel or stub.
    pub kind: ToolkitKind,
    /// How it was found: `--with-cuda`, `environment variable CUDA_HOME`, ...
    pub found_by: String,
    /// Directories with headers.
    pub include_dirs: Vec<Utf8PathBuf>,
    /// Directories to link with, stubs not included.
    pub library_dirs: Vec<Utf8PathBuf>,
    /// Directories with stub libraries: for linking only.
    pub stub_dirs: Vec<Utf8PathBuf>,
    /// What its parts say of themselves.
    pub versions: Versions,
}

/// The gdrcopy that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GdrCopyTree {
    /// Its root, where it has one.
    pub root: Option<Utf8PathBuf>,
    /// Installed or stub.
    pub kind: ToolkitKind,
    /// How it was found.
    pub found_by: String,
    /// Directories with headers.
    pub include_dirs: Vec<Utf8PathBuf>,
    /// Directories to link with.
    pub library_dirs: Vec<Utf8PathBuf>,
    /// `GDR_API_MAJOR_VERSION` and `_MINOR_`.
    pub version: Option<GdrVersion>,
}

/// What became of one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which component.
    pub component: Component,
    /// Yes, no, broken, or not looked for.
    pub verdict: Verdict,
    /// Why, in a sentence; for a yes, where.
    pub why: String,
    /// The evidence of the check that decided.
    pub evidence: Evidence,
}

/// Whether a feature is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureAnswer {
    /// Which feature.
    pub id: FeatureId,
    /// The answer.
    pub verdict: Verdict,
    /// What UCX's version guard alone would say, where it has one: a
    /// difference from `verdict` is told.
    pub by_version: Option<bool>,
}

/// How grave a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// For information.
    Note,
    /// Something to look at; the run goes on.
    Warning,
    /// What the run failed for.
    Error,
}

/// Something that was said to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// How grave it is.
    pub kind: MessageKind,
    /// A stable code, such as `W0003`.
    pub code: String,
    /// The text, without a prefix.
    pub text: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A place that an environment variable leads to, and that has something of
/// what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supplied {
    /// The variable, such as `CPATH`.
    pub variable: String,
    /// Where it leads.
    pub place: Utf8PathBuf,
    /// What is there, such as `cuda.h`.
    pub holds: Vec<String>,
    /// Whether the answers stand on it.
    pub used: bool,
}

/// One place where strict and compat answers differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The quirk's name in our documentation, such as `Q4`.
    pub quirk: String,
    /// One line: what the original does, and what we do.
    pub text: String,
}

/// The installation directories, as GNU programs name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// `--prefix` and those derived from it, in autoconf's names:
    /// `prefix`, `exec_prefix`, `libdir`, ...
    pub dirs: BTreeMap<String, String>,
}

/// Everything that is known at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Who made it.
    pub tool: Tool,
    /// Whose rules decided.
    pub mode: Mode,
    /// The arguments as typed.
    pub command_line: Vec<String>,
    /// Whether everything that was asked for is there.
    pub ok: bool,
    /// The installation directories.
    pub install: Install,
    /// The machine that the modules will run on, as `--host` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The C compiler; none when it was broken before it could be asked.
    pub compiler: Option<ToolIdentity>,
    /// nvcc, where one works.
    pub nvcc: Option<ToolIdentity>,
    /// The CUDA toolkit; none without CUDA.
    pub toolkit: Option<Toolkit>,
    /// gdrcopy; none without.
    pub gdrcopy: Option<GdrCopyTree>,
    /// The library files that were seen, in the order of the search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<LibraryFile>,
    /// The oldest driver for UCX as it is configured; none without CUDA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_floor: Option<DriverFloor>,
    /// What became of each component, in [`Component::ALL`]'s order.
    pub components: Vec<Finding>,
    /// The features, in [`super::FEATURES`]' order.
    pub features: Vec<FeatureAnswer>,
    /// The cfg flags for hook-runtime: name to on or off.
    pub cfg: BTreeMap<String, bool>,
    /// The modules to build.
    pub modules: Vec<Module>,
    /// Whether io_demo gets CUDA support.
    pub iodemo_cuda: bool,
    /// What outputs are rendered from.
    pub answers: Answers,
    /// Every question with its answer, in the order asked.
    pub checks: Vec<Check>,
    /// What was said to the user.
    pub messages: Vec<Message>,
    /// Where strict and compat answers differ.
    pub differences: Vec<Difference>,
    /// What environment variables lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<Supplied>,
}

impl Report {
    /// Whether CUDA support is on.
    pub fn has_cuda(&self) -> bool {
        self.answers.conditional("HAVE_CUDA").unwrap_or(false)
    }

    /// Whether the toolkit is our embedded stub.
    pub fn on_stub(&self) -> bool {
        self.toolkit.as_ref().is_some_and(|toolkit| toolkit.kind == ToolkitKind::Stub)
            || self.gdrcopy.as_ref().is_some_and(|tree| tree.kind == ToolkitKind::Stub)
    }

    /// What became of a component.
    pub fn finding(&self, component: Component) -> Option<&Finding> {
        self.components.iter().find(|finding| finding.component == component)
    }

    /// The answer about a feature.
    pub fn feature(&self, id: FeatureId) -> Option<&FeatureAnswer> {
        self.features.iter().find(|answer| answer.id == id)
    }
}
