//! RPM: a fragment for a spec file, and the lists of files of each package.
//!
//! UCX v1.19.0's spec file has traps; what is done about each stands in the
//! template beside the line that does it.

use serde::Serialize;

use super::{Emitter, parts, template};
use crate::{error::Error, model::Report};

pub(super) const SPEC: Emitter = Emitter {
    id: "rpm:spec",
    file: None,
    name: "ucx-cuda.spec.inc",
    doc: "The packages ucx-cuda and ucx-gdrcopy, as a fragment to `%include` in a spec file.",
    render: spec,
};

pub(super) const CUDA: Emitter = Emitter {
    id: "rpm:ucx-cuda",
    file: None,
    name: "ucx-cuda.files",
    doc: "The files of the package ucx-cuda, for `%files -f`.",
    render: cuda,
};

pub(super) const GDRCOPY: Emitter = Emitter {
    id: "rpm:ucx-gdrcopy",
    file: None,
    name: "ucx-gdrcopy.files",
    doc: "The files of the package ucx-gdrcopy, for `%files -f`.",
    render: gdrcopy,
};

#[derive(Serialize)]
struct Spec {
    on_stub: bool,
    gdrcopy: bool,
    cuda_files: Vec<String>,
    gdrcopy_files: Vec<String>,
}

/// The runtime files of a package's modules. Links without a version, archives
/// and libtool's files are for developers, and nobody links with a module.
fn files(report: &Report, package: &str) -> Vec<String> {
    let modules = parts::modules(report, package);
    modules.iter().map(|module| format!("%{{_libdir}}/ucx/{}.so.*", module.library())).collect()
}

fn spec(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, SPEC.id)?;
    let context = Spec {
        on_stub: report.on_stub(),
        gdrcopy: parts::has_gdrcopy(report),
        cuda_files: files(report, parts::CUDA_PACKAGE),
        gdrcopy_files: files(report, parts::GDRCOPY_PACKAGE),
    };
    template::render("ucx-cuda.spec.j2", include_str!("../../templates/ucx-cuda.spec.j2"), context)
}

#[derive(Serialize)]
struct Files {
    package: &'static str,
    on_stub: bool,
    files: Vec<String>,
}

fn list(report: &Report, package: &'static str) -> Result<String, Error> {
    let context = Files { package, on_stub: report.on_stub(), files: files(report, package) };
    template::render("rpm-files.j2", include_str!("../../templates/rpm-files.j2"), context)
}

fn cuda(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CUDA.id)?;
    list(report, parts::CUDA_PACKAGE)
}

fn gdrcopy(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, GDRCOPY.id)?;
    parts::needs_gdrcopy(report, GDRCOPY.id)?;
    list(report, parts::GDRCOPY_PACKAGE)
}
