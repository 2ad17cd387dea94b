//! cuda_ipc between two processes on the mock driver.
#![expect(clippy::disallowed_methods, reason = "the test starts the other process")]
#![expect(clippy::print_stdout, reason = "the owner answers on standard output")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::cuda::driver::types::{
    AccessDescription, AllocationProperties, IpcHandle, Location, PoolProperties, handle,
};
use hook_runtime::sys::identity::Identity;
use hook_runtime::transport::cuda_copy::Copier;
use hook_runtime::transport::cuda_ipc::{Export, IpcError, Key, Mapping, cache, export};
use hook_runtime::transport::settings::Settings;
use on_mock::{PHYSICAL, POOLS, RESERVATIONS, alive, assert_passed, command, is_child, on_mock};

const ROLE: &str = "HOOK_RUNTIME_TEST_OWNER";
/// What the mock driver of the owner is to refuse.
const OWNERS_FAULT: &str = "HOOK_RUNTIME_TEST_OWNERS_FAULT";
const PIECE: usize = 2 << 20;

fn driver() -> &'static Driver {
    let driver = Driver::get().unwrap();
    // SAFETY: the context is kept until the process ends.
    unsafe { driver.calls.context_set(driver.primary(0).unwrap()) }.unwrap();
    driver
}

/// Runs `body` on the mock as the process that opens; the process that owns is started by it.
fn two_processes(test: &str, variables: &[(&str, &str)], body: fn()) {
    on_mock(test, "13.0", variables, if std::env::var_os(ROLE).is_some() { own } else { body });
}

