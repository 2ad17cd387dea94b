//! From what was typed to what is meant.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    Bindings, Location, ProbeMode, Remark, Request, Source, Sourced, Variable, Want,
    directories::{self, Named},
    given, parts, remarks,
};
use crate::{
    cli::{Command, OptionChecking, Typed},
    env_vars,
    error::{Code, Error, Remedy},
    host::Host,
    model::{CudaVersion, INSTALL_DIRS, Mode},
};

/// Where state between runs is kept, in the build directory.
pub const STATE_DIR: &str = ".ucx-configure";

/// A link that has to be made before the run: outputs name a directory whose
/// own name no text file can carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads, absolute.
    pub target: PathBuf,
    /// Where it is.
    pub link: Utf8PathBuf,
}

/// A request, and what has to be done before it can be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The request.
    pub request: Request,
    /// Links to make.
    pub links: Vec<Link>,
}

/// Says what a command line means.
///
/// # Errors
///
/// It cannot be met whatever is installed: a value that is none, a directory
/// that does not exist.
pub fn resolve(typed: &Typed, host: &Host) -> Result<Resolved, Error> {
    let mut resolver = Resolver {
        typed,
        host,
        mode: mode(typed)?,
        state_dir: None,
        remarks: Vec::new(),
        links: Vec::new(),
    };
    refuse_unknown_options(typed)?;
    time_limit(host)?;
    let build_dir = build_dir(typed.options.build_dir.as_deref(), host)?;
    if typed.command == Command::Configure {
        resolver.state_dir = Some(build_dir.join(STATE_DIR));
    }
    resolver.remarks = remarks::about(typed, resolver.state_dir.as_deref());
    resolver.request(build_dir)
}

/// The build directory, absolute.
///
/// # Errors
///
/// It is empty, or no text file can carry it.
pub fn build_dir(option: Option<&OsStr>, host: &Host) -> Result<Utf8PathBuf, Error> {
    let Some(value) = option else {
        return directories::plain("-B", host.cwd.as_os_str()).map_err(|error| {
            error.means("It is the working directory, where outputs go without `-B DIR`.")
        });
    };
    if value.is_empty() {
        return Err(empty("-B", host, None));
    }
    let path = directories::plain("-B", value)?;
    // Without a remark: `-B ~/x` is expanded by the shell, and the path is
    // shown with every file that is written.
    let path = directories::expand_tilde("-B", path, host, &mut Vec::new());
    // The working directory, or HOME, may bring in what was not typed.
    directories::plain("-B", host.absolute(&path).as_os_str())
}

/// How long one process may take, if the user says so.
///
/// # Errors
///
/// It is no number of seconds.
pub fn time_limit(host: &Host) -> Result<Option<Duration>, Error> {
    let name = env_vars::UCX_CONFIGURE_TIME_LIMIT;
    let Some(value) = host.env.get_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match value.to_str().and_then(|text| text.trim().parse().ok()) {
        Some(seconds) if seconds > 0 => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(Error::new(
            Code::Usage,
            format!("`{name}={}` is no number of seconds", value.display()),
        )
        .means("One compiler run may take so long; 60 seconds if the variable is not set.")
        .hint(format!("Write a whole number greater than 0, as in `{name}=120`, or unset it."))),
    }
}

fn mode(typed: &Typed) -> Result<Mode, Error> {
    match &typed.options.compat {
        None => Ok(Mode::Strict),
        Some(version) if version == "v1.19.0" => Ok(Mode::Compat),
        Some(version) => {
            Err(Error::new(Code::Usage, format!("`--compat={}` is not known", version.display()))
                .means("The behaviour of one release was recorded, v1.19.0.")
                .hint("Write `--compat=v1.19.0`.")
                .remedy(Remedy::Set("--compat=v1.19.0".to_owned())))
        }
    }
}

fn refuse_unknown_options(typed: &Typed) -> Result<(), Error> {
    if typed.foreign.is_empty() || typed.option_checking != OptionChecking::Fatal {
        return Ok(());
    }
    let list = typed.foreign.join(", ");
    Err(Error::new(Code::UnknownOption, format!("unrecognized options: {list}"))
        .means("`--enable-option-checking=fatal` makes this an error.")
        .hint("Leave them out: they have no effect here, whatever they do in UCX's own configure."))
}

