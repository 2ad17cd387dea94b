//! rpmspec, dpkg and shells.

use super::{Sandbox, emit, sh};

pub(super) fn rpm(sandbox: &Sandbox) {
    emit(sandbox, "rpm");
    sandbox.write(
        "work/x.spec",
        "Name: x\nVersion: 1.19.0\nRelease: 1\nSummary: x\nLicense: MIT\n%description\nx\n%files\n\
         %include f/ucx-cuda.spec.inc\n",
    );
    let query = |package: &str, what: &str| {
        let all =
            sh(sandbox, &format!("rpmspec -q --qf '[%{{=NAME}} %{{{what}}}\\n]' x.spec 2>&1"));
        let of_package = all.lines().filter_map(|line| line.strip_prefix(&format!("{package} ")));
        of_package.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(query("ucx-cuda", "CONFLICTNAME").contains(&"ucx".to_owned()));
    assert!(!query("ucx-cuda", "REQUIRENAME").iter().any(|name| name.starts_with("libcuda")));
    assert!(query("ucx-cuda", "RECOMMENDNAME").iter().any(|name| name.starts_with("libcuda.so.1")));
    assert!(query("ucx-gdrcopy", "REQUIRENAME").iter().any(|name| name.starts_with("ucx-cuda")));
    let expanded = sh(sandbox, "rpmspec -P --define '_libdir /usr/lib64' x.spec");
    for module in ["libucm_cuda", "libuct_cuda", "libucx_perftest_cuda", "libuct_cuda_gdrcopy"] {
        assert!(expanded.contains(&format!("/usr/lib64/ucx/{module}.so.*")), "{expanded}");
    }
    assert!(sh(sandbox, "rpmspec -q --buildrequires x.spec").contains("gdrcopy-devel"));
    // What is kept out is a pattern of rpm's: it has to be one of grep's.
    let pattern = sh(
        sandbox,
        "sed -n 's/^%global __requires_exclude //p' f/ucx-cuda.spec.inc | sed 's/\\\\\\\\/\\\\/g'",
    );
    let matches = |name: &str| {
        let script = format!("printf '%s\\n' '{name}' | grep -Eq '{}'", pattern.trim());
        sandbox.shell(&script).status().unwrap().success()
    };
    assert!(matches("libcuda.so.1()(64bit)") && matches("libnvidia-ml.so.1()(64bit)"));
    assert!(!matches("libcudart.so.12()(64bit)"), "{pattern}");
    let list = sandbox.read("work/f/ucx-gdrcopy.files");
    assert!(list.ends_with("%{_libdir}/ucx/libuct_cuda_gdrcopy.so.*\n"), "{list}");
}

pub(super) fn deb(sandbox: &Sandbox) {
    emit(sandbox, "deb");
    let control = "Source: x\nSection: libs\nPriority: optional\nMaintainer: A <a@example.org>\n\
                   Standards-Version: 4.6.2\n\n";
    sandbox.write(
        "work/debian/control",
        &format!("{control}{}", sandbox.read("work/f/ucx-cuda.control")),
    );
    sandbox.write(
        "work/debian/changelog",
        "x (1.19.0-1) unstable; urgency=low\n\n  * Test.\n\n -- A <a@example.org>  Thu, 01 Jan 2026 00:00:00 +0000\n",
    );
    for package in ["ucx-cuda", "ucx-gdrcopy"] {
        sh(
            sandbox,
            &format!(
                "rm -rf t && mkdir -p t/DEBIAN && chmod 755 t t/DEBIAN && \
                 cat f/ucx-cuda.substvars > vars && \
                 printf 'misc:Depends=\\nshlibs:Depends=libc6\\n' >> vars && \
                 dpkg-gencontrol -p{package} -Pt -Tvars && dpkg-deb --build t {package}.deb"
            ),
        );
    }
    let field = |package: &str, name: &str| {
        sh(sandbox, &format!("dpkg-deb -f {package}.deb {name}")).trim().to_owned()
    };
    assert_eq!(field("ucx-cuda", "Depends"), "libc6");
    assert_eq!(field("ucx-cuda", "Conflicts"), "libucx0, ucx");
    let recommends = field("ucx-cuda", "Recommends");
    assert!(recommends.contains("libnvidia-compute | libnvidia-ml1"), "{recommends}");
    assert!(field("ucx-cuda", "Description").starts_with("CUDA modules for UCX (CUDA 12.5)"));
    assert_eq!(field("ucx-gdrcopy", "Depends"), "ucx-cuda (= 1.19.0-1), libc6");
    // An install file is a list of patterns from the root of what was installed.
    for (package, count) in [("ucx-cuda", 3), ("ucx-gdrcopy", 1)] {
        let files = sandbox.read(&format!("work/f/{package}.install"));
        assert_eq!(files.lines().count(), count, "{files}");
        assert!(files.lines().all(|line| line.starts_with("opt/ucx/lib/ucx/libuc")), "{files}");
    }
}

pub(super) fn variables(sandbox: &Sandbox) {
    emit(sandbox, "github");
    emit(sandbox, "gitlab");
    let read = |file: &str, print: &str| {
        sh(
            sandbox,
            &format!(
                "while IFS='=' read -r n v; do export \"$n=$v\"; done < f/{file}; printf '%s' {print}"
            ),
        )
    };
    assert_eq!(
        read("ucx-cuda.env", "\"$UCX_CUDA $UCX_CUDA_VERSION $UCX_ON_STUB\""),
        "yes 12.5 yes"
    );
    assert_eq!(
        read("github-output.txt", "\"$have_cuda $cuda_version $have_gdr_copy\""),
        "yes 12.5 yes"
    );
    let matrix: serde_json::Value =
        serde_json::from_str(&read("github-output.txt", "\"$matrix\"")).unwrap();
    assert_eq!(matrix["include"][0]["cuda"], "12.5");
    assert_eq!(matrix["include"][0]["stub"], true);
}
