//! What is reported: once per call, exactly, whatever handlers do meanwhile.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::ffi::{CStr, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hook_runtime::event::{EventKind, MemoryClass, subscribe};
#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
use hook_runtime::hook::coverage::{Coverage, Mechanism, Outcome};
use hook_runtime::settings::Modes;
use hook_runtime::{Options, install};

#[path = "hooks_support/mod.rs"]
mod support;
use support::{Library, Record, Workshop, allocated, freed, in_own_process};

type Allocate = extern "C" fn(*mut usize, usize) -> c_int;
type Release = extern "C" fn(usize) -> c_int;

fn caller(workshop: &Workshop) -> Library {
    workshop.usual();
    let arguments = ["libcuda.so.1", "libcudart.so.12", "-Wl,-rpath,$ORIGIN"];
    Library::open(&workshop.build("libcaller.so", "caller", &arguments))
}

fn hook(modes: Modes) {
    install(&Options { modes, trace: None }).unwrap();
}

const RELOC: Modes = Modes { bistro: false, reloc: true };

const PAIRS: [(&CStr, &CStr); 6] = [
    (c"cuMemAlloc_v2", c"cuMemFree_v2"),
    (c"cuMemAllocManaged", c"cuMemFree_v2"),
    (c"cuMemAllocAsync", c"cuMemFreeAsync"),
    (c"cuMemAllocAsync_ptsz", c"cuMemFreeAsync_ptsz"),
    (c"cuMemAllocAsync", c"cuMemFree_v2"),
    (c"cuMemHostAlloc", c"cuMemFreeHost"),
];

fn through_slot<F: Copy>(library: Library, symbol: &CStr) -> F {
    let name = [b"call_", symbol.to_bytes()].concat();
    library.function(&std::ffi::CString::new(name).unwrap())
}

fn each_pair_is_two_events(library: Library, record: &Record, slots: bool) {
    for (index, (allocate, release)) in PAIRS.into_iter().enumerate() {
        let size = 100 * (index + 1);
        let mut address = 0;
        let (make, end): (Allocate, Release) = if slots {
            (through_slot(library, allocate), through_slot(library, release))
        } else {
            (library.function(allocate), library.function(release))
        };
        // Directly, two of them take an argument more; what is in the register serves.
        assert_eq!(make(&mut address, size), 0, "{allocate:?}");
        let [allocate, release] = [allocate, release].map(|name| name.to_str().unwrap());
        assert_eq!(record.take(), [allocated(address, size, allocate)]);
        assert_eq!(end(address), 0);
        assert_eq!(record.take(), [freed(address, size, release)]);
    }
}

#[test]
fn every_driver_call_through_a_slot_is_one_event() {
    in_own_process("every_driver_call_through_a_slot_is_one_event", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        each_pair_is_two_events(caller, &record, true);
    });
}

#[test]
#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
fn with_both_mechanisms_every_call_is_one_event() {
    in_own_process("with_both_mechanisms_every_call_is_one_event", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        // Slots first, so that some lead to replacements when the entries are patched.
        hook(RELOC);
        install(&Options { modes: Modes::BOTH, trace: None }).unwrap();
        let coverage = Coverage::now();
        let row = coverage.row("cuMemAlloc_v2").unwrap();
        assert_eq!(row.outcome, Outcome::Hooked(Mechanism::Bistro), "{coverage}");
        each_pair_is_two_events(caller, &record, true);
        // The runtime calls the driver: hooked at its slot, at the slot below, at the entry.
        let mut address = 0;
        let mut pitch = 0;
        type Pitch = extern "C" fn(*mut usize, *mut usize, usize, usize, u32) -> c_int;
        let allocate = caller.function::<Pitch>(c"call_cudaMallocPitch");
        assert_eq!(allocate(&mut address, &mut pitch, 100, 10, 4), 0);
        assert_eq!(record.take(), [allocated(address, 5120, "cudaMallocPitch")]);
    });
}

#[test]
#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
fn a_pointer_from_dlsym_is_seen_at_the_entry() {
    in_own_process("a_pointer_from_dlsym_is_seen_at_the_entry", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        let record = Record::start();
        // The driver comes later than the hooks.
        hook(Modes { bistro: true, reloc: false });
        let driver = Library::open(&usual.driver);
        let (make, end): (Allocate, Release) =
            (driver.function(c"cuMemAlloc_v2"), driver.function(c"cuMemFree_v2"));
        let mut address = 0;
        for round in 0..3 {
            assert_eq!(make(&mut address, 640), 0);
            assert_eq!(end(address), 0);
            let events = record.take();
            let expected =
                [allocated(address, 640, "cuMemAlloc_v2"), freed(address, 640, "cuMemFree_v2")];
            if round == 1 {
                assert_eq!(events, [], "no hooks");
                hook(Modes::BOTH);
            } else {
                assert_eq!(events, expected);
                hook_runtime::uninstall();
            }
        }
    });
}

#[test]
fn the_old_interface_has_32_bits() {
    in_own_process("the_old_interface_has_32_bits", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        let mut address = 0;
        assert_eq!(caller.function::<Allocate>(c"call_cuMemAlloc")(&mut address, 96), 0);
        assert!(u32::try_from(address).is_ok());
        // The mock's lowest address has no low bits: an address of zero is no allocation.
        let events = record.take();
        match address {
            0 => assert_eq!(events, []),
            _ => assert_eq!(events, [allocated(address, 96, "cuMemAlloc")]),
        }
        assert_eq!(caller.function::<Allocate>(c"call_cuMemAlloc")(&mut address, 96), 0);
        assert_ne!(address, 0);
        assert_eq!(record.take(), [allocated(address, 96, "cuMemAlloc")]);
    });
}

