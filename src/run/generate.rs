//! `generate`: the manual, completions and tables, from the definitions that
//! the program itself works with.

use std::fmt::Write as _;

use clap_complete::Shell;

use super::print_line;
use crate::{
    cli::{self, Generated},
    discover::{
        Place,
        driver::DRIVER_DIRS,
        source::{CUDA_PLACES, GDRCOPY_PLACES},
    },
    emit::EMITTERS,
    env_vars::ENV_VARS,
    error::{CODES, Code, Error},
    exit::Exit,
    matrix::formats::FORMATS,
    model::{FEATURES, INSTALL_DIRS},
    probe::catalog::PROBES,
    remarks::REMARKS,
};

/// Runs it.
pub(super) fn run(what: Generated) -> Result<(), Error> {
    let text = match what {
        Generated::Man => manual()?,
        Generated::CompleteBash => completions(Shell::Bash),
        Generated::CompleteZsh => completions(Shell::Zsh),
        Generated::CompleteFish => completions(Shell::Fish),
        Generated::CompleteElvish => completions(Shell::Elvish),
        Generated::CompletePowershell => completions(Shell::PowerShell),
        Generated::Docs => docs(),
    };
    print_line(text.trim_end())
}

fn manual() -> Result<String, Error> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(cli::documented())
        .render(&mut bytes)
        .map_err(|error| fault(&error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| fault(&error.to_string()))
}

fn fault(said: &str) -> Error {
    Error::new(Code::Internal, "the manual page cannot be made").said(said)
}

fn completions(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut cli::documented(), "ucx-configure", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every table, each below its heading; `REFERENCE.md` is this text.
fn docs() -> String {
    let exits = Exit::ALL.map(|exit| [exit.code().to_string(), exit.doc().to_owned()]);
    let codes =
        CODES.iter().map(|row| [code(row.name), row.exit.code().to_string(), row.doc.to_owned()]);
    let remarks = REMARKS.iter().map(|(name, doc)| [code(name), (*doc).to_owned()]);
    let variables = ENV_VARS.iter().map(|row| {
        let argument = if row.is_argument { "yes" } else { "no" };
        [code(row.name), argument.to_owned(), row.doc.to_owned()]
    });
    let probes = PROBES.iter().map(|row| {
        let label = if row.label.is_empty() { "(a control)" } else { row.label };
        [code(row.id), code(&format!("probes/{}", row.file)), label.to_owned()]
    });
    let formats = EMITTERS.iter().map(|row| {
        let place = if row.file.is_some() { "every run" } else { "on request" };
        [code(row.id), code(row.name), place.to_owned(), row.doc.to_owned()]
    });
    let places = |places: &'static [Place]| {
        let numbered = places.iter().enumerate();
        numbered.map(|(index, place)| [(index + 1).to_string(), place.to_string()])
    };
    let drivers = DRIVER_DIRS.iter().map(|(dir, whose)| [code(dir), (*whose).to_owned()]);
    let matrix = FORMATS.iter().map(|row| [code(row.id), row.doc.to_owned()]);
    let features = FEATURES.iter().map(|row| {
        let since = row.since.map_or_else(|| "-".to_owned(), |since| since.to_string());
        [code(row.key), code(row.cfg), since, row.doc.to_owned()]
    });
    let dirs = INSTALL_DIRS
        .iter()
        .map(|row| [code(&format!("--{}", row.option)), code(row.default), row.doc.to_owned()]);
    let head = "# Reference\n\nMade by `ucx-configure generate docs` from the tables that the program works with.\n"
        .to_owned();
    [
        head,
        table("Exit codes", ["code", "meaning"], exits),
        table("Error codes", ["code", "exit", "meaning"], codes),
        table("Warnings and notes", ["code", "meaning"], remarks),
        table("Variables", ["variable", "also as NAME=VALUE", "what it is"], variables),
        table("Installation directories", ["option", "default", "what goes there"], dirs),
        table("Features", ["feature", "cfg of hook-runtime", "since CUDA", "what it is"], features),
        table("Probes", ["probe", "source", "checking"], probes),
        table("Formats", ["format", "file", "written", "what it is"], formats),
        table("Where CUDA is looked for", ["", "place"], places(CUDA_PLACES)),
        table("Where gdrcopy is looked for", ["", "place"], places(GDRCOPY_PLACES)),
        table("Where drivers are installed", ["directory", "whose"], drivers),
        table("Formats of `matrix`", ["format", "what it is"], matrix),
    ]
    .join("\n")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn table<const N: usize>(
    title: &str,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut text = format!("## {title}\n\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', r"\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_tables() {
        let text = docs();
        let rows = Exit::ALL.len()
            + CODES.len()
            + REMARKS.len()
            + ENV_VARS.len()
            + INSTALL_DIRS.len()
            + FEATURES.len()
            + PROBES.len()
            + EMITTERS.len()
            + FORMATS.len()
            + CUDA_PLACES.len()
            + GDRCOPY_PLACES.len()
            + DRIVER_DIRS.len();
        // Two lines of a head for each of the twelve tables.
        assert_eq!(text.lines().filter(|line| line.starts_with('|')).count(), rows + 24);
        for name in ["E0101", "W0101", "CUDA_HOME", "cuda.header.cuda_h", "config-site", "junit"] {
            assert!(text.contains(&format!("| `{name}` |")), "{name}");
        }
        assert!(table("T", ["a"], [["x|y".to_owned()]]).ends_with("| x\\|y |\n"));
    }

    /// With `UCX_CONFIGURE_BLESS=1` the file is written anew.
    #[test]
    fn the_reference_and_the_readme_are_what_the_tables_say() {
        let root = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = root.join("REFERENCE.md");
        if crate::host::env::Snapshot::take().get("UCX_CONFIGURE_BLESS").is_some() {
            crate::host::fs::write_if_changed(&file, docs().as_bytes(), 0o644).unwrap();
        }
        let kept = crate::host::fs::read_to_string(&file).unwrap();
        let made = docs();
        let drifted = made.lines().zip(kept.lines()).find(|(now, then)| now != then);
        assert!(
            drifted.is_none(),
            "REFERENCE.md drifted; write it with UCX_CONFIGURE_BLESS=1: {drifted:?}"
        );
        assert_eq!(
            made.len(),
            kept.len(),
            "REFERENCE.md drifted; write it with UCX_CONFIGURE_BLESS=1"
        );
        let readme = crate::host::fs::read_to_string(&root.join("README.md")).unwrap();
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.doc());
            assert!(readme.contains(&row), "README.md lacks {row}");
        }
        // Every command that is shown has its place in the README.
        for command in cli::documented().get_subcommands() {
            let name = format!("ucx-configure {}", command.get_name());
            assert!(readme.contains(&name), "README.md does not show `{name}`");
        }
        assert!(readme.contains("(REFERENCE.md)"), "README.md does not lead to it");
    }

    #[test]
    fn the_manual_and_completions_know_the_options_and_commands() {
        let manual = manual().unwrap();
        assert!(manual.contains(r".TH ucx-configure 1"), "{manual}");
        let texts = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell]
            .map(completions);
        for text in texts {
            for word in ["with-cuda", "includedir", "emit", "require"] {
                assert!(text.contains(word), "{word} in\n{text}");
            }
            assert!(!text.contains("complete-elvish"), "hidden commands stay hidden");
        }
        for word in ["with\\-cuda", "includedir", "emit", "CUDA_HOME", "loader\\*(Aqs cache"] {
            assert!(manual.contains(word), "{word} in\n{manual}");
        }
    }
}
