//! clap's definition of our options, and the table of installation
//! directories. The comments are the help text.

use std::{ffi::OsString, num::NonZero};

use clap::{Args, Parser, ValueEnum};

use crate::model::{InstallDir, Package};

const COMPONENTS: &str = "Components";
const RUN: &str = "This run";
const AUTOCONF: &str = "As in every configure";
/// The heading of the installation directories.
const INSTALLATION: &str = "Installation directories";

#[derive(Debug, Parser)]
#[command(
    name = "ucx-configure",
    about = "Finds CUDA, NVML, nvcc and gdrcopy as UCX v1.19.0's configure does, and builds hook-runtime to match",
    override_usage = "ucx-configure [OPTIONS] [NAME=VALUE ...]\n       ucx-configure check [OPTIONS] [NAME=VALUE ...]\n       ucx-configure explain [ITEM] [OPTIONS] [NAME=VALUE ...]\n       ucx-configure toolkit list|fetch ...\n       ucx-configure demo ...\n       ucx-configure emit FORMAT[:NAME] [-B DIR] [-o DIR]\n       ucx-configure info [NAME ...] [--format FORMAT]\n       ucx-configure verify [DIR | --program FILE]\n       ucx-configure install [-B DIR] [--destdir DIR] [--prefix DIR ...]\n       ucx-configure install --into-ucx DIR [-B DIR] [--undo]\n       ucx-configure uninstall [-B DIR] [--destdir DIR] [--prefix DIR ...]\n       ucx-configure matrix --toolkit VERSION|DIR ... [--format FORMAT]",
    version,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) options: Options,
    #[command(subcommand)]
    pub(super) command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Detect as configure does; write nothing, build nothing
    Check {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        check: CheckOptions,
    },
    /// Say why the answers are what they are, or what a key means
    Explain {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        explain: ExplainOptions,
    },
    /// List or fetch CUDA toolkits made from NVIDIA's wheels
    Toolkit {
        #[command(subcommand)]
        command: ToolkitCommand,
    },
    /// Show the hooks at work: a small program on the mock driver, and the events it causes
    Demo {
        #[command(flatten)]
        demo: DemoOptions,
    },
    /// Render what a build directory's report says in another format
    Emit {
        #[command(flatten)]
        emit: EmitOptions,
    },
    /// Show the variables that hook-runtime reads, their defaults and what they are set to
    Info {
        #[command(flatten)]
        info: InfoOptions,
    },
    /// Say which calls the hooks would see: of a program, or here with the modules of a directory
    Verify {
        #[command(flatten)]
        verify: VerifyOptions,
    },
    /// Install modules, headers and files for pkg-config and CMake; or libucm_cuda into a UCX
    Install {
        #[command(flatten)]
        install: InstallOptions,
    },
    /// Remove what `install` installed
    Uninstall {
        #[command(flatten)]
        uninstall: UninstallOptions,
    },
    /// Detect on many toolkits in one run, and say what each has
    Matrix {
        #[command(flatten)]
        matrix: MatrixOptions,
    },
    /// List the files that are loaded into this process
    #[command(hide = true)]
    Loaded,
    /// Print what is made from the program's own tables
    #[command(hide = true)]
    Generate {
        /// What to print
        #[arg(value_enum, value_name = "WHAT")]
        what: Generated,
    },
}

