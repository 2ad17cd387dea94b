//! The report that follows from what was found out.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use super::{
    Run, differences,
    found::{Found, GDRCOPY_NEEDS, Installation},
    outputs,
    tell::why_not,
    versions::of_library,
};
use crate::{
    engine::{Outcome, answers::Draft},
    error::Error,
    host::fs,
    model::{
        Component, CudaVersion, DriverFloor, Evidence, FEATURES, Feature, FeatureAnswer, FeatureId,
        Finding, GdrCopyTree, Install, Message, MessageKind, Mode, Module, Report, SCHEMA_VERSION,
        Tool, Toolkit, Verdict, Versions,
    },
    probe::catalog::{PROBES, Probe},
    request::{Request, Want},
    ui::Event,
};

/// The end of a run.
pub(super) fn outcome(mut run: Run<'_>, found: &Found, error: Option<Error>) -> Outcome {
    let differences = match run.compiler.clone() {
        Some(compiler) => differences::all(&mut run, &compiler, found),
        None => Vec::new(),
    };
    if let Some(error) = &error {
        run.messages.push(Message {
            kind: MessageKind::Error,
            code: error.code.row().name.to_owned(),
            text: error.what.clone(),
            hint: error.hints.first().cloned(),
        });
    }
    for difference in &differences {
        run.sink.event(&Event::Decided(&format!("{}: {}", difference.quirk, difference.text)));
    }
    let request = run.request;
    let machine = run.compiler.as_ref().map_or("", |compiler| compiler.machine.as_str());
    let bistro = found.bistro_possible(machine) && request.bistro;
    let features = features(found, bistro);
    let answers = match &run.compiler {
        Some(compiler) => outputs::answers(request, &run.user, &compiler.command, found, bistro),
        None => Draft::default().finish(),
    };
    let report = Report {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "ucx-configure".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        mode: Mode::Strict,
        command_line: request.command_line.clone(),
        ok: error.is_none(),
        install: Install { dirs: request.install_dirs.clone() },
        host: request.host.clone(),
        compiler: run.compiler.as_ref().map(|compiler| compiler.identity.clone()),
        nvcc: found
            .cuda
            .as_ref()
            .filter(|_| found.nvcc_on())
            .and_then(|cuda| cuda.answer("cuda.nvcc").and_then(|answer| answer.nvcc.clone())),
        toolkit: found.cuda.as_ref().filter(|_| found.cuda_on()).map(|cuda| toolkit(cuda, found)),
        gdrcopy: found.gdrcopy.as_ref().filter(|_| found.gdrcopy_on()).map(|it| tree(it, found)),
        libraries: found.libraries.clone(),
        driver_floor: found.cuda_on().then(|| floor(&features)),
        components: Component::ALL.iter().map(|&part| finding(part, request, found)).collect(),
        cfg: cfg(&features, found),
        features,
        modules: modules(found),
        iodemo_cuda: request.iodemo_cuda && found.cuda_on(),
        answers,
        checks: run.checks,
        messages: run.messages,
        differences,
        environment: run.environment,
    };
    Outcome { report, error }
}

/// The macro that guards a level in UCX's sources, and its value.
pub(super) fn level_macro(feature: &Feature, found: &Found) -> Option<(&'static str, CudaVersion)> {
    match feature.id {
        FeatureId::Cudart11_2 => Some(("CUDART_VERSION", found.headers.cudart?)),
        _ => Some(("CUDA_VERSION", found.headers.cuda?)),
    }
}

/// What a version guard alone says.
pub(super) fn by_version(feature: &Feature, found: &Found) -> Option<bool> {
    let is_level = PROBES
        .iter()
        .any(|probe| probe.feature == Some(feature.id) && probe.id.starts_with("level."));
    let since = feature.since.filter(|_| is_level)?;
    level_macro(feature, found).map(|(_, version)| version >= since)
}

pub(super) fn features(found: &Found, bistro: bool) -> Vec<FeatureAnswer> {
    let verdict = |feature: &Feature| match feature.id {
        FeatureId::GdrCopy => match &found.gdrcopy {
            None => Verdict::Skipped,
            Some(_) if found.gdrcopy_there() => Verdict::Yes,
            Some(_) => Verdict::No,
        },
        FeatureId::BistroHooks if bistro => Verdict::Yes,
        FeatureId::BistroHooks if found.system.is_empty() => Verdict::Skipped,
        FeatureId::BistroHooks => Verdict::No,
        id => {
            let probe = PROBES.iter().find(|probe: &&Probe| probe.feature == Some(id));
            probe.map_or(Verdict::Skipped, |probe| found.verdict(probe.id))
        }
    };
    FEATURES
        .iter()
        .map(|feature| FeatureAnswer {
            id: feature.id,
            verdict: verdict(feature),
            by_version: by_version(feature, found),
        })
        .collect()
}

/// The oldest driver for UCX with these features.
pub(super) fn floor(features: &[FeatureAnswer]) -> DriverFloor {
    DriverFloor::of(|id| features.iter().any(|answer| answer.id == id && answer.verdict.is_yes()))
}

