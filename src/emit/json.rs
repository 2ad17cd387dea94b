#![doc = include_str!("json.md")]

use super::Emitter;
use crate::{
    error::{Code, Error},
    model::Report,
};

pub(super) const EMITTER: Emitter = Emitter {
    id: "json",
    file: Some("ucx-configure.json"),
    name: "ucx-configure.json",
    doc: "The report, as JSON; `templates/ucx-configure.schema.json` describes it.",
    render,
};

/// What every report is held to.
#[cfg(test)]
pub(super) const SCHEMA: &str = include_str!("../../templates/ucx-configure.schema.json");

fn render(report: &Report) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(report).map_err(|error| {
        Error::new(Code::Internal, "the report cannot be written as JSON").said(error.to_string())
    })?;
    text.push('\n');
    Ok(text)
}
