//! Configuring for another machine: a cross compiler, toolkits for it and for
//! this one, and answers that are given.
//!
//! The cross compiler is Debian's `gcc-aarch64-linux-gnu`; where it is not
//! installed these tests are waived. `UCX_CONFIGURE_ALL_CONSUMERS=1` says that
//! it has to be here. Nothing that is compiled for the other machine could run
//! on this one: a probe that ran it would fail.

#![expect(clippy::disallowed_methods, reason = "a variable says what has to be here")]

use camino::Utf8Path;
use object::{Architecture, Object as _};
use ucx_configure::{
    host::{Host, fs},
    model::Report,
    toolkit::{wheel, wheel_table::AARCH64_RELEASES},
};

use crate::{
    harness::Sandbox,
    trees::{are_asked_for, waived},
};

const HOST: &str = "--host=aarch64-linux-gnu";

const TESTS: &[(&str, fn())] = &[
    ("a stub for the other machine", a_stub_is_made_for_the_other_machine),
    ("targets", targets_are_chosen_by_the_machine),
    ("libraries of this machine", libraries_for_this_machine_are_named_as_such),
    ("given answers", what_is_missing_here_can_be_given),
];

#[test]
fn another_machine() {
    let all = std::env::var("UCX_CONFIGURE_ALL_CONSUMERS").is_ok_and(|value| value == "1");
    let there = has_cross_compiler();
    let mut waivers = 0;
    for (name, test) in TESTS {
        if there {
            test();
        } else {
            waived(name, "there is no `aarch64-linux-gnu-gcc` here, or it is no cross compiler");
            waivers += 1;
        }
    }
    assert_eq!(waivers, if there { 0 } else { TESTS.len() });
    assert!(!all || waivers == 0);
}

/// NVIDIA's wheels for servers with ARM, fetched for real.
#[test]
fn real_toolkits_for_another_machine() {
    let mut waivers = 0;
    for release in AARCH64_RELEASES {
        let name = format!("wheels of CUDA {} for aarch64", release.version);
        if !are_asked_for() {
            waived(&name, "UCX_CONFIGURE_REAL_TOOLKITS is not 1");
            waivers += 1;
        } else if !has_cross_compiler() {
            waived(&name, "there is no `aarch64-linux-gnu-gcc` here");
            waivers += 1;
        } else {
            wheels_for_the_other_machine(&release.version.to_string());
        }
    }
    let are_run = are_asked_for() && has_cross_compiler();
    assert_eq!(waivers, if are_run { 0 } else { AARCH64_RELEASES.len() });
}

fn wheels_for_the_other_machine(version: &str) {
    let mut sandbox = Sandbox::new();
    let cache = wheel::cache_dir(&Host::real().unwrap()).unwrap();
    sandbox.set("XDG_CACHE_HOME", cache.ancestors().nth(2).unwrap().as_str());
    let wish = format!("--with-cuda=wheel:{version}");
    sandbox.run(["-B", "b", HOST, &wish, "--no-build"]).must_end(0);
    let toolkit = report(&sandbox).toolkit.unwrap();
    assert_eq!(toolkit.versions.cuda_h.unwrap().to_string(), version);
    let root = toolkit.root.unwrap();
    for file in ["lib64/libcudart.so", "lib64/stubs/libcuda.so"] {
        assert_eq!(machine(&root.join(file)), Architecture::Aarch64, "{root}: {file}");
    }
    // For this machine the same tree is no toolkit, and it is said why.
    let native = sandbox.run(["check".to_owned(), format!("--with-cuda={root}")]).must_end(1);
    assert!(native.stderr.contains("is for another kind of machine"), "{}", native.stderr);
}

fn has_cross_compiler() -> bool {
    let sandbox = Sandbox::new();
    let found = sandbox.shell("command -v aarch64-linux-gnu-gcc").output().unwrap();
    found.status.success() && std::env::consts::ARCH != "aarch64"
}

/// A stub toolkit at `NAME`, for the other machine or for this one.
fn stub(sandbox: &Sandbox, name: &str, options: &[&str]) {
    let dir = format!("../made-{name}");
    let args = ["-B", &dir, "-q", "--no-build", "--with-cuda=stub:12.5"];
    sandbox.run(args.iter().chain(options)).must_end(0);
    let tree = sandbox.path(format!("made-{name}/.ucx-configure/toolkit/stub-cuda-12.5"));
    fs::rename(&tree, &sandbox.path(name)).unwrap();
}

fn report(sandbox: &Sandbox) -> Report {
    serde_json::from_str(&sandbox.read("work/b/ucx-configure.json")).unwrap()
}

fn machine(file: &Utf8Path) -> Architecture {
    let bytes = fs::read(file).unwrap();
    object::File::parse(&*bytes).unwrap().architecture()
}

