//! What the driver says of memory of every kind, and what is kept of it while hooks watch.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::cuda::driver::types::{AccessDescription, AllocationProperties, Location};
use hook_runtime::memtype::{self, Flags, Kind, Lookup, Memory, MemoryTypes};
use hook_runtime::settings::Modes;
use hook_runtime::{Options, install};
use on_mock::on_mock;

const LEVELS: [&str; 3] = ["10.2", "11.8", "13.0"];

/// A context that stays current.
fn driver() -> &'static Driver {
    let driver = Driver::get().unwrap();
    let mut context = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.primary_retain(&raw mut context, 0) }.unwrap();
    // SAFETY: the context was retained above.
    unsafe { driver.calls.context_set(context) }.unwrap();
    driver
}

fn plain(driver: &Driver, size: usize) -> usize {
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc(&raw mut address, size) }.unwrap();
    address as usize
}

fn free(driver: &Driver, address: usize) {
    // SAFETY: each test frees what it has allocated.
    unsafe { driver.calls.free(address as u64) }.unwrap();
}

const PIECE: usize = 2 << 20;

/// Maps `pieces` pieces of memory side by side.
fn mapped(driver: &Driver, kind: u32, pieces: usize) -> usize {
    let calls = &driver.calls;
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { calls.reserve(&raw mut address, pieces * PIECE, 0, 0, 0) }.unwrap();
    for piece in 0..pieces {
        let location = Location { kind, id: 0 };
        let properties =
            AllocationProperties { kind: 1, handle_types: 1, location, ..Default::default() };
        let (mut physical, at) = (0, address + (piece * PIECE) as u64);
        // SAFETY: the arguments are places of ours.
        unsafe { calls.create(&raw mut physical, PIECE, &raw const properties, 0) }.unwrap();
        // SAFETY: the addresses were reserved, the memory made, above.
        unsafe { calls.map(at, PIECE, 0, physical, 0) }.unwrap();
        let access = AccessDescription::read_write(0);
        // SAFETY: the range was mapped above.
        unsafe { calls.set_access(at, PIECE, &raw const access, 1) }.unwrap();
        // SAFETY: the mapping keeps the memory; the handle is given back once.
        unsafe { calls.release(physical) }.unwrap();
    }
    address as usize
}

fn ask(driver: &Driver, address: usize, length: usize) -> Option<Memory> {
    MemoryTypes::new().identify(driver, address, length)
}

fn every_kind() {
    let driver = driver();
    let address = plain(driver, 5000);
    let found = ask(driver, address + 4000, 1000).unwrap();
    assert_eq!((found.kind, found.device), (Kind::Device, Some(0)));
    assert_eq!((found.base, found.length), (address, 5000));
    assert_eq!(found.flags, Flags::LEGACY_IPC);

    let mut managed = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc_managed(&raw mut managed, 4096, 1) }.unwrap();
    assert_eq!(ask(driver, managed as usize, 4096).unwrap().kind, Kind::Managed);

    let mut pinned = std::ptr::null_mut();
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc_host(&raw mut pinned, 4096, 0) }.unwrap();
    assert_eq!(ask(driver, pinned as usize, 4096).unwrap().kind, Kind::Pinned);

    let plain = [0_u8; 100];
    let found = ask(driver, plain.as_ptr() as usize, 100).unwrap();
    assert_eq!((found.kind, found.length), (Kind::Host, 100));

    let mut pool = 0;
    // SAFETY: the result is a place of ours; older drivers lack the function.
    if unsafe { driver.calls.alloc_async(&raw mut pool, 4096, 0) }.is_ok() {
        let found = ask(driver, pool as usize, 1).unwrap();
        assert_eq!(found.kind, Kind::Device);
        assert!(found.flags.has(Flags::POOL) && !found.flags.has(Flags::LEGACY_IPC));
    } else {
        assert!(driver.version < 11020);
    }
}

#[test]
fn the_driver_tells_every_kind_on_every_level() {
    for level in LEVELS {
        let test = "the_driver_tells_every_kind_on_every_level";
        on_mock(test, level, &[], every_kind);
    }
}

#[test]
fn mapped_memory_is_walked_and_host_memory_is_told_apart() {
    on_mock("mapped_memory_is_walked_and_host_memory_is_told_apart", "13.0", &[], || {
        let driver = driver();
        let address = mapped(driver, 1, 3);
        let found = ask(driver, address + 100, 3 * PIECE - 100).unwrap();
        assert_eq!((found.kind, found.base, found.length), (Kind::Device, address, 3 * PIECE));
        assert!(found.flags.has(Flags::MAPPED.with(Flags::POSIX_FD).with(Flags::SEVERAL)));
        assert!(!found.flags.has(Flags::LEGACY_IPC));
        let host = mapped(driver, 2, 1);
        assert_eq!(ask(driver, host, PIECE).unwrap().kind, Kind::Pinned);
    });
}

#[test]
fn a_driver_that_fails_gives_no_answer() {
    let fail = [("MOCK_CUDA_FAIL", "cuPointerGetAttributes:999:0")];
    on_mock("a_driver_that_fails_gives_no_answer", "12.5", &fail, || {
        let driver = driver();
        let address = plain(driver, 4096);
        assert_eq!(ask(driver, address, 1), None, "not host memory: not known");
    });
}

#[test]
fn the_table_follows_the_hooks() {
    on_mock("the_table_follows_the_hooks", "12.8", &[], || {
        let driver = driver();
        let before = plain(driver, 4096);
        install(&Options { modes: Modes::BOTH, trace: None }).unwrap();
        memtype::start().unwrap();
        let types = memtype::types();
        let seen = plain(driver, 10_000);
        assert_eq!(
            types.lookup(seen + 9_999, 1),
            Lookup::Known(Memory::seen(Kind::Device, seen, 10_000))
        );
        let known = types.identify(driver, seen, 10_000).unwrap();
        assert_eq!(types.lookup(seen, 1), Lookup::Known(known), "asked once");
        assert_eq!((known.device, known.flags), (Some(0), Flags::LEGACY_IPC));
        let old = types.identify(driver, before, 1).unwrap();
        assert_eq!(types.lookup(before, 4096), Lookup::Known(old), "from before the hooks");
        free(driver, seen);
        assert_eq!(types.lookup(seen, 1), Lookup::Absent);
        // The address is given out again at once, for memory of another length.
        let again = plain(driver, 700);
        assert_eq!(again, seen);
        assert_eq!(types.lookup(again + 700, 1), Lookup::Absent);
        // What no event was seen for goes when any context ends.
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.context_create(&raw mut context, 0, 0) }.unwrap();
        // SAFETY: it was made above and is destroyed once.
        unsafe { driver.calls.context_destroy(context) }.unwrap();
        assert_eq!(types.lookup(before, 1), Lookup::Absent);
        assert_eq!(types.identify(driver, before, 1), Some(old));
    });
}
