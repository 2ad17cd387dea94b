//! Kinds of installations: each recipe in `fixtures/layouts/` is made, and the
//! tool run on it.

mod recipe;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use ucx_configure::{
    discover::{Layout, Target},
    host::{Host, env::Snapshot, process::Runner},
};

use self::recipe::{LayoutCase, Marks, Recipe, RunCase};
use crate::{engine::toolkit, harness::Sandbox, trees::waived};

/// The rows of the catalogue of layouts.
const ROWS: u32 = 34;

/// How many runs there are, over all recipes.
const RUNS: usize = 68;

#[test]
fn every_row_has_a_recipe() {
    let rows: BTreeSet<String> = recipe::all().into_iter().map(|recipe| recipe.row).collect();
    let expected: BTreeSet<String> = (1..=ROWS).map(|number| format!("L{number}")).collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_layout_is_taken_or_explained() {
    let recipes = recipe::all();
    // Made before two threads want them.
    recipes.iter().for_each(|recipe| drop(toolkit(&recipe.toolkit)));
    let next = AtomicUsize::new(0);
    let (wrong, done) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let skipped = Mutex::new(Vec::new());
    let work = || {
        while let Some(recipe) = recipes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut found = Held::default();
            hold(recipe, &mut found);
            done.fetch_add(found.runs, Ordering::Relaxed);
            wrong.lock().unwrap().extend(found.wrong);
            skipped.lock().unwrap().extend(found.waived);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let skipped = skipped.into_inner().unwrap();
    assert_eq!(done.into_inner() + skipped.len(), RUNS, "{skipped:?}");
    let is_usual = std::env::consts::ARCH == "x86_64" && has("pkg-config");
    assert!(!is_usual || skipped.is_empty(), "{skipped:?}");
}

/// What became of a recipe.
#[derive(Default)]
struct Held {
    runs: usize,
    wrong: Vec<String>,
    waived: Vec<String>,
}

fn hold(recipe: &Recipe, held: &mut Held) {
    let sandbox = Sandbox::new();
    let marks = Marks::here(&sandbox.dir("tree"), &toolkit("12.5"));
    recipe.make(&marks);
    for case in &recipe.layout {
        let fits = case.only_on.as_deref().is_none_or(|machine| machine == marks.machine);
        if fits {
            held.wrong.extend(layout(recipe, case, &marks));
        }
    }
    for (number, case) in recipe.run.iter().enumerate() {
        let name = format!("{}, run {}", recipe.file, number + 1);
        if let Some(why) = why_not_here(case, &marks) {
            held.waived.push(waived(&name, &why));
            continue;
        }
        held.runs += 1;
        let wrong = Checked::run(&sandbox, case, &marks).wrong(case, &marks);
        held.wrong.extend(wrong.into_iter().map(|text| format!("{name}: {text}")));
    }
}

fn why_not_here(case: &RunCase, marks: &Marks) -> Option<String> {
    if let Some(machine) = case.only_on.as_ref().filter(|machine| **machine != marks.machine) {
        return Some(format!("it is for {machine}"));
    }
    case.needs.as_ref().filter(|tool| !has(tool)).map(|tool| format!("there is no {tool}"))
}

fn has(tool: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|dir| Utf8Path::new(dir).join(tool).exists())
}

/// A root as another machine sees it.
fn layout(recipe: &Recipe, case: &LayoutCase, marks: &Marks) -> Vec<String> {
    let env = Snapshot::from_pairs([("UCX_CONFIGURE_ROOT", marks.root.as_str())]);
    let host = Host { env, cwd: "/".into(), runner: Runner::new() };
    let triple = format!("{}-linux-gnu", case.machine);
    let target = Target { machine: &case.machine, triple: &triple, host: &host };
    let layout = Layout::cuda(&marks.root.join(&case.root), &target);
    let dirs = [
        ("include", &layout.include_dirs, &case.include),
        ("libraries", &layout.library_dirs, &case.libraries),
        ("stubs", &layout.stub_dirs, &case.stubs),
        ("driver", &layout.driver_dirs, &case.driver),
    ];
    let differs = |(what, is, expected): &(&str, &Vec<Utf8PathBuf>, &Vec<String>)| {
        let is: Vec<String> = is.iter().map(|dir| marks.below(dir.as_str())).collect();
        let text =
            format!("{} for {}: {what}: {is:?}, not {expected:?}", recipe.file, case.machine);
        (is != **expected).then_some(text)
    };
    dirs.iter().filter_map(differs).collect()
}

/// What the tool said.
struct Checked {
    code: i32,
    stderr: String,
    report: Value,
}

impl Checked {
    fn run(sandbox: &Sandbox, case: &RunCase, marks: &Marks) -> Self {
        let args = ["check", "--format=json"].map(str::to_owned).into_iter();
        let args = args.chain(case.args.iter().map(|arg| marks.fill(arg)));
        let mut command = sandbox.command(args);
        let root = BTreeMap::from([("UCX_CONFIGURE_ROOT".to_owned(), "[ROOT]".to_owned())]);
        for (name, value) in root.iter().chain(&case.env) {
            command.env(name, marks.fill(value));
        }
        let output = command.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stderr: String::from_utf8(output.stderr).unwrap(),
            report: serde_json::from_str(&stdout).unwrap_or_default(),
        }
    }

    /// Where it differs from what is expected.
    fn wrong(&self, case: &RunCase, marks: &Marks) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut hold = |what: &str, is: String, expected: &str| {
            if is != expected {
                wrong.push(format!("{what} is {is}, not {expected}\n{}", self.stderr));
            }
        };
        let failed = case.missing.is_some();
        hold("exit code", self.code.to_string(), if failed { "1" } else { "0" });
        hold("`ok`", self.report["ok"].to_string(), if failed { "false" } else { "true" });
        let toolkit = &self.report["toolkit"];
        for (what, is, expected) in [
            ("include", &toolkit["include_dirs"], &case.include),
            ("libraries", &toolkit["library_dirs"], &case.libraries),
            ("stubs", &toolkit["stub_dirs"], &case.stubs),
        ] {
            if let Some(expected) = expected {
                let expected: Vec<String> = expected.iter().map(|dir| marks.fill(dir)).collect();
                hold(what, format!("{:?}", dirs(is, marks)), &format!("{expected:?}"));
            }
        }
        if let Some(expected) = &case.real_root {
            let is = toolkit["real_root"].as_str().unwrap_or_default();
            hold("the real root", marks.below(is), &marks.fill(expected));
        }
        if let Some(expected) = &case.gdrcopy {
            let tree = &self.report["gdrcopy"];
            let mut is = dirs(&tree["include_dirs"], marks);
            is.extend(dirs(&tree["library_dirs"], marks));
            let expected: Vec<String> = expected.iter().map(|dir| marks.fill(dir)).collect();
            hold("gdrcopy", format!("{is:?}"), &format!("{expected:?}"));
        }
        if let Some(expected) = &case.nvcc {
            let is = self.report["nvcc"]["command"][0].as_str().unwrap_or_default();
            hold("nvcc", marks.below(is), &marks.fill(expected));
        }
        for (name, expected) in &case.linked {
            hold(&format!("the class of lib{name}"), self.class(name), expected);
        }
        for (path, expected) in &case.classes {
            let is = self.class_of(&marks.root.join(marks.fill(path)));
            hold(&format!("the class of {path}"), is, expected);
        }
        for (name, expected) in &case.words {
            hold(name, self.words(name), expected);
        }
        wrong.extend(self.not_said(case, marks));
        wrong
    }

    /// What should have been said and was not.
    fn not_said(&self, case: &RunCase, marks: &Marks) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut hold = |what: &str, text: &str, piece: &str| {
            if !text.contains(piece) {
                wrong.push(format!("{what}: no `{piece}` in\n{text}"));
            }
        };
        if let Some(missing) = &case.missing {
            let first = self.stderr.lines().find(|line| line.starts_with("error:"));
            hold("the error", first.unwrap_or_default(), &format!("`{missing}`"));
        }
        if let Some(found_by) = &case.found_by {
            let is = self.report["toolkit"]["found_by"].as_str().unwrap_or_default();
            hold("found by", is, found_by);
        }
        for piece in &case.says {
            hold("what is said", &self.stderr, &marks.fill(piece));
        }
        let hints: Vec<&str> = self.stderr.lines().filter(|it| it.starts_with("hint:")).collect();
        if let Some(piece) = &case.hint {
            hold("the hints", &hints.join("\n"), &marks.fill(piece));
        }
        let codes = self.report["messages"].as_array().into_iter().flatten();
        let codes: Vec<&str> = codes.filter_map(|message| message["code"].as_str()).collect();
        for code in &case.notes {
            hold("the messages", &codes.join(" "), code);
        }
        wrong
    }

    /// The class of the file that was linked with.
    fn class(&self, name: &str) -> String {
        let files = self.report["libraries"].as_array().into_iter().flatten();
        let mut linked = files.filter(|file| file["linked"] == true && file["name"] == name);
        linked.next().map_or("none", |file| file["class"].as_str().unwrap_or_default()).to_owned()
    }

    fn class_of(&self, path: &Utf8Path) -> String {
        let files = self.report["libraries"].as_array().into_iter().flatten();
        let mut named = files.filter(|file| file["path"] == path.as_str());
        named.next().map_or("none", |file| file["class"].as_str().unwrap_or_default()).to_owned()
    }

    /// The words of a substitution, blanks between.
    fn words(&self, name: &str) -> String {
        let all = self.report["answers"]["substitutions"].as_array().into_iter().flatten();
        let mut named = all.filter(|row| row["name"] == name);
        let words = named.next().and_then(|row| row["value"]["words"].as_array().cloned());
        let words = words.unwrap_or_default();
        words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    }
}

fn dirs(value: &Value, marks: &Marks) -> Vec<String> {
    let dirs = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    dirs.map(|dir| marks.below(dir)).collect()
}
