//! `--compat=v1.19.0` against what UCX's own configure did, case by case.
//!
//! The recorded runs (`fixtures/oracle/`) were made on real toolkits. On those
//! (`UCX_CONFIGURE_REAL_TOOLKITS=1`) every case is held against its recording;
//! without them nearly every case is, on trees in which our stub toolkits
//! stand in for the real ones.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use ucx_configure::{
    cli::{self, Parsed},
    emit,
    engine::{Outcome, compat},
    host::{
        Host,
        env::Snapshot,
        fs,
        process::{Runner, find_program},
    },
    model::{Check, Component, DefineValue, Family, MessageKind, Report, SubstValue},
    request::resolve,
    ui::Silent,
};

use crate::{
    recorded_ways,
    trees::{Trees, are_asked_for, on_real_toolkits, stand_in, waived},
};

/// One recorded run.
#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    rc: u8,
    cuda_checks: Vec<String>,
    gdr_checks: Vec<String>,
    messages: Vec<String>,
    defines: BTreeMap<String, String>,
    subst: BTreeMap<String, String>,
    conditionals: BTreeMap<String, Option<bool>>,
    summary: Vec<String>,
}

/// How many cases there are.
const CASES: usize = 100;

/// Made on a machine with a driver: nobody can make its tree without one.
const NO_TREE: &str = "var-realdriver";

/// Recorded macros that have nothing to do with CUDA and gdrcopy.
const OTHER_DEFINES: [&str; 6] = [
    "HAVE_LIBGEN_H",
    "HAVE_LIBRT",
    "test_MODULES",
    "ucs_MODULES",
    "uct_ib_MODULES",
    "uct_rocm_MODULES",
];

/// Macros of ours that were not recorded.
const NOT_RECORDED: [&str; 2] = ["HAVE_DECL_SYS_", "WITH_IODEMO_CUDA"];

/// A module that is found elsewhere in UCX.
const OTHER_MODULE: &str = "cma";

/// The recorded runs, with the directories of these trees.
pub(crate) fn cases(trees: &Trees) -> Vec<Case> {
    let recorded = include_str!("../../fixtures/oracle/cases.jsonl");
    let path = search_path();
    let places = [
        ("{TK}", trees.toolkits().into_string()),
        ("{VAR}", trees.variations().into_string()),
        ("{GDR}", trees.gdrcopies().into_string()),
        ("{ROOT}", trees.root.to_string()),
        ("{PATH}", path),
    ];
    let placed =
        places.iter().fold(recorded.to_owned(), |text, (mark, place)| text.replace(mark, place));
    let cases: Vec<Case> = placed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cases.len(), CASES);
    cases
}

/// PATH of this machine, without an nvcc that may be on it.
pub(crate) fn search_path() -> String {
    let dirs = Snapshot::take().path_dirs();
    let kept = dirs.iter().filter(|dir| !dir.join("nvcc").exists());
    kept.map(|dir| dir.as_str()).collect::<Vec<_>>().join(":")
}

/// Runs a case as the command `check` would.
fn run(case: &Case, trees: &Trees) -> Outcome {
    // The relative case was recorded four levels below the root.
    let build_dir = trees.root.join("build").join(&case.id).join("a/b");
    fs::create_dir_all(&build_dir).unwrap();
    check(&build_dir, &case.args, &case.env)
}

/// Runs `check --compat=v1.19.0` in a directory, with a bare environment.
pub(crate) fn check(dir: &Utf8Path, args: &[String], more: &BTreeMap<String, String>) -> Outcome {
    let mut env = BTreeMap::from([("PATH".to_owned(), search_path())]);
    env.extend(more.clone());
    let env = Snapshot::from_pairs(env);
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: dir.to_owned(), runner };
    let arguments: Vec<OsString> = ["check", "--compat=v1.19.0"]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .map(OsString::from)
        .collect();
    let Parsed::Run(typed) = cli::parse(&arguments).unwrap() else { panic!("no run") };
    let request = resolve(&typed, &host).unwrap().request;
    compat::configure(&request, &host, &mut Silent)
}

