//! `emit`: what a build directory's report says, in another format.

use std::fmt::Write as _;

use camino::Utf8Path;

use super::{outputs, print_line, report_file};
use crate::{
    cli::EmitOptions,
    emit::{EMITTERS, Emitter, family},
    error::{Code, Error},
    host::{Host, fs},
    model::Report,
    request,
};

/// Runs it.
pub(super) fn run(options: &EmitOptions, host: &Host) -> Result<(), Error> {
    let Some(format) = &options.format else { return print_line(list().trim_end()) };
    let format = format.to_string_lossy();
    let emitters = family(&format);
    if emitters.is_empty() {
        return Err(unknown(&format));
    }
    let report = report_file::read(&request::build_dir(options.build_dir.as_deref(), host)?)?;
    if let Some(dir) = &options.output {
        let dir = request::build_dir(Some(dir), host)?;
        let hint = "Name a directory that you may write to with `-o DIR`.";
        return write(&report, &emitters, &dir).map_err(|error| fs::in_other_place(error, hint));
    }
    match emitters.as_slice() {
        [emitter] => print_line((emitter.render)(&report)?.trim_end_matches('\n')),
        several => Err(Error::new(Code::Usage, format!("`{format}` is more than one file"))
            .means(format!("It is {}.", names(several)))
            .hint("Name one of them, or write all of them with `-o DIR`.")),
    }
}

/// The formats, a line each.
fn list() -> String {
    let width = EMITTERS.iter().map(|emitter| emitter.id.len()).max().unwrap_or_default();
    let mut text = String::new();
    for emitter in EMITTERS {
        let _ = writeln!(text, "{:width$}  {}", emitter.id, emitter.doc);
    }
    text
}

fn names(emitters: &[&Emitter]) -> String {
    emitters.iter().map(|emitter| format!("`{}`", emitter.id)).collect::<Vec<_>>().join(", ")
}

fn unknown(format: &str) -> Error {
    let mut known: Vec<&str> = EMITTERS.iter().map(|emitter| emitter.id).collect();
    known.extend(EMITTERS.iter().filter_map(|emitter| Some(emitter.id.split_once(':')?.0)));
    let near = known
        .iter()
        .map(|id| (strsim::damerau_levenshtein(format, id), *id))
        .filter(|(distance, id)| *distance <= (id.len() / 3).max(1))
        .min();
    let error = Error::new(Code::Usage, format!("`{format}` is not a format"))
        .means(format!("The formats are {}.", names(&EMITTERS.iter().collect::<Vec<_>>())));
    match near {
        Some((_, near)) => error.hint(format!("Did you mean `{near}`?")),
        None => error.hint("`ucx-configure emit` says what each of them is."),
    }
}

/// Writes files and names them. Of several, those are left out that need
/// something which is not there; where that is all, it is an error.
fn write(report: &Report, emitters: &[&Emitter], dir: &Utf8Path) -> Result<(), Error> {
    let mut texts = Vec::new();
    let mut left_out = None;
    for emitter in emitters {
        match (emitter.render)(report) {
            Ok(text) => texts.push((dir.join(emitter.name), text)),
            Err(error) if emitters.len() > 1 && error.code == Code::GdrCopyNotMet => {
                left_out = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (texts.is_empty(), left_out) {
        return Err(error);
    }
    // Looked at before the first is written.
    for (path, _) in &texts {
        outputs::refuse_file_of_others(path, "-o")?;
    }
    fs::create_dir_all(dir)?;
    for (path, text) in texts {
        fs::write_if_changed(&path, text.as_bytes(), 0o644)?;
        print_line(path.as_str())?;
    }
    Ok(())
}
