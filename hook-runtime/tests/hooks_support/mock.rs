//! The mock driver and runtime of `fixtures/mock-driver`, built for a test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with `libcuda.so.1`, both kinds of runtime, and the demo program.
pub(crate) struct Mock {
    directory: tempfile::TempDir,
    level: u32,
}

impl Mock {
    /// Builds the libraries of the CUDA release `level` (12050 is 12.5), whose driver has
    /// the entries of the driver family `prologue`.
    pub(crate) fn build(level: u32, prologue: &str) -> Self {
        let mock = Self { directory: tempfile::tempdir().unwrap(), level };
        let prologue = format!("-DMOCK_PROLOGUE={prologue}");
        let driver = [
            &prologue,
            "-fvisibility=hidden",
            "-falign-functions=16",
            "-shared",
            "-Wl,-Bsymbolic",
            "-Wl,-soname,libcuda.so.1",
            "-pthread",
        ];
        mock.compile("libcuda.so.1", &driver, &sources("driver"), &[]);
        let runtime = [
            "-shared",
            "-Wl,-Bsymbolic",
            "-Wl,--default-symver",
            "-Wl,-soname,libcudart.so.12",
            "-pthread",
        ];
        mock.compile("libcudart.so.12", &runtime, &sources("runtime"), &["-ldl"]);
        for (link, file) in [("libcuda.so", "libcuda.so.1"), ("libcudart.so", "libcudart.so.12")] {
            std::os::unix::fs::symlink(file, mock.path(link)).unwrap();
        }
        mock
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The demo program, which prints a line for each of its calls.
    #[allow(dead_code, reason = "not every test runs it")]
    pub(crate) fn demo(&self, name: &str, static_runtime: bool) -> PathBuf {
        let mut sources = vec![fixtures().join("mock-driver/demo.c")];
        let mut libraries = vec!["-L.", "-Wl,-rpath,$ORIGIN"];
        if static_runtime {
            sources.extend(self::sources("runtime"));
            libraries.extend(["-lcuda", "-ldl", "-pthread"]);
        } else {
            libraries.extend(["-lcudart", "-lcuda"]);
        }
        self.compile(name, &[], &sources, &libraries)
    }

    /// A program of a test's own, which links to the libraries that are named.
    #[allow(dead_code, reason = "not every test has one")]
    pub(crate) fn program(&self, name: &str, sources: &[PathBuf], libraries: &[&str]) -> PathBuf {
        self.compile(name, &[], sources, &[&["-L.", "-Wl,-rpath,$ORIGIN"], libraries].concat())
    }

    fn compile(&self, name: &str, flags: &[&str], sources: &[PathBuf], libs: &[&str]) -> PathBuf {
        let output = self.path(name);
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let result = Command::new(compiler)
            .args(["-std=gnu11", "-O2", "-g", "-fPIC", "-w"])
            .arg(format!("-DUCX_STUB_CUDA_VERSION={}", self.level))
            .arg("-I")
            .arg(fixtures().join("toolkit/include"))
            .args(flags)
            .arg("-o")
            .arg(&output)
            .args(sources)
            .args(libs)
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        output
    }
}

/// The project's fixtures, from any package below `hook-runtime`.
fn fixtures() -> PathBuf {
    let mut directories = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = directories.find(|directory| directory.join("fixtures/mock-driver").is_dir());
    found.unwrap().join("fixtures")
}

fn sources(part: &str) -> Vec<PathBuf> {
    let directory = fixtures().join("mock-driver").join(part);
    let entries = std::fs::read_dir(directory).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let source = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "c" || kind == "S");
    files.filter(source).collect()
}
