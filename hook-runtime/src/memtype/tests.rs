use std::cell::RefCell;

use super::*;

/// A driver of made-up memory, which counts how often it is asked.
#[derive(Default)]
struct Fake {
    memory: Vec<Memory>,
    asked: RefCell<Vec<usize>>,
}

impl Oracle for Fake {
    fn ask(&self, address: usize) -> Answer {
        self.asked.borrow_mut().push(address);
        let holds = |memory: &&Memory| (memory.base..memory.end()).contains(&address);
        self.memory.iter().find(holds).map_or(Answer::NotCuda, |memory| Answer::Memory(*memory))
    }
}

impl Fake {
    fn with(memory: &[Memory]) -> Self {
        Self { memory: memory.to_vec(), asked: RefCell::default() }
    }

    fn questions(&self) -> usize {
        self.asked.take().len()
    }
}

fn event(kind: EventKind, address: usize, size: usize, class: MemoryClass) -> Event {
    Event { kind, address, size, class, symbol: c"test" }
}

fn allocated(types: &MemoryTypes, address: usize, size: usize, class: MemoryClass) {
    types.note(&event(EventKind::Allocated, address, size, class));
}

fn freed(types: &MemoryTypes, address: usize, size: usize) {
    types.note(&event(EventKind::Freed, address, size, MemoryClass::Unknown));
}

fn device(base: usize, length: usize) -> Memory {
    let flags = Flags::LEGACY_IPC;
    Memory { device: Some(1), flags, detailed: true, ..Memory::seen(Kind::Device, base, length) }
}

fn trusted() -> MemoryTypes {
    let types = MemoryTypes::new();
    types.trust(true);
    types
}

#[test]
fn an_event_tells_the_kind_and_the_bounds() {
    let types = trusted();
    allocated(&types, 0x1000, 0x100, MemoryClass::Device);
    allocated(&types, 0x1100, 0x100, MemoryClass::Managed);
    allocated(&types, 0x1200, 0x100, MemoryClass::Unknown);
    let known = |kind, base| Lookup::Known(Memory::seen(kind, base, 0x100));
    assert_eq!(types.lookup(0x1000, 0x100), known(Kind::Device, 0x1000));
    assert_eq!(types.lookup(0x11ff, 1), known(Kind::Managed, 0x1100));
    assert_eq!(types.lookup(0x10ff, 2), Lookup::Unknown, "two neighbours");
    assert_eq!(types.lookup(0x1200, 1), Lookup::Unknown, "the event did not say");
    assert_eq!(types.lookup(0xf00, 0x100), Lookup::Absent);
    assert_eq!(types.lookup(0xf00, 0x101), Lookup::Unknown);
    assert_eq!(types.lookup(0x1300, 1), Lookup::Absent);
    types.trust(false);
    assert_eq!(types.lookup(0x1000, 0x100), Lookup::Unknown, "nothing is believed");
}

#[test]
fn the_driver_is_asked_once_and_its_answer_ends_with_the_memory() {
    let types = trusted();
    let driver = Fake::with(&[device(0x1000, 0x100)]);
    allocated(&types, 0x1000, 0x100, MemoryClass::Unknown);
    for _ in 0..3 {
        assert_eq!(types.identify(&driver, 0x1080, 16), Some(device(0x1000, 0x100)));
    }
    assert_eq!(driver.questions(), 1);
    freed(&types, 0x1000, 0x100);
    // The driver still knows it, since the event comes before the call: not to be kept.
    for _ in 0..2 {
        assert_eq!(types.identify(&driver, 0x1080, 16), Some(device(0x1000, 0x100)));
    }
    assert_eq!(driver.questions(), 2);
    assert_eq!(types.lookup(0x1080, 16), Lookup::Absent);
    allocated(&types, 0x1000, 0x80, MemoryClass::Managed);
    assert_eq!(
        types.lookup(0x1000, 1),
        Lookup::Known(Memory::seen(Kind::Managed, 0x1000, 0x80)),
        "the address is used again"
    );
}