fn pattern(n: usize, seed: usize) -> u8 {
    (n.wrapping_mul(131) ^ (n >> 9) ^ seed.wrapping_mul(29)) as u8
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Ways to hand memory over, by the last part of a name.
fn handle_types(way: &str) -> u32 {
    match way.rsplit_once('-') {
        Some((_, "fabric")) => handle::FABRIC,
        Some((_, "both")) => handle::POSIX_FD | handle::FABRIC,
        _ => handle::POSIX_FD,
    }
}

/// Out of one pool for each way.
fn pooled(driver: &Driver, size: usize, handle_types: u32) -> u64 {
    static POOLS: Mutex<Vec<(u32, usize)>> = Mutex::new(Vec::new());
    let mut pools = POOLS.lock().unwrap();
    let known = pools.iter().find(|pool| pool.0 == handle_types).map(|pool| pool.1);
    let pool = known.unwrap_or_else(|| {
        let (mut pool, properties) = (0, PoolProperties::new(0, handle_types));
        // SAFETY: the arguments are places of ours.
        unsafe { driver.calls.pool_create(&raw mut pool, &raw const properties) }.unwrap();
        pools.push((handle_types, pool));
        pool
    });
    let mut address = 0;
    // SAFETY: the result is a place of ours, the pool is there.
    unsafe { driver.calls.pool_alloc_async(&raw mut address, size, pool, 0) }.unwrap();
    address
}

fn mapped(driver: &Driver, pieces: usize, handle_types: u32) -> u64 {
    let calls = &driver.calls;
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { calls.reserve(&raw mut address, pieces * PIECE, 0, 0, 0) }.unwrap();
    for piece in 0..pieces {
        let location = Location { kind: 1, id: 0 };
        let properties =
            AllocationProperties { kind: 1, handle_types, location, ..Default::default() };
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
    address
}

/// The owner: does what it is told, a line at a time.
fn own() {
    let driver = driver();
    let mut exports: HashMap<String, (u64, Export)> = HashMap::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        match words[0] {
            // Allocates, fills and exports: name, way, bytes, offset, seed.
            "make" => {
                let (size, offset): (usize, usize) =
                    (words[3].parse().unwrap(), words[4].parse().unwrap());
                let mut address = 0;
                if words[2].starts_with("mapped") {
                    address = mapped(driver, size / PIECE, handle_types(words[2]));
                } else if words[2].starts_with("pool") {
                    address = pooled(driver, size, handle_types(words[2]));
                } else {
                    // SAFETY: the result is a place of ours.
                    unsafe { driver.calls.alloc(&raw mut address, size) }.unwrap();
                }
                let seed = words[5].parse().unwrap();
                let bytes: Vec<u8> = (0..size).map(|n| pattern(n, seed)).collect();
                // SAFETY: both are as long as this.
                unsafe { driver.calls.copy(address, bytes.as_ptr() as u64, size) }.unwrap();
                match export(driver, address as usize + offset, size - offset) {
                    Ok(export) => {
                        println!("\nKEY {} {}", hex(&export.key.to_bytes()), export.offset);
                        exports.insert(words[1].to_owned(), (address, export));
                    }
                    Err(error) => println!("\nKEY error {error}"),
                }
            }
            "handle" => {
                let mut handle = IpcHandle([0; 64]);
                // SAFETY: the result is a place of ours.
                unsafe { driver.calls.ipc_get(&raw mut handle, exports[words[1]].0) }.unwrap();
                println!("\nKEY {}", hex(&handle.0));
            }
            "read" => {
                let (address, export) = &exports[words[1]];
                let mut bytes = vec![0; export.key.range().1 as usize];
                let to = bytes.as_mut_ptr() as u64;
                // SAFETY: both are as long as this.
                unsafe { driver.calls.copy(to, *address, bytes.len()) }.unwrap();
                println!("\nKEY {}", hex(&bytes));
            }
            "free" => {
                let (address, _) = exports.remove(words[1]).unwrap();
                // SAFETY: allocated above, freed once.
                unsafe { driver.calls.free(address) }.unwrap();
                println!("\nKEY freed");
            }
            other => panic!("{other}"),
        }
    }
}

struct Owner {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Owner {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(std::env::args().skip(1))
            .env(ROLE, "1")
            .env("MOCK_CUDA_FAIL", std::env::var_os(OWNERS_FAULT).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn tell(&mut self, command: &str) -> Vec<String> {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the owner has ended");
            if let Some(words) = line.trim_end().strip_prefix("KEY ") {
                return words.split(' ').map(str::to_owned).collect();
            }
        }
    }

    fn make(&mut self, command: &str) -> (Key, usize) {
        let words = self.tell(&format!("make {command}"));
        assert_ne!(words[0], "error", "{words:?}");
        (Key::from_bytes(&unhex(&words[0])).unwrap(), words[1].parse().unwrap())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.child.stdin.take()); // It ends when nothing more is said.
        let _ = self.child.wait();
    }
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let value_of = |name: &str| {
        let found = variables.iter().find(|variable| variable.0 == name);
        found.map(|variable| variable.1.to_owned())
    };
    Settings::read(value_of, &mut |message| panic!("{message}"))
}

fn bytes_of(driver: &'static Driver, mapping: &Mapping) -> Vec<u8> {
    let mut bytes = vec![0_u8; mapping.len()];
    let mut copier = Copier::new(driver, Settings::default());
    let remote = copier.region(mapping.address(), mapping.len()).unwrap();
    let local = copier.region(bytes.as_mut_ptr() as usize, bytes.len()).unwrap();
    // SAFETY: the mapping is held, the vector is ours.
    unsafe { copier.copy_now((&local, 0), (&remote, 0), bytes.len()) }.unwrap();
    bytes
}

fn is_pattern(bytes: &[u8], seed: usize) -> bool {
    bytes.iter().enumerate().all(|(n, byte)| *byte == pattern(n, seed))
}

/// Reads and writes memory of the owner's, in one way.
fn read_and_write(way: &str, size: usize, settings: &Settings) {
    let (driver, mut owner) = (driver(), Owner::start());
    let (key, offset) = owner.make(&format!("a {way} {size} 1000 3"));
    assert_eq!((offset, key.range().1 as usize), (1000, size), "the whole allocation");
    let mapping = cache().open(driver, &key, settings).unwrap();
    assert!(is_pattern(&bytes_of(driver, &mapping), 3));
    assert_eq!(mapping.address_of(key.range().0 + 1000), Some(mapping.address() + 1000));
    assert_eq!(mapping.address_of(key.range().0 + size as u64), None);
    let again = cache().open(driver, &key, settings).unwrap();
    assert!(Arc::ptr_eq(&mapping, &again), "opened once");
    // Put: device memory of ours into the owner's.
    let mut from = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc(&raw mut from, size) }.unwrap();
    let bytes: Vec<u8> = (0..size).map(|n| pattern(n, 8)).collect();
    // SAFETY: both are as long as this.
    unsafe { driver.calls.copy(from, bytes.as_ptr() as u64, size) }.unwrap();
    let mut copier = Copier::new(driver, Settings::default());
    let to = copier.region(mapping.address(), size).unwrap();
    let from = copier.region(from as usize, size).unwrap();
    // SAFETY: the mapping is held, and nothing else touches either side.
    unsafe { copier.copy((&to, 0), (&from, 0), size, 1) }.unwrap();
    copier.flush(&mut |_, result| result.unwrap()).unwrap();
    assert!(unhex(&owner.tell("read a")[0]) == bytes);
}

