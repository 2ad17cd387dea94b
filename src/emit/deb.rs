//! Debian packages: stanzas for debian/control, install files, and values of
//! substitution variables.
//!
//! UCX v1.19.0's debian directory has traps; what is done about each stands in
//! the template beside the line that does it.

use serde::Serialize;

use super::{Emitter, installed, parts, template};
use crate::{
    error::Error,
    model::{Package, Report},
};

pub(super) const CONTROL: Emitter = Emitter {
    id: "deb:control",
    file: None,
    name: "ucx-cuda.control",
    doc: "The packages ucx-cuda and ucx-gdrcopy, as stanzas for debian/control.",
    render: control,
};

pub(super) const CUDA: Emitter = Emitter {
    id: "deb:ucx-cuda",
    file: None,
    name: "ucx-cuda.install",
    doc: "The files of the package ucx-cuda, for debian/ucx-cuda.install.",
    render: cuda,
};

pub(super) const GDRCOPY: Emitter = Emitter {
    id: "deb:ucx-gdrcopy",
    file: None,
    name: "ucx-gdrcopy.install",
    doc: "The files of the package ucx-gdrcopy, for debian/ucx-gdrcopy.install.",
    render: gdrcopy,
};

pub(super) const SUBSTVARS: Emitter = Emitter {
    id: "deb:substvars",
    file: None,
    name: "ucx-cuda.substvars",
    doc: "Values for the variables in the stanzas, for `dpkg-gencontrol -T`.",
    render: substvars,
};

#[derive(Serialize)]
struct Control {
    on_stub: bool,
    gdrcopy: bool,
}

fn control(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CONTROL.id)?;
    let context = Control { on_stub: report.on_stub(), gdrcopy: parts::has_gdrcopy(report) };
    template::render("deb-control.j2", include_str!("../../templates/deb-control.j2"), context)
}

#[derive(Serialize)]
struct Install {
    package: &'static str,
    files: Vec<String>,
}

/// The directories are the configured ones: on Debian that is usually a
/// multiarch directory, and not the lib of UCX's own install files.
fn install(report: &Report, package: Package) -> Result<String, Error> {
    let line = |(dir, name): (&str, String)| {
        let dir = report.install.expanded(dir);
        parts::refuse("deb", &dir, &[' ', '*', '?', '[', '#', '$'])?;
        Ok(format!("{}/{name}", dir.trim_matches('/')))
    };
    let files = installed::patterns(report, package).into_iter().map(line);
    let package = package.name();
    let context = Install { package, files: files.collect::<Result<_, Error>>()? };
    template::render("deb-install.j2", include_str!("../../templates/deb-install.j2"), context)
}

fn cuda(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CUDA.id)?;
    install(report, Package::UcxCuda)
}

fn gdrcopy(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, GDRCOPY.id)?;
    parts::needs_gdrcopy(report, GDRCOPY.id)?;
    install(report, Package::UcxGdrcopy)
}

#[derive(Serialize)]
struct Substvars {
    cuda: String,
}

fn substvars(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, SUBSTVARS.id)?;
    let version = report.toolkit.as_ref().and_then(|toolkit| toolkit.versions.cuda_h);
    let cuda = version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
    let source = include_str!("../../templates/deb-substvars.j2");
    template::render("deb-substvars.j2", source, Substvars { cuda })
}
