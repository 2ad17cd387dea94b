//! What build services take: a matrix and the outputs of a step for GitHub,
//! variables for GitLab.

use serde::Serialize;

use super::{Emitter, parts, template};
use crate::{
    error::{Code, Error},
    model::{Report, Verdict},
};

pub(super) const MATRIX: Emitter = Emitter {
    id: "github:matrix",
    file: None,
    name: "github-matrix.json",
    doc: "A job matrix with one entry, for `fromJSON` in a workflow of GitHub.",
    render: matrix,
};

pub(super) const OUTPUT: Emitter = Emitter {
    id: "github:output",
    file: None,
    name: "github-output.txt",
    doc: "The outputs of a step, to be appended to `$GITHUB_OUTPUT`.",
    render: output,
};

pub(super) const GITLAB: Emitter = Emitter {
    id: "gitlab",
    file: None,
    name: "ucx-cuda.env",
    doc: "Variables for later jobs of GitLab, as a `dotenv` report.",
    render: gitlab,
};

/// One job. `templates/github-matrix.schema.json` describes it.
#[derive(Debug, Serialize)]
struct Entry {
    /// Who wrote it: nothing else in a line of JSON could say so.
    generator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    cuda: Option<String>,
    gdrcopy: Option<String>,
    nvcc: Option<String>,
    compiler: Option<String>,
    target: Option<String>,
    stub: bool,
    ok: bool,
    modules: Vec<&'static str>,
    features: Vec<&'static str>,
}

#[derive(Serialize)]
struct Matrix {
    include: Vec<Entry>,
}

/// What every schema test holds the matrix to.
#[cfg(test)]
pub(super) const SCHEMA: &str = include_str!("../../templates/github-matrix.schema.json");

fn entry(report: &Report) -> Entry {
    let toolkit = report.toolkit.as_ref().filter(|_| report.has_cuda());
    let cuda = toolkit.and_then(|toolkit| toolkit.versions.cuda_h);
    let tree = report.gdrcopy.as_ref().filter(|_| parts::has_gdrcopy(report));
    let compiler = report.compiler.as_ref();
    let yes = report.features.iter().filter(|feature| feature.verdict == Verdict::Yes);
    Entry {
        generator: "ucx-configure",
        name: None,
        cuda: cuda.map(|version| version.to_string()),
        gdrcopy: tree.and_then(|tree| tree.version).map(|version| version.to_string()),
        nvcc: report.nvcc.as_ref().map(|tool| tool.version.clone()),
        compiler: compiler.map(|tool| format!("{}-{}", tool.kind, tool.version)),
        target: compiler.map(|tool| tool.target.clone()),
        stub: report.on_stub(),
        ok: report.ok,
        modules: report.modules.iter().map(|module| module.library()).collect(),
        features: yes.map(|feature| feature.id.row().key).collect(),
    }
}

// No template: JSON is written by the library that writes JSON, on one line,
// since a line is what a step's output takes.
fn matrix(report: &Report) -> Result<String, Error> {
    line(vec![entry(report)])
}

/// The matrix of several runs, by their names.
///
/// # Errors
///
/// It cannot be written as JSON.
pub fn github_matrix<'a>(
    named: impl Iterator<Item = (&'a str, &'a Report)>,
) -> Result<String, Error> {
    line(
        named
            .map(|(name, report)| Entry { name: Some(name.to_owned()), ..entry(report) })
            .collect(),
    )
}

fn line(include: Vec<Entry>) -> Result<String, Error> {
    let text = serde_json::to_string(&Matrix { include }).map_err(|error| {
        Error::new(Code::Internal, "the matrix cannot be written as JSON").said(error.to_string())
    })?;
    Ok(text + "\n")
}

#[derive(Serialize)]
struct Variables {
    variables: Vec<(String, String)>,
}

/// Names and values that hold no line break, so that a line holds one.
fn variables(report: &Report) -> Result<Vec<(String, String)>, Error> {
    let entry = entry(report);
    // Their form has no comments: the first one says who wrote them.
    let mut variables = vec![("generated_by".to_owned(), "ucx-configure".to_owned())];
    for conditional in &report.answers.conditionals {
        let value = if conditional.value { "yes" } else { "no" };
        variables.push((conditional.name.to_lowercase(), value.to_owned()));
    }
    variables.extend([
        ("cuda_version".to_owned(), entry.cuda.unwrap_or_default()),
        ("gdrcopy_version".to_owned(), entry.gdrcopy.unwrap_or_default()),
        ("on_stub".to_owned(), if entry.stub { "yes" } else { "no" }.to_owned()),
        ("modules".to_owned(), entry.modules.join(" ")),
        ("features".to_owned(), entry.features.join(" ")),
    ]);
    variables.iter().try_for_each(|(_, value)| parts::refuse("variables", value, &[]))?;
    Ok(variables)
}

fn output(report: &Report) -> Result<String, Error> {
    let mut variables = variables(report)?;
    variables.push(("matrix".to_owned(), matrix(report)?.trim_end().to_owned()));
    let source = include_str!("../../templates/variables.txt.j2");
    template::render("variables.txt.j2", source, Variables { variables })
}

fn gitlab(report: &Report) -> Result<String, Error> {
    let variables = variables(report)?;
    let named = |(name, value): (String, String)| {
        (format!("UCX_{}", name.trim_start_matches("have_").to_uppercase()), value)
    };
    let variables = variables.into_iter().map(named).collect();
    let source = include_str!("../../templates/variables.txt.j2");
    template::render("variables.txt.j2", source, Variables { variables })
}