/// The options that configure and `check` share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// CUDA: a toolkit's directory, `yes`, `no`, `guess`, `stub:VERSION` (embedded) or `wheel:VERSION` (NVIDIA's, from PyPI) [default: guess]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = COMPONENTS)]
    pub with_cuda: Option<OsString>,
    /// Where CUDA's headers are, searched before those of `--with-cuda`; may be repeated
    #[arg(long, value_name = "DIR", require_equals = true, help_heading = COMPONENTS)]
    pub with_cuda_include: Vec<OsString>,
    /// Where CUDA's libraries are, searched before those of `--with-cuda`; may be repeated
    #[arg(long, value_name = "DIR", require_equals = true, help_heading = COMPONENTS)]
    pub with_cuda_libdir: Vec<OsString>,
    /// Where NVML is, if not in CUDA's directory: the one above its `include` and `lib`
    #[arg(long, value_name = "DIR", require_equals = true, help_heading = COMPONENTS)]
    pub with_nvml: Option<OsString>,
    /// The CUDA compiler, or the directory that has it in `bin`; the same as `NVCC=PATH`
    #[arg(long, value_name = "PATH", require_equals = true, help_heading = COMPONENTS)]
    pub with_nvcc: Option<OsString>,
    /// gdrcopy: its directory, `yes`, `no`, `guess` or `stub:VERSION` [default: guess]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = COMPONENTS)]
    pub with_gdrcopy: Option<OsString>,
    /// Where libgdrapi is, if not in gdrcopy's lib or lib64
    #[arg(long, value_name = "DIR", require_equals = true, help_heading = COMPONENTS)]
    pub with_gdrcopy_libdir: Option<OsString>,
    /// CUDA support for UCX's io_demo [default: no]
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = COMPONENTS)]
    pub with_iodemo_cuda: Option<OsString>,
    /// Binary instrumentation of the driver API; `--disable-bistro` builds without it [default: yes]
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = COMPONENTS)]
    pub enable_bistro: Option<OsString>,

    /// The build directory: outputs, log and modules go there [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR", help_heading = RUN)]
    pub build_dir: Option<OsString>,
    /// Fail if UCX as it is configured needs a newer driver than this, such as 470
    #[arg(long, value_name = "BRANCH", require_equals = true, help_heading = RUN)]
    pub max_driver: Option<OsString>,
    /// Detect and write the outputs, but do not build hook-runtime
    #[arg(long, help_heading = RUN)]
    pub no_build: bool,
    /// Ask every question anew, and keep no answer
    #[arg(long, help_heading = RUN)]
    pub no_cache: bool,
    /// How the compiler is asked: `batch`, many questions in one run, or `single`, each in its own; the answers are the same [default: batch]
    #[arg(long, value_name = "batch|single", require_equals = true, help_heading = RUN)]
    pub probe_mode: Option<OsString>,
    /// Take these answers instead of finding them out; a TOML file, each with its reason
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub answers: Option<OsString>,
    /// Build hook-runtime even if it is up to date
    #[arg(long, help_heading = RUN)]
    pub rebuild: bool,
    /// Decide as UCX v1.19.0's configure does, mistakes included; `v1.19.0` is the only value
    #[arg(long, value_name = "VERSION", require_equals = true, help_heading = RUN)]
    pub compat: Option<OsString>,
    /// Where hook-runtime's bindings come from: `kept` in the crate, or `generate` with bindgen from the found headers [default: kept]
    #[arg(long, value_name = "kept|generate", require_equals = true, help_heading = RUN)]
    pub bindings: Option<OsString>,
    /// Keep cargo off the network
    #[arg(long, help_heading = RUN)]
    pub offline: bool,
    /// Repeat the last run in this build directory, with the arguments and variables it had
    #[arg(long, help_heading = RUN)]
    pub recheck: bool,

    /// Print no progress and no summary
    #[arg(short, long, visible_alias = "silent", help_heading = AUTOCONF)]
    pub quiet: bool,
    /// The machine that the modules will run on
    #[arg(long, value_name = "TRIPLET", help_heading = AUTOCONF)]
    pub host: Option<OsString>,
    /// The machine that they are built on
    #[arg(long, value_name = "TRIPLET", help_heading = AUTOCONF)]
    pub build: Option<OsString>,
    /// Accepted; our own cache is in the user's cache directory, and that file is left alone
    #[arg(long, value_name = "FILE", help_heading = AUTOCONF)]
    pub cache_file: Option<OsString>,
    /// The same as `--cache-file=config.cache`
    #[arg(short = 'C', long, help_heading = AUTOCONF)]
    pub config_cache: bool,
    /// What to do about options that are not ours: `yes` (warn), `no` (be silent) or `fatal` [default: yes]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = AUTOCONF)]
    pub enable_option_checking: Option<OsString>,
}

