//! Autoconf's manners: which argument is an option of ours, an option of
//! somebody else, a `NAME=VALUE`, or a slip.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use super::{AUTOCONF_OPTIONS, Occurrences, UCX_OPTIONS, help::Show};
use crate::error::{Code, Error, Remedy};

/// The commands.
const COMMANDS: &[&str] = &[
    "check",
    "explain",
    "toolkit",
    "demo",
    "emit",
    "info",
    "verify",
    "install",
    "uninstall",
    "matrix",
    "generate",
    "loaded",
];

/// Those that take configure's options, in autoconf's manners.
const LIKE_CONFIGURE: &[&str] = &["check", "explain"];

/// What the arguments come to.
#[derive(Debug)]
pub(super) enum Scanned {
    /// A text is asked for.
    Show(Show),
    /// Arguments, sorted.
    Arguments(Box<Arguments>),
}

/// Arguments, sorted by what they are.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// For clap: the subcommand, then our options in their plain form.
    pub(super) plain: Vec<OsString>,
    /// `NAME=VALUE`.
    pub(super) assignments: Vec<(String, OsString)>,
    /// Our options.
    pub(super) occurrences: BTreeMap<String, Occurrences>,
    /// Options of others.
    pub(super) foreign: Vec<String>,
    /// Autoconf's own without effect.
    pub(super) without_effect: Vec<String>,
}

/// An option of ours, as far as reading needs to know it.
#[derive(Debug, Clone)]
struct Known {
    /// Its plain name.
    name: String,
    /// Whether it takes a value at all.
    has_value: bool,
    /// Whether its value may be the next argument.
    separate_value: bool,
    /// Whether giving it again adds to it.
    adds: bool,
}

/// Reads the arguments.
pub(super) fn scan(arguments: &[OsString], definition: &clap::Command) -> Result<Scanned, Error> {
    let (subcommand, known) = subcommand(arguments, definition);
    if let Some(name) = subcommand.filter(|name| !LIKE_CONFIGURE.contains(name)) {
        // Their arguments are in plain form: autoconf knows no such commands.
        let wants_help = arguments.iter().any(|argument| argument == "--help" || argument == "-h");
        return Ok(if wants_help && arguments.len() == 2 {
            Scanned::Show(Show::Help(Some(name)))
        } else {
            Scanned::Arguments(Box::new(Arguments {
                plain: arguments.to_vec(),
                ..Arguments::default()
            }))
        });
    }
    if let Some(show) = show(arguments, subcommand) {
        return Ok(Scanned::Show(show));
    }
    let mut scanner = Scanner { known: &known, result: Arguments::default(), bare: None };
    scanner.result.plain.extend(subcommand.map(OsString::from));
    let mut rest = arguments.iter();
    let mut options_ended = false;
    let mut subcommand_left = subcommand;
    while let Some(argument) = rest.next() {
        let is_option = argument.as_bytes().starts_with(b"-") && argument.len() > 1;
        if is_option && !options_ended {
            if argument == "--" {
                options_ended = true;
            } else {
                scanner.option(argument, &mut rest)?;
            }
        } else if subcommand_left.is_some_and(|name| argument == name) {
            subcommand_left = None;
            scanner.bare = None;
        } else if subcommand == Some("explain") && scanner.is_item(argument) {
            scanner.result.plain.push(argument.clone());
        } else {
            scanner.operand(argument)?;
        }
    }
    Ok(Scanned::Arguments(Box::new(scanner.result)))
}

/// Finds the subcommand, and the options that go with it.
fn subcommand(
    arguments: &[OsString],
    definition: &clap::Command,
) -> (Option<&'static str>, BTreeMap<String, Known>) {
    let of = |name: &str| definition.find_subcommand(name).map(known_options).unwrap_or_default();
    let check = of("check");
    let root = known_options(definition);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if let Some(name) = COMMANDS.iter().copied().find(|name| argument == name) {
            let is_like = LIKE_CONFIGURE.contains(&name);
            return (Some(name), if is_like { of(name) } else { root });
        }
        let name = argument.to_str().unwrap_or_default().trim_start_matches('-');
        if argument.as_bytes().starts_with(b"-")
            && root.get(name).or_else(|| check.get(name)).is_some_and(|known| known.separate_value)
        {
            rest.next();
        }
    }
    (None, root)
}

fn known_options(command: &clap::Command) -> BTreeMap<String, Known> {
    let mut all = BTreeMap::new();
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        let has_value = argument.get_action().takes_values();
        let known = Known {
            name: long.to_owned(),
            has_value,
            separate_value: has_value && !argument.is_require_equals_set(),
            adds: matches!(argument.get_action(), clap::ArgAction::Append),
        };
        for alias in argument.get_all_aliases().unwrap_or_default() {
            all.insert(alias.to_owned(), known.clone());
        }
        if let Some(short) = argument.get_short() {
            all.insert(short.to_string(), known.clone());
        }
        all.insert(long.to_owned(), known);
    }
    all
}

