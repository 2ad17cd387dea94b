//! config.mk: substitutions and conditionals for makefiles.

use super::{Emitter, quote::make_value, template, variables::Variables};
use crate::{error::Error, model::Report};

/// Keeps blanks at the ends of values; see the template.
const EMPTY: &str = "$(UCX_CONFIGURE_EMPTY)";

pub(super) const EMITTER: Emitter = Emitter {
    id: "mk",
    file: Some("config.mk"),
    name: "config.mk",
    doc: "The substitutions and conditionals, for makefiles.",
    render,
};

fn render(report: &Report) -> Result<String, Error> {
    let variables = Variables::new(report, |text| match make_value(text, EMPTY) {
        // Nothing stands after the `=` of an empty value, no blank either.
        value if value.is_empty() => value,
        value => format!(" {value}"),
    })?;
    template::render("config.mk.j2", include_str!("../../templates/config.mk.j2"), variables)
}
