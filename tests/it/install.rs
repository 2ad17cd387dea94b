//! `install` and `uninstall`: what goes where, what is refused, and that
//! nothing is left.

use camino::Utf8PathBuf;
use ucx_configure::host::fs;

use crate::harness::Sandbox;

/// A build directory `work/b` with all modules, made of one line of C each,
/// for `/opt/ucx`.
pub(crate) fn configured() -> Sandbox {
    let sandbox = Sandbox::new().with_fake_cargo();
    sandbox
        .run([
            "-B",
            "b",
            "-q",
            "--with-cuda=stub:12.5",
            "--with-gdrcopy=stub:2.5",
            "--prefix=/opt/ucx",
        ])
        .must_end(0);
    sandbox
}

/// Every file and link below a directory, and where links lead.
pub(crate) fn tree(sandbox: &Sandbox, dir: &str) -> Vec<String> {
    let root = sandbox.path(dir);
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
        let entry = entry.unwrap();
        let path = Utf8PathBuf::from_path_buf(entry.path().to_owned()).unwrap();
        let name = path.strip_prefix(&root).unwrap().to_string();
        if entry.file_type().is_symlink() {
            found.push(format!("{name} -> {}", path.read_link_utf8().unwrap()));
        } else if entry.file_type().is_file() {
            found.push(name);
        }
    }
    found
}

const CUDA: [&str; 13] = [
    "opt/ucx/include/hook_runtime.h",
    "opt/ucx/lib/cmake/ucx-cuda/ucx-cuda-config.cmake",
    "opt/ucx/lib/pkgconfig/ucx-cuda.pc",
    "opt/ucx/lib/ucx/libucm_cuda.so -> libucm_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libucm_cuda.so.0 -> libucm_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libucm_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libuct_cuda.so -> libuct_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libuct_cuda.so.0 -> libuct_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libuct_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libucx_perftest_cuda.so -> libucx_perftest_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libucx_perftest_cuda.so.0 -> libucx_perftest_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/libucx_perftest_cuda.so.0.0.0",
    "opt/ucx/lib/ucx/ucx-cuda.manifest.json",
];

const GDRCOPY: [&str; 6] = [
    "opt/ucx/lib/pkgconfig/gdrapi.pc",
    "opt/ucx/lib/pkgconfig/ucx-gdrcopy.pc",
    "opt/ucx/lib/ucx/libuct_cuda_gdrcopy.so -> libuct_cuda_gdrcopy.so.0.0.0",
    "opt/ucx/lib/ucx/libuct_cuda_gdrcopy.so.0 -> libuct_cuda_gdrcopy.so.0.0.0",
    "opt/ucx/lib/ucx/libuct_cuda_gdrcopy.so.0.0.0",
    "opt/ucx/lib/ucx/ucx-gdrcopy.manifest.json",
];

fn both() -> Vec<&'static str> {
    let mut both = [&CUDA[..], &GDRCOPY].concat();
    both.sort_unstable();
    both
}

