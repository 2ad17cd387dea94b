//! The texts of `--help` and `--version`.

use std::fmt::Write as _;

use crate::{
    discover::source::{CUDA_PLACES, GDRCOPY_PLACES, order},
    env_vars,
    exit::Exit,
};

/// Which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// `--help`; of a subcommand, where one was named.
    Help(Option<&'static str>),
    /// `--version`.
    Version,
}

/// Makes the text.
pub(super) fn text(definition: clap::Command, show: Show) -> String {
    match show {
        Show::Version => format!(
            "ucx-configure {}\nin the place of the CUDA part of UCX v1.19.0's configure\n",
            env!("CARGO_PKG_VERSION")
        ),
        Show::Help(None) => definition.after_help(epilogue()).render_help().to_string(),
        Show::Help(Some(name)) => {
            let mut definition = definition;
            definition.build();
            definition
                .find_subcommand_mut(name)
                .map_or_else(String::new, |command| command.render_help().to_string())
        }
    }
}

pub(super) fn epilogue() -> String {
    let mut text = String::from(
        "Every `--with-X` can be `--without-X`, every `--enable-X` `--disable-X`. Options of UCX's \
         configure that are not about CUDA are named in one warning and otherwise ignored.\n\n\
         Variables, from the environment or as NAME=VALUE (the argument wins):\n",
    );
    variables(&mut text, true);
    text.push_str("\nFrom the environment alone:\n");
    variables(&mut text, false);
    places(&mut text);
    text.push_str("\nExit codes:\n");
    for exit in Exit::ALL {
        let _ = writeln!(text, "  {:>3}  {}", exit.code(), exit.doc());
    }
    text.trim_end().to_owned()
}

fn places(text: &mut String) {
    for (title, places) in [
        ("Where CUDA is looked for when no directory is named, in this order:", CUDA_PLACES),
        ("Where gdrcopy is looked for:", GDRCOPY_PLACES),
    ] {
        let _ = writeln!(text, "\n{title}");
        order(places).for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
    }
    text.push_str(
        "\nNever in the current directory. `--compat` looks where the original does: where the compiler\n\
         looks by itself.\n",
    );
}

fn variables(text: &mut String, are_arguments: bool) {
    for variable in env_vars::ENV_VARS.iter().filter(|row| row.is_argument == are_arguments) {
        let _ = writeln!(text, "  {:<28} {}", variable.name, variable.doc);
    }
}
