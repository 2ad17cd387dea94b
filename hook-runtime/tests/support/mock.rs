//! Builds the mock driver of `fixtures/mock-driver`, as its manifest says.
//!
//! ```ignore
//! #[path = "support/mock.rs"]
//! mod mock;
//!
//! let mock = mock::shared_mock("12.5", "580");
//! let program = mock.compile("mine", &[Path::new("mine.c")], &["-lcudart", "-lcuda"]);
//! let output = mock.command(&program).output().unwrap();
//! ```

#![allow(dead_code, reason = "each test takes a part of it")]
#![expect(clippy::disallowed_methods, reason = "a test runs the compiler by itself")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use toml::{Table, Value};

/// The opening bytes that libcuda has unless another family is asked for.
pub(crate) const DEFAULT_PROLOGUE: &str = "580";

/// The version of gdrcopy that goes with every version of CUDA.
pub(crate) const GDRCOPY: &str = "2.5";

/// A directory with the mock libraries of one version.
#[derive(Debug, Clone)]
pub(crate) struct Mock {
    /// Where the libraries are: for `-L` and `LD_LIBRARY_PATH`.
    pub(crate) dir: PathBuf,
    /// `MAJOR.MINOR` of CUDA.
    pub(crate) version: String,
}

impl Mock {
    /// The driver.
    pub(crate) fn libcuda(&self) -> PathBuf {
        self.dir.join("libcuda.so.1")
    }

    /// The shared runtime, through its development link.
    pub(crate) fn libcudart(&self) -> PathBuf {
        self.dir.join("libcudart.so")
    }

    /// The static runtime.
    pub(crate) fn libcudart_static(&self) -> PathBuf {
        self.dir.join("libcudart_static.a")
    }

    /// NVML.
    pub(crate) fn nvml(&self) -> PathBuf {
        self.dir.join("libnvidia-ml.so.1")
    }

    /// gdrcopy.
    pub(crate) fn gdrapi(&self) -> PathBuf {
        self.dir.join("libgdrapi.so.2")
    }

    /// Compiles and links a program against the mock, in its directory. Two tests
    /// may do so with the same name at once.
    ///
    /// `options` come last: `-lcudart -lcuda`, or `-DCUDA_API_PER_THREAD_DEFAULT_STREAM`.
    pub(crate) fn compile(&self, name: &str, sources: &[&Path], options: &[&str]) -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let out = self.dir.join(name);
        let unfinished = self.dir.join(format!("{name}.{}.{count}", std::process::id()));
        let mut cc = compiler(&manifest());
        cc.arg(format!("-DUCX_STUB_CUDA_VERSION={}", code(&self.version)))
            .arg(format!("-DUCX_STUB_GDRCOPY_VERSION={}", code(GDRCOPY)))
            .arg("-o")
            .arg(&unfinished)
            .args(sources)
            .arg("-L")
            .arg(&self.dir)
            .args(options);
        run(&mut cc);
        fs::rename(unfinished, &out).unwrap();
        out
    }

    /// A command that runs a program with the mock libraries.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.dir);
        for name in ["MOCK_CUDA_DEVICES", "MOCK_CUDA_FAIL", "MOCK_CUDA_SLOW_PATH", "LD_PRELOAD"] {
            command.env_remove(name);
        }
        command
    }
}

/// The directory of the mock driver's sources.
pub(crate) fn sources() -> PathBuf {
    let mut directories = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let fixtures = directories.find(|directory| directory.join("fixtures/mock-driver").is_dir());
    fixtures.unwrap().join("fixtures/mock-driver")
}

/// The manifest.
pub(crate) fn manifest() -> Table {
    fs::read_to_string(sources().join("manifest.toml")).unwrap().parse().unwrap()
}

/// 1000 x major + 10 x minor.
pub(crate) fn code(version: &str) -> u32 {
    let (major, minor) = version.split_once('.').unwrap();
    1000 * major.parse::<u32>().unwrap() + 10 * minor.parse::<u32>().unwrap()
}

/// Whether a row of the manifest counts for a version.
pub(crate) fn applies(row: &Table, version: &str) -> bool {
    let bound = |key: &str| row.get(key).and_then(Value::as_str).map(code);
    let version = code(version);
    bound("since").is_none_or(|since| since <= version)
        && bound("until").is_none_or(|until| version < until)
}

/// The rows of a table of the manifest.
pub(crate) fn rows(manifest: &Table, name: &str) -> Vec<Table> {
    let rows = manifest.get(name).and_then(Value::as_array).unwrap();
    rows.iter().map(|row| row.as_table().unwrap().clone()).collect()
}

/// A list of words in a row; empty if the row has none of that name.
pub(crate) fn words(row: &Table, key: &str) -> Vec<String> {
    let list = row.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// A word in a row.
pub(crate) fn word<'a>(row: &'a Table, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap()
}