#[test]
fn memory_of_another_process_is_read_and_written() {
    two_processes("memory_of_another_process_is_read_and_written", &[], || {
        read_and_write("plain", 100_000, &Settings::default());
    });
}

#[test]
fn mapped_memory_goes_by_descriptors_in_both_ways() {
    two_processes("mapped_memory_goes_by_descriptors_in_both_ways", &[], || {
        for way in ["try", "socket"] {
            let settings = settings(&[("HOOK_RUNTIME_IPC_DESCRIPTORS", way)]);
            read_and_write("mapped", 3 * PIECE, &settings);
        }
    });
}

#[test]
fn memory_of_a_pool_goes_with_its_pool() {
    two_processes("memory_of_a_pool_goes_with_its_pool", &[], || {
        for way in ["try", "socket"] {
            let settings = settings(&[("HOOK_RUNTIME_IPC_DESCRIPTORS", way)]);
            read_and_write("pool", 100_000, &settings);
        }
    });
}

#[test]
fn a_pool_is_imported_once_and_ends_with_the_last_mapping() {
    two_processes("a_pool_is_imported_once_and_ends_with_the_last_mapping", &[], || {
        let (driver, mut owner, settings) = (driver(), Owner::start(), Settings::default());
        let before = alive();
        let keys: Vec<_> = (0..3).map(|n| owner.make(&format!("{n} pool 5000 0 {n}")).0).collect();
        let open = |key| cache().open(driver, key, &settings).unwrap();
        let all: Vec<_> = keys.iter().map(open).collect();
        for (n, mapping) in all.iter().enumerate() {
            assert!(is_pattern(&bytes_of(driver, mapping), n));
        }
        assert_eq!(alive()[POOLS] - before[POOLS], 1, "one pool, and none of the probe's");
        drop(all);
        cache().clear();
        assert_eq!(alive(), before, "nothing is left");
    });
}

#[test]
fn memory_that_was_made_for_the_fabric_needs_no_descriptor() {
    let fabric = [("MOCK_CUDA_FABRIC", "1")];
    two_processes("memory_that_was_made_for_the_fabric_needs_no_descriptor", &fabric, || {
        let before = alive();
        for way in ["mapped-fabric", "pool-fabric", "mapped-both", "pool-both"] {
            read_and_write(way, 2 * PIECE, &Settings::default());
        }
        cache().clear();
        let after = alive();
        for kind in [POOLS, PHYSICAL, RESERVATIONS] {
            assert_eq!(after[kind], before[kind], "{before:?} {after:?}");
        }
    });
}

#[test]
fn the_fabric_leads_to_other_machines_and_descriptors_do_not() {
    let fabric = [("MOCK_CUDA_FABRIC", "1")];
    two_processes("the_fabric_leads_to_other_machines_and_descriptors_do_not", &fabric, || {
        let (driver, mut owner) = (driver(), Owner::start());
        let machine = Identity::own().machine;
        let mut elsewhere = |way: &str| {
            let mut bytes = owner.make(&format!("{way} {way} {PIECE} 0 5")).0.to_bytes();
            for at in 0..bytes.len() - machine.len() {
                if bytes[at..].starts_with(&machine) {
                    bytes[at] ^= 1;
                }
            }
            Key::from_bytes(&bytes).unwrap()
        };
        for way in ["mapped-both", "pool-fabric"] {
            let key = elsewhere(way);
            let mapping = cache().open(driver, &key, &Settings::default()).unwrap();
            assert!(is_pattern(&bytes_of(driver, &mapping), 5), "{way}");
            let no = settings(&[("UCX_CUDA_IPC_ENABLE_MNNVL", "n")]);
            let refused = cache().open(driver, &key, &no).unwrap_err();
            assert!(refused.to_string().contains("another machine"), "{refused}");
        }
        for way in ["mapped", "pool", "plain"] {
            let refused = cache().open(driver, &elsewhere(way), &Settings::default()).unwrap_err();
            assert!(matches!(refused, IpcError::Unreachable { .. }), "{way}: {refused}");
        }
    });
}