/// How `check` answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// The report, as in ucx-configure.json.
    Json,
}

/// The options of `check` alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct CheckOptions {
    /// How to answer
    #[arg(
        long,
        value_enum,
        value_name = "text|json",
        default_value = "text",
        help_heading = "Check"
    )]
    pub format: Format,
    /// Fail unless all of these hold: `nvml,gdrcopy,fabric,cuda>=12.0,gdrcopy>=2.5`
    #[arg(long, value_name = "LIST", help_heading = "Check")]
    pub require: Vec<String>,
    /// Print the value of a substitution, conditional or macro, and nothing else; given again, one more, each in a line of its own
    #[arg(long, value_name = "NAME", conflicts_with = "format", help_heading = "Check")]
    pub print: Vec<String>,
}

/// The options of `explain` alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ExplainOptions {
    /// What to explain: a component, a feature, a header, a library, a question of the run; or an exit code, a message's code, a variable, a probe, a format (`KEYS` lists them)
    #[arg(value_name = "ITEM", help_heading = "Explain")]
    pub item: Option<String>,
}

/// What to do with toolkits.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum ToolkitCommand {
    /// List the toolkits that can be had, and those that are here
    List,
    /// Fetch NVIDIA's wheels with pip or uv and assemble a toolkit from them
    Fetch {
        /// The CUDA version, such as 12.8
        version: String,
        /// Assemble it there instead of in the cache directory
        #[arg(long, value_name = "DIR")]
        into: Option<OsString>,
        /// Fetch nvcc as well
        #[arg(long)]
        with_nvcc: bool,
    },
}

/// The options of `demo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DemoOptions {
    /// The build directory that was configured [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR")]
    pub build_dir: Option<OsString>,
    /// Keep cargo off the network
    #[arg(long)]
    pub offline: bool,
}

/// The options of `info`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct InfoOptions {
    /// Names, or how they begin [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// How to answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,
}

/// The options of `emit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct EmitOptions {
    /// The format, or one of its files; without it, the formats are listed
    #[arg(value_name = "FORMAT[:NAME]")]
    pub format: Option<OsString>,
    /// The build directory that was configured [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR")]
    pub build_dir: Option<OsString>,
    /// Write the format's files there instead of one to standard output
    #[arg(short = 'o', long, value_name = "DIR")]
    pub output: Option<OsString>,
}

/// The options of `verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct VerifyOptions {
    /// The build directory, or one with modules [default: the current directory]
    #[arg(value_name = "DIR", conflicts_with = "program")]
    pub dir: Option<OsString>,
    /// Say from the ELF file of this program or library whether reloc alone is enough for it
    #[arg(long, value_name = "FILE")]
    pub program: Option<OsString>,
    /// How to answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,
}

/// The options of `install`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct InstallOptions {
    /// Put libucm_cuda alone into an installed UCX, in the place of its own: the UCX's prefix, or its `lib/ucx`
    #[arg(long, value_name = "DIR")]
    pub into_ucx: Option<OsString>,
    /// The build directory that was configured [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR")]
    pub build_dir: Option<OsString>,
    /// Put UCX's own module back
    #[arg(long, requires = "into_ucx")]
    pub undo: bool,
    /// Accept what was configured on a stub toolkit
    #[arg(long)]
    pub allow_stub: bool,
    /// Put everything below DIR, for a package [default: the variable DESTDIR]
    #[arg(long, value_name = "DIR", conflicts_with = "into_ucx")]
    pub destdir: Option<OsString>,
    /// Install the files of this package alone; may be repeated [default: what was configured]
    #[arg(long, value_enum, value_name = "PACKAGE", conflicts_with = "into_ucx")]
    pub component: Vec<PackageName>,
    /// Print nothing but errors
    #[arg(short, long, visible_alias = "silent")]
    pub quiet: bool,
}

