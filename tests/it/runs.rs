//! Whole runs: what is written, what is said, and what a second run changes.

use std::io::Read as _;

use crate::harness::Sandbox;

/// The outputs of a run that succeeds.
const OUTPUTS: [&str; 5] =
    ["config.h", "config.log", "config.mk", "config.sh", "ucx-configure.json"];

/// The quickest run that finds everything.
const STUB: &[&str] = &["-B", "b", "--with-cuda=stub:12.5", "--no-build"];

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_stub_toolkit_gives_all_outputs() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(STUB).must_end(0);
    assert!(run.stdout.contains("checking for cuda.h... yes"), "{}", run.stdout);
    let mut expected = vec![".ucx-configure"];
    expected.extend(OUTPUTS);
    assert_eq!(sandbox.names("work/b"), expected);
    assert_eq!(sandbox.names("work"), ["b"]);
    assert_eq!(sandbox.names("tmp").len(), 0, "no litter");
    assert!(sandbox.names("home").iter().all(|name| name == ".cache"), "only what is kept");
    assert!(sandbox.read("work/b/config.h").contains("#define HAVE_CUDA 1"));
    assert_eq!(json(&sandbox.read("work/b/ucx-configure.json"))["ok"], true);
}

#[test]
fn nothing_is_rewritten_when_nothing_changed() {
    let sandbox = Sandbox::new();
    // The first run makes the stubs, and its log says so.
    sandbox.run(STUB).must_end(0);
    sandbox.run(STUB).must_end(0);
    let before = sandbox.files("work/b");
    assert!(OUTPUTS.iter().all(|name| before.contains_key(camino::Utf8Path::new(name))));
    // No compiler is started, though it is the same one.
    sandbox.run(STUB).must_end(0);
    let after = sandbox.files("work/b");
    for (path, file) in &before {
        assert!(after.get(path) == Some(file), "{path} was rewritten");
    }
    assert_eq!(after.len(), before.len());
    let cold = sandbox.run(STUB.iter().copied().chain(["--no-cache"])).must_end(0);
    assert!(cold.stdout.contains("checking for cuda.h... yes"));
    assert_eq!(
        sandbox.read("work/b/config.h").as_bytes(),
        before[camino::Utf8Path::new("config.h")].0
    );
}

#[test]
fn a_second_run_starts_no_compiler() {
    let sandbox = Sandbox::new();
    let count = sandbox.path("count");
    sandbox.tool("cc", &format!("echo >> {count}\nexec /usr/bin/cc \"$@\""));
    // A compiler that has just been written is not trusted for later.
    std::thread::sleep(std::time::Duration::from_millis(50));
    sandbox.run(STUB).must_end(0);
    let first = sandbox.read("count").lines().count();
    assert!(first > 6, "the stubs and the questions: {first}");
    sandbox.run(STUB).must_end(0);
    assert_eq!(sandbox.read("count").lines().count(), first, "nothing is started");
    sandbox.run(STUB.iter().copied().chain(["--no-cache"])).must_end(0);
    assert!(sandbox.read("count").lines().count() > first, "without the cache it is");
}

#[test]
fn modules_are_built_and_stale_ones_removed() {
    let sandbox = Sandbox::new().with_cargo();
    let arguments = ["-B", "b", "--with-cuda=stub:12.5", "--with-gdrcopy=stub:2.5", "--offline"];
    sandbox.run(arguments).must_end(0);
    let chain =
        |library: &str| ["", ".0", ".0.0.0"].map(|suffix| format!("{library}.so{suffix}")).to_vec();
    let mut expected: Vec<String> =
        ["libucm_cuda", "libuct_cuda", "libuct_cuda_gdrcopy", "libucx_perftest_cuda"]
            .into_iter()
            .flat_map(chain)
            .collect();
    expected.sort();
    assert_eq!(sandbox.names("work/b/lib/ucx"), expected);

    sandbox
        .run(["-B", "b", "--with-cuda=stub:12.5", "--without-gdrcopy", "--no-build"])
        .must_end(0);
    expected.retain(|name| !name.contains("gdrcopy"));
    assert_eq!(sandbox.names("work/b/lib/ucx"), expected, "gdrcopy's module is stale");

    sandbox.run(["-B", "b", "--without-cuda"]).must_end(0);
    assert!(sandbox.names("work/b/lib/ucx").is_empty());
}

#[test]
fn without_cuda_is_no_error() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(["-B", "b", "--without-cuda"]).must_end(0);
    assert!(run.stderr.is_empty(), "{}", run.stderr);
    assert!(run.stdout.to_lowercase().contains("cuda"), "{}", run.stdout);
    assert!(!sandbox.read("work/b/config.h").contains("#define HAVE_CUDA 1"));
}

