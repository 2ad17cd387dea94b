//! What is looked for, and what is built from it.

use serde::{Deserialize, Serialize};

/// Something that is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The driver API: `cuda.h` and libcuda.
    CudaDriver,
    /// The runtime API: `cuda_runtime.h` and libcudart.
    CudaRuntime,
    /// `nvml.h` and libnvidia-ml.
    Nvml,
    /// The CUDA compiler; tests and examples alone need it.
    Nvcc,
    /// libcudart_static.
    CudaRuntimeStatic,
    /// `gdrapi.h` and libgdrapi.
    #[serde(rename = "gdrcopy")]
    GdrCopy,
}

impl Component {
    /// Every component, in the order in which reports list them.
    pub const ALL: [Self; 6] = [
        Self::CudaDriver,
        Self::CudaRuntime,
        Self::Nvml,
        Self::Nvcc,
        Self::CudaRuntimeStatic,
        Self::GdrCopy,
    ];

    /// The name that `--require` takes and JSON uses.
    pub const fn key(self) -> &'static str {
        match self {
            Self::CudaDriver => "cuda-driver",
            Self::CudaRuntime => "cuda-runtime",
            Self::Nvml => "nvml",
            Self::Nvcc => "nvcc",
            Self::CudaRuntimeStatic => "cuda-runtime-static",
            Self::GdrCopy => "gdrcopy",
        }
    }

    /// The name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CudaDriver => "CUDA driver",
            Self::CudaRuntime => "CUDA runtime",
            Self::Nvml => "NVML",
            Self::Nvcc => "nvcc",
            Self::CudaRuntimeStatic => "CUDA static runtime",
            Self::GdrCopy => "gdrcopy",
        }
    }
}

/// A loadable module that is built when its needs are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Module {
    /// libucm_cuda: memory hooks.
    UcmCuda,
    /// libuct_cuda: cuda_copy and cuda_ipc.
    UctCuda,
    /// libucx_perftest_cuda: the performance test's allocator.
    PerftestCuda,
    /// libuct_cuda_gdrcopy: gdr_copy.
    UctCudaGdrcopy,
}

impl Module {
    /// Every module, in the order in which reports list them.
    pub const ALL: [Self; 4] =
        [Self::UcmCuda, Self::UctCuda, Self::PerftestCuda, Self::UctCudaGdrcopy];

    /// The file name without its `.so` chain, as UCX names it.
    pub const fn library(self) -> &'static str {
        match self {
            Self::UcmCuda => "libucm_cuda",
            Self::UctCuda => "libuct_cuda",
            Self::PerftestCuda => "libucx_perftest_cuda",
            Self::UctCudaGdrcopy => "libuct_cuda_gdrcopy",
        }
    }

    /// The Cargo package under `hook-runtime/modules/` that builds it.
    pub const fn package(self) -> &'static str {
        match self {
            Self::UcmCuda => "ucm-cuda",
            Self::UctCuda => "uct-cuda",
            Self::PerftestCuda => "ucx-perftest-cuda",
            Self::UctCudaGdrcopy => "uct-cuda-gdrcopy",
        }
    }
}

/// A package that modules are installed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Package {
    /// Hooks, transports and the performance test's allocator.
    UcxCuda,
    /// The gdr_copy transport; it needs the other.
    UcxGdrcopy,
}

impl Package {
    /// Both, in the order in which they are installed.
    pub const ALL: [Self; 2] = [Self::UcxCuda, Self::UcxGdrcopy];

    /// Its name, which is UCX's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UcxCuda => "ucx-cuda",
            Self::UcxGdrcopy => "ucx-gdrcopy",
        }
    }

    /// The package of a module.
    pub const fn of(module: Module) -> Self {
        match module {
            Module::UctCudaGdrcopy => Self::UcxGdrcopy,
            Module::UcmCuda | Module::UctCuda | Module::PerftestCuda => Self::UcxCuda,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_uses_the_names_of_the_command_line() {
        for component in Component::ALL {
            assert_eq!(serde_json::to_value(component).unwrap(), component.key());
        }
        for package in Package::ALL {
            assert_eq!(serde_json::to_value(package).unwrap(), package.name());
        }
    }
}
