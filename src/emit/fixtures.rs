//! Reports for tests: one as a good run ends, and what else can happen.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::model::{
    Answers, Attempt, Check, Component, Conditional, CudaVersion, Define, DefineValue, DriverFloor,
    Evidence, FEATURES, Family, FeatureAnswer, Finding, GdrCopyTree, GdrVersion, Install,
    LibraryClass, LibraryFile, Mode, Module, Outcome, Report, SCHEMA_VERSION, SubstValue,
    Substitution, Tool, ToolIdentity, Toolkit, ToolkitKind, Verdict, Versions,
};

/// A macro.
pub(crate) fn define(name: &str, value: Option<&str>, comment: &str) -> Define {
    let value =
        value.map_or(DefineValue::Undefined, |value| DefineValue::Defined(value.to_owned()));
    Define { name: name.to_owned(), value, comment: comment.to_owned() }
}

/// A substitution made of words.
pub(crate) fn words(name: &str, words: &[&str], comment: &str) -> Substitution {
    let words = words.iter().map(|&word| word.to_owned()).collect();
    Substitution {
        name: name.to_owned(),
        value: SubstValue::Words(words),
        comment: comment.to_owned(),
    }
}

/// A substitution that is a text.
pub(crate) fn text(name: &str, text: &str) -> Substitution {
    Substitution {
        name: name.to_owned(),
        value: SubstValue::Text(text.to_owned()),
        comment: "As it is.".to_owned(),
    }
}

/// A question with its answer.
pub(crate) fn check(id: &str, label: &str, verdict: Verdict, detail: Option<&str>) -> Check {
    Check {
        id: id.to_owned(),
        label: label.to_owned(),
        family: Family::Configure,
        component: None,
        verdict,
        detail: detail.map(str::to_owned),
        detail_is_answer: false,
        evidence: Evidence::default(),
        preset: None,
        cached: false,
    }
}

/// The evidence of a link that failed.
pub(crate) fn failed_link() -> Evidence {
    let attempt = Attempt {
        what: "link a call of `cudaGetDeviceCount`".to_owned(),
        place: Some(Utf8PathBuf::from("/opt/cuda/lib64/libcudart_static.a")),
        command: Some("LC_ALL=C cc probe.c -lcudart_static".to_owned()),
        said: Some("/usr/bin/ld: cannot find -lcudart_static".to_owned()),
        outcome: Outcome::Absent,
        meaning: Some("No directory that was searched has the library.".to_owned()),
    };
    let hint = Some("Install the package that holds libcudart_static.a.".to_owned());
    Evidence { attempts: vec![attempt], hint }
}

fn answers() -> Answers {
    Answers {
        defines: vec![
            define("HAVE_CUDA", Some("1"), "Define to 1 if CUDA support is built."),
            define("HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST", Some("1"), "Whether it is declared."),
            define("HAVE_CUDA_FABRIC", None, "Define to 1 if fabric handles are there."),
            define("ucm_MODULES", Some("\":cuda\""), "The modules of UCM, each after a colon."),
        ],
        substitutions: vec![
            words("CUDA_CPPFLAGS", &["-I/opt/cuda/include"], "Preprocessor flags for CUDA."),
            words(
                "CUDA_LDFLAGS",
                &["-L/opt/cuda/lib64", "-L/opt/cuda/lib64/stubs"],
                "Linker flags for CUDA.",
            ),
            words("CUDA_LIBS", &["-lcuda"], "The driver API's library."),
            words("CUDART_STATIC_LIBS", &[], "The static runtime's libraries."),
            words("NVCC", &["/opt/cuda/bin/nvcc"], "The CUDA compiler."),
        ],
        conditionals: [("HAVE_CUDA", true), ("HAVE_CUDA_STATIC", false), ("HAVE_NVCC", true)]
            .map(|(name, value)| Conditional { name: name.to_owned(), value })
            .into(),
    }
}

fn checks() -> Vec<Check> {
    let mut checks = vec![
        check(
            "cuda.header.cuda_h",
            "for cuda.h",
            Verdict::Yes,
            Some("/opt/cuda/include, CUDA 12.8"),
        ),
        check(
            "cuda.lib.cudart_static",
            "for cudaGetDeviceCount in -lcudart_static",
            Verdict::No,
            None,
        ),
        check("cuda.nvcc", "for nvcc", Verdict::Yes, Some("/opt/cuda/bin/nvcc")),
    ];
    checks[0].component = Some(Component::CudaDriver);
    checks[1].component = Some(Component::CudaRuntimeStatic);
    checks[1].evidence = failed_link();
    checks[2].component = Some(Component::Nvcc);
    checks[2].detail_is_answer = true;
    checks
}

fn finding(component: Component) -> Finding {
    let (verdict, why, evidence) = match component {
        Component::CudaDriver => (Verdict::Yes, "/opt/cuda, real library", Evidence::default()),
        Component::CudaRuntimeStatic => {
            (Verdict::No, "libcudart_static.a is absent", failed_link())
        }
        Component::Nvcc => (Verdict::Yes, "/opt/cuda/bin/nvcc", Evidence::default()),
        Component::GdrCopy => (Verdict::Yes, "/opt/gdrcopy", Evidence::default()),
        _ => (Verdict::Yes, "/opt/cuda", Evidence::default()),
    };
    Finding { component, verdict, why: why.to_owned(), evidence }
}

