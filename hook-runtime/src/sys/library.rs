//! Libraries that this crate opens itself, at run time: the driver, gdrcopy.

use std::ffi::{CStr, c_void};
use std::io;

/// An open library. It stays loaded until the process ends.
#[derive(Debug, Clone, Copy)]
pub struct Library(usize);

impl Library {
    /// Opens the library of this name where the loader finds it. The error is the loader's text.
    pub fn open(name: &CStr) -> io::Result<Self> {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE;
        // SAFETY: the name ends in NUL. What the library's constructors do is part of loading
        // a system library that the program would load under the same name.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if handle.is_null() {
            Err(io::Error::other(last_message()))
        } else {
            Ok(Self(handle as usize))
        }
    }

    /// The address of a symbol, in the library itself or in what it was linked to.
    pub fn symbol(self, name: &CStr) -> Option<usize> {
        // SAFETY: the handle is open for ever, the string ends in NUL.
        let found = unsafe { libc::dlsym(self.0 as *mut c_void, name.as_ptr()) };
        if found.is_null() {
            super::loader::forget_error();
        }
        (!found.is_null()).then_some(found as usize)
    }
}

/// The address of a symbol in the program or in any library that it sees. No definition of
/// the object that asks is needed.
pub fn anywhere(name: &CStr) -> Option<usize> {
    // SAFETY: the string ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        super::loader::forget_error();
    }
    (!found.is_null()).then_some(found as usize)
}

fn last_message() -> String {
    // SAFETY: no requirement.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: the loader's message ends in NUL and lasts until this thread's next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_loaders_words() {
        let error = Library::open(c"libno_such_thing.so.9").unwrap_err();
        assert!(error.to_string().contains("libno_such_thing.so.9"), "{error}");
        let library = Library::open(c"libc.so.6").unwrap();
        assert!(library.symbol(c"getpid").is_some());
        assert_eq!(library.symbol(c"hook_runtime_no_such_symbol"), None);
    }
}
