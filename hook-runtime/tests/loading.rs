//! `dlopen` while hooks are installed: callers' search paths, constructors, threads.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::ffi::{CString, c_int};

use hook_runtime::settings::Modes;
use hook_runtime::{Coverage, Options, install, uninstall};

#[path = "hooks_support/mod.rs"]
mod support;
use support::{Library, Record, Workshop, allocated, in_own_process, last_error};

fn install_reloc() {
    install(&Options { modes: Modes { bistro: false, reloc: true }, trace: None }).unwrap();
}

/// Opens `name` from inside the library `host`, as its own code would.
fn open_from(host: Library, name: &str) -> usize {
    let name = CString::new(name).unwrap();
    host.function::<extern "C" fn(*const std::ffi::c_char) -> usize>(c"host_open")(name.as_ptr())
}

#[test]
fn a_caller_finds_what_it_would_have_found() {
    in_own_process("a_caller_finds_what_it_would_have_found", || {
        let workshop = Workshop::new();
        for name in ["run", "old", "origin"] {
            workshop.build(&format!("private/lib{name}plugin.so"), "host", &[]);
        }
        let private = "-Wl,-rpath,$ORIGIN/private";
        let tags = ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"];
        let run = workshop.build("librun.so", "host", &[private, tags[0]]);
        let old = workshop.build("libold.so", "host", &[private, tags[1]]);
        let none = workshop.build("libnone.so", "host", &[]);
        let [run, old, none] = [&run, &old, &none].map(|path| Library::open(path));

        // Who finds what is found out without hooks first.
        let attempts = [
            (run, "librunplugin.so", true),
            (none, "librunplugin.so", false),
            (old, "liboldplugin.so", true),
            (none, "liboldplugin.so", false),
            (none, "$ORIGIN/private/liboriginplugin.so", true),
            (run, "libnosuchplugin.so", false),
            (run, "/no/such/libplugin.so", false),
        ];
        let try_all = || {
            attempts.map(|(host, name, _)| {
                let handle = open_from(host, name);
                let message = if handle == 0 { last_error() } else { String::new() };
                // SAFETY: the handle was opened just now, and nothing is used of it.
                let closed = handle == 0 || unsafe { libc::dlclose(handle as *mut _) } == 0;
                assert!(closed);
                (name, handle != 0, message)
            })
        };
        let without = try_all();
        for ((name, found, _), (_, _, expected)) in without.iter().zip(attempts) {
            assert_eq!(*found, expected, "{name}");
        }
        install_reloc();
        assert!(Coverage::now().modes.reloc);
        assert_eq!(try_all(), without, "what is found, and what is said");
        uninstall();
        assert_eq!(try_all(), without);
    });
}

#[test]
fn the_program_itself_can_be_opened() {
    in_own_process("the_program_itself_can_be_opened", || {
        // SAFETY: opening the program runs no constructor.
        let open = || unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
        let before = open();
        assert!(!before.is_null());
        install_reloc();
        assert_eq!(open(), before);
    });
}

#[test]
fn what_a_constructor_loads_is_hooked() {
    in_own_process("what_a_constructor_loads_is_hooked", || {
        let workshop = Workshop::new();
        workshop.usual();
        let here = "-Wl,-rpath,$ORIGIN";
        let host = workshop.build("libhost.so", "host", &["-DAT_ONCE=\"libvictim.so\"", here]);
        install_reloc();
        let record = Record::start();
        let host = Library::open(&host);
        // SAFETY: the variable is a pointer that the constructor has set.
        let victim = unsafe { *(host.address(c"host_opened") as *const Library) };
        let address = victim.allocate(c"by_call", 5);
        assert_eq!(record.take(), [allocated(address, 5, "cudaMalloc")]);
    });
}

#[test]
fn threads_load_and_unload_at_once() {
    in_own_process("threads_load_and_unload_at_once", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        let here = "-Wl,-rpath,$ORIGIN";
        let paths: Vec<_> = (0..4)
            .map(|number| {
                let name = format!("libvictim{number}.so");
                workshop.build(&name, "victim", &["libcudart.so.12", here])
            })
            .collect();
        // Keeps the runtime, so that only the callers come and go.
        Library::open(&usual.runtime);
        install_reloc();
        let record = Record::start();
        const ROUNDS: usize = 50;
        std::thread::scope(|scope| {
            for path in &paths {
                scope.spawn(|| {
                    for round in 1..=ROUNDS {
                        let victim = Library::open(path);
                        let address = victim.allocate(c"by_call", round);
                        assert_ne!(address, 0);
                        assert_eq!(victim.release(address), 0);
                        victim.close();
                    }
                });
            }
        });
        let events = record.take();
        assert_eq!(events.len(), 2 * ROUNDS * paths.len(), "none is lost, none doubled");
        assert_eq!(Coverage::now().row("cudaMalloc").unwrap().slots, 0);
    });
}

#[test]
fn libraries_that_go_together_are_forgotten_together() {
    in_own_process("libraries_that_go_together_are_forgotten_together", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        let here = "-Wl,-rpath,$ORIGIN";
        // The top holds the middle, whose slots are hooked; closing the top unloads both.
        let linked = ["-Wl,--no-as-needed", "libvictim.so", here];
        let top = workshop.build("libtop.so", "host", &linked);
        let other = workshop.build("libother.so", "victim", &["libcudart.so.12", here]);
        Library::open(&usual.runtime);
        install_reloc();
        let record = Record::start();
        let slots = || Coverage::now().row("cudaMalloc").unwrap().slots;
        for size in 1..=20 {
            let handle = Library::open(&top);
            assert_eq!(slots(), 3);
            handle.close();
            assert_eq!(slots(), 0);
            // Another library, which may well lie where the first one did.
            let victim = Library::open(&other);
            assert_eq!(slots(), 3);
            let address = victim.allocate(c"by_call", size);
            assert_eq!(record.take(), [allocated(address, size, "cudaMalloc")]);
            victim.close();
        }
    });
}

#[test]
fn libraries_loaded_before_and_after_need_no_order() {
    in_own_process("libraries_loaded_before_and_after_need_no_order", || {
        let workshop = Workshop::new();
        let usual = workshop.usual();
        install_reloc();
        let record = Record::start();
        let global: c_int = libc::RTLD_NOW | libc::RTLD_GLOBAL;
        Library::open_with(&usual.driver, global);
        Library::open_with(&usual.runtime, global);
        let victim = Library::open(&usual.victim);
        let address = victim.allocate(c"by_address", 9);
        assert_eq!(record.take(), [allocated(address, 9, "cudaMalloc")]);
    });
}
