//! `--print NAME`: one value on standard output.

use crate::{
    error::{Code, Error},
    model::{DefineValue, Report, SubstValue},
};

/// The value of a substitution, a conditional, a macro or an installation
/// directory, as scripts want it: words quoted where they have to be, `yes` or
/// `no`, the macro's text, a path with nothing left to expand.
///
/// # Errors
///
/// There is nothing of that name.
pub(super) fn value(report: &Report, name: &str) -> Result<String, Error> {
    let answers = &report.answers;
    if let Some(substitution) = answers.substitution(name) {
        return Ok(match &substitution.value {
            SubstValue::Text(text) => text.clone(),
            SubstValue::Words(words) => {
                words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
        });
    }
    if let Some(conditional) = answers.conditional(name) {
        return Ok(if conditional { "yes" } else { "no" }.to_owned());
    }
    if let Some(define) = answers.define(name) {
        return Ok(match &define.value {
            DefineValue::Defined(text) => text.clone(),
            DefineValue::Undefined => String::new(),
        });
    }
    if report.install.dirs.contains_key(name) {
        return Ok(report.install.expanded(name));
    }
    let error = Error::new(Code::Usage, format!("`--print={name}`: there is nothing of that name"));
    Err(match nearest(report, name) {
        Some(near) => error.did_you_mean(format!("--print={near}")),
        None => error.hint("`config.mk` and `config.h` in a build directory show every name."),
    })
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

fn nearest(report: &Report, name: &str) -> Option<String> {
    let answers = &report.answers;
    let names = answers.substitutions.iter().map(|item| &item.name);
    let names = names.chain(answers.conditionals.iter().map(|item| &item.name));
    let names = names.chain(answers.defines.iter().map(|item| &item.name));
    let names = names.chain(report.install.dirs.keys());
    let wanted = name.to_uppercase();
    names
        .map(|other| (strsim::damerau_levenshtein(&wanted, &other.to_uppercase()), other))
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, other)| other.clone())
}
