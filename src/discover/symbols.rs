//! Which symbols a library file brings, as far as its tables tell.
//!
//! A prediction, never a proof: it says which libraries one link can be asked
//! about at once. Files that cannot be read to the last are unclear, and
//! unclear ones are asked about alone.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use object::{
    Endianness,
    elf::FileHeader64,
    read::{
        ReadRef,
        elf::{FileHeader as _, Sym as _},
    },
};

use super::library::{Class, classify};
use crate::host::fs;

/// How far linker scripts may lead to others.
const DEPTH: usize = 4;

/// What a library defines, and what it needs of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    /// The names that it brings.
    pub defined: BTreeSet<String>,
    /// The names that it wants to find elsewhere.
    pub wanted: BTreeSet<String>,
}

/// The file that a linker would take for `-lNAME`: in each directory the
/// shared library before the archive.
pub fn find(name: &str, dirs: &[Utf8PathBuf]) -> Option<Utf8PathBuf> {
    let names = [format!("lib{name}.so"), format!("lib{name}.a")];
    dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name))).find(|path| path.is_file())
}

/// The symbols of a library; none where its file does not tell.
pub fn symbols(path: &Utf8Path, machine: &str, dirs: &[Utf8PathBuf]) -> Option<Symbols> {
    read(path, machine, dirs, DEPTH)
}

fn read(path: &Utf8Path, machine: &str, dirs: &[Utf8PathBuf], depth: usize) -> Option<Symbols> {
    match classify(path, machine) {
        Class::Driver | Class::Stub | Class::Compat | Class::Runtime => {
            shared(&fs::in_parts(path).ok()?)
        }
        Class::Static => archive(&fs::read(path).ok()?),
        Class::LinkerScript if depth > 0 => {
            let bytes = fs::read(path).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            let mut all = Symbols::default();
            for member in members(&text, path, dirs)? {
                let member = read(&member, machine, dirs, depth - 1)?;
                all.defined.extend(member.defined);
                all.wanted.extend(member.wanted);
            }
            Some(all)
        }
        _ => None,
    }
}

/// The dynamic symbols of a shared library. A hidden version is there for
/// programs that were linked before, not for new ones.
fn shared<'data>(bytes: impl ReadRef<'data>) -> Option<Symbols> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let table = sections.symbols(endian, bytes, object::elf::SHT_DYNSYM).ok()?;
    let versions = sections.versions(endian, bytes).ok()?;
    let mut symbols = Symbols::default();
    for (index, symbol) in table.enumerate() {
        let name = String::from_utf8(symbol.name(endian, table.strings()).ok()?.to_vec()).ok()?;
        let hidden = versions
            .as_ref()
            .is_some_and(|versions| versions.version_index(endian, index).is_hidden());
        if name.is_empty() || symbol.st_bind() == object::elf::STB_LOCAL {
            continue;
        }
        if symbol.is_undefined(endian) {
            symbols.wanted.insert(name);
        } else if !hidden {
            symbols.defined.insert(name);
        }
    }
    Some(symbols)
}

/// The symbols in an archive's own index.
fn archive(bytes: &[u8]) -> Option<Symbols> {
    let archive = object::read::archive::ArchiveFile::parse(bytes).ok()?;
    let mut symbols = Symbols::default();
    for symbol in archive.symbols().ok()?? {
        let name = symbol.ok()?.name().to_vec();
        symbols.defined.insert(String::from_utf8(name).ok()?);
    }
    Some(symbols)
}

/// The files that a linker script names; none where one is not found.
fn members(text: &str, script: &Utf8Path, dirs: &[Utf8PathBuf]) -> Option<Vec<Utf8PathBuf>> {
    let text = without_comments(text).replace(['(', ')', ','], " ");
    let mut words = text.split_whitespace();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "GROUP" | "INPUT" | "AS_NEEDED" => {}
            "OUTPUT_FORMAT" | "SEARCH_DIR" | "OUTPUT_ARCH" | "TARGET" => {
                words.next();
            }
            _ => found.push(member(word.trim_matches('"'), script, dirs)?),
        }
    }
    Some(found)
}

fn member(word: &str, script: &Utf8Path, dirs: &[Utf8PathBuf]) -> Option<Utf8PathBuf> {
    if let Some(name) = word.strip_prefix("-l") {
        return find(name, dirs);
    }
    if word.starts_with('/') {
        return Some(word.into());
    }
    let beside = script.parent().map(|dir| dir.join(word));
    beside.into_iter().chain(dirs.iter().map(|dir| dir.join(word))).find(|path| path.is_file())
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        plain.push(' ');
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        fs::{Scratch, write_if_changed},
        process::{Invocation, Runner},
    };

    #[test]
    fn shared_libraries_archives_and_scripts_are_read() {
        let scratch = Scratch::new(None).unwrap();
        let dir = scratch.path().to_owned();
        let file = |name: &str| dir.join(name);
        write_if_changed(&file("a.c"), b"int elsewhere(void);\nint here(void){return elsewhere();}\nstatic int own(void){return 1;}\nint (*p)(void) = own;\n", 0o644).unwrap();
        let run = |script: &str| {
            let done = Runner::new().run(Invocation::new("sh").args(["-ec", script]).cwd(&dir));
            assert!(done.success(), "{}", done.stderr);
        };
        run("cc -shared -fPIC -o liba.so a.c && cc -c -o b.o a.c && ar rcs libb.a b.o");
        let text = format!(
            "/* a script */ OUTPUT_FORMAT(elf64-x86-64)\nGROUP ( {dir}/liba.so AS_NEEDED ( -lb ) )\n"
        );
        write_if_changed(&file("libc1.so"), text.as_bytes(), 0o644).unwrap();
        write_if_changed(&file("libd.so"), b"INPUT(liba.so)", 0o644).unwrap();
        write_if_changed(&file("libe.so"), b"INPUT(libnone.so)", 0o644).unwrap();
        let dirs = [dir.clone()];
        let of = |name: &str| symbols(&find(name, &dirs).unwrap(), std::env::consts::ARCH, &dirs);
        for name in ["a", "b", "c1", "d"] {
            let found = of(name).unwrap();
            assert!(found.defined.contains("here") && !found.defined.contains("own"), "{name}");
            assert_eq!(found.wanted.contains("elsewhere"), name != "b", "{name}");
        }
        assert_eq!(of("e"), None, "what a script names is not there");
        assert_eq!(find("nothing", &dirs), None);
        assert_eq!(symbols(&file("a.c"), "x86_64", &dirs), None);
    }
}