/// Builds all mock libraries of one version into a directory.
///
/// `version` is CUDA's (`12.5`), `prologue` a family of the manifest (`580`).
pub(crate) fn build_mock(dir: &Path, version: &str, prologue: &str) -> Mock {
    build(dir, version, prologue, |_| true)
}

/// The same, built once and kept below `target/` until a source changes.
pub(crate) fn shared_mock(version: &str, prologue: &str) -> Mock {
    let name = format!("mock-{version}-{prologue}-{:016x}", hash_of(&sources().join("..")));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&dir).unwrap();
    // Tests run side by side, in threads and in processes.
    let lock = File::create(dir.join("lock")).unwrap();
    lock.lock().unwrap();
    let complete = dir.join("complete");
    if !complete.exists() {
        if prologue == DEFAULT_PROLOGUE {
            build_mock(&dir, version, prologue);
        } else {
            // Only libcuda differs.
            let base = shared_mock(version, DEFAULT_PROLOGUE);
            copy_libraries(&base.dir, &dir);
            build(&dir, version, prologue, |row| row.contains_key("prologue"));
        }
        File::create(complete).unwrap();
    }
    Mock { dir, version: version.to_owned() }
}

fn build(dir: &Path, version: &str, prologue: &str, wanted: impl Fn(&Table) -> bool) -> Mock {
    let manifest = manifest();
    fs::create_dir_all(dir).unwrap();
    for row in rows(&manifest, "library") {
        let package = word(&row, "package");
        let of = if package == "cuda" { version } else { GDRCOPY };
        if wanted(&row) && applies(&row, of) {
            build_library(&manifest, dir, &row, of, prologue);
        }
    }
    Mock { dir: dir.to_owned(), version: version.to_owned() }
}

fn build_library(manifest: &Table, dir: &Path, row: &Table, version: &str, prologue: &str) {
    let out = dir.join(word(row, "path"));
    let package = manifest["package"][word(row, "package")].as_table().unwrap();
    let mut options = vec![format!("-D{}={}", word(package, "define"), code(version))];
    options.extend(words(row, "cflags"));
    if row.contains_key("prologue") {
        options.push(format!("-DMOCK_PROLOGUE={prologue}"));
    }
    let files: Vec<PathBuf> = words(row, "sources").iter().map(|s| sources().join(s)).collect();

    match word(row, "kind") {
        "shared" => {
            let mut cc = compiler(manifest);
            cc.args(options)
                .args(words(manifest["compile"].as_table().unwrap(), "shared"))
                .arg(format!("-Wl,-soname,{}", word(row, "soname")))
                .args(words(row, "ldflags"))
                .arg("-o")
                .arg(&out)
                .args(files)
                .args(words(row, "libs"));
            run(&mut cc);
        }
        "static" => build_archive(manifest, &out, &options, &files),
        other => panic!("`{other}` is no kind of library"),
    }
    for link in words(row, "links") {
        let link = dir.join(link);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(out.file_name().unwrap(), link).unwrap();
    }
}

fn build_archive(manifest: &Table, out: &Path, options: &[String], files: &[PathBuf]) {
    let mut objects = Vec::new();
    for file in files {
        let mut object = out.as_os_str().to_owned();
        object.push(".");
        object.push(file.file_stem().unwrap());
        object.push(".o");
        let mut cc = compiler(manifest);
        cc.args(options).arg("-c").arg("-o").arg(&object).arg(file);
        run(&mut cc);
        objects.push(object);
    }
    let _ = fs::remove_file(out);
    run(Command::new("ar").arg("crsD").arg(out).args(&objects));
    for object in objects {
        fs::remove_file(object).unwrap();
    }
}

/// The C compiler with what the manifest gives it always.
fn compiler(manifest: &Table) -> Command {
    let compile = manifest["compile"].as_table().unwrap();
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc")));
    cc.args(words(compile, "cflags")).arg("-Werror");
    for include in words(compile, "include") {
        cc.arg("-I").arg(sources().join(include));
    }
    cc
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn copy_libraries(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with("lib") {
            continue;
        }
        let target = to.join(&name);
        let _ = fs::remove_file(&target);
        match fs::read_link(entry.path()) {
            Ok(link) => std::os::unix::fs::symlink(link, target).unwrap(),
            Err(_) => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A number for everything that goes into a mock: both fixtures, every byte.
fn hash_of(fixtures: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in ["toolkit", "mock-driver"] {
        hash_tree(&fixtures.join(part), &mut hasher);
    }
    hasher.finish()
}

fn hash_tree(dir: &Path, hasher: &mut DefaultHasher) {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_tree(&path, hasher);
        } else {
            path.file_name().hash(hasher);
            fs::read(&path).unwrap().hash(hasher);
        }
    }
}
