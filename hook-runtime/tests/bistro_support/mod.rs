//! Functions with chosen openings, in text of their own, for the tests of live patching.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::arch::global_asm;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hook_runtime::patch::{Prepared, Refusal, Target, Transaction};
use hook_runtime::sys::maps::{self, MapsEntry, Protection};

/// Every function returns `a * 3 + b`, and counts its calls in memory.
pub(crate) type Function = extern "C" fn(u64, u64) -> u64;

// The body is reached by a jump, so that the openings can be as real ones are.
// `cases` keeps the functions away from the test's own code.
global_asm!(
    r#"
    .section .text.bistro_cases, "ax", @progbits
    .macro case name
        .globl \name
    .hidden \name
    .type \name, @function
\name:
    .endm

    .p2align 12
bistro_body:
    lea rax, [rdi + rdi*2]
    add rax, rsi
    lock inc qword ptr [rip + {calls}]
    ret

    # As driver 580 begins, but for the long branch.
    .p2align 4
    case case_580
    push rbp
    mov rbp, rsp
    push r12
    sub rsp, 8
    cmp dword ptr [rip + {flag}], 0x321cba00
    je 1f
    call bistro_body
1:  add rsp, 8
    pop r12
    pop rbp
    ret
    .size case_580, . - case_580

    # As drivers 470 to 550 begin.
    .p2align 4
    case case_470
    cmp dword ptr [rip + {flag}], 0x321cba00
    je 1f
    jmp qword ptr [rip + bistro_slot]
1:  ud2
    .size case_470, . - case_470

    # As R575 begins: a short subtraction from the stack pointer.
    .p2align 4
    case case_575
    sub rsp, 0x18
    cmp dword ptr [rip + {flag}], 0x321cba00
    je 1f
    call bistro_body
1:  add rsp, 0x18
    ret
    .size case_575, . - case_575

    .p2align 4
    case case_endbr64
    endbr64
    push rbx
    push r12
    push r13
    call bistro_body
    pop r13
    pop r12
    pop rbx
    ret
    .size case_endbr64, . - case_endbr64

    # The five bytes lie in two words.
    .p2align 4
    nop
    nop
    nop
    nop
    nop
    case case_unaligned
    push rbp
    mov rbp, rsp
    push r12
    push r13
    call bistro_body
    pop r13
    pop r12
    pop rbp
    ret
    .size case_unaligned, . - case_unaligned

    # One-byte instructions at every place of the jump.
    .p2align 4
    case case_pushes
    push rbp
    push rbx
    push rdi
    push rsi
    push rdx
    call bistro_body
    pop rdx
    pop rsi
    pop rdi
    pop rbx
    pop rbp
    ret
    .size case_pushes, . - case_pushes

    # A short branch among the bytes that move.
    .p2align 4
    case case_branch
    test rdi, rdi
    jne 1f
    nop
1:  call 2f
    ret
2:  jmp bistro_body
    .size case_branch, . - case_branch

    # A call is the first thing: its return address is not inside.
    .p2align 4
    case case_call
    call bistro_body
    ret
    .size case_call, . - case_call

    # Somebody else's jump.
    .p2align 4
    case case_hooked
    .byte 0xe9
    .long bistro_body - . - 4
    .size case_hooked, . - case_hooked

    .p2align 4
    case case_short
    mov eax, edi
    nop
    ret
    .size case_short, . - case_short

    # Crosses from one page to the next.
    .p2align 12
    .skip 4096 - 3
    case case_pages
    push rbp
    mov rbp, rsp
    push r12
    push r13
    call bistro_body
    pop r13
    pop r12
    pop rbp
    ret
    .size case_pages, . - case_pages

    # Waits in the kernel, with its program counter at +4. Reads a byte from the
    # file `a` into `[rsp - 8]`, and returns it plus `b`.
    .p2align 4
    case case_waiting
    xor eax, eax
    syscall
    movzx eax, byte ptr [rsi]
    add eax, r8d
    nop
    nop
    ret
    .size case_waiting, . - case_waiting

    # Enter a function behind its first instructions, having executed them.
    .p2align 4
    case bistro_enter_580_1
    push rbp
    jmp case_580 + 1
    case bistro_enter_580_4
    push rbp
    mov rbp, rsp
    jmp case_580 + 4
    case bistro_enter_pushes_3
    push rbp
    push rbx
    push rdi
    jmp case_pushes + 3
    case bistro_enter_unaligned_4
    push rbp
    mov rbp, rsp
    jmp case_unaligned + 4
    case bistro_wait
    mov r8, rsi
    lea rsi, [rsp - 8]
    mov edx, 1
    jmp case_waiting

    .section .data.bistro_cases, "aw", @progbits
    .p2align 3
bistro_slot:
    .quad bistro_body
    .text
    "#,
    calls = sym CALLS,
    flag = sym FLAG,
);

