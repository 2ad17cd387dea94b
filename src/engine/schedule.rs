//! Runs independent questions side by side, and hands the answers on in the
//! order of the plan, so that screen and log read the same every time.

use std::{
    num::NonZero,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::{
    host::process::Completed,
    model::{Check, Message},
    ui::{Event, Sink},
};

/// More compilers at once than this only get in each other's way.
const MOST_WORKERS: usize = 8;

/// Events that are kept to be handed on later.
#[derive(Debug, Default)]
pub struct Tape(Vec<Kept>);

#[derive(Debug)]
enum Kept {
    Ran(Box<Completed>, Option<(String, String)>),
    Checking(String),
    Answered(Box<Check>),
    Message(Message),
    Decided(String),
}

impl Sink for Tape {
    fn event(&mut self, event: &Event<'_>) {
        let kept = match event {
            Event::Ran { completed, source } => Kept::Ran(
                Box::new((*completed).clone()),
                source.map(|(name, text)| (name.to_owned(), text.to_owned())),
            ),
            Event::Checking(label) => Kept::Checking((*label).to_owned()),
            Event::Answered(check) => Kept::Answered(Box::new((*check).clone())),
            Event::Message(message) => Kept::Message((*message).clone()),
            Event::Decided(text) => Kept::Decided((*text).to_owned()),
            // What is only of the moment is not kept.
            _ => return,
        };
        self.0.push(kept);
    }
}

impl Tape {
    /// Hands the events on, in the order in which they came.
    pub fn replay(self, sink: &mut dyn Sink) {
        for kept in &self.0 {
            match kept {
                Kept::Ran(completed, source) => {
                    let source = source.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
                    sink.event(&Event::Ran { completed, source });
                }
                Kept::Checking(label) => sink.event(&Event::Checking(label)),
                Kept::Answered(check) => sink.event(&Event::Answered(check)),
                Kept::Message(message) => sink.event(&Event::Message(message)),
                Kept::Decided(text) => sink.event(&Event::Decided(text)),
            }
        }
    }
}

/// Something to run: it needs the "yes" of earlier ones, by their number.
pub trait Task: Sync {
    /// What it comes to.
    type Answer: Send;

    /// The numbers of the tasks without whose "yes" it is passed over.
    fn needs(&self) -> &[usize];

    /// Does it.
    fn run(&self, tape: &mut Tape) -> Self::Answer;

    /// Whether an answer is a "yes".
    fn is_yes(answer: &Self::Answer) -> bool;
}

/// How far a task is.
enum State<A> {
    Waiting,
    Running,
    Done(A, Tape),
    /// Done, and handed on; whether it was a "yes".
    Gone(bool),
    PassedOver,
}

struct Board<A> {
    states: Mutex<Vec<State<A>>>,
    changed: Condvar,
}

impl<A> Board<A> {
    fn lock(&self) -> MutexGuard<'_, Vec<State<A>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, Vec<State<A>>>) -> MutexGuard<'a, Vec<State<A>>> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does the tasks one after the other: where nothing is waited for, threads
/// would only cost. Delivers as [`run`] does.
pub fn run_in_turn<T: Task>(tasks: &[T], mut deliver: impl FnMut(usize, Option<T::Answer>, Tape)) {
    let mut yes: Vec<bool> = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        let mut tape = Tape::default();
        let is_put = task.needs().iter().all(|&need| yes.get(need).copied().unwrap_or(false));
        let answer = is_put.then(|| task.run(&mut tape));
        yes.push(answer.as_ref().is_some_and(T::is_yes));
        deliver(number, answer, tape);
    }
}

/// Runs the tasks and delivers each answer, none for one passed over, in
/// order.
pub fn run<T: Task>(tasks: &[T], mut deliver: impl FnMut(usize, Option<T::Answer>, Tape)) {
    let states = Mutex::new(tasks.iter().map(|_| State::Waiting).collect());
    let board = Board { states, changed: Condvar::new() };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores.min(MOST_WORKERS).min(tasks.len()) {
            scope.spawn(|| work(tasks, &board));
        }
        for number in 0..tasks.len() {
            let (answer, tape) = take(number, &board, T::is_yes);
            deliver(number, answer, tape);
        }
    });
}

