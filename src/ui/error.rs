//! Shows an error with its four parts: what failed, what the tool said, what
//! it means, what to do.
//!
//! The parts live with the error; this only lays them out.

use std::fmt::Write as _;

use super::style::{self, paint};
use crate::{error::Error, model::Mode};

/// How many lines of a tool's own words are shown; the log has them all.
const SHOWN_LINES: usize = 20;

/// Lays an error out. The text is styled; whoever writes it decides whether
/// the styles stay.
///
/// With [`Mode::Compat`] the first line is the original's, to the letter.
pub fn render(error: &Error, mode: Mode) -> String {
    let mut text = match mode {
        Mode::Strict => {
            let name = error.code.row().name;
            let code = paint(style::DETAIL, &format!("[{name}]"));
            format!("{} {} {code}\n", paint(style::ERROR, "error:"), visible(&error.what))
        }
        Mode::Compat => format!("configure: error: {}\n", visible(&error.what)),
    };
    if let Some(command) = &error.command {
        let _ = writeln!(text, "  command: {command}");
    }
    if let Some(said) = &error.said {
        text += &indented(said);
    }
    for meaning in &error.means {
        let _ = writeln!(text, "  {}", visible(meaning));
    }
    let mut shown: Vec<&str> = Vec::new();
    for hint in &error.hints {
        if !shown.contains(&hint.as_str()) {
            shown.push(hint);
            let _ = writeln!(text, "{} {}", paint(style::HINT, "hint:"), visible(hint));
        }
    }
    text
}

/// The text with its control characters made visible: what was typed is in it,
/// and is not to steer a terminal.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() && letter != '\n' {
            true => shown.extend(letter.escape_debug()),
            false => shown.push(letter),
        }
    }
    shown
}

/// The tool's own words, each line behind a bar.
fn indented(said: &str) -> String {
    let lines: Vec<&str> = said.trim_matches('\n').lines().collect();
    let mut text = String::new();
    for line in lines.iter().take(SHOWN_LINES) {
        text += format!("  | {line}").trim_end();
        text.push('\n');
    }
    if let Some(more) = lines.len().checked_sub(SHOWN_LINES).filter(|more| *more > 0) {
        let _ = writeln!(text, "  | ({more} more lines)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn plain(error: &Error, mode: Mode) -> String {
        anstream::adapter::strip_str(&render(error, mode)).to_string()
    }

    #[test]
    fn four_parts() {
        let error = Error::new(Code::NvmlNotMet, "NVML cannot be linked")
            .command("LC_ALL=C cc a.c -lnvidia-ml")
            .said("ld: cannot find -lnvidia-ml\n\nld returned 1\n")
            .means("The library is not in /x.")
            .hint("Install it.")
            .hint("Install it.")
            .hint("Or leave it.");
        assert_eq!(
            plain(&error, Mode::Strict),
            "error: NVML cannot be linked [E0202]\n  command: LC_ALL=C cc a.c -lnvidia-ml\n  \
             | ld: cannot find -lnvidia-ml\n  |\n  | ld returned 1\n  The library is not in /x.\n\
             hint: Install it.\nhint: Or leave it.\n"
        );
        assert!(
            plain(&error, Mode::Compat).starts_with("configure: error: NVML cannot be linked\n")
        );
    }

    #[test]
    fn control_characters_are_made_visible() {
        let error = Error::new(Code::Usage, "`a\u{1b}]0;x\u{7}`").hint("`\u{1b}[2J`").means("\t");
        let text = render(&error, Mode::Strict);
        assert!(text.contains("`a\\u{1b}]0;x\\u{7}`") && text.contains("`\\u{1b}[2J`"), "{text}");
    }

    #[test]
    fn a_tool_that_says_much_is_cut() {
        let error = Error::new(Code::CompilerBroken, "x").said("line\n".repeat(50));
        let text = plain(&error, Mode::Strict);
        assert_eq!(text.matches("  | line").count(), SHOWN_LINES);
        assert!(text.contains("  | (30 more lines)\n"));
    }
}
