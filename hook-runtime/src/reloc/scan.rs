//! Redirecting the slots of all loaded objects, now and whenever more are loaded.
//!
//! A scan reads and writes inside one walk over the loader's list, during which
//! nothing can be unloaded. Slots that are not bound yet need the loader's help,
//! which must not be called inside: they are asked about between two walks, and
//! looked at again in the second. Two threads may scan at once; what one has done,
//! the other finds done.
//!
//! What an object's slots are is kept while the loader removes nothing; once it has
//! removed anything, nothing that was known about any object is trusted any more. That
//! covers objects that go together with another one, and addresses that are used again.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::image::{Image, Name};
use super::rewrite::{self, SlotFailure, State};
use super::slots::{self, Slot, Wanted};
use crate::hook::original::{COPIES, Target};
use crate::sys::loader::{self, Generation, Scope};
use crate::sys::pages::{Protections, SlotWriter};

/// What a scan does with the slots that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Redirects them.
    Redirect,
    /// Gives them their originals back.
    Restore,
    /// Only counts.
    Inspect,
}

/// Which targets a scan is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    Everything,
    /// Only the loader's own, by which the scanner keeps up: all that is needed where
    /// entries are patched and slots left alone.
    LoaderOnly,
}

/// What a scan found for one target.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Slots that lead to us now.
    pub redirected: usize,
    /// Slots that lead straight to a function whose entry is patched.
    pub detoured: usize,
    /// Slots that do neither.
    pub left: usize,
    /// Why, for those that could not be redirected: the object and the reason.
    pub failures: Vec<(String, SlotFailure)>,
    /// Places of originals that slots use.
    places: [bool; COPIES],
}

/// Knows the slots of all targets in all loaded objects.
pub struct Scanner {
    /// In the order of the tallies; the loader's own is the last.
    targets: Vec<&'static Target>,
    wanted: Wanted,
    /// Only ever locked inside a walk, so that it is never waited for and no order
    /// of locks can be wrong.
    cache: Mutex<Cache>,
    complete: [AtomicU64; 2],
}

#[derive(Default)]
struct Cache {
    removed: u64,
    slots: HashMap<Identity, Arc<[Slot]>>,
}

/// What tells one loaded object from another until the loader removes one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    base: usize,
    headers: usize,
}

/// A slot that the loader has to be asked about.
struct Late {
    object: Identity,
    path: CString,
    slot: Slot,
    found: Option<usize>,
}

impl Scanner {
    /// A scanner for `targets` and the loader's own target.
    fn new(mut targets: Vec<&'static Target>, loader: &'static Target) -> Self {
        targets.push(loader);
        let wanted = Wanted::new(&targets);
        Self { targets, wanted, cache: Mutex::default(), complete: Default::default() }
    }

    /// Whether the loader has loaded or unloaded anything since the last complete scan.
    pub fn is_behind(&self) -> bool {
        let [added, removed] = &self.complete;
        let complete = Generation {
            added: added.load(Ordering::Acquire),
            removed: removed.load(Ordering::Acquire),
        };
        complete != loader::with_objects(|_, generation| generation)
    }

    /// Goes through the slots of the targets that `extent` names. The tallies are in the
    /// order of the hook table; the last one is that of the loader.
    pub fn run(&self, action: Action, extent: Extent) -> Vec<Tally> {
        let mut pass = loader::with_objects(|objects, generation| {
            let images: Vec<_> = objects.iter().filter_map(|object| Image::new(*object)).collect();
            let mut pass = Pass::new(self, action, extent);
            for (image, slots) in self.slots(&images, generation) {
                pass.object(&image, &images, &slots);
            }
            if extent == Extent::Everything {
                self.release_unloaded(&images, &pass.tallies);
            }
            crate::cuda::driver::refresh(&images);
            // What the loader is still working on is looked at again next time.
            let complete = action == Action::Redirect && !pass.loading;
            (complete || action == Action::Restore).then(|| {
                let seen = if complete { generation } else { Generation::default() };
                self.complete[0].store(seen.added, Ordering::Release);
                self.complete[1].store(seen.removed, Ordering::Release);
            });
            pass
        });
        if !pass.late.is_empty() {
            self.bind_late(&mut pass);
        }
        pass.tallies
    }

