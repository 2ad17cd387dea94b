//! Why an answer is what it is: what was tried, in order.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It gave what was looked for.
    Satisfied,
    /// It was there, and was not good enough.
    Rejected,
    /// It was not there.
    Absent,
    /// The tool itself failed.
    Failed,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was tried, in words: "link a call of `nvmlInit`".
    pub what: String,
    /// The file or directory that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Utf8PathBuf>,
    /// The command, in a form that can be pasted into a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The tool's own words: the first lines of what it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// What that means, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
}

/// Everything that was tried for one question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// What to do about a "no".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Evidence {
    /// The attempt that decided a "no": the first that did not succeed.
    pub fn first_failure(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.outcome != Outcome::Satisfied)
    }
}
