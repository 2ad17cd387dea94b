//! A site file for UCX's own configure: the answers that it would find, as
//! autoconf's cache variables.
//!
//! Autoconf's cache knows no directory, so answers for one toolkit would be
//! believed for another. This file knows what it was made for, and ends a
//! configure that asks for something else. It is made from the answers of
//! compat mode alone: those of strict mode are not always the original's.

use serde::Serialize;

use super::{
    Emitter, parts,
    quote::{hash_comment, one_line_or_error, shell_text, shell_word},
    template,
};
use crate::{
    error::{Code, Error},
    model::{Component, DefineValue, Mode, Report, Verdict},
};

pub(super) const EMITTER: Emitter = Emitter {
    id: "config-site",
    file: None,
    name: "ucx-cuda.site",
    doc: "The answers as autoconf's cache, for UCX's own configure (`CONFIG_SITE`).",
    render,
};

/// Cache variables of header questions, and the macro that has the answer.
const HEADERS: &[(&str, Component, &str)] = &[
    ("ac_cv_header_cuda_h", Component::CudaDriver, "HAVE_CUDA_H"),
    ("ac_cv_header_cuda_runtime_h", Component::CudaRuntime, "HAVE_CUDA_RUNTIME_H"),
    ("ac_cv_header_nvml_h", Component::Nvml, "HAVE_NVML_H"),
    ("ac_cv_header_gdrapi_h", Component::GdrCopy, "HAVE_GDRAPI_H"),
    (
        "ac_cv_lib_cuda_cuMemRetainAllocationHandle",
        Component::CudaDriver,
        "HAVE_CUMEMRETAINALLOCATIONHANDLE",
    ),
];

/// Those of declarations: the macro is 1, 0, or not there when nobody asked.
const DECLARATIONS: &[(&str, &str)] = &[
    ("ac_cv_have_decl_CU_MEM_LOCATION_TYPE_HOST", "HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST"),
    ("ac_cv_have_decl_nvmlDeviceGetGpuFabricInfo", "HAVE_DECL_NVMLDEVICEGETGPUFABRICINFO"),
    ("ac_cv_have_decl_CU_MEM_HANDLE_TYPE_FABRIC", "HAVE_DECL_CU_MEM_HANDLE_TYPE_FABRIC"),
    ("ac_cv_have_decl_gdr_copy_to_mapping", "HAVE_DECL_GDR_COPY_TO_MAPPING"),
];

/// Those of libraries, and the substitution that is empty on a "no". The
/// original asks for `gdrapi ` with a blank, which makes two underscores;
/// whoever mends that has one.
const LIBRARIES: &[(&str, Component, &str)] = &[
    ("ac_cv_lib_cuda_cuDeviceGetUuid", Component::CudaDriver, "CUDA_LIBS"),
    ("ac_cv_lib_cudart_cudaGetDeviceCount", Component::CudaRuntime, "CUDART_LIBS"),
    ("ac_cv_lib_nvidia_ml_nvmlInit", Component::Nvml, "NVML_LIBS"),
    (
        "ac_cv_lib_cudart_static_cudaGetDeviceCount",
        Component::CudaRuntimeStatic,
        "CUDART_STATIC_LIBS",
    ),
    ("ac_cv_lib_gdrapi__gdr_pin_buffer", Component::GdrCopy, "GDR_COPY_LIBS"),
    ("ac_cv_lib_gdrapi_gdr_pin_buffer", Component::GdrCopy, "GDR_COPY_LIBS"),
];

