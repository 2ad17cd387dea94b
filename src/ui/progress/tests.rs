//! The lines, byte by byte.

use std::sync::{Arc, Mutex};

use anstream::StripStream;
use camino::Utf8Path;
use indicatif::TermLike;

use super::*;
use crate::emit::fixtures;

/// A screen: what was written to it, in order, whichever stream it came by.
#[derive(Debug, Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader has gone.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const STRICT: Settings = Settings { mode: Mode::Strict, quiet: false };
const COMPAT: Settings = Settings { mode: Mode::Compat, quiet: false };

fn plain(screen: &Screen) -> Stream {
    // A boxed writer, as a stream that has styles taken out wants one.
    let writer: Box<dyn Write + Send> = Box::new(screen.clone());
    Stream::new(StripStream::new(writer))
}

/// One screen that shows both streams, as a terminal does.
fn on_screen(settings: Settings) -> (Progress, Screen) {
    let screen = Screen::default();
    let streams = (plain(&screen), plain(&screen));
    (Progress::over(settings, streams.0, streams.1, ProgressDrawTarget::hidden), screen)
}

fn message(kind: MessageKind, text: &str, hint: Option<&str>) -> Message {
    Message { kind, code: "W0001".to_owned(), text: text.to_owned(), hint: hint.map(str::to_owned) }
}

/// The checks of the fixture, a control of ours, and messages between.
fn play(progress: &mut Progress) {
    let mut checks = fixtures::report().checks;
    checks.push(fixtures::check("x", "whether the C compiler works", Verdict::Yes, None));
    checks[3].family = Family::Tool;
    checks.push(fixtures::check("s", "for nvml.h", Verdict::Skipped, Some("CUDA is off")));
    checks.push(fixtures::check("g", "for gdr_pin_buffer in -lgdrapi ", Verdict::Broken, None));
    for check in &checks {
        progress.event(&Event::Checking(&check.label));
        progress.event(&Event::Answered(check));
    }
    let said = [
        message(MessageKind::Warning, "GDR_COPY not found", Some("give a DIR")),
        message(MessageKind::Note, "MNNVL support will be disabled.", None),
        message(MessageKind::Error, "never printed here", None),
    ];
    for message in &said {
        progress.event(&Event::Message(message));
    }
    for changed in [true, false] {
        progress.event(&Event::Wrote { path: Utf8Path::new("config.h"), changed });
    }
}

#[test]
fn strict_lines() {
    let (mut progress, screen) = on_screen(STRICT);
    play(&mut progress);
    assert_eq!(
        screen.text(),
        "checking for cuda.h... yes (/opt/cuda/include, CUDA 12.8)\n\
         checking for cudaGetDeviceCount in -lcudart_static... no\n\
         checking for nvcc... /opt/cuda/bin/nvcc\n\
         checking whether the C compiler works... yes\n\
         checking for nvml.h... skipped (CUDA is off)\n\
         checking for gdr_pin_buffer in -lgdrapi ... broken\n\
         warning: GDR_COPY not found [W0001]\n\
         hint: give a DIR\n\
         note: MNNVL support will be disabled. [W0001]\n\
         ucx-configure: creating config.h\n\
         ucx-configure: config.h is unchanged\n"
    );
}

#[test]
fn compat_lines_are_the_originals() {
    let (mut progress, screen) = on_screen(COMPAT);
    play(&mut progress);
    assert_eq!(
        screen.text(),
        "checking for cuda.h... yes\n\
         checking for cudaGetDeviceCount in -lcudart_static... no\n\
         checking for nvcc... /opt/cuda/bin/nvcc\n\
         checking for gdr_pin_buffer in -lgdrapi ... no\n\
         configure: WARNING: GDR_COPY not found\n\
         configure: MNNVL support will be disabled.\n\
         ucx-configure: creating config.h\n\
         ucx-configure: config.h is unchanged\n"
    );
}

#[test]
fn quiet_keeps_warnings() {
    for mode in [Mode::Strict, Mode::Compat] {
        let (mut progress, screen) = on_screen(Settings { mode, quiet: true });
        play(&mut progress);
        let expected = match mode {
            Mode::Strict => "warning: GDR_COPY not found [W0001]\nhint: give a DIR\n",
            Mode::Compat => "configure: WARNING: GDR_COPY not found\n",
        };
        assert_eq!(screen.text(), expected);
    }
}