#[test]
fn everything_has_its_place_and_goes_again() {
    let sandbox = configured();
    let install = ["install", "-B", "b", "--destdir", "d", "--allow-stub"];
    let run = sandbox.run(install).must_end(0);
    assert!(run.stdout.starts_with("ucx-cuda, ucx-gdrcopy: 17 files below [ROOT]/work/d, 17 of"));
    assert_eq!(tree(&sandbox, "work/d"), both());
    let before = sandbox.files("work/d");
    let run = sandbox.run(install).must_end(0);
    assert!(run.stdout.contains("17 files below [ROOT]/work/d, 0 of them written"), "{run:?}");
    assert_eq!(sandbox.files("work/d"), before, "what is right is not written again");
    let pc = sandbox.read("work/d/opt/ucx/lib/pkgconfig/ucx-cuda.pc");
    assert!(pc.contains("prefix=/opt/ucx\n") && pc.contains("-I${includedir}"), "{pc}");
    let manifest = sandbox.read("work/d/opt/ucx/lib/ucx/ucx-cuda.manifest.json");
    assert!(!manifest.contains(sandbox.path("").as_str()), "no build path, no DESTDIR");
    assert!(manifest.contains("\"on_stub\": true"), "{manifest}");

    // A package of its own; what was there of the other stays, and what goes, goes alone.
    let uninstall = ["uninstall", "-B", "b", "--destdir", "d"];
    sandbox.run([&uninstall[..], &["--component", "ucx-gdrcopy"]].concat()).must_end(0);
    assert_eq!(tree(&sandbox, "work/d"), CUDA);
    sandbox.run([&install[..], &["--component=ucx-gdrcopy"]].concat()).must_end(0);
    assert_eq!(tree(&sandbox, "work/d"), both());
    let run = sandbox.run(uninstall).must_end(0);
    assert!(run.stdout.contains("ucx-cuda: 12 files removed"), "{}", run.stdout);
    assert_eq!(sandbox.names("work/d"), [""; 0], "no directory is left");
    let run = sandbox.run(uninstall).must_end(0);
    assert!(run.stdout.contains("nothing is installed here"), "{}", run.stdout);
}

#[test]
fn directories_can_be_said_anew_and_destdir_is_a_variable_too() {
    let mut sandbox = configured();
    sandbox.set("DESTDIR", "stage");
    let dirs = ["--prefix=/usr", "--libdir=${exec_prefix}/lib/x86_64-linux-gnu"];
    sandbox.run([&["install", "-B", "b", "--allow-stub"][..], &dirs].concat()).must_end(0);
    let lib = "usr/lib/x86_64-linux-gnu";
    let there = tree(&sandbox, "work/stage");
    assert_eq!(there.len(), 19);
    for name in ["usr/include/hook_runtime.h", &format!("{lib}/pkgconfig/gdrapi.pc")] {
        assert!(there.contains(&name.to_owned()), "{there:#?}");
    }
    let pc = sandbox.read(&format!("work/stage/{lib}/pkgconfig/ucx-cuda.pc"));
    assert!(
        pc.contains("prefix=/usr\n") && pc.contains("libdir=${exec_prefix}/lib/x86_64"),
        "{pc}"
    );
    // An earlier run's files that are no longer made go; the build directory is not needed
    // to take them away.
    sandbox.run(["-B", "b", "-q", "--with-cuda=stub:12.5", "--without-gdrcopy"]).must_end(0);
    sandbox.run([&["install", "-B", "b", "--allow-stub"][..], &dirs].concat()).must_end(0);
    assert_eq!(tree(&sandbox, "work/stage").len(), 13, "nothing is left of ucx-gdrcopy");
    let refused = sandbox.run(["uninstall", "-B", "nowhere"]).must_end(5).stderr;
    assert!(refused.contains("there is no report") && refused.contains("--prefix"), "{refused}");
    sandbox.run([&["uninstall", "-B", "nowhere"][..], &dirs].concat()).must_end(0);
    assert_eq!(sandbox.names("work/stage"), [""; 0]);
}