/// An option with an empty value: nearly always a variable that is not set.
pub(super) fn empty(option: &str, host: &Host, without: Option<&str>) -> Error {
    let mut error = Error::new(Code::EmptyValue, format!("`{option}=` has no value"))
        .means(format!("Most likely the variable in `{option}=$VARIABLE` is not set."));
    if option == "--with-cuda" {
        let names = [env_vars::CUDA_HOME, env_vars::CUDA_PATH, env_vars::CUDA_ROOT];
        let (set, unset): (Vec<&str>, Vec<&str>) = names
            .into_iter()
            .partition(|name| host.env.get(name).is_some_and(|value| !value.is_empty()));
        let list = unset.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if !list.is_empty() {
            error = error.means(format!("Not set in this environment: {list}."));
        }
        if let Some(name) = set.first() {
            let value = host.env.get(name).unwrap_or_default();
            error = error
                .hint(format!("`{name}` is set: write `{option}=${name}`."))
                .remedy(Remedy::Set(format!("{option}={value}")));
        }
    }
    match without {
        Some(without) => error
            .hint(format!("Name a directory, or write `{option}` (look for it) or `{without}`.")),
        None => error.hint("Name a directory."),
    }
}

pub(super) struct Resolver<'a> {
    pub(super) typed: &'a Typed,
    pub(super) host: &'a Host,
    pub(super) mode: Mode,
    state_dir: Option<Utf8PathBuf>,
    pub(super) remarks: Vec<Remark>,
    links: Vec<Link>,
}

