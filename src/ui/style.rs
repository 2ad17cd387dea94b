//! The few styles, in one place. Colour never carries meaning alone: every
//! styled word says by itself what it means.
//!
//! Text is always written with its styles; `anstream` takes them out for
//! pipes, `NO_COLOR`, `CLICOLOR=0` and `TERM=dumb`.

use anstyle::{AnsiColor, Style};

use crate::model::Verdict;

/// Of `error:`.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Of `warning:`.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Of `note:`.
pub const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// Of `hint:`.
pub const HINT: Style = AnsiColor::Green.on_default().bold();
/// Of headings and the names in the summary.
pub const HEADING: Style = Style::new().bold();
/// Of what stands in brackets.
pub const DETAIL: Style = Style::new().dimmed();

/// Of a verdict's word.
pub const fn verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Yes => AnsiColor::Green.on_default(),
        Verdict::No => AnsiColor::Yellow.on_default(),
        Verdict::Broken => AnsiColor::Red.on_default(),
        Verdict::Skipped => Style::new().dimmed(),
    }
}

/// A text in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
