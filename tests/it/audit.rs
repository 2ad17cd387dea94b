//! `verify DIR`: what is wrong with trees of modules, ours and UCX's.

use serde_json::Value;
use ucx_configure::host::fs;

use crate::{
    harness::Sandbox,
    install::configured,
    verify::{cc, world},
};

/// What `verify` says of a directory, which has to end so.
fn verified(sandbox: &Sandbox, dir: &str, code: i32) -> Value {
    let run = sandbox.run(["verify", dir, "--format", "json"]).must_end(code);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["ok"], code == 0, "{found:#}");
    assert_eq!(run.stderr.contains("[E0208]"), code == 1, "{}", run.stderr);
    found
}

/// The problems, as kind and the end of the file's path.
fn problems(found: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let name = |problem: &Value| text(&problem["file"]).rsplit('/').next().unwrap().to_owned();
    let all = found["problems"].as_array().unwrap().iter();
    all.map(|problem| (text(&problem["kind"]), name(problem))).collect()
}

fn is(kind: &str, file: &str) -> (String, String) {
    (kind.to_owned(), file.to_owned())
}

#[test]
fn what_is_built_and_installed_is_whole_or_it_is_told() {
    let sandbox = configured();
    let found = verified(&sandbox, "b", 0);
    let packages = found["packages"].as_array().unwrap();
    assert_eq!(packages[0]["source"], "report");
    assert_eq!(packages[0]["expected"].as_array().unwrap().len(), 9);
    assert_eq!(packages[1]["package"], "ucx-gdrcopy");
    fs::remove_file_if_there(&sandbox.path("work/b/lib/ucx/libuct_cuda.so.0")).unwrap();
    assert_eq!(problems(&verified(&sandbox, "b", 1)), [is("missing-file", "libuct_cuda.so.0")]);
    fs::symlink("libuct_cuda.so.0.0.0", &sandbox.path("work/b/lib/ucx/libuct_cuda.so.0")).unwrap();

    let install = ["install", "-B", "b", "--destdir", "d", "--allow-stub"];
    sandbox.run(install).must_end(0);
    let found = verified(&sandbox, "d/opt/ucx", 0);
    assert_eq!(found["packages"][0]["source"], "manifest");
    assert_eq!(found["packages"][0]["expected"].as_array().unwrap().len(), 12);
    let text = sandbox.run(["verify", "d/opt/ucx/lib/ucx"]).must_end(0).stdout;
    assert!(text.contains("package ucx-gdrcopy: 5 of 5 files"), "{text}");
    // Somebody tampers with it.
    sandbox.write("work/d/opt/ucx/include/hook_runtime.h", "");
    fs::remove_file_if_there(&sandbox.path("work/d/opt/ucx/lib/pkgconfig/gdrapi.pc")).unwrap();
    sandbox.write("work/d/opt/ucx/lib/ucx/libuct_cuda.so.1", "");
    let mut told = problems(&verified(&sandbox, "d/opt/ucx", 1));
    told.sort();
    assert_eq!(
        told,
        [
            is("changed-file", "hook_runtime.h"),
            is("missing-file", "gdrapi.pc"),
            is("unexpected-file", "libuct_cuda.so.1"),
        ]
    );
}

#[test]
fn run_paths_and_names_are_held_to_rules() {
    let sandbox = configured();
    let dir = sandbox.path("work/b/lib/ucx");
    sandbox.write("src/x.c", "int x;\n");
    sandbox.dir("cuda/lib64/stubs");
    fs::symlink("lib64/stubs", &sandbox.path("cuda/lib")).unwrap();
    let stubs = sandbox.path("cuda/lib64/stubs");
    let link = sandbox.path("cuda/lib");
    let build = |file: &str, soname: &str, more: &[String]| {
        let soname = format!("-Wl,-soname,{soname}");
        let mut args = vec!["-shared", &soname, "-o", file, "../../../../src/x.c"];
        args.extend(more.iter().map(String::as_str));
        cc(&dir, &args);
    };
    for (tag, flag) in [("RUNPATH", "--enable-new-dtags"), ("RPATH", "--disable-new-dtags")] {
        for path in [stubs.as_str(), link.as_str(), "/usr/local/cuda/compat", "."] {
            let rpath = format!("-Wl,{flag},-rpath,{path}");
            build("libuct_cuda.so.0.0.0", "libuct_cuda.so.0", &[rpath]);
            let found = verified(&sandbox, "b", 1);
            assert_eq!(problems(&found), [is("run-path", "libuct_cuda.so.0.0.0")]);
            let what = found["problems"][0]["what"].as_str().unwrap();
            assert!(what.contains(&format!("its {tag} has ")), "{what}");
        }
    }
    let fine = "-Wl,-rpath,/no/such/lib64:$ORIGIN/..".to_owned();
    build("libuct_cuda.so.0.0.0", "libuct_cuda.so.0", &[fine]);
    let notes = verified(&sandbox, "b", 0)["notes"].to_string();
    assert!(notes.contains("has `/no/such/lib64`, which is not here"), "{notes}");
    assert!(!notes.contains("$ORIGIN"), "{notes}");
    build("libuct_cuda.so.0.0.0", "libuct_cuda.so.1", &[]);
    assert_eq!(problems(&verified(&sandbox, "b", 1)), [is("soname", "libuct_cuda.so.0.0.0")]);
}

