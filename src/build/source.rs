//! Where hook-runtime's sources are: named by a variable, in the checkout that
//! this program was built in and runs from, or embedded and unpacked.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    error::{Code, Error},
    host::{Host, env::current_exe, fs},
    toolkit::{embedded, place},
};

/// The variable that names another workspace with hook-runtime in it.
pub const SOURCE_VARIABLE: &str = "UCX_CONFIGURE_RUNTIME_SOURCE";

/// The workspace that cargo builds in.
pub(super) fn find(state: &Utf8Path, host: &Host) -> Result<Utf8PathBuf, Error> {
    if let Some(named) = host.env.get(SOURCE_VARIABLE).filter(|value| !value.is_empty()) {
        let dir = host.absolute(Utf8Path::new(named));
        return if is_workspace(&dir) { Ok(dir) } else { Err(no_workspace(&dir)) };
    }
    match checkout() {
        Some(dir) => Ok(dir),
        None => unpack(state, host),
    }
}

fn is_workspace(dir: &Utf8Path) -> bool {
    dir.join("Cargo.lock").is_file() && dir.join("hook-runtime/Cargo.toml").is_file()
}

/// The checkout that this program was built in, if the program is still in
/// it: an installed one must not depend on what became of the checkout.
fn checkout() -> Option<Utf8PathBuf> {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = current_exe().ok()?;
    (program.starts_with(dir.as_std_path()) && is_workspace(dir)).then(|| dir.to_owned())
}

/// Unpacks the embedded sources, unless exactly they are there.
fn unpack(state: &Utf8Path, host: &Host) -> Result<Utf8PathBuf, Error> {
    let list = embedded::HOOK_RUNTIME;
    let sum = list.iter().fold(place::Sum::default(), |sum, (name, content)| {
        sum.part(name.as_bytes()).part(content)
    });
    let stamp = format!("hook-runtime {}\n", sum.hex());
    place::complete(&state.join("hook-runtime-src"), &stamp, host, |dir| {
        for (name, content) in list {
            let path = dir.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write_new(&path, content, 0o644)?;
        }
        Ok(())
    })
}

fn no_workspace(dir: &Utf8Path) -> Error {
    Error::new(Code::NoSuchDirectory, format!("`{dir}` does not hold hook-runtime's sources"))
        .means(format!("{SOURCE_VARIABLE} has to name a workspace: `Cargo.lock` and `hook-runtime/Cargo.toml` are looked for in it."))
        .hint(format!("Name a checkout of ucx-configure, or unset {SOURCE_VARIABLE}."))
}
