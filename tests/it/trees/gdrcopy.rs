//! gdrcopy trees: an own minimal header, and a library to link with.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::fs;

use camino::Utf8Path;

use super::stubs;

const HEAD: &str = "#ifndef GDRAPI_STUB
#define GDRAPI_STUB
#include <stddef.h>
#include <stdint.h>
struct gdr;
typedef struct gdr *gdr_t;
typedef struct { unsigned long h; } gdr_mh_t;
int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t token, uint32_t space,
                   gdr_mh_t *handle);
";

/// Since 2.0.
const COPIES: &str =
    "int gdr_copy_to_mapping(gdr_mh_t h, void *map, const void *from, size_t size);
int gdr_copy_from_mapping(gdr_mh_t h, void *to, const void *map, size_t size);
";

/// Since 2.5.
const PIN_V2: &str = "int gdr_pin_buffer_v2(gdr_t g, unsigned long addr, size_t size, \
                      uint32_t flags, gdr_mh_t *handle);\n";

/// One tree.
struct Tree {
    name: &'static str,
    /// The declarations beside the oldest; none: no header.
    declarations: Option<&'static [&'static str]>,
    /// Where the library is, if it is there.
    library: Option<&'static str>,
}

const fn tree(
    name: &'static str,
    declarations: Option<&'static [&'static str]>,
    library: Option<&'static str>,
) -> Tree {
    Tree { name, declarations, library }
}

const TREES: &[Tree] = &[
    tree("good", Some(&[COPIES]), Some("lib")),
    tree("nodecl", Some(&[]), Some("lib")),
    tree("nohdr", None, Some("lib")),
    tree("nolib", Some(&[COPIES]), None),
    tree("lib64", Some(&[COPIES]), Some("lib64")),
    tree("v25", Some(&[COPIES, PIN_V2]), Some("lib64")),
    tree("sp ace", Some(&[COPIES]), Some("lib")),
];

/// Makes them all.
pub(super) fn make(root: &Utf8Path) {
    for Tree { name, declarations, library } in TREES {
        let (include, lib) = (root.join(name).join("include"), library.unwrap_or("lib"));
        fs::create_dir_all(&include).unwrap();
        fs::create_dir_all(root.join(name).join(lib)).unwrap();
        if let Some(more) = declarations {
            let text = format!("{HEAD}{}#endif\n", more.concat());
            fs::write(include.join("gdrapi.h"), text).unwrap();
        }
        if library.is_some() {
            let names = [
                "gdr_open",
                "gdr_pin_buffer",
                "gdr_pin_buffer_v2",
                "gdr_copy_to_mapping",
                "gdr_copy_from_mapping",
            ];
            let dir = root.join(name).join(lib);
            let names = names.map(str::to_owned).into();
            stubs::make(&dir.join("libgdrapi.so.2"), "libgdrapi.so.2", &names);
            std::os::unix::fs::symlink("libgdrapi.so.2", dir.join("libgdrapi.so")).unwrap();
        }
    }
}
