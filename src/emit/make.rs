//! config.mk: substitutions and conditionals for makefiles.

use super::{
    Emitter,
    quote::{make_value, shell_word},
    template,
    variables::Variables,
};
use crate::{
    error::Error,
    model::{INSTALL_DIRS, Mode, Report},
};

/// Keeps blanks at the ends of values; see the template.
const EMPTY: &str = "$(UCX_CONFIGURE_EMPTY)";

pub(super) const EMITTER: Emitter = Emitter {
    id: "mk",
    file: Some("config.mk"),
    name: "config.mk",
    doc: "The substitutions and conditionals, for makefiles.",
    render,
};

/// An installation directory: what it says of another one stays for make, so
/// that `make prefix=DIR` moves those below it; the rest is quoted as all else.
fn directory(value: &str, mode: Mode) -> String {
    let literal = |text: &str| match (mode, text) {
        (_, "") => String::new(),
        (Mode::Strict, text) => make_value(&shell_word(text), EMPTY),
        (Mode::Compat, text) => make_value(text, EMPTY),
    };
    let is_name = |name: &str| INSTALL_DIRS.iter().any(|row| row.variable == name);
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, reference)) = rest.split_once("${")
        && let Some((name, after)) = reference.split_once('}')
        && is_name(name)
    {
        out += &literal(before);
        out += &["${", name, "}"].concat();
        rest = after;
    }
    out + &literal(rest)
}

fn render(report: &Report) -> Result<String, Error> {
    // Nothing stands after the `=` of an empty value, no blank either.
    let spaced = |value: String| if value.is_empty() { value } else { format!(" {value}") };
    let quote = |text: &str| spaced(make_value(text, EMPTY));
    let dir = |name: &str| {
        let value = report.install.dirs.get(name).map(String::as_str).unwrap_or_default();
        spaced(directory(value, report.mode))
    };
    let variables = Variables::new(report, quote, dir)?;
    template::render("config.mk.j2", include_str!("../../templates/config.mk.j2"), variables)
}