impl Resolver<'_> {
    fn request(mut self, build_dir: Utf8PathBuf) -> Result<Resolved, Error> {
        let options = &self.typed.options;
        let mut cuda = self.want("with-cuda", options.with_cuda.as_deref(), true)?;
        let cuda_parts = self.cuda_parts()?;
        self.demand_parts(&mut cuda, &cuda_parts)?;
        let gdrcopy = self.want("with-gdrcopy", options.with_gdrcopy.as_deref(), false)?;
        let gdrcopy_libdir = self.libdir()?;
        let request = Request {
            mode: self.mode,
            command_line: lossy(&self.typed.arguments),
            cuda,
            cuda_parts,
            max_driver: parts::max_driver(options.max_driver.as_deref(), self.host)?,
            gdrcopy,
            gdrcopy_libdir,
            iodemo_cuda: self.switch(
                "--with-iodemo-cuda",
                options.with_iodemo_cuda.as_deref(),
                false,
            )?,
            bistro: self.switch("--enable-bistro", options.enable_bistro.as_deref(), true)?,
            variables: self.variables()?,
            host: self.triplet("--host", options.host.as_deref())?,
            build: self.triplet("--build", options.build.as_deref())?,
            install_dirs: self.install_dirs()?,
            build_dir,
            state_dir: self.state_dir.clone(),
            build_runtime: !options.no_build && self.typed.command == Command::Configure,
            cache: !options.no_cache,
            probe_mode: probe_mode(options.probe_mode.as_deref())?,
            rebuild: options.rebuild,
            bindings: bindings(options.bindings.as_deref())?,
            offline: options.offline,
            quiet: options.quiet,
            given: given::read(options.answers.as_deref(), self.mode, self.host)?,
            remarks: std::mem::take(&mut self.remarks),
        };
        Ok(Resolved { request, links: self.links })
    }

    /// A machine's name, as in `aarch64-linux-gnu`: words that hyphens part.
    fn triplet(&self, option: &str, value: Option<&OsStr>) -> Result<Option<String>, Error> {
        // To the original an empty one is none.
        let value = value.filter(|value| !value.is_empty() || self.mode == Mode::Strict);
        let Some(value) = value else { return Ok(None) };
        let example = format!("Write it as in `{option}=aarch64-linux-gnu`, or leave it out.");
        if value.is_empty() {
            return Err(Error { hints: vec![example], ..empty(option, self.host, None) });
        }
        let text = directories::plain(option, value)?.into_string();
        let is_word = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "._+".contains(c))
        };
        let parts: Vec<&str> = text.split('-').collect();
        if (2..=4).contains(&parts.len()) && parts.into_iter().all(is_word) {
            return Ok(Some(text));
        }
        Err(Error::new(Code::Usage, format!("`{option}={text}` names no machine"))
            .means("It is a triplet: processor, system and ABI with hyphens between them.")
            .hint(example))
    }

    pub(super) fn source(&self, option: &str) -> Source {
        match self.typed.occurrences.get(option).and_then(|given| given.typed.last()) {
            Some(typed) => Source::Argument(typed.to_string_lossy().into_owned()),
            None => Source::Default,
        }
    }

    /// Reads `--with-X`: no, guess, yes, nothing, or where it is.
    fn want<V>(
        &mut self,
        name: &str,
        value: Option<&OsStr>,
        has_wheels: bool,
    ) -> Result<Sourced<Want<V>>, Error>
    where
        V: FromStr,
    {
        let Some(value) = value else { return Ok(Sourced::default_value(Want::Guess)) };
        let option = format!("--{name}");
        let source = self.source(name);
        let want = match value.to_str() {
            Some("yes") => Want::Yes,
            Some("no") => Want::No,
            // What people write for these; to the original they are directories.
            Some("on" | "enabled" | "true" | "1") if self.mode == Mode::Strict => Want::Yes,
            Some("off" | "disabled" | "false" | "0") if self.mode == Mode::Strict => Want::No,
            Some("guess") => Want::Guess,
            Some("") if self.mode == Mode::Compat => Want::Empty,
            Some("") => {
                let without = format!("--{}", name.replacen("with", "without", 1));
                return Err(empty(&option, self.host, Some(&without)));
            }
            Some(text) => match made_toolkit(&option, text, has_wheels)? {
                Some(location) => Want::At(location),
                None => Want::At(Location::Dir(self.directory(&option, value)?)),
            },
            None => Want::At(Location::Dir(self.directory(&option, value)?)),
        };
        Ok(Sourced { value: want, source })
    }

    fn libdir(&mut self) -> Result<Option<Sourced<Utf8PathBuf>>, Error> {
        let Some(value) = &self.typed.options.with_gdrcopy_libdir else { return Ok(None) };
        let option = "--with-gdrcopy-libdir";
        if value.is_empty() {
            return match self.mode {
                Mode::Compat => Ok(None),
                Mode::Strict => Err(empty(option, self.host, None)),
            };
        }
        let value = self.directory(option, value)?;
        Ok(Some(Sourced { value, source: self.source("with-gdrcopy-libdir") }))
    }

    /// A directory that has to be there. The original looks at nothing, so
    /// compat mode only refuses what outputs cannot carry.
    pub(super) fn directory(&mut self, option: &str, value: &OsStr) -> Result<Utf8PathBuf, Error> {
        match directories::named(option, value)? {
            Named::Plain(path) if self.mode == Mode::Compat => Ok(path),
            Named::Plain(path) => {
                let path = directories::expand_tilde(option, path, self.host, &mut self.remarks);
                directories::plain(option, self.host.absolute(&path).as_os_str())?;
                directories::must_exist(option, &path, self.host)?;
                Ok(path)
            }
            Named::Odd(path) => self.link(option, path),
        }
    }

    /// Names a directory through a link in the state directory.
    fn link(&mut self, option: &str, path: PathBuf) -> Result<Utf8PathBuf, Error> {
        use crate::host::fs::{Kind, kind};
        let Some(state_dir) = &self.state_dir else {
            return Err(directories::not_utf8(option, &path));
        };
        let target = self.host.cwd.as_std_path().join(&path);
        if kind(&target) != Kind::Directory {
            return Err(Error::new(
                Code::NoSuchDirectory,
                format!("`{option}`: the directory `{}` does not exist", path.display()),
            )
            .means("Its name is not UTF-8; it was looked for byte by byte."));
        }
        let link = state_dir.join(option.trim_start_matches('-'));
        self.remarks.push(remarks::linked(option, &path, &link));
        self.links.push(Link { target, link: link.clone() });
        Ok(link)
    }

    /// Reads a yes or a no. To the original everything but `no` is a yes.
    fn switch(&self, option: &str, value: Option<&OsStr>, default: bool) -> Result<bool, Error> {
        match value.map(OsStr::to_str) {
            None => Ok(default),
            Some(Some("yes")) => Ok(true),
            Some(Some("no")) => Ok(false),
            Some(_) if self.mode == Mode::Compat => Ok(true),
            Some(Some("")) => Err(empty(option, self.host, None)),
            Some(_) => Err(Error::new(Code::Usage, format!("`{option}` takes `yes` or `no`"))),
        }
    }

    fn variables(&mut self) -> Result<BTreeMap<Variable, Sourced<String>>, Error> {
        let mut all = BTreeMap::new();
        for variable in Variable::ALL {
            let name = variable.name();
            let argument = self.typed.assignments.iter().rev().find(|(other, _)| other == name);
            let (value, source): (&OsStr, Source) = match (argument, self.host.env.get_os(name)) {
                (Some((_, value)), _) => {
                    (value, Source::Argument(format!("{name}={}", value.display())))
                }
                (None, Some(value)) => (value, Source::Environment(name.to_owned())),
                (None, None) => continue,
            };
            let Some(text) = value.to_str() else {
                return Err(directories::not_utf8(name, value.as_ref()));
            };
            all.insert(variable, Sourced { value: text.to_owned(), source });
        }
        self.nvcc(&mut all)?;
        Ok(all)
    }

    fn install_dirs(&mut self) -> Result<BTreeMap<String, String>, Error> {
        let defaults = INSTALL_DIRS.iter();
        let mut all: BTreeMap<String, String> =
            defaults.map(|row| (row.variable.to_owned(), row.default.to_owned())).collect();
        let given = &self.typed.install_dirs;
        all.extend(given_dirs(given, self.mode, self.host, &mut self.remarks)?);
        Ok(all)
    }
}

