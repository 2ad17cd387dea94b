//! Outputs: each is a pure rendering of one report.
//!
//! A format is one file here, one template under `templates/` where it is
//! text, and one row in [`EMITTERS`]. Formats look at the report and at
//! nothing else; somebody else writes what they return. They hold no time
//! stamps, no version of ours and no scratch paths, so that equal answers
//! give equal bytes and an unchanged file stays untouched.

pub mod bindings;
mod cargo;
mod ci;
mod cmake;
mod config_h;
mod config_site;
mod deb;
pub mod installed;
mod json;
mod make;
mod meson;
mod parts;
mod pkg_config;
mod quote;
mod rpm;
mod shell;
pub(crate) mod template;
mod variables;

pub use ci::github_matrix;

use crate::{error::Error, model::Report};

/// One output format.
#[derive(Debug, Clone, Copy)]
pub struct Emitter {
    /// The name that people give it, such as `config-h`.
    pub id: &'static str,
    /// Its file in the build directory; none where it is only written on
    /// request.
    pub file: Option<&'static str>,
    /// Its file's name where it is written into a directory on request.
    pub name: &'static str,
    /// What it is, one sentence.
    pub doc: &'static str,
    /// Renders it.
    pub render: fn(&Report) -> Result<String, Error>,
}

/// Every format, in the order in which the files are written and listed. The
/// report comes last: whoever sees it finds the others as it says.
pub const EMITTERS: &[Emitter] = &[
    config_h::EMITTER,
    make::EMITTER,
    shell::EMITTER,
    cargo::EMITTER,
    pkg_config::CUDA,
    pkg_config::GDRCOPY,
    pkg_config::GDRAPI,
    cmake::CONFIG,
    cmake::CACHE,
    meson::EMITTER,
    config_site::EMITTER,
    rpm::SPEC,
    rpm::CUDA,
    rpm::GDRCOPY,
    deb::CONTROL,
    deb::CUDA,
    deb::GDRCOPY,
    deb::SUBSTVARS,
    ci::MATRIX,
    ci::OUTPUT,
    ci::GITLAB,
    json::EMITTER,
];

/// The format of that name, `FORMAT` or `FORMAT:NAME`.
pub fn find(id: &str) -> Option<&'static Emitter> {
    EMITTERS.iter().find(|emitter| emitter.id == id)
}

/// The formats that a name stands for: one, or all `FORMAT:NAME` of a
/// `FORMAT`; none where there is nothing of that name.
pub fn family(name: &str) -> Vec<&'static Emitter> {
    if let Some(emitter) = find(name) {
        return vec![emitter];
    }
    let belongs = |id: &str| id.split_once(':').is_some_and(|(family, _)| family == name);
    EMITTERS.iter().filter(|emitter| belongs(emitter.id)).collect()
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
