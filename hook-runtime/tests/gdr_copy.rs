//! gdr_copy on the mock libgdrapi.
#![expect(clippy::disallowed_methods, reason = "a test builds the older library itself")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod on_mock;

use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::settings::Modes;
use hook_runtime::sys::library::Library;
use hook_runtime::transport::gdr_copy::{GdrCopy, GdrError};
use hook_runtime::transport::settings::Settings;
use hook_runtime::{Options, install};
use on_mock::{assert_passed, command, is_child, on_mock};

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
        let gdr = GdrCopy::open(&Settings::default()).unwrap();
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
        let gdr = GdrCopy::open(&Settings::default()).unwrap();
        let host = [0_u8; 8];
        let refused = gdr.register(host.as_ptr() as usize, 8).unwrap_err();
        assert!(refused.to_string().starts_with("`gdr_pin_buffer_v2` failed: "), "{refused}");
        let address = allocate(driver, PAGE);
        gdr.register(address, 8).unwrap();
        let refused = gdr.get(&mut [0; 8], address + PAGE * 2).unwrap_err();
        assert!(matches!(refused, GdrError::NotRegistered { .. }), "{refused}");
    });
}

/// A function of the mock libgdrapi's own.
fn of_mock<F: Copy>(name: &std::ffi::CStr) -> F {
    let address = Library::open(c"libgdrapi.so.2").unwrap().symbol(name).unwrap();
    assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: each caller names the type that the mock gives the function.
    unsafe { std::mem::transmute_copy::<usize, F>(&address) }
}

fn alive() -> i32 {
    let alive: extern "C" fn() -> i32 = of_mock(c"mock_gdr_alive");
    alive()
}

fn flags() -> u32 {
    let flags: extern "C" fn() -> u32 = of_mock(c"mock_gdr_flags");
    flags()
}

fn settings(force_pcie: &str) -> Settings {
    let value_of =
        |name: &str| (name == "HOOK_RUNTIME_GDR_FORCE_PCIE").then(|| force_pcie.to_owned());
    Settings::read(value_of, &mut |message| panic!("{message}"))
}

#[test]
fn the_newer_library_registers_with_flags() {
    on_mock("the_newer_library_registers_with_flags", "12.5", &[], || {
        let driver = driver();
        for (force, expected) in [("n", 256), ("y", 257)] {
            let gdr = GdrCopy::open(&settings(force)).unwrap();
            gdr.register(allocate(driver, PAGE), 100).unwrap();
            assert_eq!(flags(), expected, "by the newer function");
        }
        assert_eq!(alive(), 0);
    });
}

/// libgdrapi 2.0 has neither the newer function nor the structure that came with it.
#[test]
fn the_older_library_registers_without() {
    const TEST: &str = "the_older_library_registers_without";
    if is_child(TEST) {
        let driver = driver();
        let gdr = GdrCopy::open(&settings("y")).unwrap();
        let address = allocate(driver, PAGE);
        gdr.register(address + 5, 100).unwrap();
        assert_eq!(flags(), 0, "by the older function");
        gdr.put(address + 7, b"seven").unwrap();
        let mut back = [0; 5];
        gdr.get(&mut back, address + 7).unwrap();
        assert_eq!(&back, b"seven");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let sources = on_mock::mock::sources();
    let include = format!("-I{}", sources.join("../toolkit/include").display());
    let built = std::process::Command::new("cc")
        .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wl,-soname,libgdrapi.so.2"])
        .args(["-DUCX_STUB_GDRCOPY_VERSION=2000", "-DUCX_STUB_CUDA_VERSION=12050", &include, "-o"])
        .arg(directory.path().join("libgdrapi.so.2"))
        .args([sources.join("gdrapi/gdrapi.c"), "-ldl".into()])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut command = command(TEST, "12.5", &[]);
    let path = command.get_envs().find(|pair| pair.0 == "LD_LIBRARY_PATH").unwrap().1.unwrap();
    let both = format!("{}:{}", directory.path().display(), path.to_str().unwrap());
    let output = command.env("LD_LIBRARY_PATH", both).output().unwrap();
    assert_passed(TEST, &output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot be told to map through PCIe"), "{said}");
}

#[test]
fn a_kernel_module_of_another_version_is_explained() {
    for version in ["3.1", "2.9"] {
        let other = [("MOCK_GDR_DRIVER", version)];
        on_mock("a_kernel_module_of_another_version_is_explained", "12.5", &other, || {
            let opened = GdrCopy::open(&Settings::default());
            if std::env::var("MOCK_GDR_DRIVER").unwrap() == "2.9" {
                opened.unwrap();
                return;
            }
            let refused = opened.unwrap_err();
            assert!(matches!(refused, GdrError::Version { module: [3, 1], .. }), "{refused:?}");
            let expected = "libgdrapi 2.5 and the kernel module gdrdrv 3.1 do not go together: both need the same major version";
            assert_eq!(refused.to_string(), expected);
        });
        if is_child("a_kernel_module_of_another_version_is_explained") {
            return;
        }
    }
}

/// The nth call fails, whichever it is: what is not done is said, and nothing stays registered.
#[test]
fn whatever_call_fails_nothing_stays_behind() {
    on_mock("whatever_call_fails_nothing_stays_behind", "12.5", &[], || {
        let address = allocate(driver(), 4 * PAGE);
        let fail_at: extern "C" fn(i64, i32) = of_mock(c"mock_gdr_fail_at");
        let work = || -> Result<(), GdrError> {
            let gdr = GdrCopy::open(&Settings::default())?;
            gdr.register(address, 300)?;
            gdr.put(address + 3, &[7; 64])?;
            gdr.register(address + PAGE - 8, 64)?;
            let mut back = [0; 64];
            gdr.get(&mut back, address + 3)?;
            assert_eq!(back, [7; 64]);
            Ok(())
        };
        let mut failed = 0;
        for n in 1.. {
            let before = alive();
            fail_at(n, 22);
            let result = work();
            fail_at(0, 0);
            failed += i32::from(result.is_err());
            // What the library itself does not give up, told to, is the only thing left.
            let stay = alive() - before;
            assert!(stay <= 1, "{n}: {stay} stay");
            if let Err(error) = &result {
                assert_eq!(stay, 0, "{n}: {error}");
            }
            if n > 40 {
                assert!(result.is_ok(), "all calls have had their turn");
                break;
            }
        }
        assert!(failed >= 9, "{failed}");
    });
}