#[test]
fn memory_from_before_the_hooks_is_asked_for_and_kept_until_a_context_ends() {
    let types = trusted();
    let driver = Fake::with(&[device(0x4000, 0x1000)]);
    assert_eq!(types.identify(&driver, 0x4800, 8), Some(device(0x4000, 0x1000)));
    assert_eq!(types.lookup(0x4fff, 1), Lookup::Known(device(0x4000, 0x1000)));
    types.forget_asked();
    assert_eq!(types.lookup(0x4fff, 1), Lookup::Absent);
    assert_eq!(types.identify(&driver, 0x4800, 8), Some(device(0x4000, 0x1000)));
    // Freed with a size that nobody knows: the driver's answer has told it.
    freed(&types, 0x4000, 0);
    assert_eq!(types.lookup(0x4fff, 1), Lookup::Absent);
    driver.questions();
    assert_eq!(types.identify(&driver, 0x4fff, 1), Some(device(0x4000, 0x1000)));
    assert_eq!(types.identify(&driver, 0x4fff, 1), Some(device(0x4000, 0x1000)));
    assert_eq!(driver.questions(), 2, "freed memory is not kept");
}

#[test]
fn registered_host_memory_is_never_kept() {
    let types = trusted();
    let pinned = Memory { detailed: true, ..Memory::seen(Kind::Pinned, 0x9000, 0x1000) };
    let driver = Fake::with(&[pinned]);
    for _ in 0..2 {
        assert_eq!(types.identify(&driver, 0x9000, 0x1000), Some(pinned));
    }
    assert_eq!(driver.questions(), 2);
    // Allocated by a call whose release is seen, it is.
    allocated(&types, 0x9000, 0x1000, MemoryClass::Host);
    for _ in 0..3 {
        assert_eq!(types.identify(&driver, 0x9000, 0x1000), Some(pinned));
    }
    assert_eq!(driver.questions(), 1);
}

#[test]
fn a_range_over_several_allocations_is_walked() {
    let types = trusted();
    let driver = Fake::with(&[device(0x1000, 0x1000), device(0x2000, 0x1000)]);
    allocated(&types, 0x1000, 0x1000, MemoryClass::Unknown);
    allocated(&types, 0x2000, 0x1000, MemoryClass::Unknown);
    let found = types.identify(&driver, 0x1800, 0x1000).unwrap();
    assert_eq!((found.kind, found.base, found.length), (Kind::Device, 0x1000, 0x2000));
    assert!(found.flags.has(Flags::SEVERAL) && !found.flags.has(Flags::LEGACY_IPC));
    assert_eq!(driver.questions(), 2);
    assert_eq!(types.identify(&driver, 0x2800, 0x1000), None, "half of it is host memory");
    let mixed = Fake::with(&[
        device(0x1000, 0x1000),
        Memory { kind: Kind::Managed, ..device(0x2000, 0x1000) },
    ]);
    assert_eq!(trusted().identify(&mixed, 0x1fff, 2), None, "two kinds");
}

#[test]
fn host_memory_is_told_only_if_nothing_else_is_near() {
    let types = trusted();
    let driver = Fake::with(&[device(0x5000, 0x1000)]);
    let host = types.identify(&driver, 0x1000, 0x1000).unwrap();
    assert_eq!((host.kind, host.base, host.length), (Kind::Host, 0x1000, 0x1000));
    assert_eq!(types.identify(&driver, 0x4000, 0x1001), None);
    allocated(&types, 0x3000, 16, MemoryClass::Device);
    assert_eq!(types.identify(&driver, 0x2ff0, 0x100), None, "it spans an allocation");
}

#[test]
fn an_event_while_the_driver_is_asked_makes_the_answer_worthless() {
    struct Racing<'types>(&'types MemoryTypes);
    impl Oracle for Racing<'_> {
        fn ask(&self, _: usize) -> Answer {
            // Another thread frees and allocates between the question and the answer.
            freed(self.0, 0x1000, 0x1000);
            allocated(self.0, 0x1000, 0x1000, MemoryClass::Managed);
            Answer::Memory(device(0x1000, 0x1000))
        }
    }
    let types = trusted();
    allocated(&types, 0x1000, 0x1000, MemoryClass::Unknown);
    types.identify(&Racing(&types), 0x1000, 1);
    let managed = Memory::seen(Kind::Managed, 0x1000, 0x1000);
    assert_eq!(types.lookup(0x1000, 1), Lookup::Known(managed));
}

#[test]
fn a_contradiction_between_event_and_driver_leaves_nothing_known() {
    let types = trusted();
    let driver = Fake::with(&[device(0x1000, 0x1000)]);
    allocated(&types, 0x1000, 0x1000, MemoryClass::Managed);
    assert_eq!(types.identify(&driver, 0x1000, 1), Some(device(0x1000, 0x1000)));
    assert_eq!(types.lookup(0x1000, 1), Lookup::Absent, "and the driver is asked again");
}
