//! What was typed, and nothing more: no path is looked at and nothing is
//! resolved here. `request` says what it means.
//!
//! Autoconf's manners (`--without-X`, `--enable-X=no`, `NAME=VALUE`, options of
//! other packages, the last one counts) are not clap's, so [`scan`] reads the
//! arguments first and hands the options that are ours to clap in one plain
//! form. Their names come from clap's own definition: there is no second list.

mod foreign;
mod help;
mod options;
mod scan;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ffi::OsString};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

pub use self::{
    foreign::{AUTOCONF_OPTIONS, AutoconfOption, UCX_OPTIONS},
    options::{
        CheckOptions, DemoOptions, EmitOptions, ExplainOptions, Format, Generated, InfoOptions,
        InstallOptions, MatrixFormat, MatrixOptions, Options, PackageName, ToolkitCommand,
        UninstallOptions, VerifyOptions,
    },
};
use crate::{
    error::{Code, Error},
    model::INSTALL_DIRS,
};

/// Which command was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// None: configure and build.
    Configure,
    /// `check`: the same detection, nothing written.
    Check(CheckOptions),
    /// `toolkit`: lists and fetches NVIDIA's wheels.
    Toolkit(ToolkitCommand),
    /// `demo`: the hooks at work on the mock driver.
    Demo(DemoOptions),
    /// `emit`: the report in another format.
    Emit(EmitOptions),
    /// `info`: the variables that hook-runtime reads.
    Info(InfoOptions),
    /// `explain`: why the answers are what they are.
    Explain(ExplainOptions),
    /// `verify`: what the hooks would see.
    Verify(VerifyOptions),
    /// `install`: everything into a prefix, or libucm_cuda into a UCX.
    Install(InstallOptions),
    /// `uninstall`: what was installed, away again.
    Uninstall(UninstallOptions),
    /// `matrix`: detection on many toolkits.
    Matrix(MatrixOptions),
    /// `loaded`: nothing but a list of what is loaded, for `verify`.
    Loaded,
    /// `generate`: the manual, completions, tables.
    Generate(Generated),
}

/// An option of ours, as often as it was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How it was typed, each time.
    pub typed: Vec<OsString>,
    /// Whether it takes a value, so that giving it twice loses one.
    pub has_value: bool,
}

/// How unknown options are treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OptionChecking {
    /// One warning names them.
    #[default]
    Warn,
    /// Nothing is said.
    Off,
    /// They end the run.
    Fatal,
}

/// A command line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Which command.
    pub command: Command,
    /// The options that configure and `check` share.
    pub options: Options,
    /// `--prefix` and the like, by name.
    pub install_dirs: BTreeMap<&'static str, OsString>,
    /// `NAME=VALUE`, in order.
    pub assignments: Vec<(String, OsString)>,
    /// Our options, by their plain name such as `with-cuda`.
    pub occurrences: BTreeMap<String, Occurrences>,
    /// Options of UCX's configure, or of any other, that are not ours.
    pub foreign: Vec<String>,
    /// Autoconf's own options that have no effect here.
    pub without_effect: Vec<String>,
    /// How those that are not ours are treated.
    pub option_checking: OptionChecking,
    /// The arguments as typed.
    pub arguments: Vec<OsString>,
}

/// A command line that was read.
#[derive(Debug)]
pub enum Parsed {
    /// It asks for a run.
    Run(Box<Typed>),
    /// It asks for a text on standard output: help or the version.
    Show(String),
}

