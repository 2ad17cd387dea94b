//! The table's invariants, the texts, and the schema.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{fixtures, json::SCHEMA, *};
use crate::model::{
    Component, Difference, FEATURES, LibraryClass, Message, MessageKind, Module, Outcome, Report,
    Verdict,
};

fn rendered(id: &str, report: &Report) -> String {
    (find(id).unwrap().render)(report).unwrap()
}

#[test]
fn rows_are_unique_and_documented() {
    let ids: BTreeSet<_> = EMITTERS.iter().map(|emitter| emitter.id).collect();
    let files: Vec<_> = EMITTERS.iter().filter_map(|emitter| emitter.file).collect();
    assert_eq!(ids.len(), EMITTERS.len());
    assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len());
    assert_eq!(files, ["config.h", "config.mk", "config.sh", "ucx-configure.json"]);
    assert!(EMITTERS.iter().all(|emitter| emitter.doc.ends_with('.')));
    assert!(find("no-such-format").is_none());
}

/// Whoever writes a file has to know again that it is ours.
#[test]
fn every_file_names_us_in_its_first_lines() {
    for emitter in EMITTERS {
        let of_compat = emitter.id == "config-site";
        let report = if of_compat { fixtures::compat() } else { fixtures::report() };
        let text = (emitter.render)(&report).unwrap();
        let head: String = text.chars().take(200).collect();
        assert!(head.contains("ucx-configure"), "{}: {head}", emitter.id);
    }
}

#[test]
fn texts() {
    let reports = [
        ("strict", fixtures::report()),
        ("stub", fixtures::on_stub()),
        ("compat", fixtures::compat()),
    ];
    insta::with_settings!({ snapshot_path => "../../tests/snapshots/emit" }, {
        for (name, report) in &reports {
            for id in ["config-h", "mk", "sh"] {
                insta::assert_snapshot!(format!("{id}-{name}"), rendered(id, report));
            }
        }
        for emitter in EMITTERS.iter().filter(|emitter| emitter.file.is_none()) {
            let report = if emitter.id == "config-site" { &reports[2].1 } else { &reports[0].1 };
            insta::assert_snapshot!(emitter.id.replace(':', "-"), rendered(emitter.id, report));
        }
        insta::assert_snapshot!("json", rendered("json", &reports[0].1));
    });
}

#[test]
fn a_line_break_in_a_value_is_an_error_that_says_so() {
    for id in ["mk", "sh"] {
        let mut report = fixtures::report();
        report.answers.substitutions[0] = fixtures::words("CUDA_CPPFLAGS", &["-I/a\nb"], "C.");
        let error = (find(id).unwrap().render)(&report).unwrap_err();
        assert_eq!(error.code, crate::error::Code::UnusablePath);
        assert!(error.what.contains("CUDA_CPPFLAGS") && !error.hints.is_empty(), "{error:?}");
    }
}

#[test]
fn the_cache_leaves_no_trace_in_the_report() {
    let mut report = fixtures::report();
    report.checks.iter_mut().for_each(|check| check.cached = true);
    assert_eq!(rendered("json", &report), rendered("json", &fixtures::report()));
}

#[test]
fn json_comes_back_as_it_was() {
    for report in [full(), fixtures::report(), fixtures::compat()] {
        let text = rendered("json", &report);
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        assert_eq!(text, rendered("json", &report), "equal reports give equal bytes");
    }
}

/// A report with every optional part, and one with none.
fn full() -> Report {
    let mut report = fixtures::on_stub();
    for (check, verdict) in report.checks.iter_mut().zip([Verdict::Broken, Verdict::Skipped]) {
        check.verdict = verdict;
    }
    let mut attempt = report.checks[1].evidence.attempts[0].clone();
    for outcome in [Outcome::Satisfied, Outcome::Rejected, Outcome::Failed] {
        attempt.outcome = outcome;
        report.checks[1].evidence.attempts.push(attempt.clone());
    }
    for kind in [MessageKind::Note, MessageKind::Warning, MessageKind::Error] {
        let hint = (kind == MessageKind::Error).then(|| "do this".to_owned());
        report.messages.push(Message { kind, code: "W0001".into(), text: "a text".into(), hint });
    }
    report.differences = vec![Difference { quirk: "Q1".into(), text: "a difference".into() }];
    report
}