/// A tree as UCX installs it: its libraries, and modules that are linked to
/// them and to the driver.
fn of_ucx(sandbox: &Sandbox) {
    let dir = sandbox.dir("ucx/lib/ucx");
    sandbox.write("src/ucs.c", "int ucs(void) { return 1; }\n");
    cc(&dir, &["-shared", "-Wl,-soname,libucs.so.0", "-o", "../libucs.so", "../../../src/ucs.c"]);
    fs::symlink("libucs.so", &sandbox.path("ucx/lib/libucs.so.0")).unwrap();
    let source = "int ucs(void); int cuInit(unsigned); int cuNewest(void);\n\
                  int own(void) { return ucs() + cuInit(0) + cuNewest(); }\n";
    sandbox.write("src/own.c", source);
    let driver = "int cuInit(unsigned f) { return f; } int cuNewest(void) { return 0; }\n";
    sandbox.write("src/driver.c", driver);
    let link = sandbox.dir("link");
    cc(&link, &["-shared", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so", "../src/driver.c"]);
    for name in ["libucm_cuda", "libuct_cuda", "libucx_perftest_cuda"] {
        let (soname, file) = (format!("-Wl,-soname,{name}.so.0"), format!("{name}.so.0.0.0"));
        let links = ["-L..", "-lucs", "-L../../../link", "-lcuda"];
        let build = ["-shared", &soname, "-o", &file, "../../../src/own.c"];
        cc(&dir, &[&build[..], &links].concat());
        fs::symlink(&file, &dir.join(format!("{name}.so.0"))).unwrap();
    }
}

#[test]
fn a_ucx_is_verified_with_and_without_a_driver() {
    let mut sandbox = world();
    of_ucx(&sandbox);
    let found = verified(&sandbox, "../ucx", 0);
    assert_eq!(found["packages"][0]["source"], "names");
    assert_eq!(found["modules"][1]["of_ucx"], true);
    if found["driver_loads"] == false {
        // Without a driver its modules do not load, which is no fault of theirs.
        assert_eq!(found["modules"][1]["loads"], false);
        assert_eq!(found["modules"][1]["unresolved"], serde_json::json!(["libcuda.so.1"]));
        let text = sandbox.run(["verify", "../ucx"]).must_end(0).stdout;
        let note = "note: `libuct_cuda.so.0.0.0` would not load here: it is linked to the driver's";
        assert!(text.contains(note), "{text}");
    }
    // With a driver that is older than the toolkit that it was built with.
    sandbox.write("src/old.c", "int cuInit(unsigned f) { return f; }\n");
    let here = sandbox.dir("here");
    cc(&here, &["-shared", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.1", "../src/old.c"]);
    sandbox.set("LD_LIBRARY_PATH", here.as_str());
    let found = verified(&sandbox, "../ucx", 1);
    assert_eq!(found["driver"], "[ROOT]/here/libcuda.so.1");
    let kinds: Vec<String> = problems(&found).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["missing-function"; 3], "{found:#}");
    assert_eq!(found["modules"][0]["missing"][0]["functions"], serde_json::json!(["cuNewest"]));
    assert_eq!(found["modules"][0]["loads"], true, "nobody notices until it is called");
    // One module of the three is not there, another lost a library of UCX's.
    for name in ["libucx_perftest_cuda.so.0", "libucx_perftest_cuda.so.0.0.0"] {
        fs::remove_file_if_there(&sandbox.path("ucx/lib/ucx").join(name)).unwrap();
    }
    fs::remove_file_if_there(&sandbox.path("ucx/lib/libucs.so.0")).unwrap();
    let told = problems(&verified(&sandbox, "../ucx", 1));
    assert!(told.contains(&is("missing-file", "libucx_perftest_cuda.so.0")), "{told:?}");
    assert!(told.contains(&is("does-not-load", "libucm_cuda.so.0.0.0")), "{told:?}");
}
