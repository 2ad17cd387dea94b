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
    assert!(list.contains("%{_libdir}/ucx/libuct_cuda_gdrcopy.so.*\n"), "{list}");
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
    for (package, count) in [("ucx-cuda", 6), ("ucx-gdrcopy", 3)] {
        let files = sandbox.read(&format!("work/f/{package}.install"));
        assert_eq!(files.lines().count(), count, "{files}");
        assert!(files.lines().all(|line| line.starts_with("opt/ucx/")), "{files}");
    }
}

/// The program, for scripts that packages are built by.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ucx-configure");

/// What a package holds of ours, below its library and header directories.
const CUDA: [&str; 9] = [
    "lib/cmake/ucx-cuda/ucx-cuda-config.cmake",
    "lib/pkgconfig/ucx-cuda.pc",
    "lib/ucx/libucm_cuda.so.0",
    "lib/ucx/libucm_cuda.so.0.0.0",
    "lib/ucx/libuct_cuda.so.0",
    "lib/ucx/libuct_cuda.so.0.0.0",
    "lib/ucx/libucx_perftest_cuda.so.0",
    "lib/ucx/libucx_perftest_cuda.so.0.0.0",
    "include/hook_runtime.h",
];
const GDRCOPY: [&str; 4] = [
    "lib/pkgconfig/gdrapi.pc",
    "lib/pkgconfig/ucx-gdrcopy.pc",
    "lib/ucx/libuct_cuda_gdrcopy.so.0",
    "lib/ucx/libuct_cuda_gdrcopy.so.0.0.0",
];

/// The same in a distribution's directories, sorted.
fn placed(files: &[&str], lib: &str) -> Vec<String> {
    let place = |name: &&str| match name.strip_prefix("lib/") {
        Some(rest) => format!("{lib}/{rest}"),
        None => format!("/usr/{name}"),
    };
    let mut placed: Vec<String> = files.iter().map(place).collect();
    placed.sort();
    placed
}

/// The files in a list of paths, directories left out, sorted.
fn files(list: &str, lib: &str) -> Vec<String> {
    let is_file = |line: &&str| {
        line.contains("lib/ucx/lib")
            || line.rsplit('/').next().is_some_and(|name| name.contains('.'))
    };
    let mut files: Vec<String> =
        list.lines().map(str::trim).filter(is_file).map(str::to_owned).collect();
    files.retain(|file| file.starts_with(lib) || file.starts_with("/usr/include"));
    files.sort();
    files
}

/// An RPM, built from the emitted fragment with what `install` puts below the
/// build root; and the conflict that it declares, seen by rpm.
pub(super) fn real_rpm(_: &Sandbox) {
    let sandbox = crate::install::configured();
    emit(&sandbox, "rpm");
    let spec = |name: &str, rest: &str| {
        format!(
            "%global debug_package %{{nil}}\n%global _build_id_links none\nName: {name}\nVersion: 1.19.0\n\
             Release: 1\nSummary: x\nLicense: MIT\n%description\nx\n{rest}"
        )
    };
    sandbox.write(
        "work/x.spec",
        &spec(
            "x",
            &format!(
                "%install\ncd {}\n'{PROGRAM}' install -B b --destdir %{{buildroot}} --allow-stub \
                 --prefix=%{{_prefix}} --libdir=%{{_libdir}}\n%include f/ucx-cuda.spec.inc\n",
                sandbox.path("work")
            ),
        ),
    );
    sandbox.write("work/ucx.spec", &spec("ucx", "%files\n"));
    let build = |spec: &str| {
        sh(
            &sandbox,
            &format!(
                "rpmbuild -bb --nodeps --define \"_topdir $PWD/rpm\" --define '_libdir /usr/lib64' {spec} 2>&1"
            ),
        )
    };
    build("x.spec");
    build("ucx.spec");
    let rpm = |package: &str, what: &str| {
        sh(&sandbox, &format!("rpm -qp {what} rpm/RPMS/*/{package}-1.19.0-1.*.rpm 2>&1"))
    };
    for (package, expected) in [("ucx-cuda", &CUDA[..]), ("ucx-gdrcopy", &GDRCOPY)] {
        let list = rpm(package, "--list");
        assert_eq!(files(&list, "/usr/lib64"), placed(expected, "/usr/lib64"), "{list}");
    }
    assert!(rpm("ucx-gdrcopy", "--requires").contains("ucx-cuda"));
    assert!(rpm("ucx-cuda", "--conflicts").lines().any(|line| line == "ucx"));
    let both =
        "rpm -i --test --dbpath $PWD/db rpm/RPMS/*/ucx-1.*.rpm rpm/RPMS/*/ucx-cuda-1.*.rpm 2>&1";
    let refused = sandbox.shell(both).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(!refused.status.success() && said.contains("conflicts with ucx-cuda"), "{said}");
}

