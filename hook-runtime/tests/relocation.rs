//! Hooks through slots: every kind of slot, objects that come and go, exact events.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::ffi::c_int;

use hook_runtime::hook::coverage::{Mechanism, Outcome};
use hook_runtime::settings::Modes;
use hook_runtime::{Coverage, Options, install, uninstall};

#[path = "hooks_support/mod.rs"]
mod support;
use support::{Library, Record, Workshop, allocated, freed, in_own_process, protections};

const RELOC: Modes = Modes { bistro: false, reloc: true };

fn install_reloc() -> Coverage {
    install(&Options { modes: RELOC, trace: None }).unwrap();
    Coverage::now()
}

#[test]
fn every_kind_of_slot_leads_to_one_event() {
    in_own_process("every_kind_of_slot_leads_to_one_event", || {
        let workshop = Workshop::new();
        let victim = Library::open(&workshop.usual().victim);
        let coverage = install_reloc();
        let row = coverage.row("cudaMalloc").unwrap();
        assert_eq!(row.outcome, Outcome::Hooked(Mechanism::Reloc));
        assert_eq!(row.slots, 3, "call and address share one; data; constant; not the changed one");
        assert_eq!(coverage.row("cudaFree").unwrap().slots, 1, "a call only");
        let record = Record::start();
        for (index, way) in
            [c"by_call", c"by_address", c"by_data", c"by_constant"].iter().enumerate()
        {
            let size = 1000 + index;
            let address = victim.allocate(way, size);
            assert_ne!(address, 0);
            assert_eq!(record.take(), [allocated(address, size, "cudaMalloc")], "{way:?}");
            assert_eq!(victim.release(address), 0);
            assert_eq!(record.take(), [freed(address, size, "cudaFree")], "{way:?}");
        }
        assert_eq!(victim.allocate(c"by_changed", 1), 0x12_3000);
        assert_eq!(record.take(), [], "the program's own pointer is left alone");
    });
}

#[test]
fn however_it_was_linked_every_way_is_one_event() {
    in_own_process("however_it_was_linked_every_way_is_one_event", || {
        let workshop = Workshop::new();
        workshop.usual();
        let kinds: [&[&str]; 4] = [
            &["-fno-plt"],
            &["-Wl,-z,now,-z,relro"],
            &["-Wl,-z,lazy,-z,norelro"],
            &["-fcf-protection=full", "-Wl,-z,pack-relative-relocs"],
        ];
        let record = Record::start();
        for (number, kind) in kinds.iter().enumerate() {
            let arguments = [kind, &["libcudart.so.12", "-Wl,-rpath,$ORIGIN"][..]].concat();
            let path = workshop.build(&format!("libkind{number}.so"), "victim", &arguments);
            let victim = Library::open(&path);
            install_reloc();
            for way in [c"by_call", c"by_address", c"by_data", c"by_constant"] {
                let address = victim.allocate(way, 9);
                let expected = [allocated(address, 9, "cudaMalloc")];
                assert_eq!(record.take(), expected, "{kind:?} {way:?}");
            }
        }
    });
}

#[test]
fn variables_of_threads_with_a_functions_name_are_left_alone() {
    in_own_process("variables_of_threads_with_a_functions_name_are_left_alone", || {
        let workshop = Workshop::new();
        let here = "-Wl,-rpath,$ORIGIN";
        workshop.build("libdefine.so", "tls", &["-DDEFINE"]);
        let path = workshop.build("libtls.so", "tls", &["libdefine.so", here]);
        let library = Library::open(&path);
        let coverage = install_reloc();
        assert_eq!(coverage.row("cudaMalloc").unwrap().slots, 0);
        let sum = library.function::<extern "C" fn() -> c_int>(c"sum");
        assert_eq!(sum(), 85);
        assert_eq!(std::thread::spawn(move || sum()).join().unwrap(), 85);
        uninstall();
        assert_eq!(sum(), 85);
    });
}

