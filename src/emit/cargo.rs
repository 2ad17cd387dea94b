//! Lines for a build script of Cargo: the cfg flags, the declaration of each,
//! set or not, and what is linked.

use super::{Emitter, parts, quote::one_line_or_error};
use crate::{error::Error, model::Report};

pub(super) const EMITTER: Emitter = Emitter {
    id: "cargo",
    file: None,
    name: "ucx-cuda.cargo",
    doc: "The cfg flags and the libraries, as a build script of Cargo prints them.",
    render,
};

// No template: each line is made of a name and nothing else.
fn render(report: &Report) -> Result<String, Error> {
    let mut lines = Vec::new();
    for (name, on) in &report.cfg {
        lines.push(format!("cargo::rustc-check-cfg=cfg({name})\n"));
        if *on {
            lines.push(format!("cargo::rustc-cfg={name}\n"));
        }
    }
    // A directory to search gets into no run path, so stubs may be named.
    for name in ["CUDA_LDFLAGS", "GDR_COPY_LDFLAGS"] {
        for dir in parts::after_flag(&parts::words(report, name), "-L") {
            one_line_or_error(name, dir.as_str())?;
            lines.push(format!("cargo::rustc-link-search=native={dir}\n"));
        }
    }
    for name in ["CUDA_LIBS", "CUDART_LIBS", "NVML_LIBS", "GDR_COPY_LIBS"] {
        for library in parts::after_flag(&parts::words(report, name), "-l") {
            one_line_or_error(name, library.as_str())?;
            // `-l:FILE` is a file by that name.
            lines.push(match library.as_str().strip_prefix(':') {
                Some(file) => format!("cargo::rustc-link-lib=dylib:+verbatim={file}\n"),
                None => format!("cargo::rustc-link-lib=dylib={library}\n"),
            });
        }
    }
    Ok(lines.concat())
}