/// Reads a command line.
///
/// # Errors
///
/// It cannot be used.
pub fn parse(arguments: &[OsString]) -> Result<Parsed, Error> {
    let definition = definition();
    let scanned = match scan::scan(arguments, &definition)? {
        scan::Scanned::Show(what) => return Ok(Parsed::Show(help::text(definition, what))),
        scan::Scanned::Arguments(scanned) => *scanned,
    };
    let mut plain = vec![OsString::from("ucx-configure")];
    plain.extend(scanned.plain);
    let matches = match definition.try_get_matches_from(plain) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => return Ok(Parsed::Show(error.to_string())),
        Err(error) => return Err(usage(&error)),
    };
    let cli = options::Cli::from_arg_matches(&matches).map_err(|error| usage(&error))?;
    let (command, inner, options) = match cli.command {
        None => (Command::Configure, &matches, cli.options),
        Some(options::Subcommand::Check { options, check }) => {
            let inner = matches.subcommand_matches("check").unwrap_or(&matches);
            (Command::Check(check), inner, options)
        }
        Some(options::Subcommand::Explain { options, explain }) => {
            let inner = matches.subcommand_matches("explain").unwrap_or(&matches);
            (Command::Explain(explain), inner, options)
        }
        Some(options::Subcommand::Toolkit { command }) => {
            (Command::Toolkit(command), &matches, cli.options)
        }
        Some(options::Subcommand::Demo { demo }) => (Command::Demo(demo), &matches, cli.options),
        Some(options::Subcommand::Emit { emit }) => (Command::Emit(emit), &matches, cli.options),
        Some(options::Subcommand::Info { info }) => (Command::Info(info), &matches, cli.options),
        Some(options::Subcommand::Verify { verify }) => {
            (Command::Verify(verify), &matches, cli.options)
        }
        Some(options::Subcommand::Install { install }) => {
            let inner = matches.subcommand_matches("install").unwrap_or(&matches);
            (Command::Install(install), inner, cli.options)
        }
        Some(options::Subcommand::Uninstall { uninstall }) => {
            let inner = matches.subcommand_matches("uninstall").unwrap_or(&matches);
            (Command::Uninstall(uninstall), inner, cli.options)
        }
        Some(options::Subcommand::Matrix { matrix }) => {
            (Command::Matrix(matrix), &matches, cli.options)
        }
        Some(options::Subcommand::Loaded) => (Command::Loaded, &matches, cli.options),
        Some(options::Subcommand::Generate { what }) => {
            (Command::Generate(what), &matches, cli.options)
        }
    };
    Ok(Parsed::Run(Box::new(Typed {
        install_dirs: install_dirs(inner),
        option_checking: option_checking(&options)?,
        command,
        options,
        assignments: scanned.assignments,
        occurrences: scanned.occurrences,
        foreign: scanned.foreign,
        without_effect: scanned.without_effect,
        arguments: arguments.to_vec(),
    })))
}

/// clap's definition, with the installation directories added from their
/// table.
pub(crate) fn definition() -> clap::Command {
    let with_dirs = |mut command: clap::Command| {
        for dir in INSTALL_DIRS {
            command = command.arg(options::install_dir_argument(dir));
        }
        command.args_override_self(true)
    };
    let command = options::Cli::command().args_override_self(true);
    ["check", "explain", "install", "uninstall"]
        .into_iter()
        .fold(with_dirs(command), |command, name| command.mut_subcommand(name, with_dirs))
}

/// The definition as people see it, in the manual and in completions.
pub(crate) fn documented() -> clap::Command {
    let definition = definition().after_help(help::epilogue());
    let hidden: Vec<String> = definition
        .get_subcommands()
        .filter(|command| command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .collect();
    // clap cannot take a subcommand out again, so those that are seen go into
    // a copy of the rest.
    let mut seen = clap::Command::new("ucx-configure")
        .about(definition.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .after_help(help::epilogue())
        .args(definition.get_arguments().cloned());
    for command in definition.get_subcommands() {
        if !hidden.iter().any(|name| name == command.get_name()) {
            seen = seen.subcommand(command.clone());
        }
    }
    seen
}

fn install_dirs(matches: &ArgMatches) -> BTreeMap<&'static str, OsString> {
    INSTALL_DIRS
        .iter()
        .filter_map(|dir| {
            let value = matches.try_get_one::<OsString>(dir.option).ok().flatten()?;
            Some((dir.option, value.clone()))
        })
        .collect()
}

fn option_checking(options: &Options) -> Result<OptionChecking, Error> {
    match options.enable_option_checking.as_deref().and_then(std::ffi::OsStr::to_str) {
        None if options.enable_option_checking.is_none() => Ok(OptionChecking::Warn),
        Some("yes" | "") => Ok(OptionChecking::Warn),
        Some("no") => Ok(OptionChecking::Off),
        Some("fatal") => Ok(OptionChecking::Fatal),
        _ => Err(Error::new(
            Code::Usage,
            "`--enable-option-checking` takes `yes`, `no` or `fatal`, and nothing else",
        )),
    }
}

/// Turns clap's refusal into ours: its first line says what is wrong, its tips
/// become hints.
fn usage(error: &clap::Error) -> Error {
    // Of `toolkit` alone; clap would show its help, which is no error's text.
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::new(Code::Usage, "`toolkit` needs to be told what to do")
            .hint("Name `list` or `fetch`; `ucx-configure toolkit --help` says what they do.");
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let what = first.strip_prefix("error: ").unwrap_or(first).replace('\'', "`");
    let mut result = Error::new(Code::Usage, what);
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            result = result.hint(format!("{}.", sentence(&tip.replace('\'', "`"))));
        } else if line.starts_with('[') || line.starts_with("<") || line.starts_with("--") {
            result = result.means(line.trim_matches(['[', ']']).to_owned());
        }
    }
    result.hint("`ucx-configure --help` lists the options.")
}

/// Begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
