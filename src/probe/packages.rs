//! Asks pkg-config about CUDA, once: what it said is kept with what was read.

use camino::Utf8PathBuf;

use super::{
    Trial,
    known::{self, Known},
};
use crate::{
    discover::Parts,
    host::{
        pkg_config,
        process::{Completed, Invocation, Status},
    },
    ui::{Event, Sink},
};

/// Begins a line with a directory for headers, and one for libraries.
const MARKS: [&str; 2] = ["-I", "-L"];

/// The directories that the packages of one release name.
pub fn ask(files: &[Utf8PathBuf], known: Option<&Known>, sink: &mut dyn Sink) -> Parts {
    let mut parts = Parts::default();
    for file in files {
        let text = said(file, known);
        sink.event(&Event::Decided(&format!("pkg-config says of {file}: {}", text.trim())));
        for line in text.lines() {
            for (mark, dirs) in MARKS.iter().zip([&mut parts.include_dirs, &mut parts.library_dirs])
            {
                let dir = line.strip_prefix(mark).map(Utf8PathBuf::from);
                if let Some(dir) = dir.filter(|dir| !dirs.contains(dir)) {
                    dirs.push(dir);
                }
            }
        }
    }
    parts
}

/// What pkg-config says of one file, a directory a line.
fn said(file: &Utf8PathBuf, known: Option<&Known>) -> String {
    let key = known::key(["pkg-config", file.as_str()]);
    let invocation = || Invocation::new("pkg-config").arg(file.as_str());
    if let Some(trial) = known.and_then(|known| known.trial(&key, invocation)) {
        if let Some(known) = known {
            known.is_to_be_told(&key);
        }
        return trial.completed.stdout;
    }
    let since = std::time::SystemTime::now();
    let (ok, text) = match pkg_config::ask(file) {
        Ok(package) => {
            let includes = package.include_dirs.iter().map(|dir| format!("-I{dir}\n"));
            let libraries = package.library_dirs.iter().map(|dir| format!("-L{dir}\n"));
            (true, includes.chain(libraries).collect())
        }
        Err(said) => (false, said.lines().next().unwrap_or_default().to_owned()),
    };
    if let Some(known) = known {
        known.record(|reads| {
            reads.file(file.clone(), since);
            reads.programs.extend(["pkg-config", "pkgconf"].map(str::to_owned));
        });
        let completed = Completed {
            invocation: invocation(),
            status: Status::Exited(i32::from(!ok)),
            stdout: text.clone(),
            stderr: String::new(),
            truncated: false,
            took: std::time::Duration::ZERO,
        };
        known.keep(key.clone(), &Trial { completed, ok });
        known.is_to_be_told(&key);
    }
    text
}
