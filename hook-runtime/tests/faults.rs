//! Every call to the driver fails once, on the mock driver: what cannot be done is said, each
//! copy is reported once, nothing hangs, and nothing stays behind.
//!
//! The work is done again and again; each time one call later fails, until all have had their
//! turn. Where the failing call is one that gives something back, that alone may stay.
#![expect(clippy::disallowed_methods, reason = "the test starts the other process")]
#![expect(clippy::print_stdout, reason = "the owner answers on standard output")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::cuda::driver::types::{
    AccessDescription, AllocationProperties, Location, PoolProperties, handle,
};
use hook_runtime::transport::CopyError;
use hook_runtime::transport::cuda_copy::{Copier, Posted};
use hook_runtime::transport::cuda_ipc::{Key, cache, export};
use hook_runtime::transport::settings::Settings;
use on_mock::{POOLS, RANGES, alive, fail_at, failed, on_mock};

/// Out of memory; not supported; the context was destroyed (it was not); anything else.
const ERRORS: [i32; 4] = [2, 801, 709, 719];
const PIECE: usize = 2 << 20;
const ROLE: &str = "HOOK_RUNTIME_TEST_OWNER";

fn driver() -> &'static Driver {
    let driver = Driver::get().unwrap();
    // SAFETY: the context is kept until the process ends.
    unsafe { driver.calls.context_set(driver.primary(0).unwrap()) }.unwrap();
    driver
}

/// Whether a function gives something back, so that its failure leaves it there.
fn gives_back(function: &str) -> bool {
    let parts = ["Free", "Destroy", "Unload", "Release", "Unmap", "Close", "PopCurrent"];
    parts.iter().any(|part| function.contains(part))
}

/// Does `work` with a fault at every call it makes. Returns the functions that have failed.
///
/// `cleanly`: whether a failed attempt leaves all as it was; what succeeds may keep something.
fn at_every_call(cleanly: bool, mut work: impl FnMut() -> Result<(), String>) -> BTreeSet<String> {
    let (mut functions, first) = (BTreeSet::new(), alive());
    for error in ERRORS {
        for n in 1.. {
            let before = alive();
            fail_at(n, error);
            let result = work();
            fail_at(0, 0);
            let Some(function) = failed() else {
                result.unwrap_or_else(|error| panic!("without a fault: {error}"));
                break;
            };
            let after = alive();
            let left: Vec<_> = (0..8).filter(|&kind| after[kind] > before[kind]).collect();
            // A pool that cannot be exported is kept for the next time, and never a second one.
            let one_more =
                |kind: &usize| [RANGES, POOLS].contains(kind) && after[*kind] <= first[*kind] + 1;
            let pool = left.contains(&POOLS) && left.iter().all(one_more);
            let excused = gives_back(&function) || !cleanly && (result.is_ok() || pool);
            assert!(
                left.is_empty() || excused,
                "call {n}, `{function}` with {error}: {result:?} left {before:?} -> {after:?}"
            );
            if function.contains("PopCurrent") {
                // It stays on top; the context that was current comes back.
                let mut context = 0;
                // SAFETY: the result is a place of ours.
                let _ = unsafe { driver().calls.context_pop(&raw mut context) };
                driver();
            }
            functions.insert(function);
            assert!(n < 5000, "it does not come to an end");
        }
    }
    functions
}

/// Ends the process if a test hangs.
fn watch() {
    let (alive, end) = channel::<()>();
    std::mem::forget(alive);
    std::thread::spawn(move || {
        let _ = end.recv_timeout(Duration::from_secs(120));
        println!("\nit hangs");
        std::process::abort();
    });
}

fn device(driver: &Driver, size: usize) -> usize {
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc(&raw mut address, size) }.unwrap();
    address as usize
}

/// The memory that copies are made between.
struct Buffers {
    one: usize,
    two: usize,
    pinned: usize,
    host: Vec<u8>,
    back: Vec<u8>,
}

const SIZE: usize = 3 << 20;

