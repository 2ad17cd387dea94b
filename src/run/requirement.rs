//! `--require LIST` and `--max-driver`: names, versions and limits that have to
//! hold.

use std::fmt;

use semver::{Version, VersionReq};

use crate::{
    error::{Code, Error},
    model::{Component, FEATURES, FeatureId, Report, Verdict},
    request::Request,
};

/// What a name in the list stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// `cuda`: everything that UCX needs of CUDA.
    Cuda,
    /// A component.
    Component(Component),
    /// A feature.
    Feature(FeatureId),
}

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    /// As typed.
    text: String,
    subject: Subject,
    version: Option<VersionReq>,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads the lists, as often as the option was given.
///
/// # Errors
///
/// A list is empty, a name is not known, or a version cannot be read.
pub(super) fn parse(lists: &[String]) -> Result<Vec<Requirement>, Error> {
    if let Some(list) = lists.iter().find(|list| items(list).next().is_none()) {
        let what = match list.as_str() {
            "" => "`--require=` has no value".to_owned(),
            _ => format!("`--require={list}` names nothing"),
        };
        return Err(Error::new(Code::EmptyValue, what)
            .means("Most likely a variable in it, as in `--require=$VARIABLE`, is not set.")
            .hint("Name what has to hold, as in `--require='nvml,cuda>=12.0'`, or leave it out."));
    }
    lists.iter().flat_map(|list| items(list)).map(parse_one).collect()
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn parse_one(text: &str) -> Result<Requirement, Error> {
    let end = text.find(['<', '>', '=', '~', '^', ' ']).unwrap_or(text.len());
    let (name, version) = text.split_at(end);
    let subject = subject(name)?;
    let version = version.trim();
    let version = if version.is_empty() {
        None
    } else {
        if !has_version(subject) {
            return Err(usage(text, format!("`{name}` has no version, it is there or not"))
                .hint(format!("Write `--require={name}`.")));
        }
        // People write `==` as well.
        let operator = version.strip_prefix("==").map(|rest| format!("={rest}"));
        let operator = operator.as_deref().unwrap_or(version);
        let has_operator = operator.starts_with(['<', '>', '=', '~', '^']);
        let parsed = VersionReq::parse(if has_operator { operator } else { "no operator" })
            .map_err(|error| {
                usage(text, "the version cannot be read".to_owned())
                    .said(error.to_string())
                    .hint(format!("Write it as in `{name}>=12.0`."))
            })?;
        Some(parsed)
    };
    Ok(Requirement { text: text.to_owned(), subject, version })
}

fn usage(text: &str, what: String) -> Error {
    Error::new(Code::Usage, format!("`--require={text}`: {what}"))
}

fn subject(name: &str) -> Result<Subject, Error> {
    if name == "cuda" {
        return Ok(Subject::Cuda);
    }
    if let Some(component) = Component::ALL.into_iter().find(|component| component.key() == name) {
        return Ok(Subject::Component(component));
    }
    if let Some(feature) = FEATURES.iter().find(|feature| feature.key == name) {
        return Ok(Subject::Feature(feature.id));
    }
    let known: Vec<&str> = names().collect();
    let error = usage(name, "there is nothing of that name".to_owned())
        .means(format!("Known are: {}.", known.join(", ")));
    let near = known
        .into_iter()
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|(distance, _)| *distance <= 2)
        .min();
    Err(match near {
        Some((_, near)) => error.hint(format!("Did you mean `--require={near}`?")),
        None => error,
    })
}

/// Every name, each once: `gdrcopy` is a component and a feature.
fn names() -> impl Iterator<Item = &'static str> {
    let components = Component::ALL.into_iter().map(Component::key);
    let is_component = |key: &str| Component::ALL.into_iter().any(|other| other.key() == key);
    let features = FEATURES.iter().map(|feature| feature.key);
    std::iter::once("cuda").chain(components).chain(features.filter(move |key| !is_component(key)))
}

const fn has_version(subject: Subject) -> bool {
    matches!(
        subject,
        Subject::Cuda
            | Subject::Component(
                Component::CudaDriver
                    | Component::CudaRuntime
                    | Component::Nvcc
                    | Component::GdrCopy
            )
    )
}

