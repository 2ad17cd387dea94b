//! The corpus of openings, executed: moved instructions do to registers, flags
//! and memory what they did where they were.
//!
//! An opening is put at its address in memory that is otherwise full of `int3`,
//! and entered with chosen registers; wherever it goes, it stops in a trap, and
//! the signal handler keeps what the registers are. The same with the moved form.
#![cfg(all(bistro_hooks, target_arch = "x86_64"))]

use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};

use hook_runtime::code::prologue::{Function, Prologue};
use hook_runtime::code::relocate::{self, Relocated};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

const CORPUS: [&str; 6] = [
    include_str!("../../fixtures/code/x86_64/libcuda-470.txt"),
    include_str!("../../fixtures/code/x86_64/libcuda-535.txt"),
    include_str!("../../fixtures/code/x86_64/libcuda-550.txt"),
    include_str!("../../fixtures/code/x86_64/libcuda-575.txt"),
    include_str!("../../fixtures/code/x86_64/libcuda-580.txt"),
    include_str!("../../fixtures/code/x86_64/openings.txt"),
];

#[path = "bistro_support/streams.rs"]
mod streams;
use streams::{Part, STREAM};

const PAGE: u64 = 4096;
/// Where registers point, and where the stack is.
const SCRATCH: u64 = 0x3000_0000_0000;
const STACK: u64 = 0x3000_1000_0000;
const STACK_POINTER: u64 = STACK + 2 * PAGE + 0x108;
/// Where pointers in memory lead: a page of traps.
const STOP: u64 = 0x3000_2000_0000;
/// Status flags and direction.
const FLAGS: i64 = 0xcd5;

type Registers = [i64; 23];

/// What the handler and the test share; one thread uses it.
struct Shared(UnsafeCell<Machine>);

// SAFETY: this binary has one test, and only its thread runs into traps.
unsafe impl Sync for Shared {}

struct Machine {
    /// The registers to enter with; afterwards those that were found.
    guest: Registers,
    host: Registers,
    inside: bool,
    signal: c_int,
}

static MACHINE: Shared =
    Shared(UnsafeCell::new(Machine { guest: [0; 23], host: [0; 23], inside: false, signal: 0 }));

extern "C" fn handle(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: only the one thread is here, and it is stopped.
    let machine = unsafe { &mut *MACHINE.0.get() };
    // SAFETY: the kernel gives a valid ucontext.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    if machine.inside {
        machine.guest = *registers;
        machine.signal = signal;
        *registers = machine.host;
    } else {
        machine.host = *registers;
        // The first eighteen are those of the program; the rest is the kernel's.
        registers[..18].copy_from_slice(&machine.guest[..18]);
    }
    machine.inside = !machine.inside;
}

fn install_handler() {
    let stack = Box::leak(vec![0_u8; 1 << 17].into_boxed_slice());
    let stack =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack lives for ever.
    assert_eq!(unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) }, 0);
    for signal in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGILL, libc::SIGBUS] {
        // SAFETY: an action of zeros is a valid one.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler only touches `MACHINE` and its context.
        assert_eq!(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }, 0);
    }
}

/// Pages at fixed addresses, given back at the end.
struct Pages(Vec<u64>);

impl Pages {
    fn map(pages: impl Iterator<Item = u64>) -> Self {
        let pages: Vec<u64> = pages.collect();
        for page in &pages {
            // SAFETY: FIXED_NOREPLACE: nothing that is mapped is touched.
            let got = unsafe {
                mmap_anonymous(
                    *page as *mut c_void,
                    PAGE as usize,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE,
                )
            };
            assert_eq!(got.expect("the page is free") as u64, *page);
        }
        Self(pages)
    }

