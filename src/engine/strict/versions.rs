//! What headers, libraries and nvcc say of their versions, and where they
//! disagree.

use camino::Utf8Path;

use crate::discover::elf::facts;
use crate::model::{CudaVersion, GdrVersion, Versions};

/// Starts every line of the answer.
pub(super) const MARK: &str = "ucx_configure_version";

/// The macros that hold versions.
pub(super) const MACROS: [&str; 5] = [
    "CUDA_VERSION",
    "CUDART_VERSION",
    "NVML_API_VERSION",
    "GDR_API_MAJOR_VERSION",
    "GDR_API_MINOR_VERSION",
];

/// What the headers say, from one preprocessor run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeaderVersions {
    pub(super) cuda: Option<CudaVersion>,
    pub(super) cudart: Option<CudaVersion>,
    pub(super) nvml: Option<u32>,
    pub(super) gdrcopy: Option<GdrVersion>,
}

impl HeaderVersions {
    /// Reads the preprocessor's output.
    pub(super) fn parse(output: &str) -> Self {
        let value = |name: &str| {
            output.lines().find_map(|line| {
                let rest = line.trim().strip_prefix(MARK)?.trim_start();
                let rest = rest.strip_prefix('"')?.strip_prefix(name)?.strip_prefix('"')?;
                evaluate(rest)
            })
        };
        let gdrcopy = match (value("GDR_API_MAJOR_VERSION"), value("GDR_API_MINOR_VERSION")) {
            (Some(major), Some(minor)) => Some(GdrVersion::new(major, minor)),
            _ => None,
        };
        Self {
            cuda: value("CUDA_VERSION").map(CudaVersion::from_macro),
            cudart: value("CUDART_VERSION").map(CudaVersion::from_macro),
            nvml: value("NVML_API_VERSION"),
            gdrcopy,
        }
    }

    /// Keeps what is about parts that were found.
    pub(super) fn only(&mut self, cuda: bool, gdrcopy: bool) {
        if !cuda {
            (self.cuda, self.cudart, self.nvml) = (None, None, None);
        }
        if !gdrcopy {
            self.gdrcopy = None;
        }
    }

