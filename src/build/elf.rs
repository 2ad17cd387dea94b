//! What a shared library says of itself: its name and what it needs.

use object::{
    Endianness,
    elf::{DT_NEEDED, DT_SONAME, FileHeader64},
    read::elf::{Dyn as _, FileHeader as _, SectionHeader as _},
};

/// A library's dynamic section, as far as we ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Its name inside.
    pub soname: Option<String>,
    /// The libraries that it is linked to, in order.
    pub needed: Vec<String>,
}

impl Dynamic {
    /// Reads a 64-bit ELF file's dynamic section; none when it is not one, or
    /// is not linked dynamically.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let (entries, link) =
            sections.iter().find_map(|section| section.dynamic(endian, bytes).ok().flatten())?;
        let strings = sections.strings(endian, bytes, link).ok()?;
        let mut found = Self::default();
        for entry in entries {
            let tag = entry.d_tag(endian);
            if tag != DT_NEEDED && tag != DT_SONAME {
                continue;
            }
            let offset = u32::try_from(entry.d_val(endian)).ok()?;
            let name = String::from_utf8_lossy(strings.get(offset).ok()?).into_owned();
            if tag == DT_SONAME {
                found.soname = Some(name);
            } else {
                found.needed.push(name);
            }
        }
        Some(found)
    }
}
