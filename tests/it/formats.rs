//! `emit`: each format, read by its real consumer on a stub toolkit.
//!
//! A consumer that is not here waives its test. `UCX_CONFIGURE_ALL_CONSUMERS=1`
//! says that all have to be here.

#![expect(clippy::disallowed_methods, reason = "a variable says what has to be here")]

mod build_systems;
mod packages;
pub(crate) mod site;

use std::process::Output;

use crate::{harness::Sandbox, trees::waived};

/// A program that links with everything that was found.
pub(crate) const PROGRAM: &str = "#include <cuda.h>\n#include <cuda_runtime.h>\n#include <nvml.h>\n\
    #include <gdrapi.h>\nint main(void)\n{\n    int n = 0;\n    cuInit(0);\n    cudaGetDeviceCount(&n);\n\
    nvmlInit();\n    return gdr_open() == 0 && n;\n}\n";

/// A test with its name and the programs that it needs.
type ConsumerTest = (&'static str, &'static [&'static str], fn(&Sandbox));

const TESTS: &[ConsumerTest] = &[
    ("pkg-config", &["pkg-config", "cc"], build_systems::pkg_config),
    ("cmake", &["cmake", "make", "cc"], build_systems::cmake),
    ("meson", &["meson", "ninja", "cc"], build_systems::meson),
    ("cargo", &["cc"], build_systems::cargo),
    ("rpmspec", &["rpmspec"], packages::rpm),
    ("dpkg", &["dpkg-gencontrol", "dpkg-deb"], packages::deb),
    ("rpmbuild", &["rpmbuild", "rpm"], packages::real_rpm),
    ("dpkg-deb", &["dpkg-gencontrol", "dpkg-deb", "dpkg"], packages::real_deb),
    ("sh reads variables", &["sh"], packages::variables),
];

/// Whether a program is in a sandbox's PATH.
fn have(sandbox: &Sandbox, program: &str) -> bool {
    sandbox.shell(&format!("command -v {program}")).output().unwrap().status.success()
}

/// A configured build directory `b` on stub toolkits, strict.
fn configured() -> Sandbox {
    let sandbox = Sandbox::new().with_cargo();
    sandbox
        .run([
            "-B",
            "b",
            "--with-cuda=stub:12.5",
            "--with-gdrcopy=stub:2.5",
            "--no-build",
            "--prefix=/opt/ucx",
        ])
        .must_end(0);
    sandbox
}

/// Writes a format's files into `work/f`.
fn emit(sandbox: &Sandbox, format: &str) {
    sandbox.run(["emit", format, "-B", "b", "-o", "f"]).must_end(0);
}

/// Runs a script in `work`, which has to succeed; what it printed.
#[track_caller]
fn sh(sandbox: &Sandbox, script: &str) -> String {
    let Output { status, stdout, stderr } = sandbox.shell(script).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{script}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// A program was linked, and it would look for nothing in a stub's directory.
#[track_caller]
fn has_no_run_path(sandbox: &Sandbox, program: &str) {
    let dynamic = sh(sandbox, &format!("readelf -d {program}"));
    assert!(dynamic.contains("libcuda.so.1"), "{dynamic}");
    assert!(!dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"), "{dynamic}");
}

#[test]
fn consumers_read_the_formats() {
    let all = std::env::var("UCX_CONFIGURE_ALL_CONSUMERS").is_ok_and(|value| value == "1");
    let mut waivers = Vec::new();
    let mut run = 0;
    for (name, needs, test) in TESTS {
        let sandbox = configured();
        match needs.iter().find(|program| !have(&sandbox, program)) {
            Some(program) => waivers.push(waived(name, &format!("there is no `{program}` here"))),
            None => {
                test(&sandbox);
                run += 1;
            }
        }
    }
    assert_eq!(run + waivers.len(), TESTS.len());
    // What building Rust needs is here.
    let optional = ["pkg-config", "cmake", "meson", "rpmspec", "dpkg", "rpmbuild", "dpkg-deb"];
    assert!(waivers.iter().all(|name| optional.contains(&name.as_str())), "{waivers:?}");
    assert!(!all || waivers.is_empty(), "{waivers:?}");
}

#[test]
fn one_file_goes_to_standard_output_and_is_the_one_in_the_build_directory() {
    let sandbox = configured();
    for (format, file) in [("config-h", "config.h"), ("mk", "config.mk"), ("sh", "config.sh")] {
        let run = sandbox.run(["emit", format, "-B", "b"]).must_end(0);
        let text = sandbox.filtered(sandbox.read(&format!("work/b/{file}")).as_bytes());
        assert_eq!(run.stdout, text);
    }
    let list = sandbox.run(["emit"]).must_end(0).stdout;
    assert!(list.lines().count() > 20 && list.contains("pkg-config:gdrapi"), "{list}");
}

#[test]
fn what_cannot_be_emitted_is_said() {
    let sandbox = configured();
    let said = |args: &[&str], code: i32| sandbox.run(args).must_end(code).stderr;
    let text = said(&["emit", "pkgconfig", "-B", "b"], 2);
    assert!(
        text.contains("`pkgconfig` is not a format") && text.contains("`pkg-config`?"),
        "{text}"
    );
    let text = said(&["emit", "cmake", "-B", "b"], 2);
    assert!(text.contains("more than one file") && text.contains("`cmake:cache`"), "{text}");
    let text = said(&["emit", "json", "-B", "nowhere"], 5);
    assert!(text.contains("there is no report in"), "{text}");
    let text = said(&["emit", "config-site", "-B", "b"], 2);
    assert!(text.contains("this report is strict") && text.contains("--compat"), "{text}");
    let json = sandbox.read("work/b/ucx-configure.json");
    sandbox.write(
        "work/b/ucx-configure.json",
        &json.replace("\"schema_version\": 1", "\"schema_version\": 2"),
    );
    let text = said(&["emit", "json", "-B", "b"], 5);
    assert!(text.contains("another version of this program"), "{text}");
}

#[test]
fn files_of_others_are_not_written_over() {
    let sandbox = configured();
    let formats =
        ["pkg-config", "cmake", "meson", "rpm", "deb", "github", "gitlab", "cargo", "json"];
    for format in formats {
        emit(&sandbox, format);
        emit(&sandbox, format);
    }
    let before = sandbox.files("work/f");
    assert!(before.len() > 15, "{before:?}");
    for name in before.keys() {
        let path = format!("work/f/{name}");
        let ours = sandbox.read(&path);
        sandbox.write(&path, "by hand\n");
        let refused = formats.iter().filter(|format| {
            let run = sandbox.run(["emit", format, "-B", "b", "-o", "f"]);
            let said = run.stderr.contains("this program did not write it");
            assert_eq!(
                (run.code, said),
                if said { (5, true) } else { (0, false) },
                "{}",
                run.stderr
            );
            assert!(!said || run.stderr.contains("`-o DIR`"), "{}", run.stderr);
            said
        });
        assert_eq!(refused.count(), 1, "{name}");
        assert_eq!(sandbox.read(&path), "by hand\n");
        sandbox.write(&path, &ours);
    }
    // A file that was cut short has nothing to lose.
    sandbox.write("work/f/ucx-cuda.pc", "");
    emit(&sandbox, "pkg-config");
    assert!(sandbox.read("work/f/ucx-cuda.pc").contains("Name: ucx-cuda"));
}

#[test]
fn without_gdrcopy_its_files_are_left_out() {
    let sandbox = Sandbox::new();
    sandbox
        .run(["-B", "b", "--with-cuda=stub:12.5", "--without-gdrcopy", "--no-build"])
        .must_end(0);
    emit(&sandbox, "pkg-config");
    assert_eq!(sandbox.names("work/f"), ["ucx-cuda.pc"]);
    let run = sandbox.run(["emit", "pkg-config:gdrapi", "-B", "b"]).must_end(1);
    assert!(run.stderr.contains("needs gdrcopy"), "{}", run.stderr);
    assert!(
        !sandbox
            .run(["emit", "rpm:spec", "-B", "b"])
            .must_end(0)
            .stdout
            .contains("%package -n ucx-gdrcopy")
    );
}
