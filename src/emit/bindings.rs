//! Rust declarations of the C functions that hook-runtime hooks or calls, made
//! by bindgen from the headers that were found.
//!
//! What they hold, and from which headers, is hook-runtime's business: it has
//! a list. The settings are those with which its kept bindings are made, which
//! these take the place of. bindgen reads through libclang, which is opened at
//! run time: without it there is an error, and everything else works.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};
use camino::Utf8PathBuf;

use crate::error::{Code, Error};

/// What bindings are made of, in hook-runtime's words.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// A C text that includes the headers.
    pub headers: &'a str,
    /// One item a line: `type`, `function` or `value`, and a regular
    /// expression for its whole name. Empty lines and `#` mean nothing.
    pub allow: &'a str,
}

/// Makes the declarations from the headers in these directories; `defines` are
/// macros of the form `NAME=VALUE`.
///
/// # Errors
///
/// libclang cannot be loaded, or a header cannot be read by it.
pub fn generate(
    wanted: &Wanted<'_>,
    include_dirs: &[Utf8PathBuf],
    defines: &[String],
) -> Result<String, Error> {
    // bindgen itself would panic.
    clang_sys::load_manually().map_err(|error| no_libclang(&error))?;
    let builder = Builder::default()
        .header_contents("hook-runtime-headers.h", wanted.headers)
        .clang_args(include_dirs.iter().map(|dir| format!("-I{dir}")))
        .clang_args(defines.iter().map(|define| format!("-D{define}")))
        .ctypes_prefix("::std::ffi")
        .default_enum_style(EnumVariation::Consts)
        .disable_header_comment()
        .formatter(Formatter::None)
        .generate_comments(false)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .prepend_enum_name(false)
        .rust_edition(RustEdition::Edition2024);
    let builder = match RustTarget::stable(85, 0) {
        Ok(target) => builder.rust_target(target),
        Err(_) => builder,
    };
    let builder = allowed(builder, wanted.allow)?;
    // It reports by panicking in places; none of its state outlives the call.
    match catch_unwind(AssertUnwindSafe(|| builder.generate())) {
        Ok(Ok(bindings)) => Ok(bindings.to_string()),
        Ok(Err(error)) => Err(unreadable(include_dirs, &error.to_string())),
        Err(_) => Err(unreadable(include_dirs, "bindgen did not come to an end")),
    }
}

/// Reads the list of items.
fn allowed(mut builder: Builder, list: &str) -> Result<Builder, Error> {
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        builder = match line.split_once(' ') {
            Some(("type", name)) => builder.allowlist_type(name),
            Some(("function", name)) => builder.allowlist_function(name),
            Some(("value", name)) => builder.allowlist_var(name),
            _ => {
                return Err(Error::new(
                    Code::BindingsFailed,
                    format!("hook-runtime's list of bindings cannot be read: `{line}`"),
                )
                .means("A line is `type`, `function` or `value`, and a name."));
            }
        };
    }
    Ok(builder)
}

fn no_libclang(said: &str) -> Error {
    Error::new(Code::BindingsFailed, "libclang, which `--bindings=generate` needs, could not be loaded")
        .said(said)
        .means("The kept bindings, which are the default, need no libclang.")
        .hint("Install it (Debian: `apt-get install libclang-dev`), or name its directory in LIBCLANG_PATH.")
        .hint("Or leave `--bindings=generate` out.")
}

fn unreadable(include_dirs: &[Utf8PathBuf], said: &str) -> Error {
    let dirs: Vec<String> = include_dirs.iter().map(|dir| format!("`{dir}`")).collect();
    Error::new(Code::BindingsFailed, "bindings could not be generated from the headers")
        .said(said)
        .means(format!("cuda.h and cuda_runtime_api.h were looked for in {}.", dirs.join(", ")))
        .hint("If headers of the compiler itself are missing, install clang's (Debian: `libclang-dev`).")
        .hint("Or leave `--bindings=generate` out: the kept bindings need no headers.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_strictly() {
        assert!(allowed(Builder::default(), "# a\n\ntype T\nfunction f.*\nvalue V\n").is_ok());
        let error = allowed(Builder::default(), "functoin f").unwrap_err();
        assert_eq!(error.code, Code::BindingsFailed);
        assert!(error.what.contains("`functoin f`"));
    }
}
