//! `verify` and `install`: programs of each kind against the mock driver,
//! modules that load and do not, and a UCX tree that gets ours and its own
//! back.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use ucx_configure::{
    host::{
        fs,
        process::{Invocation, Runner},
    },
    model::Module,
};

use crate::{build_runtime::report, harness::Sandbox};

const SHARED: &str = "\
#include <cuda_runtime.h>
int main(void) { void *p = 0; return cudaMalloc(&p, 64) || cudaFree(p); }
";
const BY_DLSYM: &str = "\
#include <dlfcn.h>
int main(void)
{
    void *cuda = dlopen(\"libcuda.so.1\", RTLD_LAZY);
    return cuda && dlsym(cuda, \"cuMemAlloc_v2\") != dlsym(cuda, \"cuMemFree_v2\");
}
";
const BY_ADDRESS: &str = "\
#include <cuda.h>
int main(void)
{
    void *p = 0;
    CUdriverProcAddressQueryResult found;
    return cuGetProcAddress(\"cuMemAllocAsync\", &p, 12000, 0, &found);
}
";

pub(crate) fn cc(dir: &Utf8Path, args: &[&str]) {
    let include = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/toolkit/include");
    let call = Invocation::new("cc")
        .args(["-std=gnu11", "-fPIC", "-w", "-DUCX_STUB_CUDA_VERSION=12050", "-I"])
        .arg(include.as_str())
        .args(args.iter().copied())
        .cwd(dir);
    let done = Runner::new().run(call);
    assert!(done.success(), "{}\n{}", done.invocation, done.stderr);
}

/// The mock driver and both runtimes in `lib`, sources in `src`.
pub(crate) fn world() -> Sandbox {
    let sandbox = Sandbox::new();
    let lib = sandbox.dir("lib");
    let sources = |part: &str| -> Vec<String> {
        let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mock-driver").join(part);
        let names = fs::names(&dir).into_iter().filter(|name| name.ends_with(".c"));
        names.map(|name| dir.join(name).into_string()).collect()
    };
    let runtime = sources("runtime");
    // Only its name and its functions matter here: nothing is run on it.
    sandbox.write("src/cuda.c", "int cuGetProcAddress_v2(void) { return 0; }\n");
    cc(&lib, &["-shared", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.1", "../src/cuda.c"]);
    fs::symlink("libcuda.so.1", &lib.join("libcuda.so")).unwrap();
    let mut shared = vec!["-shared", "-Wl,-soname,libcudart.so.12", "-o", "libcudart.so"];
    shared.extend(runtime.iter().map(String::as_str));
    cc(&lib, &shared);
    fs::symlink("libcudart.so", &lib.join("libcudart.so.12")).unwrap();
    let mut objects = vec!["-r", "-o", "runtime.o"];
    objects.extend(runtime.iter().map(String::as_str));
    cc(&lib, &objects);
    for (name, text) in [("shared", SHARED), ("dlsym", BY_DLSYM), ("address", BY_ADDRESS)] {
        sandbox.write(&format!("src/{name}.c"), text);
    }
    sandbox
}

fn verified(sandbox: &Sandbox, program: &str) -> Value {
    let program = sandbox.path("lib").join(program);
    let args = ["verify", "--program", program.as_str(), "--format", "json"];
    serde_json::from_str(&sandbox.run(args).must_end(0).stdout).unwrap()
}

/// The functions that a mode misses, with how they are called.
fn missed(answer: &Value, mode: &str) -> Vec<(String, Vec<String>)> {
    let modes = answer["modes"].as_array().unwrap();
    let row = modes.iter().find(|row| row["mode"] == mode).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let users = row["missed"].as_array().unwrap().iter();
    users
        .map(|user| {
            let functions = user["functions"].as_array().unwrap().iter().map(text).collect();
            (text(&user["how"]), functions)
        })
        .collect()
}

/// What bistro can do depends on the processor.
fn check_bistro(answer: &Value) {
    let can_patch = std::env::consts::ARCH == "x86_64";
    assert_eq!(missed(answer, "bistro").is_empty(), can_patch);
    let words = if can_patch { "use bistro" } else { "nothing else on this machine" };
    let said = answer["recommendation"].as_str().unwrap();
    assert!(answer["reloc_is_enough"] == true || said.contains(words), "{said}");
}

#[test]
fn reloc_is_enough_for_a_shared_runtime_alone() {
    let sandbox = world();
    let lib = sandbox.path("lib");
    let rpath = "-Wl,-rpath,$ORIGIN";
    cc(&lib, &["-o", "shared", "../src/shared.c", "-L.", rpath, "-lcudart"]);
    let answer = verified(&sandbox, "shared");
    assert_eq!(answer["reloc_is_enough"], true, "{answer:#}");
    assert_eq!(answer["users"][0]["functions"], serde_json::json!(["cudaMalloc", "cudaFree"]));
    assert_eq!(answer["shared_runtimes"][0], "[ROOT]/lib/libcudart.so.12");
    assert!(missed(&answer, "reloc").is_empty() && answer["unresolved"] == serde_json::json!([]));
    check_bistro(&answer);

    for strip in ["-g", "-s"] {
        let runtime = ["runtime.o", "-ldl", "-lpthread"];
        cc(&lib, &[&["-o", "static", strip, "../src/shared.c"][..], &runtime].concat());
        let answer = verified(&sandbox, "static");
        assert_eq!(answer["reloc_is_enough"], false, "{strip}: {answer:#}");
        let missed = missed(&answer, "reloc");
        assert_eq!((missed.len(), missed[0].0.as_str()), (1, "static-runtime"), "{strip}");
        assert_eq!(missed[0].1.contains(&"cudaMalloc".to_owned()), strip == "-g");
        check_bistro(&answer);
    }

    cc(&lib, &["-o", "dlsym", "../src/dlsym.c", "-ldl"]);
    let answer = verified(&sandbox, "dlsym");
    let names = ["cuMemAlloc_v2", "cuMemFree_v2"].map(str::to_owned).to_vec();
    assert_eq!(missed(&answer, "reloc"), [("dlsym".to_owned(), names)], "{answer:#}");
    check_bistro(&answer);

    cc(&lib, &["-o", "address", "../src/address.c", "-L.", rpath, "-lcuda"]);
    let answer = verified(&sandbox, "address");
    let names = vec!["cuMemAllocAsync".to_owned()];
    assert_eq!(missed(&answer, "reloc"), [("entry-points".to_owned(), names)], "{answer:#}");
    check_bistro(&answer);
    libraries_count_too(&sandbox);
}

/// A user of dlsym among the libraries decides for the program; one that is
/// not found is told; what has no CUDA is told apart.
fn libraries_count_too(sandbox: &Sandbox) {
    let lib = sandbox.path("lib");
    cc(&lib, &["-shared", "-Dmain=other", "-o", "libother.so", "../src/dlsym.c", "-ldl"]);
    sandbox.write("src/plain.c", "int other(void); int main(void) { return other(); }\n");
    let link = ["-L.", "-Wl,-rpath,$ORIGIN", "-lother"];
    cc(&lib, &[&["-o", "with-library", "../src/plain.c"][..], &link].concat());
    let answer = verified(sandbox, "with-library");
    assert_eq!(missed(&answer, "reloc")[0].0, "dlsym", "{answer:#}");
    fs::remove_file_if_there(&lib.join("libother.so")).unwrap();
    let answer = verified(sandbox, "with-library");
    assert_eq!(answer["unresolved"], serde_json::json!(["libother.so"]));
    assert_eq!(answer["reloc_is_enough"], Value::Null);
    let link = ["-L.", "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined", "-lcudart", "-lother"];
    sandbox.write(
        "src/both.c",
        "int other(void); int cudaFree(void *); int main(void) { return other() + cudaFree(0); }\n",
    );
    cc(&lib, &["-shared", "-Dmain=other", "-o", "libother.so", "../src/dlsym.c", "-ldl"]);
    cc(&lib, &[&["-o", "both", "../src/both.c"][..], &link].concat());
    assert_eq!(verified(sandbox, "both")["reloc_is_enough"], false);
    fs::remove_file_if_there(&lib.join("libother.so")).unwrap();
    assert_eq!(verified(sandbox, "both")["reloc_is_enough"], Value::Null);
    let program = lib.join("with-library");
    let text = sandbox.run(["verify", "--program", program.as_str()]).must_end(0).stdout;
    assert!(text.contains("recommendation: no use of CUDA is seen here"), "{text}");
    assert!(text.contains("note: not found, and so not looked at: `libother.so`"), "{text}");
    for (file, words) in [("gone", "there is no file"), ("../src/plain.c", "not a 64-bit ELF")] {
        let run = sandbox.run(["verify", "--program", lib.join(file).as_str()]).must_end(5);
        assert!(run.stderr.contains(words) && run.stderr.contains("hint:"), "{}", run.stderr);
    }
}

#[test]
fn modules_are_loaded_and_asked() {
    let sandbox = world();
    let dir = sandbox.dir("build/lib/ucx");
    let module = "\
#include <stdio.h>
#include <stdlib.h>
static void __attribute__((constructor)) loaded(void)
{
    const char *name = getenv(\"HOOK_RUNTIME_COVERAGE\");
    FILE *file = name ? fopen(name, \"a\") : NULL;
    if (file) { fputs(\"hooks: as in a test\\n\", file); fclose(file); }
}
";
    sandbox.write("src/module.c", module);
    let (ucm, uct) = ("-Wl,-soname,libucm_cuda.so.0", "-Wl,-soname,libuct_cuda.so.0");
    cc(&dir, &["-shared", ucm, "-o", "libucm_cuda.so.0.0.0", "../../../src/module.c"]);
    sandbox.write("src/gone.c", "int gone(void) { return 0; }\n");
    cc(&dir, &["-shared", "-o", "libgone.so", "../../../src/gone.c"]);
    sandbox.write("src/uct.c", "int gone(void); int uct(void) { return gone(); }\n");
    let needs = ["../../../src/uct.c", "-L.", "-lgone"];
    cc(&dir, &[&["-shared", uct, "-o", "libuct_cuda.so.0.0.0"][..], &needs].concat());
    fs::remove_file_if_there(&dir.join("libgone.so")).unwrap();

    let path = sandbox.path("build").into_string();
    let mut sandbox = sandbox;
    for (libraries, driver_loads) in
        [("/nowhere".to_owned(), false), (sandbox.path("lib").into(), true)]
    {
        sandbox.set("LD_LIBRARY_PATH", libraries);
        let run = sandbox.run(["verify", &path, "--format", "json"]).must_end(1);
        let found: Value = serde_json::from_str(&run.stdout).unwrap();
        let module = |index: usize| &found["modules"][index];
        assert_eq!(module(0)["soname"], "libucm_cuda.so.0");
        assert_eq!(module(0)["loads"], true, "{found:#}");
        assert_eq!(module(1)["loads"], false, "{found:#}");
        assert!(module(1)["said"].as_str().unwrap().contains("libgone.so"), "{found:#}");
        assert_eq!(found["absent"].as_array().unwrap().len(), 2);
        // A driver of this machine's own may be there in either case.
        assert!(!driver_loads || found["driver_loads"] == true, "{found:#}");
        assert_eq!(found["coverage"], "hooks: as in a test\n");
        let run = sandbox.run(["verify", &path]).must_end(1);
        let notes = found["driver_loads"] == false;
        assert_eq!(run.stdout.contains("note: the driver"), notes, "{}", run.stdout);
        let said = "libuct_cuda.so.0.0.0` does not load here: there is no libgone.so";
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    // One that is no module, and a manifest that is none, are findings like others.
    fs::replace(&dir.join("libuct_cuda.so.0.0.0"), &[0; 4096], 0o755).unwrap();
    fs::replace(&dir.join("ucx-cuda.manifest.json"), b"{ \"format\": 1,", 0o644).unwrap();
    let run = sandbox.run(["verify", &path, "--format", "json"]).must_end(1);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let problems = found["problems"].as_array().unwrap().iter();
    let unreadable: Vec<&str> = problems
        .filter(|problem| problem["kind"] == "unreadable")
        .map(|problem| problem["file"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(unreadable, ["ucx-cuda.manifest.json", "libuct_cuda.so.0.0.0"], "{found:#}");
    assert_eq!(found["modules"][0]["loads"], true, "the other is looked at all the same");
    assert_eq!(found["modules"][1]["is_elf"], false);
    let run = sandbox.run(["verify"]).must_end(5);
    assert!(run.stderr.contains("there is no module in `[ROOT]/work`"), "{}", run.stderr);
}

/// The modules that the demo built, asked on its mock driver.
pub(crate) fn ask_real_module(modules: &Utf8Path, driver: &Utf8Path) {
    let mut sandbox = Sandbox::new();
    sandbox.set("LD_LIBRARY_PATH", driver.as_str());
    // The other modules of CUDA are not beside it, and that is told.
    let run = sandbox.run(["verify", modules.as_str()]).must_end(1);
    assert!(run.stderr.contains("libuct_cuda.so.0` is of ucx-cuda"), "{}", run.stderr);
    let json = sandbox.run(["verify", modules.as_str(), "--format", "json"]).must_end(1).stdout;
    let found: Value = serde_json::from_str(&json).unwrap();
    // What it can do without is no fault, and told.
    let notes = found["notes"].to_string();
    assert!(notes.contains("looks up what"), "{notes}");
    let prologues = found["prologues"].as_array().unwrap();
    let patched = prologues.iter().filter(|row| row["outcome"] == "bistro").count();
    assert!(prologues.len() > 20, "{found:#}");
    assert_eq!(patched > 15, std::env::consts::ARCH == "x86_64", "{found:#}");
    let row = |name: &str| {
        run.stdout.lines().find(|line| line.trim_start().starts_with(name)).map(str::to_owned)
    };
    let by = if std::env::consts::ARCH == "x86_64" { "bistro" } else { "reloc" };
    assert!(row("cuMemAlloc_v2").unwrap().contains(by), "{}", run.stdout);
    assert!(run.stdout.contains("libucm_cuda.so.0, loads here"), "{}", run.stdout);
}

/// A UCX tree with its own libucm_cuda, under three names.
pub(crate) fn ucx_tree(sandbox: &Sandbox, one_file: bool) -> Utf8PathBuf {
    let dir = sandbox.dir("ucx/lib/ucx");
    sandbox.write("src/ucm.c", "int ucm(void) { return 1; }\n");
    sandbox.write("src/own.c", "int ucm(void); int own(void) { return ucm(); }\n");
    let (ucm, own) = ("-Wl,-soname,libucm.so.0", "-Wl,-soname,libucm_cuda.so.0");
    cc(&dir, &["-shared", ucm, "-o", "../libucm.so", "../../../src/ucm.c"]);
    let file = "libucm_cuda.so.0.0.0";
    cc(&dir, &["-shared", own, "-o", file, "../../../src/own.c", "-L..", "-lucm"]);
    for name in ["libucm_cuda.so.0", "libucm_cuda.so"] {
        if one_file {
            fs::symlink(file, &dir.join(name)).unwrap();
        } else {
            fs::write_new(&dir.join(name), &fs::read(&dir.join(file)).unwrap(), 0o755).unwrap();
        }
    }
    dir
}

/// A build directory with a module, and a report.
fn build_dir(sandbox: &Sandbox, on_stub: bool) {
    let dir = sandbox.dir("build/lib/ucx");
    sandbox.write("src/ours.c", "int hook_runtime_version(void) { return 1; }\n");
    let soname = "-Wl,-soname,libucm_cuda.so.0";
    cc(&dir, &["-shared", soname, "-o", "libucm_cuda.so.0.0.0", "../../../src/ours.c"]);
    let mut report = serde_json::to_value(report(&[Module::UcmCuda])).unwrap();
    if on_stub {
        report["toolkit"] = serde_json::json!({
            "root": null, "kind": "stub", "found_by": "", "include_dirs": [],
            "library_dirs": [], "stub_dirs": [],
            "versions": { "cuda_h": null, "cudart_h": null, "cudart_library": null,
                "nvml_h": null, "nvcc": null },
        });
    }
    sandbox.write("build/ucx-configure.json", &report.to_string());
}

#[test]
fn ours_takes_the_place_of_ucxs_and_goes_again() {
    for one_file in [true, false] {
        let sandbox = Sandbox::new();
        let dir = ucx_tree(&sandbox, one_file);
        build_dir(&sandbox, false);
        let before = sandbox.files("ucx");
        let prefix = sandbox.path("ucx").into_string();
        let build = sandbox.path("build").into_string();
        let install = ["install", "--into-ucx", &prefix, "-B", &build];
        let undo = ["install", "--into-ucx", dir.as_str(), "--undo"];
        assert!(sandbox.run(undo).must_end(0).stdout.contains("nothing was installed"));

        let run = sandbox.run(install).must_end(0);
        let count = if one_file { 1 } else { 3 };
        assert!(run.stdout.contains(&format!("{count} file(s)")), "{}", run.stdout);
        let ours = fs::read(&sandbox.path("build/lib/ucx/libucm_cuda.so.0.0.0")).unwrap();
        for name in ["libucm_cuda.so", "libucm_cuda.so.0", "libucm_cuda.so.0.0.0"] {
            assert_eq!(fs::read(&dir.join(name)).unwrap(), ours, "{name}");
        }
        let after = sandbox.files("ucx");
        assert!(sandbox.run(install).must_end(0).stdout.contains("already in place"));
        assert_eq!(sandbox.files("ucx"), after);

        // A newer build replaces ours, and what is kept stays UCX's.
        sandbox.write("src/ours.c", "int hook_runtime_version(void) { return 2; }\n");
        let soname = "-Wl,-soname,libucm_cuda.so.0";
        let built = sandbox.path("build/lib/ucx");
        cc(&built, &["-shared", soname, "-o", "libucm_cuda.so.0.0.0", "../../../src/ours.c"]);
        sandbox.run(install).must_end(0);
        sandbox.run(undo).must_end(0);
        assert_eq!(sandbox.files("ucx"), before, "everything is as it was, inodes included");
    }
}

#[test]
fn what_must_not_be_replaced_is_refused() {
    let sandbox = Sandbox::new();
    let dir = ucx_tree(&sandbox, true);
    build_dir(&sandbox, true);
    let before = sandbox.files("ucx");
    let prefix = sandbox.path("ucx").into_string();
    let build = sandbox.path("build").into_string();
    let refused = |args: &[&str], code: i32, words: &str| {
        let run = sandbox.run(args).must_end(code);
        assert!(run.stderr.contains(words) && run.stderr.contains("hint:"), "{}", run.stderr);
    };
    let install = ["install", "--into-ucx", &prefix, "-B", &build];
    refused(&install, 1, "was configured on a stub toolkit");
    refused(&["install", "--into-ucx", "gone", "-B", &build], 1, "does not exist");
    refused(&["install", "--into-ucx", ".", "-B", &build], 5, "no libucm_cuda of UCX");
    refused(&["install", "--into-ucx", &prefix], 5, "there is no report");
    assert_eq!(sandbox.files("ucx"), before);

    sandbox.run([&install[..], &["--allow-stub"]].concat()).must_end(0);
    let undo = ["install", "--into-ucx", &prefix, "--undo"];
    let kept = dir.join("original-of-ucx-libucm_cuda.so.0.0.0");
    let original = fs::read(&kept).unwrap();
    // What was kept is damaged, then UCX is updated under us.
    fs::write_if_changed(&kept, b"x", 0o755).unwrap();
    refused(&undo, 5, "the original of");
    fs::write_if_changed(&kept, &original, 0o755).unwrap();
    let updated = dir.join("libucm_cuda.so.0.0.0");
    let args = ["-g", "-shared", "-Wl,-soname,libucm_cuda.so.0", "-o"];
    let rest = [updated.as_str(), "../../../src/own.c", "-L..", "-lucm"];
    cc(&dir, &[&args[..], &rest].concat());
    refused(&undo, 5, "was changed since");

    // Ours by hand, without a trace of UCX's.
    let other = sandbox.dir("by-hand").join("libucm_cuda.so.0");
    let ours = fs::read(&sandbox.path("build/lib/ucx/libucm_cuda.so.0.0.0")).unwrap();
    fs::write_new(&other, &ours, 0o755).unwrap();
    let by_hand = sandbox.path("by-hand").into_string();
    refused(&["install", "--into-ucx", &by_hand, "-B", &build, "--allow-stub"], 5, "not a module");
    assert_eq!(sandbox.names("by-hand"), ["libucm_cuda.so.0"]);
}
