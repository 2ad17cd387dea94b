//! `--answers FILE`: answers that are given instead of found out, each with
//! its reason.
//!
//! The file is TOML: a table for each question, by its name or by that of the
//! feature that it answers.
//!
//! ```toml
//! [nvml.library.nvidia_ml]
//! answer = true
//! reason = "the target's driver brings it"
//!
//! [fabric]
//! answer = false
//! reason = "no node of ours has it"
//! ```

use std::{collections::BTreeMap, ffi::OsStr};

use toml::{Table, Value};

use super::directories;
use crate::{
    error::{Code, Error, Remedy},
    host::{Host, fs},
    model::{FEATURES, Mode},
    probe::catalog::PROBES,
};

/// The option.
const OPTION: &str = "--answers";

/// What a question's table has.
const KEYS: [&str; 2] = ["answer", "reason"];

/// An answer and why it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The answer.
    pub answer: bool,
    /// Why, in the words of whoever gave it.
    pub reason: String,
}

/// The answers by the names of their questions.
pub type Answers = BTreeMap<&'static str, Given>;

/// Reads the file that the option names.
///
/// # Errors
///
/// It cannot be read, or holds something that is no answer of ours.
pub(super) fn read(value: Option<&OsStr>, mode: Mode, host: &Host) -> Result<Answers, Error> {
    let Some(value) = value else { return Ok(Answers::new()) };
    if mode == Mode::Compat {
        let what = format!("`{OPTION}` and `--compat` do not go together");
        return Err(Error::new(Code::Usage, what)
            .means("What was recorded of UCX v1.19.0 is what its own questions come to.")
            .hint("Run without `--compat`; `ucx-configure emit config-site` gives UCX's configure these answers.")
            .remedy(Remedy::Drop("--compat".to_owned())));
    }
    let file = host.absolute(&directories::plain(OPTION, value)?);
    let text = fs::read_to_string(&file)?;
    parse(&text).map_err(|error| {
        Error { what: format!("`{file}`: {}", error.what), ..error }
            .hint("`ucx-configure explain KEYS` lists the questions and features.")
    })
}

/// Reads the text of such a file.
fn parse(text: &str) -> Result<Answers, Error> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        Error::new(Code::Usage, "this is no TOML").said(error.to_string().trim_end().to_owned())
    })?;
    let mut answers = Answers::new();
    walk("", &table, &mut answers)?;
    Ok(answers)
}

/// Goes down to the tables that hold answers: `[a.b]` is a table in a table.
fn walk(above: &str, table: &Table, answers: &mut Answers) -> Result<(), Error> {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let Value::Table(inner) = value else {
            return Err(refused(&key, "is no table with `answer` and `reason`"));
        };
        if KEYS.iter().any(|known| inner.contains_key(*known)) {
            let question = question(&key).ok_or_else(|| unknown(&key))?;
            answers.insert(question, given(&key, inner)?);
        } else if inner.is_empty() {
            return Err(refused(&key, "has no `answer`"));
        } else {
            walk(&key, inner, answers)?;
        }
    }
    Ok(())
}

/// The question that a key names, or that answers the feature which it names.
fn question(key: &str) -> Option<&'static str> {
    let feature = FEATURES.iter().find(|row| row.key == key).map(|row| row.id);
    PROBES
        .iter()
        .filter(|probe| !probe.label.is_empty())
        .find(|probe| probe.id == key || feature.is_some() && probe.feature == feature)
        .map(|probe| probe.id)
}

fn given(key: &str, table: &Table) -> Result<Given, Error> {
    if let Some(stranger) = table.keys().find(|name| !KEYS.contains(&name.as_str())) {
        return Err(refused(key, &format!("has a `{stranger}`, which means nothing here")));
    }
    let answer = match table.get("answer") {
        Some(Value::Boolean(answer)) => *answer,
        Some(Value::String(word)) if word == "yes" => true,
        Some(Value::String(word)) if word == "no" => false,
        Some(other) => {
            return Err(refused(
                key,
                &format!("has the answer `{other}`, which is no yes and no no"),
            ));
        }
        None => return Err(refused(key, "has no `answer`")),
    };
    match table.get("reason") {
        Some(Value::String(reason)) if !reason.trim().is_empty() => {
            Ok(Given { answer, reason: reason.trim().to_owned() })
        }
        _ => Err(refused(key, "has no `reason`").means(
            "The report repeats it, so that nobody takes the answer for one that was found out.",
        )),
    }
}

fn refused(key: &str, why: &str) -> Error {
    Error::new(Code::Usage, format!("`{key}` {why}"))
}

fn unknown(key: &str) -> Error {
    let error = refused(key, "is no question and no feature");
    let questions = PROBES.iter().filter(|probe| !probe.label.is_empty()).map(|probe| probe.id);
    let near = questions
        .chain(FEATURES.iter().map(|row| row.key))
        .map(|name| (strsim::damerau_levenshtein(name, key), name))
        .filter(|(distance, name)| *distance <= name.len() / 3)
        .min();
    match near {
        Some((_, near)) => error.hint(format!("Did you mean `{near}`?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_question_and_by_feature() {
        let text = "[nvml.library.nvidia_ml]\nanswer = true\nreason = ' on the target '\n\
                    [\"nvml.header.nvml_h\"]\nanswer = 'yes'\nreason = 'a'\n\
                    [fabric]\nanswer = 'no'\nreason = 'b'\n\
                    [\"cuda-12.5\"]\nanswer = false\nreason = 'c'\n";
        let answers = parse(text).unwrap();
        let of = |id: &str| answers.get(id).map(|given| (given.answer, given.reason.as_str()));
        assert_eq!(of("nvml.library.nvidia_ml"), Some((true, "on the target")));
        assert_eq!(of("nvml.header.nvml_h"), Some((true, "a")));
        assert_eq!(of("cuda.declaration.handle_type_fabric"), Some((false, "b")));
        assert_eq!(of("level.cuda_12_5"), Some((false, "c")));
        assert_eq!(answers.len(), 4);
        assert_eq!(parse("").unwrap(), Answers::new());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (text, what) in [
            ("nvml = 1", "`nvml` is no table"),
            ("[nvml.library.nvidia_ml]", "has no `answer`"),
            ("[nvml.library.nvidia_ml]\nanswer = true", "has no `reason`"),
            ("[nvml.library.nvidia_ml]\nanswer = true\nreason = ' '", "has no `reason`"),
            ("[nvml.library.nvidia_ml]\nanswer = 1\nreason = 'x'", "no yes and no no"),
            ("[nvml.library.nvidia_ml]\nanswer = true\nreason = 'x'\nwhy = 'y'", "has a `why`"),
            ("[nvml.library.nvidia_lm]\nanswer = true\nreason = 'x'", "is no question"),
            ("[control.ok]\nanswer = true\nreason = 'x'", "is no question"),
            ("[[nvml]]\nanswer = true", "is no table"),
            ("answer", "this is no TOML"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code, Code::Usage, "{text}");
            assert!(error.what.contains(what), "{text}: {}", error.what);
        }
        let error = parse("[nvml.library.nvidia_lm]\nanswer = true\nreason = 'x'").unwrap_err();
        assert_eq!(error.hints, ["Did you mean `nvml.library.nvidia_ml`?"]);
    }
}
