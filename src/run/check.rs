//! `ucx-configure check`: the same detection, nothing written, nothing built.

use std::collections::BTreeMap;

use super::{configure::tool, print, print_line, remarks, requirement};
use crate::{
    cli::{CheckOptions, Format, Typed},
    emit, engine,
    error::{Code, Error},
    host::{Host, fs::Scratch},
    model::{Answers, Install, Mode, Report, SCHEMA_VERSION},
    request::{self, Request},
    ui::{Channel, Progress, Settings, Silent, Sink, summary},
};

/// Runs it.
pub(super) fn run(typed: &Typed, options: &CheckOptions, mut host: Host) -> Result<(), Error> {
    if typed.options.recheck {
        return Err(Error::new(Code::Usage, "`--recheck` and `check` do not go together")
            .hint("Run `ucx-configure --recheck`, or `check` with the options that you want."));
    }
    let resolved = requirement::parse(&options.require)
        .and_then(|requirements| Ok((requirements, request::resolve(typed, &host)?.request)));
    let (requirements, request) = match resolved {
        Ok(resolved) => resolved,
        Err(error) => return answer_without_detection(typed, options, error),
    };
    let scratch = Scratch::new(None)?;
    host.runner.set_scratch(scratch.path().to_owned());
    // Nothing is written, so no answers are kept either.
    let request = Request { cache: false, ..request };
    let (mut report, error) = detect(&request, options, &host);
    let error = error
        .or_else(|| requirement::hold(&requirements, &report).err())
        .or_else(|| requirement::cap(&request, &report).err());
    remarks::record(&mut report, &request, error.as_ref());
    // An interrupted detection has no answer.
    match error {
        Some(error) if error.code == Code::Interrupted => Err(error),
        Some(error) => answer(&report, &request, options).and(Err(error)),
        None => answer(&report, &request, options),
    }
}

fn detect(request: &Request, options: &CheckOptions, host: &Host) -> (Report, Option<Error>) {
    let channel = match options.format {
        Format::Text => Channel::Stdout,
        Format::Json => Channel::Stderr,
    };
    let mut progress =
        Progress::new(Settings { mode: request.mode, quiet: request.quiet }, channel);
    let mut silent = Silent;
    let sink: &mut dyn Sink = if !options.print.is_empty() { &mut silent } else { &mut progress };
    remarks::tell(request, sink);
    let engine::Outcome { report, error } = engine::configure(request, host, sink);
    progress.finish();
    (report, error.or_else(|| host.runner.interrupt.check().err()))
}

fn answer(report: &Report, request: &Request, options: &CheckOptions) -> Result<(), Error> {
    if !options.print.is_empty() {
        let values = options.print.iter().map(|name| print::value(report, name));
        return print_line(&values.collect::<Result<Vec<_>, _>>()?.join("\n"));
    }
    match options.format {
        Format::Json => json(report),
        Format::Text if request.quiet || !report.ok => Ok(()),
        Format::Text => print_line(summary(report, None, None).trim_end()),
    }
}

fn json(report: &Report) -> Result<(), Error> {
    let emitter = emit::find("json")
        .ok_or_else(|| Error::new(Code::Internal, "there is no emitter for JSON"))?;
    print_line((emitter.render)(report)?.trim_end())
}

/// A command line that cannot be met whatever is installed: JSON readers get a
/// report all the same, which holds the error and nothing else.
fn answer_without_detection(
    typed: &Typed,
    options: &CheckOptions,
    error: Error,
) -> Result<(), Error> {
    if options.format == Format::Json {
        let words = typed.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        json(&blank(&words.collect::<Vec<_>>(), &error))?;
    }
    Err(error)
}

/// The report of a run that asked nothing: it holds the error and nothing else.
pub(super) fn blank(arguments: &[String], error: &Error) -> Report {
    let compat = arguments.iter().any(|argument| argument.starts_with("--compat"));
    Report {
        schema_version: SCHEMA_VERSION,
        tool: tool(),
        mode: if compat { Mode::Compat } else { Mode::Strict },
        command_line: arguments.to_vec(),
        ok: false,
        install: Install { dirs: BTreeMap::new() },
        host: None,
        compiler: None,
        nvcc: None,
        toolkit: None,
        gdrcopy: None,
        libraries: Vec::new(),
        driver_floor: None,
        components: Vec::new(),
        features: Vec::new(),
        cfg: BTreeMap::new(),
        modules: Vec::new(),
        iodemo_cuda: false,
        answers: Answers::default(),
        checks: Vec::new(),
        messages: vec![remarks::of_error(error)],
        differences: Vec::new(),
        environment: Vec::new(),
    }
}
