//! Code made both ways, run, and looked up in the map.

use super::*;
use crate::sys::maps;

/// `mov eax, 42; ret`.
const ANSWER: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];

fn call(address: u64) -> i32 {
    // SAFETY: the caller has put `ANSWER` there and made it executable.
    let function =
        unsafe { std::mem::transmute::<usize, extern "C" fn() -> i32>(address as usize) };
    function()
}

fn protection_at(address: u64) -> Option<Protection> {
    let map = maps::read_self().expect("the map can be read");
    maps::find(&map, address).map(|entry| entry.protection)
}

#[test]
fn both_sources_give_code_that_is_never_writable_with_it() {
    for source in [Source::Anonymous, Source::MemoryFile] {
        let mut reserved = reserve(None, PAGE).expect("a page");
        let start = reserved.start;
        reserved.write(start + 16, &ANSWER);
        assert_eq!(
            protection_at(start),
            Some(Protection { read: true, write: true, execute: false })
        );
        reserved.seal(&source).expect("this system allows it");
        assert_eq!(protection_at(start), Some(READ_EXECUTE), "{source:?}");
        assert_eq!(call(start + 16), 42);
    }
}

#[test]
fn what_is_not_sealed_is_given_back() {
    let start = reserve(None, PAGE).expect("a page").start;
    let again = reserve(Some(start), PAGE);
    assert!(again.is_ok(), "{again:?}");
    let taken = reserve(Some(start), PAGE);
    assert!(taken.is_err(), "the address is in use");
}

#[test]
fn a_page_is_swapped_under_its_users() {
    for source in [Source::Anonymous, Source::MemoryFile] {
        let mut reserved = reserve(None, PAGE).expect("a page");
        let start = reserved.start;
        reserved.write(start, &ANSWER);
        reserved.seal(&Source::Anonymous).expect("this system allows it");
        assert_eq!(call(start), 42);
        let mut content = vec![0xcc; PAGE as usize];
        content[..6].copy_from_slice(&ANSWER);
        content[1] = 43;
        // SAFETY: a page of this test, where nobody is.
        unsafe { swap_page(start, &content, READ_EXECUTE, &source) }
            .expect("this system allows it");
        assert_eq!(call(start), 43);
        assert_eq!(protection_at(start), Some(READ_EXECUTE));
    }
}

#[test]
fn this_system_lets_text_be_changed() {
    let policy = probe().expect("no policy here");
    assert_eq!(policy, Policy { source: Source::Anonymous, change: Change::InPlace });
}
