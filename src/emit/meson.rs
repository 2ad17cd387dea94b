//! A native file of Meson: the compilers, the directories, and the flags as
//! external properties.

use serde::Serialize;

use super::{Emitter, parts, template};
use crate::{error::Error, model::Report};

pub(super) const EMITTER: Emitter = Emitter {
    id: "meson",
    file: None,
    name: "ucx-cuda.ini",
    doc: "The compilers and flags, as a native file of Meson.",
    render,
};

/// The properties, and the substitutions that they are made of.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("ucx_cuda_args", &["CUDA_CPPFLAGS"]),
    ("ucx_cuda_link_args", &["CUDA_LDFLAGS", "CUDA_LIBS", "CUDART_LIBS", "NVML_LIBS"]),
    ("ucx_cuda_static_link_args", &["CUDA_LDFLAGS", "CUDART_STATIC_LIBS"]),
    ("ucx_gdrcopy_args", &["GDR_COPY_CPPFLAGS"]),
    ("ucx_gdrcopy_link_args", &["GDR_COPY_LDFLAGS", "GDR_COPY_LIBS"]),
];

#[derive(Serialize)]
struct Native {
    on_stub: bool,
    compiler: Option<String>,
    nvcc: Option<String>,
    prefix: String,
    libdir: String,
    properties: Vec<(&'static str, String)>,
    conditionals: Vec<(String, bool)>,
}

/// A string of a machine file. An `@` would begin the name of a constant, a
/// `%` is a mark to the reader of the file.
fn string(text: &str) -> Result<String, Error> {
    parts::refuse(EMITTER.id, text, &['@'])?;
    Ok(format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'")))
}

fn list(words: &[String]) -> Result<String, Error> {
    let items = words.iter().map(|word| string(word)).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", items.join(", ")))
}

fn render(report: &Report) -> Result<String, Error> {
    let properties = PROPERTIES.iter().map(|(name, substitutions)| {
        let words: Vec<String> =
            substitutions.iter().flat_map(|item| parts::words(report, item)).collect();
        Ok((*name, list(&words)?))
    });
    let nvcc = parts::words(report, "NVCC");
    let conditionals = report.answers.conditionals.iter();
    let context = Native {
        on_stub: report.on_stub(),
        compiler: report.compiler.as_ref().map(|tool| list(&tool.command)).transpose()?,
        nvcc: (!nvcc.is_empty()).then(|| list(&nvcc)).transpose()?,
        prefix: string(&parts::install_dir(report, "prefix", "/usr/local"))?,
        libdir: string(&parts::libdir(report))?,
        properties: properties.collect::<Result<_, Error>>()?,
        conditionals: conditionals.map(|item| (item.name.to_lowercase(), item.value)).collect(),
    };
    template::render("meson.ini.j2", include_str!("../../templates/meson.ini.j2"), context)
}