/// The first refusal of each side: of the fabric to the owner, of the descriptor to the other.
#[test]
fn where_one_way_is_refused_the_other_is_taken() {
    let variables = [
        ("MOCK_CUDA_FABRIC", "1"),
        ("MOCK_CUDA_FAIL", "cuMemImportFromShareableHandle:800:1:1"),
        (OWNERS_FAULT, "cuMemPoolExportToShareableHandle:800:1:1"),
    ];
    two_processes("where_one_way_is_refused_the_other_is_taken", &variables, || {
        let (driver, mut owner, settings) = (driver(), Owner::start(), Settings::default());
        let (key, _) = owner.make("a pool-both 4096 0 1");
        assert!(!key.is_on_fabric(), "refused to the owner");
        assert!(is_pattern(&bytes_of(driver, &cache().open(driver, &key, &settings).unwrap()), 1));
        // The probe is imported first; the second descriptor is refused.
        let (key, _) = owner.make(&format!("b mapped-both {PIECE} 0 2"));
        assert!(key.is_on_fabric());
        assert!(is_pattern(&bytes_of(driver, &cache().open(driver, &key, &settings).unwrap()), 2));
    });
}

#[test]
fn a_fabric_that_refuses_is_said() {
    let variables = [
        ("MOCK_CUDA_FABRIC", "1"),
        (OWNERS_FAULT, "cuMemExportToShareableHandle:800:0,cuMemPoolExportToShareableHandle:800:0"),
    ];
    two_processes("a_fabric_that_refuses_is_said", &variables, || {
        let mut owner = Owner::start();
        for (way, function) in [
            ("mapped-fabric", "cuMemExportToShareableHandle"),
            ("pool-both", "cuMemPoolExportToShareableHandle"),
        ] {
            let said = owner.tell(&format!("make {way} {way} {PIECE} 0 1")).join(" ");
            let expected = format!("error `{function}` returned error 800 (not permitted)");
            assert_eq!(said, expected);
        }
    });
}

#[test]
fn mappings_in_use_stay_and_the_oldest_others_go() {
    two_processes("mappings_in_use_stay_and_the_oldest_others_go", &[], || {
        let (driver, mut owner) = (driver(), Owner::start());
        let settings = settings(&[("UCX_CUDA_IPC_CACHE_MAX_REGIONS", "2")]);
        let keys: Vec<_> = (0..4).map(|n| owner.make(&format!("{n} plain 4096 0 {n}")).0).collect();
        let held = cache().open(driver, &keys[0], &settings).unwrap();
        for key in &keys[1..] {
            cache().open(driver, key, &settings).unwrap();
        }
        assert_eq!(cache().len(), 2, "the one in use and the last one");
        assert!(is_pattern(&bytes_of(driver, &held), 0));
        let again = cache().open(driver, &keys[0], &settings).unwrap();
        assert!(Arc::ptr_eq(&held, &again));
        let all: Vec<_> =
            keys.iter().map(|key| cache().open(driver, key, &settings).unwrap()).collect();
        assert_eq!(cache().len(), 4, "all are in use");
        for (n, mapping) in all.iter().enumerate() {
            assert!(is_pattern(&bytes_of(driver, mapping), n));
        }
        drop((held, again, all));
        cache().clear();
        assert!(cache().is_empty());
    });
}

