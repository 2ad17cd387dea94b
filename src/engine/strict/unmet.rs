//! The error for what was asked for and is not there: the first missing item,
//! where it was looked for, the command, the tool's words, what to do.

use super::found::{CUDA_NEEDS, Found, GDRCOPY_NEEDS, Installation};
use crate::{
    discover::incomplete::{self, Advice, Incomplete},
    error::{Code, Error, Remedy},
    model::{Check, Component, Verdict},
    request::{Location, Request, Source, Sourced, Want},
};

/// How a wish was typed.
pub(super) fn option<V>(wish: &Sourced<Want<V>>, name: &str) -> String {
    match &wish.source {
        Source::Argument(typed) => typed.clone(),
        Source::Environment(variable) => format!("environment variable {variable}"),
        Source::Default => name.to_owned(),
    }
}

/// An option without a value.
pub(super) fn empty(name: &str) -> Error {
    Error::new(Code::EmptyValue, format!("`{name}=` has an empty value"))
        .means("Nearly always a variable of a script is not set.")
        .hint(format!("Give a directory, or write `{name}` or `--without-{}`.", &name[7..]))
}

/// gdrcopy is in no wheel.
pub(super) fn no_wheel(version: &str) -> Error {
    Error::new(Code::UnknownVersion, format!("there is no wheel of gdrcopy {version}"))
        .means("PyPI has no package with gdrcopy's header and library.")
        .hint("Use `--with-gdrcopy=DIR`, or `--with-gdrcopy=stub:2.5` to build without one.")
}

/// The first wish that is not met.
pub(super) fn first(request: &Request, found: &Found, machine: &str) -> Option<Error> {
    cuda(request, found, machine)
        .or_else(|| gdrcopy(request, found, machine))
        .or_else(|| io_demo(request, found))
}

fn cuda(request: &Request, found: &Found, machine: &str) -> Option<Error> {
    let cuda = found.cuda.as_ref().filter(|_| request.cuda.value.is_demand())?;
    let missing = cuda.first_missing(&CUDA_NEEDS)?;
    let (code, title) = match missing.component {
        Some(Component::Nvml) => (Code::NvmlNotMet, "NVML"),
        _ => (Code::CudaNotMet, "CUDA"),
    };
    let asked = option(&request.cuda, "--with-cuda");
    let error = missing_item(request, (code, title), &asked, (cuda, missing), machine);
    let also: Vec<String> = CUDA_NEEDS
        .iter()
        .filter_map(|id| cuda.answer(id))
        .map(|answer| &answer.check)
        .filter(|check| check.id != missing.id && check.verdict == Verdict::No)
        .map(item)
        .collect();
    Some(if also.is_empty() {
        error
    } else {
        error.means(format!("Also missing: {}.", also.join(", ")))
    })
}

fn gdrcopy(request: &Request, found: &Found, machine: &str) -> Option<Error> {
    if !request.gdrcopy.value.is_demand() {
        return None;
    }
    let asked = option(&request.gdrcopy, "--with-gdrcopy");
    let tree = found.gdrcopy.as_ref()?;
    if let Some(missing) = tree.first_missing(&GDRCOPY_NEEDS) {
        let about = (Code::GdrCopyNotMet, "gdrcopy");
        return Some(missing_item(request, about, &asked, (tree, missing), machine));
    }
    (!found.cuda_on()).then(|| needs_cuda("gdrcopy", &asked, request, found))
}

fn io_demo(request: &Request, found: &Found) -> Option<Error> {
    let asked = "--with-iodemo-cuda";
    (request.iodemo_cuda && !found.cuda_on())
        .then(|| needs_cuda("io_demo with CUDA", asked, request, found))
}