    /// All objects that have slots, with these.
    fn slots<'object>(
        &self,
        images: &[Image<'object>],
        generation: Generation,
    ) -> Vec<(Image<'object>, Arc<[Slot]>)> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.removed != generation.removed {
            cache.slots.clear();
            cache.removed = generation.removed;
        }
        let with_slots = images.iter().map(|image| {
            let found = || slots::find(image, &self.wanted).into();
            (*image, cache.slots.entry(Identity::of(image)).or_insert_with(found).clone())
        });
        with_slots.filter(|(_, slots)| !slots.is_empty()).collect()
    }

    /// Asks the loader about the late slots, then redirects them.
    fn bind_late(&self, pass: &mut Pass<'_>) {
        let mut late = std::mem::take(&mut pass.late);
        for Late { path, slot, found, .. } in &mut late {
            let symbol = self.targets[slot.target].symbol.text();
            let version = slot.version.as_deref();
            *found = [Scope::Global, Scope::Object(path)]
                .into_iter()
                .find_map(|scope| loader::lookup(scope, symbol, version));
        }
        loader::forget_error();
        pass.protections = Protections::default();
        loader::with_objects(|objects, _| {
            let images: Vec<_> = objects.iter().filter_map(|object| Image::new(*object)).collect();
            for image in &images {
                let mine = |late: &&Late| {
                    late.object == Identity::of(image) && *late.path == *image.path()
                };
                pass.bound(image, &images, late.iter().filter(mine));
            }
        });
    }

    /// Frees the places of functions that are no longer loaded, and that no slot uses.
    fn release_unloaded(&self, images: &[Image<'_>], tallies: &[Tally]) {
        for (target, tally) in self.targets.iter().zip(tallies) {
            target.originals.release(|place, entry| {
                !tally.places[place] && !images.iter().any(|image| image.contains(entry))
            });
        }
    }
}

impl Identity {
    fn of(image: &Image<'_>) -> Self {
        Self { base: image.base(), headers: image.headers_address() }
    }
}

/// One run over the slots.
struct Pass<'scanner> {
    scanner: &'scanner Scanner,
    action: Action,
    extent: Extent,
    tallies: Vec<Tally>,
    late: Vec<Late>,
    loading: bool,
    /// Valid during one walk.
    protections: Protections,
}

impl<'scanner> Pass<'scanner> {
    fn new(scanner: &'scanner Scanner, action: Action, extent: Extent) -> Self {
        let tallies = vec![Tally::default(); scanner.targets.len()];
        let protections = Protections::default();
        Self { scanner, action, extent, tallies, late: Vec::new(), loading: false, protections }
    }

    fn is_about(&self, slot: &Slot) -> bool {
        self.extent == Extent::Everything || slot.target == self.scanner.targets.len() - 1
    }

