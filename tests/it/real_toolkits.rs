//! Strict detection on real toolkits, 11.7 to 13.5, and on what can be wrong
//! with one.

use std::{collections::BTreeMap, ffi::OsString};

use camino::Utf8Path;
use ucx_configure::{
    cli::{self, Parsed},
    engine::{self, Outcome},
    error::Code,
    host::{Host, env::Snapshot, fs, process::Runner},
    model::{Component, CudaVersion, FeatureId, MessageKind, Module, Report, Verdict},
    request::resolve,
    ui::Silent,
};

use crate::{
    parity::search_path,
    trees::{TOOLKITS, Trees, are_asked_for, on_real_toolkits, variations},
};

/// What the headers of each release really bring, read in the headers; the
/// first that has it among the twelve.
const BROUGHT: &[(FeatureId, (u32, u32))] = &[
    (FeatureId::Cuda11_2, (11, 7)),
    (FeatureId::Cudart11_2, (11, 7)),
    (FeatureId::Cuda11_7, (11, 7)),
    (FeatureId::Cuda12_0, (12, 0)),
    (FeatureId::Cuda12_2, (12, 2)),
    (FeatureId::Cuda12_3, (12, 3)),
    (FeatureId::Cuda12_4, (12, 4)),
    (FeatureId::Cuda12_5, (12, 5)),
    (FeatureId::Cuda12_8, (12, 8)),
    (FeatureId::Cuda13_0, (13, 0)),
    (FeatureId::CuMemRetainAllocationHandle, (11, 7)),
    (FeatureId::CuMemLocationTypeHost, (12, 2)),
    (FeatureId::CudaFabric, (12, 3)),
    (FeatureId::NvmlFabricInfo, (12, 0)),
];

/// The first toolkit whose wheels hold a static runtime, and an nvcc.
const STATIC_SINCE: CudaVersion = CudaVersion::new(12, 9);
const NVCC_SINCE: CudaVersion = CudaVersion::new(13, 0);

/// The variations that strict detection refuses: the code, the item that is
/// named, and the first thing that is said about it.
const REFUSED: &[(&str, Code, &str, &str)] = &[
    ("emptydir", Code::CudaNotMet, "`cuda.h`", "There is no cuda.h"),
    ("noinclude", Code::CudaNotMet, "`cuda.h`", "There is no cuda.h"),
    ("nocudah", Code::CudaNotMet, "`cuda.h`", "There is no cuda.h"),
    ("badcudah", Code::CudaNotMet, "`cuda.h`", "does not compile"),
    ("nocudarth", Code::CudaNotMet, "`cuda_runtime.h`", "There is no cuda_runtime.h"),
    ("nocrt", Code::CudaNotMet, "`cuda_runtime.h`", "does not compile"),
    ("nolibcuda", Code::CudaNotMet, "`libcuda`", "There is no libcuda"),
    ("txtlibcuda", Code::CudaNotMet, "`libcuda`", "is not a library"),
    ("emptylibcuda", Code::CudaNotMet, "`libcuda`", "is an empty file"),
    ("lib32", Code::CudaNotMet, "`libcuda`", "another kind of machine"),
    ("nogetuuid", Code::CudaNotMet, "`libcuda`", "no function `cuDeviceGetUuid`"),
    ("getuuidv2only", Code::CudaNotMet, "`libcuda`", "no function `cuDeviceGetUuid`"),
    ("nocudart", Code::CudaNotMet, "`libcudart`", "There is no libcudart"),
    ("static-nocudart", Code::CudaNotMet, "`libcudart`", "There is no libcudart"),
    ("nocudagdc", Code::CudaNotMet, "`libcudart`", "no function `cudaGetDeviceCount`"),
    ("nonvmlh", Code::NvmlNotMet, "`nvml.h`", "There is no nvml.h"),
    ("nonvmllib", Code::NvmlNotMet, "`libnvidia-ml`", "There is no libnvidia-ml"),
    ("nonvmlinit", Code::NvmlNotMet, "`libnvidia-ml`", "no function `nvmlInit`"),
];

