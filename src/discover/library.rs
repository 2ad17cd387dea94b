//! Which file a linker took, and what a library file is.

use camino::{Utf8Path, Utf8PathBuf};

use super::elf;
pub use crate::model::LibraryClass as Class;
use crate::{host::fs, model::LibraryFile};

/// Libraries that come with the driver: a toolkit has stubs of them at most,
/// so the system's own are as good.
pub const DRIVER_LIBRARIES: [&str; 2] = ["cuda", "nvidia-ml"];

/// How much of a file says what it is.
const HEAD: u64 = 4096;

/// A driver's library is larger than this; stubs are not.
const LARGEST_STUB: u64 = 1 << 20;

/// Classifies a file; `machine` is the one that is compiled for.
pub fn classify(path: &Utf8Path, machine: &str) -> Class {
    match fs::head(path, HEAD) {
        Ok(bytes) => classify_bytes(path, &bytes, machine),
        Err(_) if path.is_dir() => Class::NotElf,
        Err(_) => Class::Dangling,
    }
}

/// Classifies a file whose beginning is known.
fn classify_bytes(path: &Utf8Path, bytes: &[u8], machine: &str) -> Class {
    if bytes.is_empty() {
        return Class::Empty;
    }
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return match elf::archive_machine(path) {
            Some(found) if found != machine && machine != "unknown" => Class::WrongMachine,
            _ => Class::Static,
        };
    }
    if bytes.starts_with(b"\x7fELF") {
        return match elf::machine(bytes) {
            Some(found) if found == machine || machine == "unknown" => of_its_place(path),
            Some(_) => Class::WrongMachine,
            None => Class::NotElf,
        };
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let script = ["GROUP", "INPUT", "OUTPUT_FORMAT"].iter().any(|word| text.contains(word));
    if script { Class::LinkerScript } else { Class::NotElf }
}

/// What a shared library for our machine is: a driver's are told from stubs of
/// them by where they lie, or by being small and without any version.
fn of_its_place(path: &Utf8Path) -> Class {
    // `stubs`, or `stubs/lib64`; further up the name says nothing.
    let mut dirs = path.ancestors().skip(1).take(2);
    if dirs.any(|dir| dir.file_name() == Some("stubs")) {
        return Class::Stub;
    }
    let Some(stem) = driver_stem(path) else { return Class::Runtime };
    let real = fs::canonical(path).unwrap_or_else(|_| path.to_owned());
    let is_compat = |path: &Utf8Path| path.parent().and_then(Utf8Path::file_name) == Some("compat");
    if is_compat(path) || is_compat(&real) {
        return Class::Compat;
    }
    let has_version = |path: &Utf8Path| path.file_name().is_some_and(|name| name != stem);
    let beside = path.with_file_name(format!("{stem}.1")).exists();
    let is_small = fs::size(path).is_some_and(|size| size < LARGEST_STUB);
    match is_small && !beside && !has_version(&real) {
        true => Class::Stub,
        false => Class::Driver,
    }
}

/// `libcuda.so` of `libcuda.so.1` and its like; none for other libraries.
fn driver_stem(path: &Utf8Path) -> Option<String> {
    let file = path.file_name()?;
    DRIVER_LIBRARIES.iter().map(|name| format!("lib{name}.so")).find(|stem| {
        file.strip_prefix(stem.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Everything that a file says of itself. `linked` is whether a linker took it.
pub fn describe(name: &str, path: &Utf8Path, machine: &str, linked: bool) -> LibraryFile {
    let class = classify(path, machine);
    let is_shared = matches!(class, Class::Driver | Class::Stub | Class::Compat | Class::Runtime);
    let facts = if is_shared { elf::facts(path) } else { None };
    let facts = facts.as_ref();
    let real = fs::canonical(path).ok();
    let head = fs::head(path, HEAD).unwrap_or_default();
    let link = path.with_file_name(format!("lib{name}.so"));
    LibraryFile {
        name: name.to_owned(),
        path: path.to_owned(),
        real_path: real.filter(|real| real != path),
        class,
        linked,
        versioned_only: class != Class::Static && !link.is_symlink() && !link.exists(),
        machine: elf::machine(&head).map(str::to_owned),
        soname: facts.and_then(|facts| facts.soname.clone()),
        symbols: facts.map(|facts| facts.symbols),
        glibc: facts.and_then(|facts| facts.glibc_needed.as_ref()).map(ToString::to_string),
    }
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

/// The C library that the linker took.
pub fn c_library(output: &str) -> Option<Utf8PathBuf> {
    traced(output).into_iter().find(|path| path.file_name() == Some("libc.so.6"))
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
        assert_eq!(class("b.so", b"not a library"), Class::NotElf);
        assert_eq!(class("c.so", b"GROUP ( libx.so )"), Class::LinkerScript);
        assert_eq!(class("d.a", b"!<arch>\n"), Class::Static);
        assert_eq!(class("e.so", b"\x7fELF"), Class::NotElf);
        assert_eq!(classify(Utf8Path::new("/gone/libcuda.so"), "x86_64"), Class::Dangling);
        let own = crate::host::env::current_exe().unwrap();
        let own = Utf8PathBuf::from_path_buf(own).unwrap();
        assert_eq!(classify(&own, std::env::consts::ARCH), Class::Runtime);
        assert_eq!(classify(&own, "sparc"), Class::WrongMachine);
        let bytes = fs::head(&own, 64).unwrap();
        let machine = std::env::consts::ARCH;
        for (name, expected) in [
            ("stubs/libcuda.so", Class::Stub),
            ("stubs/lib64/libcuda.so.1", Class::Stub),
            ("stubs/cuda/lib64/libcudart.so", Class::Runtime),
            ("small/libcuda.so", Class::Stub),
            ("driver/libcuda.so.1", Class::Driver),
            ("driver/libcuda.so", Class::Driver),
            ("compat/libcuda.so.1", Class::Compat),
            ("compat/driver/libnvidia-ml.so.1", Class::Driver),
            ("compat/libcudart.so", Class::Runtime),
        ] {
            let path = scratch.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_if_changed(&path, &bytes, 0o644).unwrap();
            assert_eq!(classify(&path, machine), expected, "{name}");
        }
    }
}
