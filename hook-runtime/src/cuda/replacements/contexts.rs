//! The end of contexts, with which all their memory ends.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::CStr;

use super::{call, destroy, guarded, tell};
use crate::cuda::driver;
use crate::cuda::sys::{CUcontext, CUdevice, CUresult, SUCCESS};
use crate::event::EventKind::Freed;
use crate::event::sizes::{Owner, SIZES};
use crate::hook::original::Original;
use crate::hook::reentry;

type Destroy = unsafe extern "C" fn(CUcontext) -> CUresult;
type OfDevice = unsafe extern "C" fn(CUdevice) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_CTX_DESTROY: Original<Destroy> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_CTX_DESTROY_V2: Original<Destroy> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_DEVICE_PRIMARY_CTX_RESET: Original<OfDevice> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_DEVICE_PRIMARY_CTX_RESET_V2: Original<OfDevice> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_DEVICE_PRIMARY_CTX_RELEASE: Original<OfDevice> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_DEVICE_PRIMARY_CTX_RELEASE_V2: Original<OfDevice> =
    unsafe { Original::new() };

pub(in crate::cuda) unsafe extern "C" fn cuCtxDestroy<const COPY: usize>(
    context: CUcontext,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_CTX_DESTROY, COPY, |f| unsafe { f(context) });
    destroy(c"cuCtxDestroy", || Some(Owner::Context(context as usize)), original)
}

pub(in crate::cuda) unsafe extern "C" fn cuCtxDestroy_v2<const COPY: usize>(
    context: CUcontext,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_CTX_DESTROY_V2, COPY, |f| unsafe { f(context) });
    destroy(c"cuCtxDestroy_v2", || Some(Owner::Context(context as usize)), original)
}

pub(in crate::cuda) unsafe extern "C" fn cuDevicePrimaryCtxReset<const COPY: usize>(
    device: CUdevice,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_DEVICE_PRIMARY_CTX_RESET, COPY, |f| unsafe { f(device) });
    destroy(c"cuDevicePrimaryCtxReset", || primary(device), original)
}

pub(in crate::cuda) unsafe extern "C" fn cuDevicePrimaryCtxReset_v2<const COPY: usize>(
    device: CUdevice,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_DEVICE_PRIMARY_CTX_RESET_V2, COPY, |f| unsafe { f(device) });
    destroy(c"cuDevicePrimaryCtxReset_v2", || primary(device), original)
}

pub(in crate::cuda) unsafe extern "C" fn cuDevicePrimaryCtxRelease<const COPY: usize>(
    device: CUdevice,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_DEVICE_PRIMARY_CTX_RELEASE, COPY, |f| unsafe { f(device) });
    let_go(c"cuDevicePrimaryCtxRelease", device, original)
}

pub(in crate::cuda) unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2<const COPY: usize>(
    device: CUdevice,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_DEVICE_PRIMARY_CTX_RELEASE_V2, COPY, |f| unsafe { f(device) });
    let_go(c"cuDevicePrimaryCtxRelease_v2", device, original)
}

fn primary(device: CUdevice) -> Option<Owner> {
    driver::primary_context(device).map(Owner::Context)
}

/// Whether this was the last hold on the context shows afterwards only. So this is the
/// one place where releases are reported when they have happened.
fn let_go(
    symbol: &'static CStr,
    device: CUdevice,
    original: impl FnOnce() -> CUresult,
) -> CUresult {
    let entered = reentry::enter();
    if !entered.is_outermost() {
        return original();
    }
    let owner = guarded(|| primary(device)).flatten();
    let status = original();
    if status == SUCCESS && driver::primary_context_exists(device) == Some(false) {
        guarded(|| {
            let gone = owner.map(|owner| SIZES.remove_owned(owner)).unwrap_or_default();
            for (address, allocation) in gone {
                tell(&entered, Freed, symbol, address, allocation);
            }
        });
    }
    status
}
