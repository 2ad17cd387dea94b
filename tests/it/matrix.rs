//! `matrix`: many toolkits in one run, what fails, what is recorded, and one
//! build for those with the same flags.

use serde_json::Value;
use ucx_configure::{
    host::{env::Snapshot, fs},
    model::CudaVersion,
    toolkit::wheel_table::RELEASES,
};

use crate::{harness::Sandbox, toolkit::on_wheels, trees::are_asked_for};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn entry<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let entries = answer["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn one_that_fails_stops_no_other() {
    let sandbox = Sandbox::new();
    sandbox.dir("work/empty");
    let args = ["matrix", "--toolkit", "stub:11.7", "--toolkit", "empty", "--toolkit", "stub:12.5"];
    let more = ["--gdrcopy", "no", "--gdrcopy", "2.5", "--toolkit", "gone", "--require", "nvml"];
    let args = [&args[..], &more].concat();
    let run = sandbox.run([&args[..], &["--format", "json", "-j", "2"]].concat()).must_end(1);
    let answer = json(&run.stdout);
    let names: Vec<&str> =
        answer["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "stub:11.7",
            "stub:11.7 gdrcopy=2.5",
            "empty",
            "empty gdrcopy=2.5",
            "stub:12.5",
            "stub:12.5 gdrcopy=2.5",
            "gone",
            "gone gdrcopy=2.5"
        ]
    );
    for (name, ok, cuda, modules, gdrcopy) in [
        ("stub:11.7", true, Some("11.7"), 3, None),
        ("stub:12.5 gdrcopy=2.5", true, Some("12.5"), 4, Some("2.5")),
        ("empty", false, None, 0, None),
    ] {
        let answers = &entry(&answer, name)["answers"];
        assert_eq!(answers["ok"], ok, "{name}: {answers:#}");
        assert_eq!(answers["cuda"].as_str(), cuda, "{name}");
        assert_eq!(answers["gdrcopy"].as_str(), gdrcopy, "{name}");
        assert_eq!(answers["modules"].as_array().unwrap().len(), modules, "{name}");
    }
    assert_eq!(entry(&answer, "stub:11.7")["answers"]["features"]["fabric"], "no");
    assert_eq!(entry(&answer, "stub:12.5")["answers"]["features"]["fabric"], "yes");
    assert_eq!(entry(&answer, "empty")["error"]["code"], "E0201");
    assert_eq!(entry(&answer, "gone")["error"]["code"], "E0106");
    assert!(run.stderr.contains("4 of 8 entries failed: `empty`"), "{}", run.stderr);
    let own = run.stderr.find("hint: `empty`: ").unwrap();
    assert!(own < run.stderr.find("hint: What is meant to fail").unwrap(), "{}", run.stderr);
    let none = sandbox.run(["matrix", "--toolkit", "stub:11.7", "-j", "0"]).must_end(2).stderr;
    assert!(none.contains("it needs a number from 1"), "{none}");
    // No terminal: a line for each.
    assert!(run.stderr.contains("gone: E0106 ("), "{}", run.stderr);
    assert!(sandbox.names("work") == ["empty"], "nothing is written");
    let quiet = sandbox.run([&args[..], &["-q", "-j1"]].concat()).must_end(1);
    assert!(quiet.stderr.starts_with("error: "), "{}", quiet.stderr);
    let line = quiet.stdout.lines().find(|line| line.starts_with("stub:12.5 gdrcopy=2.5")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[2..], ["ok", "12.5", "12.5", "yes", "no", "yes", "yes", "2.5", "4"]);
}

