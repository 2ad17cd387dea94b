//! The three questions of autoconf: a header compiles, a library links, a
//! name is declared. Each compiles what autoconf 2.71 compiles for it.

use super::shell::{Shell, attempt};
use crate::{
    error::Error,
    model::{Check, Component, Evidence, Family, Verdict},
    probe::Trial,
};

/// The headers that autoconf puts in front of a header in question, where the
/// C library has them.
const DEFAULT_HEADERS: [&str; 9] = [
    "stdio.h",
    "stdlib.h",
    "string.h",
    "inttypes.h",
    "stdint.h",
    "strings.h",
    "sys/types.h",
    "sys/stat.h",
    "unistd.h",
];

/// What a question is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct About {
    /// The check's stable name.
    pub id: &'static str,
    /// What it is part of.
    pub component: Component,
}

/// Whether a header compiles behind autoconf's usual ones.
pub(super) fn header(shell: &mut Shell<'_>, about: About, header: &str) -> Result<bool, Error> {
    let usual: String = DEFAULT_HEADERS
        .map(|name| format!("#if __has_include(<{name}>)\n#include <{name}>\n#endif\n"))
        .concat();
    let source = format!("{usual}#include <{header}>\n");
    let label = format!("for {header}");
    shell.checking(&label);
    let trial = shell.compile(&source)?;
    let what = format!("compile `#include <{header}>`");
    answer(shell, about, label, &what, &trial)
}

/// Whether a symbol links. `library` is the text behind `-l`, which may hold
/// the original's stray blank; `others` follow it.
pub(super) fn library(
    shell: &mut Shell<'_>,
    about: About,
    library: &str,
    symbol: &str,
    others: &str,
) -> Result<bool, Error> {
    let source = format!("char {symbol} ();\nint main(void) {{ return {symbol} (); }}\n");
    let label = format!("for {symbol} in -l{library}");
    shell.checking(&label);
    let libs = format!("-l{library} {others} {}", shell.libs);
    let trial = shell.link(&source, &libs)?;
    let what = format!("link a call of `{symbol}` with -l{}", library.trim());
    answer(shell, about, label, &what, &trial)
}

/// Whether a header declares a name, as a macro or otherwise. The header comes
/// alone: the original names it in place of autoconf's usual ones.
pub(super) fn declaration(
    shell: &mut Shell<'_>,
    about: About,
    name: &str,
    header: &str,
) -> Result<bool, Error> {
    let source = format!(
        "#include <{header}>\nint main(void)\n{{\n#ifndef {name}\n  (void) {name};\n#endif\n  \
         return 0;\n}}\n"
    );
    let label = format!("whether {name} is declared");
    shell.checking(&label);
    let trial = shell.compile(&source)?;
    let what = format!("compile a use of `{name}` from {header}");
    answer(shell, about, label, &what, &trial)
}

fn answer(
    shell: &mut Shell<'_>,
    about: About,
    label: String,
    what: &str,
    trial: &Trial,
) -> Result<bool, Error> {
    shell.answered(Check {
        id: about.id.to_owned(),
        label,
        family: Family::Configure,
        component: Some(about.component),
        verdict: if trial.ok { Verdict::Yes } else { Verdict::No },
        detail: None,
        detail_is_answer: false,
        evidence: Evidence { attempts: vec![attempt(what, &trial.completed)], hint: None },
        preset: None,
        cached: false,
    });
    Ok(trial.ok)
}
