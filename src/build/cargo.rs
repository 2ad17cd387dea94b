//! Finds cargo, runs it, and says what its failure means.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::stamp;
use crate::{
    error::{Code, Error, Remedy},
    host::{
        Host,
        process::{Completed, Invocation, Status, find_program},
    },
    model::Module,
    packages::{self, About, Item},
    ui::{Event, Sink},
};

/// How long cargo may take: a first build fetches and compiles some twenty
/// crates, perhaps on a slow machine.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// What cargo is to do.
#[derive(Clone)]
pub(super) struct Order<'a> {
    /// The program.
    pub(super) cargo: &'a Utf8Path,
    /// The workspace.
    pub(super) source: &'a Utf8Path,
    /// Where it may work.
    pub(super) target: &'a Utf8Path,
    /// The file with the cfg flags.
    pub(super) flags: &'a Utf8Path,
    /// Bindings to use instead of the kept ones.
    pub(super) bindings: Option<&'a Utf8Path>,
    /// What to build.
    pub(super) modules: &'a [Module],
    /// Whether binary instrumentation is built in.
    pub(super) bistro: bool,
    /// Whether the network is out of bounds.
    pub(super) offline: bool,
    /// The machine that the modules are for, as Rust calls it, where it is
    /// another than the one that builds.
    pub(super) rust_target: Option<String>,
    /// The linker, if cargo is not to choose.
    pub(super) linker: Option<String>,
    /// The C compiler, for build scripts.
    pub(super) compiler: Option<String>,
    /// Where it is kept what the last build was made from.
    pub(super) stamp: Option<&'a Utf8Path>,
    /// Whether cargo is asked whatever is kept.
    pub(super) rebuild: bool,
}

/// A module that cargo made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) module: Module,
    /// Where cargo left it.
    pub(super) file: Utf8PathBuf,
}

/// Finds cargo: CARGO, PATH, then where rustup puts it.
pub(super) fn find(host: &Host) -> Result<Utf8PathBuf, Error> {
    if let Some(named) = host.env.get("CARGO").filter(|value| !value.is_empty()) {
        let (found, _) = find_program(named, &host.env.path_dirs());
        return found.ok_or_else(|| {
            let means = format!("The variable CARGO names `{named}`, which cannot be executed.");
            no_cargo(means, host)
        });
    }
    let mut dirs = host.env.path_dirs();
    dirs.extend(cargo_home(host).map(|home| home.join("bin")));
    let (found, looked) = find_program("cargo", &dirs);
    found.ok_or_else(|| {
        let places: Vec<String> = looked.iter().map(|place| format!("`{place}`")).collect();
        no_cargo(format!("Looked for {}.", places.join(", ")), host)
    })
}

fn no_cargo(means: String, host: &Host) -> Error {
    let or = "take it from https://rustup.rs, or set CARGO";
    let rust = packages::hint(Item::Rust, host, &About::default(), Some(or));
    Error::new(Code::NoCargo, "cargo, which builds hook-runtime, was not found")
        .means(means)
        .hint(rust)
        .hint("To configure without building hook-runtime, add `--no-build`.")
        .remedy(Remedy::Set("--no-build".to_owned()))
}

/// Where cargo keeps the sources of crates.
pub(super) fn cargo_home(host: &Host) -> Option<Utf8PathBuf> {
    let named = host.env.get("CARGO_HOME").filter(|value| !value.is_empty());
    let home = || host.env.get("HOME").filter(|value| !value.is_empty());
    named
        .map(|dir| host.absolute(Utf8Path::new(dir)))
        .or_else(|| home().map(|home| Utf8Path::new(home).join(".cargo")))
}

/// Runs cargo and returns where each module is.
pub(super) fn run(order: &Order<'_>, host: &Host, sink: &mut dyn Sink) -> Result<Vec<Made>, Error> {
    let completed = stamp::run(invocation(order, host), order, host);
    sink.event(&Event::Ran { completed: &completed, source: None });
    host.runner.interrupt.check()?;
    if !completed.success() {
        return Err(failure(&completed, order.offline));
    }
    let artifacts = artifacts(&completed.stdout);
    let find = |module: Module| {
        let name = format!("{}.so", module.library());
        let file = artifacts.iter().find(|file| file.file_name() == Some(name.as_str()));
        file.map(|file| Made { module, file: file.clone() }).ok_or_else(|| {
            Error::new(Code::BuildFailed, format!("cargo did not say where it put `{name}`"))
                .command(&completed.invocation)
                .said(last_lines(&completed.stderr, 5))
                .hint("Set CARGO to a cargo of Rust 1.95 or later.")
        })
    };
    order.modules.iter().copied().map(find).collect()
}