/// A Debian package, built from the emitted lists as dh_install reads them;
/// and the conflict that it declares, seen by dpkg.
pub(super) fn real_deb(_: &Sandbox) {
    let sandbox = crate::install::configured();
    let lib = "/usr/lib/x86_64-linux-gnu";
    let dirs = format!("--prefix=/usr --libdir={lib}");
    sh(&sandbox, &format!("'{PROGRAM}' install -B b --destdir debian/tmp --allow-stub {dirs}"));
    sh(
        &sandbox,
        &format!(
            "'{PROGRAM}' -B b -q --no-build --with-cuda=stub:12.5 --with-gdrcopy=stub:2.5 {dirs}"
        ),
    );
    emit(&sandbox, "deb");
    let control = "Source: x\nSection: libs\nPriority: optional\nMaintainer: A <a@example.org>\n\
                   Standards-Version: 4.6.2\n\n";
    let ucx = "\nPackage: libucx0\nArchitecture: any\nDescription: x\n x\n";
    let stanzas = sandbox.read("work/f/ucx-cuda.control");
    sandbox.write("work/debian/control", &format!("{control}{stanzas}{ucx}"));
    sandbox.write(
        "work/debian/changelog",
        "x (1.19.0-1) unstable; urgency=low\n\n  * Test.\n\n -- A <a@example.org>  Thu, 01 Jan 2026 00:00:00 +0000\n",
    );
    sandbox.write("work/f/libucx0.install", "");
    sh(
        &sandbox,
        "cat f/ucx-cuda.substvars > vars\nprintf 'misc:Depends=\\nshlibs:Depends=\\n' >> vars\n\
         for p in ucx-cuda ucx-gdrcopy libucx0; do\n\
           t=debian/$p; mkdir -p $t/DEBIAN; chmod 755 $t $t/DEBIAN\n\
           grep -v '^#' f/$p.install | while read -r pattern; do\n\
             (cd debian/tmp && cp -a --parents $pattern ../$p/) || exit 1\n\
           done || exit 1\n\
           dpkg-gencontrol -p$p -P$t -Tvars && dpkg-deb --root-owner-group --build $t $p.deb || exit 1\n\
         done",
    );
    for (package, expected) in [("ucx-cuda", &CUDA[..]), ("ucx-gdrcopy", &GDRCOPY)] {
        let list = sh(
            &sandbox,
            &format!("dpkg-deb --fsys-tarfile {package}.deb | tar -t | sed 's/^\\.//'"),
        );
        assert_eq!(files(&list, lib), placed(expected, lib), "{list}");
    }
    sh(&sandbox, "mkdir -p db/updates db/info root && touch db/status db/available");
    let dpkg = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin dpkg --admindir=$PWD/db --instdir=$PWD/root --force-not-root --log=$PWD/log";
    sh(&sandbox, &format!("{dpkg} --unpack libucx0.deb 2>&1"));
    let refused = sandbox.shell(&format!("{dpkg} --unpack ucx-cuda.deb 2>&1")).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(!refused.status.success() && said.contains("conflicting packages"), "{said}");
    sh(
        &sandbox,
        "rm -rf db root && mkdir -p db/updates db/info root && touch db/status db/available",
    );
    sh(&sandbox, &format!("{dpkg} --unpack ucx-cuda.deb ucx-gdrcopy.deb 2>&1"));
    assert!(sandbox.path(format!("work/root{lib}/ucx/libuct_cuda.so.0")).exists());
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
