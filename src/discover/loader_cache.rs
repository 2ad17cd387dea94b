//! The loader's cache, `/etc/ld.so.cache`: where the driver's libraries are on
//! a machine that runs them.
//!
//! Read, never trusted: each path is looked at before it is used. The form is
//! that of glibc since 2.2, alone or behind the older one.

/// Begins the table.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// The bytes before the first entry.
const HEADER: usize = 48;

/// The bytes of one entry.
const ENTRY: usize = 24;

/// The paths of a library, in the order of the cache.
pub fn paths(cache: &[u8], soname: &str) -> Vec<String> {
    let begin = cache.windows(MAGIC.len()).position(|bytes| bytes == MAGIC);
    let Some(table) = begin.and_then(|begin| cache.get(begin..)) else { return Vec::new() };
    let count = number(table, MAGIC.len()).unwrap_or_default();
    let entries = (0..count).map_while(|index| {
        let at = HEADER + index * ENTRY;
        Some((text(table, number(table, at + 4)?)?, text(table, number(table, at + 8)?)?))
    });
    entries.filter(|(key, _)| *key == soname).map(|(_, path)| path.to_owned()).collect()
}

fn number(table: &[u8], at: usize) -> Option<usize> {
    let bytes = table.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_ne_bytes(bytes)).ok()
}

fn text(table: &[u8], at: usize) -> Option<&str> {
    let rest = table.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache as ldconfig writes it.
    fn cache(before: &[u8], entries: &[(&str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = MAGIC.to_vec();
        let offset = HEADER + entries.len() * ENTRY;
        table.extend(u32::try_from(entries.len()).unwrap().to_ne_bytes());
        table.resize(HEADER, 0);
        for (key, value) in entries {
            let mut add = |text: &str| {
                let at = u32::try_from(offset + strings.len()).unwrap();
                strings.extend(text.as_bytes());
                strings.push(0);
                at.to_ne_bytes()
            };
            table.extend(0x0303u32.to_ne_bytes());
            table.extend(add(key));
            table.extend(add(value));
            table.extend([0; 12]);
        }
        [before, &table, &strings].concat()
    }

    #[test]
    fn libraries_are_found_by_their_names() {
        let entries = [
            ("libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            ("libc.so.6", "/lib/libc.so.6"),
            ("libcuda.so.1", "/lib/i386-linux-gnu/libcuda.so.1"),
        ];
        for before in [&b""[..], b"ld.so-1.7.0\0and the older form"] {
            let cache = cache(before, &entries);
            assert_eq!(paths(&cache, "libcuda.so.1"), [entries[0].1, entries[2].1]);
            assert!(paths(&cache, "libcuda.so").is_empty());
        }
    }

    #[test]
    fn a_broken_cache_holds_nothing() {
        let whole = cache(b"", &[("libcuda.so.1", "/x/libcuda.so.1")]);
        for length in 0..whole.len() {
            assert!(paths(&whole[..length], "libcuda.so.1").is_empty(), "{length}");
        }
        let mut endless = whole;
        endless[MAGIC.len()..MAGIC.len() + 4].fill(0xff);
        assert_eq!(paths(&endless, "libcuda.so.1"), ["/x/libcuda.so.1"]);
    }
}