/// Where a run and its recording differ, a line each.
fn differences(case: &Case, outcome: &Outcome) -> Vec<String> {
    let report = &outcome.report;
    let mut found = Vec::new();
    let mut hold = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            found.push(format!("  {what}\n    ours:   {ours}\n    theirs: {theirs}"));
        }
    };
    let rc = outcome.error.as_ref().map_or(0, |error| error.exit().code());
    hold("exit code", rc.to_string(), case.rc.to_string());
    let (gdr, cuda) = progress(report);
    hold("CUDA checks", format!("{cuda:?}"), format!("{:?}", case.cuda_checks));
    hold("gdrcopy checks", format!("{gdr:?}"), format!("{:?}", case.gdr_checks));
    hold("messages", format!("{:?}", messages(report)), format!("{:?}", case.messages));
    hold("macros", format!("{:?}", defines(report)), format!("{:?}", recorded_defines(case)));
    for (name, theirs) in &case.subst {
        hold(name, format!("{:?}", substitution(report, name)), format!("{:?}", mine(theirs)));
    }
    for (name, theirs) in &case.conditionals {
        hold(name, format!("{:?}", report.answers.conditional(name)), format!("{theirs:?}"));
    }
    if case.rc == 0 {
        let (ours, theirs) = (site(report), recorded_site(case));
        hold("site file", format!("{ours:?}"), format!("{theirs:?}"));
        let ours: Vec<String> =
            compat::summary_lines(report).iter().map(|line| words(line)).collect();
        hold("summary", format!("{ours:?}"), format!("{:?}", recorded_summary(case)));
    }
    found
}

/// The progress lines about gdrcopy, and all others.
fn progress(report: &Report) -> (Vec<String>, Vec<String>) {
    let asked = report.checks.iter().filter(|check| check.family == Family::Configure);
    let (gdr, cuda): (Vec<&Check>, Vec<&Check>) =
        asked.partition(|check| check.component == Some(Component::GdrCopy));
    let line = |check: &&Check| {
        let answer = check.detail.as_deref().filter(|_| check.detail_is_answer);
        format!("checking {}... {}", check.label, answer.unwrap_or(check.verdict.word()))
    };
    (gdr.iter().map(line).collect(), cuda.iter().map(line).collect())
}

/// The original's messages; remarks of ours about the command line (`W`, `N`)
/// are not among them.
pub(crate) fn messages(report: &Report) -> Vec<String> {
    let originals = report.messages.iter().filter(|message| !message.code.starts_with(['W', 'N']));
    let line = |kind, text: &str| match kind {
        MessageKind::Note => format!("configure: {text}"),
        MessageKind::Warning => format!("configure: WARNING: {text}"),
        MessageKind::Error => format!("configure: error: {text}"),
    };
    originals.map(|message| line(message.kind, &message.text)).collect()
}

/// The answers that the emitted site file gives to autoconf.
fn site(report: &Report) -> BTreeMap<String, String> {
    let text = (emit::find("config-site").unwrap().render)(report).unwrap();
    let answers = text.lines().filter(|line| line.starts_with("ac_cv_"));
    answers
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect()
}

/// What autoconf's cache held at the end of the recorded run, by the names
/// that it makes of its questions.
fn recorded_site(case: &Case) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    let name = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    for line in case.cuda_checks.iter().chain(&case.gdr_checks) {
        let (label, answer) = line.strip_prefix("checking ").unwrap().split_once("... ").unwrap();
        let mut add = |variable: String| answers.insert(variable, answer.to_owned());
        if let Some(symbol) = label.strip_suffix(" is declared") {
            add(format!("ac_cv_have_decl_{}", symbol.strip_prefix("whether ").unwrap()));
        } else if let Some((function, library)) =
            label.strip_prefix("for ").and_then(|label| label.split_once(" in -l"))
        {
            add(format!("ac_cv_lib_{}_{function}", name(library)));
            // Whoever mends the blank has the same answer.
            if library.ends_with(' ') {
                add(format!("ac_cv_lib_{}_{function}", name(library.trim_end())));
            }
        } else if label == "for nvcc" && answer.starts_with('/') {
            add("ac_cv_path_NVCC".to_owned());
        } else if let Some(header) = label.strip_prefix("for ").filter(|name| name.ends_with(".h"))
        {
            add(format!("ac_cv_header_{}", name(header)));
        }
    }
    answers
}

fn defines(report: &Report) -> BTreeMap<String, String> {
    report
        .answers
        .defines
        .iter()
        .filter(|define| !NOT_RECORDED.iter().any(|prefix| define.name.starts_with(prefix)))
        .filter_map(|define| match &define.value {
            DefineValue::Defined(value) => Some((define.name.clone(), value.clone())),
            DefineValue::Undefined => None,
        })
        .collect()
}

fn recorded_defines(case: &Case) -> BTreeMap<String, String> {
    let ours = case.defines.iter().filter(|(name, _)| !OTHER_DEFINES.contains(&name.as_str()));
    ours.map(|(name, value)| (name.clone(), mine(value))).collect()
}

pub(crate) fn substitution(report: &Report, name: &str) -> String {
    match report.answers.substitution(name).map(|substitution| &substitution.value) {
        Some(SubstValue::Text(text)) => text.clone(),
        other => format!("{other:?}"),
    }
}

/// A recorded module list without the module that is not ours to find.
fn mine(value: &str) -> String {
    value.replace(&format!(":{OTHER_MODULE}"), "")
}

