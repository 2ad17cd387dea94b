//! What the tests of hooks share: small libraries built with the C compiler, a process of
//! its own for each test, and a record of the events.
#![expect(clippy::disallowed_methods, reason = "tests build and run things themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use hook_runtime::event::{Event, EventKind, subscribe};

/// Runs `body` in a process of its own: hooks belong to the process, and so do loaded libraries.
/// `test` is the name of the calling test.
pub(crate) fn in_own_process(test: &str, body: fn()) {
    const CHILD: &str = "HOOK_RUNTIME_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        body();
        return;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env_remove("HOOK_RUNTIME_TRACE")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&status.stdout).into_owned()
        + &String::from_utf8_lossy(&status.stderr);
    assert!(status.status.success(), "{test}: {}\n{text}", status.status);
    assert!(text.contains("1 passed"), "{test} did not run:\n{text}");
}

/// Whether a program can be found as a shell would find it.
pub(crate) fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    })
}

/// A directory with libraries, built for one test.
pub(crate) struct Workshop {
    directory: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Builds the shared library `name` from `tests/c/SOURCE.c`.
    pub(crate) fn build(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let output = self.path(name);
        std::fs::create_dir_all(output.parent().unwrap()).unwrap();
        let soname = output.file_name().unwrap().to_str().unwrap();
        let source = format!("{}/tests/c/{source}.c", env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let result = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&output)
            .arg(format!("-Wl,-soname,{soname}"))
            .arg(source)
            .args(arguments)
            .arg(format!("-Wl,-rpath-link,{}", self.directory.path().display()))
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        output
    }

    /// The driver, the runtime on top of it, and a library that calls the runtime.
    pub(crate) fn usual(&self) -> Usual {
        let driver = self.build("libcuda.so.1", "driver", &[]);
        let here = "-Wl,-rpath,$ORIGIN";
        let runtime = self.build("libcudart.so.12", "runtime", &["libcuda.so.1", here]);
        let victim = self.build("libvictim.so", "victim", &["libcudart.so.12", here]);
        Usual { driver, runtime, victim }
    }
}

pub(crate) struct Usual {
    pub(crate) driver: PathBuf,
    pub(crate) runtime: PathBuf,
    pub(crate) victim: PathBuf,
}

/// A library opened through this program's own slot for `dlopen`.
#[derive(Clone, Copy)]
pub(crate) struct Library(*mut c_void);

// SAFETY: a handle of the loader's may be used by every thread.
unsafe impl Send for Library {}

impl Library {
    pub(crate) fn open(path: &Path) -> Self {
        Self::open_with(path, libc::RTLD_LAZY | libc::RTLD_LOCAL)
    }

    pub(crate) fn open_with(path: &Path, flags: c_int) -> Self {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the libraries of these tests have harmless constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        assert!(!handle.is_null(), "{}", last_error());
        Self(handle)
    }

    pub(crate) fn close(self) {
        // SAFETY: each test closes what it has opened once.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }

    pub(crate) fn address(self, name: &CStr) -> usize {
        // SAFETY: the handle is open.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is missing");
        found as usize
    }

    /// The function `name`, of the type `F`.
    pub(crate) fn function<F: Copy>(self, name: &CStr) -> F {
        let address = self.address(name);
        assert_eq!(size_of::<F>(), size_of::<usize>());
        // SAFETY: the tests ask for the types that their C sources have.
        unsafe { std::mem::transmute_copy::<usize, F>(&address) }
    }

    pub(crate) fn allocate(self, way: &CStr, size: usize) -> usize {
        self.function::<extern "C" fn(usize) -> usize>(way)(size)
    }

    pub(crate) fn release(self, address: usize) -> c_int {
        self.function::<extern "C" fn(usize) -> c_int>(c"release")(address)
    }
}

pub(crate) fn last_error() -> String {
    // SAFETY: the message, if any, ends in NUL and stays until the next call.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return String::new();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// All events from its making on.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<Event>>>);

impl Record {
    pub(crate) fn start() -> Self {
        let record = Self::default();
        let events = record.0.clone();
        subscribe(0, move |event| events.lock().unwrap().push(*event));
        record
    }

    /// The events since the last time, in short.
    pub(crate) fn take(&self) -> Vec<Short> {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        events.iter().map(Short::from).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short(
    pub(crate) EventKind,
    pub(crate) usize,
    pub(crate) usize,
    pub(crate) &'static str,
);

impl From<&Event> for Short {
    fn from(event: &Event) -> Self {
        Self(event.kind, event.address, event.size, event.symbol.to_str().unwrap())
    }
}

pub(crate) fn allocated(address: usize, size: usize, symbol: &'static str) -> Short {
    Short(EventKind::Allocated, address, size, symbol)
}

pub(crate) fn freed(address: usize, size: usize, symbol: &'static str) -> Short {
    Short(EventKind::Freed, address, size, symbol)
}

/// The lines of `/proc/self/maps` about files in `directory`, without what may change.
pub(crate) fn protections(directory: &Path) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let directory = directory.to_str().unwrap();
    maps.lines().filter(|line| line.contains(directory)).map(str::to_owned).collect()
}
