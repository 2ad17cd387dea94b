//! DIR, where it is not one that the original knows: stubs and wheels are made
//! first, and are a DIR like any other from then on.

use camino::Utf8PathBuf;

use super::shell::Shell;
use crate::{
    error::{Code, Error},
    model::ToolkitKind,
    request::{Location, Want},
    toolkit::{stub, wheel},
};

/// A DIR.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// As typed; none where there is none.
    pub dir: Option<String>,
    /// What it is.
    pub kind: ToolkitKind,
}

impl Default for Place {
    fn default() -> Self {
        Self { dir: None, kind: ToolkitKind::Installed }
    }
}

impl Place {
    fn new(dir: &Utf8PathBuf, kind: ToolkitKind) -> Self {
        Self { dir: Some(dir.to_string()), kind }
    }

    /// Its root, for the report.
    pub(super) fn root(&self) -> Option<Utf8PathBuf> {
        self.dir.as_deref().map(Utf8PathBuf::from)
    }
}

/// The DIR of `--with-cuda`.
pub(super) fn cuda(shell: &mut Shell<'_>) -> Result<Place, Error> {
    let Want::At(location) = &shell.request.cuda.value else { return Ok(Place::default()) };
    let (compiler, host) = (&shell.compiler, shell.host);
    match location {
        Location::Dir(dir) => Ok(Place::new(dir, ToolkitKind::Installed)),
        Location::Stub(version) => {
            let into = workshop(shell)?;
            let made = stub::materialise(*version, &into, compiler, host, shell.sink)?;
            Ok(Place::new(&made, ToolkitKind::Stub))
        }
        Location::Wheel(version) => {
            let cache = wheel::cache_dir(host)?;
            let with_nvcc = wheel::release(*version)?.has_nvcc();
            let made = wheel::materialise(*version, &cache, with_nvcc, compiler, host, shell.sink)?;
            Ok(Place::new(&made, ToolkitKind::Wheel))
        }
    }
}

/// The DIR of `--with-gdrcopy`.
pub(super) fn gdrcopy(shell: &mut Shell<'_>) -> Result<Place, Error> {
    let Want::At(location) = &shell.request.gdrcopy.value else { return Ok(Place::default()) };
    match location {
        Location::Dir(dir) => Ok(Place::new(dir, ToolkitKind::Installed)),
        Location::Stub(version) => {
            let into = workshop(shell)?;
            let (compiler, host) = (&shell.compiler, shell.host);
            let made = stub::materialise_gdrcopy(*version, &into, compiler, host, shell.sink)?;
            Ok(Place::new(&made, ToolkitKind::Stub))
        }
        Location::Wheel(_) => {
            Err(Error::new(Code::UnknownVersion, "there are no wheels of gdrcopy")
                .hint("Name its directory, or write `--with-gdrcopy=stub:2.5`."))
        }
    }
}

/// Where stubs are made: with the state of the build directory, or in scratch
/// when nothing may be written.
fn workshop(shell: &Shell<'_>) -> Result<Utf8PathBuf, Error> {
    match &shell.request.state_dir {
        Some(dir) => Ok(dir.join("toolkit")),
        None => shell.compiler.scratch_dir(),
    }
}
