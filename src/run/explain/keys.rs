//! The keys of our tables: exit codes, codes of messages, variables, probes,
//! features, formats. The same tables make the help text and the documents.

use std::fmt::Write as _;

use crate::{
    emit::EMITTERS,
    engine::strict::quirk::QUIRKS,
    env_vars::ENV_VARS,
    error::CODES,
    exit::Exit,
    model::FEATURES,
    probe::catalog::{PROBES, Probe},
    remarks::REMARKS,
};

/// What lists all keys instead of being one.
const LIST: &str = "KEYS";

/// What a key means; none where it is none.
pub(super) fn find(key: &str) -> Option<String> {
    if key.eq_ignore_ascii_case(LIST) {
        return Some(list());
    }
    exit(key)
        .or_else(|| error(key))
        .or_else(|| remark(key))
        .or_else(|| variable(key))
        .or_else(|| PROBES.iter().find(|row| row.id.eq_ignore_ascii_case(key)).map(probe))
        .or_else(|| quirk(key))
        .or_else(|| format(key))
}

/// Every key.
pub(super) fn all() -> impl Iterator<Item = String> {
    let exits = Exit::ALL.into_iter().map(|exit| exit.code().to_string());
    exits
        .chain(CODES.iter().map(|row| row.name.to_owned()))
        .chain(REMARKS.iter().map(|(code, _)| (*code).to_owned()))
        .chain(ENV_VARS.iter().map(|row| row.name.to_owned()))
        .chain(PROBES.iter().map(|row| row.id.to_owned()))
        .chain(EMITTERS.iter().map(|row| row.id.to_owned()))
        .chain(QUIRKS.iter().map(|row| row.1.to_owned()))
}

fn list() -> String {
    let rows = |title: &str, names: Vec<String>| format!("{title}\n  {}\n", names.join(" "));
    let exits: Vec<String> = Exit::ALL.iter().map(|exit| exit.code().to_string()).collect();
    let names = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
    rows("exit codes", exits)
        + &rows("errors", names(&mut CODES.iter().map(|row| row.name)))
        + &rows("warnings and notes", names(&mut REMARKS.iter().map(|row| row.0)))
        + &rows("variables", names(&mut ENV_VARS.iter().map(|row| row.name)))
        + &rows("probes", names(&mut PROBES.iter().map(|row| row.id)))
        + &rows("features", names(&mut FEATURES.iter().map(|row| row.key)))
        + &rows("formats", names(&mut EMITTERS.iter().map(|row| row.id)))
        + &rows("differences", names(&mut QUIRKS.iter().map(|row| row.1)))
}

fn exit(key: &str) -> Option<String> {
    let number: u8 = key.strip_prefix("exit ").unwrap_or(key).parse().ok()?;
    let exit = Exit::ALL.into_iter().find(|exit| exit.code() == number)?;
    let mut text = format!("exit code {number}\n  {}\n", exit.doc());
    for row in CODES.iter().filter(|row| row.exit == exit) {
        let _ = writeln!(text, "  {}  {}", row.name, row.doc);
    }
    Some(text)
}

fn error(key: &str) -> Option<String> {
    let row = CODES.iter().find(|row| row.name.eq_ignore_ascii_case(key))?;
    let (code, doc) = (row.exit.code(), row.exit.doc());
    Some(format!(
        "error {}\n  {}\n  The run ends with exit code {code}: {doc}\n",
        row.name, row.doc
    ))
}

fn remark(key: &str) -> Option<String> {
    let (code, doc) = REMARKS.iter().find(|(code, _)| code.eq_ignore_ascii_case(key))?;
    let kind = if code.starts_with('W') { "warning" } else { "note" };
    Some(format!("{kind} {code}\n  {doc}\n"))
}

fn variable(key: &str) -> Option<String> {
    let row = ENV_VARS.iter().find(|row| row.name.eq_ignore_ascii_case(key))?;
    let how = match row.is_argument {
        true => "From the environment, or as an argument `NAME=VALUE`, which wins.",
        false => "From the environment alone.",
    };
    Some(format!("variable {}\n  {}\n  {how}\n", row.name, row.doc))
}

/// A probe: its own head comment says what a success proves.
fn probe(row: &Probe) -> String {
    let mut text = format!("probe {}\n", row.id);
    if !row.label.is_empty() {
        let _ = writeln!(text, "  checking {}", row.label);
    }
    let _ = writeln!(text, "  {}", head(row.text));
    if !row.needs.is_empty() {
        let _ = writeln!(text, "  It is asked after {}.", row.needs.join(", "));
    }
    if let Some(feature) = row.feature {
        let _ = writeln!(text, "  It answers {}: {}", feature.row().key, feature.row().doc);
    }
    let _ = writeln!(text, "  Its source is probes/{}:\n", row.file);
    for line in row.text.lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// The text of a source's first comment.
fn head(source: &str) -> String {
    let comment = source.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    let words = comment.map_or("", |(comment, _)| comment);
    let words = words.lines().map(|line| line.trim().trim_start_matches("* ").trim());
    words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A quirk of the original that is mended.
fn quirk(key: &str) -> Option<String> {
    let (_, name, doc) = QUIRKS.iter().find(|row| row.1.eq_ignore_ascii_case(key))?;
    Some(format!("difference {name}\n  In UCX v1.19.0 {doc}; here that is mended.\n"))
}

fn format(key: &str) -> Option<String> {
    let row = EMITTERS.iter().find(|row| row.id.eq_ignore_ascii_case(key))?;
    let when = if row.file.is_some() { "every run writes it" } else { "`emit` makes it" };
    Some(format!("format {}\n  {}\n  The file is {}; {when}.\n", row.id, row.doc, row.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_explained_and_listed() {
        let listed = list();
        for key in all() {
            let text = find(&key).unwrap_or_else(|| panic!("{key}"));
            assert!(text.contains(&key) && text.lines().count() >= 2, "{key}: {text}");
            assert!(listed.contains(&key), "{key}");
        }
        assert!(find("q3").is_some() && find("keys").is_some() && find("nvcc").is_some());
        assert_eq!(find("E9999"), None);
        assert_eq!(find("77"), None);
    }

    #[test]
    fn a_probe_says_what_it_proves() {
        let text = find("nvml.header.nvml_h").unwrap();
        assert!(
            text.contains("A success proves that nvml.h is there and compiles as C."),
            "{text}"
        );
        assert!(text.contains("    #include <nvml.h>"), "{text}");
        assert!(find("exit 3").unwrap().contains("E0302"));
        assert!(find("e0202").unwrap().contains("exit code 1"));
    }

    #[test]
    fn codes_of_remarks_are_unique() {
        let mut codes: Vec<&str> = REMARKS.iter().map(|row| row.0).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), REMARKS.len());
        assert!(REMARKS.iter().all(|row| row.1.ends_with('.')));
    }
}
