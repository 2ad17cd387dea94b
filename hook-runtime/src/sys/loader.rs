//! What the dynamic loader has loaded, and where its symbols are.
//!
//! The loader has two locks. One guards its list of objects and is held while the
//! list is walked: nothing can be unmapped meanwhile, so an object's memory may be
//! read and its slots written, but no other loader function may be called. The
//! other is held by `dlopen`, `dlclose` and `dlsym`, constructors included. This
//! crate therefore does all its reading and writing inside [`with_objects`], all
//! its asking outside, and holds no lock of its own when it calls the loader.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kinds of program headers that matter here.
pub mod segment {
    /// Mapped memory.
    pub const LOAD: u32 = libc::PT_LOAD;
    /// The dynamic section.
    pub const DYNAMIC: u32 = libc::PT_DYNAMIC;
    /// `p_flags`: executable.
    pub const EXECUTABLE: u32 = libc::PF_X;
    /// `p_flags`: readable.
    pub const READABLE: u32 = libc::PF_R;
}

/// One program header: `p_type`, `p_flags`, `p_vaddr`, `p_memsz` and the rest.
pub type ProgramHeader = libc::Elf64_Phdr;

/// One loaded object, as the loader lists it.
///
/// Invariant: as long as this value lives, every `PT_LOAD` segment that the headers
/// name as readable is mapped at `base` plus its address.
#[derive(Debug, Clone, Copy)]
pub struct LoadedObject<'list> {
    base: usize,
    name: &'list CStr,
    headers: &'list [ProgramHeader],
}

impl<'list> LoadedObject<'list> {
    /// # Safety
    ///
    /// The invariant of the type holds for these parts.
    pub unsafe fn from_parts(
        base: usize,
        name: &'list CStr,
        headers: &'list [ProgramHeader],
    ) -> Self {
        Self { base, name, headers }
    }

    /// The difference between the addresses in the file and those in memory.
    pub fn base(&self) -> usize {
        self.base
    }

    /// The path that it was loaded from; empty for the program itself.
    pub fn name(&self) -> &'list CStr {
        self.name
    }

    /// Its program headers.
    pub fn headers(&self) -> &'list [ProgramHeader] {
        self.headers
    }
}

/// How many objects the loader has added and removed since the program started.
/// While both stay the same, the list of objects is the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generation {
    /// Objects added.
    pub added: u64,
    /// Objects removed.
    pub removed: u64,
}