/// Holds a report against the requirements.
///
/// # Errors
///
/// One does not hold; all that do not are named.
pub(super) fn hold(requirements: &[Requirement], report: &Report) -> Result<(), Error> {
    let failed: Vec<(&Requirement, String)> = requirements
        .iter()
        .filter_map(|requirement| Some((requirement, failure(requirement, report)?)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        failed.iter().map(|(requirement, _)| format!("`{requirement}`")).collect();
    let verb = if list.len() == 1 { "does" } else { "do" };
    let what = format!("required and {verb} not hold: {}", list.join(", "));
    Err(failed
        .into_iter()
        .fold(Error::new(Code::RequirementNotMet, what), |error, (requirement, why)| {
            error.means(format!("`{requirement}`: {why}"))
        }))
}

/// Holds a report against `--max-driver`.
///
/// # Errors
///
/// Something that is switched on needs a newer driver.
pub(super) fn cap(request: &Request, report: &Report) -> Result<(), Error> {
    let (Some(most), Some(floor)) = (request.max_driver, &report.driver_floor) else {
        return Ok(());
    };
    let above: Vec<_> = floor.above(most).collect();
    if above.is_empty() {
        return Ok(());
    }
    let what =
        format!("required and does not hold: `--max-driver={most}`: R{} is needed", floor.branch);
    let error = above.iter().fold(Error::new(Code::RequirementNotMet, what), |error, reason| {
        let name = reason.feature.map_or("always", |feature| feature.row().key);
        error.means(format!("`{name}` needs R{}: {}.", reason.branch, reason.why))
    });
    let releases = above.iter().filter_map(|reason| reason.feature?.row().since);
    Err(match releases.min() {
        Some(since) => error.hint(format!(
            "Configure on a toolkit before CUDA {since}, whose headers do not bring it, or raise the limit."
        )),
        None => error.hint(format!("UCX's CUDA modules need R{} at least.", floor.branch)),
    })
}

/// Why a requirement does not hold, if so.
fn failure(requirement: &Requirement, report: &Report) -> Option<String> {
    let (is_there, why_not) = match requirement.subject {
        Subject::Cuda => {
            let finding = report.finding(Component::CudaDriver);
            let why = finding.map_or("CUDA was not found.", |finding| &finding.why);
            (report.has_cuda(), why.to_owned())
        }
        Subject::Component(component) => match report.finding(component) {
            Some(finding) => (finding.verdict.is_yes(), finding.why.clone()),
            None => (false, "It was not looked for.".to_owned()),
        },
        Subject::Feature(id) => {
            let verdict = report.feature(id).map_or(Verdict::Skipped, |answer| answer.verdict);
            (verdict.is_yes(), format!("The answer is {}: {}", verdict.word(), id.row().doc))
        }
    };
    if !is_there {
        return Some(why_not);
    }
    let wanted = requirement.version.as_ref()?;
    match version(requirement.subject, report) {
        Some(version) if wanted.matches(&version) => None,
        Some(version) => Some(format!("Version {}.{} is there.", version.major, version.minor)),
        None => Some("Its version is not known.".to_owned()),
    }
}

fn version(subject: Subject, report: &Report) -> Option<Version> {
    let versions = report.toolkit.as_ref().map(|toolkit| &toolkit.versions);
    let cuda = match subject {
        Subject::Cuda | Subject::Component(Component::CudaDriver) => versions?.cuda_h,
        Subject::Component(Component::CudaRuntime) => versions?.cudart_h,
        Subject::Component(Component::Nvcc) => versions?.nvcc,
        Subject::Component(Component::GdrCopy) => {
            return report.gdrcopy.as_ref()?.version.map(crate::model::GdrVersion::to_semver);
        }
        _ => None,
    };
    cuda.map(crate::model::CudaVersion::to_semver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let lists = ["nvml, gdrcopy>=2.5".to_owned(), "fabric,cuda == 12.0,cuda<13,".to_owned()];
        let requirements = parse(&lists).unwrap();
        let subjects: Vec<_> = requirements.iter().map(|item| item.subject).collect();
        assert_eq!(
            subjects,
            [
                Subject::Component(Component::Nvml),
                Subject::Component(Component::GdrCopy),
                Subject::Feature(FeatureId::CudaFabric),
                Subject::Cuda,
                Subject::Cuda,
            ]
        );
        let matches = |at: usize, version: (u64, u64)| {
            let wanted = requirements[at].version.as_ref().unwrap();
            wanted.matches(&Version::new(version.0, version.1, 0))
        };
        assert!(matches(1, (2, 5)) && !matches(1, (2, 4)));
        assert!(matches(3, (12, 0)) && !matches(3, (12, 1)) && matches(4, (12, 9)));
        assert!(names().all(|name| subject(name).is_ok()));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let error = |item: &str| parse(&[item.to_owned()]).unwrap_err();
        assert_eq!(error("nvlm").hints, ["Did you mean `--require=nvml`?"]);
        for item in ["frob", "nvml>=12", "cuda>=twelve", "cuda 12"] {
            assert_eq!(error(item).code, Code::Usage, "{item}");
        }
        for item in ["", ",,", " , "] {
            assert_eq!(error(item).code, Code::EmptyValue, "{item}");
        }
    }
}
