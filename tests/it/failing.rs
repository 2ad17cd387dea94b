//! Every error is a fixture: a directory under `tests/failing/` holds the
//! command line and what is told.
//!
//! `case.toml` says what the world is like and how the run has to end,
//! `stderr` what it has to say. With `UCX_CONFIGURE_BLESS=1` the texts are
//! written anew: look at the difference before it goes in.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use ucx_configure::{
    error::{CODES, Code},
    host::{env::Snapshot, fs},
};

use crate::harness::{Run, Sandbox};

/// Codes without a case, and why.
const WITHOUT_CASE: &[(Code, &str)] = &[
    (Code::TreeNotRight, "needs modules: audit.rs"),
    (Code::Busy, "needs two runs at once: robustness.rs"),
    (Code::Interrupted, "needs a signal: robustness.rs"),
    (Code::Internal, "nothing that a user can do provokes it"),
];

/// What the world is like, and how the run has to end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The arguments; `[ROOT]` stands for the sandbox.
    args: Vec<String>,
    /// The exit code.
    exit: i32,
    /// Variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Files below the sandbox.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Directories below the sandbox.
    #[serde(default)]
    dirs: Vec<String>,
    /// Links below the sandbox, and where they lead.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Scripts first in PATH.
    #[serde(default)]
    tools: BTreeMap<String, String>,
    /// Whether nothing else is in PATH.
    #[serde(default)]
    only_own_tools: bool,
    /// Whether a tool's own words differ between machines, and do not count.
    #[serde(default)]
    any_tool_words: bool,
    /// Whether a stub toolkit is at `[ROOT]/tk`, and what is taken out of it,
    /// to `[ROOT]/spare`.
    stub_without: Option<Vec<String>>,
    /// What the system says that it is, in `ID` of os-release.
    #[serde(default = "debian")]
    system: String,
    /// Whether the command that the screen hints at is run, and has to make
    /// the whole succeed.
    #[serde(default)]
    hint_works: bool,
}

fn debian() -> String {
    "debian".to_owned()
}

/// How many cases there have to be whose hint is run.
const HINTS_THAT_WORK: usize = 10;

fn cases() -> Vec<(String, Utf8PathBuf)> {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing");
    fs::names(&root).into_iter().map(|name| (name.clone(), root.join(name))).collect()
}

#[test]
fn every_code_has_a_case_or_a_reason() {
    let names: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
    let with_case: BTreeSet<&str> =
        names.iter().filter_map(|name| name.split('-').next()).collect();
    let known: BTreeSet<&str> = CODES.iter().map(|row| row.name).collect();
    let strangers: Vec<_> = with_case.difference(&known).collect();
    assert!(strangers.is_empty(), "no such code: {strangers:?}");
    for row in CODES {
        let reason = WITHOUT_CASE.iter().find(|(code, _)| *code == row.code);
        let has_case = with_case.contains(row.name);
        assert!(has_case != reason.is_some(), "{}: a case or a reason, not both", row.name);
    }
}

#[test]
fn enough_hints_are_followed() {
    let works = |(_, dir): &(String, Utf8PathBuf)| {
        let text = fs::read_to_string(&dir.join("case.toml")).unwrap();
        text.lines().any(|line| line.trim() == "hint_works = true")
    };
    let count = cases().iter().filter(|case| works(case)).count();
    assert!(count >= HINTS_THAT_WORK, "{count} cases whose hint is run");
}

