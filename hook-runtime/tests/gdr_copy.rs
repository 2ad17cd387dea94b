//! gdr_copy on the mock libgdrapi.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::settings::Modes;
use hook_runtime::transport::gdr_copy::{GdrCopy, GdrError};
use hook_runtime::{Options, install};
use on_mock::on_mock;

const PAGE: usize = 64 << 10;

fn allocate(driver: &Driver, size: usize) -> usize {
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc(&raw mut address, size) }.unwrap();
    address as usize
}

fn driver() -> &'static Driver {
    let driver = Driver::get().unwrap();
    // SAFETY: the context is kept until the process ends.
    unsafe { driver.calls.context_set(driver.primary(0).unwrap()) }.unwrap();
    driver
}

#[test]
fn bytes_go_both_ways_until_the_memory_is_freed() {
    on_mock("bytes_go_both_ways_until_the_memory_is_freed", "12.5", &[], || {
        let driver = driver();
        install(&Options { modes: Modes::BOTH, trace: None }).unwrap();
        let gdr = GdrCopy::open().unwrap();
        let address = allocate(driver, 4 * PAGE);
        // In the middle of a page, and over its end.
        let at = address + PAGE - 100;
        gdr.register(at, 300).unwrap();
        gdr.register(at + 10, 20).unwrap();
        assert_eq!(gdr.registrations(), 1, "what is registered is found again");
        let bytes: Vec<u8> = (0..300).map(|n| (n * 7) as u8).collect();
        gdr.put(at, &bytes).unwrap();
        let mut seen = vec![0_u8; 300];
        // SAFETY: both are as long as this.
        unsafe { driver.calls.copy(seen.as_mut_ptr() as u64, at as u64, 300) }.unwrap();
        assert_eq!(seen, bytes, "the driver sees what was put");
        let mut back = vec![0_u8; 300];
        gdr.get(&mut back, at).unwrap();
        assert_eq!(back, bytes);
        // A longer range takes the shorter registration in.
        gdr.register(at, 2 * PAGE).unwrap();
        assert_eq!(gdr.registrations(), 1);
        gdr.get(&mut back, at).unwrap();
        assert_eq!(back, bytes);
        // SAFETY: allocated above, freed once.
        unsafe { driver.calls.free(address as u64) }.unwrap();
        assert_eq!(gdr.registrations(), 0, "given up before the driver takes it back");
        let refused = gdr.put(at, &bytes).unwrap_err();
        assert!(matches!(refused, GdrError::NotRegistered { size: 300, .. }), "{refused}");
    });
}

#[test]
fn what_cannot_be_registered_is_said() {
    on_mock("what_cannot_be_registered_is_said", "12.5", &[], || {
        let driver = driver();
        let gdr = GdrCopy::open().unwrap();
        let host = [0_u8; 8];
        let refused = gdr.register(host.as_ptr() as usize, 8).unwrap_err();
        assert!(refused.to_string().starts_with("`gdr_pin_buffer` failed: "), "{refused}");
        let address = allocate(driver, PAGE);
        gdr.register(address, 8).unwrap();
        let refused = gdr.get(&mut [0; 8], address + PAGE * 2).unwrap_err();
        assert!(matches!(refused, GdrError::NotRegistered { .. }), "{refused}");
    });
}
