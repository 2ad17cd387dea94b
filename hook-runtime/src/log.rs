//! Messages, written straight to standard error: no lock, no heap, so that they may be
//! written inside a hook and while the loader's list is locked.
//!
//! `UCX_MEM_LOG_LEVEL` chooses how many, as for UCX's own memory hooks.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::sys::{environment, output};

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Something is lost for good.
    Fatal = 1,
    /// Something does not work.
    Error,
    /// Something works less well than it should.
    Warn,
    /// Of interest if something does not work.
    Diag,
    /// What was done.
    Info,
    /// How it was done.
    Debug,
    /// Every step of it.
    Trace,
}

impl Level {
    const ALL: [(&'static str, Self); 7] = [
        ("fatal", Self::Fatal),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("diag", Self::Diag),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];

    /// The level with UCX's number, which begins with 0 for the most important one. Numbers
    /// beyond our last level say everything, too.
    pub fn from_ucx(number: i32) -> Option<Self> {
        let number = usize::try_from(number).ok()?;
        Self::ALL.get(number).or(Self::ALL.last()).map(|&(_, level)| level)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let same = |(known, _): &&(&str, Self)| known.eq_ignore_ascii_case(name);
        // UCX has two levels beyond `trace`, for data; nothing here needs them.
        let beyond = ["req", "data", "async", "func", "poll"];
        let named = Self::ALL.iter().find(same).map(|&(_, level)| level);
        named.or_else(|| {
            beyond.iter().any(|known| known.eq_ignore_ascii_case(name)).then_some(Self::Trace)
        })
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize - 1].0
    }
}

/// The level in force; 0 until the variable has been read.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Sets the level, instead of what the variable says.
pub fn set(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether messages of this level are written.
pub fn is_on(level: Level) -> bool {
    let mut limit = LEVEL.load(Ordering::Relaxed);
    if limit == 0 {
        let variable = environment::variable("UCX_MEM_LOG_LEVEL");
        let named = variable.as_ref().and_then(|name| Level::from_name(name.to_str()?));
        limit = named.unwrap_or(Level::Warn) as u8;
        LEVEL.store(limit, Ordering::Relaxed);
        if variable.is_some() && named.is_none() {
            crate::log::warn!("`UCX_MEM_LOG_LEVEL` names no level: using `warn`");
        }
    }
    level as u8 <= limit
}

/// Writes one message if its level is on. The macros below call this.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    if is_on(level) {
        let mut line = Line::new();
        let _ = write!(line, "hook-runtime: {}: {message}", level.name());
        output::to_standard_error(line.finish());
    }
}

/// A line of bounded length on the stack. What does not fit is cut off.
pub struct Line {
    bytes: [u8; Self::LENGTH],
    used: usize,
}

impl Line {
    const LENGTH: usize = 512;

    /// An empty line.
    pub fn new() -> Self {
        Self { bytes: [0; Self::LENGTH], used: 0 }
    }

    /// The line with its end.
    pub fn finish(&mut self) -> &[u8] {
        self.bytes[self.used] = b'\n';
        &self.bytes[..=self.used]
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte is kept for the end of the line.
        let room = Self::LENGTH - 1 - self.used;
        let taken = text.floor_char_boundary(room);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        Ok(())
    }
}

macro_rules! error {
    ($($message:tt)+) => {
        $crate::log::write($crate::log::Level::Error, ::core::format_args!($($message)+))
    };
}
macro_rules! warn_ {
    ($($message:tt)+) => {
        $crate::log::write($crate::log::Level::Warn, ::core::format_args!($($message)+))
    };
}
macro_rules! info {
    ($($message:tt)+) => {
        $crate::log::write($crate::log::Level::Info, ::core::format_args!($($message)+))
    };
}
macro_rules! debug {
    ($($message:tt)+) => {
        $crate::log::write($crate::log::Level::Debug, ::core::format_args!($($message)+))
    };
}
pub(crate) use {debug, error, info, warn_ as warn};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_that_ucx_gives_them() {
        for (name, level) in Level::ALL {
            assert_eq!(Level::from_name(name), Some(level));
            assert_eq!(level.name(), name);
        }
        assert_eq!(Level::from_name("WARN"), Some(Level::Warn));
        assert_eq!(Level::from_name("poll"), Some(Level::Trace));
        assert_eq!(Level::from_name("loud"), None);
        assert_eq!(
            [0, 2, 6, 9].map(Level::from_ucx),
            [Some(Level::Fatal), Some(Level::Warn), Some(Level::Trace), Some(Level::Trace),]
        );
        assert_eq!(Level::from_ucx(-1), None);
    }

    #[test]
    fn a_long_line_is_cut_and_still_ends() {
        let mut line = Line::new();
        for _ in 0..100 {
            write!(line, "ünïcödé text, ").unwrap();
        }
        let bytes = line.finish();
        assert!(bytes.len() <= Line::LENGTH);
        assert!(std::str::from_utf8(bytes).unwrap().ends_with('\n'));
    }
}
