//! cuda_copy on the mock driver: bytes, contexts, and what happens when the driver fails.
#![expect(clippy::print_stdout, reason = "the process of a fault says how many copies failed")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use std::collections::BTreeMap;

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::memtype::Kind;
use hook_runtime::settings::Modes;
use hook_runtime::transport::CopyError;
use hook_runtime::transport::cuda_copy::{Copier, Posted};
use hook_runtime::transport::settings::Settings;
use hook_runtime::{Options, install, memtype};
use on_mock::{assert_passed, command, on_mock};

const SIZE: usize = 1 << 20;
const KINDS: [Kind; 4] = [Kind::Host, Kind::Pinned, Kind::Device, Kind::Managed];

/// Memory of one kind, which is not given back: each test has a process of its own.
fn memory(driver: &Driver, kind: Kind, size: usize) -> usize {
    let mut address = 0;
    let mut pinned = std::ptr::null_mut();
    match kind {
        Kind::Host => return vec![0_u8; size].leak().as_ptr() as usize,
        // SAFETY: the result is a place of ours.
        Kind::Pinned => unsafe { driver.calls.alloc_host(&raw mut pinned, size, 0) }.unwrap(),
        // SAFETY: as above.
        Kind::Device => unsafe { driver.calls.alloc(&raw mut address, size) }.unwrap(),
        // SAFETY: as above.
        Kind::Managed => unsafe { driver.calls.alloc_managed(&raw mut address, size, 1) }.unwrap(),
    }
    if kind == Kind::Pinned { pinned as usize } else { address as usize }
}

/// Fills memory of any kind with bytes that follow from `seed`.
fn fill(driver: &Driver, address: usize, size: usize, seed: usize) {
    let bytes: Vec<u8> = (0..size).map(|n| pattern(n, seed)).collect();
    // SAFETY: both are as long as this.
    unsafe { driver.calls.copy(address as u64, bytes.as_ptr() as u64, size) }.unwrap();
}

fn pattern(n: usize, seed: usize) -> u8 {
    (n.wrapping_mul(31) ^ (n >> 8) ^ seed.wrapping_mul(97)) as u8
}

fn read(driver: &Driver, address: usize, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // SAFETY: both are as long as this.
    unsafe { driver.calls.copy(bytes.as_mut_ptr() as u64, address as u64, size) }.unwrap();
    bytes
}

fn primary(driver: &Driver) -> usize {
    let mut context = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.primary_retain(&raw mut context, 0) }.unwrap();
    context
}

fn set_current(driver: &Driver, context: usize) {
    // SAFETY: 0, or a context that the test has made.
    unsafe { driver.calls.context_set(context) }.unwrap();
}

/// Settings under which a megabyte goes every way there is.
fn settings() -> Settings {
    let value_of = |name: &str| match name {
        "HOOK_RUNTIME_STAGE_SIZE" => Some("256k".to_owned()),
        "HOOK_RUNTIME_STAGE_CHUNK" => Some("64k".to_owned()),
        "UCX_CUDA_COPY_MAX_EVENTS" => Some("3".to_owned()),
        _ => None,
    };
    Settings::read(value_of, &mut |message| panic!("{message}"))
}

