//! One question and its answer.

use serde::{Deserialize, Serialize};

use super::{Component, Evidence};

/// What a question came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The probe succeeded, and its control shows that success means something.
    Yes,
    /// The probe failed while its positive control succeeded.
    No,
    /// The compiler cannot even build the control: nothing was learnt.
    Broken,
    /// The question was not put, because an earlier answer settled it.
    Skipped,
}

impl Verdict {
    /// Whether the answer is yes.
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }

    /// The word that a progress line ends in.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Broken => "broken",
            Self::Skipped => "skipped",
        }
    }
}

/// Which of the two families of answers a question belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// What UCX's configure decides.
    Configure,
    /// What UCX's sources decide when they are compiled with these headers.
    Sources,
    /// What only this tool asks: controls, identities, versions.
    Tool,
}

/// One question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// A stable name, such as `cuda.header.cuda_h`; unique within a report.
    pub id: String,
    /// What follows "checking for" or "checking" in a progress line; the whole
    /// text between "checking " and "...".
    pub label: String,
    /// Which family it belongs to.
    pub family: Family,
    /// What it is part of, where it is part of one thing.
    pub component: Option<Component>,
    /// The answer.
    pub verdict: Verdict,
    /// What a progress line shows instead of the verdict's word (a path, a
    /// version), or in brackets after it.
    pub detail: Option<String>,
    /// Whether `detail` replaces the word, as in autoconf's
    /// `checking for nvcc... /usr/bin/nvcc`.
    #[serde(default)]
    pub detail_is_answer: bool,
    /// What was tried.
    pub evidence: Evidence,
    /// Why the answer was given instead of found out (`--answers`), in the
    /// words of whoever gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Whether the answer came from the cache. The JSON form leaves it out: a
    /// second run with the same answers writes the same bytes.
    #[serde(skip)]
    pub cached: bool,
}