/// The linker `gold` gives a symbol that is called and whose address is taken two slots,
/// where others share one.
#[test]
fn two_slots_of_one_symbol_are_both_hooked() {
    if !support::is_installed("ld.gold") {
        // Not `println!`, whose text a passing test keeps to itself.
        let name = "two_slots_of_one_symbol_are_both_hooked";
        std::io::Write::write_all(
            &mut std::io::stdout(),
            format!("waived: {name}: ld.gold is not installed\n").as_bytes(),
        )
        .unwrap();
        return;
    }
    in_own_process("two_slots_of_one_symbol_are_both_hooked", || {
        let workshop = Workshop::new();
        workshop.usual();
        for now in ["lazy", "now"] {
            let name = format!("lib{now}.so");
            let (now, here) = (format!("-Wl,-z,{now}"), "-Wl,-rpath,$ORIGIN");
            let arguments = ["-fuse-ld=gold", "libcudart.so.12", &now, here];
            let path = workshop.build(&name, "victim", &arguments);
            let (calls, addresses) = slots(&path, "cudaMalloc");
            assert_eq!((calls, addresses), (1, 1), "what this is about");
            let victim = Library::open(&path);
            let row = install_reloc().row("cudaMalloc").unwrap().clone();
            assert_eq!(row.slots, 4, "{row:?}");
            let record = Record::start();
            for way in [c"by_call", c"by_address", c"by_data", c"by_constant"] {
                let address = victim.allocate(way, 7);
                let events = record.take();
                assert_eq!(events, [allocated(address, 7, "cudaMalloc")], "{way:?}");
            }
            uninstall();
            assert_ne!(victim.allocate(c"by_address", 7), 0);
            assert_eq!(record.take(), []);
            victim.close();
        }
    });
}

/// How many slots for calls and for its address a symbol has in a file.
fn slots(path: &std::path::Path, symbol: &str) -> (usize, usize) {
    use object::elf::{
        R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT,
    };
    use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget};
    #[expect(clippy::disallowed_methods, reason = "the test looks at what was built")]
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = file.dynamic_symbol_table().unwrap();
    let kinds = file.dynamic_relocations().unwrap().filter_map(|(_, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let name = symbols.symbol_by_index(index).ok()?.name().ok()?;
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        (name == symbol).then_some(r_type)
    });
    let kinds: Vec<_> = kinds.collect();
    let count = |wanted| kinds.iter().filter(|&&kind| kind == wanted).count();
    match file.architecture() {
        object::Architecture::Aarch64 => (count(R_AARCH64_JUMP_SLOT), count(R_AARCH64_GLOB_DAT)),
        _ => (count(R_X86_64_JUMP_SLOT), count(R_X86_64_GLOB_DAT)),
    }
}

#[test]
fn a_slot_that_was_never_called_is_hooked_before_its_first_call() {
    in_own_process("a_slot_that_was_never_called_is_hooked_before_its_first_call", || {
        let workshop = Workshop::new();
        let record = Record::start();
        install_reloc();
        let victim = Library::open(&workshop.usual().victim);
        assert_eq!(support::last_error(), "", "our own questions leave no message");
        let address = victim.allocate(c"by_call", 64);
        assert_eq!(record.take(), [allocated(address, 64, "cudaMalloc")]);
    });
}

#[test]
fn protections_are_what_they_were() {
    in_own_process("protections_are_what_they_were", || {
        let workshop = Workshop::new();
        let victim = Library::open(&workshop.usual().victim);
        // The first call binds the slots, so that nothing but hooks changes afterwards.
        let first = victim.allocate(c"by_call", 1);
        victim.release(first);
        let before = protections(&workshop.path(""));
        assert!(before.iter().any(|line| line.contains(" r--p ")));
        install_reloc();
        assert_eq!(protections(&workshop.path("")), before);
        let record = Record::start();
        victim.allocate(c"by_constant", 8);
        assert_eq!(record.take().len(), 1, "the slot in the protected page is hooked");
        uninstall();
        assert_eq!(protections(&workshop.path("")), before);
        for way in [c"by_call", c"by_address", c"by_data", c"by_constant"] {
            assert_ne!(victim.allocate(way, 8), 0);
        }
        assert_eq!(record.take(), [], "no hooks are left");
        install_reloc();
        victim.allocate(c"by_data", 8);
        assert_eq!(record.take().len(), 1, "and they can come back");
    });
}

