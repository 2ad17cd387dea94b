//! `info`: the variables that hook-runtime reads, what they mean, what they
//! are set to here, and whether that makes sense.
//!
//! The table is hook-runtime's own, from its own file: there is no second one.

use std::fmt::Write as _;

use serde_json::json;

use super::print_line;
use crate::{
    cli::{Format, InfoOptions},
    error::{Code, Error},
    host::{Host, env::Snapshot},
};

#[path = "../../hook-runtime/src/transport/settings"]
mod settings {
    #![expect(dead_code, reason = "only the table is shown; what its rows fill is hook-runtime's")]
    #![allow(unreachable_pub, unused_imports, reason = "the files are hook-runtime's")]

    pub(super) mod parse;
    pub(super) mod table;
}

use settings::table::{self, Variable};

/// What a variable is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    /// As it is set; nothing if it is not.
    set: Option<String>,
    /// What it should be, if what it is makes no sense.
    wrong: Option<String>,
}

/// Shows the variables.
///
/// # Errors
///
/// No variable has such a name, or one is set to what makes no sense.
pub(super) fn run(options: &InfoOptions, host: &Host) -> Result<(), Error> {
    let rows: Vec<&Variable> = table::all().filter(|row| options.wants(row.name)).collect();
    if let Some(name) = options.names.iter().find(|name| !rows.iter().any(|row| fits(name, row))) {
        return Err(unknown(name));
    }
    let values: Vec<Value> = rows.iter().map(|row| value(row, &host.env)).collect();
    let text = match options.format {
        Format::Text => as_text(&rows, &values),
        Format::Json => as_json(&rows, &values),
    };
    print_line(text.trim_end())?;
    let wrong = rows
        .iter()
        .zip(&values)
        .find_map(|(row, value)| Some((row, value.set.as_ref()?, value.wrong.as_ref()?)));
    match wrong {
        None => Ok(()),
        Some((row, set, expected)) => {
            let what = format!("`{}={set}` is not {expected}", row.name);
            let default =
                format!("hook-runtime would say so, and take its default, `{}`.", row.default);
            Err(Error::new(Code::Usage, what).means(default))
        }
    }
}

impl InfoOptions {
    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| starts(name, wanted))
    }
}

fn starts(name: &str, wanted: &str) -> bool {
    name.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
}

fn fits(wanted: &str, row: &Variable) -> bool {
    starts(row.name, wanted)
}

fn unknown(name: &str) -> Error {
    let wanted = name.to_uppercase();
    let near = table::all()
        .map(|row| (strsim::damerau_levenshtein(&wanted, row.name), row.name))
        .filter(|(distance, _)| *distance <= 3)
        .min();
    let error = Error::new(Code::Usage, format!("hook-runtime reads no variable `{name}`"));
    match near {
        Some((_, near)) => error.hint(format!("Did you mean `{near}`?")),
        None => {
            error.hint("`ucx-configure info` shows all of them; the beginning of a name is enough.")
        }
    }
}

fn value(row: &Variable, env: &Snapshot) -> Value {
    let Some(set) = env.get_os(row.name) else { return Value { set: None, wrong: None } };
    let wrong = match set.to_str() {
        Some(text) => table::validate(row.name, text).err(),
        None => Some("text in UTF-8".to_owned()),
    };
    Value { set: Some(set.to_string_lossy().into_owned()), wrong }
}

/// As UCX's own `ucx_info -c -f` writes variables: a file that a shell can read.
fn as_text(rows: &[&Variable], values: &[Value]) -> String {
    let mut text = String::new();
    for (row, value) in rows.iter().zip(values) {
        let _ = writeln!(text, "# {}", row.meaning);
        let _ = writeln!(text, "# default: {}", row.default);
        match &value.wrong {
            Some(expected) => {
                let _ = writeln!(text, "# WRONG: this is not {expected}; the default counts");
            }
            None if value.set.is_some() => text.push_str("# set in the environment\n"),
            None => {}
        }
        let shown = value.set.as_deref().unwrap_or(row.default);
        let quoted = shlex::try_quote(shown).map_or_else(|_| shown.to_owned(), Into::into);
        let quoted = if shown.is_empty() { String::new() } else { quoted };
        let _ = writeln!(text, "{}={quoted}\n", row.name);
    }
    text
}

fn as_json(rows: &[&Variable], values: &[Value]) -> String {
    let rows = rows.iter().zip(values).map(|(row, value)| {
        json!({
            "name": row.name,
            "default": row.default,
            "meaning": row.meaning,
            "value": value.set,
            "valid": value.wrong.is_none(),
            "expected": value.wrong,
        })
    });
    format!("{:#}", serde_json::Value::Array(rows.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_makes_sense_and_wrong_values_are_told() {
        let nothing = Snapshot::from_pairs::<&str, &str>([]);
        for row in table::all() {
            assert_eq!(value(row, &nothing), Value { set: None, wrong: None });
            let set = Snapshot::from_pairs([(row.name, row.default)]);
            assert_eq!(value(row, &set).wrong, None, "{}", row.name);
        }
        let poll = table::all().find(|row| row.name == "UCX_CUDA_COPY_MAX_POLL").unwrap();
        let wrong = value(poll, &Snapshot::from_pairs([(poll.name, "many")]));
        assert_eq!(wrong.wrong.as_deref(), Some("a whole number"));
        let text = as_text(&[poll], &[wrong]);
        assert!(
            text.contains("# WRONG: this is not a whole number; the default counts\n"),
            "{text}"
        );
        assert!(text.ends_with("UCX_CUDA_COPY_MAX_POLL=many\n\n"), "{text}");
    }
}
