//! UCX's libraries as they are loaded, and what is used of them.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use super::layout::{Config, Link, MemTypeEvent};
use crate::event::MemoryClass;
use crate::reloc::image::Image;
use crate::sys::loader::{self, Resident};

/// What is used of libucm.
#[derive(Debug)]
pub(super) struct Ucm {
    /// The head of the list of installers.
    pub installers: *mut Link,
    /// The options.
    pub options: *const Config,
    enter: unsafe extern "C" fn(),
    leave: unsafe extern "C" fn(),
    dispatch: unsafe extern "C" fn(c_int, *mut MemTypeEvent),
}

// SAFETY: addresses in a library that stays loaded; what may be done with them is up to
// whoever uses them.
unsafe impl Send for Ucm {}
// SAFETY: as above.
unsafe impl Sync for Ucm {}

static UCM: OnceLock<Ucm> = OnceLock::new();
static TYPES: OnceLock<MemoryTypes> = OnceLock::new();

impl Ucm {
    /// The loaded libucm: the one that the directory of this module belongs to, or else any.
    pub(super) fn find() -> Option<&'static Self> {
        if let Some(found) = UCM.get() {
            return Some(found);
        }
        // UCX's modules lie in a directory below that of its libraries.
        let here = loader::path_of(Self::find as fn() -> Option<&'static Self> as usize);
        let home = here.and_then(|path| parent(parent(path.to_bytes())?).map(<[u8]>::to_vec));
        let library = resident(home.as_deref(), c"libucm.so.0")?;
        let found = Self::of(&library)?;
        Some(UCM.get_or_init(|| found))
    }

    fn of(library: &Resident) -> Option<Self> {
        let [enter, leave, dispatch] =
            [c"ucm_event_enter", c"ucm_event_leave", c"ucm_event_dispatch"]
                .map(|symbol| library.symbol(symbol));
        let (enter, leave, dispatch) = (enter?, leave?, dispatch?);
        Some(Self {
            installers: library.symbol(c"ucm_event_installer_list")? as *mut Link,
            options: library.symbol(c"ucm_global_opts")? as *const Config,
            // SAFETY: libucm's function of this name, which has this type.
            enter: unsafe { std::mem::transmute::<usize, unsafe extern "C" fn()>(enter) },
            // SAFETY: as above.
            leave: unsafe { std::mem::transmute::<usize, unsafe extern "C" fn()>(leave) },
            // SAFETY: as above.
            dispatch: unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn(c_int, *mut MemTypeEvent)>(
                    dispatch,
                )
            },
        })
    }

    /// Tells UCX's handlers.
    ///
    /// # Safety
    ///
    /// `event` is valid and of the kind that the bit says.
    pub(super) unsafe fn dispatch(&self, kind: c_int, event: *mut MemTypeEvent) {
        // SAFETY: no requirement; it is left again below.
        unsafe { (self.enter)() };
        // SAFETY: by this function's contract, inside the lock that it asks for.
        unsafe { (self.dispatch)(kind, event) };
        // SAFETY: it was entered above.
        unsafe { (self.leave)() };
    }
}

/// The numbers of the memory types, which are not the same in every release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryTypes {
    host: c_int,
    device: c_int,
    managed: c_int,
    /// Nobody knows yet.
    pub unknown: c_int,
}

impl MemoryTypes {
    /// What the list of names in libucs says, of the UCX that [`Ucm`] is.
    pub(super) fn find() -> Option<Self> {
        if let Some(found) = TYPES.get() {
            return Some(*found);
        }
        let libucm = loader::path_of(Ucm::find()?.installers as usize);
        let home = libucm.and_then(|path| parent(path.to_bytes()).map(<[u8]>::to_vec));
        let library = resident(home.as_deref(), c"libucs.so.0")?;
        let (names, bytes) = library.variable(c"ucs_memory_type_names")?;
        let count = bytes / size_of::<*const c_char>();
        // SAFETY: the array is as long as libucs itself says, and never changes.
        let names = unsafe { std::slice::from_raw_parts(names as *const *const c_char, count) };
        let names: Vec<_> = names.iter().take_while(|name| !name.is_null()).collect();
        // SAFETY: each is the address of a text in libucs.
        let names: Vec<_> = names.iter().map(|&&name| unsafe { CStr::from_ptr(name) }).collect();
        let found = Self::of(&names)?;
        Some(*TYPES.get_or_init(|| found))
    }

    fn of(names: &[&CStr]) -> Option<Self> {
        let number = |wanted: &CStr| {
            let place = names.iter().position(|&name| name == wanted)?;
            c_int::try_from(place).ok()
        };
        Some(Self {
            host: number(c"host")?,
            device: number(c"cuda")?,
            managed: number(c"cuda-managed")?,
            unknown: number(c"unknown")?,
        })
    }

    /// The number for one of our classes.
    pub(super) fn of_class(&self, class: MemoryClass) -> c_int {
        match class {
            MemoryClass::Unknown => self.unknown,
            MemoryClass::Device => self.device,
            MemoryClass::Managed => self.managed,
            MemoryClass::Host => self.host,
        }
    }
}

/// The library `name` if it is loaded: that in the directory `home`, or else any.
fn resident(home: Option<&[u8]>, name: &CStr) -> Option<Resident> {
    // Where it is not loaded, the loader would look for it in every directory first.
    if !is_loaded(name) {
        return None;
    }
    let at_home = home.and_then(|home| {
        let path = [home, b"/", name.to_bytes()].concat();
        Resident::find(&CString::new(path).ok()?)
    });
    let found = at_home.or_else(|| Resident::find(name));
    loader::forget_error();
    found
}

/// Whether some object has this name, be it its file's or the one that it gives itself.
fn is_loaded(name: &CStr) -> bool {
    loader::with_objects(|objects, _| {
        objects.iter().any(|object| {
            let file = object.name().to_bytes().rsplit(|&byte| byte == b'/').next();
            file == Some(name.to_bytes())
                || Image::new(*object).and_then(|image| image.soname()) == Some(name)
        })
    })
}

/// The directory that holds `path`.
fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|&byte| byte == b'/').map(|slash| &path[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_types_are_known_by_their_names() {
        let old = [c"host", c"cuda", c"cuda-managed", c"rocm", c"unknown"];
        let types = MemoryTypes::of(&old).unwrap();
        assert_eq!(types.unknown, 4);
        let classes =
            [MemoryClass::Host, MemoryClass::Device, MemoryClass::Managed, MemoryClass::Unknown];
        assert_eq!(classes.map(|class| types.of_class(class)), [0, 1, 2, 4]);
        assert_eq!(MemoryTypes::of(&old[..4]), None, "it must not be guessed");
    }

    #[test]
    fn modules_lie_below_the_libraries() {
        assert_eq!(parent(b"/lib/ucx/libucm_cuda.so.0"), Some(&b"/lib/ucx"[..]));
        assert_eq!(parent(b"libucm_cuda.so.0"), None);
    }
}
