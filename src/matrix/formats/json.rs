//! Everything, as `templates/ucx-configure-matrix.schema.json` describes it.

use serde::Serialize;

use super::Format;
use crate::{
    error::{Code, Error},
    matrix::{Answer, Build, Change, Facts},
};

pub(super) const FORMAT: Format = Format {
    id: "json",
    doc: "Everything, as JSON; `templates/ucx-configure-matrix.schema.json` describes it.",
    render,
};

/// The version of the form.
const SCHEMA_VERSION: u32 = 1;

/// What the test holds it to.
#[cfg(test)]
pub(super) const SCHEMA: &str = include_str!("../../../templates/ucx-configure-matrix.schema.json");

#[derive(Serialize)]
struct Whole<'a> {
    schema_version: u32,
    tool: &'static str,
    ok: bool,
    entries: Vec<Row<'a>>,
    changes: Option<&'a [Change]>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    toolkit: &'a str,
    gdrcopy: &'a str,
    arguments: &'a [String],
    answers: Facts,
    error: Option<Failure<'a>>,
    build: Option<&'a Build>,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: &'static str,
    exit: u8,
    what: &'a str,
    command: Option<&'a str>,
    said: Option<&'a str>,
    means: &'a [String],
    hints: &'a [String],
}

fn render(answer: &Answer) -> Result<String, Error> {
    let rows = answer.rows.iter().map(|done| Row {
        name: &done.entry.name,
        toolkit: &done.entry.toolkit,
        gdrcopy: &done.entry.gdrcopy,
        arguments: &done.entry.arguments,
        answers: Facts::of(done),
        error: done.error.as_ref().map(failure),
        build: done.build.as_ref(),
    });
    let whole = Whole {
        schema_version: SCHEMA_VERSION,
        tool: "ucx-configure matrix",
        ok: answer.is_good(),
        entries: rows.collect(),
        changes: answer.changes.as_deref(),
    };
    let text = serde_json::to_string_pretty(&whole).map_err(|error| {
        Error::new(Code::Internal, "the answers cannot be written as JSON").said(error.to_string())
    })?;
    Ok(text + "\n")
}

fn failure(error: &Error) -> Failure<'_> {
    Failure {
        code: error.code.row().name,
        exit: error.exit().code(),
        what: &error.what,
        command: error.command.as_deref(),
        said: error.said.as_deref(),
        means: &error.means,
        hints: &error.hints,
    }
}
