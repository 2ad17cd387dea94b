//! Toolkits without an installation: the embedded stub toolkit and mock
//! driver, and NVIDIA's wheels.
//!
//! Both end in a directory of the shape of /usr/local/cuda, which the rest
//! treats like any other.

mod assemble;
pub mod embedded;
pub mod exports;
pub(crate) mod library;
pub(crate) mod manifest;
pub mod mock;
mod pip;
pub(crate) mod place;
pub mod stub;
pub mod wheel;
pub mod wheel_table;

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};

pub use place::STAMP;

use crate::{error::Error, host::Host, model::CudaVersion, probe::Compiler, ui::Sink};

/// What `ucx-configure toolkit list` prints: each version, what there is of
/// it, and where a fetched one is.
pub fn list(host: &Host) -> String {
    let cache = wheel::cache_dir(host).ok();
    let mut text = String::from("VERSION  OPTION                  NVCC  PLACE\n");
    for version in stub::versions() {
        let option = format!("--with-cuda=stub:{version}");
        let _ = writeln!(text, "{version:<8} {option:<23} no    embedded");
    }
    for release in wheel_table::RELEASES {
        let version = release.version.to_string();
        let option = format!("--with-cuda=wheel:{version}");
        let nvcc = if release.has_nvcc() { "yes" } else { "no" };
        let place = cache.as_deref().and_then(|cache| {
            [true, false].into_iter().find_map(|with_nvcc| {
                let tree = cache.join(wheel::tree_name(release, with_nvcc));
                wheel::is_there(release, with_nvcc, &tree).then(|| tree.into_string())
            })
        });
        let place = place.unwrap_or_else(|| {
            let size: u64 = release.wheels.iter().map(|wheel| wheel.size).sum();
            format!("not fetched ({} MB)", size.div_ceil(1_000_000))
        });
        let _ = writeln!(text, "{version:<8} {option:<23} {nvcc:<5} {place}");
    }
    for version in stub::gdrcopy_versions() {
        let option = format!("--with-gdrcopy=stub:{version}");
        let _ = writeln!(text, "{version:<8} {option:<23} -     embedded");
    }
    text
}

/// What `ucx-configure toolkit fetch` does: fetches a version's wheels into
/// the cache, or into a directory of the user's choice, and returns the
/// toolkit's root.
///
/// # Errors
///
/// As with [`wheel::materialise_at`].
pub fn fetch(
    version: CudaVersion,
    into: Option<&Utf8Path>,
    with_nvcc: bool,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    match into {
        Some(dir) => {
            let tree = host.absolute(dir);
            wheel::materialise_at(version, &tree, with_nvcc, compiler, host, sink)
        }
        None => {
            wheel::materialise(version, &wheel::cache_dir(host)?, with_nvcc, compiler, host, sink)
        }
    }
}
