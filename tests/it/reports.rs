//! What people reported of CUDA detection in other tools, sorted by kind; each
//! kind has a test that expects what would have been right.
//!
//! `tests/reports.toml` says which rows of our collection of reports are of
//! which kind, and which rows no test covers and why. Tests of kinds that are
//! tested elsewhere are named there as well.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use ucx_configure::host::fs;

/// The numbers that the collection leaves out: what turned out to be no report
/// of its own.
const LEFT_OUT: &[u32] = &[
    6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90, 96, 102, 108, 114, 120, 126, 132,
    138, 144,
];

/// The last number.
const LAST: u32 = 148;

/// The table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Vec<Kind>,
    not_covered: Vec<NotCovered>,
}

/// A kind of report, with a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    /// What goes wrong.
    name: String,
    /// The test that expects what is right: its path below `tests/it`, or in
    /// `src`.
    test: String,
    /// Recipes in `fixtures/layouts` that the test goes through.
    #[serde(default)]
    layouts: Vec<String>,
    /// Cases in `tests/failing` that the test goes through.
    #[serde(default)]
    failing: Vec<String>,
    /// The rows, each with what was reported.
    rows: BTreeMap<String, String>,
}

/// Rows without a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotCovered {
    /// Why there is none.
    why: String,
    rows: BTreeMap<String, String>,
}

fn root() -> &'static Utf8Path {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> Table {
    let text = fs::read_to_string(&root().join("tests/reports.toml")).unwrap();
    toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn numbers(rows: &BTreeMap<String, String>) -> BTreeSet<u32> {
    rows.keys().map(|row| row.parse().unwrap_or_else(|_| panic!("{row}: a number"))).collect()
}

/// Says which rows a test is about; the table has to say the same.
#[track_caller]
pub(crate) fn covers(test: &str, rows: &[u32]) {
    let table = table();
    let kinds = table.kind.iter().filter(|kind| kind.test == format!("reports::kinds::{test}"));
    let told: BTreeSet<u32> = kinds.flat_map(|kind| numbers(&kind.rows)).collect();
    assert_eq!(told, rows.iter().copied().collect(), "tests/reports.toml about {test}");
}

#[test]
fn every_row_is_there_once() {
    let table = table();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let kinds = table.kind.iter().map(|kind| &kind.rows);
    for rows in kinds.chain(table.not_covered.iter().map(|left| &left.rows)) {
        assert!(rows.values().all(|what| !what.is_empty()), "a summary: {rows:?}");
        numbers(rows).into_iter().for_each(|row| *seen.entry(row).or_default() += 1);
    }
    let twice: Vec<_> = seen.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    let expected: BTreeSet<u32> = (1..=LAST).filter(|row| !LEFT_OUT.contains(row)).collect();
    assert_eq!(seen.into_keys().collect::<BTreeSet<_>>(), expected);
    assert!(table.not_covered.iter().all(|left| left.why.len() > 20), "a reason for each");
}

#[test]
fn every_test_that_is_named_is_there() {
    for kind in table().kind {
        assert!(!kind.name.is_empty());
        let (module, function) = kind.test.rsplit_once("::").unwrap();
        let path = module.replace("::", "/");
        let files = ["tests/it/", "src/"].map(|dir| root().join(format!("{dir}{path}.rs")));
        let text: String = files.iter().filter_map(read).collect();
        let head = format!("fn {function}(");
        assert!(text.contains(&head), "{}: there is no such test", kind.test);
        if module == "reports::kinds" {
            let body = text.split(&head).nth(1).unwrap_or_default();
            let call = format!("covers(\"{function}\", &[");
            assert!(body.contains(&call), "{}: it says which rows it covers", kind.test);
        }
        for name in kind.layouts {
            assert!(root().join(format!("fixtures/layouts/{name}.toml")).is_file(), "{name}");
        }
        for name in kind.failing {
            assert!(root().join(format!("tests/failing/{name}/case.toml")).is_file(), "{name}");
        }
    }
}

fn read(file: &Utf8PathBuf) -> Option<String> {
    file.is_file().then(|| fs::read_to_string(file).unwrap())
}