/// The installation directories that were given, by their variables.
///
/// # Errors
///
/// One is empty, or is neither absolute nor begins with another one's variable.
pub fn given_dirs(
    given: &BTreeMap<&'static str, OsString>,
    mode: Mode,
    host: &Host,
    remarks: &mut Vec<Remark>,
) -> Result<BTreeMap<String, String>, Error> {
    let rows = INSTALL_DIRS.iter().filter_map(|row| Some((row, given.get(row.option)?)));
    rows.map(|(row, value)| {
        Ok((row.variable.to_owned(), install_dir(row.option, value, mode, host, remarks)?))
    })
    .collect()
}

/// An installation directory: absolute, or beginning with another one's
/// variable. Autoconf takes an empty prefix for the root, and no other empty
/// one.
fn install_dir(
    name: &str,
    value: &OsStr,
    mode: Mode,
    host: &Host,
    remarks: &mut Vec<Remark>,
) -> Result<String, Error> {
    let option = format!("--{name}");
    if value.is_empty() {
        return match name {
            "prefix" | "exec-prefix" => Ok(String::new()),
            _ => Err(empty(&option, host, None)),
        };
    }
    let mut path = directories::plain(&option, value)?;
    if mode == Mode::Strict {
        path = directories::expand_tilde(&option, path, host, remarks);
    }
    if !path.as_str().starts_with(['/', '$']) {
        return Err(Error::new(
            Code::Usage,
            format!("`{option}` needs an absolute directory, and `{path}` is none"),
        )
        .hint(format!("Write `{option}={}`.", host.absolute(&path)))
        .remedy(Remedy::Set(format!("{option}={}", host.absolute(&path)))));
    }
    let trimmed = path.as_str().trim_end_matches('/');
    Ok(if trimmed.is_empty() { "/" } else { trimmed }.to_owned())
}

/// Reads `stub:VERSION` and `wheel:VERSION`; anything else is a directory.
fn made_toolkit<V: FromStr>(
    option: &str,
    text: &str,
    has_wheels: bool,
) -> Result<Option<Location<V>>, Error> {
    let (kind, version) = match text.split_once(':') {
        Some((kind @ ("stub" | "wheel"), version)) => (kind, version),
        None if matches!(text, "stub" | "wheel") => (text, ""),
        _ => return Ok(None),
    };
    if kind == "wheel" && !has_wheels {
        return Err(Error::new(
            Code::UnknownVersion,
            format!("`{option}={text}`: no wheels of it"),
        )
        .hint(format!("Name its directory, or write `{option}=stub:2.5`."))
        .remedy(Remedy::Set(format!("{option}=stub:2.5"))));
    }
    let Ok(parsed) = version.parse::<V>() else {
        let example = if has_wheels { CudaVersion::new(12, 5).to_string() } else { "2.5".into() };
        let what = match version {
            "" => "no version is named".to_owned(),
            _ => format!("`{version}` is not a version"),
        };
        return Err(Error::new(Code::UnknownVersion, format!("`{option}={text}`: {what}"))
            .hint(format!("Write `{option}={kind}:{example}`."))
            .remedy(Remedy::Set(format!("{option}={kind}:{example}"))));
    };
    Ok(Some(if kind == "stub" { Location::Stub(parsed) } else { Location::Wheel(parsed) }))
}

fn bindings(value: Option<&OsStr>) -> Result<Bindings, Error> {
    match value.map(OsStr::to_str) {
        None | Some(Some("kept")) => Ok(Bindings::Kept),
        Some(Some("generate")) => Ok(Bindings::Generate),
        Some(_) => Err(Error::new(Code::Usage, "`--bindings` takes `kept` or `generate`")),
    }
}

fn probe_mode(value: Option<&OsStr>) -> Result<ProbeMode, Error> {
    match value.map(OsStr::to_str) {
        None | Some(Some("batch")) => Ok(ProbeMode::Batch),
        Some(Some("single")) => Ok(ProbeMode::Single),
        Some(_) => Err(Error::new(Code::Usage, "`--probe-mode` takes `batch` or `single`")),
    }
}

fn lossy(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

impl Link {
    /// Makes the link.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn make(&self) -> Result<(), Error> {
        let parent = self.link.parent().unwrap_or(Utf8Path::new("."));
        crate::host::fs::create_dir_all(parent)?;
        crate::host::fs::symlink_os(self.target.as_os_str(), &self.link).map(drop)
    }
}