/// The command line. cargo runs where the user stands, so that a
/// `.cargo/config.toml` there (a vendored source, a mirror) counts.
pub(super) fn invocation(order: &Order<'_>, host: &Host) -> Invocation {
    let mut invocation = Invocation::new(order.cargo.as_str())
        .args(["build", "--locked", "--profile", "module", "--message-format"])
        .arg("json-render-diagnostics")
        .args(["--manifest-path", order.source.join("Cargo.toml").as_str()])
        .args(["--target-dir", order.target.as_str()]);
    for module in order.modules {
        invocation = invocation.args(["-p", module.package()]);
    }
    if !order.bistro {
        invocation = invocation.arg("--no-default-features");
    }
    if order.offline {
        invocation = invocation.arg("--offline");
    }
    if let Some(target) = &order.rust_target {
        invocation = invocation.args(["--target", target]);
    }
    if let Some(linker) = &order.linker {
        let value = Value::from(linker.as_str());
        // Build scripts are for the machine that builds.
        let whose = order.rust_target.as_deref().unwrap_or("'cfg(all())'");
        invocation = invocation.args(["--config", &format!("target.{whose}.linker={value}")]);
    }
    if let Some(compiler) = &order.compiler {
        invocation = invocation.env("CC", compiler);
    }
    if let Some(bindings) = order.bindings {
        invocation = invocation.env("HOOK_RUNTIME_BINDINGS", bindings.as_str());
    }
    let mut invocation = invocation
        .env("HOOK_RUNTIME_REPORT", order.flags.as_str())
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(order, host).join("\u{1f}"))
        .env("CARGO_TERM_COLOR", "never")
        .cwd(host.cwd.clone())
        .time_limit(TIME_LIMIT);
    // The modules are for the machine that was configured, wherever cargo
    // would put them otherwise.
    invocation.env_remove.push("CARGO_BUILD_TARGET".to_owned());
    invocation
}

/// The user's own flags, and what keeps this machine's paths out of the
/// modules: the same sources give the same bytes wherever they are built.
/// Among prefixes that fit, the compiler takes the last.
fn rust_flags(order: &Order<'_>, host: &Host) -> Vec<String> {
    let encoded = host.env.get("CARGO_ENCODED_RUSTFLAGS").filter(|value| !value.is_empty());
    let plain = host.env.get("RUSTFLAGS").unwrap_or_default();
    let mut flags: Vec<String> = match encoded {
        Some(text) => text.split('\u{1f}').map(str::to_owned).collect(),
        None => plain.split_whitespace().map(str::to_owned).collect(),
    };
    let mut hide = |dir: &Utf8Path, name: &str| {
        flags.push(format!("--remap-path-prefix={dir}={name}"));
    };
    hide(&host.cwd, "/cwd");
    hide(order.source, "/ucx-configure");
    hide(order.target, "/target");
    if let Some(home) = cargo_home(host) {
        hide(&home, "/cargo");
    }
    flags
}

/// The shared libraries that cargo says it made, from its messages: one JSON
/// object on each line.
pub(super) fn artifacts(stdout: &str) -> Vec<Utf8PathBuf> {
    let files = |line: &str| -> Option<Vec<Utf8PathBuf>> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message.get("reason")?.as_str()? != "compiler-artifact" {
            return None;
        }
        let names = message.get("filenames")?.as_array()?.iter();
        Some(names.filter_map(|name| Some(Utf8PathBuf::from(name.as_str()?))).collect())
    };
    stdout
        .lines()
        .filter_map(files)
        .flatten()
        .filter(|file| file.extension() == Some("so"))
        .collect()
}