#[test]
fn memory_that_was_freed_and_allocated_again_is_opened_anew() {
    two_processes("memory_that_was_freed_and_allocated_again_is_opened_anew", &[], || {
        let (driver, mut owner, settings) = (driver(), Owner::start(), Settings::default());
        let (old, _) = owner.make("a plain 8192 0 1");
        drop(cache().open(driver, &old, &settings).unwrap());
        owner.tell("free a");
        let (new, _) = owner.make("b plain 8192 0 2");
        assert_eq!(old.range(), new.range(), "the same place");
        let mapping = cache().open(driver, &new, &settings).unwrap();
        assert!(is_pattern(&bytes_of(driver, &mapping), 2));
        assert_eq!(cache().len(), 1, "the old one was closed");
        let refused = cache().open(driver, &old, &settings).unwrap_err();
        assert!(matches!(refused, IpcError::Driver(_)), "{refused}");
    });
}

#[test]
fn what_the_application_opened_itself_is_no_catastrophe() {
    two_processes("what_the_application_opened_itself_is_no_catastrophe", &[], || {
        let (driver, mut owner, settings) = (driver(), Owner::start(), Settings::default());
        let (key, _) = owner.make("a plain 4096 0 6");
        let handle = IpcHandle(unhex(&owner.tell("handle a")[0]).try_into().unwrap());
        let mut address = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.ipc_open(&raw mut address, handle, 1) }.unwrap();
        let refused = cache().open(driver, &key, &settings).unwrap_err();
        assert!(matches!(refused, IpcError::OpenedByApplication), "{refused}");
        // SAFETY: opened above, closed once.
        unsafe { driver.calls.ipc_close(address) }.unwrap();
        assert!(is_pattern(&bytes_of(driver, &cache().open(driver, &key, &settings).unwrap()), 6));
    });
}

#[test]
fn what_cannot_be_shared_is_said() {
    two_processes("what_cannot_be_shared_is_said", &[], || {
        let driver = driver();
        let mut pool = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.alloc_async(&raw mut pool, 4096, 0) }.unwrap();
        let refused = export(driver, pool as usize, 4096).unwrap_err();
        assert!(refused.to_string().contains("pool"), "{refused}");
        let host = [0_u8; 16];
        let refused = export(driver, host.as_ptr() as usize, 16).unwrap_err();
        assert!(refused.to_string().contains("not device memory"), "{refused}");
        let mut own = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.alloc(&raw mut own, 4096) }.unwrap();
        let own = export(driver, own as usize, 4096).unwrap();
        let refused = cache().open(driver, &own.key, &Settings::default()).unwrap_err();
        assert!(matches!(refused, IpcError::OwnMemory), "{refused}");
    });
}

/// The first call fails, the same again works: nothing of the first has been left behind.
fn once_more() {
    let (driver, mut owner, settings) = (driver(), Owner::start(), Settings::default());
    for (way, size) in [("plain", PIECE), ("mapped", 2 * PIECE), ("pool", PIECE)] {
        let (key, _) = owner.make(&format!("{way} {way} {size} 0 4"));
        let mapping = match cache().open(driver, &key, &settings) {
            Err(error) => {
                println!("\nrefused: {error}");
                cache().open(driver, &key, &settings).unwrap()
            }
            Ok(mapping) => mapping,
        };
        assert!(is_pattern(&bytes_of(driver, &mapping), 4));
    }
}

#[test]
fn a_driver_that_fails_is_reported_and_nothing_is_left_open() {
    const TEST: &str = "a_driver_that_fails_is_reported_and_nothing_is_left_open";
    if is_child(TEST) {
        return if std::env::var_os(ROLE).is_some() { own() } else { once_more() };
    }
    for name in [
        "cuIpcOpenMemHandle_v2",
        "cuMemAddressReserve",
        "cuMemImportFromShareableHandle",
        "cuMemMap",
        "cuMemSetAccess",
        "cuMemPoolImportFromShareableHandle",
        "cuMemPoolSetAccess",
        "cuMemPoolImportPointer",
        "cuDeviceGetUuid_v2",
    ] {
        // The first call, and a later one, of a piece behind others.
        for good in [0, 2] {
            let fault = format!("{name}:2:{good}:1");
            let output = command(TEST, "13.0", &[("MOCK_CUDA_FAIL", &fault)]).output().unwrap();
            assert_passed(&fault, &output);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(good > 0 || text.contains("refused: "), "{fault}:\n{text}");
        }
    }
}
