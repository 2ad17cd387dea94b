//! `explain`: why the answers are what they are, and what a key of our tables
//! means.
//!
//! The answers are those of the build directory's last run; where options are
//! given, or there was no run, they are found out anew, and nothing is
//! written.

mod keys;

use std::fmt::Write as _;

use camino::Utf8Path;

use super::{print_line, remedy, report_file};
use crate::{
    cli::{ExplainOptions, Typed},
    engine,
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Kind, Scratch},
    },
    model::{Check, Component, CudaVersion, FEATURES, Feature, Module, Report, Verdict},
    packages::{self, About},
    probe::catalog::{PROBES, Probe, Stage},
    request::{self, Request},
    ui::{Silent, explain},
};

/// The options that say where to look, not what to find out.
const NO_WISHES: &[&str] = &["build-dir", "quiet"];

/// Runs it.
pub(super) fn run(typed: &Typed, options: &ExplainOptions, host: Host) -> Result<(), Error> {
    let item = options.item.as_deref();
    // `nvcc` is the component, and NVCC the variable.
    let is_part = Component::ALL.into_iter().any(|part| Some(part.key()) == item);
    let key = item.filter(|_| !is_part).and_then(keys::find);
    let source = match (Source::choose(typed, &host), &key) {
        // What a table alone explains needs no run.
        (Ok(Source::Fresh { asked: false }) | Err(_), Some(key)) => {
            return print_line(key.trim_end());
        }
        // Nor does it need one that nothing has that name.
        (Err(_), None) if item.is_some_and(|item| !is_known(item)) => {
            return Err(unknown(None, item.unwrap_or_default()));
        }
        (source, _) => source?,
    };
    let (report, about) = source.report(typed, host)?;
    let mut text = match item {
        None => about + &whole(&report),
        Some(item) => match of_item(&report, item) {
            Some(text) => about + &text,
            None if key.is_some() => String::new(),
            None => return Err(unknown(Some(&report), item)),
        },
    };
    if let Some(key) = key {
        text += &key;
    }
    print_line(text.trim_end())
}

/// Where the answers come from.
enum Source {
    /// The report of the build directory's last run.
    Report(Box<Report>, camino::Utf8PathBuf),
    /// They are found out now; `asked` where options ask for it.
    Fresh { asked: bool },
}

impl Source {
    fn choose(typed: &Typed, host: &Host) -> Result<Self, Error> {
        let is_wish = |name: &String| !NO_WISHES.contains(&name.as_str());
        if typed.occurrences.keys().any(is_wish) || !typed.assignments.is_empty() {
            return Ok(Self::Fresh { asked: true });
        }
        let build_dir = request::build_dir(typed.options.build_dir.as_deref(), host)?;
        let there = fs::kind(build_dir.join(report_file::FILE).as_std_path()) == Kind::File;
        if !there && typed.options.build_dir.is_none() {
            return Ok(Self::Fresh { asked: false });
        }
        let report = report_file::read(&build_dir)?;
        Ok(Self::Report(Box::new(report), build_dir))
    }

    /// The report, and a line that says whose it is.
    fn report(self, typed: &Typed, mut host: Host) -> Result<(Report, String), Error> {
        if let Self::Report(report, dir) = self {
            let line = command_line(&report);
            let about = format!("The last run in {dir}: ucx-configure{line}\n\n");
            return Ok((*report, about));
        }
        let request = request::resolve(typed, &host)?.request;
        let scratch = Scratch::new(None)?;
        host.runner.set_scratch(scratch.path().to_owned());
        let request = Request { cache: false, ..request };
        let engine::Outcome { mut report, error } = engine::configure(&request, &host, &mut Silent);
        host.runner.interrupt.check()?;
        super::remarks::record(&mut report, &request, error.as_ref());
        Ok((report, "Found out now; nothing is written.\n\n".to_owned()))
    }
}

fn command_line(report: &Report) -> String {
    let words = report.command_line.iter();
    words.map(|word| format!(" {}", remedy::quoted(word).unwrap_or_else(|| word.clone()))).collect()
}

