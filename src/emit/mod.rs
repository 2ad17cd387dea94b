//! Outputs: each is a pure rendering of one report.
//!
//! A format is one file here, one template under `templates/` where it is
//! text, and one row in [`EMITTERS`]. Formats look at the report and at
//! nothing else; somebody else writes what they return. They hold no time
//! stamps, no version of ours and no scratch paths, so that equal answers
//! give equal bytes and an unchanged file stays untouched.

mod cargo;
mod config_h;
mod json;
mod make;
mod quote;
mod shell;
mod template;
mod variables;

use crate::{error::Error, model::Report};

/// One output format.
#[derive(Debug, Clone, Copy)]
pub struct Emitter {
    /// The name that people give it, such as `config-h`.
    pub id: &'static str,
    /// Its file in the build directory; none where it is only written on
    /// request.
    pub file: Option<&'static str>,
    /// What it is, one sentence.
    pub doc: &'static str,
    /// Renders it.
    pub render: fn(&Report) -> Result<String, Error>,
}

/// Every format, in the order in which the files are written and listed. The
/// report comes last: whoever sees it finds the others as it says.
pub const EMITTERS: &[Emitter] =
    &[config_h::EMITTER, make::EMITTER, shell::EMITTER, cargo::EMITTER, json::EMITTER];

/// The format of that name.
pub fn find(id: &str) -> Option<&'static Emitter> {
    EMITTERS.iter().find(|emitter| emitter.id == id)
}

/// The macro, and the variable in makefiles and scripts, that says that the
/// answers come from a stub toolkit.
const ON_STUB: &str = "UCX_CONFIGURE_ON_STUB";

#[cfg(test)]
mod consumers;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