fn needs_cuda(what: &str, asked: &str, request: &Request, found: &Found) -> Error {
    let error =
        Error::new(Code::NeedsCuda, format!("{what} was asked for (`{asked}`) without CUDA"));
    let Some(cuda) = &found.cuda else {
        let off = option(&request.cuda, "--without-cuda");
        return error
            .means(format!("CUDA is switched off by `{off}`, and {what} is built on it."))
            .hint(format!("Leave out `{off}` or `{asked}`."))
            .remedy(Remedy::Drop(asked.to_owned()));
    };
    let error = match cuda.first_missing(&CUDA_NEEDS) {
        Some(missing) => with_evidence(error, missing),
        None => error,
    };
    error.hint(format!("Name the CUDA toolkit with `--with-cuda=DIR`, or leave out `{asked}`."))
}

/// The error about one item.
fn missing_item(
    request: &Request,
    (code, title): (Code, &str),
    asked: &str,
    (installation, missing): (&Installation, &Check),
    machine: &str,
) -> Error {
    if missing.verdict == Verdict::Broken {
        let what = format!("the C compiler failed at the question about {}", item(missing));
        return with_evidence(Error::new(Code::CompilerBroken, what), missing)
            .hint("Run the command above by hand; its source is in config.log.");
    }
    let there = missing
        .evidence
        .first_failure()
        .is_some_and(|attempt| attempt.outcome == crate::model::Outcome::Rejected);
    let trouble = if there { "cannot be used" } else { "was not found" };
    let what = format!("{title} was asked for (`{asked}`), but {} {trouble}", item(missing));
    let error = with_evidence(Error::new(code, what), missing);
    if let Some(it) = incomplete(request, installation, missing, there, machine) {
        let error = error.means(it.means);
        return match it.advice {
            Advice::Name(dir) => error.did_you_mean(format!("--with-cuda={dir}")),
            Advice::Hint(hint) => error.hint(hint),
        };
    }
    match &missing.evidence.hint {
        Some(hint) => error.hint(hint.clone()),
        None => error,
    }
}

/// What the directory is that was named, where it is no whole toolkit.
fn incomplete(
    request: &Request,
    installation: &Installation,
    missing: &Check,
    there: bool,
    machine: &str,
) -> Option<Incomplete> {
    let Want::At(Location::Dir(_)) = &request.cuda.value else { return None };
    let root = installation.named.as_ref()?;
    if there || missing.component == Some(Component::GdrCopy) {
        return None;
    }
    match missing.id.as_str() {
        "cuda.header.cuda_h" => incomplete::without_headers(root, &installation.layout, machine),
        id if id.contains(".library.") => {
            incomplete::without_libraries(root, &installation.layout, machine)
        }
        _ => None,
    }
}

/// What a question is about: `cuda.h`, `libcuda`.
fn item(check: &Check) -> String {
    let words: Vec<&str> = check.label.split(' ').collect();
    match words[..] {
        ["for", _, "in", library] => format!("`lib{}`", library.trim_start_matches("-l")),
        ["for", header] => format!("`{header}`"),
        _ => check.label.clone(),
    }
}

/// Adds the command, the tool's words, the meaning and the places.
fn with_evidence(mut error: Error, missing: &Check) -> Error {
    if let Some(attempt) = missing.evidence.first_failure() {
        error.command.clone_from(&attempt.command);
        error.said.clone_from(&attempt.said);
        if let Some(meaning) = &attempt.meaning {
            error = error.means(meaning.clone());
        }
    }
    let looked: Vec<String> = missing
        .evidence
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome == crate::model::Outcome::Absent)
        .filter_map(|attempt| attempt.place.as_ref()?.parent())
        .map(|dir| format!("`{dir}`"))
        .collect();
    let places: Vec<&str> = missing
        .evidence
        .attempts
        .iter()
        .filter_map(|attempt| attempt.what.strip_prefix("look for include/cuda.h: "))
        .collect();
    if !looked.is_empty() {
        error = error.means(format!("Looked in {}.", looked.join(", ")));
    } else if !places.is_empty() {
        error = error.means(format!("Looked, in this order, at: {}.", places.join("; ")));
    }
    error
}
