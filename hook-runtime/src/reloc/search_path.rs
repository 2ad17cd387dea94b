//! Finding a library as the loader would for a given caller.
//!
//! Only where the caller matters is anything done at all: a name without a slash, asked for
//! by an object that has directories of its own to search; or a path with `$ORIGIN` in it. In
//! all other cases the loader is left to search for itself, and its own error messages come
//! out unchanged.
//!
//! Not imitated: the subdirectories for newer processors (`glibc-hwcaps`) of the caller's own
//! directories; the plain library beside them is taken.

use std::ffi::{CStr, CString};

use super::image::{Image, tag};
use crate::sys::{files, loader};

/// What to give to the real `dlopen` for `name`, if not the name itself.
pub(super) fn find(name: &CStr, caller: usize) -> Option<CString> {
    let bytes = name.to_bytes();
    if bytes.is_empty() {
        return None;
    }
    if bytes.contains(&b'/') {
        let contains = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        return (contains(b"$ORIGIN") || contains(b"${ORIGIN}"))
            .then(|| expand_origin(bytes, &directory_of(caller)?))?;
    }
    if !caller_matters(name, caller) {
        return None;
    }
    let theirs = loader::search_directories(caller);
    let ours = loader::search_directories(find as fn(&CStr, usize) -> Option<CString> as usize);
    own_directories(&theirs, &ours)
        .iter()
        .filter_map(|directory| join(directory.to_bytes(), bytes))
        .find(|path| files::is_loadable(path))
}

/// Whether the loader would search differently for this caller than for us. It would not
/// if a loaded library answers to the name already: that one is taken first.
fn caller_matters(name: &CStr, caller: usize) -> bool {
    loader::with_objects(|objects, _| {
        let images: Vec<_> = objects.iter().filter_map(|object| Image::new(*object)).collect();
        let is_loaded = images.iter().any(|image| image.soname() == Some(name));
        // A caller without RUNPATH inherits the RPATH of whoever loaded it, and so on.
        let has_path = |image: &Image<'_>| {
            let own = image.contains(caller) && image.entry(tag::RUNPATH).is_some();
            own || image.entry(tag::RPATH).is_some()
        };
        !is_loaded && images.iter().any(has_path)
    })
}

/// The directories that are searched for the caller before those that both have at the end.
fn own_directories<'list>(theirs: &'list [CString], ours: &[CString]) -> &'list [CString] {
    let pairs = theirs.iter().rev().zip(ours.iter().rev());
    let common = pairs.take_while(|(theirs, ours)| theirs == ours).count();
    &theirs[..theirs.len() - common]
}

fn join(directory: &[u8], name: &[u8]) -> Option<CString> {
    CString::new([directory, b"/", name].concat()).ok()
}

/// `path` with `$ORIGIN` replaced by `origin`.
fn expand_origin(path: &[u8], origin: &[u8]) -> Option<CString> {
    let mut expanded = Vec::with_capacity(path.len() + origin.len());
    let mut rest = path;
    while let Some(&first) = rest.first() {
        let word = [b"${ORIGIN}".as_slice(), b"$ORIGIN"]
            .into_iter()
            .find(|word| rest.starts_with(word) && is_whole(word, rest));
        match word {
            Some(word) => {
                expanded.extend_from_slice(origin);
                rest = &rest[word.len()..];
            }
            None => {
                expanded.push(first);
                rest = &rest[1..];
            }
        }
    }
    CString::new(expanded).ok()
}

/// Whether the word at the front of `rest` ends there: `$ORIGINAL` is another name.
fn is_whole(word: &[u8], rest: &[u8]) -> bool {
    let next = rest.get(word.len());
    word.ends_with(b"}") || next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
}

/// The directory of the object that holds `caller`.
fn directory_of(caller: usize) -> Option<Vec<u8>> {
    let path = loader::with_objects(|objects, _| {
        let mut images = objects.iter().filter_map(|object| Image::new(*object));
        images.find(|image| image.contains(caller)).map(|image| image.path().to_owned())
    })?;
    match path.to_bytes() {
        // The program has no path in the loader's list.
        [] => files::program_directory(),
        path => path.iter().rposition(|&byte| byte == b'/').map(|slash| path[..slash].to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<CString> {
        names.iter().map(|name| CString::new(*name).unwrap()).collect()
    }

    #[test]
    fn only_what_the_caller_has_on_its_own_is_searched() {
        let ours = list(&["/env", "/lib", "/usr/lib"]);
        let runpath = list(&["/env", "/own", "/lib", "/usr/lib"]);
        assert_eq!(own_directories(&runpath, &ours), list(&["/env", "/own"]));
        let rpath = list(&["/own", "/env", "/lib", "/usr/lib"]);
        assert_eq!(own_directories(&rpath, &ours), list(&["/own"]));
        assert_eq!(own_directories(&ours, &ours), list(&[]));
        assert_eq!(own_directories(&[], &ours), list(&[]));
    }

    #[test]
    fn origin_is_expanded_as_a_word() {
        let expand = |path: &str| expand_origin(path.as_bytes(), b"/opt/app").unwrap();
        assert_eq!(expand("$ORIGIN/lib.so"), c"/opt/app/lib.so".to_owned());
        assert_eq!(expand("${ORIGIN}/../lib.so"), c"/opt/app/../lib.so".to_owned());
        assert_eq!(expand("$ORIGINAL/$ORIGIN/x"), c"$ORIGINAL//opt/app/x".to_owned());
        assert_eq!(expand("/plain/path"), c"/plain/path".to_owned());
    }

    #[test]
    fn a_path_without_origin_is_left_to_the_loader() {
        assert_eq!(find(c"/usr/lib/libm.so.6", 0), None);
        assert_eq!(find(c"./libm.so.6", 0), None);
        assert_eq!(find(c"", 0), None);
        assert_eq!(find(c"libc.so.6", 0), None, "loaded already");
    }
}