/// cargo's failure in four parts.
fn failure(completed: &Completed, offline: bool) -> Error {
    let error = Error::new(Code::BuildFailed, "hook-runtime could not be built")
        .command(&completed.invocation)
        .said(first_error(&completed.stderr));
    if let Status::NotStarted(..) | Status::TimedOut(_) | Status::Signalled(_) = completed.status {
        return error
            .means(format!("cargo did not come to an end: {}.", completed.status))
            .hint("Run the command by hand.");
    }
    let meaning = MEANINGS
        .iter()
        .find(|row| row.marks.iter().any(|mark| completed.stderr.contains(mark)))
        .unwrap_or(&UNKNOWN);
    let error = error.means(meaning.means);
    let error = if offline && meaning.network {
        error.hint("Run once without `--offline`, or `cargo fetch --locked` in the source.")
    } else {
        error
    };
    error.hint(meaning.hint).hint("To configure without building hook-runtime, add `--no-build`.")
}

/// What cargo says, and what it means.
struct Meaning {
    marks: &'static [&'static str],
    means: &'static str,
    hint: &'static str,
    network: bool,
}

/// The first row whose mark is in cargo's words counts.
const MEANINGS: &[Meaning] = &[
    Meaning {
        marks: &["-vV` (never executed)", "could not execute process `rustc"],
        means: "cargo is there, but rustc, the compiler that it starts, is not.",
        hint: "Install rustc beside cargo (`rustup toolchain install stable`), or set RUSTC to one.",
        network: false,
    },
    Meaning {
        marks: &["target may not be installed", "can't find crate for `std`"],
        means: "This Rust has no standard library for the machine that is configured for.",
        hint: "Add it with `rustup target add`; the command above names the target behind `--target`.",
        network: false,
    },
    Meaning {
        marks: &[
            "is not supported by the following package",
            "cannot be built because it requires rustc",
            "requires rustc",
        ],
        means: "This Rust is too old for hook-runtime.",
        hint: "Update Rust to 1.95 or later (`rustup update`), or set CARGO to a later cargo.",
        network: false,
    },
    Meaning {
        marks: &["no such command", "profile `module` is not defined"],
        means: "This cargo does not know what hook-runtime's workspace needs.",
        hint: "Update Rust to 1.95 or later, or set CARGO to a later cargo.",
        network: false,
    },
    Meaning {
        marks: &["because --locked was passed", "lock file needs to be updated"],
        means: "The lock file does not fit the manifests: the sources were changed.",
        hint: "Run `cargo update --workspace` in the source and look at the difference.",
        network: false,
    },
    Meaning {
        marks: &[
            "failed to download",
            "Could not resolve host",
            "Could not connect",
            "failed to get `",
            "no matching package",
            "failed to load source",
            "spurious network error",
            "--offline was specified",
        ],
        means: "Crates that hook-runtime needs are not on this machine, and could not be fetched.",
        hint: "Without a network, vendor them on another machine (`cargo vendor --locked`), and run here with that `.cargo/config.toml` in the working directory.",
        network: true,
    },
    Meaning {
        marks: &["linker `", "linking with `"],
        means: "The modules compiled, but could not be linked.",
        hint: "Install a C compiler and its linker, or set CC.",
        network: false,
    },
    Meaning {
        marks: &["No space left on device"],
        means: "The file system of the build directory is full.",
        hint: "Free space, or name another build directory with `-B DIR`.",
        network: false,
    },
    Meaning {
        marks: &["could not compile", "failed to run custom build command"],
        means: "hook-runtime does not compile with the features that were found.",
        hint: "This is most likely a fault of ours: please report it with `ucx-configure.json` and `config.log`.",
        network: false,
    },
];

/// The meaning of everything else.
const UNKNOWN: Meaning = Meaning {
    marks: &[],
    means: "cargo failed for a reason of its own.",
    hint: "Run the command by hand.",
    network: false,
};

/// cargo's first error with the lines that belong to it; its last lines where
/// nothing says "error".
fn first_error(stderr: &str) -> String {
    const MOST: usize = 20;
    let lines: Vec<&str> = stderr.lines().collect();
    let start = lines.iter().position(|line| line.starts_with("error"));
    let Some(start) = start else { return last_lines(stderr, 5) };
    let causes = |index: &usize| {
        // "Caused by:" comes after an empty line and belongs to the error.
        !lines[*index].is_empty()
            || lines.get(index + 1).is_some_and(|next| next.starts_with("Caused by"))
    };
    let kept: Vec<&str> =
        (start..lines.len()).take_while(causes).take(MOST).map(|index| lines[index]).collect();
    kept.join("\n")
}

/// The last lines of a text, without empty ones.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests;
