//! What an ELF file tells about its use of CUDA.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind,
    elf::{DT_RPATH, DT_RUNPATH, FileHeader64},
    read::elf::{Dyn as _, ElfFile64, FileHeader as _, SectionHeader as _},
};

use crate::{build::elf::Dynamic, host::fs};

/// A program or shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// The machine, by the compilers' name for it.
    pub machine: &'static str,
    /// Its name and what it is linked to.
    pub dynamic: Dynamic,
    /// DT_RPATH, as written.
    pub rpath: Vec<String>,
    /// DT_RUNPATH, as written.
    pub runpath: Vec<String>,
    /// The symbols that others have to define.
    pub imports: BTreeSet<String>,
    /// The functions that others can use.
    pub exports: BTreeSet<String>,
    /// The functions that it defines, as far as its symbols were kept.
    pub defined: BTreeSet<String>,
    /// Words at the end of strings in its constant data that begin with `cu`, `libcu` or `nvml`.
    pub words: BTreeSet<String>,
}

impl Image {
    /// Reads a file; none where it is no 64-bit ELF file.
    pub fn read(path: &Utf8Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let file = ElfFile64::<Endianness>::parse(bytes.as_slice()).ok()?;
        let (rpath, runpath) = run_paths(&bytes).unwrap_or_default();
        let named = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
            symbol.name().ok().map(str::to_owned)
        };
        let imports = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let exports = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let defined = file.symbols().chain(file.dynamic_symbols());
        let defined = defined.filter(|symbol| symbol.is_definition());
        Some(Self {
            path: path.to_owned(),
            machine: match file.architecture() {
                object::Architecture::X86_64 => "x86_64",
                object::Architecture::Aarch64 => "aarch64",
                object::Architecture::PowerPc64 => "powerpc64le",
                object::Architecture::Riscv64 => "riscv64",
                _ => "other",
            },
            dynamic: Dynamic::read(&bytes).unwrap_or_default(),
            rpath,
            runpath,
            imports: imports.filter_map(|symbol| named(&symbol)).collect(),
            exports: exports.filter_map(|symbol| named(&symbol)).collect(),
            defined: defined.filter_map(|symbol| named(&symbol)).collect(),
            words: words(&file),
        })
    }

    /// Its file's name, or the name inside where it has one.
    pub fn name(&self) -> &str {
        self.dynamic.soname.as_deref().or(self.path.file_name()).unwrap_or_default()
    }

    /// Whether it is a shared CUDA runtime, under whatever suffix.
    pub fn is_shared_runtime(&self) -> bool {
        self.name().starts_with("libcudart")
    }

    /// Whether a static CUDA runtime is linked into it: it opens the driver
    /// by name, and has the runtime's functions or its names of errors. The
    /// latter are there in a stripped file as well.
    pub fn embeds_runtime(&self) -> bool {
        let opens_driver = self.words.iter().any(|word| word.starts_with("libcuda.so"));
        let is_runtime =
            self.defined.contains("cudaMalloc") || self.words.contains("cudaErrorMemoryAllocation");
        !self.is_shared_runtime() && opens_driver && is_runtime
    }
}

/// DT_RPATH and DT_RUNPATH.
fn run_paths(bytes: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let (entries, link) =
        sections.iter().find_map(|section| section.dynamic(endian, bytes).ok().flatten())?;
    let strings = sections.strings(endian, bytes, link).ok()?;
    let (mut rpath, mut runpath) = (Vec::new(), Vec::new());
    for entry in entries {
        let place = match entry.d_tag(endian) {
            tag if tag == DT_RPATH => &mut rpath,
            tag if tag == DT_RUNPATH => &mut runpath,
            _ => continue,
        };
        let offset = u32::try_from(entry.d_val(endian)).ok()?;
        let text = String::from_utf8_lossy(strings.get(offset).ok()?).into_owned();
        place.extend(text.split(':').filter(|dir| !dir.is_empty()).map(str::to_owned));
    }
    Some((rpath, runpath))
}

/// The words that can be about CUDA, in sections of constants: names of
/// symbols, which a linked program has as well, are elsewhere.
fn words(file: &ElfFile64<'_, Endianness>) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for section in file.sections() {
        let of_constants = matches!(
            section.kind(),
            SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Data
        );
        let Ok(data) = section.data() else { continue };
        if !of_constants {
            continue;
        }
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        // Names that are passed to functions end in a NUL; a text that only speaks of them
        // does not.
        for string in data.split(|byte| *byte == 0) {
            let word = string.rsplit(|byte| !in_word(byte)).next().unwrap_or_default();
            let is_of_cuda =
                [&b"cu"[..], b"libcu", b"nvml"].iter().any(|start| word.starts_with(start));
            if is_of_cuda && word.len() < 64 {
                words.insert(String::from_utf8_lossy(word).into_owned());
            }
        }
    }
    words
}
