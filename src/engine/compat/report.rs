//! The report that follows from a run in compat mode.

use camino::Utf8PathBuf;

use super::shell::Shell;
use crate::{
    engine::{
        Outcome,
        answers::{DEFINES, SUBSTITUTIONS},
    },
    error::Error,
    model::{
        Answers, Component, Conditional, Define, DefineValue, DriverFloor, Evidence, FEATURES,
        Feature, FeatureAnswer, FeatureId, Finding, GdrCopyTree, Install, Mode, Module, Report,
        SCHEMA_VERSION, SubstValue, Substitution, Tool, Toolkit, Verdict, Versions,
    },
    request::Request,
};

/// The report of a run that never got a compiler.
pub(super) fn without_compiler(request: &Request, error: Error) -> Outcome {
    let components = Component::ALL.into_iter().map(|component| Finding {
        component,
        verdict: Verdict::Broken,
        why: error.what.clone(),
        evidence: Evidence::default(),
    });
    let report = Report {
        components: components.collect(),
        features: FEATURES
            .iter()
            .map(|row| FeatureAnswer { id: row.id, verdict: Verdict::Broken, by_version: None })
            .collect(),
        cfg: FEATURES.iter().map(|row| (row.cfg.to_owned(), false)).collect(),
        ..empty(request)
    };
    Outcome { report, error: Some(error) }
}

/// The report of a run, complete or as far as it came.
pub(super) fn assemble(shell: &mut Shell<'_>, error: Option<Error>) -> Outcome {
    let features: Vec<FeatureAnswer> = FEATURES.iter().map(|row| feature(shell, row)).collect();
    let cfg = FEATURES
        .iter()
        .zip(&features)
        .map(|(row, answer)| (row.cfg.to_owned(), answer.verdict.is_yes()))
        .collect();
    let components = Component::ALL.into_iter().map(|component| finding(shell, component));
    let report = Report {
        ok: error.is_none(),
        compiler: Some(shell.compiler.identity.clone()),
        toolkit: toolkit(shell),
        gdrcopy: gdrcopy(shell),
        driver_floor: shell.cuda.happy.then(|| floor(&features)),
        components: components.collect(),
        features,
        cfg,
        modules: if error.is_none() { modules(shell) } else { Vec::new() },
        answers: answers(shell, error.is_some()),
        checks: std::mem::take(&mut shell.checks),
        messages: std::mem::take(&mut shell.messages),
        ..empty(shell.request)
    };
    Outcome { report, error }
}

/// The oldest driver for what is on.
fn floor(features: &[FeatureAnswer]) -> DriverFloor {
    DriverFloor::of(|id| features.iter().any(|answer| answer.id == id && answer.verdict.is_yes()))
}

/// What is known before anything was asked.
fn empty(request: &Request) -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        mode: Mode::Compat,
        command_line: request.command_line.clone(),
        ok: false,
        install: Install { dirs: request.install_dirs.clone() },
        host: request.host.clone(),
        compiler: None,
        nvcc: None,
        toolkit: None,
        gdrcopy: None,
        libraries: Vec::new(),
        driver_floor: None,
        components: Vec::new(),
        features: Vec::new(),
        cfg: std::collections::BTreeMap::new(),
        modules: Vec::new(),
        iodemo_cuda: request.iodemo_cuda,
        answers: Answers::default(),
        checks: Vec::new(),
        messages: Vec::new(),
        differences: Vec::new(),
        environment: Vec::new(),
    }
}

/// Macros, substitutions and conditionals. A run that failed writes no
/// config.h; its substitutions are those that it had come to.
fn answers(shell: &Shell<'_>, failed: bool) -> Answers {
    let define = |&(name, comment): &(&str, &str)| Define {
        name: name.to_owned(),
        value: shell
            .defines
            .get(name)
            .map_or(DefineValue::Undefined, |value| DefineValue::Defined(value.clone())),
        comment: comment.to_owned(),
    };
    let substitution = |&(name, comment): &(&str, &str)| Substitution {
        name: name.to_owned(),
        value: SubstValue::Text(shell.substitution(name)),
        comment: comment.to_owned(),
    };
    Answers {
        defines: if failed { Vec::new() } else { DEFINES.iter().map(define).collect() },
        substitutions: SUBSTITUTIONS.iter().map(substitution).collect(),
        conditionals: conditionals(shell),
    }
}

/// A conditional has a value once its macro has come to its end.
fn conditionals(shell: &Shell<'_>) -> Vec<Conditional> {
    let conditional = |name: &str, value| Conditional { name: name.to_owned(), value };
    let mut conditionals = Vec::new();
    if shell.cuda.decided {
        conditionals.extend([
            conditional("HAVE_CUDA", shell.cuda.happy),
            conditional("HAVE_CUDA_STATIC", shell.cuda.static_runtime),
            // Never set without CUDA, and then not "no".
            conditional("HAVE_NVCC", shell.cuda.nvcc_happy != Some(false)),
        ]);
    }
    if shell.gdrcopy.decided {
        conditionals.push(conditional("HAVE_GDR_COPY", shell.gdrcopy.happy));
    }
    conditionals
}

fn modules(shell: &Shell<'_>) -> Vec<Module> {
    Module::ALL
        .into_iter()
        .filter(|module| {
            shell.cuda.happy && (*module != Module::UctCudaGdrcopy || shell.gdrcopy.happy)
        })
        .collect()
}