#[test]
fn a_guess_that_finds_nothing_says_why() {
    let mut sandbox = Sandbox::new();
    let nowhere = sandbox.dir("nowhere").into_string();
    sandbox.set("UCX_CONFIGURE_ROOT", nowhere);
    let run = sandbox.run(["-B", "b", "--no-build"]).must_end(0);
    let report = json(&sandbox.read("work/b/ucx-configure.json"));
    if !report["toolkit"].is_null() {
        // The compiler finds CUDA by itself where a distribution has put it
        // into /usr.
        assert!(sandbox.read("work/b/config.h").contains("#define HAVE_CUDA 1"));
        return;
    }
    assert!(run.stdout.contains("checking for cuda.h... no"), "{}", run.stdout);
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(told.contains("CUDA"), "{told}");
    assert!(!sandbox.read("work/b/config.h").contains("#define HAVE_CUDA 1"));
}

#[test]
fn recheck_repeats_the_last_run_from_anywhere() {
    let mut sandbox = Sandbox::new();
    sandbox.run(["-B", "../tk", "--with-cuda=stub:12.5", "--no-build"]).must_end(0);
    sandbox.set("CFLAGS", "-O0");
    let with = "--with-cuda=../tk/.ucx-configure/toolkit/stub-cuda-12.5";
    sandbox.run(["-B", "b", "--no-build", "--prefix=/opt/ucx", with]).must_end(0);
    let before = sandbox.read("work/b/ucx-configure.json");
    let config = sandbox.read("work/b/config.mk");
    assert!(before.contains("/opt/ucx"));

    sandbox.set("CFLAGS", "-O3 -not-a-flag");
    let mut command = sandbox.command(["--recheck", "-B"]);
    command.arg(sandbox.path("work/b")).current_dir(sandbox.path("home"));
    sandbox.ended(command.output().unwrap()).must_end(0);
    assert_eq!(sandbox.read("work/b/ucx-configure.json"), before);
    assert_eq!(sandbox.read("work/b/config.mk"), config);
    // It is the last run that is repeated, not the recheck.
    sandbox.run(["--recheck", "-B", "b", "-q"]).must_end(0);
    assert_eq!(sandbox.read("work/b/ucx-configure.json"), before);
}

#[test]
fn a_failed_run_leaves_what_was_there() {
    let sandbox = Sandbox::new();
    sandbox.run(STUB).must_end(0);
    let before = sandbox.files("work/b");
    let empty = sandbox.dir("empty");
    let run = sandbox.run(["-B", "b", "--no-build", &format!("--with-cuda={empty}")]).must_end(1);
    assert!(run.stderr.contains("[E0201]"), "{}", run.stderr);
    assert!(run.stderr.contains("the last successful run in `[ROOT]/work/b` are unchanged"));
    let after = sandbox.files("work/b");
    for name in ["config.h", "config.mk", "config.sh"] {
        let name = camino::Utf8Path::new(name);
        assert!(before[name] == after[name], "{name}");
    }
    let report = json(&sandbox.read("work/b/ucx-configure.json"));
    assert_eq!(report["ok"], false);
    assert!(sandbox.read("work/b/config.log").contains("exit code 1"));
}

#[test]
fn check_writes_nothing() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(["check", "--with-cuda=stub:12.5"]).must_end(0);
    assert!(run.stdout.contains("checking for cuda.h... yes"));
    for dir in ["work", "home", "tmp"] {
        assert!(sandbox.names(dir).is_empty(), "{dir}: {:?}", sandbox.names(dir));
    }
}

#[test]
fn check_prints_one_value_and_nothing_else() {
    let sandbox = Sandbox::new();
    let print = |name: &str| {
        let run = sandbox.run(["check", "--with-cuda=stub:12.5", "--print", name]).must_end(0);
        run.stdout
    };
    assert_eq!(print("CUDA_LIBS"), "-lcuda\n");
    assert_eq!(print("HAVE_CUDA"), "yes\n");
    assert_eq!(print("HAVE_NVML_FABRIC_INFO"), "1\n");
    let two = ["check", "--with-cuda=stub:12.5", "--print=CUDA_LIBS", "--print", "HAVE_NVCC"];
    assert_eq!(sandbox.run(two).must_end(0).stdout, "-lcuda\nno\n", "none is lost");
    let slip = sandbox.run(["check", "--without-cuda", "--print=CUDA_LIB"]).must_end(2);
    assert!(slip.stdout.is_empty());
    assert!(slip.stderr.contains("Did you mean `--print=CUDA_LIBS`?"), "{}", slip.stderr);
}

#[test]
fn check_holds_requirements() {
    let sandbox = Sandbox::new();
    let check = |list: &str| {
        let require = format!("--require={list}");
        sandbox.run(["check", "-q", "--with-cuda=stub:12.5", "--with-gdrcopy=stub:2.0", &require])
    };
    let fine = check("nvml,gdrcopy,fabric,cuda>=12.0,gdrcopy>=2.0,cuda-12.5").must_end(0);
    assert!(fine.stdout.is_empty() && fine.stderr.is_empty(), "{fine:?}");
    let missing = check("nvml,cuda>=12.8,gdrcopy>=2.5,cuda-13.0").must_end(1);
    assert!(
        missing.stderr.contains("do not hold: `cuda>=12.8`, `gdrcopy>=2.5`, `cuda-13.0` [E0205]"),
        "{}",
        missing.stderr
    );
    assert!(missing.stderr.contains("`cuda>=12.8`: Version 12.5 is there."));
    assert_eq!(check("frob").code, 2);
}

