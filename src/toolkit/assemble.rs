//! Puts wheels together: each file goes where it is in /usr/local/cuda.

use std::io::{Cursor, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use zip::ZipArchive;

use super::wheel_table::Wheel;
use crate::{
    error::{Code, Error},
    host::{Host, fs},
};

/// Extracts a wheel into the tree and returns what its metadata says of its
/// licence. `tools` says whether programs are wanted, nvcc's parts among them.
///
/// # Errors
///
/// It is not a zip file, a file in it would leave the tree, or one cannot be
/// written.
pub(super) fn extract(
    wheel: &Wheel,
    bytes: &[u8],
    tree: &Utf8Path,
    tools: bool,
    host: &Host,
) -> Result<Option<String>, Error> {
    let broken = |error: zip::result::ZipError| {
        unusable(wheel, "it cannot be read as a zip file").said(error.to_string())
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let mut licence = None;
    for index in 0..archive.len() {
        host.runner.interrupt.check()?;
        let mut entry = archive.by_index(index).map_err(broken)?;
        let name = entry.name().to_owned();
        if entry.is_symlink() || entry.enclosed_name().is_none() {
            return Err(unusable(wheel, &format!("`{name}` would leave the toolkit's directory")));
        }
        let Some(place) = place(&name, wheel, tools).filter(|_| !entry.is_dir()) else { continue };
        let mut content = Vec::with_capacity(usize::try_from(entry.size()).unwrap_or(0));
        entry.read_to_end(&mut content).map_err(|error| {
            unusable(wheel, &format!("`{name}` cannot be unpacked")).said(error.to_string())
        })?;
        match place {
            Place::Metadata => licence = licence_of(&String::from_utf8_lossy(&content)),
            Place::File(path, mode) => {
                let path = tree.join(path);
                if let Some(dir) = path.parent() {
                    fs::create_dir_all(dir)?;
                }
                fs::write_new(&path, &content, mode)?;
            }
        }
    }
    Ok(licence)
}

fn unusable(wheel: &Wheel, why: &str) -> Error {
    let Wheel { name, version, .. } = wheel;
    Error::new(Code::FetchFailed, format!("the wheel {name} {version} cannot be used: {why}"))
        .means("Its sum is right, so the file is the one that was meant.")
        .hint("Please report this: the table of wheels has to change.")
}

/// Where a file of a wheel goes.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: its text is read.
    Metadata,
    /// There, with that mode.
    File(Utf8PathBuf, u32),
}

/// Wheels of CUDA 11 and 12 have `nvidia/COMPONENT/include`, those of CUDA 13
/// `nvidia/cu13/include`; below that the shape is the toolkit's, but for `lib`
/// instead of `lib64`. What only Python needs goes nowhere.
fn place(name: &str, wheel: &Wheel, tools: bool) -> Option<Place> {
    let path = Utf8Path::new(name);
    let parts: Vec<&str> = path.components().map(|part| part.as_str()).collect();
    match parts.as_slice() {
        [info, "METADATA"] if info.ends_with(".dist-info") => Some(Place::Metadata),
        [info, .., "License.txt" | "LICENSE" | "LICENSE.txt"] if info.ends_with(".dist-info") => {
            let file = format!("licenses/{}.txt", wheel.name);
            Some(Place::File(file.into(), 0o644))
        }
        [.., "__init__.py"] | ["nvidia", _, ".metadata", ..] => None,
        ["nvidia", _, "bin" | "nvvm", ..] if !tools => None,
        ["nvidia", _, "lib", rest @ ..] => file("lib64", rest, 0o644),
        ["nvidia", _, "bin", rest @ ..] => file("bin", rest, 0o755),
        ["nvidia", _, "nvvm", "bin", rest @ ..] => file("nvvm/bin", rest, 0o755),
        ["nvidia", _, first, rest @ ..] => file(first, rest, 0o644),
        _ => None,
    }
}

fn file(first: &str, rest: &[&str], mode: u32) -> Option<Place> {
    let mut path = Utf8PathBuf::from(first);
    path.extend(rest);
    (!rest.is_empty()).then_some(Place::File(path, mode))
}

/// The licence that a wheel's metadata names, in the older form or the newer.
fn licence_of(metadata: &str) -> Option<String> {
    let head = metadata.lines().take_while(|line| !line.is_empty());
    let named = |line: &str| {
        let value = line.strip_prefix("License-Expression:").or(line.strip_prefix("License:"))?;
        Some(value.trim().to_owned())
    };
    head.filter_map(named).find(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;
    use crate::host::{env::Snapshot, fs::Scratch, process::Runner};

    const WHEEL: Wheel = Wheel { name: "w", version: "1", sha256: "", size: 0, nvcc: false };

    fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpack(files: &[(&str, &str)]) -> (Scratch, Result<Option<String>, Error>) {
        let scratch = Scratch::new(None).unwrap();
        let host = Host {
            env: Snapshot::default(),
            cwd: scratch.path().to_owned(),
            runner: Runner::new(),
        };
        let tree = scratch.path().join("tree");
        let result = extract(&WHEEL, &zipped(files), &tree, true, &host);
        (scratch, result)
    }

    #[test]
    fn files_go_where_a_toolkit_has_them() {
        let (scratch, licence) = unpack(&[
            ("nvidia/__init__.py", ""),
            ("nvidia/cuda_runtime/include/cuda.h", "h"),
            ("nvidia/cuda_runtime/include/__init__.py", ""),
            ("nvidia/cuda_runtime/lib/libcudart.so.12", "so"),
            ("nvidia/cu13/bin/nvcc", "nvcc"),
            ("nvidia/cu13/.metadata/provenance.txt", ""),
            (
                "w-1.dist-info/METADATA",
                "Name: w\nLicense-Expression: LicenseRef-X\n\nLicense: no\n",
            ),
            ("w-1.dist-info/licenses/License.txt", "EULA"),
        ]);
        assert_eq!(licence.unwrap().as_deref(), Some("LicenseRef-X"));
        let tree = scratch.path().join("tree");
        assert_eq!(fs::names(&tree), ["bin", "include", "lib64", "licenses"]);
        assert_eq!(fs::names(&tree.join("include")), ["cuda.h"]);
        assert_eq!(fs::names(&tree.join("lib64")), ["libcudart.so.12"]);
        assert!(crate::host::process::is_executable(&tree.join("bin/nvcc")));
        assert_eq!(fs::read_to_string(&tree.join("licenses/w.txt")).unwrap(), "EULA");
    }

    #[test]
    fn a_path_that_leaves_the_tree_is_refused() {
        for name in ["../evil", "nvidia/x/include/../../../../evil", "/etc/evil"] {
            let (scratch, result) = unpack(&[(name, "evil")]);
            match result {
                Err(error) => assert!(error.what.contains("leave"), "{}", error.what),
                Ok(_) => assert_eq!(fs::names(&scratch.path().join("tree")), [""; 0], "{name}"),
            }
            assert!(!scratch.path().join("evil").exists());
        }
    }

    #[test]
    fn what_is_no_zip_file_is_told() {
        let scratch = Scratch::new(None).unwrap();
        let host = Host {
            env: Snapshot::default(),
            cwd: scratch.path().to_owned(),
            runner: Runner::new(),
        };
        let error = extract(&WHEEL, b"<html>", scratch.path(), true, &host).unwrap_err();
        assert!(error.what.contains("zip") && error.said.is_some());
    }
}
