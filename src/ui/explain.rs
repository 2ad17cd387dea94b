//! Why the answers of a report are what they are, from the verdict down to
//! the command and the tool's own words.
//!
//! Everything here is read from the report; what a question's probe is about,
//! and which packages there are, is added by whoever knows the tables.

use std::fmt::Write as _;

use super::style::{self, paint};
use crate::model::{
    Attempt, Check, Component, FeatureAnswer, Finding, Message, MessageKind, Outcome, Report,
    Verdict,
};

/// What CUDA stands on.
pub const CUDA_PARTS: [Component; 3] =
    [Component::CudaDriver, Component::CudaRuntime, Component::Nvml];

/// The whole of a report: each component with its reason, what was said, what
/// the environment brought in, what was given instead of found out.
pub fn overview(report: &Report) -> String {
    let mut text = String::new();
    let verdict = if report.has_cuda() { Verdict::Yes } else { Verdict::No };
    let _ = writeln!(text, "CUDA: {}", word(verdict));
    for finding in &report.components {
        let _ = writeln!(text, "  {}", of_component(finding));
    }
    let not_there: Vec<&str> = report
        .features
        .iter()
        .filter(|answer| report.has_cuda() && answer.verdict == Verdict::No)
        .map(|answer| answer.id.row().key)
        .collect();
    if !not_there.is_empty() {
        let _ = writeln!(text, "  features that are not there: {}", not_there.join(", "));
    }
    text += &messages(&report.messages);
    text += &environment(report);
    text += &presets(report);
    text
}

/// The first part of CUDA that is missing.
pub fn first_missing(report: &Report) -> Option<&Finding> {
    CUDA_PARTS
        .iter()
        .filter_map(|component| report.finding(*component))
        .find(|finding| !finding.verdict.is_yes())
}

/// A component in one line.
pub fn of_component(finding: &Finding) -> String {
    let title = finding.component.title();
    match finding.why.as_str() {
        "" => format!("{title}: {}", word(finding.verdict)),
        why => format!("{title}: {}: {why}", word(finding.verdict)),
    }
}

/// A feature: what it is, and what was found out.
pub fn of_feature(answer: &FeatureAnswer) -> String {
    let row = answer.id.row();
    let mut text = format!("{}: {}\n  {}\n", row.key, word(answer.verdict), row.doc);
    if let Some(since) = row.since {
        let _ = writeln!(text, "  It came with CUDA {since}.");
    }
    if let Some(guard) = answer.by_version {
        let guard = if guard { "yes" } else { "no" };
        let _ = writeln!(text, "  The version guard in UCX's sources says {guard}.");
    }
    text
}

/// A question, its answer, and everything that was tried.
pub fn of_check(check: &Check) -> String {
    let detail = check.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let mut text =
        format!("checking {}... {}{detail} [{}]\n", check.label, word(check.verdict), check.id);
    if let Some(reason) = &check.preset {
        let _ = writeln!(text, "  It was given, not found out: {reason}");
    }
    let mut looked_for = Vec::new();
    for attempt in &check.evidence.attempts {
        match (attempt.outcome, &attempt.command, &attempt.place, &attempt.meaning) {
            (Outcome::Absent, None, Some(place), None) => looked_for.push(place),
            _ => text += &of_attempt(attempt),
        }
    }
    if !looked_for.is_empty() {
        text.push_str("  looked for, and not there\n");
        for place in looked_for {
            let _ = writeln!(text, "    {place}");
        }
    }
    if let Some(hint) = check.evidence.hint.as_ref().filter(|_| check.verdict != Verdict::Yes) {
        let _ = writeln!(text, "{} {hint}", paint(style::HINT, "hint:"));
    }
    text
}

/// One thing that was tried: what, the command, the tool's words, what it
/// means.
fn of_attempt(attempt: &Attempt) -> String {
    let how = match attempt.outcome {
        Outcome::Satisfied => "it worked",
        Outcome::Rejected => "it was there, and is not good enough",
        Outcome::Absent => "it was not there",
        Outcome::Failed => "the tool itself failed",
    };
    let mut text = format!("  {}: {how}\n", attempt.what);
    if let Some(place) = &attempt.place {
        let _ = writeln!(text, "    {place}");
    }
    if let Some(command) = &attempt.command {
        let _ = writeln!(text, "    $ {command}");
    }
    for line in attempt.said.iter().flat_map(|said| said.lines()) {
        let _ = writeln!(text, "    | {line}");
    }
    if let Some(meaning) = &attempt.meaning {
        let _ = writeln!(text, "    {meaning}");
    }
    text
}

