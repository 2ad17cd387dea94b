//! Mappings that are kept, since opening one takes milliseconds.
//!
//! A mapping that somebody holds is never closed. Of those that nobody holds, the least
//! recently used are closed when there are more than the settings allow, and at once those
//! that have been replaced: the owner has freed the memory and allocated anew at its place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::IpcError;
use super::import::{self, Opened};
use super::key::{Key, Probe};
use crate::cuda::driver::calls::Context;
use crate::cuda::driver::open::Driver;
use crate::sys::identity::Identity;
use crate::transport::settings::{Settings, Ternary};

/// Memory of another process, as device memory of this one.
#[derive(Debug)]
pub struct Mapping {
    driver: &'static Driver,
    context: Context,
    opened: Opened,
    base: u64,
    length: u64,
}

impl Mapping {
    /// Where the owner's `address` is in this process; nothing if it lies outside.
    pub fn address_of(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.base).filter(|&offset| offset < self.length)?;
        Some((self.opened.address() + offset) as usize)
    }

    /// Where it starts in this process.
    pub fn address(&self) -> usize {
        self.opened.address() as usize
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let closed = self
            .driver
            .enter_to_clean(self.context)
            .and_then(|_entered| import::close(self.driver, &self.opened));
        match closed {
            Err(failure) if !failure.is_gone() => {
                crate::log::warn!("memory of another process stays open: {failure}");
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Entry {
    owner: Identity,
    buffer: u64,
    base: u64,
    length: u64,
    device: i32,
    mapping: Arc<Mapping>,
}

impl Entry {
    fn is_in_use(&self) -> bool {
        // Nobody can take another reference meanwhile: that needs the cache's lock.
        Arc::strong_count(&self.mapping) > 1
    }
}

/// Whether a way leads to another process, by a test with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tested {
    owner: Identity,
    device: i32,
    probe: u64,
    works: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The most recently used last.
    entries: Vec<Entry>,
    tested: Vec<Tested>,
}

/// The mappings of this process.
#[derive(Debug, Default)]
pub struct Cache(Mutex<State>);

/// The cache of this process: the driver opens a handle once for all of it.
pub fn cache() -> &'static Cache {
    static CACHE: Cache = Cache(Mutex::new(State { entries: Vec::new(), tested: Vec::new() }));
    &CACHE
}

impl Cache {
    /// The memory that `key` names, for copies made on `device`. It stays open for as long as
    /// the result is held.
    pub fn open(
        &self,
        driver: &'static Driver,
        key: &Key,
        settings: &Settings,
    ) -> Result<Arc<Mapping>, IpcError> {
        let own = Identity::own();
        let process = key.owner.process;
        if key.owner == own {
            return Err(IpcError::OwnMemory);
        }
        let far = !own.is_neighbour(&key.owner);
        if far && !(key.is_on_fabric() && settings.ipc_mnnvl != Ternary::No) {
            let why = "it runs on another machine, or in another PID namespace";
            return Err(IpcError::Unreachable { process, why });
        }
        let device = device_of(driver, &key.device)?;
        let mut state = self.lock();
        if let Some(place) = state.entries.iter().position(|entry| entry.is(key, device)) {
            let entry = state.entries.remove(place);
            let mapping = entry.mapping.clone();
            state.entries.push(entry);
            return Ok(mapping);
        }
        state.drop_stale(key);
        if let Some(probe) = &key.probe {
            state.test(driver, probe, device, settings)?;
        }
        let mapping = Arc::new(open_one(driver, key, device, settings)?);
        if settings.ipc_cache {
            let Key { owner, buffer, base, length, .. } = *key;
            let mapping = mapping.clone();
            state.entries.push(Entry { owner, buffer, base, length, device, mapping });
            state.trim(settings);
        }
        Ok(mapping)
    }

    /// How many mappings are kept.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes every mapping that nobody holds.
    pub fn clear(&self) {
        self.lock().entries.retain(Entry::is_in_use);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is(&self, key: &Key, device: i32) -> bool {
        (self.owner, self.buffer, self.base, self.length, self.device)
            == (key.owner, key.buffer, key.base, key.length, device)
    }
}

impl State {
    /// Closes what the owner of `key` had at its place before.
    fn drop_stale(&mut self, key: &Key) {
        let end = key.base.saturating_add(key.length);
        self.entries.retain(|entry| {
            let overlaps = entry.base < end && key.base < entry.base.saturating_add(entry.length);
            let stale = entry.owner == key.owner && entry.buffer != key.buffer && overlaps;
            !stale || entry.is_in_use()
        });
    }

    fn trim(&mut self, settings: &Settings) {
        let too_much = |entries: &[Entry]| {
            let bytes: u64 = entries.iter().map(|entry| entry.length).sum();
            settings.ipc_max_regions.is_exceeded_by(entries.len())
                || settings.ipc_max_size.is_exceeded_by(bytes as usize)
        };
        while too_much(&self.entries) {
            let Some(oldest) = self.entries.iter().position(|entry| !entry.is_in_use()) else {
                return; // All are in use: there may be more for a while.
            };
            self.entries.remove(oldest);
        }
    }

    /// Reads known bytes of the owner's once, before any way like it is believed.
    fn test(
        &mut self,
        driver: &'static Driver,
        probe: &Probe,
        device: i32,
        settings: &Settings,
    ) -> Result<(), IpcError> {
        let (owner, process) = (probe.key.owner, probe.key.owner.process);
        let same = |tested: &&Tested| {
            (tested.owner, tested.device, tested.probe) == (owner, device, probe.key.buffer)
        };
        let works = match self.tested.iter().find(same) {
            Some(tested) => tested.works,
            None => {
                let works = read_probe(driver, probe, device, settings)?;
                self.tested.push(Tested { owner, device, probe: probe.key.buffer, works });
                if !works {
                    crate::log::warn!(
                        "cuda_ipc is not used with process {process}: wrong bytes were read"
                    );
                }
                works
            }
        };
        if works { Ok(()) } else { Err(IpcError::WrongBytes { process }) }
    }
}

fn read_probe(
    driver: &'static Driver,
    probe: &Probe,
    device: i32,
    settings: &Settings,
) -> Result<bool, IpcError> {
    let mapping = open_one(driver, &probe.key, device, settings)?;
    let _entered = driver.enter(mapping.context)?;
    let mut bytes = [0_u8; 32];
    if mapping.len() < bytes.len() {
        return Ok(false);
    }
    let to = bytes.as_mut_ptr() as u64;
    // SAFETY: the place is as long as is said, and so is the mapping.
    unsafe { driver.calls.copy(to, mapping.opened.address(), bytes.len()) }?;
    Ok(bytes == probe.bytes)
}

fn open_one(
    driver: &'static Driver,
    key: &Key,
    device: i32,
    settings: &Settings,
) -> Result<Mapping, IpcError> {
    let context = driver.primary(device)?;
    let _entered = driver.enter(context)?;
    let near = Identity::own().is_neighbour(&key.owner);
    let descriptors = near.then_some(settings.ipc_descriptors);
    let opened = import::open(import::Place { driver, device, descriptors }, key)?;
    let (base, length) = (key.base, key.length);
    Ok(Mapping { driver, context, opened, base, length })
}

/// The device with this identity, by its number here: processes may see different devices.
fn device_of(driver: &Driver, uuid: &[u8; 16]) -> Result<i32, IpcError> {
    let devices = 0..driver.devices as i32;
    let same = |device: &i32| driver.uuid(*device).is_ok_and(|own| own == *uuid);
    devices.into_iter().find(same).ok_or(IpcError::NoSuchDevice)
}