/// Everything: the overview, then the chain below the first thing that was
/// asked for and is missing.
fn whole(report: &Report) -> String {
    let mut text = explain::overview(report);
    let missing = explain::first_missing(report)
        .or_else(|| report.finding(Component::GdrCopy).filter(|it| it.verdict == Verdict::No));
    if let Some(finding) = missing {
        text.push('\n');
        text += &of_component(report, finding.component);
    }
    text.push_str("\n`ucx-configure explain ITEM` says more of one: ");
    let items: Vec<&str> = Component::ALL.iter().map(|component| component.key()).collect();
    let _ = writeln!(text, "{}, a feature, a header, a library or a question.", items.join(", "));
    text
}

/// What the run has to say of an item; none where it knows none of that name.
fn of_item(report: &Report, item: &str) -> Option<String> {
    let (name, item) = (item, item.to_lowercase());
    let item = item.as_str();
    if item == "cuda" {
        let parts = explain::CUDA_PARTS.iter().map(|part| of_component(report, *part));
        let verdict = if report.has_cuda() { "yes" } else { "no" };
        return Some(format!("CUDA: {verdict}\n{}", parts.collect::<Vec<_>>().join("\n")));
    }
    if let Some(component) = Component::ALL.into_iter().find(|part| part.key() == item) {
        return Some(of_component(report, component));
    }
    if let Some(feature) = feature_of(item) {
        let mut text = report.feature(feature.id).map(explain::of_feature).unwrap_or_default();
        let asked = PROBES.iter().find(|probe| probe.feature == Some(feature.id));
        if let Some(check) = asked.and_then(|probe| check(report, probe.id)) {
            text += &of_check(report, check);
        }
        return Some(text);
    }
    if let Some(module) = Module::ALL.into_iter().find(|module| module.library() == item) {
        return Some(of_module(report, module));
    }
    let probe = PROBES.iter().find(|probe| is_about(probe.id, probe.stage, item));
    let id = probe.map_or(item, |probe| probe.id);
    if let Some(check) = check(report, id) {
        return Some(of_check(report, check));
    }
    probe.map(|probe| not_asked(report, probe)).or_else(|| of_output(report, name))
}

/// The feature of a name.
fn feature_of(item: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|row| row.key == item || row.cfg == item)
}

/// Whether a run may have something to say of an item, whatever it came to;
/// the names in its outputs are known by their form alone.
fn is_known(item: &str) -> bool {
    let is_output = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    if item.contains('_') && item.chars().all(is_output) {
        return true;
    }
    let item = item.to_lowercase();
    item == "cuda"
        || Component::ALL.into_iter().any(|part| part.key() == item)
        || Module::ALL.into_iter().any(|module| module.library() == item)
        || feature_of(&item).is_some()
        || PROBES.iter().any(|probe| is_about(probe.id, probe.stage, &item))
}

/// A question that this run did not put, and why.
fn not_asked(report: &Report, probe: &Probe) -> String {
    let mut text = format!("checking {}... not asked [{}]\n", probe.label, probe.id);
    let part = match probe.component {
        Some(Component::GdrCopy) if report.has_cuda() => report.finding(Component::GdrCopy),
        _ => explain::first_missing(report),
    };
    match part {
        Some(part) => {
            text += "  It was not looked for, since something before it is not there:\n";
            let _ = writeln!(text, "  {}", explain::of_component(part));
        }
        None => text += "  It was not looked for: nothing of this run stands on it.\n",
    }
    text
}

/// A name in what a run writes: a substitution, a conditional or a macro.
fn of_output(report: &Report, item: &str) -> Option<String> {
    let answers = &report.answers;
    let names = answers.substitutions.iter().map(|row| (row.name.as_str(), "substitution"));
    let conditionals = answers.conditionals.iter().map(|row| (row.name.as_str(), "conditional"));
    let defines = answers.defines.iter().map(|row| (row.name.as_str(), "macro of config.h"));
    let (name, what) = conditionals
        .chain(names)
        .chain(defines)
        .find(|(name, _)| name.eq_ignore_ascii_case(item))?;
    let value = super::print::value(report, name).ok()?;
    let value = if value.is_empty() { "(empty)" } else { &value };
    Some(format!("{what} {name}\n  {value}\n"))
}

