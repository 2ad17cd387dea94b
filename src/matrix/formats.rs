//! How the answers are told: each format is one file here, its template under
//! `templates/` where it is text, and one row in [`FORMATS`].

mod github;
mod json;
mod junit;
mod markdown;
mod table;
#[cfg(test)]
pub(super) mod tests;

use super::{Answer, Done, Facts};
use crate::{
    error::Error,
    model::{Component, FEATURES, FeatureId, Side, Verdict},
};

/// One format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name.
    pub id: &'static str,
    /// What it is, one sentence.
    pub doc: &'static str,
    /// Renders it.
    pub render: fn(&Answer) -> Result<String, Error>,
}

/// Every format.
pub const FORMATS: &[Format] =
    &[table::FORMAT, json::FORMAT, markdown::FORMAT, github::FORMAT, junit::FORMAT];

/// The heads of the columns that the tables have.
const COLUMNS: [&str; 10] =
    ["entry", "result", "CUDA", "level", "NVML", "nvcc", "static", "fabric", "gdrcopy", "modules"];

/// An entry, cell by cell.
fn cells(answer: &Answer, done: &Done) -> [String; 10] {
    let facts = Facts::of(done);
    let component = |component: Component| {
        let verdict = done.report.finding(component).map(|finding| finding.verdict);
        word(verdict)
    };
    let feature = |id: FeatureId| word(done.report.feature(id).map(|answer| answer.verdict));
    let version = |version: Option<String>| version.unwrap_or_else(|| "-".to_owned());
    [
        done.entry.name.clone(),
        result(answer, done),
        version(facts.cuda),
        version(level(done)),
        component(Component::Nvml),
        component(Component::Nvcc),
        component(Component::CudaRuntimeStatic),
        feature(FeatureId::CudaFabric),
        facts.gdrcopy.unwrap_or_else(|| component(Component::GdrCopy)),
        facts.modules.len().to_string(),
    ]
}

fn word(verdict: Option<Verdict>) -> String {
    match verdict {
        None | Some(Verdict::Skipped) => "-".to_owned(),
        Some(verdict) => verdict.word().to_owned(),
    }
}

/// `ok`, the code of the error, or that something changed.
fn result(answer: &Answer, done: &Done) -> String {
    let code = done.error.as_ref().map(|error| error.code.row().name);
    let changed = answer.changes.is_some() && !answer.faults(done).is_empty();
    match (code, changed) {
        (None, false) => "ok".to_owned(),
        (Some(code), false) if answer.changes.is_some() => format!("{code}, as recorded"),
        (Some(code), false) => code.to_owned(),
        (None, true) => "changed".to_owned(),
        (Some(code), true) => format!("{code}, changed"),
    }
}

/// The highest level that UCX's sources will see.
fn level(done: &Done) -> Option<String> {
    let yes = |id| done.report.feature(id).is_some_and(|answer| answer.verdict.is_yes());
    let levels = FEATURES.iter().filter(|row| row.side == Side::Sources && yes(row.id));
    levels.filter_map(|row| row.since).max().map(|since| since.to_string())
}

/// What there is to say below a table: errors with their hints, and changes.
fn remarks(answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    for done in &answer.rows {
        let name = &done.entry.name;
        if let Some(error) = &done.error {
            lines.push(format!("{name}: {} [{}]", error.what, error.code.row().name));
            lines.extend(error.means.iter().map(|means| format!("  {means}")));
            lines.extend(error.hints.iter().map(|hint| format!("  hint: {hint}")));
        }
        if let Some(same) = done.build.as_ref().and_then(|build| build.same_as.as_ref()) {
            lines.push(format!("{name}: the modules are those of {same}: its flags are the same"));
        }
    }
    let changes = answer.changes.iter().flatten();
    lines.extend(changes.map(|change| format!("{}: {}", change.entry, change.what)));
    lines
}
