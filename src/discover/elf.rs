//! What an ELF file says of itself: machine, SONAME, symbols, and which C
//! library it needs or is.
//!
//! Only the parts that hold this are read. Nothing here says whether a link
//! works; it says why one did not.

use std::{fmt, str::FromStr};

use camino::Utf8Path;
use object::{
    Endianness,
    elf::{self, FileHeader32, FileHeader64},
    read::{
        ReadCache, ReadRef,
        archive::ArchiveFile,
        elf::{FileHeader, SectionTable, Sym as _},
    },
};

use crate::host::fs;

/// A version of the GNU C library, as symbol versions name it: `GLIBC_2.34`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glibc(Vec<u32>);

impl FromStr for Glibc {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let numbers = name.strip_prefix("GLIBC_").ok_or(())?;
        let parts: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        parts.map(Self).map_err(drop)
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// What a shared library says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The name that the loader will look for.
    pub soname: Option<String>,
    /// How many symbols it defines.
    pub symbols: usize,
    /// The newest version of the C library that it needs.
    pub glibc_needed: Option<Glibc>,
    /// The newest version of the C library that it is.
    pub glibc_defined: Option<Glibc>,
}

/// The machine of an ELF file by its first bytes, in the names of compiler
/// targets; `32-bit` for any that has narrow addresses.
pub fn machine(head: &[u8]) -> Option<&'static str> {
    let Ok(header) = FileHeader64::<Endianness>::parse(head) else {
        // A 32-bit file is for another machine than any of ours.
        return FileHeader32::<Endianness>::parse(head).ok().map(|_| "32-bit");
    };
    let endian = header.endian().ok()?;
    Some(match header.e_machine(endian) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_PPC64 => "powerpc64le",
        elf::EM_RISCV => "riscv64",
        _ => "other",
    })
}

/// The machine of the first object in an archive; none where there is none, or
/// it cannot be read.
pub fn archive_machine(path: &Utf8Path) -> Option<&'static str> {
    let data = fs::in_parts(path).ok()?;
    let data: &ReadCache<_> = &data;
    let archive = ArchiveFile::parse(data).ok()?;
    // Others than objects may come first.
    archive.members().take(4).find_map(|member| {
        let bytes = member.ok()?.data(data).ok()?;
        machine(bytes.get(..64)?)
    })
}

/// What a shared library says of itself; none where it cannot be read.
pub fn facts(path: &Utf8Path) -> Option<Facts> {
    let data = fs::in_parts(path).ok()?;
    let data: &ReadCache<_> = &data;
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let of = Sections { sections: &sections, endian, data };
    Some(Facts {
        soname: of.soname(),
        symbols: of.symbols(),
        glibc_needed: of.needed(),
        glibc_defined: of.defined(),
    })
}

/// The sections of a file.
struct Sections<'a, 'data, R: ReadRef<'data>> {
    sections: &'a SectionTable<'data, FileHeader64<Endianness>, R>,
    endian: Endianness,
    data: R,
}

impl<'data, R: ReadRef<'data>> Sections<'_, 'data, R> {
    fn soname(&self) -> Option<String> {
        let table = self.sections.dynamic_table(self.endian, self.data).ok()?;
        let name = table.iter().find(|entry| entry.tag == elf::DT_SONAME)?;
        Some(String::from_utf8_lossy(table.string(name).ok()?).into_owned())
    }

    fn symbols(&self) -> usize {
        let table = self.sections.symbols(self.endian, self.data, elf::SHT_DYNSYM);
        let is_defined = |symbol: &&elf::Sym64<Endianness>| {
            !symbol.is_undefined(self.endian) && symbol.st_bind() != elf::STB_LOCAL
        };
        table.map_or(0, |table| table.iter().filter(is_defined).count())
    }

    fn needed(&self) -> Option<Glibc> {
        let (needs, link) = self.sections.gnu_verneed(self.endian, self.data).ok()??;
        let strings = self.sections.strings(self.endian, self.data, link).ok()?;
        let mut newest = None;
        for (_, versions) in needs.flatten() {
            for version in versions.flatten() {
                newest = newest.max(glibc(version.name(self.endian, strings)));
            }
        }
        newest
    }

    fn defined(&self) -> Option<Glibc> {
        let (definitions, link) = self.sections.gnu_verdef(self.endian, self.data).ok()??;
        let strings = self.sections.strings(self.endian, self.data, link).ok()?;
        let mut newest = None;
        for (_, versions) in definitions.flatten() {
            for version in versions.flatten() {
                newest = newest.max(glibc(version.name(self.endian, strings)));
            }
        }
        newest
    }
}

fn glibc(name: object::read::Result<&[u8]>) -> Option<Glibc> {
    std::str::from_utf8(name.ok()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        fs::{Scratch, write_if_changed},
        process::{Invocation, Runner},
    };

    #[test]
    fn versions_of_the_c_library_are_compared_by_their_numbers() {
        let glibc = |text: &str| text.parse::<Glibc>();
        assert!(glibc("GLIBC_2.4").unwrap() < glibc("GLIBC_2.17").unwrap());
        assert!(glibc("GLIBC_2.2.5").unwrap() > glibc("GLIBC_2.2").unwrap());
        assert_eq!(glibc("GLIBC_2.34").unwrap().to_string(), "2.34");
        assert!(glibc("GLIBC_PRIVATE").is_err() && glibc("GCC_3.0").is_err());
    }

    #[test]
    fn a_library_says_its_name_its_symbols_and_what_it_needs() {
        let scratch = Scratch::new(None).unwrap();
        let dir = scratch.path();
        let file = |name: &str, text: &str| {
            write_if_changed(&dir.join(name), text.as_bytes(), 0o644).unwrap();
        };
        file("c.c", "int of_the_c_library(void) { return 0; }\n");
        file("c.map", "GLIBC_2.4 { };\nGLIBC_9.21 { of_the_c_library; };\n");
        file(
            "a.c",
            "int of_the_c_library(void);\nint a(void) { return of_the_c_library(); }\nint b(void) { return 0; }\n",
        );
        let script = "cc -shared -fPIC -nostdlib -Wl,-soname,libc.so.6 -Wl,--version-script=c.map -o libc.so.6 c.c && cc -shared -fPIC -nostdlib -Wl,-soname,liba.so.3 -o liba.so a.c libc.so.6";
        let done = Runner::new().run(Invocation::new("sh").args(["-ec", script]).cwd(dir));
        assert!(done.success(), "{}", done.stderr);
        let a = facts(&dir.join("liba.so")).unwrap();
        assert_eq!(a.soname.as_deref(), Some("liba.so.3"));
        assert_eq!(a.glibc_needed, Some("GLIBC_9.21".parse().unwrap()));
        assert!(a.symbols >= 2 && a.glibc_defined.is_none());
        let c = facts(&dir.join("libc.so.6")).unwrap();
        assert_eq!(c.glibc_defined, Some("GLIBC_9.21".parse().unwrap()));
        assert_eq!(facts(&dir.join("a.c")), None);
        assert_eq!(facts(&dir.join("gone")), None);
    }

    #[test]
    fn the_first_bytes_say_the_machine() {
        let own =
            fs::head(Utf8Path::from_path(&crate::host::env::current_exe().unwrap()).unwrap(), 64);
        assert_eq!(machine(&own.unwrap()), Some(std::env::consts::ARCH));
        let mut narrow = vec![0; 52];
        narrow[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        assert_eq!(machine(&narrow), Some("32-bit"));
        assert_eq!(machine(b"\x7fELF"), None);
        assert_eq!(machine(b""), None);
    }
}
