//! The variables of the transports, with UCX's names and defaults.
//!
//! A value that makes no sense is reported with what would, and the default is taken: a
//! program must not fail over it. Our own additions do not begin with `UCX_`, because UCX
//! warns about variables of its kind that it does not know.

mod parse;
mod table;

use crate::sys::environment;
pub use table::*;

impl Settings {
    /// What the environment says. Values that make no sense are logged.
    pub fn from_environment() -> Self {
        let value_of = |name: &str| environment::variable(name)?.into_string().ok();
        Self::read(value_of, &mut |message| crate::log::error!("{message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_make_sense() {
        for (number, row) in all().enumerate() {
            assert!(all().take(number).all(|other| other.name != row.name));
            assert!(!row.meaning.is_empty());
            assert_eq!(validate(row.name, row.default), Ok(()), "{}", row.name);
        }
        assert!(validate("UCX_NO_SUCH", "1").is_err());
    }

    #[test]
    fn what_is_read_elsewhere_is_in_the_table() {
        use crate::settings::{COVERAGE, FORCE_FAR_JUMP, HOOK_MODE, LOG_LEVEL, Modes, TRACE};
        for name in
            [COVERAGE, FORCE_FAR_JUMP, HOOK_MODE, LOG_LEVEL, TRACE, crate::memtype::VARIABLE]
        {
            assert!(GENERAL.iter().any(|row| row.name == name), "{name}");
        }
        // Both say the same of a value.
        for text in ["none", "Bistro", "bistro, reloc", "magic", "", "reloc,"] {
            let here = validate(HOOK_MODE, text);
            assert_eq!(here.is_ok(), Modes::parse(text).is_ok(), "{text}: {here:?}");
        }
        let mode = GENERAL.iter().find(|row| row.name == HOOK_MODE).unwrap();
        assert_eq!(Modes::parse(mode.default), Ok(Modes::BOTH));
        for level in ["fatal", "Trace", "loud", "3"] {
            let known = crate::log::Level::from_name(level).is_some();
            assert_eq!(validate(LOG_LEVEL, level).is_ok(), known, "{level}");
        }
    }

    #[test]
    fn a_wrong_value_is_reported_and_the_default_taken() {
        let mut reports = Vec::new();
        let value_of = |name: &str| (name == "UCX_CUDA_COPY_MAX_POLL").then(|| "many".into());
        let settings = Settings::read(value_of, &mut |message| reports.push(message));
        assert_eq!(settings, Settings::default());
        assert_eq!(reports, ["`UCX_CUDA_COPY_MAX_POLL=many` is not a whole number: using `16`"]);
    }

    #[test]
    fn values_are_read() {
        let value_of = |name: &str| match name {
            "UCX_CUDA_COPY_BW" => Some("1GBs,d2d:2TBs".to_owned()),
            "UCX_CUDA_IPC_CACHE_MAX_REGIONS" => Some("7".to_owned()),
            "HOOK_RUNTIME_COPY_KERNEL" => Some("no".to_owned()),
            _ => None,
        };
        let settings = Settings::read(value_of, &mut |message| panic!("{message}"));
        assert_eq!(settings.copy_bandwidth.get("d2d"), 2e12);
        assert_eq!(settings.copy_bandwidth.get("h2d"), 1e9);
        assert_eq!(settings.ipc_max_regions, Limit::At(7));
        assert!(!settings.kernel);
    }
}
