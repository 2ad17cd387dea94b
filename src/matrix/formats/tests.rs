//! Each format as it is, and by those who read it.

use super::*;
use crate::{
    emit::fixtures,
    error::Code,
    matrix::{Build, Change, Entry},
    model::Report,
};

fn done(name: &str, report: Report, error: Option<Error>) -> Done {
    let entry = Entry {
        name: name.to_owned(),
        toolkit: name.to_owned(),
        gdrcopy: "no".to_owned(),
        arguments: vec!["check".to_owned(), format!("--with-cuda=wheel:{name}")],
    };
    Done { entry, report, error, build: None }
}

/// Two that are fine, and one that failed with markup in what it says.
pub(in crate::matrix) fn answer() -> Answer {
    let error = Error::new(Code::UnknownVersion, "there are no wheels of <13.9> & \"more\" | 1")
        .said("line\nline\u{1}")
        .means("There are others.")
        .hint("Take one.");
    let mut failed = fixtures::report();
    failed.toolkit = None;
    failed.gdrcopy = None;
    failed.components.clear();
    failed.features.clear();
    failed.modules.clear();
    failed.ok = false;
    let mut second = done("stub:12.8", fixtures::on_stub(), None);
    second.build = Some(Build { dir: "b/matrix-stub-12.8".into(), same_as: Some("12.8".into()) });
    let rows =
        vec![done("12.8", fixtures::report(), None), second, done("13.9", failed, Some(error))];
    Answer { rows, changes: None }
}

fn rendered(id: &str, answer: &Answer) -> String {
    let format = FORMATS.iter().find(|format| format.id == id).unwrap();
    (format.render)(answer).unwrap()
}

/// The same, held against a record.
fn held() -> Answer {
    let change = |entry: &str, what: &str| Change { entry: entry.into(), what: what.into() };
    let changes = vec![
        change("12.8", "features.fabric is no, and was yes"),
        change("11.0", "is recorded, and not in this run"),
    ];
    Answer { changes: Some(changes), ..answer() }
}

#[test]
fn formats_are_as_they_were() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/matrix"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        for format in FORMATS {
            insta::assert_snapshot!(format.id, rendered(format.id, &answer()));
        }
        insta::assert_snapshot!("table-held", rendered("table", &held()));
        insta::assert_snapshot!("junit-held", rendered("junit", &held()));
    });
}

#[test]
fn rows_are_unique_and_those_of_the_command_line() {
    use clap::ValueEnum as _;
    let ids: Vec<&str> = FORMATS.iter().map(|format| format.id).collect();
    let typed: Vec<String> = crate::cli::MatrixFormat::value_variants()
        .iter()
        .filter_map(|value| Some(value.to_possible_value()?.get_name().to_owned()))
        .collect();
    assert_eq!(ids, typed);
    assert!(FORMATS.iter().all(|format| format.doc.ends_with('.')));
}

#[test]
fn json_is_what_its_schema_says() {
    let schema: serde_json::Value = serde_json::from_str(json::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for answer in [answer(), held()] {
        let value: serde_json::Value = serde_json::from_str(&rendered("json", &answer)).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        assert_eq!(value["ok"], false);
        let mut wrong = value.clone();
        wrong["entries"][0]["answers"]["modules"] = serde_json::json!(3);
        assert!(!validator.is_valid(&wrong));
    }
}

#[test]
fn what_is_recorded_may_fail() {
    let mut answer = answer();
    assert!(!answer.is_good() && answer.faults(&answer.rows[2]).len() == 1);
    answer.changes = Some(Vec::new());
    assert!(answer.is_good() && answer.faults(&answer.rows[2]).is_empty());
    assert!(rendered("table", &answer).contains("E0107, as recorded"));
    assert!(rendered("junit", &answer).contains("failures=\"0\""));
}
