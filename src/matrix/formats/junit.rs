//! Test results as JUnit writes them: a case for each entry.

use serde::Serialize;

use super::Format;
use crate::{emit::template, error::Error, matrix::Answer};

pub(super) const FORMAT: Format = Format {
    id: "junit",
    doc: "Test results in the form of JUnit: a case for each entry.",
    render,
};

#[derive(Serialize)]
struct Context {
    count: usize,
    failures: usize,
    cases: Vec<Case>,
}

#[derive(Serialize)]
struct Case {
    name: String,
    failure: Option<Failure>,
}

#[derive(Serialize)]
struct Failure {
    kind: String,
    message: String,
    text: String,
}

/// Text that is no markup; characters that XML cannot carry are left out.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

fn render(answer: &Answer) -> Result<String, Error> {
    let mut cases: Vec<Case> = Vec::new();
    for done in &answer.rows {
        let faults = answer.faults(done);
        let failure = (!faults.is_empty()).then(|| {
            let error = done.error.as_ref();
            let mut lines = faults.clone();
            if let Some(error) = error {
                lines.extend(error.command.clone());
                lines.extend(error.said.clone());
                lines.extend(error.means.iter().cloned());
                lines.extend(error.hints.iter().map(|hint| format!("hint: {hint}")));
            }
            let kind = error.map_or("changed", |error| error.code.row().name);
            Failure {
                kind: kind.to_owned(),
                message: escaped(&faults.join("; ")),
                text: escaped(&lines.join("\n")),
            }
        });
        cases.push(Case { name: escaped(&done.entry.name), failure });
    }
    // What is recorded and was not run has no case yet.
    let is_there = |name: &str| answer.rows.iter().any(|done| done.entry.name == name);
    for change in answer.changes.iter().flatten().filter(|change| !is_there(&change.entry)) {
        let text = escaped(&change.what);
        let failure = Failure { kind: "changed".to_owned(), message: text.clone(), text };
        cases.push(Case { name: escaped(&change.entry), failure: Some(failure) });
    }
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let context = Context { count: cases.len(), failures, cases };
    template::render("junit.j2", include_str!("../../../templates/junit.j2"), context)
}
