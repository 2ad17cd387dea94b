//! What a person sees while it runs: autoconf's grammar on one stream, warnings
//! on the other, and on a terminal a spinner for what takes long.
//!
//! A line is written in two steps, `checking for cuda.h... ` and later `yes`,
//! so that the user sees what is being waited for. With `--compat` the lines
//! are the original's and no others: it is known only with the answer whether
//! a question is one of its own, so they appear in one step.
//!
//! Errors are not printed here: an error ends the run, and whoever ends it
//! prints it with its four parts.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write},
    mem,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    Event, Sink,
    style::{self, paint},
};
use crate::model::{Check, Family, Message, MessageKind, Mode, Verdict};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What to show, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// With [`Mode::Compat`], the original's lines and no others.
    pub mode: Mode,
    /// `-q`: no checks, no notes, no spinner; warnings all the same.
    pub quiet: bool,
}

/// Where the lines about checks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output, as autoconf does.
    Stdout,
    /// Standard error, because standard output is for something else, such as
    /// JSON.
    Stderr,
}

/// A stream that does without when nobody reads any more.
struct Stream {
    writer: Box<dyn Write + Send>,
    broken: bool,
}

impl Stream {
    fn new(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Box::new(writer), broken: false }
    }

    fn write(&mut self, text: &str) {
        // A closed pipe is no reason to end a run whose files are wanted.
        if !self.broken {
            let written = self.writer.write_all(text.as_bytes());
            self.broken = written.and_then(|()| self.writer.flush()).is_err();
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("broken", &self.broken).finish_non_exhaustive()
    }
}

/// Which of the two streams a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Checks,
    Warnings,
}

/// Shows the events to a person.
#[derive(Debug)]
pub struct Progress {
    settings: Settings,
    checks: Stream,
    warnings: Stream,
    /// Whether the lines about checks are seen on the screen as they grow, so
    /// that a spinner would overwrite them.
    on_screen: bool,
    /// Makes what a spinner is drawn on.
    target: fn() -> ProgressDrawTarget,
    bar: Option<ProgressBar>,
    /// The question that waits for its answer.
    pending: Option<String>,
    /// What came while a question waited, and is shown after its answer.
    held: Vec<(To, String)>,
}

impl Progress {
    /// Shows them on the streams of this process.
    pub fn new(settings: Settings, channel: Channel) -> Self {
        let (checks, on_screen) = match channel {
            Channel::Stdout => (Stream::new(anstream::stdout()), io::stdout().is_terminal()),
            Channel::Stderr => (Stream::new(anstream::stderr()), io::stderr().is_terminal()),
        };
        // Hidden by itself where standard error is no terminal.
        let target = ProgressDrawTarget::stderr;
        let mut progress = Self::over(settings, checks, Stream::new(anstream::stderr()), target);
        progress.on_screen = on_screen;
        progress
    }

    fn over(
        settings: Settings,
        checks: Stream,
        warnings: Stream,
        target: fn() -> ProgressDrawTarget,
    ) -> Self {
        Self {
            settings,
            checks,
            warnings,
            on_screen: true,
            target,
            bar: None,
            pending: None,
            held: Vec::new(),
        }
    }

    /// Ends whatever was begun: an open line, a spinner. To be called before
    /// anything else is printed, such as an error; dropping does it as well.
    pub fn finish(&mut self) {
        self.idle();
        if self.pending.take().is_some() && self.two_steps() {
            self.checks.write("\n");
        }
        self.release();
    }

    /// Whether a question is shown before its answer.
    const fn two_steps(&self) -> bool {
        !self.settings.quiet && matches!(self.settings.mode, Mode::Strict)
    }

    fn ask(&mut self, label: &str) {
        self.finish();
        self.pending = Some(label.to_owned());
        if self.two_steps() {
            self.checks.write(&format!("checking {label}... "));
        }
    }

    fn answer(&mut self, check: &Check) {
        if self.settings.quiet {
            self.pending = None;
        } else if self.settings.mode == Mode::Compat {
            self.pending = None;
            if let Some(answer) = original_answer(check) {
                self.say(To::Checks, format!("checking {}... {answer}\n", check.label));
            }
        } else {
            // The question is repeated where another one came in between.
            if self.pending.as_ref() != Some(&check.label) {
                self.ask(&check.label);
            }
            self.pending = None;
            self.checks.write(&format!("{}\n", answer(check)));
        }
        self.release();
    }

