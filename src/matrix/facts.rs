//! What is recorded of an entry: answers, and nothing that another machine
//! with the same toolkit would answer otherwise, such as a directory.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, Done};
use crate::{
    error::{Code, Error},
    model::Report,
};

/// The version of a record's form.
const SCHEMA_VERSION: u32 = 1;

/// Who writes records: a file that says something else is somebody else's.
const TOOL: &str = "ucx-configure matrix";

/// The answers of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Whether everything that was asked for and required is there.
    pub ok: bool,
    /// The code of the error, where there is one.
    pub error: Option<String>,
    /// What cuda.h says.
    pub cuda: Option<String>,
    /// What gdrapi.h says.
    pub gdrcopy: Option<String>,
    /// Whether anything of it is a stub.
    pub stub: bool,
    /// The verdict on each component, by its key.
    pub components: BTreeMap<String, String>,
    /// The verdict on each feature, by its key.
    pub features: BTreeMap<String, String>,
    /// The modules that are built.
    pub modules: Vec<String>,
}

impl Facts {
    /// Those of a run.
    pub fn of(done: &Done) -> Self {
        let Report { components, features, modules, .. } = &done.report;
        let component = |finding: &crate::model::Finding| {
            (finding.component.key().to_owned(), finding.verdict.word().to_owned())
        };
        let feature = |answer: &crate::model::FeatureAnswer| {
            (answer.id.row().key.to_owned(), answer.verdict.word().to_owned())
        };
        let toolkit = done.report.toolkit.as_ref().filter(|_| done.report.has_cuda());
        let cuda = toolkit.and_then(|toolkit| toolkit.versions.cuda_h);
        let gdrcopy = done.report.gdrcopy.as_ref().and_then(|tree| tree.version);
        Self {
            ok: done.error.is_none(),
            error: done.error.as_ref().map(|error| error.code.row().name.to_owned()),
            cuda: cuda.map(|version| version.to_string()),
            gdrcopy: gdrcopy.map(|version| version.to_string()),
            stub: done.report.on_stub(),
            components: components.iter().map(component).collect(),
            features: features.iter().map(feature).collect(),
            modules: modules.iter().map(|module| module.library().to_owned()).collect(),
        }
    }
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema_version: u32,
    tool: String,
    entries: BTreeMap<String, Facts>,
}

impl Record {
    /// The names of the entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// That of a run.
    pub fn of(rows: &[Done]) -> Self {
        let entries = rows.iter().map(|done| (done.entry.name.clone(), Facts::of(done)));
        Self { schema_version: SCHEMA_VERSION, tool: TOOL.to_owned(), entries: entries.collect() }
    }

    /// Reads one; `path` is for messages.
    ///
    /// # Errors
    ///
    /// It is not one that this program reads.
    pub fn read(path: &Utf8Path, text: &str) -> Result<Self, Error> {
        match serde_json::from_str::<Self>(text) {
            Ok(record) if record.tool == TOOL && record.schema_version == SCHEMA_VERSION => {
                Ok(record)
            }
            other => Err(Error::new(
                Code::NotOurs,
                format!("`{path}` is no record of a matrix that this program reads"),
            )
            .said(other.err().map_or("another tool or version".to_owned(), |e| e.to_string()))
            .hint("Name another file, or remove it and record again with `--update`.")),
        }
    }

    /// As it is written.
    ///
    /// # Errors
    ///
    /// It cannot be written as JSON.
    pub fn text(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(Code::Internal, "the answers cannot be written as JSON")
                .said(error.to_string())
        })?;
        Ok(text + "\n")
    }

    /// Where this run is not as an earlier one was.
    pub fn changes(&self, earlier: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add = |entry: &String, what: String| {
            changes.push(Change { entry: entry.clone(), what });
        };
        for (name, facts) in &self.entries {
            match earlier.entries.get(name) {
                None => add(name, "is new: nothing is recorded of it".to_owned()),
                Some(then) => {
                    let both = [then, facts].map(|facts| serde_json::to_value(facts).ok());
                    let [then, now] = both.map(Option::unwrap_or_default);
                    compare("", &then, &now, &mut |what| add(name, what));
                }
            }
        }
        for name in earlier.entries.keys().filter(|name| !self.entries.contains_key(*name)) {
            add(name, "is recorded, and not in this run".to_owned());
        }
        changes
    }
}

/// Tells every leaf that differs.
fn compare(path: &str, then: &Value, now: &Value, tell: &mut impl FnMut(String)) {
    if let (Value::Object(then), Value::Object(now)) = (then, now) {
        let names: std::collections::BTreeSet<&String> = then.keys().chain(now.keys()).collect();
        for name in names {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let none = Value::Null;
            let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
            let (then, now) = (of(then).unwrap_or(none.clone()), of(now).unwrap_or(none));
            compare(&below, &then, &now, tell);
        }
    } else if then != now {
        tell(format!("{path} is {}, and was {}", shown(now), shown(then)));
    }
}

/// A leaf, for people.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not there".to_owned(),
        Value::Bool(value) => if *value { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "empty".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::formats::tests::answer;

    #[test]
    fn a_change_is_told_by_its_name() {
        let then = Record::of(&answer().rows);
        let back = Record::read(Utf8Path::new("x"), &then.text().unwrap()).unwrap();
        assert_eq!(back, then);
        assert_eq!(then.changes(&back), []);
        let mut now = then.clone();
        let facts = now.entries.get_mut("12.8").unwrap();
        facts.features.insert("fabric".to_owned(), "no".to_owned());
        facts.modules.clear();
        let gone = now.entries.remove("13.9").unwrap();
        now.entries.insert("14.0".to_owned(), gone);
        let changes = now.changes(&then);
        let lines: Vec<String> =
            changes.iter().map(|change| format!("{}: {}", change.entry, change.what)).collect();
        assert_eq!(
            lines,
            [
                "12.8: features.fabric is no, and was yes",
                "12.8: modules is empty, and was libucm_cuda libuct_cuda libucx_perftest_cuda libuct_cuda_gdrcopy",
                "14.0: is new: nothing is recorded of it",
                "13.9: is recorded, and not in this run",
            ]
        );
    }

    #[test]
    fn a_file_of_somebody_else_is_no_record() {
        let text = Record::of(&[]).text().unwrap();
        for other in ["{}".to_owned(), String::new(), text.replace("matrix", "x")] {
            let error = Record::read(Utf8Path::new("x"), &other).unwrap_err();
            assert_eq!(error.code, Code::NotOurs, "{other}");
        }
    }
}