fn show(arguments: &[OsString], subcommand: Option<&'static str>) -> Option<Show> {
    arguments.iter().take_while(|argument| *argument != "--").find_map(|argument| {
        match argument.to_str()? {
            "--help" | "-h" | "-help" | "--help=short" | "--help=recursive" => {
                Some(Show::Help(subcommand))
            }
            "--version" | "-V" | "-version" => Some(Show::Version),
            _ => None,
        }
    })
}

struct Scanner<'a> {
    known: &'a BTreeMap<String, Known>,
    result: Arguments,
    /// The option just read, if it takes a value after `=` and had none.
    bare: Option<String>,
}

impl<'a> Scanner<'a> {
    fn option(
        &mut self,
        argument: &OsStr,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), Error> {
        self.bare = None;
        let bytes = argument.as_bytes();
        let dashes = if bytes.starts_with(b"--") { 2 } else { 1 };
        let (name, value) = split(&bytes[dashes..]);
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(no_option(argument, None));
        };
        let short = bytes.get(1..2).and_then(|byte| std::str::from_utf8(byte).ok());
        if dashes == 1 && !self.known.contains_key(name) {
            // `-BDIR` and `-qC` are short options; `-prefix` never gets here.
            if let Some(known) = short.and_then(|short| self.known.get(short)) {
                self.note(known, argument);
                self.result.plain.push(argument.to_owned());
                return Ok(());
            }
            if name == "n" {
                self.result.without_effect.push("--no-create".to_owned());
                return Ok(());
            }
        }
        if let Some(known) = self.known.get(name) {
            return self.ours(known, argument, value, rest);
        }
        if let Some((family, stem)) = negative(name)
            && let Some(known) = self.known.get(&format!("{family}-{stem}"))
        {
            if value.is_some() {
                return Err(Error::new(
                    Code::Usage,
                    format!("`--{name}` takes no value, and `{}` has one", argument.display()),
                ));
            }
            self.note(known, argument);
            self.result.plain.push(format!("--{}=no", known.name).into());
            return Ok(());
        }
        self.others(name, argument, value.is_some(), rest)
    }

    /// An option of ours goes to clap in its plain form.
    fn ours(
        &mut self,
        known: &Known,
        argument: &OsStr,
        value: Option<&[u8]>,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), Error> {
        let mut typed = argument.to_owned();
        let mut plain = OsString::from(format!("--{}", known.name));
        if let Some(value) = value {
            plain.push("=");
            plain.push(OsStr::from_bytes(value));
        } else if known.separate_value {
            let Some(next) = rest.next() else {
                let argument = argument.display();
                return Err(Error::new(Code::Usage, format!("`{argument}` needs a value"))
                    .hint(format!("Write `--{}=VALUE`.", known.name)));
            };
            plain.push("=");
            plain.push(next);
            typed.push(" ");
            typed.push(next);
        } else if known.has_value {
            self.bare = Some(known.name.clone());
        }
        self.note(known, &typed);
        self.result.plain.push(plain);
        Ok(())
    }

    fn note(&mut self, known: &Known, typed: &OsStr) {
        let entry = self.result.occurrences.entry(known.name.clone()).or_default();
        entry.has_value = known.has_value && !known.adds;
        entry.typed.push(typed.to_owned());
    }

    /// An option of somebody else, or a slip.
    fn others(
        &mut self,
        name: &str,
        argument: &OsStr,
        has_value: bool,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), Error> {
        if let Some(option) = AUTOCONF_OPTIONS.iter().find(|option| option.name == name) {
            if option.takes_value && !has_value {
                rest.next();
            }
            self.result.without_effect.push(format!("--{name}"));
            return Ok(());
        }
        let positive = negative(name)
            .map_or_else(|| name.to_owned(), |(family, stem)| format!("{family}-{stem}"));
        let is_package = positive.starts_with("with-") || positive.starts_with("enable-");
        if UCX_OPTIONS.contains(&positive.as_str()) {
            self.add_foreign(name);
            return Ok(());
        }
        if let Some(near) = nearest(name, self.known)
            && !self.checking_is_off()
        {
            return Err(no_option(argument, Some(&near)));
        }
        if is_package {
            self.add_foreign(name);
            return Ok(());
        }
        Err(no_option(argument, None))
    }

    fn add_foreign(&mut self, name: &str) {
        let name = format!("--{name}");
        if !self.result.foreign.contains(&name) {
            self.result.foreign.push(name);
        }
    }

    /// Whether `--disable-option-checking` came before.
    fn checking_is_off(&self) -> bool {
        self.result.plain.iter().any(|plain| plain == "--enable-option-checking=no")
    }

    /// Whether it may be the item that is to be explained.
    fn is_item(&self, argument: &OsStr) -> bool {
        self.bare.is_none() && split(argument.as_bytes()).1.is_none()
    }

    /// An argument that is no option.
    fn operand(&mut self, argument: &OsStr) -> Result<(), Error> {
        let bare = self.bare.take();
        let (name, value) = split(argument.as_bytes());
        let name = std::str::from_utf8(name).ok().filter(|name| is_variable_name(name));
        if let (Some(name), Some(value)) = (name, value) {
            let value = OsString::from_vec(value.to_vec());
            self.result.assignments.push((name.to_owned(), value));
            return Ok(());
        }
        let shown = argument.display();
        let error = Error::new(Code::Usage, format!("`{shown}` is no option and no `NAME=VALUE`"));
        Err(match bare {
            Some(bare) => error
                .means(format!("The value of `--{bare}` comes after an equals sign."))
                .hint(format!("Write `--{bare}={shown}`."))
                .remedy(Remedy::Set(format!("--{bare}={shown}")))
                .remedy(Remedy::Drop(shown.to_string())),
            None => {
                let near = COMMANDS
                    .iter()
                    .find(|command| strsim::damerau_levenshtein(command, &shown.to_string()) <= 2);
                match near {
                    Some(command) => error.hint(format!("Did you mean the command `{command}`?")),
                    None => error.hint("`ucx-configure --help` lists options and commands."),
                }
            }
        })
    }
}