    fn message(&mut self, message: &Message) {
        let compat = self.settings.mode == Mode::Compat;
        let text = &message.text;
        let (to, line) = match (message.kind, compat) {
            (MessageKind::Error, _) => return,
            (MessageKind::Note, _) if self.settings.quiet => return,
            (MessageKind::Note, true) => (To::Checks, format!("configure: {text}\n")),
            (MessageKind::Warning, true) => (To::Warnings, format!("configure: WARNING: {text}\n")),
            (MessageKind::Note, false) => (To::Checks, coded(style::NOTE, "note:", message)),
            (MessageKind::Warning, false) => {
                (To::Warnings, coded(style::WARNING, "warning:", message))
            }
        };
        let hint = message.hint.as_ref().filter(|_| !compat);
        let hint = hint.map(|hint| format!("{} {hint}\n", paint(style::HINT, "hint:")));
        self.say(to, line + &hint.unwrap_or_default());
    }

    /// Shows a text, or keeps it until the open line has its answer.
    fn say(&mut self, to: To, text: String) {
        if self.pending.is_some() {
            self.held.push((to, text));
            return;
        }
        let stream = match to {
            To::Checks => &mut self.checks,
            To::Warnings => &mut self.warnings,
        };
        match &self.bar {
            Some(bar) => bar.suspend(|| stream.write(&text)),
            None => stream.write(&text),
        }
    }

    fn release(&mut self) {
        for (to, text) in mem::take(&mut self.held) {
            self.say(to, text);
        }
    }

    fn busy(&mut self, text: &str) {
        // An open line says by itself what is being waited for.
        let line_is_open = self.pending.is_some() && self.two_steps() && self.on_screen;
        if self.settings.quiet || line_is_open {
            return;
        }
        self.idle();
        let bar = ProgressBar::with_draw_target(None, (self.target)());
        bar.set_style(look("{spinner} {msg}"));
        bar.set_message(text.to_owned());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    fn advance(&self, done: u64, total: u64, word: &str) {
        if let Some(bar) = &self.bar {
            if bar.length() != Some(total) {
                bar.set_style(look("{spinner} {msg} [{bar:24}] {pos}/{len} {prefix}"));
                bar.set_length(total);
            }
            bar.set_position(done);
            bar.set_prefix(word.to_owned());
        }
    }

    fn idle(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The look of a spinner or bar.
fn look(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ")
}

/// A message of ours, with the code under which it is documented.
fn coded(style: anstyle::Style, prefix: &str, message: &Message) -> String {
    let code = paint(style::DETAIL, &format!("[{}]", message.code));
    format!("{} {} {code}\n", paint(style, prefix), message.text)
}

/// What follows `checking ...... `: the word with its detail in brackets, or
/// the detail instead of the word.
fn answer(check: &Check) -> String {
    let cached = if check.cached { "(cached) " } else { "" };
    let style = style::verdict(check.verdict);
    match (&check.detail, check.detail_is_answer) {
        (Some(detail), true) => format!("{cached}{}", paint(style, detail)),
        (Some(detail), false) => {
            let detail = paint(style::DETAIL, &format!("({detail})"));
            format!("{cached}{} {detail}", paint(style, check.verdict.word()))
        }
        (None, _) => format!("{cached}{}", paint(style, check.verdict.word())),
    }
}

/// The answer as the original writes it; none where it does not ask.
fn original_answer(check: &Check) -> Option<&str> {
    if check.family != Family::Configure {
        return None;
    }
    match (check.verdict, &check.detail) {
        (Verdict::Skipped, _) => None,
        (Verdict::Yes, Some(detail)) if check.detail_is_answer => Some(detail),
        (Verdict::Yes, _) => Some("yes"),
        (Verdict::No | Verdict::Broken, _) => Some("no"),
    }
}

impl Sink for Progress {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Checking(label) => self.ask(label),
            Event::Answered(check) => self.answer(check),
            Event::Message(message) => self.message(message),
            Event::Busy(text) => self.busy(text),
            Event::Progress(done, total, word) => self.advance(*done, *total, word),
            Event::Idle => self.idle(),
            Event::Wrote { path, changed } if !self.settings.quiet => {
                let text = match changed {
                    true => format!("ucx-configure: creating {path}\n"),
                    false => format!("ucx-configure: {path} is unchanged\n"),
                };
                self.say(To::Checks, text);
            }
            Event::Wrote { .. } | Event::Ran { .. } | Event::Decided(_) => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests;
