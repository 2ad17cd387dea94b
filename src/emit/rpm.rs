//! RPM: a fragment for a spec file, and the lists of files of each package.
//!
//! UCX v1.19.0's spec file has traps; what is done about each stands in the
//! template beside the line that does it.

use serde::Serialize;

use super::{Emitter, installed, parts, template};
use crate::{
    error::Error,
    model::{Package, Report},
};

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

/// The files of a package, and what is installed beside them and left out.
fn files(report: &Report, package: Package) -> Vec<String> {
    let files = installed::patterns(report, package).into_iter();
    let mut lines: Vec<String> = files.map(|(dir, name)| format!("%{{_{dir}}}/{name}")).collect();
    if package == Package::UcxCuda {
        // Nobody else owns these; the other package requires this one.
        lines.push(format!("%dir %{{_libdir}}/{}", installed::MODULES));
        lines.push("%dir %{_libdir}/cmake/ucx-cuda".to_owned());
    }
    // rpmbuild refuses files that are installed and in no package.
    for module in parts::modules(report, package) {
        lines.push(format!("%exclude %{{_libdir}}/{}/{}.so", installed::MODULES, module.library()));
    }
    lines.push(format!("%exclude %{{_libdir}}/{}", installed::manifest(package)));
    lines
}

fn spec(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, SPEC.id)?;
    let context = Spec {
        on_stub: report.on_stub(),
        gdrcopy: parts::has_gdrcopy(report),
        cuda_files: files(report, Package::UcxCuda),
        gdrcopy_files: files(report, Package::UcxGdrcopy),
    };
    template::render("ucx-cuda.spec.j2", include_str!("../../templates/ucx-cuda.spec.j2"), context)
}

#[derive(Serialize)]
struct Files {
    package: &'static str,
    on_stub: bool,
    files: Vec<String>,
}

fn list(report: &Report, package: Package) -> Result<String, Error> {
    let context =
        Files { package: package.name(), on_stub: report.on_stub(), files: files(report, package) };
    template::render("rpm-files.j2", include_str!("../../templates/rpm-files.j2"), context)
}

fn cuda(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CUDA.id)?;
    list(report, Package::UcxCuda)
}

fn gdrcopy(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, GDRCOPY.id)?;
    parts::needs_gdrcopy(report, GDRCOPY.id)?;
    list(report, Package::UcxGdrcopy)
}