/// Every kind of copy once; what is begun and what is reported is noted.
fn copy_everything(
    copier: &mut Copier,
    buffers: &mut Buffers,
    begun: &mut Vec<u64>,
    report: &mut dyn FnMut(u64, Result<(), CopyError>),
) -> Result<(), CopyError> {
    let (one, two) = (copier.region(buffers.one, SIZE)?, copier.region(buffers.two, SIZE)?);
    let pinned = copier.region(buffers.pinned, SIZE)?;
    let host = copier.region(buffers.host.as_ptr() as usize, SIZE)?;
    let home = copier.region(buffers.back.as_mut_ptr() as usize, SIZE)?;
    // SAFETY: all of the memory stays, and nothing else touches it, here and below.
    unsafe { copier.copy_now((&one, 0), (&host, 0), SIZE) }?;
    let copies = [(&pinned, &one, SIZE), (&two, &pinned, SIZE), (&one, &two, 4096)];
    let small = (0..5).map(|n| [(&one, &pinned, 8 + n), (&two, &one, 16 + n)]);
    for (token, (to, from, size)) in copies.into_iter().chain(small.flatten()).enumerate() {
        // SAFETY: as above.
        match unsafe { copier.copy((to, 0), (from, 0), size, token as u64) }? {
            Posted::Pending => begun.push(token as u64),
            Posted::Done => {}
        }
        if token < 3 {
            // One after the other, so that every byte can be told.
            copier.flush(report)?;
        }
    }
    copier.progress(report);
    copier.flush(report)?;
    // SAFETY: as above.
    unsafe { copier.copy_now((&home, 0), (&two, 0), SIZE) }
}

/// Makes the copies; fails if one did, and panics if one is reported twice or not at all.
fn try_everything(
    driver: &'static Driver,
    settings: &Settings,
    buffers: &mut Buffers,
) -> Result<(), String> {
    buffers.back.fill(0);
    let mut copier = Copier::new(driver, settings.clone());
    let (mut reports, mut begun) = (Vec::new(), Vec::new());
    let mut report = |token, result| reports.push((token, result));
    let result = copy_everything(&mut copier, buffers, &mut begun, &mut report);
    if result.is_err() {
        let _ = copier.flush(&mut report);
    }
    assert_eq!(copier.outstanding(), 0);
    drop(copier);
    let mut tokens: Vec<_> = reports.iter().map(|report| report.0).collect();
    tokens.sort_unstable();
    // A copy whose posting was refused may have been gathered before: it is reported.
    tokens.retain(|token| begun.contains(token));
    assert_eq!(tokens, begun, "{result:?}");
    result
        .and_then(|()| reports.into_iter().try_for_each(|report| report.1))
        .map_err(|error| error.to_string())?;
    assert!(buffers.back.iter().all(|&byte| byte == 3), "every byte is right");
    Ok(())
}

#[test]
fn copies_are_reported_once_and_leave_nothing() {
    on_mock("copies_are_reported_once_and_leave_nothing", "13.0", &[], || {
        watch();
        let driver = driver();
        let mut pinned = std::ptr::null_mut();
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.alloc_host(&raw mut pinned, SIZE, 0) }.unwrap();
        let mut buffers = Buffers {
            one: device(driver, SIZE),
            two: device(driver, SIZE),
            pinned: pinned as usize,
            host: vec![3; SIZE],
            back: vec![0; SIZE],
        };
        let value_of = |name: &str| match name {
            "HOOK_RUNTIME_STAGE_THREADS" => Some("2".to_owned()),
            "HOOK_RUNTIME_STAGE_CHUNK" => Some("512k".to_owned()),
            "HOOK_RUNTIME_COPY_BATCH" => Some("3".to_owned()),
            _ => None,
        };
        let settings = Settings::read(value_of, &mut |message| panic!("{message}"));
        let functions = at_every_call(true, || try_everything(driver, &settings, &mut buffers));
        for function in [
            "cuMemcpyAsync",
            "cuMemcpyBatchAsync_v2",
            "cuEventRecord",
            "cuStreamCreate",
            "cuMemHostAlloc",
            "cuStreamSynchronize",
            "cuModuleLoadData",
            "cuPointerGetAttributes",
        ] {
            assert!(functions.contains(function), "{function}: {functions:?}");
        }
    });
}

