//! Whether cargo has anything to do: what it would read is summed up, and as
//! long as the sum is that of the last build, and what that made is there
//! unchanged, cargo would say the same again.
//!
//! Sources and flags are summed by their content; cargo, the compilers and
//! their settings by their stamps, since they are large.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::cargo::{Order, artifacts, cargo_home, invocation};
use crate::{
    host::{
        Host, fs,
        process::{Completed, Invocation, Status, find_program},
    },
    toolkit::place::Sum,
};

/// The form of a stamp.
const FORM: &str = "hook-runtime build 1";

/// Directories of the workspace that are no sources.
const NO_SOURCES: [&str; 2] = ["target", ".git"];

/// Files that settle which toolchain cargo takes and what it does, in the
/// working directory and above.
const SETTINGS: [&str; 4] =
    ["rust-toolchain", "rust-toolchain.toml", ".cargo/config", ".cargo/config.toml"];

/// What is kept of a build.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    sum: String,
    made: BTreeMap<Utf8PathBuf, String>,
    stdout: String,
    stderr: String,
}

/// Runs cargo, unless a kept build says that nothing would come of it.
pub(super) fn run(invocation: Invocation, order: &Order<'_>, host: &Host) -> Completed {
    let Some(file) = order.stamp else { return host.runner.run(invocation) };
    let sum = sum(&invocation, order, host);
    if !order.rebuild
        && let Some(kept) = read(file, &sum)
    {
        return Completed {
            invocation,
            status: Status::Exited(0),
            stdout: kept.stdout,
            stderr: kept.stderr,
            truncated: false,
            took: std::time::Duration::ZERO,
        };
    }
    let done = host.runner.run(invocation);
    if done.success() && !done.truncated {
        // Without it the next run waits for cargo, which is all.
        let _ = keep(file, sum, &done);
    }
    done
}

/// The files that the same build left, where it was remembered and they are
/// unchanged.
pub(super) fn still_there(order: &Order<'_>, host: &Host) -> Option<Vec<Utf8PathBuf>> {
    let file = order.stamp.filter(|_| !order.rebuild)?;
    let kept = read(file, &sum(&invocation(order, host), order, host))?;
    Some(kept.made.into_keys().collect())
}

/// Remembers which files a build left. Without it the next run waits for
/// cargo, which is all.
pub(super) fn remember(order: &Order<'_>, host: &Host, files: Vec<Utf8PathBuf>) {
    let stamped = |path: Utf8PathBuf| Some((fs::stamp(&path)?.text, path));
    let made: Option<Vec<(String, Utf8PathBuf)>> = files.into_iter().map(stamped).collect();
    if let (Some(file), Some(made)) = (order.stamp, made) {
        let made = made.into_iter().map(|(text, path)| (path, text)).collect();
        let sum = sum(&invocation(order, host), order, host);
        let (stdout, stderr) = (String::new(), String::new());
        let text = serde_json::to_vec(&Kept { sum, made, stdout, stderr });
        let _ = text.map(|text| fs::replace(file, &text, 0o644));
    }
}

/// The kept build, if it is one of the same and all is there that it made.
fn read(file: &Utf8Path, sum: &str) -> Option<Kept> {
    let kept: Kept = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let is_same = |(path, text): (&Utf8PathBuf, &String)| {
        fs::stamp(path).is_some_and(|stamp| stamp.text == *text)
    };
    (kept.sum == sum && !kept.made.is_empty() && kept.made.iter().all(is_same)).then_some(kept)
}

fn keep(file: &Utf8Path, sum: String, done: &Completed) -> Option<()> {
    let stamped = |path: Utf8PathBuf| Some((fs::stamp(&path)?.text, path));
    let made: Option<Vec<(String, Utf8PathBuf)>> =
        artifacts(&done.stdout).into_iter().map(stamped).collect();
    let made = made?.into_iter().map(|(text, path)| (path, text)).collect();
    let kept = Kept { sum, made, stdout: done.stdout.clone(), stderr: done.stderr.clone() };
    let text = serde_json::to_vec(&kept).ok()?;
    fs::replace(file, &text, 0o644).ok()
}

/// Everything that cargo would read or be told.
fn sum(invocation: &Invocation, order: &Order<'_>, host: &Host) -> String {
    let mut sum = Sum::default().part(FORM.as_bytes());
    // Whether the network may be used changes how crates come, not which.
    let told = Invocation {
        args: invocation.args.iter().filter(|arg| *arg != "--offline").cloned().collect(),
        ..invocation.clone()
    };
    sum = sum.part(told.to_string().as_bytes());
    for (name, value) in host.env.that_matter() {
        sum = sum.part(name.as_encoded_bytes()).part(value.as_encoded_bytes());
    }
    let own = [Some(order.flags), order.bindings];
    for path in
        sources(order.source).iter().map(Utf8PathBuf::as_path).chain(own.into_iter().flatten())
    {
        let content = fs::read(path).unwrap_or_default();
        sum = sum.part(path.as_str().as_bytes()).part(&content);
    }
    for path in tools(order, host) {
        let stamp = fs::stamp(&path).map_or_else(|| "none".to_owned(), |stamp| stamp.text);
        sum = sum.part(path.as_str().as_bytes()).part(stamp.as_bytes());
    }
    sum.hex()
}