/// The variations that are toolkits to strict detection, whatever the
/// original says.
const ACCEPTED: &[&str] = &[
    "stubsonly",
    "libonly",
    "bothempty",
    "bothfull",
    "lib64file",
    "lib64dangling",
    "sp ace",
    "targets",
    "targetsonly",
    "cuda-symlink",
    "noretain",
    "brokenstatic",
    // By their versioned names.
    "onlyso1",
    "nocudartlink",
    "fakenvcc-ok",
    "fakenvcc-bad",
    "fakenvcc-nox",
    "semi;colon",
    "a$HOME",
];

#[test]
fn strict_detection_on_real_toolkits() {
    let waived = on_real_toolkits(&[
        ("releases are what their headers are", every_release_is_what_its_headers_are),
        ("what is wrong with a real toolkit is named", what_is_wrong_is_named),
        ("odd toolkits that work are accepted", what_works_is_accepted),
        ("one run for many questions answers as one for each", both_ways_are_one),
    ]);
    assert_eq!(waived, if are_asked_for() { 0 } else { 4 });
}

/// Runs `check` with these arguments, in a bare environment.
fn check(trees: &Trees, args: &[String]) -> Outcome {
    let dir = trees.root.join("build/strict");
    fs::create_dir_all(&dir).unwrap();
    let env = Snapshot::from_pairs(BTreeMap::from([("PATH", search_path())]));
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: dir, runner };
    let arguments: Vec<OsString> = std::iter::once("check")
        .chain(args.iter().map(String::as_str))
        .map(OsString::from)
        .collect();
    let Parsed::Run(typed) = cli::parse(&arguments).unwrap() else { panic!("no run") };
    let request = resolve(&typed, &host).unwrap().request;
    engine::configure(&request, &host, &mut Silent)
}

fn at(dir: &Utf8Path) -> [String; 1] {
    [format!("--with-cuda={dir}")]
}

/// The texts of all warnings.
fn warnings(report: &Report) -> Vec<&str> {
    let messages = report.messages.iter();
    let warnings = messages.filter(|message| message.kind == MessageKind::Warning);
    warnings.map(|message| message.text.as_str()).collect()
}

fn every_release_is_what_its_headers_are(trees: &Trees) {
    for toolkit in TOOLKITS {
        let version: CudaVersion = toolkit.version.parse().unwrap();
        let outcome = check(trees, &at(&trees.toolkit(toolkit.version)));
        assert_eq!(outcome.error, None, "{version}");
        let report = &outcome.report;
        assert!(report.ok && report.has_cuda(), "{version}");
        assert_eq!(warnings(report), [""; 0], "{version}");
        assert_eq!(report.differences, [], "{version}");
        let [no_gdrcopy @ .., _] = Module::ALL;
        assert_eq!(report.modules, no_gdrcopy, "{version}");
        for &(id, (major, minor)) in BROUGHT {
            let answer = report.feature(id).unwrap();
            let there = version >= CudaVersion::new(major, minor);
            assert_eq!(answer.verdict.is_yes(), there, "{version}: {id:?}");
            assert!(answer.by_version.is_none_or(|says| says == there), "{version}: {id:?}");
            assert_eq!(report.cfg[id.row().cfg], there, "{version}: {id:?}");
        }
        versions(report, version);
        let yes = |component| report.finding(component).unwrap().verdict == Verdict::Yes;
        let has_static = version >= STATIC_SINCE;
        assert_eq!(yes(Component::CudaRuntimeStatic), has_static, "{version}");
        assert_eq!(report.answers.conditional("HAVE_CUDA_STATIC"), Some(has_static));
        assert_eq!(yes(Component::Nvcc), version >= NVCC_SINCE, "{version}");
    }
}

/// What the parts say of their versions is this release.
fn versions(report: &Report, version: CudaVersion) {
    let said = &report.toolkit.as_ref().unwrap().versions;
    assert_eq!(said.cuda_h, Some(version));
    assert_eq!(said.cudart_h, Some(version));
    let major = version.major.to_string();
    assert_eq!(said.nvml_h.as_deref(), Some(major.as_str()));
    let library = said.cudart_library.as_deref().unwrap();
    assert_eq!(library.split('.').next(), Some(major.as_str()), "{version}: {library}");
    let nvcc = Some(version).filter(|version| *version >= NVCC_SINCE);
    assert_eq!(said.nvcc, nvcc, "{version}");
    assert_eq!(report.nvcc.is_some(), nvcc.is_some(), "{version}");
    if let Some(identity) = &report.nvcc {
        assert!(identity.version.starts_with(&format!("{version}.")), "{identity:?}");
        assert_eq!(identity.target, "64-bit");
    }
}