fn a_stub_is_made_for_the_other_machine() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(["-B", "b", HOST, "--with-cuda=stub:12.5", "--no-build"]).must_end(0);
    assert!(run.stdout.contains("aarch64-linux-gnu-gcc (gcc "), "{}", run.stdout);
    let report = report(&sandbox);
    assert_eq!(report.host.as_deref(), Some("aarch64-linux-gnu"));
    assert_eq!(report.compiler.unwrap().target, "aarch64-linux-gnu");
    let root = sandbox.path("work/b/.ucx-configure/toolkit/stub-cuda-12.5");
    for file in ["lib64/libcudart.so", "lib64/stubs/libcuda.so", "lib64/stubs/libnvidia-ml.so"] {
        assert_eq!(machine(&root.join(file)), Architecture::Aarch64, "{file}");
    }
    let config = sandbox.read("work/b/config.h");
    assert!(config.contains("#define HAVE_CUDA 1\n"), "{config}");
    assert!(config.contains("#define UCM_BISTRO_HOOKS 0\n"), "code is patched on x86_64 alone");
    assert!(sandbox.read("work/b/config.mk").contains("CC = aarch64-linux-gnu-gcc\n"));
}

/// As NVIDIA's cross packages have it: what `lib64` leads to is for this
/// machine, and beside it there is a target for the other.
fn targets_are_chosen_by_the_machine() {
    for target in ["sbsa-linux", "aarch64-linux"] {
        let sandbox = Sandbox::new();
        stub(&sandbox, "native", &[]);
        stub(&sandbox, "cross", &[HOST]);
        for (name, from) in [("x86_64-linux", "native"), (target, "cross")] {
            let dir = sandbox.dir(&format!("cuda/targets/{name}"));
            for (part, of) in [("include", "include"), ("lib", "lib64")] {
                let place = sandbox.path(format!("{from}/{of}"));
                fs::symlink(place.as_str(), &dir.join(part)).unwrap();
            }
        }
        for (link, part) in [("include", "include"), ("lib64", "lib")] {
            let leads_to = format!("targets/x86_64-linux/{part}");
            fs::symlink(&leads_to, &sandbox.path(format!("cuda/{link}"))).unwrap();
        }
        sandbox.run(["-B", "b", HOST, "--with-cuda=../cuda", "--no-build"]).must_end(0);
        let toolkit = report(&sandbox).toolkit.unwrap();
        let own = format!("targets/{target}/lib");
        for dir in toolkit.library_dirs.iter().chain(&toolkit.stub_dirs) {
            assert!(dir.as_str().contains(&own), "{target}: {dir}");
        }
        // For this machine the same directory means its own.
        sandbox.run(["-B", "b", "--with-cuda=../cuda", "--no-build"]).must_end(0);
        let toolkit = report(&sandbox).toolkit.unwrap();
        assert!(toolkit.library_dirs.iter().all(|dir| !dir.as_str().contains(&own)));
    }
}

fn libraries_for_this_machine_are_named_as_such() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "native", &[]);
    let run = sandbox.run(["check", HOST, "--with-cuda=../native"]).must_end(1);
    assert!(run.stderr.contains("`libcuda` cannot be used [E0201]"), "{}", run.stderr);
    assert!(run.stderr.contains("libcuda.so` is for "), "{}", run.stderr);
    assert!(!run.stderr.contains("There is no libcuda"), "{}", run.stderr);
}

fn what_is_missing_here_can_be_given() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "cross", &[HOST]);
    fs::remove_file_if_there(&sandbox.path("cross/lib64/stubs/libnvidia-ml.so")).unwrap();
    let args = ["-B", "b", HOST, "--with-cuda=../cross", "--no-build"];
    let run = sandbox.run(args).must_end(1);
    assert!(run.stderr.contains("[E0202]"), "{}", run.stderr);
    let text = "[nvml.library.nvidia_ml]\nanswer = true\nreason = \"JetPack brings it\"\n";
    sandbox.write("work/answers.toml", text);
    let args = args.iter().chain(&["--answers", "answers.toml"]);
    let run = sandbox.run(args).must_end(0);
    let line = "checking for nvmlInit in -lnvidia-ml... yes (given)\n";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    let report = report(&sandbox);
    let check = report.checks.iter().find(|check| check.id == "nvml.library.nvidia_ml").unwrap();
    assert_eq!(check.preset.as_deref(), Some("JetPack brings it"));
    let run = sandbox.run(["explain", "-B", "b"]).must_end(0);
    assert!(
        run.stdout.contains("nvml.library.nvidia_ml: yes: JetPack brings it"),
        "{}",
        run.stdout
    );
}