/// The sources, in the order of their names.
fn sources(workspace: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = vec![workspace.join("Cargo.toml"), workspace.join("Cargo.lock")];
    files.extend(SETTINGS.map(|name| workspace.join(name)));
    below(&workspace.join("hook-runtime"), &mut files);
    files
}

fn below(dir: &Utf8Path, files: &mut Vec<Utf8PathBuf>) {
    for name in fs::names(dir) {
        let path = dir.join(&name);
        if !path.is_dir() {
            files.push(path);
        } else if !NO_SOURCES.contains(&name.as_str()) {
            below(&path, files);
        }
    }
}

/// The programs, and the files that say which they are.
fn tools(order: &Order<'_>, host: &Host) -> Vec<Utf8PathBuf> {
    let dirs = host.env.path_dirs();
    let mut files = vec![order.cargo.to_owned()];
    let rustc = host.env.get("RUSTC").filter(|name| !name.is_empty()).unwrap_or("rustc");
    let compiler = order.compiler.as_deref().unwrap_or("cc");
    let names = [rustc, "cc"].into_iter().chain(compiler.split(' ')).chain(order.linker.as_deref());
    files.extend(names.filter_map(|name| find_program(name, &dirs).0));
    for dir in host.cwd.ancestors() {
        files.extend(SETTINGS.map(|name| dir.join(name)));
    }
    if let Some(home) = cargo_home(host) {
        files.extend(["config", "config.toml"].map(|name| home.join(name)));
    }
    // What rustup's `cargo` stands for.
    let named = host.env.get("RUSTUP_HOME").map(Utf8PathBuf::from);
    let home = host.env.get("HOME").map(|home| Utf8Path::new(home).join(".rustup"));
    if let Some(rustup) = named.or(home) {
        files.push(rustup.join("settings.toml"));
        let toolchains = rustup.join("toolchains");
        for name in fs::names(&toolchains) {
            let bin = toolchains.join(name).join("bin");
            files.extend(["cargo", "rustc"].map(|tool| bin.join(tool)));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::{env::Snapshot, fs::Scratch, process::Runner},
        model::Module,
    };

    #[test]
    fn a_build_is_repeated_when_something_changed() {
        let scratch = Scratch::new(None).unwrap();
        let at = |name: &str| scratch.path().join(name);
        let write = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::remove_file_if_there(&at(name)).unwrap();
            fs::write_if_changed(&at(name), text.as_bytes(), 0o755).unwrap();
        };
        write("ws/Cargo.toml", "");
        write("ws/hook-runtime/src/lib.rs", "1");
        write("flags.json", "{}");
        let line = serde_json::json!({"reason": "compiler-artifact", "filenames": [at("libx.so")]});
        write("cargo", &format!("#!/bin/sh\necho 1 > {}\necho '{line}'\n", at("libx.so")));
        let host = Host {
            env: Snapshot::from_pairs([("PATH", "/usr/bin:/bin")]),
            cwd: scratch.path().to_owned(),
            runner: Runner::new(),
        };
        let (cargo, source, flags) = (at("cargo"), at("ws"), at("flags.json"));
        let (target, stamp) = (at("target"), at("stamp.json"));
        let order = |rebuild| Order {
            cargo: &cargo,
            source: &source,
            target: &target,
            flags: &flags,
            bindings: None,
            modules: &[Module::UcmCuda],
            bistro: true,
            offline: false,
            rust_target: None,
            linker: None,
            compiler: None,
            stamp: Some(&stamp),
            rebuild,
        };
        let starts = |rebuild, more: &str| {
            let before = host.runner.started();
            let mut invocation = Invocation::new(cargo.as_str());
            invocation.args.extend((!more.is_empty()).then(|| more.to_owned()));
            let done = run(invocation, &order(rebuild), &host);
            assert!(done.success() && done.stdout.contains("libx.so"));
            host.runner.started() - before
        };
        assert_eq!([starts(false, ""), starts(false, ""), starts(false, "--offline")], [1, 0, 0]);
        assert_eq!([starts(true, ""), starts(false, "")], [1, 0], "forced");
        assert_eq!([starts(false, "-x"), starts(false, "-x")], [1, 0], "told something else");
        for (name, text) in [
            ("ws/hook-runtime/src/lib.rs", "2"),
            ("ws/hook-runtime/src/new.rs", ""),
            ("flags.json", "{ }"),
            ("rust-toolchain.toml", ""),
            ("libx.so", "other"),
        ] {
            write(name, text);
            assert_eq!([starts(false, "-x"), starts(false, "-x")], [1, 0], "{name}");
        }
        fs::remove_file_if_there(&at("libx.so")).unwrap();
        assert_eq!(starts(false, "-x"), 1, "what was made is gone");
        write("stamp.json", "{");
        assert_eq!(starts(false, "-x"), 1, "a damaged stamp");
    }
}
