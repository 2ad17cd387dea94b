//! Every environment variable that is read, one documented constant each. The
//! help text is made from this table, and tests clear all of them.

/// A variable.
#[derive(Debug, Clone, Copy)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// What it does, a fragment for the help text.
    pub doc: &'static str,
    /// Whether `NAME=VALUE` as an argument does the same.
    pub is_argument: bool,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $is_argument:literal, $doc:literal;)*) => {
        $(#[doc = concat!("`", $name, "`: ", $doc, ".")] pub const $constant: &str = $name;)*

        /// Every variable.
        pub const ENV_VARS: &[EnvVar] =
            &[$(EnvVar { name: $name, doc: $doc, is_argument: $is_argument },)*];
    };
}

variables! {
    CC = "CC", true, "C compiler command, a wrapper such as ccache included";
    CPPFLAGS = "CPPFLAGS", true, "C preprocessor flags, such as -I DIR";
    CFLAGS = "CFLAGS", true, "C compiler flags";
    LDFLAGS = "LDFLAGS", true, "linker flags, such as -L DIR";
    LIBS = "LIBS", true, "libraries to pass to the linker";
    NVCC = "NVCC", true, "CUDA compiler";
    NVCCFLAGS = "NVCCFLAGS", true, "CUDA compiler flags";

    CUDACXX = "CUDACXX", false, "the CUDA compiler where NVCC is not set, as CMake has it (not in compat mode)";
    NVCC_CCBIN = "NVCC_CCBIN", false, "nvcc's host compiler, which nvcc reads itself";

    CUDA_HOME = "CUDA_HOME", false, "a toolkit's directory, looked at when guessing (not in compat mode)";
    CUDA_PATH = "CUDA_PATH", false, "the same, after CUDA_HOME";
    CUDA_ROOT = "CUDA_ROOT", false, "the same, after CUDA_PATH";
    CUDA_TOOLKIT_ROOT = "CUDAToolkit_ROOT", false, "the same, after CUDA_ROOT";
    CONDA_PREFIX = "CONDA_PREFIX", false, "the active conda environment, looked at after those; its package names are hinted at";
    PKG_CONFIG_PATH = "PKG_CONFIG_PATH", false, "where files of pkg-config are looked for first, when guessing";
    PKG_CONFIG_LIBDIR = "PKG_CONFIG_LIBDIR", false, "where they are looked for instead of the usual directories";
    VIRTUAL_ENV = "VIRTUAL_ENV", false, "the active Python environment, whose wheels are looked at";
    GDRCOPY_HOME = "GDRCOPY_HOME", false, "gdrcopy's directory, looked at when guessing (not in compat mode)";
    GDRCOPY_ROOT = "GDRCOPY_ROOT", false, "the same, after GDRCOPY_HOME";
    SPACK_ENV = "SPACK_ENV", false, "the Spack environment that is active, for the same purpose";
    CPATH = "CPATH", false, "header directories of the compiler";
    C_INCLUDE_PATH = "C_INCLUDE_PATH", false, "the same, for C alone";
    LIBRARY_PATH = "LIBRARY_PATH", false, "library directories of the compiler";
    LD_LIBRARY_PATH = "LD_LIBRARY_PATH", false, "where `verify` looks for libraries, as the loader does";
    DESTDIR = "DESTDIR", false, "where `install` puts its tree, for a package";
    PATH = "PATH", false, "where programs are looked for";
    HOME = "HOME", false, "what `~` at the beginning of a directory stands for";
    TMPDIR = "TMPDIR", false, "where `check` has its scratch files";
    XDG_CACHE_HOME = "XDG_CACHE_HOME", false, "where fetched toolkits are kept, in `ucx-configure`";
    CARGO = "CARGO", false, "the cargo that builds hook-runtime";
    CARGO_HOME = "CARGO_HOME", false, "where cargo keeps what it fetched";
    RUSTC = "RUSTC", false, "the rustc that cargo uses, part of what hook-runtime was built with";
    RUSTUP_HOME = "RUSTUP_HOME", false, "where rustup keeps toolchains, looked at for the same reason";
    RUSTFLAGS = "RUSTFLAGS", false, "flags for rustc, kept when hook-runtime is built";
    CARGO_ENCODED_RUSTFLAGS = "CARGO_ENCODED_RUSTFLAGS", false, "the same, in cargo's own form";
    LIBCLANG_PATH = "LIBCLANG_PATH", false, "where libclang is, for --bindings=generate";
    NO_COLOR = "NO_COLOR", false, "no colours, whatever its value";
    CLICOLOR_FORCE = "CLICOLOR_FORCE", false, "colours even where no terminal is";
    TERM = "TERM", false, "`dumb`: no colours and no spinner";
    UCX_CONFIGURE_ROOT = "UCX_CONFIGURE_ROOT", false, "put before the fixed places, for systems not mounted at /";
    UCX_CONFIGURE_TIME_LIMIT = "UCX_CONFIGURE_TIME_LIMIT", false, "seconds that one compiler run may take";
    UCX_CONFIGURE_RUNTIME_SOURCE = "UCX_CONFIGURE_RUNTIME_SOURCE", false, "another workspace with hook-runtime in it";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::request::Variable;

    #[test]
    fn rows_are_unique_and_documented() {
        let names: BTreeSet<_> = ENV_VARS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ENV_VARS.len());
        assert!(ENV_VARS.iter().all(|row| !row.doc.is_empty() && !row.doc.ends_with('.')));
    }

    #[test]
    fn those_that_are_arguments_are_the_variables_of_a_request() {
        let ours: Vec<_> =
            ENV_VARS.iter().filter(|row| row.is_argument).map(|row| (row.name, row.doc)).collect();
        let requested: Vec<_> = Variable::ALL.iter().map(|row| (row.name(), row.doc())).collect();
        assert_eq!(ours, requested);
    }
}