    fn make_executable(&self) {
        for page in &self.0 {
            // SAFETY: pages of this test.
            unsafe {
                mprotect(
                    *page as *mut c_void,
                    PAGE as usize,
                    MprotectFlags::READ | MprotectFlags::EXEC,
                )
            }
            .expect("executable");
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in &self.0 {
            // SAFETY: pages of this test, which nobody uses any more.
            unsafe { munmap(*page as *mut c_void, PAGE as usize) }.expect("given back");
        }
    }
}

fn put(address: u64, bytes: &[u8]) {
    // SAFETY: the pages were mapped writable by this test.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}

fn get(address: u64, length: u64) -> Vec<u8> {
    // SAFETY: the pages were mapped by this test.
    unsafe { std::slice::from_raw_parts(address as *const u8, length as usize) }.to_vec()
}

/// What a run leaves behind.
struct Outcome {
    signal: c_int,
    counter: i64,
    flags: i64,
    registers: Vec<i64>,
    stack: Vec<u8>,
    data: Vec<u8>,
}

impl Outcome {
    /// The first thing in which another outcome differs.
    fn difference(&self, other: &Self) -> Option<String> {
        let ends = |one: &Self| (one.signal, one.counter, one.flags);
        if ends(self) != ends(other) {
            return Some(format!("signal, counter, flags: {:x?} {:x?}", ends(self), ends(other)));
        }
        if self.registers != other.registers {
            return Some(format!("registers: {:x?} {:x?}", self.registers, other.registers));
        }
        let memory = [("stack", &self.stack, &other.stack), ("data", &self.data, &other.data)];
        memory.into_iter().find(|(_, one, other)| one != other).map(|(name, one, other)| {
            let at = one.iter().zip(other).position(|(one, other)| one != other);
            format!("{name}: {} and {} bytes, different at {at:?}", one.len(), other.len())
        })
    }
}

fn run(entry: u64, registers: &[i64; 16], flags: i64, data: &[u64], fill: u64) -> Outcome {
    for page in data.iter().chain([&SCRATCH, &STACK, &(STACK + PAGE), &(STACK + 2 * PAGE)]) {
        put(*page, &fill.to_le_bytes().repeat(PAGE as usize / 8));
    }
    // SAFETY: the handler does not run now.
    let machine = unsafe { &mut *MACHINE.0.get() };
    machine.guest = [0; 23];
    machine.guest[..16].copy_from_slice(registers);
    machine.guest[libc::REG_RSP as usize] = STACK_POINTER as i64;
    machine.guest[libc::REG_RIP as usize] = entry as i64;
    machine.guest[libc::REG_EFL as usize] = flags | 0x202;
    // SAFETY: the handler enters the guest, which comes back by its trap with
    // all registers as they are here.
    unsafe { std::arch::asm!("int3") };
    // SAFETY: the handler has run, and does not run now.
    let machine = unsafe { &mut *MACHINE.0.get() };
    assert!(!machine.inside, "it came back");
    Outcome {
        signal: machine.signal,
        counter: machine.guest[libc::REG_RIP as usize],
        flags: machine.guest[libc::REG_EFL as usize] & FLAGS,
        registers: machine.guest[..16].to_vec(),
        // The red zone belongs to it; what is below belongs to nobody.
        stack: {
            let pointer = machine.guest[libc::REG_RSP as usize] as u64;
            let red_zone = pointer.min(STACK_POINTER) - 128;
            get(red_zone, STACK + 3 * PAGE - red_zone)
        },
        data: data.iter().flat_map(|page| get(*page, PAGE)).chain(get(SCRATCH, PAGE)).collect(),
    }
}

/// Registers as the kernel orders them, each pointing into the scratch page.
fn registers(variant: u64) -> [i64; 16] {
    let mut registers = [0; 16];
    for (index, register) in registers.iter_mut().enumerate() {
        *register = (SCRATCH + (index as u64 * 0x90 + variant * 0x38) % 0x800) as i64;
    }
    match variant {
        1 => (registers[libc::REG_RCX as usize], registers[libc::REG_RDI as usize]) = (0, 0),
        2 => (registers[libc::REG_RCX as usize], registers[libc::REG_RDI as usize]) = (1, i64::MAX),
        _ => {}
    }
    registers
}

struct Row<'a> {
    code: Vec<u8>,
    size: Option<usize>,
    was: u64,
    goes: u64,
    jump: usize,
    expected: &'a str,
    note: &'a str,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    let byte = |text| u8::from_str_radix(text, 16).expect("two digits");
    let address = |text: &str| u64::from_str_radix(&text[2..], 16).expect("an address");
    CORPUS
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.contains('|') && !line.starts_with('#'))
        .map(move |line| {
            let columns: Vec<&'static str> = line.split('|').map(str::trim).collect();
            Row {
                code: columns[0].split(' ').map(byte).collect(),
                size: columns[1].parse().ok(),
                was: address(columns[2]),
                goes: address(columns[3]),
                jump: columns[4].parse().expect("a length"),
                expected: columns[5],
                note: columns[6],
            }
        })
}

