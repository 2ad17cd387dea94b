use super::*;
use crate::sys::loader::{self, ProgramHeader};

fn with_images<R>(use_images: impl FnOnce(&[Image<'_>]) -> R) -> R {
    loader::with_objects(|objects, _| {
        let images: Vec<_> = objects.iter().filter_map(|object| Image::new(*object)).collect();
        use_images(&images)
    })
}

#[test]
fn symbols_are_found_where_the_loader_finds_them() {
    let expected = loader::lookup(loader::Scope::Global, c"getpid", None).unwrap();
    with_images(|images| {
        let holding: Vec<_> = images.iter().filter(|image| image.contains(expected)).collect();
        let [library] = holding[..] else { panic!("one object holds the function") };
        assert!(library.contains_code(expected));
        assert_eq!(library.soname(), Some(c"libc.so.6"));
        let tables = library.tables().unwrap();
        assert!(tables.definitions(&Name::new(c"getpid")).any(|found| found == expected));
        assert!(tables.lends(&Name::new(c"getpid"), expected));
        assert!(!tables.lends(&Name::new(c"getpid"), expected + 1));
        assert!(tables.definitions(&Name::new(c"hook_runtime_no_such_symbol")).next().is_none());
    });
}

#[test]
fn references_have_the_versions_that_they_were_linked_with() {
    with_images(|images| {
        let program = images[0];
        let tables = program.tables().unwrap();
        let relocations = program.call_relocations().iter().chain(program.data_relocations());
        let version = relocations
            .filter(|relocation| relocation.symbol() != 0)
            .find(|relocation| {
                let symbol = tables.symbol(relocation.symbol());
                symbol.and_then(|symbol| tables.name(symbol)) == Some(c"dl_iterate_phdr")
            })
            .and_then(|relocation| tables.needed_version(relocation.symbol()));
        assert!(version.unwrap().to_bytes().starts_with(b"GLIBC_2."));
    });
}

/// An object made by hand: one segment with a dynamic section at its front.
struct Fake {
    memory: Vec<u64>,
    headers: [ProgramHeader; 2],
}

impl Fake {
    fn new(dynamic: &[(u64, u64)]) -> Self {
        let mut memory: Vec<u64> = dynamic.iter().flat_map(|&(tag, value)| [tag, value]).collect();
        memory.resize(512, 0);
        let header = |kind, length: usize| ProgramHeader {
            p_type: kind,
            p_flags: segment::READABLE,
            p_offset: 0,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: 0,
            p_memsz: length as u64,
            p_align: 0,
        };
        let headers = [header(segment::LOAD, 4096), header(segment::DYNAMIC, dynamic.len() * 16)];
        Self { memory, headers }
    }

    fn image(&self) -> Image<'_> {
        let base = self.memory.as_ptr() as usize;
        // SAFETY: the one segment is the memory of `self`, which outlives the image.
        let object = unsafe { LoadedObject::from_parts(base, c"fake", &self.headers) };
        Image::new(object).unwrap()
    }
}

#[test]
fn entries_that_lead_outside_the_object_yield_nothing() {
    let wild = u64::MAX - 7;
    for value in [4096, 1 << 40, wild] {
        let fake = Fake::new(&[
            (tag::STRTAB, value),
            (tag::STRSZ, 64),
            (tag::SYMTAB, value),
            (tag::SONAME, 3),
            (tag::JMPREL, value),
            (tag::PLTRELSZ, 24),
            (tag::PLTREL, tag::RELA),
            (tag::RELA, value),
            (tag::RELASZ, wild),
            (tag::GNU_HASH, value),
        ]);
        let image = fake.image();
        assert_eq!(image.soname(), None);
        assert!(image.tables().is_none());
        assert!(image.call_relocations().is_empty());
        assert!(image.data_relocations().is_empty());
    }
}

#[test]
fn damaged_tables_yield_nothing() {
    // Strings, symbols and both hash tables lie inside, but hold nonsense.
    let fake = Fake::new(&[
        (tag::STRTAB, 1024),
        (tag::STRSZ, 64),
        (tag::SYMTAB, 1024),
        (tag::GNU_HASH, 2048),
        (tag::HASH, 2048),
        (tag::VERSYM, 2048),
        (tag::VERNEED, 2048),
        (tag::VERNEEDNUM, u64::MAX),
        (tag::RELACOUNT, u64::MAX),
    ]);
    let image = fake.image();
    let tables = image.tables().unwrap();
    assert!(tables.definitions(&Name::new(c"cuMemAlloc_v2")).next().is_none(), "no bucket at all");
    assert_eq!(tables.needed_version(7), None);
    assert!(tables.symbol(u32::MAX).is_none());
    assert!(image.data_relocations().is_empty());
    assert_eq!(image.slot_value(image.base() + 4092), None, "over the end");
    assert_eq!(image.slot_value(image.base() + 1), None, "not aligned");
}

#[test]
fn an_object_whose_dynamic_section_lies_elsewhere_is_no_image() {
    let mut fake = Fake::new(&[(tag::SONAME, 0)]);
    fake.headers[1].p_vaddr = 1 << 30;
    // SAFETY: the one segment is the memory of `fake`; the other header is not a segment.
    let object =
        unsafe { LoadedObject::from_parts(fake.memory.as_ptr() as usize, c"fake", &fake.headers) };
    assert!(Image::new(object).is_none());
}
