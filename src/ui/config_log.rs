//! config.log: everything that was asked, run and decided, in order, so that
//! a "no" can be understood and each command repeated.
//!
//! It holds no time stamps, and no paths of scratch directories: two runs that
//! do the same write the same. The text of its head explains its form, and a
//! test runs the shell function that it gives for repeating a command.

use std::fmt::Write as _;

use super::{Event, Sink, scratch::without_scratch};
use crate::{
    error::Error,
    exit::Exit,
    host::process::Completed,
    model::{
        Answers, Check, DefineValue, Evidence, Message, MessageKind, Mode, Outcome, Report,
        SubstValue, Tool,
    },
};

/// How many lines of a stream are kept.
const KEPT_LINES: usize = 200;

/// How much of a line is kept, in characters.
const KEPT_COLUMNS: usize = 1000;

/// How the log explains itself; the function is run by a test.
const HEAD: &str = r#"
The first character of a line says what it is:

  ?  a question                 [  the number of a command, and its source
  @  where the command ran      |  the source's text
  $  the command (> goes on)    =  how it ended
  :  what it wrote              *  a decision
  !  an answer, or what the user was told

A command can be repeated by its number, in the directory where this file is.
What the command writes stays where it ran.

  repeat() (
      log=$PWD/config.log
      part() { sed -n "/^\[$1\] /,/^=/s/^$2//p" "$log"; }
      source=$(sed -n "s/^\[$1\] //p" "$log")
      where=$(part "$1" '@ ')
      cd "${where:-.}" && set -C || exit
      test "$source" = - || part "$1" '| \{0,1\}' > "$source" || exit
      eval "$(part "$1" '[$>] ')"
      status=$?
      test "$source" = - || rm -f "$source"
      exit "$status"
  )
  repeat 1

"#;

/// Collects the log.
#[derive(Debug)]
pub struct ConfigLog {
    text: String,
    commands: usize,
}

impl ConfigLog {
    /// Begins a log: who writes it, for which command line, and what is to be
    /// known of the machine (name and value; nothing that changes from run to
    /// run).
    pub fn new(tool: &Tool, command_line: &[String], facts: &[(&str, String)]) -> Self {
        let mut log = Self { text: String::new(), commands: 0 };
        log.line("", &format!("config.log of {} {}", tool.name, tool.version));
        log.text.push('\n');
        let words: Vec<_> = command_line.iter().map(|word| quoted(word)).collect();
        log.lines("  $ ", "  > ", &format!("{} {}", tool.name, words.join(" ")));
        for (name, value) in facts {
            log.line("  ", &format!("{name}: {value}"));
        }
        log.text.push_str(HEAD);
        log
    }

    /// Ends the log: the answers, how the run ended, and why. There is no
    /// report when the run ended before there was anything to report.
    pub fn finish(mut self, report: Option<&Report>, error: Option<&Error>, exit: Exit) -> String {
        if let Some(report) = report {
            self.title("answers");
            self.answers(&report.answers);
            self.title("differences between strict and compat answers");
            for difference in &report.differences {
                self.line("* ", &format!("{}: {}", difference.quirk, difference.text));
            }
            self.title("what the user was told");
            for message in &report.messages {
                self.message(message);
            }
        }
        self.title("end");
        if let Some(report) = report {
            let rules = match report.mode {
                Mode::Strict => "our own, strict rules",
                Mode::Compat => "UCX v1.19.0's rules (--compat)",
            };
            self.line("* ", &format!("decided by {rules}"));
        }
        if let Some(error) = error {
            self.error(error);
        }
        self.line("= ", &format!("exit code {}: {}", exit.code(), exit.doc()));
        self.text
    }

    /// Adds one line with its mark; what would break it is escaped.
    fn line(&mut self, mark: &str, line: &str) {
        let line = without_scratch(line);
        let mark = if line.is_empty() { mark.trim_end() } else { mark };
        let cut = line.char_indices().nth(KEPT_COLUMNS).map_or(line.len(), |(end, _)| end);
        self.text.push_str(mark);
        self.plain(&line[..cut]);
        if cut < line.len() {
            self.text.push_str(" ...");
        }
        self.text.push('\n');
    }

    /// Adds a text of several lines, uncut: the first has a mark of its own.
    fn lines(&mut self, first: &str, more: &str, text: &str) {
        for (index, line) in without_scratch(text).split('\n').enumerate() {
            let mark = if index == 0 { first } else { more };
            // A blank at the end would be a blank for nothing.
            self.text.push_str(if line.is_empty() { mark.trim_end() } else { mark });
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Adds text with its control characters made visible.
    fn plain(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_control() && c != '\t' {
                self.text.extend(c.escape_default());
            } else {
                self.text.push(c);
            }
        }
    }

    fn title(&mut self, title: &str) {
        let _ = write!(self.text, "\n## {title}\n\n");
    }

    fn ran(&mut self, completed: &Completed, source: Option<(&str, &str)>) {
        self.commands += 1;
        let name = source.map_or("-", |(name, _)| name);
        let _ = writeln!(self.text, "[{}] {name}", self.commands);
        if let Some(dir) = &completed.invocation.cwd {
            self.lines("@ ", "@ ", dir.as_str());
        }
        if let Some((_, text)) = source {
            self.lines("| ", "| ", text.strip_suffix('\n').unwrap_or(text));
        }
        self.lines("$ ", "> ", &completed.invocation.to_string());
        self.line("= ", &completed.status.to_string());
        self.output(&completed.stdout);
        self.output(&completed.stderr);
        if completed.truncated {
            self.line(": ", "(it wrote more than was kept)");
        }
    }

    fn output(&mut self, text: &str) {
        let mut lines = text.lines();
        for line in lines.by_ref().take(KEPT_LINES) {
            self.line(": ", line.trim_end());
        }
        let more = lines.count();
        if more > 0 {
            self.line(": ", &format!("({more} more lines)"));
        }
    }

    fn answered(&mut self, check: &Check) {
        let word = check.verdict.word();
        let answer = match (&check.detail, check.detail_is_answer) {
            (Some(detail), true) => detail.clone(),
            (Some(detail), false) => format!("{word} ({detail})"),
            (None, _) => word.to_owned(),
        };
        self.evidence(&check.evidence, check.cached);
        self.line("! ", &format!("checking {}... {answer} [{}]", check.label, check.id));
    }

    /// The chain of what was tried. The commands stand above already, except
    /// where the answer was kept from an earlier run.
    fn evidence(&mut self, evidence: &Evidence, cached: bool) {
        if cached {
            self.line("* ", "the answer is kept from an earlier run, nothing it read has changed:");
        }
        for attempt in &evidence.attempts {
            let outcome = match attempt.outcome {
                Outcome::Satisfied => "satisfied",
                Outcome::Rejected => "rejected",
                Outcome::Absent => "absent",
                Outcome::Failed => "the tool failed",
            };
            let place = attempt.place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
            self.line("* ", &format!("{}{place}: {outcome}", attempt.what));
            if cached {
                let then = attempt.command.iter().chain(&attempt.said);
                then.flat_map(|text| text.lines()).for_each(|line| self.line("*     ", line));
            }
            if let Some(meaning) = &attempt.meaning {
                self.line("*   ", meaning);
            }
        }
        if let Some(hint) = &evidence.hint {
            self.line("*   hint: ", hint);
        }
    }

    fn message(&mut self, message: &Message) {
        let kind = match message.kind {
            MessageKind::Note => "note",
            MessageKind::Warning => "warning",
            MessageKind::Error => "error",
        };
        self.line("! ", &format!("{kind} {}: {}", message.code, message.text));
        if let Some(hint) = &message.hint {
            self.line("! ", &format!("hint: {hint}"));
        }
    }

    fn error(&mut self, error: &Error) {
        self.line("! ", &format!("error {}: {}", error.code.row().name, error.what));
        let command = error.command.iter().map(|command| format!("the command: {command}"));
        let said = error.said.iter().map(|said| format!("it said: {said}"));
        let hints = error.hints.iter().map(|hint| format!("hint: {hint}"));
        let parts = command.chain(said).chain(error.means.iter().cloned()).chain(hints);
        for line in parts.collect::<Vec<_>>().iter().flat_map(|part| part.lines()) {
            self.line("! ", line);
        }
    }

    fn answers(&mut self, answers: &Answers) {
        for define in &answers.defines {
            match &define.value {
                DefineValue::Defined(text) => {
                    self.line("#define ", &format!("{} {text}", define.name));
                }
                DefineValue::Undefined => self.line("/* #undef ", &format!("{} */", define.name)),
            }
        }
        for substitution in &answers.substitutions {
            let value = match &substitution.value {
                SubstValue::Words(words) => {
                    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
                }
                SubstValue::Text(text) => format!("\"{text}\""),
            };
            self.line("", format!("{}: {value}", substitution.name).trim_end());
        }
        for conditional in &answers.conditionals {
            let value = if conditional.value { "yes" } else { "no" };
            self.line("", &format!("{}: {value}", conditional.name));
        }
    }
}

/// A word as a shell would need it.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.escape_debug().to_string(), |word| word.into())
}

impl Sink for ConfigLog {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Checking(label) => {
                self.text.push('\n');
                self.line("? ", &format!("checking {label}"));
            }
            Event::Answered(check) => self.answered(check),
            Event::Ran { completed, source } => self.ran(completed, *source),
            Event::Message(message) => self.message(message),
            Event::Decided(sentence) => self.line("* ", sentence),
            Event::Busy(text) => self.line("* ", text),
            // Whether it changed is different in a second run; the log is not.
            Event::Wrote { path, .. } => self.line("* ", &format!("output: {path}")),
            Event::Progress(..) | Event::Idle => {}
        }
    }
}

#[cfg(test)]
mod tests;