#[test]
fn libraries_that_come_and_go_are_hooked_each_time() {
    in_own_process("libraries_that_come_and_go_are_hooked_each_time", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        let coverage = install_reloc();
        assert_eq!(coverage.row("cudaMalloc").unwrap().outcome, Outcome::Waiting);
        let record = Record::start();
        // More rounds than a replacement has copies: places of unloaded functions are freed.
        for round in 1..=40 {
            let victim = Library::open(&usual.victim);
            let address = victim.allocate(c"by_call", round);
            assert_eq!(record.take(), [allocated(address, round, "cudaMalloc")]);
            victim.release(address);
            record.take();
            assert_eq!(Coverage::now().row("cudaMalloc").unwrap().slots, 3);
            // The runtime and the driver go with it: nothing else holds them.
            victim.close();
            assert!(protections(&workshop.path("")).is_empty());
            assert_eq!(Coverage::now().row("cudaMalloc").unwrap().slots, 0);
        }
    });
}

#[test]
fn each_slot_reaches_the_runtime_that_it_was_linked_with() {
    in_own_process("each_slot_reaches_the_runtime_that_it_was_linked_with", || {
        let workshop = Workshop::new();
        let here = "-Wl,-rpath,$ORIGIN";
        workshop.build("libcudart.so.11.0", "runtime", &["-DTAG=0x31"]);
        workshop.build("libcudart.so.12", "runtime", &["-DTAG=0x32"]);
        let old = workshop.build("libold.so", "victim", &["libcudart.so.11.0", here]);
        let new = workshop.build("libnew.so", "victim", &["libcudart.so.12", here]);
        let (old, new) = (Library::open(&old), Library::open(&new));
        let record = Record::start();
        install_reloc();
        for way in [c"by_call", c"by_address", c"by_data", c"by_constant"] {
            for (library, tag) in [(old, 0x31), (new, 0x32)] {
                let address = library.allocate(way, 16);
                assert_eq!(address >> 40, tag, "{way:?} reached the wrong copy");
                assert_eq!(record.take(), [allocated(address, 16, "cudaMalloc")]);
                assert_eq!(library.release(address), 0);
                assert_eq!(record.take(), [freed(address, 16, "cudaFree")]);
            }
        }
        // A variable is known to its own runtime only, and so is its size.
        let symbol = old.function::<extern "C" fn(usize) -> usize>(c"symbol");
        assert_eq!(symbol(0x5000), 0x5000);
        assert_eq!(record.take(), [allocated(0x5000, 0x31, "cudaGetSymbolAddress")]);
    });
}

#[test]
fn a_pitched_allocation_has_the_size_that_the_driver_chose() {
    in_own_process("a_pitched_allocation_has_the_size_that_the_driver_chose", || {
        type Pitch = extern "C" fn(*mut usize, *mut usize, usize, usize, u32) -> c_int;
        let workshop = Workshop::new();
        workshop.usual();
        let caller = workshop.build(
            "libcaller.so",
            "caller",
            &["libcuda.so.1", "libcudart.so.12", "-Wl,-rpath,$ORIGIN"],
        );
        let caller = Library::open(&caller);
        let record = Record::start();
        install_reloc();
        for (function, symbol, free) in [
            (
                c"call_cuMemAllocPitch_v2",
                "cuMemAllocPitch_v2",
                (c"call_cuMemFree_v2", "cuMemFree_v2"),
            ),
            (c"call_cudaMallocPitch", "cudaMallocPitch", (c"call_cudaFree", "cudaFree")),
        ] {
            let (mut address, mut pitch) = (0, 0);
            assert_eq!(
                caller.function::<Pitch>(function)(&mut address, &mut pitch, 100, 100, 4),
                0
            );
            assert_eq!(pitch, 512);
            assert_eq!(record.take(), [allocated(address, 51_200, symbol)]);
            assert_eq!(caller.function::<extern "C" fn(usize) -> c_int>(free.0)(address), 0);
            assert_eq!(record.take(), [freed(address, 51_200, free.1)]);
        }
    });
}

