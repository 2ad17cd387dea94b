//! The codes of warnings and notes, documented in one table. Errors have
//! theirs in [`crate::error::CODES`].

/// Every code of a warning (`W`) or a note (`N`), and what it is about, one
/// sentence.
pub const REMARKS: &[(&str, &str)] = &[
    ("W0101", "Options of UCX's configure, or of another, are not ours and have no effect."),
    ("W0102", "An option was given more than once; the last one counts."),
    ("N0103", "A `~` that the shell left alone was taken for the home directory."),
    ("N0104", "Options of autoconf's own have no effect here."),
    (
        "N0105",
        "Variables that were given as arguments have no effect, or only from the environment.",
    ),
    ("N0106", "A cache file of autoconf's is neither read nor written."),
    ("N0107", "Outputs name a directory through a link, since its own name is not UTF-8."),
    ("W0108", "`--with-nvcc` and `NVCC` name two CUDA compilers; the option counts."),
    ("W0301", "The parts of a toolkit are of different releases."),
    ("W0302", "A version macro says otherwise than the code that the headers accept."),
    ("W0303", "An environment variable names no directory, or another one than an earlier one."),
    ("N0304", "A place was tried and passed over."),
    ("W0305", "CUDA was looked for without being asked for, and is not there."),
    ("N0306", "gdrcopy was looked for without being asked for, and is not there."),
    ("N0307", "A stub was configured with: enough to build, nothing to run on."),
    ("N0308", "A driver library comes from the system, since the toolkit has none."),
    ("W0309", "NVCC is set, and cannot be used."),
    ("N0310", "An environment variable leads the compiler to something that the answers stand on."),
    ("W0311", "nvcc is there and cannot be used; only tests and examples need it."),
    ("W0312", "LD_LIBRARY_PATH leads to stubs, which programs must not be loaded with."),
    ("N0313", "Answers were given with `--answers`, not found out."),
    ("N0320", "A library is there only under a versioned name, and linked by that name."),
    ("N0321", "The directory that was named holds several toolkits; one of them was taken."),
    ("W0322", "A library of cuda-compat was linked with."),
    ("W0323", "A library needs a newer C library than the one that is linked with."),
    ("W0324", "The driver that was linked with is older than what UCX will need."),
    ("W0325", "gdrcopy is older than 2.0."),
    ("W0326", "A directory that was named for headers or libraries of CUDA holds none."),
    ("N0601", "The wheels of a release hold no nvcc."),
    ("N0602", "The licence that fetched wheels are under."),
];