/// Waits for one task and takes its answer from the board.
fn take<A>(number: usize, board: &Board<A>, is_yes: fn(&A) -> bool) -> (Option<A>, Tape) {
    let mut states = board.lock();
    loop {
        match std::mem::replace(&mut states[number], State::PassedOver) {
            State::Done(answer, tape) => {
                states[number] = State::Gone(is_yes(&answer));
                return (Some(answer), tape);
            }
            State::PassedOver => return (None, Tape::default()),
            other => states[number] = other,
        }
        states = board.wait(states);
    }
}

/// One worker: takes the first task that is ready, until none is left.
fn work<T: Task>(tasks: &[T], board: &Board<T::Answer>) {
    let mut states = board.lock();
    loop {
        match next::<T>(tasks, &mut states) {
            Next::Run(number) => {
                states[number] = State::Running;
                drop(states);
                let mut tape = Tape::default();
                let answer = tasks[number].run(&mut tape);
                states = board.lock();
                states[number] = State::Done(answer, tape);
                board.changed.notify_all();
            }
            Next::PassedOver => board.changed.notify_all(),
            Next::Wait => states = board.wait(states),
            Next::End => return,
        }
    }
}

enum Next {
    Run(usize),
    /// One was passed over; look again.
    PassedOver,
    Wait,
    End,
}

fn next<T: Task>(tasks: &[T], states: &mut [State<T::Answer>]) -> Next {
    let mut waiting = false;
    for number in 0..tasks.len() {
        if !matches!(states[number], State::Waiting) {
            continue;
        }
        waiting = true;
        let settled: Vec<Option<bool>> = tasks[number]
            .needs()
            .iter()
            .map(|&need| match &states[need] {
                State::Waiting | State::Running => None,
                State::Done(answer, _) => Some(T::is_yes(answer)),
                State::Gone(yes) => Some(*yes),
                State::PassedOver => Some(false),
            })
            .collect();
        if settled.contains(&Some(false)) {
            states[number] = State::PassedOver;
            return Next::PassedOver;
        }
        if settled.iter().all(Option::is_some) {
            return Next::Run(number);
        }
    }
    if waiting { Next::Wait } else { Next::End }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicUsize, sync::atomic::Ordering, time::Duration};

    use super::*;

    static RAN: AtomicUsize = AtomicUsize::new(0);

    struct Sleep(u64, Vec<usize>, bool);

    impl Task for Sleep {
        type Answer = bool;

        fn needs(&self) -> &[usize] {
            &self.1
        }

        fn run(&self, tape: &mut Tape) -> bool {
            RAN.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(self.0));
            tape.event(&Event::Decided(&self.0.to_string()));
            self.2
        }

        fn is_yes(answer: &bool) -> bool {
            *answer
        }
    }

    #[test]
    fn answers_come_in_order_and_needs_are_kept() {
        let tasks = [
            Sleep(30, vec![], true),
            Sleep(1, vec![], false),
            Sleep(2, vec![0], true),
            Sleep(3, vec![1], true),
            Sleep(4, vec![0, 3], true),
        ];
        let mut got = Vec::new();
        run(&tasks, |number, answer, tape| got.push((number, answer, tape.0.len())));
        let expected = [
            (0, Some(true), 1),
            (1, Some(false), 1),
            (2, Some(true), 1),
            (3, None, 0),
            (4, None, 0),
        ];
        assert_eq!(got, expected);
        let mut in_turn = Vec::new();
        run_in_turn(&tasks, |number, answer, tape| in_turn.push((number, answer, tape.0.len())));
        assert_eq!(in_turn, expected);
        assert_eq!(RAN.load(Ordering::Relaxed), 2 * 3, "what needs a `no` is not run");
        run::<Sleep>(&[], |_, _, _| unreachable!("nothing to deliver"));
    }
}
