//! Every probe on every stub level, yes and no.

use ucx_configure::{
    model::{CudaVersion, FEATURES, GdrVersion, Module, SubstValue, ToolkitKind, Verdict},
    probe::catalog::{PROBES, Stage},
    request::{Location, Want},
    toolkit::stub,
};

use super::world::{World, check, define, verdict, words};

/// The first release in which a probe succeeds on a stub toolkit; none where
/// it never does.
fn since(id: &str) -> Option<(u32, u32)> {
    Some(match id {
        "cuda.header.cuda_h"
        | "cuda.header.cuda_runtime_h"
        | "cuda.library.cuda"
        | "cuda.library.cudart"
        | "cuda.library.cudart_static"
        | "nvml.header.nvml_h"
        | "nvml.library.nvidia_ml" => (10, 2),
        "cuda.symbol.mem_retain_allocation_handle" => (11, 0),
        "level.cuda_11_2" | "level.cudart_11_2" => (11, 2),
        "level.cuda_11_7" => (11, 7),
        "nvml.declaration.gpu_fabric_info" | "level.cuda_12_0" => (12, 0),
        "cuda.declaration.location_type_host" | "level.cuda_12_2" => (12, 2),
        "cuda.declaration.handle_type_fabric" | "level.cuda_12_3" => (12, 3),
        "level.cuda_12_4" => (12, 4),
        "level.cuda_12_5" => (12, 5),
        "level.cuda_12_8" => (12, 8),
        "level.cuda_13_0" => (13, 0),
        "cuda.nvcc" => return None,
        other => panic!("{other} has no row here"),
    })
}

fn gdrcopy_since(id: &str) -> GdrVersion {
    match id {
        "gdrcopy.declaration.pin_buffer_v2" => GdrVersion::new(2, 5),
        _ => GdrVersion::new(2, 0),
    }
}

fn on_level(version: &str, gdrcopy: &str) {
    let mut world = World::new();
    world.cuda(Want::At(Location::Stub(version.parse().unwrap())));
    world.gdrcopy(Want::At(Location::Stub(gdrcopy.parse().unwrap())));
    let outcome = world.run();
    assert_eq!(outcome.error, None, "{version}");
    let report = &outcome.report;
    assert!(report.ok && report.has_cuda() && report.on_stub());
    assert_eq!(report.toolkit.as_ref().unwrap().kind, ToolkitKind::Stub);
    let here: CudaVersion = version.parse().unwrap();
    let gdr: GdrVersion = gdrcopy.parse().unwrap();
    for probe in PROBES.iter().filter(|probe| !probe.label.is_empty()) {
        let expected = match probe.id.split('.').next().unwrap() {
            "system" => probe.id != "system.sys_ipc",
            "gdrcopy" => gdr >= gdrcopy_since(probe.id),
            _ => {
                since(probe.id).is_some_and(|(major, minor)| here >= CudaVersion::new(major, minor))
            }
        };
        let expected = if expected { Verdict::Yes } else { Verdict::No };
        let check = check(&outcome, probe.id).unwrap_or_else(|| panic!("{}: not put", probe.id));
        assert_eq!(check.verdict, expected, "{} on {version}: {check:#?}", probe.id);
        if check.verdict == Verdict::No {
            let failure = check.evidence.first_failure().unwrap();
            assert!(failure.meaning.is_some(), "{} says what it means", probe.id);
            if probe.stage != Stage::Nvcc {
                assert!(failure.command.is_some() && failure.said.is_some(), "{}", probe.id);
            }
        }
    }
    for (feature, answer) in FEATURES.iter().zip(&report.features) {
        assert_eq!(feature.id, answer.id);
        assert_eq!(report.cfg[feature.cfg], answer.verdict.is_yes(), "{}", feature.key);
        if let Some(by_version) = answer.by_version {
            assert_eq!(by_version, answer.verdict.is_yes(), "{} on {version}", feature.key);
        }
    }
    assert_eq!(report.cfg.len(), FEATURES.len());
    let codes: Vec<_> = report.messages.iter().map(|message| message.code.as_str()).collect();
    assert_eq!(codes, ["N0307", "N0307"], "the stubs are told, no disagreement is");
    let versions = &report.toolkit.as_ref().unwrap().versions;
    assert_eq!((versions.cuda_h, versions.cudart_h), (Some(here), Some(here)));
    assert_eq!(report.gdrcopy.as_ref().unwrap().version, Some(gdr));
    assert_eq!(report.modules, Module::ALL);
    assert_eq!(verdict(&outcome, "tool.compiler_works"), Verdict::Yes);
    assert_eq!(define(&outcome, "uct_cuda_MODULES").unwrap(), "\":gdrcopy\"");
    assert_eq!(words(&outcome, "build_modules"), [":cuda:gdrcopy:cuda:cuda"]);
    assert!(report.differences.is_empty(), "{:?}", report.differences);
}

#[test]
fn every_probe_answers_yes_and_no_where_it_should() {
    let versions = stub::versions();
    assert!(versions.len() >= 9, "{versions:?}");
    for (version, gdrcopy) in versions.iter().zip(["2.0", "2.5"].iter().cycle()) {
        on_level(version, gdrcopy);
    }
}

#[test]
fn a_report_is_the_same_twice_and_holds_no_scratch_paths() {
    let mut world = World::on(&super::world::toolkit("12.5"));
    world.gdrcopy(Want::At(Location::Dir(super::world::gdrcopy("2.5"))));
    let (one, other) = (world.run().report, world.run().report);
    assert_eq!(one, other);
    let text = serde_json::to_string(&one).unwrap();
    assert!(!text.contains("/ucx-configure-"), "{text}");
    assert!(!one.on_stub() || one.toolkit.is_some());
    for name in ["CUDA_CPPFLAGS", "CUDA_LDFLAGS", "GDR_COPY_CPPFLAGS", "GDR_COPY_LDFLAGS"] {
        let value = &one.answers.substitution(name).unwrap().value;
        assert!(matches!(value, SubstValue::Words(words) if !words.is_empty()), "{name}");
    }
}