/// The options of `uninstall`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct UninstallOptions {
    /// The build directory whose installation directories count [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR")]
    pub build_dir: Option<OsString>,
    /// Look below DIR, as with `install` [default: the variable DESTDIR]
    #[arg(long, value_name = "DIR")]
    pub destdir: Option<OsString>,
    /// Remove the files of this package alone; may be repeated [default: what is installed]
    #[arg(long, value_enum, value_name = "PACKAGE")]
    pub component: Vec<PackageName>,
    /// Print nothing but errors
    #[arg(short, long, visible_alias = "silent")]
    pub quiet: bool,
}

/// A package, as `--component` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackageName {
    /// Hooks, transports and the performance test's allocator.
    UcxCuda,
    /// The gdr_copy transport.
    UcxGdrcopy,
}

impl From<PackageName> for Package {
    fn from(name: PackageName) -> Self {
        match name {
            PackageName::UcxCuda => Self::UcxCuda,
            PackageName::UcxGdrcopy => Self::UcxGdrcopy,
        }
    }
}

/// How `matrix` answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum MatrixFormat {
    /// A table, for people.
    #[default]
    Table,
    /// Everything, as JSON.
    Json,
    /// A table in Markdown.
    Markdown,
    /// A job matrix for `fromJSON` in a workflow of GitHub.
    Github,
    /// Test results as JUnit writes them.
    Junit,
}

/// The options of `matrix`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct MatrixOptions {
    /// A toolkit: VERSION or `wheel:VERSION` (NVIDIA's wheels), `stub:VERSION` (embedded) or a directory; may be repeated
    #[arg(long, value_name = "TOOLKIT")]
    pub toolkit: Vec<OsString>,
    /// A gdrcopy for each toolkit: `no`, VERSION or `stub:VERSION` (embedded), `guess` or a directory; may be repeated [default: no]
    #[arg(long, value_name = "GDRCOPY")]
    pub gdrcopy: Vec<OsString>,
    /// Take toolkits, and single entries with arguments of their own, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<OsString>,
    /// Fail an entry unless all of these hold, as with `check`
    #[arg(long, value_name = "LIST")]
    pub require: Vec<String>,
    /// Hold the answers against a recorded file, and fail where one changed
    #[arg(long, value_name = "FILE")]
    pub expect: Option<OsString>,
    /// Record the answers in that file instead
    #[arg(long, requires = "expect")]
    pub update: bool,
    /// How to answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: MatrixFormat,
    /// How many entries at once [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZero<usize>>,
    /// Build hook-runtime for each entry as well: a build directory of its own, below `-B DIR`
    #[arg(long)]
    pub build: bool,
    /// Where `--build` builds [default: the current directory]
    #[arg(short = 'B', long, value_name = "DIR", requires = "build")]
    pub build_dir: Option<OsString>,
    /// Keep cargo off the network
    #[arg(long, requires = "build")]
    pub offline: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// How many at once.
fn count(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "it needs a number from 1".to_owned())
}

/// What `generate` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// The manual page, in roff.
    Man,
    /// Completions for bash.
    CompleteBash,
    /// Completions for zsh.
    CompleteZsh,
    /// Completions for fish.
    CompleteFish,
    /// Completions for elvish.
    CompleteElvish,
    /// Completions for PowerShell.
    CompletePowershell,
    /// Tables of exit codes, errors, variables, probes and formats, in Markdown.
    Docs,
}

/// The clap argument of an installation directory.
pub(super) fn install_dir_argument(dir: &InstallDir) -> clap::Arg {
    clap::Arg::new(dir.option)
        .long(dir.option)
        .value_name("DIR")
        .value_parser(clap::value_parser!(OsString))
        .help_heading(INSTALLATION)
        .help(format!("{} [default: {}]", dir.doc, dir.default))
}