#[test]
fn json_comes_on_failure_as_well() {
    let sandbox = Sandbox::new();
    let empty = sandbox.dir("empty");
    for (argument, exit, code) in [
        (format!("--with-cuda={empty}"), 1, "E0201"),
        (format!("--with-cuda={empty}x"), 1, "E0106"),
        ("--with-cuda=".to_owned(), 2, "E0104"),
    ] {
        let run = sandbox.run(["check", "--format=json", &argument]).must_end(exit);
        let report = json(&run.stdout);
        assert_eq!(report["ok"], false, "{argument}");
        let messages = report["messages"].as_array().unwrap();
        assert!(messages.iter().any(|message| message["code"] == code), "{argument}: {messages:?}");
        assert!(run.stderr.contains(&format!("[{code}]")), "{}", run.stderr);
    }
}

#[test]
fn quiet_prints_warnings_alone() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(STUB.iter().copied().chain(["-q", "--enable-mt"])).must_end(0);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
    assert_eq!(run.stderr, "warning: unrecognized options: --enable-mt [W0101]\n");
}

#[test]
fn a_config_cache_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("work/config.cache", "ac_cv_x=yes\n");
    let run = sandbox.run(STUB.iter().copied().chain(["-C"])).must_end(0);
    assert_eq!(sandbox.read("work/config.cache"), "ac_cv_x=yes\n");
    assert!(run.stdout.contains("`config.cache` is neither read nor written"), "{}", run.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let sandbox = Sandbox::new();
    for arguments in [&["--help"][..], &["check", "--without-cuda", "--format=json"], STUB] {
        let mut child = sandbox.spawn(arguments);
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn colours_are_for_terminals_and_those_who_ask() {
    let mut sandbox = Sandbox::new();
    assert!(!sandbox.run(["--frobnicate"]).stderr.contains('\u{1b}'));
    sandbox.set("CLICOLOR_FORCE", "1");
    assert!(sandbox.run(["--frobnicate"]).stderr.contains('\u{1b}'));
    sandbox.set("NO_COLOR", "1");
    assert!(!sandbox.run(["--frobnicate"]).stderr.contains('\u{1b}'));
}

#[test]
fn the_demo_shows_events() {
    let sandbox = Sandbox::new().with_cargo();
    let run = sandbox.run(["demo", "-B", "b", "--offline"]).must_end(0);
    assert!(run.stdout.contains("cuMemAlloc"), "{}", run.stdout);
    assert_eq!(sandbox.names("work"), ["b"]);
    assert!(sandbox.names("tmp").is_empty());
}

#[test]
fn toolkits_are_listed() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(["toolkit", "list"]).must_end(0);
    for expected in ["--with-cuda=stub:VERSION", "12.5", "--with-cuda=wheel:VERSION", "not fetched"]
    {
        assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
    }
    assert_eq!(sandbox.run(["toolkit", "fetch", "9.9"]).code, 2);
}

#[test]
fn the_variables_of_the_runtime_are_shown() {
    let mut sandbox = Sandbox::new();
    let run = sandbox.run(["info"]).must_end(0);
    let names = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains('='));
        lines.map(|line| line.split('=').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let all = names(&run.stdout);
    for expected in ["UCX_MEM_CUDA_HOOK_MODE", "UCX_CUDA_IPC_CACHE", "UCX_GDR_COPY_LAT"] {
        assert!(all.iter().any(|name| name == expected), "{expected}: {}", run.stdout);
    }
    let run = sandbox.run(["info", "ucx_cuda_ipc"]).must_end(0);
    assert!(names(&run.stdout).iter().all(|name| name.starts_with("UCX_CUDA_IPC_")));
    assert!(run.stdout.contains("# default: 1.8us\nUCX_CUDA_IPC_LAT=1.8us\n"), "{}", run.stdout);
    sandbox.set("UCX_CUDA_IPC_LAT", "2us");
    let run = sandbox.run(["info", "UCX_CUDA_IPC_LAT", "--format", "json"]).must_end(0);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&rows[0]["value"], &rows[0]["valid"]), (&"2us".into(), &true.into()));
    sandbox.set("UCX_CUDA_IPC_LAT", "soon");
    let run = sandbox.run(["info", "UCX_CUDA_IPC_LAT", "--format", "json"]).must_end(2);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&rows[0]["value"], &rows[0]["valid"]), (&"soon".into(), &false.into()));
    assert!(rows[0]["expected"].as_str().unwrap().contains("1.8us"), "{rows}");
}