#[test]
fn a_file_names_entries_and_a_record_is_held() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "ci/matrix.toml",
        "toolkits = ['stub:12.2']\nrequire = ['nvml']\n[[entry]]\nname = 'no bistro'\n\
         toolkit = 'stub:12.5'\narguments = ['--disable-bistro']\n[[entry]]\nname = 'too old'\n\
         toolkit = 'stub:11.7'\nrequire = ['fabric']\n[[entry]]\nname = 'beside'\ntoolkit = 'tk'\n",
    );
    sandbox.dir("ci/tk");
    let matrix = ["matrix", "-q", "--config", "../ci/matrix.toml", "--expect", "../ci/record.json"];
    let run = |more: &[&str], code: i32| sandbox.run([&matrix[..], more].concat()).must_end(code);
    let refused = run(&[], 5).stderr;
    assert!(refused.contains("there is no record") && refused.contains("--update"), "{refused}");
    let told = run(&["--update"], 0).stderr;
    assert!(told.contains("note: 4 entries recorded in `[ROOT]/work/../ci/record.json`"), "{told}");
    let record = json(&sandbox.read("ci/record.json"));
    assert_eq!(record["entries"]["no bistro"]["features"]["bistro"], "no");
    assert_eq!(record["entries"]["too old"]["error"], "E0205");
    assert_eq!(record["entries"]["beside"]["error"], "E0201");
    let text = run(&[], 0).stdout;
    assert!(text.contains("E0205, as recorded"), "{text}");
    let inode = sandbox.files("ci");
    run(&["--update"], 0);
    assert_eq!(sandbox.files("ci"), inode, "what is the same is not written again");

    let changed =
        sandbox.read("ci/record.json").replacen("\"fabric\": \"no\"", "\"fabric\": \"yes\"", 1);
    sandbox.write("ci/record.json", &changed);
    let failed = run(&["--format", "junit"], 1);
    assert!(
        failed.stderr.contains("not as `[ROOT]/work/../ci/record.json` records"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.contains("[E0206]"), "{}", failed.stderr);
    assert!(failed.stdout.contains("failures=\"1\""), "{}", failed.stdout);
    assert!(failed.stdout.contains("features.fabric is no, and was yes"), "{}", failed.stdout);
    let fewer = ["--toolkit", "stub:13.0", "--expect", "../ci/record.json", "--update"];
    let told = sandbox.run([&["matrix", "-q"][..], &fewer].concat()).must_end(0).stderr;
    assert!(told.contains("note: 1 entry recorded"), "{told}");
    assert!(told.contains("note: `too old` is not in this run, and recorded no longer"), "{told}");
    sandbox.write("ci/record.json", "{}");
    assert!(run(&["--update"], 5).stderr.contains("no record of a matrix"));
    let github = sandbox.run(["matrix", "-q", "--toolkit", "stub:13.0", "--format", "github"]);
    let github = json(&github.must_end(0).stdout);
    assert_eq!(github["include"][0]["name"], "stub:13.0");
}

/// Entries `full` and `same` have the same flags, `old` others.
const BUILDS: &str = "\
[[entry]]
name = 'full'
toolkit = 'stub:12.5'
gdrcopy = 'stub:2.5'
[[entry]]
name = 'old'
toolkit = 'stub:11.7'
[[entry]]
name = 'same'
toolkit = 'stub:12.5'
gdrcopy = 'stub:2.5'
arguments = ['--prefix=/opt/ucx']
";