fn what_is_wrong_is_named(trees: &Trees) {
    for &(name, code, item, said) in REFUSED {
        let outcome = check(trees, &at(&trees.variations().join(name)));
        let Some(error) = outcome.error else { panic!("{name} was accepted") };
        assert_eq!(error.code, code, "{name}: {error:?}");
        assert!(error.what.contains(item), "{name}: {error:?}");
        assert!(error.means.iter().any(|text| text.contains(said)), "{name}: {error:?}");
        assert!(error.command.is_some() && error.said.is_some(), "{name}: {error:?}");
        assert!(!error.hints.is_empty(), "{name}: {error:?}");
        assert!(!outcome.report.ok && outcome.report.modules.is_empty(), "{name}");
    }
    let file = check_error(trees, "afile");
    assert!(file.what.contains("afile"), "{file:?}");
}

/// The error of a DIR that is refused before any question.
fn check_error(trees: &Trees, name: &str) -> ucx_configure::error::Error {
    let arguments: Vec<OsString> = std::iter::once(OsString::from("check"))
        .chain(at(&trees.variations().join(name)).map(OsString::from))
        .collect();
    let env = Snapshot::from_pairs(BTreeMap::from([("PATH", search_path())]));
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: trees.root.clone(), runner };
    let Parsed::Run(typed) = cli::parse(&arguments).unwrap() else { panic!("no run") };
    resolve(&typed, &host).unwrap_err()
}

fn what_works_is_accepted(trees: &Trees) {
    for name in ACCEPTED {
        let outcome = check(trees, &at(&trees.variations().join(name)));
        assert_eq!(outcome.error, None, "{name}");
        assert!(outcome.report.ok, "{name}");
        assert_eq!(warnings(&outcome.report), [""; 0], "{name}");
        let fabric = outcome.report.feature(FeatureId::CudaFabric).unwrap();
        assert_eq!(fabric.verdict, Verdict::Yes, "{name}");
        let retain = outcome.report.feature(FeatureId::CuMemRetainAllocationHandle).unwrap();
        assert_eq!(retain.verdict.is_yes(), *name != "noretain", "{name}");
        let nvcc = outcome.report.finding(Component::Nvcc).unwrap();
        assert_eq!(nvcc.verdict, Verdict::No, "{name}: no nvcc of these compiles");
        let archive = outcome.report.finding(Component::CudaRuntimeStatic).unwrap();
        assert_eq!(archive.verdict, Verdict::No, "{name}");
    }
}

fn both_ways_are_one(trees: &Trees) {
    let toolkits = TOOLKITS.iter().map(|toolkit| trees.toolkit(toolkit.version));
    let variations = REFUSED.iter().map(|row| row.0).chain(ACCEPTED.iter().copied());
    let variations = variations.map(|name| trees.variations().join(name));
    for dir in toolkits.chain(variations) {
        let ways = ["batch", "single"].map(|way| {
            let args = [
                format!("--with-cuda={dir}"),
                format!("--probe-mode={way}"),
                "--no-cache".to_owned(),
            ];
            let mut outcome = check(trees, &args);
            // How it was asked is the one thing that differs.
            outcome.report.command_line.clear();
            let text = serde_json::to_string_pretty(&outcome.report).unwrap();
            format!("{text}\n{:?}", outcome.error)
        });
        assert!(ways[0] == ways[1], "{dir}: {}", first_difference(&ways));
    }
}

/// The first lines that are not the same.
fn first_difference(texts: &[String; 2]) -> String {
    let mut pairs = texts[0].lines().zip(texts[1].lines());
    let differing = pairs.find(|(one, other)| one != other);
    differing.map_or_else(|| "one ends".to_owned(), |(one, other)| format!("{one}\n{other}"))
}

/// Every tree is in one of the two lists, so that none is forgotten.
#[test]
fn every_variation_has_its_place() {
    let mut listed: Vec<&str> = REFUSED.iter().map(|row| row.0).chain(ACCEPTED.to_vec()).collect();
    listed.sort_unstable();
    let mut made: Vec<&str> = variations::VARIATIONS.iter().map(|row| row.name).collect();
    made.extend(["emptydir", "cuda-symlink"]);
    made.sort_unstable();
    assert_eq!(listed, made);
}