/// The cfg flags: a feature counts where what it is part of is built.
fn cfg(features: &[FeatureAnswer], found: &Found) -> BTreeMap<String, bool> {
    features
        .iter()
        .map(|answer| {
            let row = answer.id.row();
            let built = match answer.id {
                FeatureId::GdrCopy | FeatureId::GdrCopyToMapping | FeatureId::GdrPinBufferV2 => {
                    found.gdrcopy_on()
                }
                _ => found.cuda_on(),
            };
            (row.cfg.to_owned(), built && answer.verdict.is_yes())
        })
        .collect()
}

fn modules(found: &Found) -> Vec<Module> {
    Module::ALL
        .into_iter()
        .filter(|module| match module {
            Module::UctCudaGdrcopy => found.gdrcopy_on(),
            Module::UcmCuda | Module::UctCuda | Module::PerftestCuda => found.cuda_on(),
        })
        .collect()
}

/// The questions of a component, those that decide first.
fn questions_of(component: Component) -> &'static [&'static str] {
    match component {
        Component::CudaDriver => &["cuda.header.cuda_h", "cuda.library.cuda"],
        Component::CudaRuntime => &["cuda.header.cuda_runtime_h", "cuda.library.cudart"],
        Component::Nvml => &["nvml.header.nvml_h", "nvml.library.nvidia_ml"],
        Component::Nvcc => &["cuda.nvcc"],
        Component::CudaRuntimeStatic => &["cuda.library.cudart_static"],
        Component::GdrCopy => &GDRCOPY_NEEDS,
    }
}

fn finding(component: Component, request: &Request, found: &Found) -> Finding {
    let (installation, off) = match component {
        Component::GdrCopy => (&found.gdrcopy, matches!(request.gdrcopy.value, Want::No)),
        _ => (&found.cuda, matches!(request.cuda.value, Want::No)),
    };
    let ids = questions_of(component);
    let bare =
        |verdict, why: String| Finding { component, verdict, why, evidence: Evidence::default() };
    let Some(installation) = installation else {
        return bare(
            Verdict::Skipped,
            if off { "It is switched off." } else { "It was not looked for." }.to_owned(),
        );
    };
    if let Some(check) = installation.first_missing(ids) {
        let failure = check.evidence.first_failure();
        let meaning = failure.and_then(|attempt| attempt.meaning.clone());
        return Finding {
            component,
            verdict: check.verdict,
            why: meaning.unwrap_or_else(|| why_not(check)),
            evidence: check.evidence.clone(),
        };
    }
    if !installation.meets(ids) {
        let why = "It was not looked for: what it stands on is missing.".to_owned();
        return bare(Verdict::Skipped, why);
    }
    if component == Component::GdrCopy && !found.cuda_on() {
        let why = "gdrcopy is there, but it is of no use without CUDA.".to_owned();
        return bare(Verdict::No, why);
    }
    let mut places: Vec<String> = Vec::new();
    let mut evidence = Evidence::default();
    for answer in ids.iter().filter_map(|id| installation.answer(id)) {
        evidence.attempts.extend(answer.check.evidence.attempts.iter().cloned());
        let attempts = answer.check.evidence.attempts.iter();
        places.extend(
            attempts.filter_map(|attempt| attempt.place.as_ref()).map(|path| format!("`{path}`")),
        );
    }
    places.dedup();
    let why = if places.is_empty() {
        "The compiler finds it by itself.".to_owned()
    } else {
        places.join(", ")
    };
    Finding { component, verdict: Verdict::Yes, why, evidence }
}

/// The versions of a toolkit's parts.
pub(super) fn versions(cuda: &Installation, found: &Found) -> Versions {
    Versions {
        cuda_h: found.headers.cuda,
        cudart_h: found.headers.cudart,
        cudart_library: cuda.library("cuda.library.cudart").and_then(|path| of_library(path)),
        nvml_h: found.headers.nvml.map(|version| version.to_string()),
        nvcc: cuda.answer("cuda.nvcc").and_then(|answer| answer.nvcc_release),
    }
}

fn toolkit(cuda: &Installation, found: &Found) -> Toolkit {
    Toolkit {
        root: cuda.layout.root.clone(),
        real_root: real_root(cuda),
        kind: cuda.kind,
        found_by: cuda.found_by.clone(),
        include_dirs: cuda.layout.include_dirs.clone(),
        library_dirs: cuda
            .layout
            .library_dirs
            .iter()
            .chain(&cuda.layout.driver_dirs)
            .cloned()
            .collect(),
        stub_dirs: cuda.layout.stub_dirs.clone(),
        versions: versions(cuda, found),
    }
}

/// Where the root's links lead, where that is another directory.
fn real_root(cuda: &Installation) -> Option<Utf8PathBuf> {
    let root = cuda.layout.root.as_ref()?;
    fs::canonical(root).ok().filter(|real| real != root)
}

fn tree(gdrcopy: &Installation, found: &Found) -> GdrCopyTree {
    GdrCopyTree {
        root: gdrcopy.layout.root.clone(),
        kind: gdrcopy.kind,
        found_by: gdrcopy.found_by.clone(),
        include_dirs: gdrcopy.layout.include_dirs.clone(),
        library_dirs: gdrcopy.layout.library_dirs.clone(),
        version: found.headers.gdrcopy,
    }
}