#[test]
fn entries_with_the_same_flags_are_built_once() {
    let sandbox = Sandbox::new().with_fake_cargo();
    sandbox.write("work/m.toml", BUILDS);
    let args = ["matrix", "-q", "--config", "m.toml", "--build", "-B", "b", "--format", "json"];
    let run = |code: i32| json(&sandbox.run(args).must_end(code).stdout);
    let answer = run(0);
    assert_eq!(sandbox.cargo_runs(), 2);
    assert_eq!(entry(&answer, "same")["build"]["same_as"], "full");
    assert_eq!(entry(&answer, "full")["build"]["same_as"], Value::Null);
    assert_eq!(entry(&answer, "old")["build"]["same_as"], Value::Null);
    let module = |entry: &str, name: &str| {
        let path = format!("work/b/matrix-{entry}/lib/ucx/{name}.so.0");
        fs::read(&sandbox.path(path)).unwrap()
    };
    for name in ["libucm_cuda", "libuct_cuda", "libucx_perftest_cuda", "libuct_cuda_gdrcopy"] {
        assert_eq!(module("full", name), module("same", name));
    }
    assert_ne!(module("full", "libuct_cuda"), module("old", "libuct_cuda"));
    assert!(!sandbox.path("work/b/matrix-old/lib/ucx/libuct_cuda_gdrcopy.so").exists());
    // Each is a build directory like any other.
    let emitted = sandbox.run(["emit", "pkg-config:ucx-cuda", "-B", "b/matrix-same"]).must_end(0);
    assert!(emitted.stdout.contains("prefix=/opt/ucx\n"), "{}", emitted.stdout);

    let before = sandbox.files("work/b");
    run(0);
    assert_eq!(sandbox.cargo_runs(), 2, "nothing is built again");
    let after = sandbox.files("work/b");
    let written = after.iter().filter(|(path, file)| before.get(*path) != Some(file));
    let written: Vec<_> = written.map(|(path, _)| path).collect();
    assert!(written.is_empty(), "and nothing is written: {written:?}");
    // What another entry took away comes back; one that cannot be built stops no other.
    fs::remove_file_if_there(&sandbox.path("work/b/matrix-full/lib/ucx/libucm_cuda.so.0.0.0"))
        .unwrap();
    let flags = fs::read(&sandbox.path("work/b/matrix-old/lib/ucx/libucm_cuda.so.0")).unwrap();
    let text = String::from_utf8_lossy(&flags);
    let sum = text.split("flags_").nth(1).unwrap().split('\0').next().unwrap();
    sandbox.write("bin/cargo.fails", &format!("{sum}\n"));
    fs::remove_file_if_there(&sandbox.path("work/b/matrix-old/lib/ucx/libucm_cuda.so.0.0.0"))
        .unwrap();
    let answer = run(1);
    assert_eq!(sandbox.cargo_runs(), 4);
    assert_eq!(entry(&answer, "old")["error"]["code"], "E0402");
    assert_eq!(entry(&answer, "old")["build"], Value::Null);
    assert_eq!(entry(&answer, "full")["answers"]["ok"], true);
    assert_eq!(sandbox.files("work/b").len(), before.len() - 1);
}

#[test]
fn twelve_real_toolkits_in_one_run() {
    let waived = on_wheels(&[("twelve real toolkits in one run", twelve)]);
    assert_eq!(waived, usize::from(!are_asked_for()));
}

fn twelve() {
    let mut sandbox = Sandbox::new();
    // The user's own pip, and the toolkits that the user has.
    let real = Snapshot::take();
    for name in ["HOME", "XDG_CACHE_HOME"] {
        if let Some(value) = real.get(name) {
            sandbox.set(name, value);
        }
    }
    let versions: Vec<String> =
        RELEASES.iter().map(|release| release.version.to_string()).collect();
    assert!(versions.len() >= 12, "{versions:?}");
    let mut args = vec!["matrix".to_owned(), "--format=json".to_owned()];
    args.extend(versions.iter().map(|version| format!("--toolkit={version}")));
    let answer = json(&sandbox.run(&args).must_end(0).stdout);
    assert_eq!(answer["entries"].as_array().unwrap().len(), versions.len());
    for release in RELEASES {
        let name = release.version.to_string();
        let answers = &entry(&answer, &name)["answers"];
        assert_eq!(answers["cuda"], name);
        assert_eq!(answers["modules"].as_array().unwrap().len(), 3, "{name}");
        for (feature, since) in
            [("cuda-12.0", (12, 0)), ("fabric", (12, 3)), ("cuda-13.0", (13, 0))]
        {
            let there = release.version >= CudaVersion::new(since.0, since.1);
            let word = if there { "yes" } else { "no" };
            assert_eq!(answers["features"][feature], word, "{name}: {feature}");
        }
    }
}