/// What became of a component, from the questions about it.
fn finding(shell: &Shell<'_>, component: Component) -> Finding {
    let evidence = shell.evidence(component);
    let asked = shell.checks.iter().any(|check| check.component == Some(component));
    let yes = match component {
        Component::CudaDriver => !shell.get("CUDA_LIBS").is_empty(),
        Component::CudaRuntime => !shell.get("CUDART_LIBS").is_empty(),
        Component::Nvml => !shell.get("NVML_LIBS").is_empty(),
        Component::Nvcc => shell.cuda.nvcc_happy == Some(true),
        Component::CudaRuntimeStatic => shell.cuda.static_runtime,
        Component::GdrCopy => shell.gdrcopy.happy,
    };
    let first_no = shell
        .checks
        .iter()
        .find(|check| check.component == Some(component) && !check.verdict.is_yes());
    let (verdict, why) = match (asked, yes) {
        (false, _) => (Verdict::Skipped, "not asked for".to_owned()),
        (true, true) => (Verdict::Yes, found_by(shell, component)),
        (true, false) => (
            Verdict::No,
            first_no.map_or_else(
                || "an earlier answer settled it".to_owned(),
                |check| format!("checking {}... {}", check.label, check.verdict.word()),
            ),
        ),
    };
    Finding { component, verdict, why, evidence }
}

/// How a component was found.
fn found_by(shell: &Shell<'_>, component: Component) -> String {
    let by = match component {
        Component::Nvcc => return format!("`{}`", shell.get("NVCC")),
        Component::GdrCopy => &shell.gdrcopy.place.dir,
        _ => &shell.cuda.place.dir,
    };
    match by {
        Some(dir) => format!("by the flags for `{dir}`, or those of the user and the compiler"),
        None => "by the flags of the user and the compiler".to_owned(),
    }
}

/// The answer about one feature: as the original's configure asked, or as its
/// sources compare versions.
fn feature(shell: &Shell<'_>, row: &Feature) -> FeatureAnswer {
    let by_version = row.since.filter(|_| shell.cuda.happy).map(|since| {
        let version = match row.id {
            FeatureId::Cudart11_2 => shell.levels.cudart,
            _ => shell.levels.cuda,
        };
        version.is_some_and(|version| version >= since)
    });
    let defined = |name: &str| shell.defines.get(name).is_some_and(|value| value == "1");
    let yes = match row.id {
        FeatureId::CuMemRetainAllocationHandle => defined("HAVE_CUMEMRETAINALLOCATIONHANDLE"),
        FeatureId::CuMemLocationTypeHost => defined("HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST"),
        FeatureId::CudaFabric => defined("HAVE_CUDA_FABRIC"),
        FeatureId::NvmlFabricInfo => defined("HAVE_NVML_FABRIC_INFO"),
        FeatureId::GdrCopy => shell.gdrcopy.happy,
        FeatureId::GdrCopyToMapping => defined("HAVE_DECL_GDR_COPY_TO_MAPPING"),
        FeatureId::BistroHooks => defined("UCM_BISTRO_HOOKS"),
        // v1.19.0 asks for neither.
        FeatureId::GdrPinBufferV2 | FeatureId::PidfdGetfd => {
            return FeatureAnswer { id: row.id, verdict: Verdict::Skipped, by_version: None };
        }
        _ => by_version == Some(true),
    };
    let verdict = if yes { Verdict::Yes } else { Verdict::No };
    FeatureAnswer { id: row.id, verdict, by_version }
}

fn toolkit(shell: &Shell<'_>) -> Option<Toolkit> {
    shell.cuda.happy.then(|| {
        let root = shell.cuda.place.root();
        let libraries = directories(shell.get("CUDA_LDFLAGS"), "-L");
        let (stub_dirs, library_dirs) =
            libraries.into_iter().partition(|dir| dir.file_name() == Some("stubs"));
        Toolkit {
            found_by: if root.is_some() { "--with-cuda" } else { "the compiler" }.to_owned(),
            root,
            real_root: None,
            kind: shell.cuda.place.kind,
            include_dirs: directories(shell.get("CUDA_CPPFLAGS"), "-I"),
            library_dirs,
            stub_dirs,
            versions: Versions {
                cuda_h: shell.levels.cuda,
                cudart_h: shell.levels.cudart,
                ..Versions::default()
            },
        }
    })
}

fn gdrcopy(shell: &Shell<'_>) -> Option<GdrCopyTree> {
    shell.gdrcopy.happy.then(|| {
        let root = shell.gdrcopy.place.root();
        GdrCopyTree {
            found_by: if root.is_some() { "--with-gdrcopy" } else { "the compiler" }.to_owned(),
            include_dirs: root.iter().map(|dir| dir.join("include")).collect(),
            root,
            kind: shell.gdrcopy.place.kind,
            library_dirs: directories(shell.get("GDR_COPY_LDFLAGS"), "-L"),
            version: None,
        }
    })
}

/// The directories that flags name.
fn directories(flags: &str, option: &str) -> Vec<Utf8PathBuf> {
    super::shell::words(flags)
        .iter()
        .filter_map(|word| word.strip_prefix(option).map(Utf8PathBuf::from))
        .collect()
}
