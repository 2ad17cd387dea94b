//! Runs a test in a process of its own, against the mock driver.
#![expect(clippy::disallowed_methods, reason = "a test starts its own processes")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::ffi::{CStr, c_char};
use std::process::{Command, Output};

use hook_runtime::sys::library::Library;

#[path = "../support/mock.rs"]
pub(crate) mod mock;

const CHILD: &str = "HOOK_RUNTIME_TEST_CHILD";

/// Runs `body` in a process of its own with the mock driver of `version` and `variables`.
/// `test` is the name of the calling test.
pub(crate) fn on_mock(test: &str, version: &str, variables: &[(&str, &str)], body: fn()) {
    if is_child(test) {
        body();
        return;
    }
    let output = command(test, version, variables).output().unwrap();
    assert_passed(test, &output);
}

/// Whether this is the process that [`command`] made for `test`.
pub(crate) fn is_child(test: &str) -> bool {
    std::env::var_os(CHILD).is_some_and(|name| name == test)
}

/// A process that runs the test `test`, which has to look at [`is_child`].
pub(crate) fn command(test: &str, version: &str, variables: &[(&str, &str)]) -> Command {
    let mock = mock::shared_mock(version, mock::DEFAULT_PROLOGUE);
    let mut command = mock.command(&std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env_remove("HOOK_RUNTIME_TRACE")
        .envs(variables.iter().copied());
    command
}

pub(crate) fn assert_passed(test: &str, output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {}\n{text}", output.status);
    assert!(text.contains("1 passed"), "{test} did not run:\n{text}");
}

/// A function of the mock driver's own.
fn of_mock<F: Copy>(name: &CStr) -> F {
    let address = Library::open(c"libcuda.so.1").unwrap().symbol(name).unwrap();
    assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: each caller names the type that the mock gives the function.
    unsafe { std::mem::transmute_copy::<usize, F>(&address) }
}

/// How many things of each kind the mock driver has given out and not taken back.
pub(crate) fn alive() -> [i32; 8] {
    let count: extern "C" fn(i32) -> i32 = of_mock(c"mock_cuda_alive");
    std::array::from_fn(|kind| count(kind as i32))
}

/// Lets the nth call of the driver from now on fail, whichever it is; 0: none.
pub(crate) fn fail_at(n: i64, error: i32) {
    let fail_at: extern "C" fn(i64, i32) = of_mock(c"mock_cuda_fail_at");
    fail_at(n, error);
}

/// Which call it was, if there was one.
pub(crate) fn failed() -> Option<String> {
    let failed: extern "C" fn() -> *const c_char = of_mock(c"mock_cuda_failed");
    let name = failed();
    // SAFETY: the mock gives the name of an entry point, which stays.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned())
}

/// Places in [`alive`].
pub(crate) const RANGES: usize = 0;
pub(crate) const STREAMS: usize = 1;
pub(crate) const EVENTS: usize = 2;
pub(crate) const RESERVATIONS: usize = 4;
pub(crate) const PHYSICAL: usize = 5;
pub(crate) const POOLS: usize = 6;
