//! The report of a build directory, read back for the commands that work from
//! it.

use camino::Utf8Path;
use serde::Deserialize;

use crate::{
    error::{Code, Error},
    host::fs::{self, Kind},
    model::{Report, SCHEMA_VERSION},
};

/// Its file.
pub(super) const FILE: &str = "ucx-configure.json";

/// What is read first: another version of the form may differ in all else.
#[derive(Deserialize)]
struct Head {
    schema_version: u32,
}

/// Reads it.
///
/// # Errors
///
/// There is none, or it is not one that this program reads.
pub(super) fn read(build_dir: &Utf8Path) -> Result<Report, Error> {
    let path = build_dir.join(FILE);
    if fs::kind(path.as_std_path()) != Kind::File {
        return Err(Error::new(Code::Read, format!("there is no report in `{build_dir}`"))
            .means(format!("A run of `ucx-configure` writes it, as `{FILE}`."))
            .hint("Run `ucx-configure` there first, or name the build directory with `-B DIR`."));
    }
    parse(&path, &fs::read_to_string(&path)?)
}

fn parse(path: &Utf8Path, text: &str) -> Result<Report, Error> {
    let unreadable = |error: serde_json::Error| {
        Error::new(Code::Read, format!("`{path}` cannot be read as a report"))
            .said(error.to_string())
            .hint("Run `ucx-configure` in the build directory again; it writes the file anew.")
    };
    let Head { schema_version } = serde_json::from_str(text).map_err(unreadable)?;
    if schema_version != SCHEMA_VERSION {
        return Err(Error::new(
            Code::Read,
            format!("`{path}` was written by another version of this program"),
        )
        .means(format!(
            "Its schema is version {schema_version}, and this one reads {SCHEMA_VERSION}."
        ))
        .hint("Run `ucx-configure` in the build directory again; it writes the file anew."));
    }
    serde_json::from_str(text).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_of_ours_is_refused() {
        let path = Utf8Path::new("b/ucx-configure.json");
        for (text, said) in [
            ("", "cannot be read as a report"),
            ("{}", "cannot be read as a report"),
            ("{\"schema_version\": 1}", "cannot be read as a report"),
            ("{\"schema_version\": 99, \"more\": 1}", "another version"),
        ] {
            let error = parse(path, text).unwrap_err();
            assert!(error.what.contains(said), "{text}: {}", error.what);
            assert_eq!(error.code, Code::Read);
            assert!(!error.hints.is_empty());
        }
    }

    #[test]
    fn a_report_comes_back() {
        let report = crate::emit::fixtures::report();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(parse(Utf8Path::new("x"), &text).unwrap(), report);
    }
}
