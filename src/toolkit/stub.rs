//! The stub toolkit: own headers and link stubs, in the shape of
//! /usr/local/cuda, made on the spot with the C compiler.
//!
//! What a version consists of is in `fixtures/toolkit/manifest.toml`; this
//! walks it. Nothing in a stub toolkit runs.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    embedded::TOOLKIT,
    library::{self, Job, Kind},
    manifest::{Library, LibraryKind, Manifest, Package, Version},
    place::{self, Sum},
};
use crate::{
    error::{Code, Error, Remedy},
    host::{Host, fs},
    model::{CudaVersion, GdrVersion},
    probe::Compiler,
    ui::{Event, Sink},
};

/// Makes the stub toolkit of a version below `into`, unless it is there
/// already, and returns its root.
///
/// # Errors
///
/// There is no such version, the compiler fails, or a file cannot be written.
pub fn materialise(
    version: CudaVersion,
    into: &Utf8Path,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    make("cuda", (version.major, version.minor), into, compiler, host, sink)
}

/// The same for gdrcopy.
///
/// # Errors
///
/// As with [`materialise`].
pub fn materialise_gdrcopy(
    version: GdrVersion,
    into: &Utf8Path,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    make("gdrcopy", (version.major, version.minor), into, compiler, host, sink)
}

/// The CUDA versions that there are stubs of, ascending.
pub fn versions() -> Vec<String> {
    manifest()
        .and_then(|manifest| Ok(manifest.package("cuda")?.versions.clone()))
        .unwrap_or_default()
}

/// The gdrcopy versions that there are stubs of, ascending.
pub fn gdrcopy_versions() -> Vec<String> {
    manifest()
        .and_then(|manifest| Ok(manifest.package("gdrcopy")?.versions.clone()))
        .unwrap_or_default()
}

/// Makes a package at a version.
fn make(
    name: &str,
    version: Version,
    into: &Utf8Path,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    let manifest = manifest()?;
    let package = manifest.package(name)?;
    let text = format!("{}.{}", version.0, version.1);
    if !package.versions.contains(&text) {
        return Err(unknown(name, &text, package));
    }
    let tree = into.join(format!("stub-{name}-{text}"));
    let parts = Parts { name, version, manifest: &manifest, package };
    let made = place::complete(&tree, &stamp(&text, compiler), host, |partial| {
        parts.copy(partial)?;
        parts.compile(partial, compiler, host, sink)
    })?;
    sink.event(&Event::Decided(&format!("the stub of {name} {text} is in {made}")));
    Ok(made)
}

/// A package at a version, on its way to a directory.
struct Parts<'a> {
    name: &'a str,
    version: Version,
    manifest: &'a Manifest,
    package: &'a Package,
}

impl Parts<'_> {
    /// The version as the headers' macro has it.
    fn code(&self) -> u32 {
        self.version.0 * 1000 + self.version.1 * 10
    }

    /// Copies the headers and the like.
    fn copy(&self, tree: &Utf8Path) -> Result<(), Error> {
        for row in self.manifest.files(self.name, self.version) {
            let content = embedded(&row.source)?;
            let content = if row.expand { self.expand(content)? } else { content.to_vec() };
            let path = tree.join(&row.path);
            if let Some(dir) = path.parent() {
                fs::create_dir_all(dir)?;
            }
            fs::write_new(&path, &content, 0o644)?;
        }
        Ok(())
    }

    /// Puts the version into a template.
    fn expand(&self, content: &[u8]) -> Result<Vec<u8>, Error> {
        let text = std::str::from_utf8(content).map_err(|error| {
            Error::new(Code::Internal, "an embedded file is not UTF-8").said(error.to_string())
        })?;
        let text = text
            .replace("@MAJOR@", &self.version.0.to_string())
            .replace("@MINOR@", &self.version.1.to_string())
            .replace("@CODE@", &self.code().to_string());
        Ok(text.into_bytes())
    }

    /// Compiles the libraries.
    fn compile(
        &self,
        tree: &Utf8Path,
        compiler: &Compiler,
        host: &Host,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let sources = compiler.scratch_dir()?;
        let mut jobs = Vec::new();
        for row in self.manifest.libraries(self.name, self.version) {
            for source in &row.sources {
                let path = sources.join(source);
                if let Some(dir) = path.parent() {
                    fs::create_dir_all(dir)?;
                }
                fs::write_new(&path, embedded(source)?, 0o644)?;
            }
            jobs.push(self.job(row, tree, &sources));
        }
        let built = library::build(&jobs, compiler, host, sink);
        let _ = fs::remove_dir_all_if_there(&sources);
        built
    }

    fn job(&self, row: &Library, tree: &Utf8Path, sources: &Utf8Path) -> Job {
        let mut flags = self.manifest.compile.cflags.clone();
        flags.push(format!("-D{}={}", self.package.define, self.code()));
        if row.kind == LibraryKind::Shared {
            flags.extend(self.manifest.compile.shared.iter().cloned());
            flags.extend(row.soname.iter().map(|name| format!("-Wl,-soname,{name}")));
        }
        let bare = |link: &String| Utf8Path::new(link).file_name().map(str::to_owned);
        Job {
            output: tree.join(&row.path),
            kind: Kind::from(row.kind),
            cwd: sources.to_owned(),
            sources: row.sources.clone(),
            flags,
            libs: Vec::new(),
            links: row.links.iter().filter_map(bare).collect(),
        }
    }
}

/// What the tree is made from: everything embedded, the version and the
/// compiler.
fn stamp(version: &str, compiler: &Compiler) -> String {
    let mut sum = Sum::default().part(version.as_bytes());
    for (name, content) in TOOLKIT {
        sum = sum.part(name.as_bytes()).part(content);
    }
    for word in &compiler.command {
        sum = sum.part(word.as_bytes());
    }
    let identity = &compiler.identity;
    sum = sum.part(identity.version.as_bytes()).part(identity.target.as_bytes());
    format!("stub {version} {}\n", sum.hex())
}

/// The table of the stub toolkit.
fn manifest() -> Result<Manifest, Error> {
    let text = std::str::from_utf8(embedded("manifest.toml")?).unwrap_or_default();
    Manifest::parse(text)
}

/// An embedded file.
fn embedded(name: &str) -> Result<&'static [u8], Error> {
    TOOLKIT
        .iter()
        .find(|(found, _)| *found == name)
        .map(|(_, content)| *content)
        .ok_or_else(|| Error::new(Code::Internal, format!("`{name}` is not embedded")))
}

/// There is no stub of that version: names those that there are.
fn unknown(name: &str, version: &str, package: &Package) -> Error {
    let list: Vec<String> = package.versions.iter().map(|known| format!("`{known}`")).collect();
    let number = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    // The newest that is not newer: what it promises is there.
    let asked = number(version);
    let not_newer = package.versions.iter().rfind(|known| number(known) <= asked);
    let near = not_newer.or(package.versions.first()).map_or("", String::as_str);
    Error::new(Code::UnknownVersion, format!("there is no stub of {name} {version}"))
        .means(format!("There are stubs of {name} {}.", list.join(", ")))
        .hint(format!("Take one of these, such as `--with-{name}=stub:{near}`."))
        .remedy(Remedy::Set(format!("--with-{name}=stub:{near}")))
}

#[cfg(test)]
mod tests;
