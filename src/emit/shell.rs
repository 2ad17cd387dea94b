//! config.sh: substitutions and conditionals for shell scripts.

use super::{Emitter, quote::shell_text, template, variables::Variables};
use crate::{error::Error, model::Report};

pub(super) const EMITTER: Emitter = Emitter {
    id: "sh",
    file: Some("config.sh"),
    name: "config.sh",
    doc: "The substitutions and conditionals, for shell scripts.",
    render,
};

fn render(report: &Report) -> Result<String, Error> {
    let variables =
        Variables::new(report, shell_text, |name| shell_text(&report.install.expanded(name)))?;
    template::render("config.sh.j2", include_str!("../../templates/config.sh.j2"), variables)
}
