//! One test for each kind of report: what went wrong for somebody, and what we
//! say and do there.

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{
    host::fs,
    model::{Component, FeatureId, Report, SubstValue, Verdict},
};

use super::covers;
use crate::{
    engine::{copy, toolkit},
    harness::Sandbox,
};

/// What a run of `check` came to.
struct Checked {
    code: i32,
    stderr: String,
    report: Report,
}

/// A machine without CUDA.
fn machine() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("system/etc/os-release", "ID=debian\n");
    let system = sandbox.path("system").into_string();
    sandbox.set("UCX_CONFIGURE_ROOT", system);
    sandbox
}

/// A toolkit at `NAME`, of which some files are missing.
fn tree(sandbox: &Sandbox, name: &str, without: &[&str]) -> Utf8PathBuf {
    let dir = sandbox.path(name);
    copy(&toolkit("12.5"), &dir, without);
    dir
}

#[track_caller]
fn check(sandbox: &Sandbox, args: &[&str]) -> Checked {
    let all = ["check", "--format=json"].iter().chain(args);
    let output = sandbox.command(all).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    Checked { code: output.status.code().unwrap(), stderr, report }
}

impl Checked {
    #[track_caller]
    fn must_end(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    #[track_caller]
    fn says(&self, pieces: &[&str]) {
        for piece in pieces {
            assert!(self.stderr.contains(piece), "`{piece}` in\n{}", self.stderr);
        }
    }

    fn verdict(&self, component: Component) -> Verdict {
        self.report.finding(component).unwrap().verdict
    }

    fn codes(&self) -> Vec<&str> {
        self.report.messages.iter().map(|message| message.code.as_str()).collect()
    }
}

fn with_cuda(dir: &Utf8Path) -> String {
    format!("--with-cuda={dir}")
}

#[test]
fn a_request_that_is_not_met_names_what_where_and_how() {
    covers("a_request_that_is_not_met_names_what_where_and_how", &[1, 9, 10, 23, 40, 135]);
    let sandbox = machine();
    for (number, (file, item, package)) in [
        ("include/cuda.h", "`cuda.h` was not found", "cuda-cudart-dev-"),
        ("include/cuda_runtime.h", "`cuda_runtime.h` was not found", "cuda-cudart-dev-12-5"),
        ("lib64/stubs/libcuda.so", "`libcuda` was not found", "cuda-driver-dev-12-5"),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = tree(&sandbox, &format!("cuda{number}"), &[file]);
        let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
        checked.says(&[item, "  command: LC_ALL=C ", "  | ", "Looked in `", "hint: ", package]);
        let others = checked.report.components.iter().filter(|it| it.verdict == Verdict::No);
        // nvcc and gdrcopy are no part of it.
        assert_eq!(others.count(), 3, "{file}: nothing else is blamed");
    }
}

#[test]
fn nvml_that_is_missing_is_an_error_or_a_line() {
    covers("nvml_that_is_missing_is_an_error_or_a_line", &[2, 25]);
    let mut sandbox = machine();
    let dir = tree(&sandbox, "cuda", &["include/nvml.h"]);
    let asked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    asked.says(&["error: NVML was asked for", "`nvml.h` was not found [E0202]"]);
    sandbox.set("CUDA_HOME", dir.as_str());
    let guessed = check(&sandbox, &[]).must_end(0);
    let lines: Vec<&str> =
        guessed.stderr.lines().filter(|line| line.contains("warning:")).collect();
    assert_eq!(lines.len(), 1, "{}", guessed.stderr);
    assert!(lines[0].contains("nvml.h"), "{lines:?}");
    // Stubs are enough to link with.
    let dir = tree(&sandbox, "whole", &[]);
    let whole = check(&sandbox, &[&with_cuda(&dir)]).must_end(0);
    assert_eq!(whole.verdict(Component::Nvml), Verdict::Yes);
}

#[test]
fn parts_are_judged_apart_and_together() {
    covers("parts_are_judged_apart_and_together", &[3, 11, 123]);
    let sandbox = machine();
    let dir = tree(&sandbox, "cuda", &["include/cuda_runtime.h"]);
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    assert_eq!(checked.verdict(Component::Nvml), Verdict::Yes);
    assert_eq!(checked.verdict(Component::CudaRuntime), Verdict::No);
    assert!(!checked.report.has_cuda() && checked.report.modules.is_empty());
    for finding in &checked.report.components {
        assert!(!finding.why.is_empty(), "{:?}", finding.component);
        let is_known = matches!(finding.verdict, Verdict::Yes | Verdict::No);
        assert!(!is_known || !finding.evidence.attempts.is_empty(), "{:?}", finding.component);
    }
    let blank = checked.report.checks.iter().filter(|row| row.detail.as_deref() == Some(""));
    assert_eq!(blank.count(), 0, "no value is shown empty");
}

#[test]
fn a_directory_that_is_not_there_ends_the_run_at_once() {
    covers("a_directory_that_is_not_there_ends_the_run_at_once", &[14, 15, 16]);
    let sandbox = machine();
    let dir = tree(&sandbox, "usr/local/cuda-11.8", &[]);
    let real = dir.as_str();
    for typed in [real.replace("cuda-", "cuda--"), real.replace("local", "loca")] {
        let checked = check(&sandbox, &[&with_cuda(Utf8Path::new(&typed))]).must_end(1);
        checked.says(&["does not exist [E0106]", &format!("Did you mean `--with-cuda={real}`?")]);
        assert!(checked.report.checks.is_empty(), "nothing was asked");
    }
}

#[test]
fn every_form_of_a_request_follows_one_rule() {
    covers("every_form_of_a_request_follows_one_rule", &[17, 19, 22, 26, 28]);
    let sandbox = machine();
    let empty = sandbox.dir("empty");
    for argument in ["--with-cuda", "--with-cuda=yes", "--with-cuda=on", &with_cuda(&empty)] {
        let checked = check(&sandbox, &[argument]).must_end(1);
        checked.says(&["CUDA was asked for", "[E0201]"]);
    }
    for argument in ["--with-cuda=guess", "--enable-option-checking=yes"] {
        let checked = check(&sandbox, &[argument]).must_end(0);
        assert!(checked.codes().contains(&"W0305"), "{argument}: one line says why not");
    }
    for argument in [
        "--without-cuda",
        "--with-cuda=no",
        "--with-cuda=off",
        "--with-cuda=disabled",
        "--with-cuda=0",
        "--with-cuda=false",
    ] {
        let checked = check(&sandbox, &[argument]).must_end(0);
        assert_eq!(checked.verdict(Component::CudaDriver), Verdict::Skipped, "{argument}");
        let text = serde_json::to_string(&checked.report).unwrap();
        assert!(!text.contains("no/lib") && !text.contains("disabled/"), "{argument}");
    }
    check(&sandbox, &["--with-cuda=never"]).must_end(1).says(&["`never` does not exist [E0106]"]);
    check(&sandbox, &["--with-cuda="]).must_end(2).says(&["has no value [E0104]"]);
}

#[test]
fn an_option_that_is_repeated_is_told() {
    covers("an_option_that_is_repeated_is_told", &[5]);
    let sandbox = machine();
    let last = with_cuda(&tree(&sandbox, "cuda", &[]));
    let checked = check(&sandbox, &["--with-cuda", &last]).must_end(0);
    let told = format!("`--with-cuda` was given 2 times; the last one counts: `{last}`");
    checked.says(&[&told]);
    assert_eq!(checked.report.toolkit.unwrap().found_by, last);
}

#[test]
fn a_directory_counts_by_what_it_holds() {
    covers("a_directory_counts_by_what_it_holds", &[21, 62]);
    let sandbox = machine();
    let dir = tree(&sandbox, "cuda", &[]);
    let toolkit = check(&sandbox, &[&with_cuda(&dir)]).must_end(0).report.toolkit.unwrap();
    for dir in &toolkit.include_dirs {
        assert!(["cuda.h", "nvml.h"].iter().any(|name| dir.join(name).is_file()), "{dir}");
    }
    // A directory above the headers is none of theirs; a library that is named
    // and not there is none.
    let flags = format!("CPPFLAGS=-isystem {dir}");
    let checked = check(&sandbox, &["--with-cuda", &flags]).must_end(1);
    checked.says(&["`cuda.h` was not found"]);
    let dir = tree(&sandbox, "empty-library", &["lib64/stubs/libcuda.so"]);
    fs::write_if_changed(&dir.join("lib64/stubs/libcuda.so"), b"", 0o644).unwrap();
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    checked.says(&["libcuda.so` is an empty file"]);
}

#[test]
fn stubs_are_to_link_with_and_nothing_else() {
    covers("stubs_are_to_link_with_and_nothing_else", &[32, 38, 39, 76, 82, 83, 86, 88, 91]);
    let sandbox = machine();
    let dir = tree(&sandbox, "cuda", &[]);
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(0);
    let toolkit = checked.report.toolkit.as_ref().unwrap();
    assert_eq!(toolkit.stub_dirs, [dir.join("lib64/stubs")]);
    let row = checked.report.checks.iter().find(|row| row.id == "cuda.library.cuda").unwrap();
    assert_eq!(row.detail.as_deref(), Some("stub"), "it is said");
    for substitution in &checked.report.answers.substitutions {
        let SubstValue::Words(words) = &substitution.value else {
            panic!("strict answers are words")
        };
        let is_run_path = |word: &&String| word.contains("rpath") || word.contains("-R/");
        assert_eq!(words.iter().find(is_run_path), None, "{}", substitution.name);
    }
}

#[test]
fn a_release_that_nobody_knows_is_taken() {
    covers("a_release_that_nobody_knows_is_taken", &[106, 107]);
    let sandbox = machine();
    let dir = sandbox.path("cuda");
    copy(&toolkit("13.0"), &dir, &["include/ucx_stub_version.h", "version.json"]);
    let text = fs::read_to_string(&toolkit("13.0").join("include/ucx_stub_version.h")).unwrap();
    fs::write_if_changed(
        &dir.join("include/ucx_stub_version.h"),
        text.replace("13000", "19030").as_bytes(),
        0o644,
    )
    .unwrap();
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(0);
    let version = checked.report.toolkit.as_ref().unwrap().versions.cuda_h.unwrap();
    assert_eq!(version.to_string(), "19.3");
    assert!(checked.report.feature(FeatureId::Cuda13_0).unwrap().verdict.is_yes());
}

#[test]
fn the_gpu_is_never_asked() {
    covers("the_gpu_is_never_asked", &[113]);
    let sandbox = machine();
    let mark = sandbox.path("asked");
    for tool in ["nvidia-smi", "nvidia-settings", "nvaccelinfo"] {
        sandbox.tool(tool, &format!("echo {tool} > {mark}; exit 1"));
    }
    check(&sandbox, &[&with_cuda(&tree(&sandbox, "cuda", &[]))]).must_end(0);
    assert!(!mark.exists());
}

#[test]
fn nvcc_is_optional_and_says_how_it_ended() {
    covers("nvcc_is_optional_and_says_how_it_ended", &[117, 118, 119, 121]);
    let mut sandbox = machine();
    let dir = tree(&sandbox, "cuda", &[]);
    let other = tree(&sandbox, "other", &[]);
    // Roots from variables; two that differ are named.
    sandbox.set("CUDA_HOME", dir.as_str());
    sandbox.set("CUDA_PATH", other.as_str());
    let checked = check(&sandbox, &["--with-cuda"]).must_end(0);
    assert_eq!(checked.verdict(Component::Nvcc), Verdict::No);
    checked.says(&["CUDA_PATH is `", "but CUDA_HOME, which comes first, is `"]);
    // CUDACXX counts where NVCC is not set, and a signal is told as one.
    sandbox.tool("aborts", "kill -ABRT $$");
    sandbox.set("CUDACXX", "aborts");
    let checked = check(&sandbox, &["--with-cuda"]).must_end(0);
    let why = &checked.report.finding(Component::Nvcc).unwrap().why;
    assert!(why.contains("ended by signal 6"), "{why}");
    let checked = check(&sandbox, &["--with-cuda", "NVCC=no-such-nvcc"]).must_end(0);
    let why = &checked.report.finding(Component::Nvcc).unwrap().why;
    assert!(why.contains("could not be started"), "{why}");
}

#[test]
fn an_older_library_without_the_function_is_named() {
    covers("an_older_library_without_the_function_is_named", &[85]);
    let sandbox = machine();
    let dir = tree(&sandbox, "cuda", &[]);
    sandbox.write("work/old.c", "int cuInit(unsigned int flags) { return (int)flags; }\n");
    let made = format!("cc -shared -fPIC -o {dir}/lib64/libcuda.so old.c");
    assert!(sandbox.shell(&made).output().unwrap().status.success());
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    checked.says(&["lib64/libcuda.so` has no function `cuDeviceGetUuid`"]);
}

#[test]
fn nothing_of_the_system_fills_the_gaps_of_a_root() {
    covers("nothing_of_the_system_fills_the_gaps_of_a_root", &[53, 110]);
    let mut sandbox = machine();
    let dir = tree(
        &sandbox,
        "cuda",
        &["lib64/libcudart.so", "lib64/libcudart.so.12", "lib64/libcudart_static.a"],
    );
    let other = tree(&sandbox, "other", &[]);
    sandbox.set("CPATH", other.join("include").as_str());
    sandbox.set("LIBRARY_PATH", other.join("lib64").as_str());
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    checked.says(&["`libcudart`", "parts of one installation are used together"]);
    // Without a root they are what the compiler sees, and that is said.
    let checked = check(&sandbox, &["--with-cuda"]).must_end(1);
    assert!(checked.report.environment.iter().any(|row| row.variable == "CPATH" && row.used));
}

#[test]
fn a_library_that_wants_a_newer_c_library_says_so() {
    covers("a_library_that_wants_a_newer_c_library_says_so", &[127, 128]);
    let sandbox = machine();
    let dir = tree(&sandbox, "cuda", &["lib64/libcudart.so", "lib64/libcudart.so.12"]);
    // A C library of the future, and a runtime that was linked with it.
    sandbox.write("work/newer.map", "GLIBC_9.9 { global: newer; local: *; };\n");
    sandbox.write("work/newer.c", "int newer(void) { return 1; }\n");
    let runtime = "int newer(void);\nint cudaGetDeviceCount(int *n) { return *n = newer(); }\n";
    sandbox.write("work/runtime.c", runtime);
    let script = format!(
        "set -e; shared='cc -shared -fPIC -nostdlib'
         $shared -o newer.so -Wl,-soname,libc.so.6 -Wl,--version-script,newer.map newer.c
         $shared -o {dir}/lib64/libcudart.so -Wl,-soname,libcudart.so.12 runtime.c newer.so"
    );
    let made = sandbox.ended(sandbox.shell(&script).output().unwrap());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let checked = check(&sandbox, &[&with_cuda(&dir)]).must_end(1);
    checked.says(&["`libcudart` cannot be used", "libcudart.so` needs GLIBC_9.9"]);
}