#[test]
fn frees_of_nothing_and_failures_are_no_events() {
    in_own_process("frees_of_nothing_and_failures_are_no_events", || {
        let workshop = Workshop::new();
        let victim = Library::open(&workshop.usual().victim);
        let early = victim.allocate(c"by_call", 777);
        let record = Record::start();
        install_reloc();
        assert_eq!(victim.release(0), 0);
        assert_eq!(victim.allocate(c"by_call", 0), 0, "the driver refuses this");
        assert_eq!(record.take(), []);
        let address = victim.allocate(c"by_call", 10);
        record.take();
        assert_eq!(victim.release(early), 0);
        assert_eq!(record.take(), [freed(early, 777, "cudaFree")], "the driver knew the size");
        assert_eq!(victim.release(address), 0);
        assert_eq!(victim.release(address), 1, "freed twice");
        let events = record.take();
        assert_eq!(events[0], freed(address, 10, "cudaFree"));
        assert_eq!(events[1..], [freed(address, 0, "cudaFree")], "of unknown size, and no more");
    });
}

#[test]
fn the_report_tells_absent_waiting_and_hooked_apart() {
    in_own_process("the_report_tells_absent_waiting_and_hooked_apart", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        let coverage = install_reloc();
        assert!(!coverage.driver_loaded);
        assert!(coverage.rows.iter().all(|row| row.outcome == Outcome::Waiting));
        let driver = Library::open(&usual.driver);
        let coverage = Coverage::now();
        assert!(coverage.driver_loaded);
        let outcome = |coverage: &Coverage, symbol| coverage.row(symbol).unwrap().outcome;
        assert_eq!(outcome(&coverage, "cuMemFreeHost_v2"), Outcome::Absent);
        assert_eq!(outcome(&coverage, "cuMemAlloc_v2"), Outcome::Waiting, "nobody calls it");
        Library::open(&usual.victim);
        let coverage = Coverage::now();
        assert_eq!(outcome(&coverage, "cuMemAlloc_v2"), Outcome::Hooked(Mechanism::Reloc));
        let text = coverage.to_string();
        let line = text.lines().find(|line| line.contains(" cudaMalloc ")).unwrap();
        assert!(line.contains("reloc") && line.contains("3 slots"), "{line}");
        driver.close();
    });
}

#[test]
fn a_slot_is_bound_to_the_version_that_it_asks_for() {
    in_own_process("a_slot_is_bound_to_the_version_that_it_asks_for", || {
        let workshop = Workshop::new();
        let script = |name: &str| {
            format!("-Wl,--version-script={}/tests/c/{name}", env!("CARGO_MANIFEST_DIR"))
        };
        // Linked while the library has version 1 only; run with one that has both.
        workshop.build("libcudart.so.12", "versions", &[&script("one.map")]);
        let here = "-Wl,-rpath,$ORIGIN";
        let victim = workshop.build("libvictim.so", "victim", &["libcudart.so.12", here]);
        workshop.build("libcudart.so.12", "versions", &["-DBOTH", &script("both.map")]);
        let record = Record::start();
        install_reloc();
        let victim = Library::open(&victim);
        // Version 1 allocates at 1 TiB, version 2 at 2 TiB.
        for way in [c"by_call", c"by_address", c"by_data"] {
            let address = victim.allocate(way, 32);
            assert_eq!(address >> 40, 1, "{way:?}");
            assert_eq!(record.take(), [allocated(address, 32, "cudaMalloc")]);
        }
    });
}
