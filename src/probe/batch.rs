//! Many questions in one run: all declarations in one translation unit, all
//! libraries in one link.
//!
//! Pure functions over texts. A unit holds the probes as they are, each behind
//! a `#line` of its own, so that an error names its probe; one that names none
//! leaves everything open. The last probe has to be refused: that its errors
//! are there shows that the compiler came to the end, and that it refuses
//! anything at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::catalog::{Probe, headers, probe};

/// The name of a unit; an error in it belongs to no probe.
pub const UNIT: &str = "ucx-configure-batch.c";

/// The name of the program that needs all symbols.
pub const PROGRAM: &str = "ucx-configure-link.s";

/// What is said for a probe whose header is not there.
const ABSENT: &str = "ucx_configure_header_is_absent";

/// The probe that has to be refused.
const LAST: &str = "control.bad";

/// Says in a message that messages are shown.
const SHOWN: &str = "messages";

/// The file name that a probe's own run shows in diagnostics.
pub fn file_name(probe: &Probe) -> String {
    probe.file.replace('/', "-")
}

/// One translation unit that answers every declaration. `mark` begins each
/// message with a version; `macros` are the versions asked for.
pub fn unit(probes: &[&Probe], mark: &str, macros: &[&str]) -> String {
    let mut text = String::from(
        "#if !defined(__has_include)\n#error \"which headers are there cannot be asked\"\n#else\n",
    );
    let mut seen = BTreeSet::new();
    for (number, probe) in probes.iter().enumerate() {
        // No sooner than needed: what is not declared is compared with
        // everything that is, to guess what was meant.
        for header in headers(probe).filter(|header| seen.insert(*header)) {
            let _ = writeln!(text, "#if __has_include(<{header}>)\n#include <{header}>\n#endif");
        }
        question(&mut text, number, probe);
    }
    text.push_str("#define UCX_CONFIGURE_TEXT_(x) #x\n");
    text.push_str("#define UCX_CONFIGURE_TEXT(x) UCX_CONFIGURE_TEXT_(x)\n");
    for name in macros {
        let value = format!("\"{mark} \\\"{name}\\\" \" UCX_CONFIGURE_TEXT({name})");
        let _ = writeln!(text, "#ifdef {name}\n#pragma message ({value})\n#endif");
    }
    let _ = writeln!(text, "#pragma message (\"{mark} \\\"{SHOWN}\\\" 1\")");
    question(&mut text, probes.len(), probe(LAST));
    text.push_str("#endif\n");
    text
}

/// Adds a probe, if its headers are there.
fn question(text: &mut String, number: usize, probe: &Probe) {
    let needs: Vec<String> =
        headers(probe).map(|header| format!("__has_include(<{header}>)")).collect();
    let needs = if needs.is_empty() { "1".to_owned() } else { needs.join(" && ") };
    let file = file_name(probe);
    let _ = writeln!(text, "#if {needs}");
    part(text, number, probe);
    let _ =
        writeln!(text, "#else\n#line 1 \"{file}\"\n#error {ABSENT}\n#line 1 \"{UNIT}\"\n#endif");
}

/// A program that needs these symbols, in assembly: a linker does not care
/// what a reference was compiled from, and the compiler proper is the dearest
/// part of a link. `pointer_size` is in bytes.
pub fn program(symbols: &[&str], pointer_size: u32) -> String {
    let mut text = String::from("\t.data\n\t.globl main\nmain:\n");
    for symbol in symbols {
        let _ = writeln!(text, "\t.{pointer_size}byte {symbol}");
    }
    text.push_str("\t.byte 0\n\t.section .note.GNU-stack,\"\",@progbits\n");
    text
}

/// Adds a probe, its `main` under a name of its own.
fn part(text: &mut String, number: usize, probe: &Probe) {
    let _ = writeln!(text, "#define main ucx_configure_main_{number}");
    let _ = writeln!(text, "#line 1 \"{}\"", file_name(probe));
    text.push_str(probe.text);
    let _ = writeln!(text, "#line 1 \"{UNIT}\"\n#undef main");
}

/// What a run over a unit showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The errors of each probe, by file name.
    errors: BTreeMap<String, String>,
    /// The lines that begin with the mark; none where messages are not shown.
    pub versions: Option<String>,
}

/// What a probe's own run would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// It succeeds.
    Yes,
    /// It fails, with these errors.
    No(String),
    /// It has to be asked alone.
    Unclear,
}

impl Reading {
    /// Reads what the compiler wrote; none where it did not come to its end or
    /// an error names no probe.
    pub fn new(stderr: &str, probes: &[&Probe], mark: &str) -> Option<Self> {
        let last = file_name(probe(LAST));
        let files: BTreeSet<String> =
            probes.iter().map(|probe| file_name(probe)).chain([last.clone()]).collect();
        let mut errors: BTreeMap<String, String> = BTreeMap::new();
        let mut versions = String::new();
        for line in stderr.lines() {
            match diagnostic(line) {
                Some((file, "error")) if files.contains(file) => {
                    let said = errors.entry(file.to_owned()).or_default();
                    said.push_str(line);
                    said.push('\n');
                }
                Some((_, "note" | "warning")) => versions.extend(message(line, mark)),
                Some(_) => return None,
                None if line.contains("error:") && !is_echo(line) => return None,
                None => {}
            }
        }
        let shown = versions.lines().any(|line| line.contains(SHOWN));
        errors.contains_key(&last).then_some(Self { errors, versions: shown.then_some(versions) })
    }