#[derive(Serialize)]
struct Site {
    on_stub: bool,
    made_for: Vec<String>,
    options: Vec<MadeFor>,
    compiler: Option<String>,
    answers: Vec<(&'static str, String)>,
}

/// An option, and the values that the answers are good for.
#[derive(Serialize)]
struct MadeFor {
    option: &'static str,
    variable: &'static str,
    unset: &'static str,
    pattern: String,
    shown: String,
}

fn made_for(
    option: &'static str,
    variable: &'static str,
    on: bool,
    root: Option<&str>,
) -> Result<MadeFor, Error> {
    let (pattern, shown) = match (on, root) {
        (true, Some(root)) => {
            one_line_or_error(option, root)?;
            let root = if root == "/" { root } else { root.trim_end_matches('/') };
            let (plain, slash) = (shell_text(root), shell_text(&format!("{root}/")));
            (format!("{plain} | {slash}"), format!("--{option}={root}"))
        }
        (true, None) => ("yes | guess".to_owned(), format!("--{option}=yes")),
        (false, _) => ("no | guess".to_owned(), format!("--{option}=no")),
    };
    Ok(MadeFor { option, variable, unset: "guess", pattern, shown: shell_text(&shown) })
}

fn render(report: &Report) -> Result<String, Error> {
    if report.mode != Mode::Compat {
        return Err(Error::new(
            Code::Usage,
            "`config-site` needs the answers of compat mode, and this report is strict",
        )
        .means("Strict answers are not always those that UCX's own configure would find.")
        .hint("Run `ucx-configure --compat=v1.19.0 --no-build ...` in a build directory first."));
    }
    if !report.ok {
        return Err(Error::new(
            Code::NeedsCuda,
            "`config-site` needs a run that succeeded, and this one did not",
        ));
    }
    let toolkit = report.toolkit.as_ref().and_then(|toolkit| toolkit.root.as_ref());
    let gdrcopy = report.gdrcopy.as_ref().and_then(|tree| tree.root.as_ref());
    let options = vec![
        made_for("with-cuda", "with_cuda", report.has_cuda(), toolkit.map(|dir| dir.as_str()))?,
        made_for(
            "with-gdrcopy",
            "with_gdrcopy",
            parts::has_gdrcopy(report),
            gdrcopy.map(|dir| dir.as_str()),
        )?,
    ];
    let compiler = report.compiler.as_ref().map(|compiler| {
        compiler.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    });
    let context = Site {
        on_stub: report.on_stub(),
        made_for: describe(report),
        options,
        compiler: compiler.map(|text| shell_text(&text)),
        answers: answers(report)?,
    };
    template::render("config.site.j2", include_str!("../../templates/config.site.j2"), context)
}

/// What the file was made for, for people.
fn describe(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(toolkit) = &report.toolkit {
        let version = toolkit.versions.cuda_h;
        let version = version.map_or_else(String::new, |version| format!(" {version}"));
        let place = toolkit.root.as_ref().map_or("where the compiler looks", |root| root.as_str());
        lines.push(format!("toolkit: CUDA{version} in {place}"));
    } else {
        lines.push("toolkit: none".to_owned());
    }
    if let Some(tree) = &report.gdrcopy {
        let place = tree.root.as_ref().map_or("where the compiler looks", |root| root.as_str());
        lines.push(format!("gdrcopy: in {place}"));
    } else {
        lines.push("gdrcopy: none".to_owned());
    }
    if let Some(compiler) = &report.compiler {
        let command = compiler.command.join(" ");
        lines.push(format!(
            "compiler: {command} ({} {}, {})",
            compiler.kind, compiler.version, compiler.target
        ));
    }
    lines.iter().map(|line| hash_comment(line)).collect()
}

fn answers(report: &Report) -> Result<Vec<(&'static str, String)>, Error> {
    let word = |yes| if yes { "yes" } else { "no" }.to_owned();
    let value = |name: &str| report.answers.define(name).map(|define| &define.value);
    let is_one = |name: &str| match value(name)? {
        DefineValue::Defined(text) => Some(text == "1"),
        DefineValue::Undefined => None,
    };
    // A question that was not put has no answer, and "no" would be one.
    let asked = |component: Component| {
        report.finding(component).is_none_or(|finding| finding.verdict != Verdict::Skipped)
    };
    let mut answers: Vec<(&'static str, String)> = HEADERS
        .iter()
        .filter(|(_, component, _)| asked(*component))
        .map(|(variable, _, name)| (*variable, word(is_one(name).unwrap_or(false))))
        .collect();
    for (variable, name) in DECLARATIONS {
        answers.extend(is_one(name).map(|yes| (*variable, word(yes))));
    }
    for (variable, _, name) in LIBRARIES.iter().filter(|(_, component, _)| asked(*component)) {
        answers.push((variable, word(!parts::words(report, name).is_empty())));
    }
    // A path alone is an answer: "no" would be searched for again.
    let nvcc = parts::words(report, "NVCC");
    if let [nvcc] = nvcc.as_slice()
        && nvcc.starts_with('/')
    {
        one_line_or_error("NVCC", nvcc)?;
        answers.push(("ac_cv_path_NVCC", shell_word(nvcc)));
    }
    Ok(answers)
}
