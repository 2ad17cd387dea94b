//! Lines for a build script of Cargo: the cfg flags, and the declaration of
//! each, set or not.

use super::Emitter;
use crate::{error::Error, model::Report};

pub(super) const EMITTER: Emitter = Emitter {
    id: "cargo",
    file: None,
    doc: "The cfg flags, as a build script of Cargo prints them.",
    render,
};

// No template: each line is made of a name and nothing else.
fn render(report: &Report) -> Result<String, Error> {
    let mut lines = Vec::new();
    for (name, on) in &report.cfg {
        lines.push(format!("cargo::rustc-check-cfg=cfg({name})\n"));
        if *on {
            lines.push(format!("cargo::rustc-cfg={name}\n"));
        }
    }
    Ok(lines.concat())
}
