//! The table of variables: names, defaults, what they mean, and which values make sense.
//!
//! Nothing here asks the environment or depends on the rest of hook-runtime: `ucx-configure
//! info` shows the same table, from this file.

use super::parse;
pub use parse::{Auto, Bandwidths, Fetching, Limit, Ternary};

/// One variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The value if it is not set.
    pub default: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    check: fn(&str) -> Result<(), String>,
}

macro_rules! settings {
    ($($field:ident: $type:ty = $name:literal, $default:literal, $meaning:literal;)+) => {
        /// Every variable.
        pub const VARIABLES: &[Variable] = &[$(Variable {
            name: $name,
            default: $default,
            meaning: $meaning,
            check: |text| <$type as parse::Parse>::parse(text).map(drop),
        }),+];

        /// What the variables say.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $(#[doc = $meaning] pub $field: $type,)+
        }

        impl Settings {
            /// Reads each variable with `value_of`, and reports what makes no sense.
            pub fn read(value_of: impl Fn(&str) -> Option<String>, report: &mut dyn FnMut(String)) -> Self {
                Self { $($field: read_one(&value_of, $name, $default, report),)+ }
            }
        }
    };
}

#[rustfmt::skip]
settings! {
    copy_max_poll: u32 = "UCX_CUDA_COPY_MAX_POLL", "16", "completions looked for at a time";
    copy_max_events: Limit = "UCX_CUDA_COPY_MAX_EVENTS", "inf", "events in use at a time";
    copy_bandwidth: Bandwidths = "UCX_CUDA_COPY_BW", "10000MBs,h2d:8300MBs,d2h:11660MBs,d2d:320GBs", "estimated bandwidth by direction";
    copy_whole: Ternary = "UCX_CUDA_COPY_REG_WHOLE_ALLOC", "auto", "register the whole allocation (accepted, without effect yet)";
    copy_whole_ratio: f64 = "UCX_CUDA_COPY_MAX_REG_RATIO", "0.1", "share of the device's memory up to which that is done (accepted, without effect yet)";
    copy_dmabuf: Ternary = "UCX_CUDA_COPY_DMABUF", "try", "memory as dma-buf for other devices (accepted, without effect yet)";
    copy_fabric: Ternary = "UCX_CUDA_COPY_ENABLE_FABRIC", "try", "own allocations can be handed over the fabric (accepted, without effect yet)";
    copy_retain_primary: bool = "UCX_CUDA_COPY_RETAIN_PRIMARY_CTX", "n", "bring a primary context to life to allocate in it (accepted, without effect yet)";
    ipc_max_poll: u32 = "UCX_CUDA_IPC_MAX_POLL", "16", "completions looked for at a time (accepted, without effect yet)";
    ipc_max_streams: u32 = "UCX_CUDA_IPC_MAX_STREAMS", "128", "streams of a context, 1 to 1024 (accepted, without effect yet)";
    ipc_cache: bool = "UCX_CUDA_IPC_CACHE", "y", "keep mappings of other processes' memory";
    ipc_get: Ternary = "UCX_CUDA_IPC_ENABLE_GET_ZCOPY", "auto", "read from other processes' memory";
    ipc_max_events: Limit = "UCX_CUDA_IPC_MAX_EVENTS", "inf", "events in use at a time (accepted, without effect yet)";
    ipc_bandwidth: Auto = "UCX_CUDA_IPC_BW", "auto", "estimated bandwidth";
    ipc_latency: parse::Seconds = "UCX_CUDA_IPC_LAT", "1.8us", "estimated latency";
    ipc_overhead: parse::Seconds = "UCX_CUDA_IPC_OVERHEAD", "4.0us", "estimated cost of a call";
    ipc_mnnvl: Ternary = "UCX_CUDA_IPC_ENABLE_MNNVL", "try", "reach other machines by the fabric, where memory was made for it";
    ipc_max_regions: Limit = "UCX_CUDA_IPC_CACHE_MAX_REGIONS", "1024", "mappings kept (UCX: no limit)";
    ipc_max_size: Limit = "UCX_CUDA_IPC_CACHE_MAX_SIZE", "inf", "bytes of mappings kept";
    ipc_descriptors: parse::Fetching = "HOOK_RUNTIME_IPC_DESCRIPTORS", "try", "how file descriptors are had from another process: `pidfd`, `socket`, or `try` one after the other";
    gdr_cache: Ternary = "UCX_GDR_COPY_RCACHE", "yes", "keep registrations (accepted, without effect yet)";
    gdr_max_regions: Limit = "UCX_GDR_COPY_RCACHE_MAX_REGIONS", "inf", "registrations kept (accepted, without effect yet)";
    gdr_bandwidth: Bandwidths = "UCX_GDR_COPY_BW", "0MBs,get_dedicated:250MBs,put_shared:6911MBs", "estimated bandwidth by direction";
    gdr_latency: parse::Latencies = "UCX_GDR_COPY_LAT", "get:1.4e-6,put:0.4e-6", "estimated latency by direction";
    gdr_force_pcie: bool = "HOOK_RUNTIME_GDR_FORCE_PCIE", "n", "map device memory through PCIe even where there is a faster link (gdrcopy 2.5)";
    batch: u32 = "HOOK_RUNTIME_COPY_BATCH", "16", "small copies handed to the driver at a time, 1 to 128; 1: each by itself";
    batch_size: parse::Bytes = "HOOK_RUNTIME_COPY_BATCH_SIZE", "4k", "up to which size a copy is small";
    kernel: bool = "HOOK_RUNTIME_COPY_KERNEL", "y", "small copies inside a device by one launch";
    threads: Auto = "HOOK_RUNTIME_STAGE_THREADS", "auto", "threads that stage pageable memory (auto: up to 8, by the affinity mask)";
    stage_size: parse::Bytes = "HOOK_RUNTIME_STAGE_SIZE", "1m", "from which size on pageable memory is staged";
    stage_chunk: parse::Bytes = "HOOK_RUNTIME_STAGE_CHUNK", "2m", "how much is staged at a time";
}

