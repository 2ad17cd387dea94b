//! Toolkits that are made: NVIDIA's wheels, fetched for real.
//!
//! These need the package index: they run with UCX_CONFIGURE_REAL_TOOLKITS=1,
//! and are waived otherwise.

use camino::Utf8Path;
use ucx_configure::{
    error::Code,
    host::{
        Host,
        fs::{self, Scratch},
        process::Invocation,
    },
    model::CudaVersion,
    probe::{Compiler, Source, host_compiler},
    request::Request,
    toolkit::{self, wheel, wheel_table::RELEASES},
    ui::Silent,
};

use crate::{
    build_runtime::host,
    trees::{are_asked_for, waived},
};

/// Runs tests that need the package index, or waives every one; returns how
/// many were waived.
pub(crate) fn on_wheels(tests: &[(&str, fn())]) -> usize {
    let mut waivers = Vec::new();
    for (name, test) in tests {
        if are_asked_for() {
            test();
        } else {
            waivers.push(waived(name, "UCX_CONFIGURE_REAL_TOOLKITS is not 1"));
        }
    }
    waivers.len()
}

#[test]
fn wheels_become_real_toolkits() {
    let waived = on_wheels(&[
        ("every release becomes a toolkit", every_release_becomes_a_toolkit),
        ("the nvcc of 13.0 compiles", the_nvcc_of_13_0_compiles),
    ]);
    assert_eq!(waived, if are_asked_for() { 0 } else { 2 });
}

fn compiler(scratch: &Scratch, host: &Host) -> Compiler {
    Compiler::find(&Request::bare(scratch.path().to_owned()), host, &mut Silent).unwrap()
}

/// What a toolkit has to hold up to: both APIs and NVML, headers and names.
const PROGRAM: &str = "\
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvml.h>
int main(void)
{
    CUuuid uuid;
    CUdeviceptr pointer;
    int count;
    return cuInit(0) + cuDeviceGetUuid(&uuid, 0) + cuMemAlloc(&pointer, 1) +
           cudaGetDeviceCount(&count) + nvmlInit();
}
";

/// The headers refuse the host compilers that our table has as too new.
fn host_compilers_are_those_of_the_table(version: CudaVersion, tree: &Utf8Path) {
    let text = fs::read_to_string(&tree.join("include/crt/host_config.h")).unwrap();
    let number = |error: &str, mark: &str| -> u32 {
        let before = text.split(error).next().unwrap();
        let at = before.rfind(mark).unwrap_or_else(|| panic!("{version}: {mark}")) + mark.len();
        let digits = before[at..].chars().take_while(char::is_ascii_digit).collect::<String>();
        digits.parse().unwrap()
    };
    let gcc = number("#error -- unsupported GNU version", "#if __GNUC__ > ");
    let clang = number("#error -- unsupported clang version", "(__clang_major__ >= ") - 1;
    let limit = host_compiler::of(version).unwrap();
    assert_eq!((limit.gcc, limit.clang), (gcc, clang), "{version}");
}

fn every_release_becomes_a_toolkit() {
    let scratch = Scratch::new(None).unwrap();
    let host = host(scratch.path(), &[]);
    let compiler = compiler(&scratch, &host);
    let cache = wheel::cache_dir(&host).unwrap();
    for release in RELEASES {
        let make = || {
            wheel::materialise(release.version, &cache, false, &compiler, &host, &mut Silent)
                .unwrap()
        };
        let tree = make();
        let started = host.runner.started();
        assert_eq!(make(), tree);
        assert_eq!(host.runner.started(), started, "a tree that is there is used again");
        host_compilers_are_those_of_the_table(release.version, &tree);
        let source = Source { name: "program.c", text: PROGRAM };
        let include = [format!("-I{tree}/include")];
        let dirs = [format!("-L{tree}/lib64"), format!("-L{tree}/lib64/stubs")];
        let libs = ["-lcudart", "-lcuda", "-lnvidia-ml"].map(str::to_owned);
        let trial = compiler.link(&host, &mut Silent, &source, &include, &dirs, &libs);
        assert!(trial.ok, "{}: {}", release.version, trial.completed.stderr);
        assert!(!tree.join("bin").exists());
        assert!(!fs::names(&tree.join("licenses")).is_empty());
        assert!(toolkit::list(&host).contains(tree.as_str()));
    }
}

fn the_nvcc_of_13_0_compiles() {
    let scratch = Scratch::new(None).unwrap();
    let host = host(scratch.path(), &[]);
    let compiler = compiler(&scratch, &host);
    let version = "13.0".parse().unwrap();
    let tree = toolkit::fetch(version, None, true, &compiler, &host, &mut Silent).unwrap();
    let source = scratch.path().join("kernel.cu");
    let text = "__global__ void twice(int *x) { x[threadIdx.x] *= 2; }\n\
                int main() { twice<<<1, 32>>>(0); return cudaDeviceSynchronize(); }\n";
    fs::write_new(&source, text.as_bytes(), 0o644).unwrap();
    let nvcc = tree.join("bin/nvcc");
    let object = scratch.path().join("kernel.o");
    let run = Invocation::new(nvcc.as_str()).args(["-c", source.as_str(), "-o", object.as_str()]);
    let completed = host.runner.run(run);
    assert!(completed.success(), "{}{}", completed.stdout, completed.stderr);
    assert!(object.is_file());
}

#[test]
fn a_place_that_is_taken_and_a_version_that_is_not_there_are_told_before_anything_is_fetched() {
    let scratch = Scratch::new(None).unwrap();
    let host = host(scratch.path(), &[("XDG_CACHE_HOME", scratch.path().as_str())]);
    let compiler = compiler(&scratch, &host);
    let started = host.runner.started();
    fs::write_new(&scratch.path().join("file"), b"theirs", 0o644).unwrap();
    let fetch = |version: &str, into: Option<&str>| {
        let into = into.map(Utf8Path::new);
        let version = version.parse().unwrap();
        toolkit::fetch(version, into, false, &compiler, &host, &mut Silent).unwrap_err()
    };
    assert_eq!(fetch("12.5", Some("file")).code, Code::NotOurs);
    let error = fetch("12.6", None);
    assert_eq!(error.code, Code::UnknownVersion);
    assert!(error.means[0].contains("`12.5`"));
    assert_eq!(host.runner.started(), started);
    assert!(toolkit::list(&host).contains("--with-cuda=wheel:13.0"));
}
