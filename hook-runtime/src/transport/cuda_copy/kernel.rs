//! Many small copies inside a device by one launch: a copy for each block of threads.
//!
//! The kernel is written in PTX, which the driver translates for the device it has, so that
//! no compiler of CUDA's is needed to build this. Where the driver refuses it, copies are
//! made one by one.

use std::ffi::c_void;

use crate::cuda::driver::calls::{Function, Module, Stream};
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;

/// How many copies one launch makes at most: what fits into its parameters.
pub(super) const COPIES: usize = 128;
const THREADS: u32 = 128;

/// One copy as the kernel reads it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Entry {
    to: u64,
    from: u64,
    size: u64,
}

pub(super) fn table(to: &[u64], from: &[u64], sizes: &[usize]) -> [Entry; COPIES] {
    let mut table = [Entry::default(); COPIES];
    for (entry, ((&to, &from), &size)) in table.iter_mut().zip(to.iter().zip(from).zip(sizes)) {
        *entry = Entry { to, from, size: size as u64 };
    }
    table
}

#[derive(Debug, Default)]
pub(super) struct Kernel {
    loaded: Option<(Module, Function)>,
    refused: bool,
}

impl Kernel {
    pub(super) fn unusable() -> Self {
        Self { loaded: None, refused: true }
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.refused
    }

    /// The kernel in the current context. Whatever the driver has against it counts as "not
    /// supported", since there is another way.
    pub(super) fn function(&mut self, driver: &Driver) -> Result<Function, Failure> {
        if let Some((_, function)) = self.loaded {
            return Ok(function);
        }
        let loaded = load(driver).map_err(|failure| {
            crate::log::debug!("small copies inside a device are made one by one: {failure}");
            let code = if failure.is_gone() { failure.code } else { Failure::MISSING };
            Failure { code, ..failure }
        })?;
        self.loaded = Some(loaded);
        Ok(loaded.1)
    }

    /// Gives the module back. The context is current.
    pub(super) fn unload(&mut self, driver: &Driver) {
        if let Some((module, _)) = self.loaded.take() {
            // SAFETY: it was loaded into this context, and is unloaded once.
            let _ = unsafe { driver.calls.module_unload(module) };
        }
    }
}

fn load(driver: &Driver) -> Result<(Module, Function), Failure> {
    let (mut module, mut function) = (0, 0);
    // SAFETY: the image is text that ends in NUL; the result is a place of ours.
    unsafe { driver.calls.module_load(&raw mut module, PTX.as_ptr().cast()) }?;
    let name = c"hook_runtime_copy";
    // SAFETY: the name ends in NUL; the result is a place of ours.
    let found = unsafe { driver.calls.module_function(&raw mut function, module, name.as_ptr()) };
    if let Err(failure) = found {
        // SAFETY: it was loaded above and is unloaded once.
        let _ = unsafe { driver.calls.module_unload(module) };
        return Err(failure);
    }
    Ok((module, function))
}

/// Launches the kernel for the first `count` entries of `table`.
///
/// # Safety
///
/// The context of `function` and `stream` is current; the memory in the table stays as it
/// is promised for copies.
pub(super) unsafe fn launch(
    driver: &Driver,
    function: Function,
    table: &[Entry; COPIES],
    count: usize,
    stream: Stream,
) -> Result<(), Failure> {
    let place: *const c_void = std::ptr::from_ref(table).cast();
    let mut parameters = [place.cast_mut()];
    let (blocks, none) = (count as u32, std::ptr::null_mut());
    let parameters = parameters.as_mut_ptr();
    // SAFETY: one parameter of the size that the kernel declares, which the driver copies
    // before it returns; the rest by this function's contract.
    unsafe {
        driver.calls.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, none)
    }
}

const _: () = assert!(size_of::<[Entry; COPIES]>() == 3072);

/// Each block takes its entry; its threads copy 16 bytes at a time if addresses allow it,
/// and the rest byte by byte.
const PTX: &std::ffi::CStr = c"
.version 6.0
.target sm_50
.address_size 64

.visible .entry hook_runtime_copy(.param .align 8 .b8 table[3072])
{
    .reg .pred %p<4>;
    .reg .b16 %byte;
    .reg .b32 %r<12>;
    .reg .b64 %entry, %to, %from, %size, %at, %step, %words, %whole, %t, %a, %b;

    mov.u32 %r0, %ctaid.x;
    mul.wide.u32 %t, %r0, 24;
    mov.u64 %entry, table;
    add.u64 %entry, %entry, %t;
    ld.param.u64 %to, [%entry];
    ld.param.u64 %from, [%entry+8];
    ld.param.u64 %size, [%entry+16];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %at, %r1;
    mov.u32 %r2, %ntid.x;
    cvt.u64.u32 %step, %r2;

    mov.u64 %whole, 0;
    or.b64 %t, %to, %from;
    and.b64 %t, %t, 15;
    setp.ne.u64 %p0, %t, 0;
    @%p0 bra BYTES;
    shr.u64 %words, %size, 4;
    shl.b64 %whole, %words, 4;
WIDE:
    setp.ge.u64 %p1, %at, %words;
    @%p1 bra WIDE_DONE;
    shl.b64 %t, %at, 4;
    add.u64 %a, %from, %t;
    add.u64 %b, %to, %t;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%a];
    st.global.v4.u32 [%b], {%r4, %r5, %r6, %r7};
    add.u64 %at, %at, %step;
    bra WIDE;
WIDE_DONE:
    cvt.u64.u32 %at, %r1;
BYTES:
    add.u64 %at, %at, %whole;
NEXT:
    setp.ge.u64 %p2, %at, %size;
    @%p2 bra END;
    add.u64 %a, %from, %at;
    add.u64 %b, %to, %at;
    ld.global.u8 %byte, [%a];
    st.global.u8 [%b], %byte;
    add.u64 %at, %at, %step;
    bra NEXT;
END:
    ret;
}
";
