//! Putting hooks in place: per symbol a patched entry if that can be had, else slots.
//!
//! One symbol's failure never stops the others, and nothing fails in silence: what was
//! tried is in the [coverage report](super::coverage). What is not loaded yet is hooked
//! when it is.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::coverage::Coverage;
use super::entry::{self, Entry, Refused};
use super::original::Target;
use crate::cuda::driver;
use crate::cuda::table::{Api, HOOKS};
use crate::error::HookError;
use crate::reloc::image::Image;
use crate::reloc::scan::{self, Action, Extent};
use crate::settings::{self, Modes};
use crate::sys::{environment, loader};
use crate::{log, trace};

/// What to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The mechanisms that may be used.
    pub modes: Modes,
    /// A file for the trace of events.
    pub trace: Option<OsString>,
}

impl Options {
    /// What the environment variables say.
    pub fn from_environment() -> Self {
        Self { modes: Modes::from_environment(), trace: environment::variable(settings::TRACE) }
    }
}

/// The mechanisms in use, as bits; 0 while no hooks are installed.
static ACTIVE: AtomicU8 = AtomicU8::new(0);
const BISTRO: u8 = 1;
const RELOC: u8 = 2;

/// Why entries were not patched, by symbol. Never held while the loader is called.
static REFUSALS: Mutex<Vec<Refused>> = Mutex::new(Vec::new());

/// Installs hooks in what is loaded now, and from now on in what is loaded later.
/// Calling it again adds the mechanisms that are not in use yet. What came of it is asked
/// for with [`Coverage::now`], which takes longer than installing does.
pub fn install(options: &Options) -> Result<(), HookError> {
    let Modes { bistro, reloc } = options.modes;
    if options.modes == Modes::NONE {
        return Err(HookError::SwitchedOff { variable: settings::HOOK_MODE });
    }
    if !reloc && !entry::is_available() {
        return Err(HookError::NoMechanism {
            asked: options.modes.to_string(),
            processor: std::env::consts::ARCH,
        });
    }
    if let Some(path) = &options.trace {
        trace::start(path)?;
    }
    // Hooks lead into this object.
    loader::pin(install as fn(&Options) -> Result<(), HookError> as usize);
    let modes = if bistro { BISTRO } else { 0 } | if reloc { RELOC } else { 0 };
    crate::lifetime::watch();
    ACTIVE.fetch_or(modes, Ordering::SeqCst);
    hook_what_is_loaded();
    if log::is_on(log::Level::Info) {
        crate::log::info!("hooks installed: {}", Coverage::now().summary());
    }
    Ok(())
}

/// Takes all hooks out again, as far as that can be seen: a pointer to a replacement that
/// the program has copied keeps leading there, and the replacement to its original.
pub fn uninstall() {
    ACTIVE.store(0, Ordering::SeqCst);
    for refused in entry::restore() {
        crate::log::error!("`{}` stays patched: {}", refused.symbol, refused.reason);
    }
    scan::scanner().run(Action::Restore, Extent::Everything);
}

/// The mechanisms in use.
pub fn active() -> Modes {
    let bits = ACTIVE.load(Ordering::SeqCst);
    Modes { bistro: bits & BISTRO != 0, reloc: bits & RELOC != 0 }
}

/// Why the entry of `symbol` was not patched.
pub(super) fn refusal(symbol: &str) -> Option<String> {
    let refusals = lock(&REFUSALS);
    let newest = refusals.iter().rev().find(|refused| refused.symbol == symbol);
    newest.map(|refused| refused.reason.clone())
}

/// A driver function that is loaded and could not be patched.
pub(crate) fn unpatched() -> Option<&'static str> {
    lock(&REFUSALS).first().map(|refused| refused.symbol)
}

/// Called when the loader may have loaded something.
pub(crate) fn after_loading() {
    if ACTIVE.load(Ordering::SeqCst) != 0 && scan::scanner().is_behind() {
        hook_what_is_loaded();
    }
}

fn hook_what_is_loaded() {
    let modes = active();
    // Entries first: a slot that leads to a patched entry can stay as it is.
    if modes.bistro && entry::is_available() {
        patch_entries();
    }
    let extent = if modes.reloc { Extent::Everything } else { Extent::LoaderOnly };
    scan::scanner().run(Action::Redirect, extent);
}

/// The entries of all driver functions that are loaded.
fn driver_entries() -> Vec<Entry> {
    let targets = HOOKS.iter().filter(|hook| hook.api == Api::Driver).map(|hook| &hook.target);
    loader::with_objects(|objects, _| {
        let images = objects.iter().filter_map(|object| Image::new(*object));
        let drivers: Vec<_> =
            images.filter(driver::is_driver).filter_map(|image| image.tables()).collect();
        let entries = |target: &'static Target| {
            let found = drivers.iter().flat_map(|tables| tables.functions(&target.symbol));
            let entry = |(address, size)| Entry { target, address, size };
            found.map(entry).collect::<Vec<_>>()
        };
        targets.flat_map(entries).collect()
    })
}

fn patch_entries() {
    let mut entries = driver_entries();
    entries.retain(|entry| !entry.is_patched());
    // What was refused for good is not asked about with each library that is loaded.
    lock(&REFUSALS).retain(|refused| {
        entries.retain(|entry| !refused.for_good || entry.address != refused.address);
        refused.for_good
    });
    let Some(first) = entries.first() else { return };
    // Patched code must stay where it is.
    loader::pin(first.address);
    let force_far = settings::force_far();
    // SAFETY: the entries are functions of the driver by their own names, and it has been
    // pinned; the replacements have the signatures that these are documented to have.
    for refused in unsafe { entry::patch(&entries, force_far) } {
        crate::log::debug!("`{}` cannot be patched: {}", refused.symbol, refused.reason);
        lock(&REFUSALS).push(refused);
    }
}

/// The list of refusals, locked.
pub(crate) struct Unchanging(
    #[expect(dead_code, reason = "it is held")] MutexGuard<'static, Vec<Refused>>,
);

/// Keeps the list as it is until the result is dropped.
pub(crate) fn lock_for_fork() -> Unchanging {
    Unchanging(lock(&REFUSALS))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
