//! A table in Markdown, for summaries of jobs and for comments.

use serde::Serialize;

use super::{COLUMNS, Format, cells, remarks};
use crate::{emit::template, error::Error, matrix::Answer};

pub(super) const FORMAT: Format = Format {
    id: "markdown",
    doc: "The table in Markdown, such as for `$GITHUB_STEP_SUMMARY`.",
    render,
};

#[derive(Serialize)]
struct Context {
    columns: [&'static str; COLUMNS.len()],
    rows: Vec<Vec<String>>,
    remarks: Vec<String>,
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\`*_[]<>|#~".contains(c) {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

fn render(answer: &Answer) -> Result<String, Error> {
    let row = |done| cells(answer, done).iter().map(|cell| escaped(cell)).collect();
    let remark = |line: &String| escaped(line.trim_start());
    let context = Context {
        columns: COLUMNS,
        rows: answer.rows.iter().map(row).collect(),
        remarks: remarks(answer).iter().map(remark).collect(),
    };
    template::render("markdown.j2", include_str!("../../../templates/markdown.j2"), context)
}
