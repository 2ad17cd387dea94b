//! A job matrix of GitHub: the entries of `emit github:matrix`, with a name.

use super::Format;
use crate::{emit, error::Error, matrix::Answer};

pub(super) const FORMAT: Format = Format {
    id: "github",
    doc: "A job matrix for `fromJSON` in a workflow of GitHub, on one line.",
    render,
};

fn render(answer: &Answer) -> Result<String, Error> {
    let named = answer.rows.iter().map(|done| (done.entry.name.as_str(), &done.report));
    emit::github_matrix(named)
}
