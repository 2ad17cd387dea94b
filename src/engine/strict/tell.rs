//! What deserves a word: a guess that came to nothing, versions that disagree,
//! stubs, libraries that are other than one would think.

use super::{
    conclude::{by_version, level_macro, versions},
    found::{CUDA_NEEDS, Found, GDRCOPY_NEEDS, Installation},
    libraries,
    versions::disagreements,
};
use crate::{
    model::{MessageKind, ToolkitKind, Verdict},
    probe::catalog::PROBES,
    request::{Request, Source, Variable, Want},
};

/// A remark: how grave, its code, the text, what to do.
pub(super) type Remark = (MessageKind, &'static str, String, Option<String>);

/// What is to be said about the whole.
pub(super) fn all(request: &Request, found: &Found) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let note = |code, text| (MessageKind::Note, code, text, None);
    let warning = |code, text| (MessageKind::Warning, code, text, None);
    if let (Want::Guess, Some(cuda)) = (&request.cuda.value, &found.cuda)
        && let Some(missing) = cuda.first_missing(&CUDA_NEEDS)
    {
        let text = format!("CUDA not found: {}", why_not(missing));
        remarks.push((MessageKind::Warning, "W0305", text, missing.evidence.hint.clone()));
    }
    if let (Want::Guess, Some(tree)) = (&request.gdrcopy.value, &found.gdrcopy) {
        if let Some(missing) = tree.first_missing(&GDRCOPY_NEEDS) {
            remarks.push(note("N0306", format!("gdrcopy not found: {}", why_not(missing))));
        } else if !found.cuda_on() {
            let text = "gdrcopy is there, but it is of no use without CUDA".to_owned();
            remarks.push(note("N0306", text));
        }
    }
    if let Some(text) = found.cuda.as_ref().and_then(|cuda| cuda.layout.note.clone()) {
        remarks.push(note("N0321", text));
    }
    if let Some(cuda) = found.cuda.as_ref().filter(|_| found.cuda_on()) {
        let versions = versions(cuda, found);
        remarks.extend(disagreements(&versions).into_iter().map(|text| warning("W0301", text)));
        remarks.extend(level_remarks(found).into_iter().map(|text| warning("W0302", text)));
        if cuda.kind == ToolkitKind::Stub {
            let text = "CUDA is a stub toolkit: enough to build with, nothing to run on".to_owned();
            remarks.push(note("N0307", text));
        }
        for id in ["cuda.library.cuda", "nvml.library.nvidia_ml"] {
            if let Some(text) = foreign_driver(cuda, id) {
                remarks.push(note("N0308", text));
            }
        }
    }
    remarks.extend(libraries::remarks(found));
    if found.gdrcopy_on() && found.gdrcopy.as_ref().is_some_and(|it| it.kind == ToolkitKind::Stub) {
        let text = "gdrcopy is a stub: enough to build with, nothing to run on".to_owned();
        remarks.push(note("N0307", text));
    }
    remarks.extend(nvcc_remark(request, found));
    remarks
}

/// An nvcc that is there, or was named, and cannot be used.
fn nvcc_remark(request: &Request, found: &Found) -> Option<Remark> {
    let cuda = found.cuda.as_ref()?;
    let answer = cuda.answer("cuda.nvcc").filter(|it| !it.check.verdict.is_yes())?;
    let hint = answer.check.evidence.hint.clone();
    let why = why_not_nvcc(&answer.check);
    if !request.variable(Variable::Nvcc).is_empty() {
        let typed = match request.variables.get(&Variable::Nvcc).map(|it| &it.source) {
            Some(Source::Argument(typed)) => format!("`{typed}` was given"),
            _ => "NVCC is set".to_owned(),
        };
        let text = format!("{typed}, but nvcc cannot be used: {why}");
        return Some((MessageKind::Warning, "W0309", text, hint));
    }
    // Whatever nvcc compiles includes that header: its trouble is told already.
    if cuda.verdict("cuda.header.cuda_runtime_h") == Verdict::No {
        return None;
    }
    let text = format!("nvcc {} is there, but cannot be used: {why}", answer.nvcc_release?);
    Some((MessageKind::Warning, "W0311", text, hint))
}

/// A driver library that the system has and the toolkit has not.
fn foreign_driver(cuda: &Installation, id: &str) -> Option<String> {
    let library = cuda.library(id)?;
    let root = cuda.layout.root.as_ref()?;
    let file = library.file_name()?;
    let own = cuda.layout.library_dirs.iter().chain(&cuda.layout.stub_dirs);
    let is_own = own.into_iter().any(|dir| dir.join(file).is_file());
    (!is_own).then(|| format!("`{library}` is linked with, since `{root}` has no {file}"))
}

/// Why a check is not a yes, in half a sentence.
pub(super) fn why_not(check: &crate::model::Check) -> String {
    let failure = check.evidence.first_failure();
    let meaning = failure.and_then(|attempt| attempt.meaning.as_deref());
    match meaning.and_then(|text| text.strip_suffix('.')) {
        Some(text) => lower_first(text),
        None => format!("the answer to \"checking {}\" is {}", check.label, check.verdict.word()),
    }
}

/// The same of an nvcc, with its own words.
fn why_not_nvcc(check: &crate::model::Check) -> String {
    let said = check.evidence.first_failure().and_then(|attempt| attempt.said.as_deref());
    let said = said.map(|said| format!(": `{said}`")).unwrap_or_default();
    why_not(check) + &said
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// Levels whose code and version macro disagree.
fn level_remarks(found: &Found) -> Vec<String> {
    let asked = PROBES.iter().filter(|probe| probe.id.starts_with("level."));
    asked
        .filter_map(|probe| {
            let feature = probe.feature?.row();
            let by_version = by_version(feature, found)?;
            let since = feature.since?;
            let (macro_name, version) = level_macro(feature, found)?;
            match found.verdict(probe.id) {
                Verdict::Yes if !by_version => Some(format!(
                    "{macro_name} says {version}, but what came with {since} is there: {}",
                    lower_first(feature.doc.trim_end_matches('.'))
                )),
                Verdict::No if by_version => Some(format!(
                    "{macro_name} says {version}, but what came with {since} is missing: {}",
                    lower_first(feature.doc.trim_end_matches('.'))
                )),
                _ => None,
            }
        })
        .collect()
}
