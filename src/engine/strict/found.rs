//! What the questions about CUDA and gdrcopy came to, before conclusions.

use camino::Utf8PathBuf;

use super::{ask::Answer, versions::HeaderVersions};
use crate::{
    discover::Layout,
    model::{Check, LibraryFile, ToolkitKind, Verdict},
};

/// What CUDA needs, in the order of the original: the first that is missing is
/// the one to tell.
pub(super) const CUDA_NEEDS: [&str; 6] = [
    "cuda.header.cuda_h",
    "cuda.header.cuda_runtime_h",
    "cuda.library.cuda",
    "cuda.library.cudart",
    "nvml.header.nvml_h",
    "nvml.library.nvidia_ml",
];

/// What gdrcopy needs.
pub(super) const GDRCOPY_NEEDS: [&str; 2] = ["gdrcopy.header.gdrapi_h", "gdrcopy.library.gdrapi"];

/// An installation that was asked about.
#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub(super) layout: Layout,
    /// The directory that was named for it, if one was.
    pub(super) named: Option<Utf8PathBuf>,
    pub(super) kind: ToolkitKind,
    pub(super) found_by: String,
    pub(super) answers: Vec<Answer>,
}

impl Installation {
    /// The answer to a question, if it was put.
    pub(super) fn answer(&self, id: &str) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.check.id == id)
    }

    /// The question's verdict; skipped where it was not put.
    pub(super) fn verdict(&self, id: &str) -> Verdict {
        self.answer(id).map_or(Verdict::Skipped, |answer| answer.check.verdict)
    }

    /// Whether a question was answered with yes.
    pub(super) fn yes(&self, id: &str) -> bool {
        self.verdict(id).is_yes()
    }

    /// The first need that is not met.
    pub(super) fn first_missing(&self, needs: &[&str]) -> Option<&Check> {
        needs
            .iter()
            .filter_map(|id| self.answer(id))
            .map(|answer| &answer.check)
            .find(|check| !check.verdict.is_yes())
    }

    /// Whether all needs are met.
    pub(super) fn meets(&self, needs: &[&str]) -> bool {
        needs.iter().all(|id| self.yes(id))
    }

    /// The file that was linked with for a question.
    pub(super) fn library(&self, id: &str) -> Option<&Utf8PathBuf> {
        self.answer(id).and_then(|answer| answer.library.as_ref())
    }

    /// Where it is, for people.
    pub(super) fn place(&self) -> String {
        self.layout.described()
    }
}

/// Everything that was found out.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The CUDA that was asked about last; none with `--without-cuda`.
    pub(super) cuda: Option<Installation>,
    /// The gdrcopy that was asked about last.
    pub(super) gdrcopy: Option<Installation>,
    /// The answers about the system.
    pub(super) system: Vec<Answer>,
    /// The library files that were seen.
    pub(super) libraries: Vec<LibraryFile>,
    /// What the headers say of themselves.
    pub(super) headers: HeaderVersions,
}

impl Found {
    /// Whether CUDA is on.
    pub(super) fn cuda_on(&self) -> bool {
        self.cuda.as_ref().is_some_and(|cuda| cuda.meets(&CUDA_NEEDS))
    }

    /// Whether gdrcopy is there, be it of use or not.
    pub(super) fn gdrcopy_there(&self) -> bool {
        self.gdrcopy.as_ref().is_some_and(|tree| tree.meets(&GDRCOPY_NEEDS))
    }

    /// Whether gdrcopy is on.
    pub(super) fn gdrcopy_on(&self) -> bool {
        self.cuda_on() && self.gdrcopy_there()
    }

    /// Whether nvcc works and is of use.
    pub(super) fn nvcc_on(&self) -> bool {
        self.cuda_on() && self.cuda_yes("cuda.nvcc")
    }

    /// A yes about CUDA.
    pub(super) fn cuda_yes(&self, id: &str) -> bool {
        self.cuda.as_ref().is_some_and(|cuda| cuda.yes(id))
    }

    /// Whether a question about the system was answered with yes.
    pub(super) fn system_yes(&self, id: &str) -> bool {
        self.system.iter().any(|answer| answer.check.id == id && answer.check.verdict.is_yes())
    }

    /// Whether binary instrumentation is possible: the system calls that it
    /// needs have numbers. UCX takes either form of shared memory calls.
    pub(super) fn bistro_possible(&self, machine: &str) -> bool {
        let all = ["mmap", "munmap", "mremap", "brk", "madvise"];
        let declared = |name: &&str| self.system_yes(&format!("system.sys_{name}"));
        let shared = ["shmat", "shmdt"].iter().all(declared) || declared(&"ipc");
        machine == "x86_64" && all.iter().all(declared) && shared
    }

    /// The verdict about a feature's question, wherever it was put.
    pub(super) fn verdict(&self, id: &str) -> Verdict {
        let system = self.system.iter().find(|answer| answer.check.id == id);
        system.map(|answer| answer.check.verdict).unwrap_or_else(|| {
            [&self.cuda, &self.gdrcopy]
                .into_iter()
                .flatten()
                .find_map(|found| found.answer(id))
                .map_or(Verdict::Skipped, |answer| answer.check.verdict)
        })
    }
}
