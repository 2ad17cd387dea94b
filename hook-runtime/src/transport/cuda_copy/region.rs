//! Memory that copies are made from and to.

use super::Copier;
use crate::cuda::driver::calls::Context;
use crate::cuda::driver::types::attribute;
use crate::memtype::{Kind, types};
use crate::transport::CopyError;

/// A range of memory of one kind. It says where the memory is and keeps nothing alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub(super) address: usize,
    pub(super) length: usize,
    pub(super) kind: Kind,
    pub(super) device: Option<u16>,
    /// The context that copies are made in; none for host memory.
    pub(super) context: Option<Context>,
}

impl Region {
    /// What kind of memory it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The device that it lies on, if it is one device's.
    pub fn device(&self) -> Option<u16> {
        self.device
    }

    /// Its first address.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What a program in C is given, and gives back.
    pub(crate) fn parts(&self) -> (usize, usize, Kind, Option<u16>, Option<Context>) {
        (self.address, self.length, self.kind, self.device, self.context)
    }

    pub(crate) fn from_parts(
        (address, length, kind, device, context): (
            usize,
            usize,
            Kind,
            Option<u16>,
            Option<Context>,
        ),
    ) -> Self {
        Self { address, length, kind, device, context }
    }

    /// The address of `size` bytes at `offset`.
    pub(super) fn at(&self, offset: usize, size: usize) -> Result<u64, CopyError> {
        match offset.checked_add(size) {
            Some(end) if end <= self.length => Ok((self.address + offset) as u64),
            _ => Err(CopyError::OutOfRange { offset, size, length: self.length }),
        }
    }
}

impl Copier {
    /// Finds out what `length` bytes at `address` are.
    pub fn region(&mut self, address: usize, length: usize) -> Result<Region, CopyError> {
        let memory = types()
            .identify(self.driver, address, length)
            .ok_or(CopyError::UnknownMemory { address, length })?;
        let context = match memory.kind {
            Kind::Host | Kind::Pinned => None,
            Kind::Device | Kind::Managed => Some(self.context_of(address, memory.device)?),
        };
        Ok(Region { address, length, kind: memory.kind, device: memory.device, context })
    }

    /// The context that the memory was allocated in; the device's primary one if it belongs
    /// to none, as memory of pools and mapped memory do.
    fn context_of(&mut self, address: usize, device: Option<u16>) -> Result<Context, CopyError> {
        let mut context: Context = 0;
        let place = std::ptr::from_mut(&mut context).cast();
        let ask = attribute::CONTEXT;
        // SAFETY: the attribute is a pointer, and the place has room for one.
        let said = unsafe { self.driver.calls.pointer_attribute(place, ask, address as u64) };
        if said.is_ok() && context != 0 {
            return Ok(context);
        }
        self.primary(device.map_or(0, i32::from))
    }

    /// The primary context of `device`, kept alive for as long as this copier lives.
    fn primary(&mut self, device: i32) -> Result<Context, CopyError> {
        if let Some(&(_, context)) = self.retained.iter().find(|retained| retained.0 == device) {
            return Ok(context);
        }
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { self.driver.calls.primary_retain(&raw mut context, device) }?;
        self.retained.push((device, context));
        Ok(context)
    }
}
