//! Which file a linker took, and what a library file is.

use camino::{Utf8Path, Utf8PathBuf};
use object::{Object as _, read::elf::FileHeader as _};

use crate::host::fs;

/// What a library file is, as far as linking goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A shared library for the machine that is compiled for.
    Shared,
    /// The same, in a directory of stubs.
    Stub,
    /// An archive.
    Archive,
    /// A text that names other files, as linkers understand it.
    LinkerScript,
    /// An ELF file for another machine or word size.
    WrongMachine,
    /// An empty file.
    Empty,
    /// Something else.
    NotALibrary,
    /// A link that leads nowhere.
    Dangling,
}

impl Class {
    /// What follows for a link, in words after the file's name; none where it
    /// should work.
    pub const fn trouble(self) -> Option<&'static str> {
        match self {
            Self::Shared | Self::Stub | Self::Archive | Self::LinkerScript => None,
            Self::WrongMachine => Some("is for another kind of machine"),
            Self::Empty => Some("is an empty file"),
            Self::NotALibrary => Some("is not a library"),
            Self::Dangling => Some("is a link that leads nowhere"),
        }
    }
}

/// Classifies a file; `machine` is the one that is compiled for.
pub fn classify(path: &Utf8Path, machine: &str) -> Class {
    match fs::read(path) {
        Ok(bytes) => classify_bytes(path, &bytes, machine),
        Err(_) => Class::Dangling,
    }
}

/// Classifies a file whose content is known.
pub(super) fn classify_bytes(path: &Utf8Path, bytes: &[u8], machine: &str) -> Class {
    if bytes.is_empty() {
        return Class::Empty;
    }
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return Class::Archive;
    }
    if bytes.starts_with(b"\x7fELF") {
        return match machine_of(bytes) {
            Some(found) if found == machine || machine == "unknown" => {
                let stub = path.components().any(|part| part.as_str() == "stubs");
                if stub { Class::Stub } else { Class::Shared }
            }
            Some(_) => Class::WrongMachine,
            None => Class::NotALibrary,
        };
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let script = ["GROUP", "INPUT", "OUTPUT_FORMAT"].iter().any(|word| text.contains(word));
    if script { Class::LinkerScript } else { Class::NotALibrary }
}

/// The machine of an ELF file, by the names of compiler targets.
fn machine_of(bytes: &[u8]) -> Option<&'static str> {
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes);
    let Ok(file) = file else {
        // A 32-bit file is for another machine than any of ours.
        return object::elf::FileHeader32::<object::Endianness>::parse(bytes)
            .ok()
            .map(|_| "32-bit");
    };
    Some(match file.architecture() {
        object::Architecture::X86_64 => "x86_64",
        object::Architecture::Aarch64 => "aarch64",
        object::Architecture::PowerPc64 => "powerpc64le",
        object::Architecture::Riscv64 => "riscv64",
        _ => "other",
    })
}

/// The files that a linker says it took (`-Wl,--trace`), one a line. GNU ld,
/// gold, lld and mold print paths; older GNU ld prints `-lNAME (PATH)`.
pub fn traced(output: &str) -> Vec<Utf8PathBuf> {
    output
        .lines()
        .filter_map(|line| {
            let line = line.trim();
            let line = line.split_once(": ").map_or(line, |(tool, rest)| {
                // mold and gold put their name before the path.
                if tool.contains('/') && !tool.ends_with("ld") { line } else { rest }
            });
            match line.split_once(" (") {
                Some((name, rest)) if name.starts_with("-l") => rest.strip_suffix(')'),
                _ => Some(line),
            }
        })
        .filter(|path| path.contains(".so") || path.contains(".a"))
        .map(|path| path.split('(').next().unwrap_or(path))
        .map(Utf8PathBuf::from)
        .collect()
}

/// The file that the linker took for `-lNAME`.
pub fn taken(output: &str, name: &str) -> Option<Utf8PathBuf> {
    let (shared, archive) = (format!("lib{name}.so"), format!("lib{name}.a"));
    traced(output).into_iter().find(|path| {
        path.file_name().is_some_and(|file| file.starts_with(&shared) || file == archive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::{Scratch, write_if_changed};

    #[test]
    fn reads_what_linkers_trace() {
        // GNU ld 2.40, gold, lld 14, mold; GNU ld before 2.27.
        for output in [
            "/usr/lib/crt1.o\n/tmp/cc.o\n/x/lib64/stubs/libcuda.so\n/lib/libc.so.6\n",
            "/x/lib64/stubs/libcuda.so\n/usr/lib/gcc/libgcc.a(_muldi3.o)\n",
            "trace: /x/lib64/stubs/libcuda.so\n",
            "-lcuda (/x/lib64/stubs/libcuda.so)\n",
        ] {
            assert_eq!(taken(output, "cuda").unwrap(), "/x/lib64/stubs/libcuda.so", "{output}");
            assert_eq!(taken(output, "cudart"), None);
        }
        let archive = "/x/lib64/libcudart_static.a\n/x/lib64/libcudart_static.a(cuda.o)\n";
        assert_eq!(taken(archive, "cudart_static").unwrap(), "/x/lib64/libcudart_static.a");
    }

    #[test]
    fn files_are_told_apart() {
        let scratch = Scratch::new(None).unwrap();
        let class = |name: &str, bytes: &[u8]| {
            let path = scratch.path().join(name);
            write_if_changed(&path, bytes, 0o644).unwrap();
            classify(&path, "x86_64")
        };
        assert_eq!(class("a.so", b""), Class::Empty);
        assert_eq!(class("b.so", b"not a library"), Class::NotALibrary);
        assert_eq!(class("c.so", b"GROUP ( libx.so )"), Class::LinkerScript);
        assert_eq!(class("d.a", b"!<arch>\n"), Class::Archive);
        assert_eq!(class("e.so", b"\x7fELF"), Class::NotALibrary);
        assert_eq!(classify(Utf8Path::new("/gone/libcuda.so"), "x86_64"), Class::Dangling);
        let own = crate::host::env::current_exe().unwrap();
        let own = Utf8PathBuf::from_path_buf(own).unwrap();
        assert_eq!(classify(&own, std::env::consts::ARCH), Class::Shared);
        assert_eq!(classify(&own, "sparc"), Class::WrongMachine);
    }
}