#[test]
fn a_range_that_held_several_mappings_is_unmapped_once() {
    in_own_process("a_range_that_held_several_mappings_is_unmapped_once", || {
        type Range = extern "C" fn(usize, usize) -> c_int;
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        let map = caller.function::<Range>(c"call_cuMemMap");
        let unmap = caller.function::<Range>(c"call_cuMemUnmap");
        const MIB: usize = 1 << 20;
        for start in [0x10 * MIB, 0x12 * MIB] {
            assert_eq!(map(start, 2 * MIB), 0);
            assert_eq!(record.take(), [allocated(start, 2 * MIB, "cuMemMap")]);
        }
        assert_eq!(unmap(0x10 * MIB, 4 * MIB), 0);
        assert_eq!(record.take(), [freed(0x10 * MIB, 4 * MIB, "cuMemUnmap")]);
    });
}

#[test]
fn what_ends_with_its_owner_is_reported() {
    in_own_process("what_ends_with_its_owner_is_reported", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        let allocate = caller.function::<Allocate>(c"call_cuMemAlloc_v2");
        let mut addresses = [0; 3];
        for (index, address) in addresses.iter_mut().enumerate() {
            assert_eq!(allocate(address, 10 + index), 0);
        }
        type Global = extern "C" fn(*mut usize, *mut usize, usize) -> c_int;
        let global = caller.function::<Global>(c"call_cuModuleGetGlobal_v2");
        let mut variable = 0;
        // Both results may be left out.
        assert_eq!(global(&mut variable, std::ptr::null_mut(), 0x77), 0);
        assert_eq!(global(std::ptr::null_mut(), std::ptr::null_mut(), 0x77), 0);
        let events = record.take();
        assert_eq!(events[3..], [allocated(variable, 48, "cuModuleGetGlobal_v2")]);
        let end = caller.function::<Release>(c"call_cuModuleUnload");
        assert_eq!(end(0x77), 0);
        assert_eq!(record.take(), [freed(variable, 48, "cuModuleUnload")]);
        // The context of the mock is number 0xc0.
        let destroy = caller.function::<Release>(c"call_cuCtxDestroy_v2");
        assert_eq!(destroy(0xd0), 0, "another context");
        assert_eq!(record.take(), []);
        assert_eq!(destroy(0xc0), 0);
        let expected =
            [0, 1, 2].map(|index| freed(addresses[index], 10 + index, "cuCtxDestroy_v2"));
        assert_eq!(record.take(), expected);
    });
}

#[test]
fn a_release_that_fails_is_taken_back() {
    in_own_process("a_release_that_fails_is_taken_back", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        let mut variable = 0;
        type Global = extern "C" fn(*mut usize, *mut usize, usize) -> c_int;
        caller.function::<Global>(c"call_cuModuleGetGlobal_v2")(
            &mut variable,
            std::ptr::null_mut(),
            0,
        );
        record.take();
        // The mock refuses to unload module 0.
        assert_eq!(caller.function::<Release>(c"call_cuModuleUnload")(0), 1);
        let both =
            [freed(variable, 48, "cuModuleUnload"), allocated(variable, 48, "cuModuleUnload")];
        assert_eq!(record.take(), both);
    });
}

#[test]
fn a_handler_may_allocate_and_free() {
    in_own_process("a_handler_may_allocate_and_free", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        let allocate = caller.function::<Allocate>(c"call_cuMemAlloc_v2");
        let release = caller.function::<Release>(c"call_cuMemFree_v2");
        let depth = Arc::new(AtomicUsize::new(0));
        let deepest = depth.clone();
        subscribe(10, move |event| {
            // Reacts to the user's own allocation only, or it would never end.
            if event.kind == EventKind::Allocated && event.size == 1000 {
                assert_eq!(deepest.fetch_add(1, Ordering::SeqCst), 0);
                assert_eq!(event.class, MemoryClass::Device);
                let mut own = 0;
                assert_eq!(allocate(&mut own, 2000), 0);
                assert_eq!(release(own), 0);
                deepest.fetch_sub(1, Ordering::SeqCst);
            }
        });
        let mut address = 0;
        assert_eq!(allocate(&mut address, 1000), 0);
        let events = record.take();
        let own = events[1].1;
        let expected = [
            allocated(address, 1000, "cuMemAlloc_v2"),
            allocated(own, 2000, "cuMemAlloc_v2"),
            freed(own, 2000, "cuMemFree_v2"),
        ];
        assert_eq!(events, expected);
        assert_eq!(depth.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn many_threads_report_exactly() {
    in_own_process("many_threads_report_exactly", || {
        let workshop = Workshop::new();
        let caller = caller(&workshop);
        let record = Record::start();
        hook(RELOC);
        const ROUNDS: usize = 500;
        let threads = [0; 4].map(|_| {
            std::thread::spawn(move || {
                let allocate = caller.function::<Allocate>(c"call_cuMemAlloc_v2");
                let release = caller.function::<Release>(c"call_cuMemFree_v2");
                for size in 1..=ROUNDS {
                    let mut address = 0;
                    assert_eq!(allocate(&mut address, size), 0);
                    assert_eq!(release(address), 0);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let events = record.take();
        assert_eq!(events.len(), 2 * 4 * ROUNDS);
        let bytes = |kind| events.iter().filter(|e| e.0 == kind).map(|e| e.2).sum::<usize>();
        assert_eq!(bytes(EventKind::Allocated), 4 * ROUNDS * (ROUNDS + 1) / 2);
        assert_eq!(bytes(EventKind::Freed), 4 * ROUNDS * (ROUNDS + 1) / 2);
    });
}