/// Numbers that look random and are the same in every run.
fn random(state: &mut usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Copies pieces between every two kinds of memory and holds the result against the same
/// copies made in a plain vector.
fn every_pair() {
    let driver = Driver::get().unwrap();
    set_current(driver, primary(driver));
    let mut copier = Copier::new(driver, settings());
    let mut state = 1;
    for (number, (from_kind, to_kind)) in
        KINDS.iter().flat_map(|from| KINDS.iter().map(move |to| (*from, *to))).enumerate()
    {
        let (from, to) = (memory(driver, from_kind, SIZE), memory(driver, to_kind, SIZE));
        fill(driver, from, SIZE, number);
        fill(driver, to, SIZE, 100 + number);
        let mut expected = read(driver, to, SIZE);
        let source = read(driver, from, SIZE);
        let from = copier.region(from, SIZE).unwrap();
        let to_region = copier.region(to, SIZE).unwrap();
        assert_eq!((from.kind(), to_region.kind()), (from_kind, to_kind));
        let mut pending = 0;
        let mut reported = 0;
        for token in 0..60 {
            let size = match token % 6 {
                0 => SIZE / 2 + random(&mut state) % (SIZE / 4),
                1 => 5000 + random(&mut state) % 50_000,
                _ => random(&mut state) % 600,
            };
            let (at, into) =
                (random(&mut state) % (SIZE - size), random(&mut state) % (SIZE - size));
            expected[into..into + size].copy_from_slice(&source[at..at + size]);
            if token % 11 == 10 {
                copier
                    .flush(&mut |_, result| {
                        result.unwrap();
                        reported += 1
                    })
                    .unwrap();
                // SAFETY: all memory stays; nothing else touches it.
                unsafe { copier.copy_now((&to_region, into), (&from, at), size) }.unwrap();
                continue;
            }
            // SAFETY: all memory stays; nothing else touches it before the flush.
            let posted = unsafe { copier.copy((&to_region, into), (&from, at), size, token) };
            pending += u32::from(posted.unwrap() == Posted::Pending);
        }
        copier
            .flush(&mut |_, result| {
                result.unwrap();
                reported += 1
            })
            .unwrap();
        assert_eq!(reported, pending, "each is reported once");
        assert_eq!(copier.outstanding(), 0);
        assert!(read(driver, to, SIZE) == expected, "{from_kind:?} to {to_kind:?}");
    }
}

#[test]
fn bytes_arrive_between_all_kinds() {
    for level in ["11.2", "12.8", "13.0"] {
        on_mock("bytes_arrive_between_all_kinds", level, &[], every_pair);
    }
}

#[test]
fn a_copy_outside_a_region_is_refused() {
    on_mock("a_copy_outside_a_region_is_refused", "12.5", &[], || {
        let driver = Driver::get().unwrap();
        set_current(driver, primary(driver));
        let mut copier = Copier::new(driver, Settings::default());
        let address = memory(driver, Kind::Device, 1000);
        let region = copier.region(address, 1000).unwrap();
        for (offset, size) in [(999, 2), (1001, 0), (usize::MAX, 2)] {
            // SAFETY: nothing is copied.
            let refused = unsafe { copier.copy((&region, 0), (&region, offset), size, 1) };
            assert_eq!(refused, Err(CopyError::OutOfRange { offset, size, length: 1000 }));
        }
        let unknown = copier.region(address, 1 << 30);
        assert_eq!(unknown, Err(CopyError::UnknownMemory { address, length: 1 << 30 }));
    });
}

/// Memory of a context of the user's own, while another one or none is current.
fn contexts() {
    let driver = Driver::get().unwrap();
    set_current(driver, primary(driver));
    install(&Options { modes: Modes::BOTH, trace: None }).unwrap();
    memtype::start();
    let mut context = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.context_create(&raw mut context, 0, 0) }.unwrap();
    let (from, to) = (memory(driver, Kind::Device, SIZE), memory(driver, Kind::Device, SIZE));
    let host = memory(driver, Kind::Host, SIZE);
    fill(driver, from, SIZE, 5);
    while driver.current().unwrap().is_some() {
        set_current(driver, 0); // Takes the topmost one off.
    }
    let mut copier = Copier::new(driver, settings());
    let [from, to, host] = [from, to, host].map(|at| copier.region(at, SIZE).unwrap());
    // SAFETY: the memory stays until the context is destroyed below.
    let posted = unsafe { copier.copy((&to, 10), (&from, 0), 500, 1) };
    assert_eq!(posted, Ok(Posted::Pending));
    copier.flush(&mut |token, result| assert_eq!((token, result), (1, Ok(())))).unwrap();
    // SAFETY: as above.
    unsafe { copier.copy_now((&host, 0), (&to, 10), 500) }.unwrap();
    // SAFETY: as above; staged.
    unsafe { copier.copy_now((&to, 0), (&host, 0), SIZE) }.unwrap();
    assert_eq!(driver.current().unwrap(), None, "nothing is left current");
    // SAFETY: leaked above, and long enough.
    let bytes = unsafe { std::slice::from_raw_parts(host.address() as *const u8, 500) };
    assert!(bytes.iter().enumerate().all(|(n, byte)| *byte == pattern(n, 5)));
    // A copy is gathered, not yet handed over, when its context ends.
    // SAFETY: the driver never gets to see it.
    assert_eq!(unsafe { copier.copy((&to, 0), (&from, 0), 8, 7) }, Ok(Posted::Pending));
    // SAFETY: made above, destroyed once.
    unsafe { driver.calls.context_destroy(context) }.unwrap();
    let mut reports = Vec::new();
    copier.progress(&mut |token, result| reports.push((token, result)));
    assert_eq!(reports, [(7, Err(CopyError::ContextGone))]);
    // SAFETY: it is refused.
    let refused = unsafe { copier.copy((&to, 0), (&from, 0), 8, 8) };
    assert!(matches!(refused, Err(CopyError::Driver(failure)) if failure.is_gone()), "{refused:?}");
    copier.flush(&mut |_, _| panic!("nothing is under way")).unwrap();
}