fn mapped(driver: &Driver, pieces: usize) -> usize {
    let calls = &driver.calls;
    let (mut address, location) = (0, Location { kind: 1, id: 0 });
    // SAFETY: the result is a place of ours.
    unsafe { calls.reserve(&raw mut address, pieces * PIECE, 0, 0, 0) }.unwrap();
    let both = handle::POSIX_FD | handle::FABRIC;
    let properties =
        AllocationProperties { kind: 1, handle_types: both, location, ..Default::default() };
    for piece in 0..pieces {
        let (mut physical, at) = (0, address + (piece * PIECE) as u64);
        // SAFETY: the arguments are places of ours.
        unsafe { calls.create(&raw mut physical, PIECE, &raw const properties, 0) }.unwrap();
        // SAFETY: the addresses were reserved, the memory made, above.
        unsafe { calls.map(at, PIECE, 0, physical, 0) }.unwrap();
        // SAFETY: the mapping keeps the memory; the handle is given back once.
        unsafe { calls.release(physical) }.unwrap();
    }
    let access = AccessDescription::read_write(0);
    // SAFETY: the range was mapped above.
    unsafe { calls.set_access(address, pieces * PIECE, &raw const access, 1) }.unwrap();
    address as usize
}

fn pooled(driver: &Driver, size: usize) -> usize {
    let both = handle::POSIX_FD | handle::FABRIC;
    let (mut pool, mut address, properties) = (0, 0, PoolProperties::new(0, both));
    // SAFETY: the arguments are places of ours.
    unsafe { driver.calls.pool_create(&raw mut pool, &raw const properties) }.unwrap();
    // SAFETY: the result is a place of ours, the pool is there.
    unsafe { driver.calls.pool_alloc_async(&raw mut address, size, pool, 0) }.unwrap();
    address as usize
}

/// Memory of each form, with its size.
fn memories(driver: &Driver) -> [(usize, usize); 3] {
    let size = 2 * PIECE;
    [(device(driver, size), size), (mapped(driver, 2), size), (pooled(driver, size), size)]
}

const FABRIC: [(&str, &str); 1] = [("MOCK_CUDA_FABRIC", "1")];

#[test]
fn what_is_not_exported_leaves_nothing() {
    on_mock("what_is_not_exported_leaves_nothing", "13.0", &FABRIC, || {
        watch();
        let driver = driver();
        for (address, size) in memories(driver) {
            let functions = at_every_call(false, || {
                let export = export(driver, address, size).map_err(|error| error.to_string())?;
                assert_eq!(export.key.range(), (address as u64, size as u64));
                Ok(())
            });
            assert!(functions.len() > 4, "{functions:?}");
        }
    });
}

/// The owner: exports one of each, says so, and ends when nothing more is said.
fn own() {
    let driver = driver();
    let exports = memories(driver).map(|(address, size)| {
        let bytes = vec![0x5a_u8; size];
        // SAFETY: both are as long as this.
        unsafe { driver.calls.copy(address as u64, bytes.as_ptr() as u64, size) }.unwrap();
        export(driver, address, size).unwrap()
    });
    for export in &exports {
        let bytes = export.key.to_bytes();
        let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("\nKEY {}", digits.concat());
    }
    let _ = std::io::stdin().lines().count();
}

#[test]
fn what_is_not_opened_leaves_nothing() {
    const TEST: &str = "what_is_not_opened_leaves_nothing";
    on_mock(TEST, "13.0", &FABRIC, || {
        if std::env::var_os(ROLE).is_some() {
            return own();
        }
        watch();
        let driver = driver();
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(std::env::args().skip(1))
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
        let words = lines.filter_map(|line| line.unwrap().strip_prefix("KEY ").map(str::to_owned));
        let keys: Vec<Key> = words
            .take(3)
            .map(|text| {
                let digits: Vec<_> = text.chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
                let bytes: Vec<_> =
                    digits.chunks_exact(2).map(|two| two[0] << 4 | two[1]).collect();
                Key::from_bytes(&bytes).unwrap()
            })
            .collect();
        assert_eq!(keys.len(), 3);
        for key in &keys {
            let mut bytes = vec![0_u8; 2 * PIECE];
            let functions = at_every_call(true, || {
                bytes.fill(0);
                let mut work = || {
                    let opened = cache().open(driver, key, &Settings::default());
                    let mapping = opened.map_err(|error| error.to_string())?;
                    let (to, from) = (bytes.as_mut_ptr() as u64, mapping.address() as u64);
                    // SAFETY: both are as long as this.
                    let copied = unsafe { driver.calls.copy(to, from, mapping.len()) };
                    copied.map_err(|failure| failure.to_string())
                };
                let result = work();
                cache().clear();
                if result.is_ok() {
                    assert!(bytes.iter().all(|&byte| byte == 0x5a));
                }
                result
            });
            assert!(functions.len() > 4, "{functions:?}");
        }
        drop(owner.stdin.take());
        owner.wait().unwrap();
    });
}
