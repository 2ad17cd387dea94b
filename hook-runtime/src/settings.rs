//! What the user can choose: every environment variable that this crate reads.
//!
//! Names that begin with `UCX_` are UCX's own, with its meaning. Ours do not begin so,
//! because UCX warns about variables of its kind that it does not know.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::sys::environment;

/// Which hook mechanisms may be used: `none`, `reloc`, `bistro`, or a list of them.
pub const HOOK_MODE: &str = "UCX_MEM_CUDA_HOOK_MODE";
/// How much is written to standard error; see [`log`](crate::log).
pub const LOG_LEVEL: &str = "UCX_MEM_LOG_LEVEL";
/// A file that gets a line for every event; see [`trace`](crate::trace).
pub const TRACE: &str = "HOOK_RUNTIME_TRACE";
/// A file that the coverage report is appended to when libucm_cuda is loaded; hooks are
/// installed for it at once.
pub const COVERAGE: &str = "HOOK_RUNTIME_COVERAGE";

/// Patch entries with the longest form of jump everywhere, for tests: `y` or `n`.
pub const FORCE_FAR_JUMP: &str = "UCX_MEM_BISTRO_FORCE_FAR_JUMP";

/// Whether the variable `name` says yes, in one of the words that UCX knows.
pub fn is_yes(name: &str) -> bool {
    let yes = ["y", "yes", "on", "1"];
    environment::variable(name)
        .and_then(|value| value.into_string().ok())
        .is_some_and(|value| yes.contains(&value.to_ascii_lowercase().as_str()))
}

/// What UCX's own option says, where UCX is asked: 0 while it is not.
static FORCE_FAR: AtomicU8 = AtomicU8::new(0);

/// Takes the form of jumps from UCX's option instead of the environment.
pub fn set_force_far(force: bool) {
    FORCE_FAR.store(if force { 2 } else { 1 }, Ordering::Relaxed);
}

/// Whether entries are patched with the longest form of jump everywhere.
pub fn force_far() -> bool {
    match FORCE_FAR.load(Ordering::Relaxed) {
        0 => is_yes(FORCE_FAR_JUMP),
        asked => asked == 2,
    }
}

/// The mechanisms that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Patched entries.
    pub bistro: bool,
    /// Patched relocation slots.
    pub reloc: bool,
}

impl Modes {
    /// Both, which is the default.
    pub const BOTH: Self = Self { bistro: true, reloc: true };
    /// None: no hooks.
    pub const NONE: Self = Self { bistro: false, reloc: false };

    /// What [`HOOK_MODE`] says. A value that makes no sense is reported, and the default
    /// taken, since a program must not fail over it.
    pub fn from_environment() -> Self {
        let Some(value) = environment::variable(HOOK_MODE) else { return Self::BOTH };
        let parsed = value.to_str().map(Self::parse);
        parsed.and_then(Result::ok).unwrap_or_else(|| {
            let value = value.to_string_lossy();
            crate::log::error!(
                "`{HOOK_MODE}={value}` is not a list of none, reloc, bistro: using both"
            );
            Self::BOTH
        })
    }

    /// Parses a comma-separated list, upper or lower case.
    pub fn parse(list: &str) -> Result<Self, UnknownMode> {
        let mut modes = Self::NONE;
        for name in list.split(',').map(str::trim) {
            match name.to_ascii_lowercase().as_str() {
                "none" => {}
                "reloc" => modes.reloc = true,
                "bistro" => modes.bistro = true,
                _ => return Err(UnknownMode(name.to_owned())),
            }
        }
        Ok(modes)
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.bistro, self.reloc) {
            (true, true) => "bistro,reloc",
            (true, false) => "bistro",
            (false, true) => "reloc",
            (false, false) => "none",
        })
    }
}

/// A word that names no mechanism.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of none, reloc, bistro")]
pub struct UnknownMode(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_a_list() {
        let reloc = Modes { bistro: false, reloc: true };
        let bistro = Modes { bistro: true, reloc: false };
        assert_eq!(Modes::parse("none"), Ok(Modes::NONE));
        assert_eq!(Modes::parse("reloc"), Ok(reloc));
        assert_eq!(Modes::parse("Bistro"), Ok(bistro));
        assert_eq!(Modes::parse("bistro, reloc"), Ok(Modes::BOTH));
        assert_eq!(Modes::parse("none,reloc"), Ok(reloc));
        assert_eq!(Modes::parse("magic"), Err(UnknownMode("magic".into())));
        assert_eq!(Modes::parse(""), Err(UnknownMode(String::new())));
        for modes in [Modes::BOTH, Modes::NONE, reloc, bistro] {
            assert_eq!(Modes::parse(&modes.to_string()), Ok(modes));
        }
    }
}