#[test]
fn users_contexts_no_context_and_destroyed_ones() {
    for level in ["11.8", "12.8"] {
        on_mock("users_contexts_no_context_and_destroyed_ones", level, &[], contexts);
    }
}

/// Copies every way there is. Every copy is reported exactly once or refused, and where all
/// is well the bytes are right.
fn under_faults() {
    let driver = match Driver::get() {
        Ok(driver) => driver,
        Err(error) => return assert!(error.to_string().contains("cu"), "{error}"),
    };
    set_current(driver, primary(driver));
    let addresses = KINDS.map(|kind| memory(driver, kind, SIZE));
    let failed = {
        let mut copier = Copier::new(driver, settings());
        let regions: Result<Vec<_>, _> =
            addresses.iter().map(|&at| copier.region(at, SIZE)).collect();
        let Ok(regions) = regions else { return };
        let mut failed = 0;
        let mut under_way = BTreeMap::new();
        for token in 0..400_u64 {
            let (from, to) = (&regions[token as usize % 4], &regions[token as usize / 4 % 4]);
            let size = [8, 300, 20_000, 400_000][token as usize / 16 % 4];
            // SAFETY: the memory stays, and its contents do not matter.
            match unsafe { copier.copy((to, 0), (from, SIZE / 2), size, token) } {
                Ok(Posted::Pending) => drop(under_way.insert(token, 0)),
                Ok(Posted::Done) => {}
                Err(_) => failed += 1,
            }
            if token % 20 == 19 {
                copier.progress(&mut |token, result| {
                    *under_way.get_mut(&token).unwrap() += 1;
                    failed += u32::from(result.is_err());
                });
            }
        }
        for _ in 0..2 {
            let _ = copier.flush(&mut |token, result| {
                *under_way.get_mut(&token).unwrap() += 1;
                failed += u32::from(result.is_err());
            });
        }
        assert!(under_way.values().all(|times| *times == 1), "each is reported exactly once");
        assert_eq!(copier.outstanding(), 0);
        failed
    };
    println!("failed copies: {failed}");
}

/// Which call fails, with what, after how many that work, and whether that must be seen.
const FAULTS: [(&str, bool); 16] = [
    ("cuStreamCreate:2:0", true),
    ("cuStreamCreate:2:3:1", true),
    ("cuEventCreate:2:0", true),
    ("cuEventCreate:2:2:4", true),
    ("cuEventRecord:719:0:3", true),
    ("cuEventRecord:719:7", true),
    ("cuEventQuery:719:0", true),
    ("cuEventSynchronize:719:0", true),
    ("cuMemcpyAsync:719:0", true),
    ("cuMemcpyAsync:1:10:1", true),
    ("cuMemcpyBatchAsync_v2:1:1:1", true),
    ("cuMemcpyBatchAsync_v2:801:0", false),
    ("cuStreamSynchronize:719:0", true),
    ("cuMemHostAlloc:2:3", true),
    // Not knowing which context is current, the right one is pushed.
    ("cuCtxGetCurrent:4:5:3", false),
    ("cuPointerGetAttribute:1:0", false),
];

#[test]
fn every_failing_call_surfaces_and_nothing_hangs() {
    const TEST: &str = "every_failing_call_surfaces_and_nothing_hangs";
    if on_mock::is_child(TEST) {
        return under_faults();
    }
    for (fault, seen) in FAULTS {
        let output = command(TEST, "13.0", &[("MOCK_CUDA_FAIL", fault)]).output().unwrap();
        assert_passed(fault, &output);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.contains("failed copies: 0\n"), !seen, "{fault}:\n{text}");
    }
}
