//! What outputs are rendered from: defines, substitutions, conditionals.

use serde::{Deserialize, Serialize};

/// The value of a macro in config.h.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefineValue {
    /// `#define NAME TEXT`: `1`, `0`, or a quoted string with its quotes.
    Defined(String),
    /// `/* #undef NAME */`.
    Undefined,
}

/// A macro of config.h.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Define {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: DefineValue,
    /// The comment above it, one sentence.
    pub comment: String,
}

/// The value of a substitution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubstValue {
    /// Words of a command line, each of which reaches the compiler unchanged
    /// whatever characters it holds: renderers quote them.
    Words(Vec<String>),
    /// Text that is to appear as it is, blanks included, as the original
    /// configure leaves it (`--compat`).
    Text(String),
}

/// A variable that makefiles and scripts use, such as `CUDA_LIBS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Substitution {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: SubstValue,
    /// What it is for, one sentence.
    pub comment: String,
}

/// An automake conditional, such as `HAVE_NVCC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditional {
    /// Its name.
    pub name: String,
    /// Whether it holds.
    pub value: bool,
}

/// Everything that outputs are rendered from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The macros of config.h, in the order of the file.
    pub defines: Vec<Define>,
    /// The substitutions, in the order of the file.
    pub substitutions: Vec<Substitution>,
    /// The conditionals, in the order of the file.
    pub conditionals: Vec<Conditional>,
}

impl Answers {
    /// The substitution of that name.
    pub fn substitution(&self, name: &str) -> Option<&Substitution> {
        self.substitutions.iter().find(|item| item.name == name)
    }

    /// The define of that name.
    pub fn define(&self, name: &str) -> Option<&Define> {
        self.defines.iter().find(|item| item.name == name)
    }

    /// The conditional of that name.
    pub fn conditional(&self, name: &str) -> Option<bool> {
        self.conditionals.iter().find(|item| item.name == name).map(|item| item.value)
    }
}