/// Puts both forms in place, runs them, and compares.
fn execute(row: &Row<'_>, prologue: &Prologue<'_>, relocated: &Relocated) {
    let is_code = |moved: &&hook_runtime::code::prologue::Moved| {
        !moved.instruction.is_ip_rel_memory_operand()
    };
    let data: BTreeSet<u64> = prologue
        .moved
        .iter()
        .filter(|moved| !is_code(moved))
        .map(|moved| moved.instruction.ip_rel_memory_address() & !(PAGE - 1))
        .flat_map(|page| [page, page + PAGE])
        .collect();
    let branches =
        prologue.moved.iter().filter(is_code).map(|moved| moved.instruction.near_branch_target());
    let text: BTreeSet<u64> = branches
        .filter(|target| *target != 0)
        .chain([row.was, prologue.end(), row.goes, row.goes + relocated.bytes.len() as u64, STOP])
        .map(|address| address & !(PAGE - 1))
        .collect();
    let text = Pages::map(text.into_iter());
    for page in &text.0 {
        put(*page, &[0xcc; PAGE as usize]);
    }
    put(row.was, &row.code[..prologue.landing_pad + prologue.length]);
    put(row.goes, &relocated.bytes);
    text.make_executable();
    let data_pages = Pages::map(data.iter().copied());
    // A pointer that can be followed, and what the driver's comparison waits for.
    let through_memory = prologue.moved.iter().any(|moved| {
        !is_code(&moved) && moved.instruction.flow_control() != iced_x86::FlowControl::Next
    });
    let fills: &[u64] = if through_memory { &[STOP] } else { &[STOP, 0x321c_ba00_321c_ba00, 0] };
    for fill in fills {
        for variant in 0..4 {
            let flags = [0, 0x8d5, 0x41, 0x80][variant as usize];
            let one = run(row.was, &registers(variant), flags, &data_pages.0, *fill);
            let mut other = run(row.goes, &registers(variant), flags, &data_pages.0, *fill);
            assert_eq!(one.signal, libc::SIGTRAP, "{}", row.note);
            forgive(row, prologue, relocated, &one, &mut other);
            forgive_unused_stack(*fill, &one, &mut other);
            let differs = one.difference(&other);
            assert!(
                differs.is_none(),
                "{} (variant {variant}, fill {fill:#x}): {differs:?}",
                row.note
            );
        }
    }
}