#[test]
fn every_case_says_what_its_fixture_says() {
    let bless = Snapshot::take().get("UCX_CONFIGURE_BLESS").is_some();
    let mut wrong = Vec::new();
    for (name, dir) in cases() {
        let text = fs::read_to_string(&dir.join("case.toml")).unwrap();
        let case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = play(&case);
        let fixture = dir.join("stderr");
        if bless {
            fs::write_if_changed(&fixture, said.1.as_bytes(), 0o644).unwrap();
        }
        let expected = fs::read_to_string(&fixture).unwrap_or_default();
        let code = name.split('-').next().unwrap_or_default();
        let row = CODES.iter().find(|row| row.name == code).unwrap();
        if said != (case.exit, expected.clone())
            || case.exit != i32::from(row.exit.code())
            // The original's own first line names no code.
            || !(said.1.contains(&format!("[{code}]\n"))
                || said.1.contains("configure: error: "))
        {
            wrong.push(format!(
                "{name}: exit {} (expected {})\n--- is\n{}--- expected\n{expected}",
                said.0, case.exit, said.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn play(case: &Case) -> (i32, String) {
    let mut sandbox = Sandbox::new();
    if let Some(without) = &case.stub_without {
        let made = ["-B", "../made", "-q", "--no-build", "--with-cuda=stub:12.5"];
        sandbox.run(made).must_end(0);
        let tree = sandbox.path("made/.ucx-configure/toolkit/stub-cuda-12.5");
        let spare = sandbox.dir("spare");
        for name in without {
            let (from, to) =
                (tree.join(name), spare.join(Utf8Path::new(name).file_name().unwrap()));
            fs::rename(&from, &to).unwrap();
        }
        fs::symlink(tree.as_str(), &sandbox.path("tk")).unwrap();
    }
    for dir in &case.dirs {
        sandbox.dir(dir);
    }
    for (name, content) in &case.files {
        sandbox.write(name, content);
    }
    for (name, target) in &case.links {
        fs::create_dir_all(sandbox.path(name).parent().unwrap()).unwrap();
        fs::symlink(target, &sandbox.path(name)).unwrap();
    }
    let root = sandbox.path("").into_string();
    let filled = |text: &String| text.replace("[ROOT]", root.trim_end_matches('/'));
    for (name, script) in &case.tools {
        sandbox.tool(name, &filled(script));
    }
    if case.only_own_tools {
        sandbox.only_own_tools();
    }
    sandbox.write("system/etc/os-release", &format!("ID={}\n", case.system));
    let system = sandbox.path("system").into_string();
    sandbox.set("UCX_CONFIGURE_ROOT", system);
    for (name, value) in &case.env {
        sandbox.set(name, filled(value));
    }
    let run = sandbox.run(case.args.iter().map(filled));
    if case.hint_works {
        let again = || sandbox.run(case.args.iter().map(filled));
        follow(&sandbox, &filled(&run.stderr), again);
    }
    (run.code, same_everywhere(&run.stderr, case.any_tool_words))
}

/// Does what the screen says: types the command of its last hint that has one.
/// Where that installs something, the same is typed again after it.
fn follow(sandbox: &Sandbox, screen: &str, again: impl Fn() -> Run) {
    let command = hinted(screen).unwrap_or_else(|| panic!("no hint to follow:\n{screen}"));
    sandbox.tool("ucx-configure", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_ucx-configure")));
    let run = sandbox.ended(sandbox.shell(command).output().unwrap());
    assert_eq!(run.code, 0, "`{command}`:\n{}", run.stderr);
    if !command.starts_with("ucx-configure ") {
        again().must_end(0);
    }
}

/// The command to type: that of `Run`, else one that installs.
fn hinted(screen: &str) -> Option<&str> {
    let hints = screen.lines().filter_map(|line| line.strip_prefix("hint: "));
    let mut install = None;
    for hint in hints {
        let Some(command) = hint.split('`').nth(1) else { continue };
        if hint.starts_with("Run `ucx-configure ") {
            return Some(command);
        }
        if hint.starts_with("Install ") {
            install = install.or(Some(command));
        }
    }
    install
}

/// The text without what differs between machines and runs.
fn same_everywhere(text: &str, any_tool_words: bool) -> String {
    let text = text
        .replace(env!("CARGO_MANIFEST_DIR"), "[SOURCE]")
        .replace(&format!("for {}, and", std::env::consts::ARCH), "for [MACHINE], and")
        .replace("sbsa-linux", "[MACHINE]-linux")
        .replace(&format!("{}-linux", std::env::consts::ARCH), "[MACHINE]-linux");
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = if any_tool_words && line.starts_with("  | ") {
            "  | [TOOL]".to_owned()
        } else {
            without_scratch(line)
        };
        if !(any_tool_words && lines.last() == Some(&line)) {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

/// Names of scratch directories end in six letters that nobody can foresee.
fn without_scratch(line: &str) -> String {
    let mut pieces = line.split("/ucx-configure-");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        result += "/ucx-configure-XXXXXX";
        result += piece.get(6..).unwrap_or_default();
    }
    result
}
