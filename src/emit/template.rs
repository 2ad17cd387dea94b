//! Fills templates. They are embedded in the program, an undefined name is an
//! error, and the delimiters are strange to C, make and sh alike.

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;

use crate::error::{Code, Error};

/// Fills the template `source`, called `name` in errors, with `context`.
pub(crate) fn render(name: &str, source: &str, context: impl Serialize) -> Result<String, Error> {
    let fill = || {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .variable_delimiters("@{", "}@")
                .block_delimiters("@%", "%@")
                .comment_delimiters("@#", "#@")
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()?,
        );
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.render_named_str(name, source, Serde(context))
    };
    fill().map_err(|error| {
        Error::new(Code::Internal, format!("the template `{name}` cannot be filled"))
            .said(error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_passes_unchanged_and_undefined_names_are_errors() {
        let context = std::collections::BTreeMap::from([("x", "<&\"'}@ @{x}@")]);
        let text = "{{ x }} ${x} $@ %: /* @# gone #@*/\n@% if x %@\n@{ x }@\n@% endif %@\n";
        let filled = render("t", text, &context).unwrap();
        assert_eq!(filled, "{{ x }} ${x} $@ %: /* */\n<&\"'}@ @{x}@\n");
        let error = render("t", "@{ y }@", &context).unwrap_err();
        assert_eq!(error.code, Code::Internal);
    }
}