/// What environment variables lead to.
pub fn environment(report: &Report) -> String {
    let mut text = String::new();
    for supplied in &report.environment {
        let used = if supplied.used { "used" } else { "not used" };
        let holds = supplied.holds.join(", ");
        let _ =
            writeln!(text, "  {} leads to {} ({holds}): {used}", supplied.variable, supplied.place);
    }
    headed("environment", text)
}

/// What was given instead of found out.
fn presets(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        if let Some(reason) = &check.preset {
            let _ = writeln!(text, "  {}: {}: {reason}", check.id, word(check.verdict));
        }
    }
    headed("given with `--answers`", text)
}

fn messages(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let kind = match message.kind {
            MessageKind::Note => paint(style::NOTE, "note:"),
            MessageKind::Warning => paint(style::WARNING, "warning:"),
            MessageKind::Error => paint(style::ERROR, "error:"),
        };
        let _ = writeln!(text, "  {kind} {} [{}]", message.text, message.code);
    }
    headed("what the run said", text)
}

/// A part below its heading; nothing where there is nothing.
fn headed(heading: &str, text: String) -> String {
    match text.is_empty() {
        true => text,
        false => format!("{}\n{text}", paint(style::HEADING, heading)),
    }
}

fn word(verdict: Verdict) -> String {
    paint(style::verdict(verdict), verdict.word())
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use camino::Utf8PathBuf;

    use super::*;
    use crate::{
        emit::fixtures,
        model::{FeatureId, Supplied},
    };

    fn plain(text: &str) -> String {
        strip_str(text).to_string()
    }

    #[test]
    fn a_question_goes_down_to_the_tools_own_words() {
        let report = fixtures::report();
        let check = report.checks.iter().find(|check| check.verdict == Verdict::No).unwrap();
        let mut check = check.clone();
        check.evidence.attempts.push(Attempt {
            what: "look for the file".to_owned(),
            place: Some("/opt/cuda/lib".into()),
            command: None,
            said: None,
            outcome: Outcome::Absent,
            meaning: None,
        });
        assert_eq!(
            plain(&of_check(&check)),
            "checking for cudaGetDeviceCount in -lcudart_static... no [cuda.lib.cudart_static]\n\
             \u{20} link a call of `cudaGetDeviceCount`: it was not there\n\
             \u{20}   /opt/cuda/lib64/libcudart_static.a\n\
             \u{20}   $ LC_ALL=C cc probe.c -lcudart_static\n\
             \u{20}   | /usr/bin/ld: cannot find -lcudart_static\n\
             \u{20}   No directory that was searched has the library.\n\
             \u{20} looked for, and not there\n\
             \u{20}   /opt/cuda/lib\n\
             hint: Install the package that holds libcudart_static.a.\n"
        );
    }

    #[test]
    fn the_overview_has_what_was_said_supplied_and_given() {
        let mut report = fixtures::report();
        report.environment.push(Supplied {
            variable: "CPATH".to_owned(),
            place: Utf8PathBuf::from("/x/include"),
            holds: vec!["cuda.h".to_owned()],
            used: true,
        });
        report.checks[0].preset = Some("no toolkit on the build machine".to_owned());
        report.messages.push(Message {
            kind: MessageKind::Warning,
            code: "W0301".to_owned(),
            text: "versions differ".to_owned(),
            hint: None,
        });
        let text = plain(&overview(&report));
        for line in [
            "CUDA: yes",
            "  CUDA driver: yes: /opt/cuda, real library",
            "  CUDA static runtime: no: libcudart_static.a is absent",
            "  features that are not there: cuda-13.0",
            "  warning: versions differ [W0301]",
            "  CPATH leads to /x/include (cuda.h): used",
            "  cuda.header.cuda_h: yes: no toolkit on the build machine",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
        assert_eq!(first_missing(&report), None);
        let feature = report.feature(FeatureId::Cuda13_0).unwrap();
        assert!(plain(&of_feature(feature)).contains("version guard in UCX's sources says no"));
    }
}
