//! hook-runtime built with cargo, whole: what comes out, where it is put, and
//! that the same sources give the same bytes anywhere.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use ucx_configure::{
    build::{self, SOURCE_VARIABLE, elf::Dynamic},
    error::Code,
    host::{
        Host,
        env::Snapshot,
        fs::{self, Scratch},
        process::Runner,
    },
    model::{FEATURES, Module, Report},
    request::Request,
    toolkit::embedded,
    ui::Silent,
};

/// What makes cargo quick where the speed of the modules is of no matter.
const QUICK: &[(&str, &str)] =
    &[("CARGO_PROFILE_MODULE_LTO", "off"), ("CARGO_PROFILE_MODULE_OPT_LEVEL", "0")];

/// A machine with the environment of this one and some variables more.
pub(crate) fn host(cwd: &Utf8Path, more: &[(&str, &str)]) -> Host {
    let real = Snapshot::take();
    let mut pairs: BTreeMap<_, _> =
        real.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in QUICK.iter().chain(more) {
        pairs.insert((*name).into(), (*value).into());
    }
    let env = Snapshot::from_pairs(pairs);
    let runner = Runner::with_environment(&env);
    Host { env, cwd: cwd.to_owned(), runner }
}

/// A report that wants these modules, with every feature on.
pub(crate) fn report(modules: &[Module]) -> Report {
    let cfg: BTreeMap<&str, bool> = FEATURES.iter().map(|row| (row.cfg, true)).collect();
    serde_json::from_value(json!({
        "schema_version": 1,
        "tool": { "name": "ucx-configure", "version": "0" },
        "mode": "strict", "command_line": [], "ok": true,
        "install": { "dirs": {} },
        "compiler": null, "nvcc": null, "toolkit": null, "gdrcopy": null,
        "components": [], "features": [], "cfg": cfg, "modules": modules,
        "iodemo_cuda": false,
        "answers": { "defines": [], "substitutions": [], "conditionals": [] },
        "checks": [], "messages": [], "differences": [],
    }))
    .unwrap()
}

/// A build directory of its own, where cargo need not fetch anything: what
/// the tests are built from is on this machine.
pub(crate) fn request(dir: &Utf8Path) -> Request {
    let mut request = Request::bare(dir.to_owned());
    request.state_dir = Some(dir.join(".ucx-configure"));
    request.offline = true;
    request
}

/// The embedded sources in a directory.
fn unpacked(into: &Utf8Path) -> Utf8PathBuf {
    embedded::unpack(embedded::HOOK_RUNTIME, into).unwrap();
    into.to_owned()
}

fn module_bytes(build: &Utf8Path, module: Module) -> Vec<u8> {
    fs::read(&build.join(format!("lib/ucx/{}.so", module.library()))).unwrap()
}

#[test]
fn modules_are_built_installed_and_the_same_anywhere() {
    let scratch = Scratch::new(None).unwrap();
    let first = scratch.path().join("a");
    let second = scratch.path().join("elsewhere/b b");
    for dir in [&first, &second] {
        let source = unpacked(&dir.join("source"));
        let host = host(dir, &[(SOURCE_VARIABLE, source.as_str())]);
        let result =
            build::build_runtime(&report(&Module::ALL), &request(dir), &host, &mut Silent).unwrap();
        assert_eq!(result.built.len(), 4);
        assert!(result.built.iter().all(|built| built.changed));
    }
    for module in Module::ALL {
        let bytes = module_bytes(&first, module);
        let library = module.library();
        assert!(bytes == module_bytes(&second, module), "{library} depends on where it was built");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(scratch.path().as_str()), "{library} holds a path of its build");
        let dynamic = Dynamic::read(&bytes).unwrap();
        assert_eq!(dynamic.soname.unwrap(), format!("{library}.so.0"));
        let lib = first.join("lib/ucx");
        for link in [".so", ".so.0"] {
            let target = lib.join(format!("{library}{link}")).read_link_utf8().unwrap();
            assert_eq!(target, format!("{library}.so.0.0.0"));
        }
    }
    again(&first);
}

/// A second run changes nothing; one without CUDA removes what is there, and
/// needs no cargo for it.
fn again(dir: &Utf8Path) {
    let source = dir.join("source");
    let machine = host(dir, &[(SOURCE_VARIABLE, source.as_str())]);
    let result =
        build::build_runtime(&report(&Module::ALL), &request(dir), &machine, &mut Silent).unwrap();
    assert!(result.built.iter().all(|built| !built.changed));
    let machine = host(dir, &[("CARGO", "/no/cargo")]);
    let result = build::build_runtime(&report(&[]), &request(dir), &machine, &mut Silent).unwrap();
    assert_eq!(result.removed.len(), 12);
    assert!(fs::names(&dir.join("lib/ucx")).is_empty());
}

#[test]
fn a_source_that_does_not_compile_is_an_error_in_four_parts() {
    let scratch = Scratch::new(None).unwrap();
    let source = unpacked(&scratch.path().join("source"));
    // Cargo compiles this one before anything else.
    let script = source.join("hook-runtime/modules/ucm-cuda/build.rs");
    fs::write_new(&script, b"fn main() { let _: X; }\n", 0o644).unwrap();
    let host = host(scratch.path(), &[(SOURCE_VARIABLE, source.as_str())]);
    let request = request(&scratch.path().join("build"));
    let error = build::build_runtime(&report(&[Module::UcmCuda]), &request, &host, &mut Silent)
        .unwrap_err();
    assert_eq!(error.code, Code::BuildFailed);
    assert!(error.command.unwrap().contains("-p ucm-cuda"));
    assert!(error.said.unwrap().contains("cannot find type `X`"));
    assert!(error.means[0].contains("does not compile") && !error.hints.is_empty());
    assert!(fs::names(&request.build_dir.join("lib/ucx")).is_empty(), "nothing is installed");
}

#[test]
fn a_source_variable_that_leads_nowhere_is_told() {
    let scratch = Scratch::new(None).unwrap();
    let host = host(scratch.path(), &[(SOURCE_VARIABLE, "not-there")]);
    let request = request(scratch.path());
    let error = build::build_runtime(&report(&[Module::UcmCuda]), &request, &host, &mut Silent)
        .unwrap_err();
    assert_eq!(error.code, Code::NoSuchDirectory);
    assert!(error.what.contains("not-there"));
}

/// Kept between runs, so that cargo need not compile everything each time.
pub(crate) fn kept_dir(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn the_demo_tells_each_operation_exactly_once() {
    let dir = kept_dir("demo");
    let machine = host(Utf8Path::new("/"), &[]);
    let demo = build::demo(&request(&dir), &machine, &mut Silent).unwrap();
    assert!(demo.ok, "{}", demo.text);
    for call in ["cudaMalloc", "cuMemAllocAsync", "cudaMallocFromPoolAsync", "cuMemMap"] {
        assert!(demo.text.lines().any(|line| line.starts_with(call) && line.contains("ALLOC")));
    }
    crate::verify::ask_real_module(
        &dir.join(".ucx-configure/demo/modules"),
        &dir.join(".ucx-configure/demo/mock-12.5"),
    );
    let blind = host(Utf8Path::new("/"), &[("UCX_MEM_CUDA_HOOK_MODE", "none")]);
    let demo = build::demo(&request(&dir), &blind, &mut Silent).unwrap();
    assert!(!demo.ok && demo.text.contains("missing"), "{}", demo.text);
}
