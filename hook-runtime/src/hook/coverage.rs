//! What is covered, how, and why not: one line per symbol.
//!
//! The report is made by looking, not by remembering: the slots are counted in the loaded
//! objects as they are when it is asked for.

use std::fmt;

use super::entry;
use super::install;
use crate::cuda::driver;
use crate::cuda::table::{Api, HOOKS};
use crate::reloc::image::Image;
use crate::reloc::scan::{self, Action, Extent, Tally};
use crate::settings::Modes;
use crate::sys::loader;

/// A way to hook a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// Its entry is patched.
    Bistro,
    /// The slots that lead to it are redirected.
    Reloc,
}

/// What came of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Calls are seen.
    Hooked(Mechanism),
    /// The library that should have it is loaded and lacks it.
    Absent,
    /// Nothing is loaded that has it or calls it; it will be hooked when that changes.
    Waiting,
    /// It is there, and calls are not seen.
    Missed,
}

/// One mechanism that was tried, and what came of it, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// What came of it.
    pub result: String,
}

/// One symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub symbol: &'static str,
    /// Its interface.
    pub api: Api,
    /// What came of it.
    pub outcome: Outcome,
    /// How many slots of loaded objects lead to its replacement.
    pub slots: usize,
    /// What was tried.
    pub attempts: Vec<Attempt>,
}

/// The report on all symbols, in the order of the hook table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The mechanisms in use.
    pub modes: Modes,
    /// Whether the driver is loaded.
    pub driver_loaded: bool,
    /// The symbols.
    pub rows: Vec<Row>,
}

impl Coverage {
    /// What is covered now.
    pub fn now() -> Self {
        let modes = install::active();
        // Redirecting once more changes nothing where it has been done, and says why where it
        // cannot be.
        let action = if modes.reloc { Action::Redirect } else { Action::Inspect };
        let tallies = scan::scanner().run(action, Extent::Everything);
        let (driver_loaded, defined) = definitions();
        let rows = HOOKS.iter().zip(tallies).zip(defined).map(|((hook, tally), defined)| {
            let patched = (0..hook.target.replacements.len())
                .any(|place| hook.target.originals.is_detoured(place));
            let outcome = match () {
                () if modes.bistro && patched => Outcome::Hooked(Mechanism::Bistro),
                () if tally.redirected > 0 => Outcome::Hooked(Mechanism::Reloc),
                () if defined == 0 && hook.api == Api::Driver && driver_loaded => Outcome::Absent,
                () if tally.left > 0 => Outcome::Missed,
                () if defined > 0 && !modes.reloc => Outcome::Missed,
                () => Outcome::Waiting,
            };
            let slots = tally.redirected;
            let attempts = attempts(hook.name(), hook.api, modes, patched, &tally);
            Row { symbol: hook.name(), api: hook.api, outcome, slots, attempts }
        });
        Self { modes, driver_loaded, rows: rows.collect() }
    }

    /// The row of `symbol`.
    pub fn row(&self, symbol: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.symbol == symbol)
    }

    /// How many symbols came out how, in a line.
    pub fn summary(&self) -> String {
        let count = |outcome| self.rows.iter().filter(|row| row.outcome == outcome).count();
        let driver = if self.driver_loaded { "loaded" } else { "not loaded yet" };
        format!(
            "{} by bistro, {} by reloc, {} missed, {} absent, {} waiting; the driver is {driver}",
            count(Outcome::Hooked(Mechanism::Bistro)),
            count(Outcome::Hooked(Mechanism::Reloc)),
            count(Outcome::Missed),
            count(Outcome::Absent),
            count(Outcome::Waiting),
        )
    }
}

/// Whether the driver is loaded, and how many loaded objects define each symbol.
fn definitions() -> (bool, Vec<usize>) {
    loader::with_objects(|objects, _| {
        let images: Vec<_> = objects.iter().filter_map(|object| Image::new(*object)).collect();
        let driver = images.iter().any(driver::is_driver);
        let tables: Vec<_> = images.iter().filter_map(Image::tables).collect();
        let defined = HOOKS.iter().map(|hook| {
            tables.iter().map(|tables| tables.definitions(&hook.target.symbol).count()).sum()
        });
        (driver, defined.collect())
    })
}

fn attempts(symbol: &str, api: Api, modes: Modes, patched: bool, tally: &Tally) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    if modes.bistro {
        let result = match api {
            Api::Runtime => "not used for the runtime interface".to_owned(),
            Api::Driver if patched => "entry patched".to_owned(),
            Api::Driver if !entry::is_available() => "not in this build".to_owned(),
            Api::Driver => install::refusal(symbol).unwrap_or_else(|| "not loaded".to_owned()),
        };
        attempts.push(Attempt { mechanism: Mechanism::Bistro, result });
    }
    if modes.reloc {
        let mut result = match tally.redirected + tally.detoured {
            0 => "no loaded object calls it through a slot".to_owned(),
            1 => "1 slot".to_owned(),
            slots => format!("{slots} slots"),
        };
        if tally.left > 0 {
            result.push_str(&format_args!(", {} left alone", tally.left).to_string());
        }
        for (object, failure) in &tally.failures {
            result.push_str(&format_args!("; `{object}`: {failure}").to_string());
        }
        attempts.push(Attempt { mechanism: Mechanism::Reloc, result });
    }
    attempts
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Bistro => "bistro",
            Self::Reloc => "reloc",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hooked(mechanism) => mechanism.fmt(formatter),
            Self::Absent => formatter.pad("absent"),
            Self::Waiting => formatter.pad("waiting"),
            Self::Missed => formatter.pad("missed"),
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "hooks ({}): {}", self.modes, self.summary())?;
        for row in &self.rows {
            write!(formatter, "  {:<32}{:<9}", row.symbol, row.outcome)?;
            for (index, attempt) in row.attempts.iter().enumerate() {
                let separator = if index == 0 { "" } else { "; " };
                write!(formatter, "{separator}{}: {}", attempt.mechanism, attempt.result)?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}
