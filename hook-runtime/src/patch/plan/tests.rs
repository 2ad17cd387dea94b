//! Plans over memory that is only imagined.

use super::*;

const TARGET: u64 = 0x7000_0000_0000;
const FAR_AWAY: u64 = 0x1000_0000_0000;

/// Memory that is free in these ranges, and is handed out once.
struct Imagined(Vec<Range<u64>>);

impl Imagined {
    fn take(&mut self, length: u64, choose: impl Fn(Range<u64>) -> Option<u64>) -> Option<u64> {
        let (index, at) = self.0.iter().enumerate().find_map(|(index, free)| {
            let at = choose(free.start..free.end.checked_sub(length)?)?;
            Some((index, at))
        })?;
        let free = self.0.remove(index);
        self.0.extend([free.start..at, at + length..free.end]);
        Some(at)
    }
}

impl Space for Imagined {
    fn island(&mut self, search: &Search) -> Option<u64> {
        self.take(jump::INDIRECT as u64, |free| search.first(free))
    }

    fn trampoline(&mut self, window: Range<u64>, length: usize) -> Option<u64> {
        self.take(length as u64, |free| {
            let start = free.start.max(window.start);
            (start < free.end.min(window.end)).then_some(start)
        })
    }
}

/// All memory in reach of the target, or none of it.
fn near() -> Imagined {
    Imagined(vec![
        TARGET - 0x7000_0000..TARGET - 0x1000_0000,
        TARGET + 0x1000_0000..TARGET + 0x7000_0000,
    ])
}

fn nothing_near() -> Imagined {
    Imagined(std::iter::once(FAR_AWAY..FAR_AWAY + 0x1_0000).collect())
}

fn function(bytes: &[u8]) -> Function<'_> {
    Function { symbol: "cuMemFree_v2", address: TARGET, bytes, size: None }
}

/// As driver 580 begins.
const OPENING: [u8; 14] =
    [0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 8, 0x31, 0xc0, 0x90, 0xc3];

/// Does what the steps say, a store at a time, as a thread sees it that is stopped or started at
/// any moment. While the entry is open, there has to be one whole code behind it, or a trap that
/// is known where an instruction begins.
fn check_every_store(patch: &Patch, steps: &Steps, from: &[u8], to: &[u8]) {
    let mut bytes = from.to_vec();
    let single = |pieces: &[(u64, u8)]| -> Vec<_> {
        pieces.iter().map(|(at, byte)| (*at, vec![*byte])).collect()
    };
    let stores = [single(&steps.hold), steps.rest.clone(), single(&steps.last)].concat();
    for (at, piece) in stores {
        let at = (at - patch.start) as usize;
        bytes[at..at + piece.len()].copy_from_slice(&piece);
        let is_trap = |offset: usize| {
            let address = patch.start + offset as u64;
            crate::code::pun::signal_of(bytes[offset]).is_some()
                && patch.landings.iter().any(|(trap, _)| *trap == address)
        };
        let whole = |code: &[u8], may_trap: bool| {
            (0..code.len())
                .all(|offset| bytes[offset] == code[offset] || may_trap && is_trap(offset))
        };
        // What the trap at the far form's second instruction leads to goes with its first.
        let of_old = *from == *patch.old;
        let far = patch.strategy.form == Form::Far;
        let open = whole(from, !(far && of_old)) || whole(to, !far || of_old);
        assert!(
            is_trap(0) || open,
            "{}: {bytes:02x?} from {from:02x?} to {to:02x?}",
            patch.strategy
        );
    }
    assert_eq!(bytes, to);
}