    /// One line for people; none when no header says anything.
    pub(super) fn text(&self) -> Option<String> {
        let parts = [
            self.cuda.map(|version| format!("CUDA {version}")),
            self.cudart.map(|version| format!("runtime {version}")),
            self.nvml.map(|version| format!("NVML {version}")),
            self.gdrcopy.map(|version| format!("gdrcopy {version}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// The value of an integer expression as macros hold it: numbers, `+ - * / %`
/// and brackets.
fn evaluate(text: &str) -> Option<u32> {
    let mut rest = text.trim();
    let value = sum(&mut rest)?;
    if rest.trim().is_empty() { u32::try_from(value).ok() } else { None }
}

fn sum(rest: &mut &str) -> Option<i64> {
    let mut value = product(rest)?;
    loop {
        value = match operator(rest, &['+', '-']) {
            Some('+') => value.checked_add(product(rest)?)?,
            Some(_) => value.checked_sub(product(rest)?)?,
            None => return Some(value),
        };
    }
}

fn product(rest: &mut &str) -> Option<i64> {
    let mut value = term(rest)?;
    loop {
        value = match operator(rest, &['*', '/', '%']) {
            Some('*') => value.checked_mul(term(rest)?)?,
            Some('/') => value.checked_div(term(rest)?)?,
            Some(_) => value.checked_rem(term(rest)?)?,
            None => return Some(value),
        };
    }
}

fn term(rest: &mut &str) -> Option<i64> {
    if operator(rest, &['(']).is_some() {
        let value = sum(rest)?;
        return operator(rest, &[')']).map(|_| value);
    }
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let value = rest[..end].parse().ok()?;
    *rest = rest[end..].trim_start_matches(['u', 'U', 'l', 'L']);
    Some(value)
}

/// Takes one of the letters off the text, blanks before it included.
fn operator(rest: &mut &str, letters: &[char]) -> Option<char> {
    *rest = rest.trim_start();
    let letter = rest.chars().next().filter(|letter| letters.contains(letter))?;
    *rest = &rest[letter.len_utf8()..];
    *rest = rest.trim_start();
    Some(letter)
}

/// The version in the name of a libcudart, links followed:
/// `libcudart.so.12.5.82` gives `12.5.82`. Where it has none, its SONAME has.
pub(super) fn of_library(path: &Utf8Path) -> Option<String> {
    let version = |name: &str| name.strip_prefix("libcudart.so.").map(str::to_owned);
    let real = crate::host::fs::canonical(path).ok()?;
    version(real.file_name()?).or_else(|| version(&facts(&real)?.soname?))
}

/// Pairs of parts that say different versions, each as one sentence with both
/// numbers.
pub(super) fn disagreements(versions: &Versions) -> Vec<String> {
    let mut found = Vec::new();
    let cuda = versions.cuda_h;
    if let (Some(cuda), Some(runtime)) = (cuda, versions.cudart_h)
        && cuda != runtime
    {
        found.push(format!("cuda.h is of CUDA {cuda}, cuda_runtime_api.h of {runtime}"));
    }
    if let (Some(runtime), Some(library)) = (versions.cudart_h, &versions.cudart_library)
        && !fits(library, runtime)
    {
        found.push(format!("cuda_runtime_api.h is of CUDA {runtime}, libcudart of {library}"));
    }
    if let (Some(cuda), Some(nvml)) = (cuda, &versions.nvml_h)
        && *nvml != cuda.major.to_string()
    {
        found.push(format!("cuda.h is of CUDA {cuda}, nvml.h of {nvml}"));
    }
    if let (Some(cuda), Some(nvcc)) = (cuda, versions.nvcc)
        && cuda != nvcc
    {
        found.push(format!("cuda.h is of CUDA {cuda}, nvcc of {nvcc}"));
    }
    found
}

/// Whether a libcudart can be of a release. A name with three numbers is of a
/// file; a shorter one is the SONAME, `libcudart.so.11.0` for all of CUDA 11.
fn fits(library: &str, release: CudaVersion) -> bool {
    let parts: Vec<&str> = library.split('.').collect();
    let major = parts.first().is_some_and(|part| *part == release.major.to_string());
    major && (parts.len() < 3 || parts[1] == release.minor.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_evaluated() {
        for (text, value) in [
            ("12050", Some(12050)),
            (" (2050 / 1000)", Some(2)),
            ("(2050 % 1000 / 10)", Some(5)),
            ("2U", Some(2)),
            ("1 + 2 * 3", Some(7)),
            ("(1", None),
            ("1 / 0", None),
            ("1 - 2", None),
            ("SOMETHING", None),
            ("", None),
        ] {
            assert_eq!(evaluate(text), value, "{text}");
        }
    }

    #[test]
    fn headers_are_read() {
        let output = "# 1 \"x\"\ntypedef int x;\nucx_configure_version \"CUDA_VERSION\" 12050\n\nucx_configure_version \"NVML_API_VERSION\" 12\nucx_configure_version \"GDR_API_MAJOR_VERSION\" 2\nucx_configure_version \"GDR_API_MINOR_VERSION\" (2050 % 1000 / 10)\n";
        let versions = HeaderVersions::parse(output);
        assert_eq!(versions.cuda, Some(CudaVersion::new(12, 5)));
        assert_eq!(versions.cudart, None);
        assert_eq!(versions.text().unwrap(), "CUDA 12.5, NVML 12, gdrcopy 2.5");
        assert_eq!(HeaderVersions::parse("").text(), None);
    }

    #[test]
    fn disagreements_name_both_numbers() {
        let same = Versions {
            cuda_h: Some(CudaVersion::new(12, 5)),
            cudart_h: Some(CudaVersion::new(12, 5)),
            cudart_library: Some("12".to_owned()),
            nvml_h: Some("12".to_owned()),
            nvcc: Some(CudaVersion::new(12, 5)),
        };
        assert!(disagreements(&same).is_empty());
        assert!(fits("11.0", CudaVersion::new(11, 7)) && !fits("11.0", CudaVersion::new(12, 0)));
        assert!(fits("12.5.82", CudaVersion::new(12, 5)));
        assert!(!fits("12.4.99", CudaVersion::new(12, 5)));
        let mixed = Versions {
            cudart_library: Some("11.8.89".to_owned()),
            nvml_h: Some("11".to_owned()),
            nvcc: Some(CudaVersion::new(13, 0)),
            ..same
        };
        assert_eq!(
            disagreements(&mixed),
            [
                "cuda_runtime_api.h is of CUDA 12.5, libcudart of 11.8.89",
                "cuda.h is of CUDA 12.5, nvml.h of 11",
                "cuda.h is of CUDA 12.5, nvcc of 13.0",
            ]
        );
    }
}