/// Whether a question is about a header or a library of that name.
fn is_about(id: &str, stage: Stage, item: &str) -> bool {
    match stage {
        Stage::Header(name) => name == item,
        Stage::Link(libraries) => {
            let bare = item.strip_prefix("lib").unwrap_or(item);
            let bare = bare.strip_suffix(".so").or_else(|| bare.strip_suffix(".a")).unwrap_or(bare);
            item != "gdrapi.h" && libraries.first() == Some(&bare) && id.contains(".library.")
        }
        _ => false,
    }
}

fn check<'a>(report: &'a Report, id: &str) -> Option<&'a Check> {
    report.checks.iter().find(|check| check.id == id)
}

/// A component and the questions that decided about it.
fn of_component(report: &Report, component: Component) -> String {
    let mut text = String::new();
    if let Some(finding) = report.finding(component) {
        text = explain::of_component(finding) + "\n";
    }
    let checks = report.checks.iter().filter(|check| check.component == Some(component));
    let (good, bad): (Vec<&Check>, Vec<&Check>) = checks.partition(|check| check.verdict.is_yes());
    for check in bad.iter().chain(&good) {
        text += &of_check(report, check);
    }
    text
}

/// A question with what its probe is for and the packages that may be missing.
fn of_check(report: &Report, check: &Check) -> String {
    let mut text = explain::of_check(check);
    if let Some(probe) = PROBES.iter().find(|probe| probe.id == check.id) {
        let _ = writeln!(text, "  the probe: probes/{}", probe.file);
    }
    let item = engine::strict::missing(&check.id).filter(|_| check.verdict == Verdict::No);
    if let Some(item) = item {
        let about = About { cuda: release(report), ..About::default() };
        text.push_str("  the packages that have it\n");
        for (manager, command) in packages::everywhere(item, &about) {
            let _ = writeln!(text, "    {:<31} {command}", format!("{}:", manager.title()));
        }
    }
    text
}

/// The release of the CUDA that was looked at, be it complete or not.
fn release(report: &Report) -> Option<CudaVersion> {
    let versions = report.toolkit.as_ref().map(|toolkit| &toolkit.versions);
    versions.and_then(|versions| versions.cuda_h).or_else(|| {
        let said = check(report, "tool.versions")?.detail.as_deref()?;
        said.strip_prefix("CUDA ")?.split(',').next()?.parse().ok()
    })
}

fn of_module(report: &Report, module: Module) -> String {
    let name = module.library();
    if report.modules.contains(&module) {
        return format!("{name}: built: what it needs is there\n");
    }
    let part = match module {
        Module::UctCudaGdrcopy if report.has_cuda() => Some(Component::GdrCopy),
        _ => explain::first_missing(report).map(|finding| finding.component),
    };
    let below = part.map(|part| of_component(report, part)).unwrap_or_default();
    format!("{name}: not built, since something that it needs is not there\n{below}")
}

/// Nothing has that name.
fn unknown(report: Option<&Report>, item: &str) -> Error {
    let error = Error::new(Code::Usage, format!("`explain {item}`: there is nothing of that name"));
    let names = Component::ALL.iter().map(|part| part.key().to_owned());
    let names = names.chain(FEATURES.iter().map(|row| row.key.to_owned()));
    let names = names.chain(keys::all()).chain(
        report.into_iter().flat_map(|report| report.checks.iter().map(|check| check.id.clone())),
    );
    let near = names
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &item.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.len() / 4).clamp(1, 3))
        .min();
    match near {
        Some((_, near)) => error.hint(format!("Did you mean `explain {near}`?")),
        None => error.hint("`ucx-configure explain` shows all of a run; `explain KEYS` lists the keys of the tables."),
    }
}

/// What the build directory is called in a command line; empty where it is the
/// working directory.
pub(super) fn command_for(build_dir: &Utf8Path, host: &Host) -> String {
    let dir = match build_dir == host.cwd {
        true => return "ucx-configure explain".to_owned(),
        // As it was typed, most likely.
        false => build_dir.strip_prefix(&host.cwd).unwrap_or(build_dir),
    };
    let quoted = shlex::try_quote(dir.as_str());
    let dir = quoted.map_or_else(|_| dir.to_string(), std::borrow::Cow::into_owned);
    format!("ucx-configure explain -B {dir}")
}