fn read_one<T: parse::Parse>(
    value_of: &impl Fn(&str) -> Option<String>,
    name: &str,
    default: &str,
    report: &mut dyn FnMut(String),
) -> T {
    let said = value_of(name).map(|text| (T::parse(&text), text));
    match said {
        Some((Ok(value), _)) => value,
        Some((Err(expected), text)) => {
            report(format!("`{name}={text}` is not {expected}: using `{default}`"));
            parse::default(default)
        }
        None => parse::default(default),
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::read(|_| None, &mut |_| {})
    }
}

/// The variables of hooks, events and memory types. They are read where they are used.
pub const GENERAL: &[Variable] = &[
    Variable {
        name: "UCX_MEM_CUDA_HOOK_MODE",
        default: "bistro,reloc",
        meaning: "how CUDA's functions are hooked: `none`, or a list of `bistro` and `reloc`",
        check: |text| parse::words(text, &["none", "bistro", "reloc"], ','),
    },
    Variable {
        name: "UCX_MEM_BISTRO_FORCE_FAR_JUMP",
        default: "n",
        meaning: "patch entries with the longest form of jump everywhere",
        check: |text| <bool as parse::Parse>::parse(text).map(drop),
    },
    Variable {
        name: "UCX_MEM_LOG_LEVEL",
        default: "warn",
        meaning: "how much is written to standard error",
        check: |text| {
            let levels = ["fatal", "error", "warn", "diag", "info", "debug", "trace"];
            parse::words(text, &levels, '\0')
        },
    },
    Variable {
        name: "UCX_MEMTYPE_CACHE",
        default: "try",
        meaning: "keep a table of memory types; `try`: as far as hooks see every allocation",
        check: |text| {
            parse::words(text, &["y", "yes", "on", "1", "n", "no", "off", "0", "try"], '\0')
        },
    },
    Variable {
        name: "HOOK_RUNTIME_TRACE",
        default: "",
        meaning: "a file that gets a line for every event",
        check: |_| Ok(()),
    },
    Variable {
        name: "HOOK_RUNTIME_COVERAGE",
        default: "",
        meaning: "a file that the coverage report is appended to when libucm_cuda is loaded",
        check: |_| Ok(()),
    },
];

/// Every variable of hook-runtime: those of hooks and events, then those of the transports.
pub fn all() -> impl Iterator<Item = &'static Variable> {
    GENERAL.iter().chain(VARIABLES)
}

/// Whether `text` is a value for the variable `name`; the error says what would be.
pub fn validate(name: &str, text: &str) -> Result<(), String> {
    let variable = all().find(|variable| variable.name == name);
    variable.map_or_else(|| Err(format!("`{name}` is no variable")), |row| (row.check)(text))
}
