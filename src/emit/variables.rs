//! What config.mk and config.sh have in common: the substitutions and the
//! conditionals, ready for a template.

use serde::Serialize;

use super::quote::{hash_comment, one_line_or_error, value_text};
use crate::{
    error::Error,
    model::{Mode, Report},
};

/// The context of both templates.
#[derive(Serialize)]
pub(super) struct Variables {
    compat: bool,
    on_stub: &'static str,
    variables: Vec<Variable>,
    conditionals: Vec<Conditional>,
    dirs: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Variable {
    comment: String,
    name: String,
    value: String,
}

#[derive(Serialize)]
struct Conditional {
    name: String,
    value: &'static str,
}

impl Variables {
    /// Takes them out of a report; `quote` makes the right-hand side of an
    /// assignment out of the text that the variable is to hold, `dir` the one
    /// of an installation directory.
    pub(super) fn new(
        report: &Report,
        quote: impl Fn(&str) -> String,
        dir: impl Fn(&str) -> String,
    ) -> Result<Self, Error> {
        let variables = report.answers.substitutions.iter().map(|substitution| {
            Ok(Variable {
                comment: hash_comment(&substitution.comment),
                name: substitution.name.clone(),
                value: quote(&value_text(substitution)?),
            })
        });
        let conditionals = report.answers.conditionals.iter().map(|conditional| Conditional {
            name: conditional.name.clone(),
            value: yes_or_no(conditional.value),
        });
        let dirs = report.install.dirs.iter().map(|(name, value)| {
            one_line_or_error(name, value)?;
            Ok((name.clone(), dir(name)))
        });
        Ok(Self {
            compat: report.mode == Mode::Compat,
            on_stub: yes_or_no(report.on_stub()),
            variables: variables.collect::<Result<_, Error>>()?,
            conditionals: conditionals.collect(),
            dirs: dirs.collect::<Result<_, Error>>()?,
        })
    }
}

const fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