    /// What it shows of a probe.
    pub fn shown(&self, probe: &Probe) -> Shown {
        match self.errors.get(&file_name(probe)) {
            None => Shown::Yes,
            Some(said) if said.contains(ABSENT) => Shown::Unclear,
            Some(said) => Shown::No(said.clone()),
        }
    }
}

/// The file of a diagnostic, and how grave it is: `FILE:LINE:COLUMN: error: `.
fn diagnostic(line: &str) -> Option<(&str, &'static str)> {
    let (place, rest) = line.split_once(": ")?;
    let grave = ["error", "fatal error", "warning", "note"]
        .into_iter()
        .find(|word| rest.strip_prefix(word).is_some_and(|rest| rest.starts_with(':')))?;
    let mut parts = place.rsplitn(3, ':');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (first, second, file) = (parts.next()?, parts.next()?, parts.next());
    match file {
        Some(file) if is_number(first) && is_number(second) => Some((file, grave)),
        _ if is_number(first) => place.rsplit_once(':').map(|(file, _)| (file, grave)),
        _ => None,
    }
}

/// Whether a line shows the source that a diagnostic is about.
fn is_echo(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with('#') || text.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The marked text of a message, as a line of its own.
fn message(line: &str, mark: &str) -> Option<String> {
    let text = &line[line.find(mark)?..];
    let text = text.split(" [-W").next().unwrap_or(text);
    Some(format!("{}\n", text.trim_end_matches('\'')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::catalog::PROBES;

    const MARK: &str = "ucx_configure_version";

    fn some() -> Vec<&'static Probe> {
        ["nvml.header.nvml_h", "system.sys_ipc", "level.cuda_13_0"].map(probe).to_vec()
    }

    #[test]
    fn every_declaration_fits_into_one_unit() {
        let all: Vec<&Probe> = PROBES.iter().collect();
        let text = unit(&all, MARK, &["CUDA_VERSION"]);
        for probe in &all {
            assert!(text.contains(&format!("#line 1 \"{}\"\n{}", file_name(probe), probe.text)));
        }
        let text = program(&["one", "two"], 8);
        assert!(text.contains("main:\n\t.8byte one\n\t.8byte two\n"), "{text}");
    }

    #[test]
    fn errors_belong_to_their_probes() {
        // What gcc 12 and clang 14 say.
        for stderr in [
            "ucx-configure-batch.c:8:9: note: '#pragma message: ucx_configure_version \"CUDA_VERSION\" (12080/1)'\n\
             ucx-configure-batch.c:9:9: note: '#pragma message: ucx_configure_version \"messages\" 1'\n\
             nvml-nvml_h.c:1:2: error: #error ucx_configure_header_is_absent\n\
             system-sys_ipc.c: In function 'ucx_configure_main_1':\n\
             system-sys_ipc.c:9:11: error: 'SYS_ipc' undeclared (first use in this function)\n    9 |  error: x\n\
             control-bad.c:4:2: error: #error \"no\"\n",
            "ucx-configure-batch.c:8:9: warning: ucx_configure_version \"CUDA_VERSION\" (12080/1) [-W#pragma-messages]\n\
             #pragma message (\"error: \")\n        ^\n\
             ucx-configure-batch.c:8:9: warning: ucx_configure_version \"messages\" 1 [-W#pragma-messages]\n\
             nvml-nvml_h.c:1:2: error: ucx_configure_header_is_absent\n\
             system-sys_ipc.c:9:11: error: use of undeclared identifier 'SYS_ipc'\n\
             control-bad.c:4:2: error: \"no\"\n2 warnings and 3 errors generated.\n",
        ] {
            let reading = Reading::new(stderr, &some(), MARK).unwrap();
            assert_eq!(reading.shown(probe("nvml.header.nvml_h")), Shown::Unclear);
            assert_eq!(reading.shown(probe("level.cuda_13_0")), Shown::Yes);
            let Shown::No(said) = reading.shown(probe("system.sys_ipc")) else { panic!() };
            assert!(said.starts_with("system-sys_ipc.c:9:11: error: ") && said.contains("SYS_ipc"));
            let versions = reading.versions.unwrap();
            assert!(versions.starts_with("ucx_configure_version \"CUDA_VERSION\" (12080/1)\n"));
        }
    }

    #[test]
    fn what_is_unclear_stays_open() {
        let last = "control-bad.c:4:2: error: no\n";
        for stderr in [
            "",
            "/x/include/cuda.h:1:2: error: #error broken\n",
            "cc1: error: unrecognized argument\n",
            "/x/include/cuda_runtime.h:7:10: fatal error: crt/host_defines.h: No such file\n",
            "clang: error: no such thing\n",
            "/x/include/cuda.h:1: error: old compilers name no column\n",
        ] {
            let with_end =
                if stderr.is_empty() { String::new() } else { format!("{stderr}{last}") };
            assert_eq!(Reading::new(&with_end, &some(), MARK), None, "{stderr}");
        }
        let reading = Reading::new(last, &some(), MARK).unwrap();
        assert_eq!(reading.versions, None, "messages may be off");
    }
}
