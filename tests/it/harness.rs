//! A sandbox for whole runs: a root of its own, an environment in which every
//! variable that the program reads is cleared, tools that are shims or real,
//! and results in which changing paths have fixed names.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    process::{Child, Command, Output, Stdio},
};

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::env_vars::ENV_VARS;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ucx-configure");

/// What makes cargo quick where the speed of the modules is of no matter.
const QUICK: &[(&str, &str)] =
    &[("CARGO_PROFILE_MODULE_LTO", "off"), ("CARGO_PROFILE_MODULE_OPT_LEVEL", "0")];

/// A cargo that makes each module of one line of C, which holds a sum over the
/// flags, and notes that it was run.
const FAKE_CARGO: &str = r#"echo run >>"$0.runs"
packages=
while [ $# -gt 0 ]; do
    case $1 in
    --target-dir) target=$2; shift ;;
    -p) packages="$packages $2"; shift ;;
    esac
    shift
done
mkdir -p "$target"
sum=$(cksum <"$HOOK_RUNTIME_REPORT" | cut -d' ' -f1)
if grep -qs "$sum" "$0.fails"; then echo "error: made to fail" >&2; exit 101; fi
for package in $packages; do
    name=lib$(echo "$package" | tr - _)
    echo "int flags_$sum;" | cc -x c -shared -fPIC "-Wl,-soname,$name.so.0" -o "$target/$name.so" -
    printf '{"reason":"compiler-artifact","filenames":["%s"]}\n' "$target/$name.so"
done"#;

/// A world for one test.
pub(crate) struct Sandbox {
    root: tempfile::TempDir,
    path: Utf8PathBuf,
    env: BTreeMap<OsString, OsString>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; minus the signal where one ended it.
    pub(crate) code: i32,
    /// Standard output, paths replaced.
    pub(crate) stdout: String,
    /// Standard error, paths replaced.
    pub(crate) stderr: String,
}

impl Sandbox {
    /// A root with `work` (where programs start), `bin` (first in PATH),
    /// `home` and `tmp`.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("ucx-configure-test-").tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(root.path().canonicalize().unwrap()).unwrap();
        for dir in ["work", "bin", "home", "tmp"] {
            fs::create_dir(path.join(dir)).unwrap();
        }
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os()
            .filter(|(name, _)| !ENV_VARS.iter().any(|row| name == row.name))
            .filter(|(name, _)| !name.to_string_lossy().starts_with("CARGO_"))
            .filter(|(name, _)| !name.to_string_lossy().starts_with("UCX_"))
            .collect();
        env.insert("PATH".into(), format!("{path}/bin:/usr/local/bin:/usr/bin:/bin").into());
        env.insert("HOME".into(), format!("{path}/home").into());
        env.insert("TMPDIR".into(), format!("{path}/tmp").into());
        Self { root, path, env }
    }

    /// Lets it find this machine's cargo and what cargo has fetched.
    pub(crate) fn with_cargo(mut self) -> Self {
        let home = || Utf8PathBuf::from(std::env::var("HOME").unwrap_or_default());
        for (name, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let value =
                std::env::var_os(name).unwrap_or_else(|| home().join(default).into_string().into());
            self.env.insert(name.into(), value);
        }
        self.env.insert("CARGO".into(), env!("CARGO").into());
        // rustc is beside it, wherever rustup has put them.
        let tools = Utf8Path::new(env!("CARGO")).parent().unwrap();
        let path = self.env[OsStr::new("PATH")].to_string_lossy().into_owned();
        self.set("PATH", format!("{path}:{tools}"));
        for (name, value) in QUICK {
            self.env.insert((*name).into(), (*value).into());
        }
        self
    }

    /// Builds modules in no time, with a cargo that only seems to be one.
    pub(crate) fn with_fake_cargo(self) -> Self {
        self.tool("cargo", FAKE_CARGO);
        self
    }

    /// How often that cargo was run.
    pub(crate) fn cargo_runs(&self) -> usize {
        fs::read_to_string(self.path("bin/cargo.runs")).unwrap_or_default().lines().count()
    }

    /// A path below the root.
    pub(crate) fn path(&self, name: impl AsRef<Utf8Path>) -> Utf8PathBuf {
        self.path.join(name)
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.insert(name.into(), value.into());
    }

    /// Writes a file, its directory made where needed.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Makes a directory.
    pub(crate) fn dir(&self, name: &str) -> Utf8PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Puts a script first in PATH.
    pub(crate) fn tool(&self, name: &str, script: &str) {
        let file = format!("bin/{name}");
        self.write(&file, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(file), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Leaves nothing in PATH but the sandbox's own `bin`.
    pub(crate) fn only_own_tools(&mut self) {
        let path = self.path("bin").into_string();
        self.set("PATH", path);
    }

    /// Every file below a directory with its content and its inode, so that
    /// a rewritten file is seen even where its content is the same.
    pub(crate) fn files(&self, name: &str) -> BTreeMap<Utf8PathBuf, (Vec<u8>, u64)> {
        use std::os::unix::fs::MetadataExt as _;
        let root = self.path(name);
        walkdir::WalkDir::new(&root)
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let path = Utf8PathBuf::from_path_buf(entry.path().to_owned()).unwrap();
                let inode = entry.metadata().unwrap().ino();
                let content = fs::read(&path).unwrap();
                (path.strip_prefix(&root).unwrap().to_owned(), (content, inode))
            })
            .collect()
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        ucx_configure::host::fs::names(&self.path(name))
    }

    /// The program, ready to start in `work`.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .env_clear()
            .envs(&self.env)
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A shell in `work`, with the same environment.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().envs(&self.env).current_dir(self.path("work"));
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.ended(self.command(args).output().unwrap())
    }

    /// Starts it.
    pub(crate) fn spawn<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// What became of a run.
    pub(crate) fn ended(&self, output: Output) -> Run {
        let status = output.status;
        Run {
            code: status.code().unwrap_or_else(|| -status.signal().unwrap_or_default()),
            stdout: self.filtered(&output.stdout),
            stderr: self.filtered(&output.stderr),
        }
    }

    /// Text in which the sandbox's root is `[ROOT]`.
    pub(crate) fn filtered(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace(self.path.as_str(), "[ROOT]");
        text.replace(self.root.path().to_str().unwrap(), "[ROOT]")
    }
}

impl Run {
    /// Fails the test unless it ended so.
    #[track_caller]
    pub(crate) fn must_end(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}