fn empty() -> Report {
    let mut report = fixtures::report();
    (report.compiler, report.nvcc, report.toolkit, report.gdrcopy) = (None, None, None, None);
    report.components.clear();
    report.features.clear();
    report.answers = crate::model::Answers::default();
    report
}

#[test]
fn the_schema_accepts_what_we_write() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in [full(), empty(), fixtures::report(), fixtures::compat()] {
        let value: Value = serde_json::from_str(&rendered("json", &report)).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[test]
fn the_schema_refuses_what_we_do_not_write() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good: Value = serde_json::to_value(full()).unwrap();
    let spoilt: [fn(&mut Value); 7] = [
        |value| value["schema_version"] = json!(2),
        |value| value["more"] = json!(1),
        |value| value["checks"][0]["verdict"] = json!("maybe"),
        |value| value["checks"][0]["evidence"]["more"] = json!(1),
        |value| value["features"][0]["id"] = json!("cuda11_2"),
        |value| value["answers"]["substitutions"][0]["value"] = json!("-lcuda"),
        |value| {
            value.as_object_mut().unwrap().remove("messages");
        },
    ];
    assert!(validator.is_valid(&good));
    for (index, spoil) in spoilt.iter().enumerate() {
        let mut value = good.clone();
        spoil(&mut value);
        assert!(!validator.is_valid(&value), "{index}");
    }
}

#[test]
fn the_schema_lists_exactly_our_names() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let names = |name: &str| schema["$defs"][name]["enum"].clone();
    let features: Vec<_> = FEATURES.iter().map(|feature| feature.key).collect();
    assert_eq!(names("feature"), json!(features));
    assert_eq!(names("component"), json!(Component::ALL));
    assert_eq!(names("module"), json!(Module::ALL));
    assert_eq!(names("verdict"), json!(["yes", "no", "broken", "skipped"]));
    let classes = &schema["$defs"]["libraryFile"]["properties"]["class"]["enum"];
    assert_eq!(*classes, json!(LibraryClass::ALL));
}

#[test]
fn the_matrix_is_what_its_schema_says() {
    let schema: Value = serde_json::from_str(super::ci::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in [full(), empty(), fixtures::report(), fixtures::compat()] {
        let value: Value = serde_json::from_str(&rendered("github:matrix", &report)).unwrap();
        assert!(validator.is_valid(&value), "{value}");
        let mut spoilt = value.clone();
        spoilt["include"][0]["cuda"] = json!("twelve");
        assert!(!validator.is_valid(&spoilt));
    }
}

#[test]
fn a_family_has_all_its_files() {
    let ids = |name: &str| family(name).iter().map(|emitter| emitter.id).collect::<Vec<_>>();
    assert_eq!(ids("cargo"), ["cargo"]);
    assert_eq!(ids("cmake"), ["cmake:config", "cmake:cache"]);
    assert_eq!(ids("cmake:cache"), ["cmake:cache"]);
    assert!(ids("cmak").is_empty() && ids("").is_empty());
    let names: BTreeSet<_> = EMITTERS.iter().map(|emitter| emitter.name).collect();
    assert_eq!(names.len(), EMITTERS.len());
}

#[test]
fn formats_say_what_they_need() {
    use crate::error::Code;
    let code = |id: &str, report: &Report| (find(id).unwrap().render)(report).unwrap_err().code;
    let nothing = empty();
    for id in ["pkg-config:ucx-cuda", "cmake:config", "rpm:spec", "deb:control"] {
        assert_eq!(code(id, &nothing), Code::NeedsCuda, "{id}");
    }
    assert_eq!(code("pkg-config:gdrapi", &nothing), Code::GdrCopyNotMet);
    assert_eq!(code("config-site", &fixtures::report()), Code::Usage, "strict answers");
    let mut failed = fixtures::compat();
    failed.ok = false;
    assert_eq!(code("config-site", &failed), Code::NeedsCuda);
}

#[test]
fn every_property_is_described() {
    fn walk(path: &str, value: &Value, seen: &mut usize) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let doc = property.get("description").and_then(Value::as_str);
                assert!(doc.is_some_and(|doc| doc.ends_with('.')), "{path}.{name}");
                *seen += 1;
            }
        }
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(name, value)| walk(&format!("{path}.{name}"), value, seen));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(path, value, seen)),
            _ => {}
        }
    }
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut seen = 0;
    walk("", &schema, &mut seen);
    assert!(seen > 80, "{seen} properties were looked at");
}
