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
    model::{Mode, Report, SubstValue, Verdict},
};

pub(super) const EMITTER: Emitter = Emitter {
    id: "config-site",
    file: None,
    name: "ucx-cuda.site",
    doc: "The answers as autoconf's cache, for UCX's own configure (`CONFIG_SITE`).",
    render,
};

/// The questions that autoconf keeps answers of, by the names of their checks,
/// and the names of its variables. The original asks for `gdrapi ` with a
/// blank, which makes two underscores; whoever mends that has one.
const CACHED: &[(&str, &[&str])] = &[
    ("cuda.header.cuda_h", &["ac_cv_header_cuda_h"]),
    ("cuda.header.cuda_runtime_h", &["ac_cv_header_cuda_runtime_h"]),
    ("cuda.library.cuda", &["ac_cv_lib_cuda_cuDeviceGetUuid"]),
    ("cuda.library.cudart", &["ac_cv_lib_cudart_cudaGetDeviceCount"]),
    ("cuda.symbol.mem_retain_allocation_handle", &["ac_cv_lib_cuda_cuMemRetainAllocationHandle"]),
    ("cuda.declaration.location_type_host", &["ac_cv_have_decl_CU_MEM_LOCATION_TYPE_HOST"]),
    ("nvml.header.nvml_h", &["ac_cv_header_nvml_h"]),
    ("nvml.library.nvidia_ml", &["ac_cv_lib_nvidia_ml_nvmlInit"]),
    ("nvml.declaration.gpu_fabric_info", &["ac_cv_have_decl_nvmlDeviceGetGpuFabricInfo"]),
    ("cuda.library.cudart_static", &["ac_cv_lib_cudart_static_cudaGetDeviceCount"]),
    ("cuda.declaration.handle_type_fabric", &["ac_cv_have_decl_CU_MEM_HANDLE_TYPE_FABRIC"]),
    ("gdrcopy.header.gdrapi_h", &["ac_cv_header_gdrapi_h"]),
    (
        "gdrcopy.library.gdrapi",
        &["ac_cv_lib_gdrapi__gdr_pin_buffer", "ac_cv_lib_gdrapi_gdr_pin_buffer"],
    ),
    ("gdrcopy.declaration.copy_to_mapping", &["ac_cv_have_decl_gdr_copy_to_mapping"]),
];

/// The user's flags, which decide as well: the answers are good for these and
/// no others.
const FLAGS: [&str; 3] = ["CPPFLAGS", "CFLAGS", "LDFLAGS"];

#[derive(Serialize)]
struct Site {
    on_stub: bool,
    made_for: Vec<String>,
    options: Vec<MadeFor>,
    compiler: Option<String>,
    variables: Vec<(&'static str, String)>,
    nvcc: Option<String>,
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
    let variables = FLAGS.iter().map(|name| {
        let value = text(report, name);
        one_line_or_error(name, &value)?;
        Ok((*name, shell_text(&value)))
    });
    let nvcc = nvcc(report)?;
    let context = Site {
        on_stub: report.on_stub(),
        made_for: describe(report),
        options,
        compiler: compiler.map(|text| shell_text(&text)),
        variables: variables.collect::<Result<_, Error>>()?,
        answers: answers(report, nvcc.as_deref()),
        nvcc,
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

/// What the questions came to. One that was not put has no answer: "no" would
/// be one.
fn answers(report: &Report, nvcc: Option<&str>) -> Vec<(&'static str, String)> {
    let mut answers = Vec::new();
    for (id, variables) in CACHED {
        let check = report.checks.iter().find(|check| check.id == *id);
        let word = match check.map(|check| check.verdict) {
            Some(Verdict::Yes) => "yes",
            Some(Verdict::No) => "no",
            Some(Verdict::Broken | Verdict::Skipped) | None => continue,
        };
        answers.extend(variables.iter().map(|variable| (*variable, word.to_owned())));
    }
    answers.extend(nvcc.map(|nvcc| ("ac_cv_path_NVCC", nvcc.to_owned())));
    answers
}

/// nvcc's path, quoted. A path alone is an answer: "no" would be searched for
/// again.
fn nvcc(report: &Report) -> Result<Option<String>, Error> {
    let nvcc = text(report, "NVCC");
    if !nvcc.starts_with('/') {
        return Ok(None);
    }
    one_line_or_error("NVCC", &nvcc)?;
    Ok(Some(shell_word(&nvcc)))
}

/// A substitution as compat mode has it: a text.
fn text(report: &Report, name: &str) -> String {
    match report.answers.substitution(name).map(|substitution| &substitution.value) {
        Some(SubstValue::Text(text)) => text.clone(),
        _ => parts::words(report, name).join(" "),
    }
}
