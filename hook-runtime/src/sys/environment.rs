//! Environment variables, read once when they are needed.

use std::ffi::OsString;

/// The value of `name`, unless it is unset or empty.
#[expect(clippy::disallowed_methods, reason = "`sys` is the gate to the outside in this crate")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