/// Splits at the first equals sign.
fn split(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}

/// `without-X` and `disable-X`, as what they deny.
fn negative(name: &str) -> Option<(&'static str, &str)> {
    name.strip_prefix("without-")
        .map(|stem| ("with", stem))
        .or_else(|| name.strip_prefix("disable-").map(|stem| ("enable", stem)))
}

fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn no_option(argument: &OsStr, near: Option<&str>) -> Error {
    let name = OsStr::from_bytes(split(argument.as_bytes()).0).to_string_lossy().into_owned();
    let what = format!("`{name}` is not an option");
    let Some(near) = near else {
        return Error::new(Code::Usage, what).hint("`ucx-configure --help` lists the options.");
    };
    let value = split(argument.as_bytes()).1.map(String::from_utf8_lossy);
    let meant = value.map_or_else(|| near.to_owned(), |value| format!("{near}={value}"));
    let error = Error::new(Code::NearMiss, what)
        .hint(format!("Did you mean `{near}`?"))
        .remedy(Remedy::Drop(argument.to_string_lossy().into_owned()))
        .remedy(Remedy::Set(meant));
    // Other packages' options may have any name, and pass unchecked.
    if family(name.trim_start_matches('-')).1.is_empty() {
        return error;
    }
    error.hint("If it is another package's, write `--disable-option-checking` before it.")
}

/// The option of ours that was probably meant, written the way it was typed:
/// a denial stays a denial.
fn nearest(name: &str, known: &BTreeMap<String, Known>) -> Option<String> {
    let name = name.replace('_', "-");
    let (denied, family, stem) = family(&name);
    let ours = known.values().filter_map(|option| {
        let (_, our_family, our_stem) = self::family(&option.name);
        // Short names such as `host` are near to too much.
        let distance = strsim::damerau_levenshtein(stem, our_stem);
        let near = distance <= (our_stem.len() / 4).min(2);
        let same_kind = family == our_family || (distance == 0 && !our_family.is_empty());
        (near && same_kind).then_some((distance, option))
    });
    let (distance, option) =
        ours.min_by_key(|(distance, option)| (*distance, option.name.clone()))?;
    let theirs = UCX_OPTIONS
        .iter()
        .map(|option| strsim::damerau_levenshtein(&name, option))
        .min()
        .unwrap_or(usize::MAX);
    if theirs < distance {
        return None;
    }
    Some(match (denied, option.name.split_once('-')) {
        (true, Some(("with", stem))) => format!("--without-{stem}"),
        (true, Some(("enable", stem))) => format!("--disable-{stem}"),
        _ => format!("--{}", option.name),
    })
}

/// Whether it denies, its family (`with`, `enable` or none), and the rest.
fn family(name: &str) -> (bool, &'static str, &str) {
    if let Some((family, stem)) = negative(name) {
        return (true, family, stem);
    }
    for family in ["with", "enable"] {
        if let Some(stem) = name.strip_prefix(family).and_then(|rest| rest.strip_prefix('-')) {
            return (false, family, stem);
        }
    }
    (false, "", name)
}