/// Calls `use_objects` with all objects that are loaded into the program's
/// namespace, while none can be unloaded. It must not call the loader.
///
/// Objects in other namespaces (`dlmopen`) are not in the list.
pub fn with_objects<R, F>(use_objects: F) -> R
where
    F: FnOnce(&[LoadedObject<'_>], Generation) -> R,
{
    let _no_fork_meanwhile = super::process::Walk::begin();
    let mut state = Walk { use_objects: Some(use_objects), result: None };
    // SAFETY: the callback is given the state that it expects, which outlives the
    // call.
    unsafe { libc::dl_iterate_phdr(Some(outer::<F, R>), (&raw mut state).cast()) };
    match state.result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        // No object at all, not even the program: a static executable without headers.
        None => match state.use_objects {
            Some(use_objects) => use_objects(&[], Generation::default()),
            None => unreachable!("the closure is taken only where the result is set"),
        },
    }
}

struct Walk<F, R> {
    use_objects: Option<F>,
    result: Option<Result<R, Box<dyn Any + Send>>>,
}

/// Runs for the first object only, and walks the whole list inside: the lock on
/// the list is recursive, so that it stays held from here until `use_objects` ends.
///
/// # Safety
///
/// Called by the loader; `data` is the [`Walk`] of [`with_objects`].
unsafe extern "C" fn outer<F, R>(
    _: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int
where
    F: FnOnce(&[LoadedObject<'_>], Generation) -> R,
{
    // SAFETY: by this function's contract; nobody else uses the state meanwhile.
    let walk = unsafe { &mut *data.cast::<Walk<F, R>>() };
    let mut list = List { objects: Vec::with_capacity(64), generation: Generation::default() };
    // SAFETY: the callback is given the list that it expects.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut list).cast()) };
    if let Some(use_objects) = walk.use_objects.take() {
        let run = AssertUnwindSafe(|| use_objects(&list.objects, list.generation));
        walk.result = Some(catch_unwind(run));
    }
    1
}

struct List<'list> {
    objects: Vec<LoadedObject<'list>>,
    generation: Generation,
}

/// # Safety
///
/// Called by the loader; `data` is the [`List`] of [`outer`].
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    if size < size_of::<libc::dl_phdr_info>() || info.is_null() {
        return 1;
    }
    // SAFETY: the loader passes a valid structure of at least the size checked.
    let info = unsafe { &*info };
    // SAFETY: by this function's contract.
    let list = unsafe { &mut *data.cast::<List<'_>>() };
    list.generation = Generation { added: info.dlpi_adds, removed: info.dlpi_subs };
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's names end in NUL and live as long as the object.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    let headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader passes this many headers of a mapped object.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
    };
    // SAFETY: the loader lists an object only while its segments are mapped, and
    // holds its lock on the list until the walk has ended.
    let object = unsafe { LoadedObject::from_parts(info.dlpi_addr as usize, name, headers) };
    list.objects.push(object);
    0
}

/// Where a symbol is looked for.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'name> {
    /// The program, what it was linked to, and what was opened with `RTLD_GLOBAL`.
    Global,
    /// The object that was loaded from this path, and what it was linked to.
    Object(&'name CStr),
}

/// The address of `symbol`, in the version asked for, if `scope` defines it.
///
/// This takes the loader's lock: never call it inside [`with_objects`].
pub fn lookup(scope: Scope<'_>, symbol: &CStr, version: Option<&CStr>) -> Option<usize> {
    let found = match scope {
        Scope::Global => find(libc::RTLD_DEFAULT, symbol, version),
        Scope::Object(name) => {
            // SAFETY: opening what is loaded already runs no constructor.
            let handle =
                unsafe { libc::dlopen(object_name(name), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            if handle.is_null() {
                return None;
            }
            let found = find(handle, symbol, version);
            // SAFETY: the handle was opened above and is given back once.
            unsafe { libc::dlclose(handle) };
            found
        }
    };
    (found != 0).then_some(found)
}

/// The loader's name for an object: the program has none.
fn object_name(name: &CStr) -> *const std::ffi::c_char {
    if name.is_empty() { std::ptr::null() } else { name.as_ptr() }
}

fn find(handle: *mut c_void, symbol: &CStr, version: Option<&CStr>) -> usize {
    let found = match version {
        // SAFETY: the handle is valid, both strings end in NUL.
        Some(version) => unsafe { libc::dlvsym(handle, symbol.as_ptr(), version.as_ptr()) },
        // SAFETY: the handle is valid, the string ends in NUL.
        None => unsafe { libc::dlsym(handle, symbol.as_ptr()) },
    };
    found as usize
}

/// The directories that the loader would search for a library on behalf of the code at
/// `address`, in its order. The loader's cache, which comes before the system's own
/// directories at the end, has no directory and is not in the list.
///
/// This takes the loader's lock: never call it inside [`with_objects`].
pub fn search_directories(address: usize) -> Vec<CString> {
    let Some(object) = handle_of(address) else { return Vec::new() };
    let mut size = SearchInfo { size: 0, count: 0 };
    // SAFETY: the handle is that of a loaded object, the structure has the documented layout.
    if unsafe { dlinfo(object, SEARCH_SIZE, (&raw mut size).cast()) } != 0 {
        return Vec::new();
    }
    // Room for the header, the entries and the strings, aligned as they need it.
    let mut room = vec![0_usize; size.size.div_ceil(size_of::<usize>()) + 2];
    let info = room.as_mut_ptr().cast::<SearchInfo>();
    // SAFETY: the room is larger than the header.
    unsafe { info.write(size) };
    // SAFETY: the room is as large as the loader asked for, and says so in its header.
    if unsafe { dlinfo(object, SEARCH_LIST, info.cast()) } != 0 {
        return Vec::new();
    }
    // SAFETY: the room goes on behind the header.
    let first = unsafe { info.add(1) }.cast::<SearchEntry>();
    // SAFETY: the loader has put this many entries there.
    let entries = unsafe { std::slice::from_raw_parts(first, size.count as usize) };
    // SAFETY: each name ends in NUL and lies in the room, which is still there.
    entries.iter().map(|entry| unsafe { CStr::from_ptr(entry.name) }.to_owned()).collect()
}

/// `Dl_serinfo`, without its entries.
#[derive(Clone, Copy)]
#[repr(C)]
struct SearchInfo {
    size: usize,
    count: u32,
}

/// `Dl_serpath`.
#[repr(C)]
struct SearchEntry {
    name: *const c_char,
    flags: u32,
}

const SEARCH_LIST: c_int = 4;
const SEARCH_SIZE: c_int = 5;
const LINK_MAP: c_int = 2;
const SYMBOL_ENTRY: c_int = 1;

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, result: *mut c_void) -> c_int;
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// The loader's own record of the object that holds `address`, which serves as a handle.
fn handle_of(address: usize) -> Option<*mut c_void> {
    // SAFETY: all fields may be zero.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut record = std::ptr::null_mut();
    // SAFETY: any address may be asked for; both results are places of ours.
    let known =
        unsafe { dladdr1(address as *const c_void, &raw mut info, &raw mut record, LINK_MAP) };
    (known != 0 && !record.is_null()).then_some(record)
}

/// The path of the object that holds `address`, as the loader knows it.
pub fn path_of(address: usize) -> Option<CString> {
    // SAFETY: all fields may be zero.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the structure is only written.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    // SAFETY: the loader's names end in NUL, and that of an object which holds code in use stays.
    (known && !info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) }.into())
}

/// A library that somebody else has loaded, perhaps for himself alone, and that stays
/// loaded from now on.
#[derive(Debug)]
pub struct Resident(*mut c_void);

impl Resident {
    /// The library with this path or `DT_SONAME`, if it is loaded.
    ///
    /// This takes the loader's lock: never call it inside [`with_objects`].
    pub fn find(name: &CStr) -> Option<Self> {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: opening what is loaded already runs no constructor. The handle is kept.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The address of a symbol.
    pub fn symbol(&self, symbol: &CStr) -> Option<usize> {
        let found = find(self.0, symbol, None);
        (found != 0).then_some(found)
    }

    /// The address of a variable, and its size in bytes.
    pub fn variable(&self, symbol: &CStr) -> Option<(usize, usize)> {
        let address = self.symbol(symbol)?;
        // SAFETY: all fields may be zero.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let mut entry = std::ptr::null_mut();
        let (at, info) = (address as *const c_void, &raw mut info);
        // SAFETY: any address may be asked for; both results are places of ours.
        let known = unsafe { dladdr1(at, info, &raw mut entry, SYMBOL_ENTRY) };
        // SAFETY: if it is there, it is an entry of the symbol table of a loaded object.
        let entry = unsafe { entry.cast::<libc::Elf64_Sym>().as_ref() }.filter(|_| known != 0)?;
        Some((address, usize::try_from(entry.st_size).ok()?))
    }
}

/// Forgets the message that a failed [`lookup`] left for the thread's next
/// `dlerror`, so that the program does not take it for its own.
pub fn forget_error() {
    // SAFETY: no requirement; the message belongs to the loader.
    unsafe { libc::dlerror() };
}

/// Keeps the object that holds `address` loaded for ever: code that hooks lead to
/// must not vanish under them.
pub fn pin(address: usize) {
    // SAFETY: all fields may be zero.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the structure is only written.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    if known && !info.dli_fname.is_null() {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name belongs to the loaded object; the handle is kept on purpose.
        unsafe { libc::dlopen(info.dli_fname, flags) };
        // The program itself cannot be opened by its name, and need not be.
        forget_error();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_libraries_are_listed() {
        let here = the_program_and_its_libraries_are_listed as fn() as usize;
        let (count, holding) = with_objects(|objects, generation| {
            assert!(generation.added >= 1);
            let holds = |object: &&LoadedObject<'_>| {
                object.headers().iter().any(|header| {
                    let start = object.base() + header.p_vaddr as usize;
                    header.p_type == segment::LOAD
                        && (start..start + header.p_memsz as usize).contains(&here)
                })
            };
            (objects.len(), objects.iter().filter(holds).count())
        });
        assert!(count >= 2, "the program and its C library");
        assert_eq!(holding, 1);
    }

    #[test]
    fn symbols_are_found_by_version() {
        let plain = lookup(Scope::Global, c"malloc", None);
        assert!(plain.is_some());
        assert_eq!(lookup(Scope::Global, c"malloc", Some(c"NO_SUCH_VERSION_1")), None);
        assert_eq!(lookup(Scope::Global, c"hook_runtime_no_such_symbol", None), None);
        assert_eq!(lookup(Scope::Object(c"/no/such/library"), c"malloc", None), None);
        forget_error();
    }

    #[test]
    fn a_panic_inside_the_walk_comes_out_of_it() {
        let caught = catch_unwind(|| with_objects(|_, _| panic!("on purpose")));
        assert!(caught.is_err());
        assert!(with_objects(|objects, _| !objects.is_empty()), "the walk still works");
    }
}
