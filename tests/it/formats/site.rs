//! The site file, read by an autoconf script with the same cache variables.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Sandbox, have, sh};
use crate::trees::{are_asked_for, on_real_toolkits, waived};

/// The releases of some stub toolkits.
const STUBS: [&str; 2] = ["11.7", "13.0"];

/// A sandbox with a `configure` of ours, if autoconf is here.
fn autoconf(test: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    if !have(&sandbox, "autoconf") {
        let name = waived(test, "there is no `autoconf` here");
        assert_eq!(name, test);
        return None;
    }
    sandbox.write("work/configure.ac", include_str!("../../../fixtures/autoconf/configure.ac"));
    sh(&sandbox, "autoconf --warnings=all");
    Some(sandbox)
}

/// The `root` of what was configured, as the report has it.
fn root(sandbox: &Sandbox, part: &str) -> Utf8PathBuf {
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.read("work/b/ucx-configure.json")).unwrap();
    Utf8PathBuf::from(report[part]["root"].as_str().unwrap())
}

/// The script with a site file and without comes to the same answers, and with
/// it asks nothing.
fn agrees(sandbox: &Sandbox, arguments: &str) {
    sandbox.run(["emit", "config-site", "-B", "b", "-o", "f"]).must_end(0);
    sh(
        sandbox,
        &format!("mkdir -p with without; cd without && CONFIG_SITE= ../configure {arguments}"),
    );
    let said = sh(
        sandbox,
        &format!("cd with && CONFIG_SITE=$PWD/../f/ucx-cuda.site ../configure {arguments}"),
    );
    let (with, without) = (sandbox.read("work/with/answers"), sandbox.read("work/without/answers"));
    assert_eq!(with, without, "{arguments}");
    assert!(with.contains("ac_cv_header_cuda_h="), "{with}");
    for line in said.lines().filter(|line| line.starts_with("checking for cu")) {
        assert!(line.contains("(cached)"), "{line}");
    }
    assert!(said.matches("(cached)").count() >= 8, "{said}");
}

#[test]
fn the_site_file_has_the_answers_that_configure_would_find() {
    let Some(sandbox) = autoconf("the_site_file_has_the_answers_that_configure_would_find") else {
        return;
    };
    for version in STUBS {
        sandbox
            .run([
                "-B",
                "b",
                "--compat=v1.19.0",
                &format!("--with-cuda=stub:{version}"),
                "--with-gdrcopy=stub:2.5",
                "--no-build",
            ])
            .must_end(0);
        let (cuda, gdrcopy) = (root(&sandbox, "toolkit"), root(&sandbox, "gdrcopy"));
        agrees(&sandbox, &format!("--with-cuda={cuda} --with-gdrcopy={gdrcopy}"));
    }
}

