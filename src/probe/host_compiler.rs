//! Which host compilers an nvcc takes: the newest gcc and clang for each
//! release.
//!
//! The numbers are those that the release's own `crt/host_config.h` refuses
//! anything above. A release that is newer than the table is not judged.

use crate::model::CudaVersion;

use super::identity::Kind;

/// One release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The first release that it is true of.
    pub since: CudaVersion,
    /// The newest major version of gcc.
    pub gcc: u32,
    /// The newest major version of clang.
    pub clang: u32,
}

const fn limit(major: u32, minor: u32, gcc: u32, clang: u32) -> Limit {
    Limit { since: CudaVersion::new(major, minor), gcc, clang }
}

/// Every release at which a limit changes, ascending.
pub const LIMITS: &[Limit] = &[
    limit(10, 2, 8, 8),
    limit(11, 0, 9, 9),
    limit(11, 1, 10, 10),
    limit(11, 2, 10, 11),
    limit(11, 4, 11, 12),
    limit(11, 6, 11, 13),
    limit(11, 8, 11, 14),
    limit(12, 0, 12, 14),
    limit(12, 1, 12, 15),
    limit(12, 2, 12, 16),
    limit(12, 4, 13, 17),
    limit(12, 6, 13, 18),
    limit(12, 8, 14, 19),
    limit(13, 0, 15, 20),
    limit(13, 2, 15, 21),
    limit(13, 4, 16, 21),
    limit(13, 5, 16, 22),
];

/// What is true of a release; none where the table does not reach.
pub fn of(release: CudaVersion) -> Option<&'static Limit> {
    if LIMITS.last().is_some_and(|newest| release > newest.since) {
        return None;
    }
    LIMITS.iter().rfind(|limit| limit.since <= release)
}

impl Limit {
    /// The newest major version of a compiler; none where there is no limit.
    pub const fn newest(&self, kind: Kind) -> Option<u32> {
        match kind {
            Kind::Gcc => Some(self.gcc),
            Kind::Clang => Some(self.clang),
            Kind::Nvhpc | Kind::Other => None,
        }
    }
}

/// The host compiler that an nvcc will start, as its command line and
/// environment say: `-ccbin`, then NVCC_CCBIN, then the gcc of PATH.
pub(super) fn named(words: &[String], variable: Option<&str>) -> String {
    let mut named = variable.filter(|value| !value.is_empty()).map(str::to_owned);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        for option in ["-ccbin", "--compiler-bindir"] {
            if word == option {
                named = rest.next().cloned().or(named.take());
                break;
            }
            if let Some(value) = word.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')) {
                named = Some(value.to_owned());
                break;
            }
        }
    }
    named.unwrap_or_else(|| "gcc".to_owned())
}

/// The newest gcc that an nvcc takes, as its own headers say when they refuse
/// another: true of releases that the table does not know, too.
pub(super) fn refused(said: &str) -> Option<u32> {
    let rest = said.split_once("unsupported GNU version! gcc versions later than ")?.1;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_the_newest() {
        let said = "crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 19 are not supported!";
        assert_eq!(refused(said), Some(19));
        assert_eq!(refused("unsupported GNU version! gcc versions later than x"), None);
        assert_eq!(refused("error: no"), None);
    }

    #[test]
    fn the_table_ascends_and_says_what_headers_say() {
        assert!(LIMITS.windows(2).all(|pair| pair[0].since < pair[1].since));
        assert!(LIMITS.windows(2).all(|pair| pair[0].gcc <= pair[1].gcc));
        let gcc = |major, minor| of(CudaVersion::new(major, minor)).map(|limit| limit.gcc);
        for (release, newest) in [
            ((11, 7), Some(11)),
            ((12, 3), Some(12)),
            ((12, 5), Some(13)),
            ((12, 9), Some(14)),
            ((13, 0), Some(15)),
            ((13, 5), Some(16)),
            ((13, 6), None),
            ((9, 2), None),
        ] {
            assert_eq!(gcc(release.0, release.1), newest, "{release:?}");
        }
        let limit = of(CudaVersion::new(12, 2)).unwrap();
        assert_eq!((limit.newest(Kind::Clang), limit.newest(Kind::Nvhpc)), (Some(16), None));
    }

    #[test]
    fn the_host_compiler_is_the_one_that_is_named_last() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(named(&words("nvcc -O1"), None), "gcc");
        assert_eq!(named(&words("nvcc -O1"), Some("clang-14")), "clang-14");
        assert_eq!(named(&words("nvcc -ccbin gcc-12 -O1"), Some("x")), "gcc-12");
        assert_eq!(named(&words("nvcc --compiler-bindir=/x/g++ -ccbin=gcc-11"), None), "gcc-11");
    }
}