/// The two things that may differ: `r11` where it was used to reach memory far
/// away, and the return address of a call, which leads to the moved form.
fn forgive(
    row: &Row<'_>,
    prologue: &Prologue<'_>,
    relocated: &Relocated,
    one: &Outcome,
    other: &mut Outcome,
) {
    let loads_r11 = relocated.bytes.windows(2).any(|bytes| bytes == [0x49, 0xbb]);
    if loads_r11 {
        other.registers[libc::REG_R11 as usize] = one.registers[libc::REG_R11 as usize];
    }
    let Some(call) = prologue.moved.iter().position(|moved| {
        moved.instruction.is_call_near() || moved.instruction.is_call_near_indirect()
    }) else {
        return;
    };
    let top = 128..136;
    let pushed = u64::from_le_bytes(one.stack[top.clone()].try_into().expect("eight bytes"));
    assert_eq!(pushed, prologue.moved[call].instruction.next_ip(), "{}", row.note);
    let pushed = u64::from_le_bytes(other.stack[top.clone()].try_into().expect("eight bytes"));
    let start = row.goes + relocated.offsets[call] as u64;
    let end = relocated.offsets.get(call + 1).map_or(relocated.bytes.len(), |end| *end);
    assert!(pushed > start && pushed <= row.goes + end as u64, "{}", row.note);
    other.stack[top.clone()].copy_from_slice(&one.stack[top]);
}

/// What was below the red zone at the entry and was not written by the original
/// belongs to nobody: a moved form saves a register there.
fn forgive_unused_stack(fill: u64, one: &Outcome, other: &mut Outcome) {
    let start = STACK + 3 * PAGE - one.stack.len() as u64;
    for (index, (one, other)) in one.stack.iter().zip(&mut other.stack).enumerate() {
        let address = start + index as u64;
        if address < STACK_POINTER - 128 && *one == fill.to_le_bytes()[address as usize % 8] {
            *other = *one;
        }
    }
}

#[test]
fn moved_instructions_do_what_they_did() {
    install_handler();
    let _scratch = Pages::map([SCRATCH, STACK, STACK + PAGE, STACK + 2 * PAGE].into_iter());
    let mut executed = 0;
    let mut refused = 0;
    for row in rows() {
        let function =
            Function { symbol: row.note, address: row.was, bytes: &row.code, size: row.size };
        let moved = Prologue::analyse(function, row.jump).and_then(|prologue| {
            relocate::relocate(&prologue, row.goes).map(|relocated| (prologue, relocated))
        });
        match moved {
            Ok((prologue, relocated)) => {
                execute(&row, &prologue, &relocated);
                executed += 1;
            }
            Err(_) => {
                assert!(row.expected.starts_with("refused"), "{}", row.note);
                refused += 1;
            }
        }
    }
    assert!(executed >= 95 && refused >= 14, "{executed} executed, {refused} refused");
    execute_random_streams();
}

/// Streams of instructions, chosen by a generator with a fixed start, near and far.
fn execute_random_streams() {
    const WAS: u64 = 0x1000_0040_0000;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let mut executed = 0;
    for round in 0..200 {
        let mut code = Vec::new();
        while code.len() < 16 {
            let (head, part, tail) = &STREAM[next(STREAM.len() as u64) as usize];
            code.extend_from_slice(head);
            match part {
                Part::None => {}
                Part::Short => code.push(0x30 + next(0x40) as u8),
                Part::Branch => code.extend((0x1000 + next(0x2000) as u32).to_le_bytes()),
                Part::Operand => code.extend((0x2_0000 + 8 * next(0x100) as u32).to_le_bytes()),
            }
            code.extend_from_slice(tail);
        }
        code.extend([0x90; 16]);
        let jump = if round % 3 == 0 { 12 } else { 5 };
        let goes = if round % 2 == 0 { 0xfff_cc00_0000 } else { 0x2000_0000_0000 };
        let note = format!("round {round}: {code:02x?}");
        let function = Function { symbol: "stream", address: WAS, bytes: &code, size: None };
        let Ok(prologue) = Prologue::analyse(function, jump) else { continue };
        let Ok(relocated) = relocate::relocate(&prologue, goes) else { continue };
        let row =
            Row { code: code.clone(), size: None, was: WAS, goes, jump, expected: "", note: &note };
        execute(&row, &prologue, &relocated);
        executed += 1;
    }
    assert!(executed >= 120, "{executed} streams were moved");
}
