//! Options that are accepted and not ours: autoconf's own, and those of UCX's
//! configure.

/// An option of every autoconf configure that has no effect here.
#[derive(Debug, Clone, Copy)]
pub struct AutoconfOption {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Whether it takes a value, after `=` or as the next argument.
    pub takes_value: bool,
}

const fn option(name: &'static str, takes_value: bool) -> AutoconfOption {
    AutoconfOption { name, takes_value }
}

/// Autoconf's own options without effect here.
pub const AUTOCONF_OPTIONS: &[AutoconfOption] = &[
    option("srcdir", true),
    option("target", true),
    option("program-prefix", true),
    option("program-suffix", true),
    option("program-transform-name", true),
    option("x-includes", true),
    option("x-libraries", true),
    option("no-create", false),
    option("no-recursion", false),
    option("verbose", false),
    option("gas", false),
    option("nfp", false),
    option("x", false),
];

/// The `--with-X` and `--enable-X` that UCX v1.19.0's configure knows and that
/// are not about CUDA: an exact name here is never taken for a slip of ours.
/// The negative forms are meant as well.
pub const UCX_OPTIONS: &[&str] = &[
    // Instruction sets, compilers and libtool.
    "enable-aix-soname",
    "enable-compiler-opt",
    "enable-dependency-tracking",
    "enable-fast-install",
    "enable-libtool-lock",
    "enable-maintainer-mode",
    "enable-openmp",
    "enable-shared",
    "enable-silent-rules",
    "enable-static",
    "with-aix-soname",
    "with-avx",
    "with-gnu-ld",
    "with-march",
    "with-mcpu",
    "with-pic",
    "with-sse41",
    "with-sse42",
    "with-sysroot",
    // Features of the libraries.
    "enable-asan",
    "enable-assertions",
    "enable-backtrace-detail",
    "enable-builtin-memcpy",
    "enable-cma",
    "enable-debug",
    "enable-debug-data",
    "enable-devel-headers",
    "enable-doxygen-chi",
    "enable-doxygen-chm",
    "enable-doxygen-doc",
    "enable-doxygen-dot",
    "enable-doxygen-html",
    "enable-doxygen-man",
    "enable-doxygen-pdf",
    "enable-doxygen-ps",
    "enable-doxygen-rtf",
    "enable-doxygen-xml",
    "enable-examples",
    "enable-experimental-api",
    "enable-fault-injection",
    "enable-frame-pointer",
    "enable-gcov",
    "enable-gtest",
    "enable-logging",
    "enable-malloc-hooks",
    "enable-mt",
    "enable-numa",
    "enable-optimizations",
    "enable-params-check",
    "enable-profiling",
    "enable-stats",
    "enable-symbol-override",
    "enable-test-apps",
    "enable-tuning",
    // Other packages.
    "with-allocator",
    "with-bfd",
    "with-cache-line-size",
    "with-cm",
    "with-dc",
    "with-devx",
    "with-dm",
    "with-docs-only",
    "with-efa",
    "with-fuse3",
    "with-fuse3-static",
    "with-go",
    "with-googletest",
    "with-ib-hw-tm",
    "with-java",
    "with-knem",
    "with-mad",
    "with-mlx5",
    "with-mlx5-dv",
    "with-mpi",
    "with-pkgconfigdir",
    "with-rc",
    "with-rdmacm",
    "with-rocm",
    "with-rte",
    "with-ucg",
    "with-ud",
    "with-ugni",
    "with-valgrind",
    "with-verbs",
    "with-xpmem",
    "with-ze",
];