/// The same on the trees of recorded runs of UCX's own configure, whose answers
/// the test beside this one holds the file against: here autoconf itself asks
/// again, on trees that are decided by directories alone.
pub(crate) fn agrees_on_recorded(all: Vec<Vec<String>>) {
    let Some(sandbox) = autoconf("the site file agrees on recorded trees") else { return };
    assert!(all.len() >= 12, "{all:?}");
    // What autoconf finds out of the compiler is the same each time.
    sh(&sandbox, "mkdir -p base && cd base && ../configure -C --without-cuda --without-gdrcopy");
    sh(&sandbox, "grep '^ac_cv_' base/config.cache | grep -v '^ac_cv_env_' > base.site");
    for arguments in all {
        let mut ours = vec!["-B", "b", "-q", "--compat=v1.19.0", "--no-build"];
        ours.extend(arguments.iter().map(String::as_str));
        sandbox.run(ours).must_end(0);
        sandbox.run(["emit", "config-site", "-B", "b", "-o", "f"]).must_end(0);
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let words = words.join(" ");
        let answers = |dir: &str, site: &str| {
            let run = "../configure --no-create";
            sh(
                &sandbox,
                &format!("mkdir -p {dir} && cd {dir} && CONFIG_SITE=\"{site}\" {run} {words}"),
            );
            sandbox.read(&format!("work/{dir}/answers"))
        };
        let with = answers("with", "../base.site ../f/ucx-cuda.site");
        assert_eq!(with, answers("without", "../base.site"), "{words}");
        assert!(with.contains("ac_cv_lib_cuda_cuDeviceGetUuid="), "{with}");
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[test]
fn the_site_file_answers_no_question_that_was_not_put() {
    let Some(sandbox) = autoconf("the_site_file_answers_no_question_that_was_not_put") else {
        return;
    };
    let arguments =
        ["-B", "b", "--compat=v1.19.0", "--with-cuda=stub:12.5", "--without-gdrcopy", "--no-build"];
    sandbox.run(arguments).must_end(0);
    agrees(&sandbox, &format!("--with-cuda={} --without-gdrcopy", root(&sandbox, "toolkit")));
    let site = sandbox.read("work/f/ucx-cuda.site");
    assert!(!site.contains("gdrapi") && site.contains("ac_cv_header_nvml_h=yes"), "{site}");
}

#[test]
fn the_site_file_refuses_what_it_was_not_made_for() {
    let Some(sandbox) = autoconf("the_site_file_refuses_what_it_was_not_made_for") else {
        return;
    };
    sandbox
        .run([
            "-B",
            "b",
            "--compat=v1.19.0",
            "--with-cuda=stub:12.5",
            "--without-gdrcopy",
            "--no-build",
        ])
        .must_end(0);
    sandbox.run(["emit", "config-site", "-B", "b", "-o", "f"]).must_end(0);
    let cuda = root(&sandbox, "toolkit");
    let configure = |arguments: &str| {
        let script = format!("CONFIG_SITE=$PWD/f/ucx-cuda.site ./configure {arguments} 2>&1");
        let output = sandbox.shell(&script).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (fine, said) = configure(&format!("--with-cuda={cuda}/ --without-gdrcopy"));
    assert!(fine, "a slash at the end is the same directory: {said}");
    for arguments in [
        "--with-cuda=/other --without-gdrcopy".to_owned(),
        "--without-gdrcopy".to_owned(),
        "--without-cuda".to_owned(),
        format!("--with-cuda={cuda} --with-gdrcopy=/opt/gdrcopy"),
        format!("--with-cuda={cuda} --without-gdrcopy CC=other-cc"),
        format!("--with-cuda={cuda} --without-gdrcopy CPPFLAGS=-I/other/include"),
        format!("--with-cuda={cuda} --without-gdrcopy LDFLAGS=-L/other/lib"),
    ] {
        let (fine, said) = configure(&arguments);
        assert!(!fine && said.contains("made for"), "{arguments}: {said}");
        assert!(!said.contains("checking for cuda.h"), "{arguments}: {said}");
    }
    // Another package's configure takes nothing from it.
    let other = sandbox.read("work/configure.ac").replace("[ucx]", "[other]");
    sandbox.write("work/configure.ac", &other);
    sh(&sandbox, "autoconf -f");
    let (fine, said) = configure("--with-cuda=/other --without-gdrcopy");
    assert!(fine && said.contains("checking for cuda.h... no"), "{said}");
}

#[test]
fn the_site_file_is_right_for_real_toolkits() {
    let waived = on_real_toolkits(&[("the_site_file_is_right_for_real_toolkits", |trees| {
        let Some(sandbox) = autoconf("the_site_file_is_right_for_real_toolkits") else { return };
        for version in ["11.8", "12.4", "12.8", "13.0"] {
            on_real(&sandbox, &trees.toolkit(version));
        }
        // What is recorded of UCX's own configure: it goes on with these.
        for variation in ["noretain", "lib64file", "libonly", "stubsonly"] {
            on_real(&sandbox, &trees.variations().join(variation));
        }
    })]);
    assert_eq!(waived, usize::from(!are_asked_for()));
}

fn on_real(sandbox: &Sandbox, dir: &Utf8Path) {
    sandbox
        .run([
            "-B",
            "b",
            "--compat=v1.19.0",
            &format!("--with-cuda={dir}"),
            "--without-gdrcopy",
            "--no-build",
        ])
        .must_end(0);
    agrees(sandbox, &format!("--with-cuda={dir} --without-gdrcopy"));
}
