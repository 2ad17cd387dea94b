//! The structures of a loaded ELF object, as far as they are read.

/// Tags of the dynamic section, by their names in the ELF specification.
pub mod tag {
    #![expect(missing_docs, reason = "the names are those of the specification")]
    pub const NULL: u64 = 0;
    pub const PLTRELSZ: u64 = 2;
    pub const HASH: u64 = 4;
    pub const STRTAB: u64 = 5;
    pub const SYMTAB: u64 = 6;
    pub const RELA: u64 = 7;
    pub const RELASZ: u64 = 8;
    pub const STRSZ: u64 = 10;
    pub const SONAME: u64 = 14;
    pub const RPATH: u64 = 15;
    pub const PLTREL: u64 = 20;
    pub const JMPREL: u64 = 23;
    pub const RUNPATH: u64 = 29;
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    pub const VERSYM: u64 = 0x6fff_fff0;
    pub const RELACOUNT: u64 = 0x6fff_fff9;
    pub const VERNEED: u64 = 0x6fff_fffe;
    pub const VERNEEDNUM: u64 = 0x6fff_ffff;
    pub const VERDEF: u64 = 0x6fff_fffc;
}

/// A type whose values may have any bit pattern.
///
/// # Safety
///
/// The type has no padding and no invalid values.
pub unsafe trait Plain: Copy {}

/// One relocation with an addend (`Elf64_Rela`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Relocation {
    /// Where the slot is, relative to the object's base.
    pub offset: u64,
    info: u64,
    /// What is added to the symbol's address.
    pub addend: i64,
}

impl Relocation {
    /// The index of the symbol.
    pub fn symbol(&self) -> u32 {
        (self.info >> 32) as u32
    }

    /// The type of the relocation, a number that depends on the processor.
    pub fn kind(&self) -> u32 {
        (self.info & 0xffff_ffff) as u32
    }
}

/// One symbol (`Elf64_Sym`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Symbol {
    /// The offset of its name.
    pub name: u32,
    info: u8,
    other: u8,
    /// The section that defines it; 0 if another object does.
    pub section: u16,
    /// Its address, relative to the object's base.
    pub value: u64,
    /// Its length; 0 if not known.
    pub size: u64,
}

impl Symbol {
    /// Whether the symbol can be a function: not data, not thread-local.
    pub fn may_be_function(&self) -> bool {
        const NO_TYPE: u8 = 0;
        const FUNCTION: u8 = 2;
        const INDIRECT_FUNCTION: u8 = 10;
        matches!(self.info & 0xf, NO_TYPE | FUNCTION | INDIRECT_FUNCTION)
    }

    /// Whether the symbol's value is the address that other objects see for it. That
    /// of an indirect function is its resolver's instead.
    pub(super) fn has_address(&self) -> bool {
        self.value != 0 && matches!(self.info & 0xf, 0 | 2)
    }
}

/// One entry of the dynamic section (`Elf64_Dyn`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct DynamicEntry {
    pub(super) tag: u64,
    pub(super) value: u64,
}

// SAFETY: three 64-bit integers.
unsafe impl Plain for Relocation {}
// SAFETY: integers that fill 24 bytes without a gap.
unsafe impl Plain for Symbol {}
// SAFETY: two 64-bit integers.
unsafe impl Plain for DynamicEntry {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u16 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