#[test]
fn the_question_is_seen_before_its_answer_and_nothing_comes_between() {
    let (mut progress, screen) = on_screen(STRICT);
    let check = fixtures::check("a", "for nvml.h", Verdict::Yes, None);
    progress.event(&Event::Checking(&check.label));
    assert_eq!(screen.text(), "checking for nvml.h... ");
    progress.event(&Event::Message(&message(MessageKind::Warning, "odd", None)));
    progress.event(&Event::Busy("compiling"));
    assert_eq!(screen.text(), "checking for nvml.h... ", "the line stays open");
    progress.event(&Event::Answered(&check));
    assert_eq!(screen.text(), "checking for nvml.h... yes\nwarning: odd [W0001]\n");
}

#[test]
fn an_open_line_is_ended_when_the_run_ends() {
    let (mut progress, screen) = on_screen(STRICT);
    progress.event(&Event::Checking("for the C compiler"));
    progress.event(&Event::Message(&message(MessageKind::Warning, "odd", None)));
    drop(progress);
    assert_eq!(screen.text(), "checking for the C compiler... \nwarning: odd [W0001]\n");
}

#[test]
fn an_answer_to_another_question_repeats_it() {
    let (mut progress, screen) = on_screen(STRICT);
    progress.event(&Event::Checking("for a"));
    progress.event(&Event::Answered(&fixtures::check("b", "for b", Verdict::No, None)));
    let mut cached = fixtures::check("c", "for c", Verdict::Yes, None);
    cached.cached = true;
    progress.event(&Event::Answered(&cached));
    assert_eq!(
        screen.text(),
        "checking for a... \nchecking for b... no\nchecking for c... (cached) yes\n"
    );
}

#[test]
fn a_closed_pipe_ends_the_output_and_nothing_else() {
    let screen = Screen::default();
    let mut progress =
        Progress::over(STRICT, Stream::new(Closed), plain(&screen), ProgressDrawTarget::hidden);
    play(&mut progress);
    assert!(progress.checks.broken && !progress.warnings.broken);
    assert_eq!(screen.text(), "warning: GDR_COPY not found [W0001]\nhint: give a DIR\n");
}

#[test]
fn styles_are_there_to_be_taken_out() {
    let screen = Screen::default();
    let streams = (Stream::new(screen.clone()), Stream::new(screen.clone()));
    let mut progress = Progress::over(STRICT, streams.0, streams.1, ProgressDrawTarget::hidden);
    progress.event(&Event::Answered(&fixtures::check("a", "for a", Verdict::Yes, None)));
    assert_eq!(screen.text(), "checking for a... \x1b[32myes\x1b[0m\n");
}

/// A terminal for spinners; what was drawn is shared by all of a test's.
#[derive(Debug, Clone, Default)]
struct Terminal;

static DRAWN: Mutex<String> = Mutex::new(String::new());

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        80
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        DRAWN.lock().unwrap().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("<clear>")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The one test that draws, since what is drawn is shared.
#[test]
fn a_spinner_becomes_a_bar_and_goes() {
    let screen = Screen::default();
    let target = || ProgressDrawTarget::term_like(Box::new(Terminal));
    let mut progress = Progress::over(STRICT, plain(&screen), plain(&screen), target);
    progress.event(&Event::Busy("fetching wheels"));
    progress.event(&Event::Progress(1, 3, "nvcc"));
    progress.event(&Event::Message(&message(MessageKind::Warning, "slow", None)));
    progress.event(&Event::Progress(2, 3, "cudart"));
    progress.event(&Event::Idle);
    assert!(progress.bar.is_none());
    let drawn = DRAWN.lock().unwrap().clone();
    for part in ["fetching wheels", "1/3 nvcc", "2/3 cudart", "[===", "<clear>"] {
        assert!(drawn.contains(part), "{part}: {drawn:?}");
    }
    assert!(drawn.ends_with("<clear>") || drawn.trim_end().ends_with("<clear>"), "{drawn:?}");
    assert_eq!(screen.text(), "warning: slow [W0001]\n");

    DRAWN.lock().unwrap().clear();
    let quiet = Settings { quiet: true, ..STRICT };
    let mut progress = Progress::over(quiet, plain(&screen), plain(&screen), target);
    progress.event(&Event::Busy("fetching wheels"));
    progress.event(&Event::Progress(1, 3, "nvcc"));
    assert_eq!(*DRAWN.lock().unwrap(), "");
}

mod terminal;