#[test]
fn at_every_store_the_code_is_whole_or_closed() {
    let unaligned: Vec<u8> = [0x90; 5].into_iter().chain(OPENING).collect();
    let moved = |offset: usize| Function {
        symbol: "f",
        address: TARGET + offset as u64,
        bytes: &unaligned[offset..],
        size: None,
    };
    let only = |start: u64| Imagined(std::iter::once(start..start + 0x1_0000).collect());
    let spaces: [fn() -> Imagined; 2] = [near, nothing_near];
    let mut forms = Vec::new();
    for function in [function(&OPENING), moved(5), moved(3)] {
        for force_far in [false, true] {
            for space in spaces {
                let patch = plan(function, FAR_AWAY, force_far, &mut space()).unwrap();
                check_every_store(&patch, &patch.install(), &patch.old, &patch.new);
                check_every_store(&patch, &patch.remove(), &patch.new, &patch.old);
                forms.push((patch.strategy.form, patch.strategy.write));
            }
        }
        // Near, but nowhere that a trap could stand at +4: it waits.
        let patch = plan(function, FAR_AWAY, false, &mut only(TARGET + 0x0101_0000)).unwrap();
        check_every_store(&patch, &patch.install(), &patch.old, &patch.new);
        check_every_store(&patch, &patch.remove(), &patch.new, &patch.old);
    }
    assert!(
        forms.contains(&(Form::Far, Write::Staged))
            && forms.contains(&(Form::Island, Write::Staged))
    );
    assert!(forms.contains(&(Form::Island, Write::OneStore)));
}

/// Does what the steps say, to bytes; every state on the way.
fn play(steps: &Steps, from: &[u8]) -> Vec<Vec<u8>> {
    let mut bytes = from.to_vec();
    let mut states = vec![bytes.clone()];
    let mut put = |pieces: Vec<(u64, Vec<u8>)>| {
        for (at, piece) in pieces {
            let at = (at - TARGET) as usize;
            bytes[at..at + piece.len()].copy_from_slice(&piece);
        }
        states.push(bytes.clone());
    };
    let single =
        |pieces: &[(u64, u8)]| pieces.iter().map(|(at, byte)| (*at, vec![*byte])).collect();
    put(single(&steps.hold));
    put(steps.rest.clone());
    put(single(&steps.last));
    states
}

#[test]
fn where_instructions_begin_inside_they_become_traps() {
    let patch = plan(function(&OPENING), FAR_AWAY, false, &mut near()).expect("there is memory");
    assert_eq!(patch.strategy.form, Form::Island);
    assert_eq!(patch.strategy.inside, Inside::Trapped { traps: vec![(1, INT3), (4, INT3)] });
    assert_eq!(patch.strategy.write, Write::OneStore);
    assert_eq!(patch.old, OPENING[..5]);
    assert_eq!((patch.new[0], patch.new[1], patch.new[4]), (0xe9, INT3, INT3));
    assert_eq!(
        patch.landings,
        [
            (TARGET, patch.trampoline),
            (TARGET + 1, patch.trampoline + 1),
            (TARGET + 4, patch.trampoline + 4)
        ]
    );
    let island = &patch.code[1];
    assert_eq!(jump::near(TARGET, island.0).map(|bytes| bytes.to_vec()), Some(patch.new.clone()));
    assert_eq!(island.1, jump::indirect(FAR_AWAY));
    assert_eq!(
        patch.strategy.to_string(),
        "near jump through an island, traps at +1:cc +4:cc, one store"
    );
    assert_eq!(play(&patch.install(), &patch.old).last(), Some(&patch.new));
    assert_eq!(play(&patch.remove(), &patch.new).last(), Some(&patch.old));
}

#[test]
fn a_replacement_in_reach_needs_no_island() {
    let code = [0xb8, 1, 0, 0, 0, 0x31, 0xff, 0x90, 0xc3];
    let patch =
        plan(function(&code), TARGET + 0x1000, false, &mut near()).expect("there is memory");
    assert_eq!((patch.strategy.form, &patch.strategy.inside), (Form::Near, &Inside::Nothing));
    assert_eq!(patch.code.len(), 1, "the trampoline alone");
}

