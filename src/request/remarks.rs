//! What is said about a command line that can be used, each with its code.

use std::ffi::OsString;

use camino::Utf8Path;

use super::Remark;
use crate::{cli::Typed, env_vars, request::Variable};

/// Options that are not ours.
const FOREIGN: &str = "W0101";
/// An option that was given more than once.
const REPEATED: &str = "W0102";
/// A `~` that the shell left alone.
const TILDE: &str = "N0103";
/// Options of autoconf's own without effect.
const WITHOUT_EFFECT: &str = "N0104";
/// Variables without effect.
const VARIABLES: &str = "N0105";
/// A cache file that is left alone.
const CACHE_FILE: &str = "N0106";
/// A directory that outputs name through a link.
const LINKED: &str = "N0107";

/// What there is to say about the options and variables.
pub(super) fn about(typed: &Typed, state_dir: Option<&Utf8Path>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if !typed.foreign.is_empty() && typed.option_checking != crate::cli::OptionChecking::Off {
        let list = typed.foreign.join(", ");
        remarks.push(Remark::Warning(FOREIGN, format!("unrecognized options: {list}")));
    }
    for (name, occurrences) in &typed.occurrences {
        if let (true, [_, .., last]) = (occurrences.has_value, &occurrences.typed[..]) {
            remarks.push(repeated(&format!("--{name}"), occurrences.typed.len(), last));
        }
    }
    repeated_variables(typed, &mut remarks);
    if !typed.without_effect.is_empty() {
        let list = quoted(typed.without_effect.iter());
        remarks.push(Remark::Note(WITHOUT_EFFECT, format!("without effect here: {list}")));
    }
    variables(typed, &mut remarks);
    cache_file(typed, state_dir, &mut remarks);
    remarks
}

fn repeated(name: &str, count: usize, last: &OsString) -> Remark {
    let last = last.display();
    Remark::Warning(
        REPEATED,
        format!("`{name}` was given {count} times; the last one counts: `{last}`"),
    )
}

fn repeated_variables(typed: &Typed, remarks: &mut Vec<Remark>) {
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in &typed.assignments {
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let all: Vec<_> = typed.assignments.iter().filter(|(other, _)| other == name).collect();
        if let [_, .., (_, value)] = &all[..] {
            let mut last = OsString::from(format!("{name}="));
            last.push(value);
            remarks.push(repeated(name, all.len(), &last));
        }
    }
}

/// Variables that a configure would take and that change nothing here.
fn variables(typed: &Typed, remarks: &mut Vec<Remark>) {
    let ours = |name: &str| Variable::ALL.iter().any(|variable| variable.name() == name);
    let (from_environment, other): (Vec<&str>, Vec<&str>) = typed
        .assignments
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !ours(name))
        .partition(|name| env_vars::ENV_VARS.iter().any(|row| row.name == *name));
    if !other.is_empty() {
        let list = quoted(other.iter());
        remarks.push(Remark::Note(VARIABLES, format!("variables without effect here: {list}")));
    }
    if !from_environment.is_empty() {
        let list = quoted(from_environment.iter());
        remarks.push(Remark::Note(
            VARIABLES,
            format!("variables that are read from the environment alone, not as arguments: {list}"),
        ));
    }
}

fn cache_file(typed: &Typed, state_dir: Option<&Utf8Path>, remarks: &mut Vec<Remark>) {
    let options = &typed.options;
    let name = match &options.cache_file {
        Some(file) if file == "/dev/null" || file.is_empty() => return,
        Some(file) => file.to_string_lossy().into_owned(),
        None if options.config_cache => "config.cache".to_owned(),
        None => return,
    };
    let ours = state_dir.map_or_else(
        || "`check` writes none of its own".to_owned(),
        |dir| format!("our own cache is in `{dir}`"),
    );
    remarks.push(Remark::Note(CACHE_FILE, format!("`{name}` is neither read nor written: {ours}")));
}

/// A `~` was expanded.
pub(super) fn tilde(option: &str, typed: &Utf8Path, expanded: &Utf8Path) -> Remark {
    Remark::Note(
        TILDE,
        format!(
            "`{option}`: the shell left `{typed}` as it is behind the equals sign; taken as `{expanded}`"
        ),
    )
}

/// A directory is named through a link.
pub(super) fn linked(option: &str, target: &std::path::Path, link: &Utf8Path) -> Remark {
    let target = target.display();
    Remark::Note(
        LINKED,
        format!("`{option}`: `{target}` is not UTF-8; outputs name it through the link `{link}`"),
    )
}

fn quoted<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        let name = format!("`{}`", name.as_ref());
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen.join(", ")
}