fn toolkit() -> Toolkit {
    Toolkit {
        root: Some(Utf8PathBuf::from("/opt/cuda")),
        real_root: None,
        kind: ToolkitKind::Installed,
        found_by: "--with-cuda".to_owned(),
        include_dirs: vec![Utf8PathBuf::from("/opt/cuda/include")],
        library_dirs: vec![Utf8PathBuf::from("/opt/cuda/lib64")],
        stub_dirs: vec![Utf8PathBuf::from("/opt/cuda/lib64/stubs")],
        versions: Versions {
            cuda_h: Some(CudaVersion::new(12, 8)),
            cudart_h: Some(CudaVersion::new(12, 8)),
            cudart_library: Some("12.8.90".to_owned()),
            nvml_h: Some("12 (CUDA 12.8)".to_owned()),
            nvcc: Some(CudaVersion::new(12, 8)),
        },
    }
}

/// A stub that was linked with, and a runtime.
fn libraries() -> Vec<LibraryFile> {
    let file = |name: &str, path: &str, class| LibraryFile {
        name: name.to_owned(),
        path: path.into(),
        real_path: None,
        class,
        linked: true,
        versioned_only: false,
        machine: Some("x86_64".to_owned()),
        soname: Some(format!("lib{name}.so.1")),
        symbols: Some(3),
        glibc: None,
    };
    let mut runtime = file("cudart", "/opt/cuda/lib64/libcudart.so", LibraryClass::Runtime);
    runtime.real_path = Some("/opt/cuda/lib64/libcudart.so.12.8.90".into());
    runtime.soname = Some("libcudart.so.12".to_owned());
    runtime.glibc = Some("2.17".to_owned());
    vec![
        file("cuda", "/opt/cuda/lib64/stubs/libcuda.so", LibraryClass::Stub),
        runtime,
        file("nvidia-ml", "/opt/cuda/lib64/stubs/libnvidia-ml.so", LibraryClass::Stub),
    ]
}

fn identity(command: &[&str], kind: &str, version: &str) -> ToolIdentity {
    ToolIdentity {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        kind: kind.to_owned(),
        version: version.to_owned(),
        target: "x86_64-linux-gnu".to_owned(),
    }
}

fn install() -> Install {
    let dirs = [("prefix", "/opt/ucx"), ("exec_prefix", "${prefix}"), ("libdir", "/opt/ucx/lib")];
    let dirs = dirs.map(|(name, dir)| (name.to_owned(), dir.to_owned()));
    Install { dirs: BTreeMap::from(dirs) }
}

/// CUDA 12.8 with nvcc and gdrcopy 2.5, without the static runtime; strict.
pub(crate) fn report() -> Report {
    let since_13 = |feature: &crate::model::Feature| {
        feature.since.is_some_and(|since| since > CudaVersion::new(12, 8))
    };
    Report {
        schema_version: SCHEMA_VERSION,
        tool: Tool { name: "ucx-configure".to_owned(), version: "0.1.0".to_owned() },
        mode: Mode::Strict,
        command_line: vec!["--with-cuda=/opt/cuda".to_owned(), "--with-gdrcopy".to_owned()],
        ok: true,
        install: install(),
        host: None,
        compiler: Some(identity(&["ccache", "gcc"], "gcc", "12.2.0")),
        nvcc: Some(identity(&["/opt/cuda/bin/nvcc"], "nvcc", "12.8.93")),
        toolkit: Some(toolkit()),
        gdrcopy: Some(GdrCopyTree {
            root: Some(Utf8PathBuf::from("/opt/gdrcopy")),
            kind: ToolkitKind::Installed,
            found_by: "--with-gdrcopy".to_owned(),
            include_dirs: vec![Utf8PathBuf::from("/opt/gdrcopy/include")],
            library_dirs: vec![Utf8PathBuf::from("/opt/gdrcopy/lib")],
            version: Some(GdrVersion::new(2, 5)),
        }),
        libraries: libraries(),
        driver_floor: Some(DriverFloor::of(|_| true)),
        components: Component::ALL.map(finding).into(),
        features: FEATURES
            .iter()
            .map(|feature| FeatureAnswer {
                id: feature.id,
                verdict: if since_13(feature) { Verdict::No } else { Verdict::Yes },
                by_version: feature.since.map(|_| !since_13(feature)),
            })
            .collect(),
        cfg: FEATURES.iter().map(|feature| (feature.cfg.to_owned(), !since_13(feature))).collect(),
        modules: Module::ALL.into(),
        iodemo_cuda: false,
        answers: answers(),
        checks: checks(),
        messages: Vec::new(),
        differences: Vec::new(),
        environment: Vec::new(),
    }
}

/// The same on our stub toolkit.
pub(crate) fn on_stub() -> Report {
    let mut report = report();
    if let Some(toolkit) = &mut report.toolkit {
        toolkit.kind = ToolkitKind::Stub;
    }
    report
}

/// The same as the original configure would have it: texts with blanks.
pub(crate) fn compat() -> Report {
    let mut report = report();
    report.mode = Mode::Compat;
    for (id, verdict) in [
        ("cuda.header.cuda_runtime_h", Verdict::Yes),
        ("cuda.library.cuda", Verdict::Yes),
        ("cuda.declaration.handle_type_fabric", Verdict::No),
        ("cuda.library.cudart_static", Verdict::No),
        ("gdrcopy.library.gdrapi", Verdict::Yes),
        ("gdrcopy.declaration.copy_to_mapping", Verdict::Skipped),
    ] {
        report.checks.push(check(id, id, verdict, None));
    }
    report.answers.substitutions = vec![
        text("CUDA_CPPFLAGS", "-I/opt/cuda/include"),
        text("CUDA_LIBS", " -lcuda"),
        text("CUDART_STATIC_LIBS", ""),
        text("GDR_COPY_CPPFLAGS", "-I/opt/gdrcopy/include/ "),
    ];
    report
}