#[test]
fn without_near_memory_the_jump_is_far_and_waits() {
    let patch = plan(function(&OPENING), 0x2000_0000_0000, false, &mut nothing_near())
        .expect("there is memory");
    assert_eq!((patch.strategy.form, &patch.strategy.inside), (Form::Far, &Inside::Waited));
    assert_eq!(patch.new, jump::far(0x2000_0000_0000));
    assert_eq!(patch.install().wait, Some(TARGET + 1..TARGET + 12));
    let remove = patch.remove();
    assert_eq!(remove.wait, Some(TARGET + 1..TARGET + 12));
    // A thread between the two instructions of the jump goes on to the replacement.
    assert_eq!(remove.hold, [(TARGET, INT3), (TARGET + 10, INT3)]);
    assert!(patch.landings.contains(&(TARGET + 10, 0x2000_0000_0000)));
    assert_eq!(play(&patch.install(), &patch.old).last(), Some(&patch.new));
    assert_eq!(play(&remove, &patch.new).last(), Some(&patch.old));
    let mut none = Imagined(Vec::new());
    let refusal =
        plan(function(&OPENING), 0x2000_0000_0000, false, &mut none).expect_err("no memory at all");
    assert_eq!(refusal.reason, Reason::NoMemory);
}

#[test]
fn a_call_that_returns_inside_is_only_patched_with_a_trap() {
    // `call [rax]` takes two bytes; the rest is there for the far form.
    let code = [0xff, 0x10, 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3];
    let patch = plan(function(&code), FAR_AWAY, false, &mut near()).expect("there is memory");
    assert!(matches!(patch.strategy.inside, Inside::Trapped { .. }));
    let refusal =
        plan(function(&code), FAR_AWAY, true, &mut near()).expect_err("it cannot be waited for");
    assert_eq!(refusal.reason, Reason::ReturnInside { offset: 2 });
    assert_eq!(refusal.instruction.as_deref(), Some("Call_rm64"));
}

#[test]
fn in_stages_every_boundary_traps_while_bytes_change() {
    let code = [0x90, 0x90, 0x90, 0x90, 0x90].into_iter().chain(OPENING).collect::<Vec<u8>>();
    let unaligned = Function { symbol: "f", address: TARGET + 5, bytes: &code[5..], size: None };
    let patch = plan(unaligned, FAR_AWAY, false, &mut near()).expect("there is memory");
    assert_eq!(patch.strategy.write, Write::Staged);
    let Inside::Trapped { traps } = &patch.strategy.inside else { panic!("{}", patch.strategy) };
    for (steps, from, to) in [
        (patch.install(), [&code[..5], &patch.old].concat(), [&code[..5], &patch.new].concat()),
        (patch.remove(), [&code[..5], &patch.new].concat(), [&code[..5], &patch.old].concat()),
    ] {
        let states = play(&steps, &from);
        assert_eq!(states[3], to);
        // In the two states between, the entry is closed, and so is every place
        // where an instruction began.
        for state in &states[1..3] {
            assert_eq!(state[5], INT3);
            assert!(traps.iter().all(|(offset, byte)| state[5 + offset] == *byte));
        }
        // What a thread finds behind a boundary is old as long as no trap stands there.
        assert_eq!(states[0], from);
        let held = [0].into_iter().chain(traps.iter().map(|(offset, _)| *offset));
        let changed =
            (0..5).filter(|at| states[0][5 + at] != states[1][5 + at]).collect::<Vec<_>>();
        assert!(changed.iter().all(|at| held.clone().any(|held| held == *at)));
    }
}

#[test]
fn what_has_no_memory_for_traps_waits() {
    // Free memory in reach, but nowhere that a trap could stand at +4.
    let lowest = TARGET + 5 + 0x0100_0000;
    let mut space = Imagined(std::iter::once(lowest..lowest + 0x1000).collect());
    let patch = plan(function(&OPENING), FAR_AWAY, false, &mut space).expect("there is memory");
    assert_eq!((patch.strategy.form, &patch.strategy.inside), (Form::Island, &Inside::Waited));
    let install = patch.install();
    assert_eq!(install.wait, Some(TARGET + 1..TARGET + 5));
    assert_eq!(
        (install.hold.as_slice(), install.back.as_slice()),
        (&[(TARGET, INT3)][..], &[(TARGET, 0x55)][..])
    );
    // A jump of one instruction is taken back at once.
    assert_eq!(patch.remove(), Steps::at_once(TARGET, &OPENING[..5]));
}