fn recorded_summary(case: &Case) -> Vec<String> {
    let others = ["Bindings:", "UCS modules:", "ROCM modules:", "IB modules:"];
    let lines = case.summary.iter().map(|line| words(line.trim_start_matches("configure:")));
    lines
        .filter(|line| !others.iter().any(|other| line.starts_with(other)))
        .map(|line| line.replace(&format!(" {OTHER_MODULE}"), ""))
        .collect()
}

/// The words of a line, one blank between them.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What became of all cases.
#[derive(Debug, Default)]
struct Tally {
    equal: usize,
    waived: Vec<String>,
    different: Vec<String>,
}

/// Runs all cases on two threads; `waive` says why one cannot be run.
fn tally(trees: &Trees, waive: impl Fn(&Case) -> Option<&'static str>) -> Tally {
    let cases = cases(trees);
    let mut tally = Tally::default();
    let mut runnable = Vec::new();
    for case in &cases {
        match waive(case) {
            Some(why) => tally.waived.push(waived(&format!("parity of {}", case.id), why)),
            None => runnable.push(case),
        }
    }
    let next = AtomicUsize::new(0);
    let (equal, different) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = runnable.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = differences(case, &run(case, trees));
            if found.is_empty() {
                equal.fetch_add(1, Ordering::Relaxed);
            } else {
                different.lock().unwrap().push(format!("{}\n{}", case.id, found.join("\n")));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    tally.equal = equal.into_inner();
    tally.different = different.into_inner().unwrap();
    tally
}

/// Why a case cannot be run wherever its trees come from.
fn not_here(case: &Case) -> Option<&'static str> {
    let needs_clang = case.args.iter().any(|argument| argument == "CC=clang");
    if case.id == NO_TREE {
        Some("its tree needs an installed driver")
    } else if needs_clang && !has_clang() {
        Some("there is no clang on this machine")
    } else {
        None
    }
}

fn has_clang() -> bool {
    find_program("clang", &Snapshot::take().path_dirs()).0.is_some()
}

/// How many cases [`not_here`] names.
fn count_not_here() -> usize {
    1 + if has_clang() { 0 } else { 2 }
}

#[test]
fn recorded_cases_on_real_toolkits() {
    let waived = on_real_toolkits(&[
        ("parity on real toolkits", |trees| {
            let tally = tally(trees, not_here);
            assert!(tally.different.is_empty(), "{}", tally.different.join("\n"));
            assert_eq!(tally.waived.len(), count_not_here());
            assert_eq!(tally.equal, CASES - count_not_here());
        }),
        ("recorded cases in batches and one by one, on real toolkits", recorded_ways::are_one),
    ]);
    assert_eq!(waived, if are_asked_for() { 0 } else { 2 });
}

#[test]
fn recorded_cases_on_stub_toolkits() {
    let scratch = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(scratch.path().to_owned()).unwrap();
    let trees = stand_in::make(root);
    let tally = tally(&trees, |case| not_here(case).or_else(|| real_alone(case)));
    assert!(tally.different.is_empty(), "{}", tally.different.join("\n"));
    assert_eq!(tally.waived.len(), count_not_here() + REAL_ALONE.len(), "{:?}", tally.waived);
    assert_eq!(tally.equal, CASES - tally.waived.len());
    recorded_ways::are_one(&trees);
    let plain = cases(&trees).into_iter().filter(is_plain).map(|case| case.args);
    crate::formats::site::agrees_on_recorded(plain.collect());
}

/// Whether a case is decided by directories alone and ends well, so that any
/// configure with the same questions can be put in the place of UCX's.
fn is_plain(case: &Case) -> bool {
    let is_directory = |argument: &String| {
        let dir = ["--with-cuda=", "--with-gdrcopy="]
            .iter()
            .find_map(|start| argument.strip_prefix(start));
        dir.is_some_and(|dir| dir.starts_with('/'))
    };
    // Whole toolkits are tried elsewhere, and a directory written otherwise is the same one.
    let is_of_interest = ["var-", "gdr-"].iter().any(|start| case.id.starts_with(start));
    let runs = is_of_interest && not_here(case).is_none() && real_alone(case).is_none();
    runs && case.rc == 0
        && case.env.is_empty()
        && !case.args.is_empty()
        && case.args.iter().all(is_directory)
}

/// The cases that need a real toolkit: no stub stands in for 11.8, and stubs
/// have no `crt` directory.
const REAL_ALONE: [&str; 2] = ["tk-11.8", "var-nocrt"];

fn real_alone(case: &Case) -> Option<&'static str> {
    REAL_ALONE.contains(&case.id.as_str()).then_some("it needs a real toolkit")
}

/// The recorded facts name no machine.
#[test]
fn recordings_name_no_place() {
    let recorded = include_str!("../../fixtures/oracle/cases.jsonl");
    for place in ["/root", "/home", "/tmp", "/work", "http:", "https:"] {
        assert!(!recorded.contains(place), "{place}");
    }
}
