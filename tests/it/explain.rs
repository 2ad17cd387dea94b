//! `explain`: from the verdict to the tool's own words, from a report or anew,
//! and what a key of the tables means.

use crate::harness::{Run, Sandbox};

/// A sandbox with a stub toolkit at `tk`, from which a file is missing.
fn without(file: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    let made = ["-B", "../made", "-q", "--no-build", "--with-cuda=stub:12.5"];
    sandbox.run(made).must_end(0);
    let tree = sandbox.path("made/.ucx-configure/toolkit/stub-cuda-12.5");
    ucx_configure::host::fs::rename(&tree, &sandbox.path("tk")).unwrap();
    ucx_configure::host::fs::remove_file_if_there(&sandbox.path("tk").join(file)).unwrap();
    sandbox.write("system/etc/os-release", "ID=debian\n");
    let system = sandbox.path("system").into_string();
    sandbox.set("UCX_CONFIGURE_ROOT", system);
    sandbox
}

#[track_caller]
fn says(run: &Run, lines: &[&str]) {
    let mut rest = run.stdout.as_str();
    for line in lines {
        let Some(at) = rest.find(line) else {
            panic!("`{line}` is not there, in order:\n{}", run.stdout)
        };
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn a_failed_run_is_explained_down_to_the_compilers_words() {
    let sandbox = without("include/nvml.h");
    let failed = sandbox.run(["-B", "b", "--no-build", "--with-cuda=../tk"]).must_end(1);
    let last = failed.stderr.lines().last().unwrap_or_default();
    assert_eq!(last, "hint: `ucx-configure explain -B b` shows every step that led here.");
    let before = sandbox.files("work");
    let run = sandbox.run(["explain", "-B", "b"]).must_end(0);
    says(
        &run,
        &[
            "The last run in [ROOT]/work/b: ucx-configure -B b --no-build --with-cuda=../tk\n",
            "CUDA: no\n",
            "  NVML: no: There is no nvml.h in the installation.\n",
            "NVML was asked for (`--with-cuda=../tk`), but `nvml.h` was not found [E0202]\n",
            "checking for nvml.h... no [nvml.header.nvml_h]\n",
            "  compile `#include <nvml.h>`: it was not there\n",
            "    $ LC_ALL=C cc -c -o probe.o ",
            "    | nvml-nvml_h.c:",
            "nvml.h",
            "    There is no nvml.h in the installation.\n",
            "  looked for, and not there\n",
            "tk/include/nvml.h\n",
            "hint: Install NVML's development files: `apt-get install cuda-nvml-dev-12-5`.\n",
            "  the probe: probes/nvml/nvml_h.c\n",
            "  the packages that have it\n",
            "    Debian, Ubuntu:                 apt-get install libnvidia-ml-dev\n",
            "    the same, NVIDIA's repository:  apt-get install cuda-nvml-dev-12-5\n",
            "    Red Hat, Fedora:                dnf install ",
            "    SUSE:                           zypper install ",
            "    Arch:                           pacman -S cuda\n",
            "    conda:                          conda install -c conda-forge cuda-nvml-dev",
            "    pip:                            pip install nvidia-nvml-dev",
            "    Spack:                          spack install cuda",
        ],
    );
    for (item, line) in [
        ("nvml", "NVML: no: There is no nvml.h in the installation.\n"),
        ("nvml.h", "checking for nvml.h... no [nvml.header.nvml_h]\n"),
        ("libcudart", "checking for cudaGetDeviceCount in -lcudart... yes"),
        ("cuda", "CUDA: no\n"),
        ("nvml-fabric-info", "nvml.h declares nvmlDeviceGetGpuFabricInfo"),
        ("cuda-12.5", "The version guard in UCX's sources says yes.\n"),
        ("libuct_cuda", "libuct_cuda: not built"),
        ("cuda.header.cuda_h", "probe cuda.header.cuda_h\n"),
        ("NVML.h", "checking for nvml.h... no [nvml.header.nvml_h]\n"),
        ("HAVE_CUDA", "conditional HAVE_CUDA\n  no\n"),
        ("cuda_libs", "substitution CUDA_LIBS\n"),
    ] {
        says(&sandbox.run(["explain", item, "-B", "b"]).must_end(0), &[line]);
    }
    assert_eq!(sandbox.files("work"), before, "nothing is written");
}

#[test]
fn what_was_not_looked_for_is_said_to_be_so() {
    let mut sandbox = Sandbox::new();
    sandbox.set("UCX_CONFIGURE_ROOT", sandbox.path("nothing").into_string());
    sandbox.run(["-B", "b", "-q", "--no-build"]).must_end(0);
    says(
        &sandbox.run(["explain", "nvml.h", "-B", "b"]).must_end(0),
        &["nvml.h... not asked [nvml.header.nvml_h]\n", "It was not looked for", "cuda.h"],
    );
}

#[test]
fn with_options_the_answers_are_found_out_anew() {
    let sandbox = without("lib64/stubs/libcuda.so");
    let run = sandbox.run(["explain", "libcuda", "--with-cuda=../tk", "CC=cc"]).must_end(0);
    says(
        &run,
        &[
            "Found out now; nothing is written.\n",
            "checking for cuDeviceGetUuid in -lcuda... no [cuda.library.cuda]\n",
            "cannot find -lcuda",
        ],
    );
    assert!(sandbox.names("work").is_empty());
}

#[test]
fn keys_are_explained_without_a_run() {
    let mut sandbox = Sandbox::new();
    sandbox.only_own_tools();
    for (key, line) in [
        ("3", "exit code 3\n  There is no C compiler that can build what is needed.\n"),
        ("E0202", "error E0202\n  NVML was needed and is not there.\n"),
        ("W0305", "warning W0305\n"),
        ("CUDA_HOME", "variable CUDA_HOME\n"),
        ("nvml.header.nvml_h", "A success proves that nvml.h is there and compiles as C."),
        ("pkg-config:ucx-cuda", "format pkg-config:ucx-cuda\n"),
        ("KEYS", "variables\n  CC "),
        ("q3", "difference Q3\n  In UCX v1.19.0 CPPFLAGS and LDFLAGS come before DIR;"),
        ("cuda_home", "variable CUDA_HOME\n"),
    ] {
        says(&sandbox.run(["explain", key]).must_end(0), &[line]);
        // Nor is a report needed where a build directory is named.
        says(&sandbox.run(["explain", key, "-B", "gone"]).must_end(0), &[line]);
    }
    let run = sandbox.run(["explain", "a\u{1b}]0;x", "-B", "gone"]).must_end(2);
    assert!(run.stderr.contains("`explain a\\u{1b}]0;x`: there is nothing"), "{}", run.stderr);
    let run = sandbox.run(["explain", "nvml.h", "-B", "gone"]).must_end(5);
    assert!(run.stderr.contains("there is no report in"), "{}", run.stderr);
    let run = Sandbox::new().run(["explain", "nvlm"]).must_end(2);
    assert!(run.stderr.contains("hint: Did you mean `explain nvml`?"), "{}", run.stderr);
    let run = sandbox.run(["explain", "-B", "gone"]).must_end(5);
    assert!(run.stderr.contains("there is no report in"), "{}", run.stderr);
}
