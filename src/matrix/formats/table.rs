//! For people: columns, and below them what there is to say.

use std::fmt::Write as _;

use super::{COLUMNS, Format, cells, remarks};
use crate::{error::Error, matrix::Answer};

pub(super) const FORMAT: Format =
    Format { id: "table", doc: "A table for people, and what there is to say below it.", render };

fn render(answer: &Answer) -> Result<String, Error> {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(answer.rows.iter().map(|done| cells(answer, done)));
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    let remarks = remarks(answer);
    if !remarks.is_empty() {
        text.push('\n');
    }
    for line in remarks {
        text += &line;
        text.push('\n');
    }
    Ok(text)
}