/// Calls that reached the original functions.
pub(crate) static CALLS: AtomicU64 = AtomicU64::new(0);
static FLAG: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn case_580();
    fn case_470();
    fn case_575();
    fn case_endbr64();
    fn case_unaligned();
    fn case_pushes();
    fn case_branch();
    fn case_call();
    fn case_hooked();
    fn case_short();
    fn case_pages();
    fn case_waiting();
    fn bistro_enter_580_1();
    fn bistro_enter_580_4();
    fn bistro_enter_pushes_3();
    fn bistro_enter_unaligned_4();
    fn bistro_wait();
}

/// A function to be hooked.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) address: usize,
    /// What stands in for it.
    pub(crate) replacement: Function,
}

impl Case {
    /// As a program calls it.
    pub(crate) fn call(&self, a: u64, b: u64) -> u64 {
        call(self.address, a, b)
    }
}

pub(crate) fn call(address: usize, a: u64, b: u64) -> u64 {
    // SAFETY: one of the functions above, or a trampoline of one.
    let function = unsafe { std::mem::transmute::<usize, Function>(address) };
    std::hint::black_box(function)(a, b)
}

/// Calls that went through a replacement.
pub(crate) static HOOKED: AtomicU64 = AtomicU64::new(0);
/// The original of each case, set before the commit.
pub(crate) static ORIGINALS: [AtomicUsize; 10] = [const { AtomicUsize::new(0) }; 10];

extern "C" fn replacement<const CASE: usize>(a: u64, b: u64) -> u64 {
    HOOKED.fetch_add(1, Ordering::Relaxed);
    call(ORIGINALS[CASE].load(Ordering::Relaxed), a, b)
}

/// All functions that can be patched.
pub(crate) fn cases() -> [Case; 10] {
    macro_rules! case {
        ($index:literal, $name:ident) => {
            Case {
                name: stringify!($name),
                address: $name as unsafe extern "C" fn() as usize,
                replacement: replacement::<$index>,
            }
        };
    }
    [
        case!(0, case_580),
        case!(1, case_470),
        case!(2, case_575),
        case!(3, case_endbr64),
        case!(4, case_unaligned),
        case!(5, case_pushes),
        case!(6, case_branch),
        case!(7, case_call),
        case!(8, case_hooked),
        case!(9, case_pages),
    ]
}

/// The function that is too short.
pub(crate) fn short() -> usize {
    case_short as unsafe extern "C" fn() as usize
}

/// Ways into the middle of a function: its case, the offset, the way.
pub(crate) fn entrances() -> [(usize, usize, usize); 4] {
    let address = |function: unsafe extern "C" fn()| function as usize;
    [
        (0, 1, address(bistro_enter_580_1)),
        (0, 4, address(bistro_enter_580_4)),
        (5, 3, address(bistro_enter_pushes_3)),
        (4, 4, address(bistro_enter_unaligned_4)),
    ]
}

/// The function that waits in the kernel, and how it is called.
pub(crate) fn waiting() -> (usize, usize) {
    (
        case_waiting as unsafe extern "C" fn() as usize,
        bistro_wait as unsafe extern "C" fn() as usize,
    )
}

/// Address and protection of every mapping of this program's file, merged.
pub(crate) fn protections() -> Vec<(u64, u64, Protection)> {
    let map = maps::read_self().expect("the map can be read");
    assert!(!map.iter().any(|entry| entry.protection.is_writable_and_executable()), "{map:#?}");
    let here = cases()[0].address as u64;
    let path = &maps::find(&map, here).expect("code lies in a mapping").path;
    let mut merged: Vec<(u64, u64, Protection)> = Vec::new();
    for MapsEntry { range, protection, .. } in map.iter().filter(|entry| entry.path == *path) {
        match merged.last_mut() {
            Some((_, end, same)) if *end == range.start && same == protection => *end = range.end,
            _ => merged.push((range.start, range.end, *protection)),
        }
    }
    merged
}

/// Maps everything that is free in a range, without access. It stays so.
pub(crate) fn occupy(range: std::ops::Range<u64>) -> usize {
    let map = maps::read_self().expect("the map can be read");
    let range = range.start & !0xfff..range.end & !0xfff;
    let mut start = range.start;
    let mut taken = 0;
    let entries =
        map.iter().map(|entry| entry.range.clone()).filter(|entry| entry.end > range.start);
    for entry in entries.chain(std::iter::once(range.end..range.end)) {
        let end = entry.start.min(range.end);
        if start < end {
            // SAFETY: FIXED_NOREPLACE: nothing that is mapped is touched.
            unsafe {
                rustix::mm::mmap_anonymous(
                    start as *mut _,
                    (end - start) as usize,
                    rustix::mm::ProtFlags::empty(),
                    rustix::mm::MapFlags::PRIVATE
                        | rustix::mm::MapFlags::FIXED_NOREPLACE
                        | rustix::mm::MapFlags::NORESERVE,
                )
            }
            .expect("it is free");
            taken += 1;
        }
        start = start.max(entry.end);
    }
    taken
}

/// Adds a target of these tests.
pub(crate) fn add(transaction: &mut Transaction, target: Target<'_>) -> Result<Prepared, Refusal> {
    // SAFETY: every target of the tests is a function of this program, or no
    // code at all, and its replacement takes the same arguments.
    unsafe { transaction.add(target) }
}
