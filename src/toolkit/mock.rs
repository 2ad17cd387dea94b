//! The mock driver: CUDA's libraries over host memory, made on the spot with
//! the C compiler, for the demo and for tests without a GPU.
//!
//! What it consists of is in `fixtures/mock-driver/manifest.toml`; it is
//! compiled against the stub toolkit's headers.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    embedded::{MOCK_DRIVER, TOOLKIT, unpack},
    library::{self, Job, Kind},
    manifest::{Library, LibraryKind, Manifest, Program, numbers},
    place::{self, Sum},
};
use crate::{
    error::{Code, Error},
    host::{Host, fs},
    model::CudaVersion,
    probe::Compiler,
    ui::Sink,
};

/// The prologues of machines that the mock driver's stubs are not written for.
const PLAIN: &str = "plain";

/// A mock driver on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockDriver {
    /// The directory with its libraries and programs.
    pub dir: Utf8PathBuf,
    /// The demo's program.
    pub demo: Utf8PathBuf,
}

/// Makes the mock driver of a version below `into`, unless it is there.
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
) -> Result<MockDriver, Error> {
    let manifest = manifest()?;
    let package = manifest.package("cuda")?;
    if !package.versions.contains(&version.to_string()) {
        let list = package.versions.join(", ");
        return Err(Error::new(
            Code::UnknownVersion,
            format!("there is no mock driver of CUDA {version}"),
        )
        .means(format!("There are mock drivers of CUDA {list}."))
        .hint("Take one of these."));
    }
    let tree = into.join(format!("mock-{version}"));
    let parts = Parts { version, manifest: &manifest, compiler };
    let dir = place::complete(&tree, &stamp(version, compiler), host, |partial| {
        unpack(TOOLKIT, &partial.join("src/toolkit"))?;
        unpack(MOCK_DRIVER, &partial.join("src/mock-driver"))?;
        library::build(&parts.libraries(partial)?, compiler, host, sink)?;
        library::build(&parts.programs(partial)?, compiler, host, sink)?;
        fs::remove_dir_all_if_there(&partial.join("src"))
    })?;
    Ok(MockDriver { demo: dir.join("demo"), dir })
}

/// What is compiled.
struct Parts<'a> {
    version: CudaVersion,
    manifest: &'a Manifest,
    compiler: &'a Compiler,
}

impl Parts<'_> {
    /// Every library of every package, each in its newest fitting version.
    fn libraries(&self, dir: &Utf8Path) -> Result<Vec<Job>, Error> {
        let version = (self.version.major, self.version.minor);
        let mut jobs = Vec::new();
        for row in self.manifest.libraries("cuda", version) {
            jobs.push(self.library(row, "cuda", self.version.to_macro(), dir)?);
        }
        let newest = self.manifest.package("gdrcopy")?.versions.last();
        let (major, minor) = newest.map_or((0, 0), |text| numbers(text));
        for row in self.manifest.libraries("gdrcopy", (major, minor)) {
            jobs.push(self.library(row, "gdrcopy", major * 1000 + minor * 10, dir)?);
        }
        Ok(jobs)
    }

    fn library(
        &self,
        row: &Library,
        package: &str,
        code: u32,
        dir: &Utf8Path,
    ) -> Result<Job, Error> {
        let mut flags = self.flags();
        let define = &self.manifest.package(package)?.define;
        flags.push(format!("-D{define}={code}"));
        flags.extend(row.cflags.iter().cloned());
        if let Some(prologue) = self.manifest.prologue.as_ref().filter(|_| row.prologue) {
            let native =
                self.compiler.machine == "x86_64" && prologue.families.contains(&prologue.default);
            let family = if native { prologue.default.as_str() } else { PLAIN };
            flags.push(format!("-D{}={family}", prologue.define));
        }
        if row.kind == LibraryKind::Shared {
            flags.extend(self.manifest.compile.shared.iter().cloned());
            flags.extend(row.soname.iter().map(|name| format!("-Wl,-soname,{name}")));
            flags.extend(row.ldflags.iter().cloned());
        }
        Ok(Job {
            output: dir.join(&row.path),
            kind: Kind::from(row.kind),
            cwd: dir.join("src/mock-driver"),
            sources: row.sources.clone(),
            flags,
            libs: row.libs.clone(),
            links: row.links.clone(),
        })
    }

    fn programs(&self, dir: &Utf8Path) -> Result<Vec<Job>, Error> {
        let version = (self.version.major, self.version.minor);
        let define = &self.manifest.package("cuda")?.define;
        let fits =
            |row: &&Program| row.since.as_deref().is_none_or(|since| numbers(since) <= version);
        let job = |row: &Program| {
            let mut flags = self.flags();
            flags.push(format!("-D{define}={}", self.version.to_macro()));
            let mut libs = vec![format!("-L{dir}")];
            libs.extend(row.libs.iter().cloned());
            Job {
                output: dir.join(&row.path),
                kind: Kind::Program,
                cwd: dir.join("src/mock-driver"),
                sources: row.sources.clone(),
                flags,
                libs,
                links: Vec::new(),
            }
        };
        Ok(self.manifest.program.iter().filter(fits).map(job).collect())
    }

    /// The flags of every source.
    fn flags(&self) -> Vec<String> {
        let compile = &self.manifest.compile;
        let include = compile.include.iter().map(|dir| format!("-I{dir}"));
        compile.cflags.iter().cloned().chain(include).collect()
    }
}

/// What the tree is made from.
fn stamp(version: CudaVersion, compiler: &Compiler) -> String {
    let mut sum = Sum::default().part(version.to_string().as_bytes());
    for (name, content) in TOOLKIT.iter().chain(MOCK_DRIVER) {
        sum = sum.part(name.as_bytes()).part(content);
    }
    for word in &compiler.command {
        sum = sum.part(word.as_bytes());
    }
    let identity = &compiler.identity;
    sum = sum.part(identity.version.as_bytes()).part(identity.target.as_bytes());
    format!("mock {version} {}\n", sum.hex())
}

/// The table of the mock driver.
fn manifest() -> Result<Manifest, Error> {
    let found = MOCK_DRIVER.iter().find(|(name, _)| *name == "manifest.toml");
    let (_, content) =
        found.ok_or_else(|| Error::new(Code::Internal, "the mock driver is not embedded"))?;
    Manifest::parse(&String::from_utf8_lossy(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_files_that_are_there() {
        let manifest = manifest().unwrap();
        let there = |source: &String| MOCK_DRIVER.iter().any(|(name, _)| name == source);
        for version in &manifest.package("cuda").unwrap().versions {
            for row in manifest.libraries("cuda", numbers(version)) {
                assert!(row.sources.iter().all(there), "{}", row.path);
            }
        }
        let prologue = manifest.prologue.as_ref().unwrap();
        assert!(prologue.families.contains(&prologue.default));
        assert!(prologue.families.iter().any(|family| family == PLAIN));
        assert!(manifest.program.iter().any(|row| row.path == "demo"));
    }
}
