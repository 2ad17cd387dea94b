//! Embeds what an installed binary needs beside itself: the stub toolkit, the
//! mock driver and hook-runtime's sources, each as a sorted list of names and
//! bytes.
//!
//! hook-runtime's list is a workspace that `cargo build --locked` accepts: the
//! root's manifest and lock file with an empty package in this one's place. A
//! lock file cut down to what hook-runtime needs would be smaller, but cargo
//! would refuse it: which optional packages belong in it depends on the
//! features that the whole workspace asks for.

#![expect(clippy::disallowed_methods, reason = "a build script is its own gate to the outside")]

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// What goes into the generated file: constant, directory, what it is.
const TREES: &[(&str, &str, &str)] = &[
    ("TOOLKIT", "fixtures/toolkit", "The stub toolkit: headers, sources, manifest."),
    ("MOCK_DRIVER", "fixtures/mock-driver", "The mock driver and the demo's program."),
];

/// Directories that only tests use, and the tables of a manifest that name
/// files in them or beside them.
const LEFT_OUT: &[&str] = &["target", "tests", "benches", "fuzz", "examples"];
const TARGET_TABLES: &[&str] = &["bin", "test", "bench", "example"];

/// Files of the unpacked tree by name, and where each comes from.
type Files = BTreeMap<String, PathBuf>;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for watched in ["build.rs", "Cargo.toml", "Cargo.lock", "hook-runtime"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let mut text = String::new();
    for (constant, dir, doc) in TREES {
        println!("cargo::rerun-if-changed={dir}");
        list(&mut text, constant, doc, &files(&root.join(dir), "")?)?;
    }
    let runtime = hook_runtime(&root, &out.join("workspace"))?;
    list(&mut text, "HOOK_RUNTIME", "hook-runtime's sources and a workspace around it.", &runtime)?;
    write_if_changed(&out.join("embedded.rs"), &text)?;
    Ok(())
}

/// Writes one list: the content stays in its file, which the compiler reads.
fn list(text: &mut String, constant: &str, doc: &str, files: &Files) -> Result<(), Box<dyn Error>> {
    writeln!(text, "/// {doc}\npub static {constant}: &[(&str, &[u8])] = &[")?;
    for (name, path) in files {
        let path = path.to_str().ok_or("the checkout's path is not UTF-8")?;
        writeln!(text, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    writeln!(text, "];")?;
    Ok(())
}

/// The files below a directory, their names with `prefix` before them.
fn files(dir: &Path, prefix: &str) -> Result<Files, Box<dyn Error>> {
    let left_out = |name: &str| name.starts_with('.') || LEFT_OUT.contains(&name);
    let mut found = Files::new();
    let entries = walkdir::WalkDir::new(dir).into_iter().filter_entry(|entry| {
        entry.depth() == 0 || !entry.file_name().to_str().is_some_and(left_out)
    });
    for entry in entries {
        let entry = entry?;
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(dir)?.to_str();
            let name = name.ok_or("a file's name is not UTF-8")?;
            found.insert(format!("{prefix}{name}"), entry.into_path());
        }
    }
    Ok(found)
}

/// hook-runtime's files, with a workspace around them. The manifests lose the
/// tables that name files which are not there.
fn hook_runtime(root: &Path, out: &Path) -> Result<Files, Box<dyn Error>> {
    let mut found = files(&root.join("hook-runtime"), "hook-runtime/")?;
    found.insert("Cargo.lock".to_owned(), root.join("Cargo.lock"));
    let mut generated = vec![(
        "src/lib.rs".to_owned(),
        "//! Empty: this package stands for the one that the lock file names.\n".to_owned(),
    )];
    let manifests = found.keys().filter(|name| name.ends_with("/Cargo.toml")).cloned();
    for name in manifests.chain(["Cargo.toml".to_owned()]) {
        let mut manifest: toml::Table = fs::read_to_string(root.join(&name))?.parse()?;
        manifest.retain(|key, _| !TARGET_TABLES.contains(&key));
        generated.push((name, toml::to_string(&manifest)?));
    }
    for (name, text) in generated {
        let path = out.join(&name);
        fs::create_dir_all(path.parent().unwrap_or(out))?;
        write_if_changed(&path, &text)?;
        found.insert(name, path);
    }
    Ok(found)
}

/// A file that does not change keeps its time, and nothing is compiled again.
fn write_if_changed(path: &Path, text: &str) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text)
}
