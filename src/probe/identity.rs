//! Who a compiler is, asked in its own language: one preprocessor run over a
//! file of `#if` lines. No prose is parsed, so a distribution's or wrapper's
//! wording cannot mislead.

use crate::model::ToolIdentity;

/// The question. Each line that survives preprocessing is an answer.
pub(super) const QUESTION: &str = include_str!("../../probes/control/identity.c");

/// Starts every line of an answer.
const MARK: &str = "ucx_configure_identity";

/// Which compiler it is, as far as we treat compilers differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// GNU.
    Gcc,
    /// LLVM, and what is built on it.
    Clang,
    /// NVIDIA's HPC compiler.
    Nvhpc,
    /// Something else that compiles C.
    Other,
}

impl Kind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
            Self::Nvhpc => "nvhpc",
            Self::Other => "other",
        }
    }
}

/// What the preprocessor said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) version: String,
    pub(super) machine: String,
    pub(super) system: String,
    pub(super) pointer_size: u32,
    /// Whether it takes a C file for C++.
    pub(super) is_cplusplus: bool,
}

impl Facts {
    /// Reads the answer; none where it is not one, as from a program that
    /// does not preprocess.
    pub(super) fn parse(output: &str) -> Option<Self> {
        let answer = |name: &str| {
            output.lines().find_map(|line| {
                let mut words = line.split_whitespace();
                (words.next() == Some(MARK) && words.next() == Some(name))
                    .then(|| words.collect::<Vec<_>>())
            })
        };
        let kind = match answer("kind")?.first().copied()? {
            "gcc" => Kind::Gcc,
            "clang" => Kind::Clang,
            "nvhpc" => Kind::Nvhpc,
            _ => Kind::Other,
        };
        Some(Self {
            kind,
            version: answer("version")?.join("."),
            machine: answer("machine")?.join(""),
            system: answer("system")?.join("-"),
            pointer_size: answer("pointer")?.first()?.parse().ok()?,
            is_cplusplus: answer("language").is_some(),
        })
    }

    /// The same in the report's form.
    pub(super) fn identity(&self, command: &[String]) -> ToolIdentity {
        ToolIdentity {
            command: command.to_vec(),
            kind: self.kind.name().to_owned(),
            version: self.version.clone(),
            target: format!("{}-{}", self.machine, self.system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_gcc_prints() {
        let output = "# 1 \"identity.c\"\n# 0 \"<built-in>\"\nucx_configure_identity kind gcc\nucx_configure_identity version 12 2 0\n\nucx_configure_identity machine x86_64\nucx_configure_identity system linux gnu\nucx_configure_identity pointer 8\n";
        let facts = Facts::parse(output).unwrap();
        assert_eq!((facts.kind, facts.version.as_str()), (Kind::Gcc, "12.2.0"));
        assert_eq!(facts.identity(&["cc".to_owned()]).target, "x86_64-linux-gnu");
        assert_eq!((facts.pointer_size, facts.is_cplusplus), (8, false));
        let output = format!("{output}ucx_configure_identity language cplusplus\n");
        assert!(Facts::parse(&output).unwrap().is_cplusplus);
        assert_eq!(Facts::parse(""), None);
        assert_eq!(Facts::parse("yes\nyes\n"), None);
    }
}