    /// Handles the slots of one object. Called inside a walk only.
    fn object(&mut self, image: &Image<'_>, images: &[Image<'_>], slots: &[Slot]) {
        let mut protections = std::mem::take(&mut self.protections);
        let mut writer = SlotWriter::new(&mut protections);
        for slot in slots {
            if !self.is_about(slot) {
                continue;
            }
            let target = self.scanner.targets[slot.target];
            let state = rewrite::state(slot, target, image, images);
            match (state, self.action) {
                (State::Redirected(place), Action::Restore) => {
                    // SAFETY: nothing is unloaded during the walk, which outlives the writer.
                    let restored = unsafe { rewrite::restore(slot, target, place, &mut writer) };
                    self.note(slot, image, restored.map(|()| None));
                }
                (State::Redirected(place), _) => self.note(slot, image, Ok(Some(place))),
                (State::Bound(original), Action::Redirect) => {
                    // SAFETY: nothing is unloaded during the walk, which outlives the writer.
                    let done = unsafe { rewrite::redirect(slot, target, original, &mut writer) };
                    self.note(slot, image, done.map(Some));
                }
                (State::Bound(original), _) => {
                    let place = target.originals.place_of(original);
                    let detoured = place.filter(|&place| target.originals.is_detoured(place));
                    self.note(slot, image, Ok(detoured));
                }
                (State::Late, Action::Redirect) => self.late.push(Late {
                    object: Identity::of(image),
                    path: image.path().to_owned(),
                    slot: slot.clone(),
                    found: None,
                }),
                (State::Loading, _) => self.loading = true,
                (State::Late | State::Changed, _) => self.note(slot, image, Ok(None)),
                (State::Empty, _) => {}
            }
        }
        self.close(image, writer);
        self.protections = protections;
    }

    /// Handles late slots of one object, now that the loader has been asked.
    fn bound<'late>(
        &mut self,
        image: &Image<'_>,
        images: &[Image<'_>],
        late: impl Iterator<Item = &'late Late>,
    ) {
        let mut protections = std::mem::take(&mut self.protections);
        let mut writer = SlotWriter::new(&mut protections);
        for Late { slot, found, .. } in late {
            let target = self.scanner.targets[slot.target];
            // The slot may have been bound, or redirected, since it was seen.
            let original = match rewrite::state(slot, target, image, images) {
                State::Late => rewrite::late_original(target, image, images, *found),
                State::Bound(original) => Ok(original),
                State::Redirected(place) => {
                    self.note(slot, image, Ok(Some(place)));
                    continue;
                }
                State::Empty | State::Loading | State::Changed => continue,
            };
            let done = original.and_then(|original| {
                // SAFETY: nothing is unloaded during the walk, which outlives the writer.
                unsafe { rewrite::redirect(slot, target, original, &mut writer) }
            });
            self.note(slot, image, done.map(Some));
        }
        self.close(image, writer);
        self.protections = protections;
    }

    fn note(
        &mut self,
        slot: &Slot,
        image: &Image<'_>,
        outcome: Result<Option<usize>, SlotFailure>,
    ) {
        let tally = &mut self.tallies[slot.target];
        match outcome {
            Ok(Some(place)) => {
                tally.places[place] = true;
                let originals = self.scanner.targets[slot.target].originals;
                match originals.is_detoured(place) {
                    true => tally.detoured += 1,
                    false => tally.redirected += 1,
                }
            }
            Ok(None) => tally.left += 1,
            Err(failure) => {
                tally.left += 1;
                tally.failures.push((image.path().to_string_lossy().into_owned(), failure));
            }
        }
    }

    fn close(&mut self, image: &Image<'_>, writer: SlotWriter<'_>) {
        if let Err(error) = writer.finish() {
            let path = image.path().to_string_lossy();
            crate::log::warn!("a page of `{path}` stays writable: {error}");
        }
    }
}

/// The process's scanner: every row of the hook table, and `dlopen`.
pub fn scanner() -> &'static Scanner {
    static SCANNER: OnceLock<Scanner> = OnceLock::new();
    SCANNER.get_or_init(|| {
        let hooks = crate::cuda::table::HOOKS.iter().map(|hook| &hook.target);
        Scanner::new(hooks.collect(), super::loader::target())
    })
}

/// The function `symbol` of the object that holds `address`.
pub fn sibling(address: usize, symbol: &'static CStr) -> Option<usize> {
    loader::with_objects(|objects, _| {
        let mut images = objects.iter().filter_map(|object| Image::new(*object));
        let tables = images.find(|image| image.contains(address))?.tables()?;
        tables.definitions(&Name::new(symbol)).next()
    })
}