#[test]
fn a_manifest_that_leads_elsewhere_removes_nothing() {
    let sandbox = configured();
    sandbox.run(["install", "-B", "b", "--destdir", "d", "--allow-stub"]).must_end(0);
    let name = "work/d/opt/ucx/lib/ucx/ucx-cuda.manifest.json";
    let manifest = sandbox.read(name);
    let before = tree(&sandbox, "work/d");
    let header = "/opt/ucx/include/hook_runtime.h";
    for other in [
        "opt/ucx/include/hook_runtime.h",
        "/opt/ucx/include/../../../../precious",
        "/opt/ucx/lib",
        "/etc/precious",
    ] {
        sandbox.write(name, &manifest.replace(header, other));
        let refused = sandbox.run(["uninstall", "-B", "b", "--destdir", "d"]).must_end(5).stderr;
        assert!(refused.contains("E0501") && refused.contains(other), "{refused}");
        assert_eq!(tree(&sandbox, "work/d"), before, "{other}");
    }
    sandbox.write(name, &manifest);
    let quiet = sandbox.run(["uninstall", "-q", "-B", "b", "--destdir", "d"]).must_end(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(sandbox.names("work/d"), [""; 0]);
}

#[test]
fn what_cannot_be_written_hints_at_the_options_of_install() {
    let sandbox = configured();
    sandbox.write("work/file", "");
    let install = ["install", "-q", "-B", "b", "--allow-stub", "--destdir"];
    let refused = sandbox.run([&install[..], &["file"]].concat()).must_end(5).stderr;
    assert!(refused.contains("--destdir DIR") && refused.contains("--prefix DIR"), "{refused}");
    assert!(!refused.contains("`-B DIR`"), "{refused}");
    assert_eq!(sandbox.run([&install[..], &["d"]].concat()).must_end(0).stdout, "");
}

#[test]
fn a_ucx_is_never_broken_and_nothing_of_others_is_touched() {
    let sandbox = configured();
    let install = ["install", "-B", "b", "--destdir", "d", "--allow-stub"];
    let refused = |args: &[&str], code: i32, words: &str| {
        let run = sandbox.run(args).must_end(code);
        assert!(run.stderr.contains(words) && run.stderr.contains("hint:"), "{}", run.stderr);
    };
    refused(&install[..5], 1, "was configured on a stub toolkit");
    for library in ["lib/libuct.so.0", "lib64/libucs.so.0", "lib/libucs.so.0.0.0", "lib/libuct.so"]
    {
        let path = format!("work/d/opt/ucx/{library}");
        sandbox.write(&path, "");
        refused(&install, 1, "[E0207]");
        assert_eq!(tree(&sandbox, "work/d").len(), 1, "{library}");
        fs::remove_file_if_there(&sandbox.path(&path)).unwrap();
    }
    // One that is somewhere else is none of our business.
    sandbox.write("work/d/usr/lib/libucs.so.0", "");
    sandbox.write("work/d/opt/ucx/lib/libucsomething.so.0", "");
    sandbox.write("work/d/opt/ucx/lib/pkgconfig/ucx-cuda.pc", "of UCX\n");
    refused(&install, 5, "ucx-cuda.pc` is there already");
    assert_eq!(tree(&sandbox, "work/d").len(), 3, "nothing was written");
    fs::remove_file_if_there(&sandbox.path("work/d/opt/ucx/lib/pkgconfig/ucx-cuda.pc")).unwrap();
    sandbox.run(install).must_end(0);

    let uninstall = ["uninstall", "-B", "b", "--destdir", "d"];
    let before = tree(&sandbox, "work/d").len();
    sandbox.write("work/d/opt/ucx/include/hook_runtime.h", "by hand\n");
    refused(&uninstall, 5, "hook_runtime.h` was changed since it was installed");
    assert_eq!(tree(&sandbox, "work/d").len(), before);
    sandbox.run(install).must_end(0);
    sandbox.write("work/d/opt/ucx/lib/ucx/theirs", "");
    sandbox.run(uninstall).must_end(0);
    assert_eq!(
        tree(&sandbox, "work/d"),
        ["opt/ucx/lib/libucsomething.so.0", "opt/ucx/lib/ucx/theirs", "usr/lib/libucs.so.0"]
    );
    refused(&["install", "--into-ucx", "d", "--prefix=/x"], 2, "do not go together");
    refused(
        &["install", "-B", "b", "--allow-stub", "--libdir=lib"],
        2,
        "needs an absolute directory",
    );
    sandbox.run(["-B", "none", "-q", "--without-cuda", "--without-gdrcopy"]).must_end(0);
    refused(&["install", "-B", "none", "--destdir", "e"], 1, "there is nothing to install");
    sandbox.run(["-B", "raw", "-q", "--with-cuda=stub:12.5", "--no-build"]).must_end(0);
    refused(&["install", "-B", "raw", "--destdir", "e", "--allow-stub"], 5, "--no-build");
    assert!(!sandbox.path("work/e").exists());
}
