//! The quirks of the original that we mend, by name.
//!
//! Wherever a mended quirk makes this run's answer another one than the
//! original's, one line says so.

use crate::model::Difference;

/// One quirk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// The last header decides.
    LastHeader,
    /// The user's flags beat DIR.
    UserFirst,
    /// lib64 is taken for its name.
    Lib64,
    /// nvcc in the current directory wins.
    NvccHere,
    /// Any program that exits with 0 is nvcc.
    AnyNvcc,
    /// HAVE_NVCC without CUDA.
    NvccWithoutCuda,
    /// Stray values survive.
    StrayValues,
    /// What was found stays set on "no".
    NotCleared,
    /// An undeclared option is read from the environment.
    StrayLibdir,
    /// A bogus include path for gdrcopy.
    BogusInclude,
    /// Variables such as CUDA_HOME are not looked at.
    VariablesIgnored,
    /// Gaps of DIR are filled from elsewhere.
    Gaps,
    /// gdrcopy counts without CUDA.
    GdrcopyAlone,
    /// Blanks in DIR.
    Blanks,
    /// nvcc of another installation.
    ForeignNvcc,
    /// Probes fail by warnings.
    Warnings,
    /// A library without its development link is not found.
    VersionedName,
}

/// Every quirk: its name in our documentation, and what the original does.
pub const QUIRKS: &[(Quirk, &str, &str)] = &[
    (Quirk::LastHeader, "Q1", "cuda.h may be missing as long as cuda_runtime.h is there"),
    (Quirk::UserFirst, "Q3", "CPPFLAGS and LDFLAGS come before DIR"),
    (Quirk::Lib64, "Q4", "DIR/lib64 is taken whenever it exists, whatever it holds"),
    (Quirk::NvccHere, "Q10", "an nvcc in the current directory is taken first"),
    (Quirk::AnyNvcc, "Q12", "any nvcc that exits with 0 is taken to work"),
    (Quirk::NvccWithoutCuda, "Q13", "HAVE_NVCC can be true without CUDA"),
    (Quirk::StrayValues, "Q14", "values of the environment survive `--without-cuda`"),
    (Quirk::NotCleared, "Q15", "what was found stays set though CUDA is off"),
    (Quirk::StrayLibdir, "Q18", "with_gdrcopy_libdir is read from the environment"),
    (Quirk::BogusInclude, "Q19", "gdrcopy found by the compiler gets `-I/include/`"),
    (Quirk::VariablesIgnored, "Q23", "CUDA is looked for by the compiler alone"),
    (Quirk::Gaps, "Q24", "what DIR lacks is taken from elsewhere"),
    (Quirk::GdrcopyAlone, "Q25", "gdrcopy counts without CUDA, though nothing of it is built"),
    (Quirk::Blanks, "Q26", "a DIR with blanks is cut into pieces"),
    (Quirk::ForeignNvcc, "Q27", "an nvcc of another installation is taken from PATH"),
    (Quirk::Warnings, "Q28", "a warning that `-Werror` makes an error counts as a `no`"),
    (Quirk::VersionedName, "Q29", "a library without its development link is not found"),
];

impl Quirk {
    /// Its name in our documentation.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What the original does.
    pub fn doc(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        // The test holds the table complete.
        QUIRKS.iter().find(|row| row.0 == self).unwrap_or(&QUIRKS[0])
    }

    /// The line that tells of it; `here` says what it comes to in this run.
    pub(super) fn differs(self, here: &str) -> Difference {
        let quirk = self.name().to_owned();
        Difference { quirk, text: format!("in UCX v1.19.0 {}; {here}", self.doc()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_the_table_is_complete() {
        let names: BTreeSet<_> = QUIRKS.iter().map(|row| row.1).collect();
        assert_eq!(names.len(), QUIRKS.len());
        assert_eq!(QUIRKS.len(), Quirk::VersionedName as usize + 1);
        for (quirk, name, _) in QUIRKS {
            assert_eq!(quirk.name(), *name);
        }
    }
}
