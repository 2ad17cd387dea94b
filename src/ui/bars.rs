//! What a person sees of work that goes on side by side: on a terminal a bar
//! for all of it and a line for each part that is at work, elsewhere one line
//! for each part that is done.

use std::{
    io::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Event, Sink};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The bars.
#[derive(Debug)]
pub struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    count: u64,
    done: AtomicU64,
    plain: bool,
}

impl Bars {
    /// For so many parts, on standard error; nothing at all when `quiet`.
    pub fn new(count: usize, quiet: bool) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        // Hidden by itself where standard error is no terminal.
        let plain = !quiet && target.is_hidden();
        Self::over(count, target, plain)
    }

    fn over(count: usize, target: ProgressDrawTarget, plain: bool) -> Self {
        let all = MultiProgress::with_draw_target(target);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let total = all.add(ProgressBar::new(count));
        total.set_style(look("[{bar:24}] {pos}/{len}"));
        Self { all, total, count, done: AtomicU64::new(0), plain }
    }

    /// A line for a part that begins.
    pub fn row(&self, name: &str) -> Row {
        let bar = self.all.insert_before(&self.total, ProgressBar::new_spinner());
        bar.set_style(look("{spinner} {prefix}: {msg}"));
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(TICK);
        Row { bar }
    }

    /// A part is done, and `word` is what it came to.
    pub fn done(&self, name: &str, word: &str) {
        self.total.inc(1);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.plain {
            let line = format!("{name}: {word} ({done} of {})\n", self.count);
            // Nobody is left to tell when standard error is closed.
            let _ = anstream::stderr().write_all(line.as_bytes());
        }
    }

    /// Takes everything off the screen.
    pub fn finish(&self) {
        self.total.finish_and_clear();
        let _ = self.all.clear();
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The line of one part.
#[derive(Debug)]
pub struct Row {
    bar: ProgressBar,
}

impl Sink for Row {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Checking(label) => self.bar.set_message(format!("checking {label}")),
            Event::Busy(text) => self.bar.set_message((*text).to_owned()),
            Event::Progress(done, total, word) => {
                self.bar.set_message(format!("{done}/{total} {word}"));
            }
            _ => {}
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn look(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps what is drawn.
    #[derive(Debug, Clone, Default)]
    struct Terminal(Arc<Mutex<String>>);

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
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write_str("<clear>")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_shows_the_parts_at_work_and_how_many_are_done() {
        let terminal = Terminal::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255);
        let bars = Bars::over(3, target, false);
        let drawn = || {
            std::thread::sleep(Duration::from_millis(20));
            bars.total.tick();
            std::mem::take(&mut *terminal.0.lock().unwrap())
        };
        let mut row = bars.row("12.8");
        row.event(&Event::Checking("for cuda.h"));
        let text = drawn();
        assert!(text.contains("12.8: checking for cuda.h") && text.contains("0/3"), "{text}");
        drop(row);
        drawn();
        bars.done("12.8", "ok");
        let text = drawn();
        assert!(text.contains("1/3") && !text.contains("12.8"), "{text}");
        bars.finish();
        assert!(drawn().ends_with("<clear>") || terminal.0.lock().unwrap().is_empty());
    }
}
