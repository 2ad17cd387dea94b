//! Versions of CUDA and gdrcopy, as headers, file names and people write them.
//!
//! The `semver` crate refuses `12.4` (two parts) and `550.144.03` (a leading
//! zero), so these are own types; requirement expressions convert to semver.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A version text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version: {expected}")]
pub struct ParseVersionError {
    /// The text as given.
    pub text: String,
    /// What would have been a version.
    pub expected: &'static str,
}

/// A CUDA release: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CudaVersion {
    /// 12 in 12.5.
    pub major: u32,
    /// 5 in 12.5.
    pub minor: u32,
}

impl CudaVersion {
    /// Makes a version from its two parts.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads the value of `CUDA_VERSION` or `CUDART_VERSION`:
    /// 1000 x major + 10 x minor.
    pub const fn from_macro(value: u32) -> Self {
        Self { major: value / 1000, minor: value % 1000 / 10 }
    }

    /// The value that `CUDA_VERSION` has in this release.
    pub const fn to_macro(self) -> u32 {
        self.major * 1000 + self.minor * 10
    }

    /// The same as a semver version, for requirement expressions.
    pub fn to_semver(self) -> semver::Version {
        semver::Version::new(self.major.into(), self.minor.into(), 0)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<CudaVersion> for String {
    fn from(version: CudaVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for CudaVersion {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for CudaVersion {
    type Err = ParseVersionError;

    /// Reads `12.5` and `12.5.82`; what follows the minor number is checked to
    /// be numbers and otherwise ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = two_parts(text, "MAJOR.MINOR such as `12.5` is expected")?;
        Ok(Self { major, minor })
    }
}

/// A gdrcopy release: major and minor, as `GDR_API_MAJOR_VERSION` and
/// `GDR_API_MINOR_VERSION` say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct GdrVersion {
    /// 2 in 2.5.
    pub major: u32,
    /// 5 in 2.5.
    pub minor: u32,
}

impl GdrVersion {
    /// Makes a version from its two parts.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The same as a semver version, for requirement expressions.
    pub fn to_semver(self) -> semver::Version {
        semver::Version::new(self.major.into(), self.minor.into(), 0)
    }
}

impl fmt::Display for GdrVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<GdrVersion> for String {
    fn from(version: GdrVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for GdrVersion {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for GdrVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = two_parts(text, "MAJOR.MINOR such as `2.5` is expected")?;
        Ok(Self { major, minor })
    }
}

/// Splits `MAJOR.MINOR[.MORE...]`; every part has to be a number.
fn two_parts(text: &str, expected: &'static str) -> Result<(u32, u32), ParseVersionError> {
    let error = || ParseVersionError { text: text.to_owned(), expected };
    let parts: Vec<u32> =
        text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
    match parts[..] {
        [major, minor, ..] => Ok((major, minor)),
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_headers_and_people_write() {
        assert_eq!(CudaVersion::from_macro(12050), CudaVersion::new(12, 5));
        assert_eq!(CudaVersion::new(11, 2).to_macro(), 11020);
        assert_eq!("12.5.82".parse(), Ok(CudaVersion::new(12, 5)));
        assert_eq!("13.0".parse::<CudaVersion>().map(|v| v.to_string()), Ok("13.0".to_owned()));
        for bad in ["", "12", "12.", "twelve", "12.x", "12.5-rc", "-1.2"] {
            assert!(bad.parse::<CudaVersion>().is_err(), "{bad}");
        }
        assert_eq!("2.5".parse(), Ok(GdrVersion::new(2, 5)));
    }
}
