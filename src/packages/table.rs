//! The names of packages: one row for each thing that can be missing, one
//! column for each manager.
//!
//! `X-Y` stands for the release of CUDA as NVIDIA's packages have it in their
//! names (`12-5`), `cuX` for wheels' `cu12`, `X.Y` behind `=` or `@` for a
//! version that is asked for, `TRIPLE` for the machine that is compiled for. An
//! empty field: there is no package.

use super::Manager;

/// Something that can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// `cuda.h`.
    CudaHeader,
    /// `cuda_runtime.h` and libcudart.
    Runtime,
    /// A libcuda to link with.
    DriverLibrary,
    /// `nvml.h`, and a libnvidia-ml to link with.
    Nvml,
    /// nvcc.
    Nvcc,
    /// `gdrapi.h` and libgdrapi.
    GdrCopy,
    /// A C compiler and the C library's headers.
    CCompiler,
    /// A C compiler for another machine.
    CrossCompiler,
    /// The parts of CUDA for another machine than the one that compiles.
    CrossToolkit,
    /// cargo and rustc.
    Rust,
    /// pip.
    Pip,
    /// libclang, for bindgen.
    Libclang,
}

/// One row: the item, what it is called in a sentence, and a column for each
/// of [`Manager::ALL`].
pub struct Row {
    /// The item.
    pub item: Item,
    /// What follows "install".
    pub title: &'static str,
    /// The packages.
    pub names: [&'static str; 8],
}

/// Every row.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    Row { item: Item::CudaHeader, title: "the CUDA toolkit with its development files", names: [
        "nvidia-cuda-toolkit", "cuda-cudart-dev-X-Y cuda-driver-dev-X-Y",
        "cuda-cudart-devel-X-Y cuda-driver-devel-X-Y", "cuda-cudart-devel-X-Y cuda-driver-devel-X-Y",
        "cuda", "cuda-cudart-dev cuda-driver-dev cuda-nvml-dev cuda-version=X.Y",
        "nvidia-cuda-runtime-cuX", "cuda@X.Y",
    ] },
    Row { item: Item::Runtime, title: "the CUDA runtime's development files", names: [
        "nvidia-cuda-dev", "cuda-cudart-dev-X-Y",
        "cuda-cudart-devel-X-Y", "cuda-cudart-devel-X-Y",
        "cuda", "cuda-cudart-dev cuda-version=X.Y",
        "nvidia-cuda-runtime-cuX", "cuda@X.Y",
    ] },
    Row { item: Item::DriverLibrary, title: "a libcuda to link with", names: [
        "nvidia-cuda-dev", "cuda-driver-dev-X-Y",
        "cuda-driver-devel-X-Y", "cuda-driver-devel-X-Y",
        "cuda", "cuda-driver-dev cuda-version=X.Y",
        "", "cuda@X.Y",
    ] },
    Row { item: Item::Nvml, title: "NVML's development files", names: [
        "libnvidia-ml-dev", "cuda-nvml-dev-X-Y",
        "cuda-nvml-devel-X-Y", "cuda-nvml-devel-X-Y",
        "cuda", "cuda-nvml-dev cuda-version=X.Y",
        "nvidia-nvml-dev-cuX", "cuda@X.Y",
    ] },
    Row { item: Item::Nvcc, title: "nvcc", names: [
        "nvidia-cuda-toolkit", "cuda-nvcc-X-Y",
        "cuda-nvcc-X-Y", "cuda-nvcc-X-Y",
        "cuda", "cuda-nvcc cuda-version=X.Y",
        "nvidia-cuda-nvcc-cuX", "cuda@X.Y",
    ] },
    Row { item: Item::GdrCopy, title: "gdrcopy with its header", names: [
        "libgdrapi", "libgdrapi",
        "gdrcopy-devel", "gdrcopy-devel",
        "", "", "", "gdrcopy",
    ] },
    Row { item: Item::CCompiler, title: "a C compiler", names: [
        "gcc libc6-dev", "",
        "gcc glibc-devel", "gcc glibc-devel",
        "gcc", "c-compiler", "", "gcc",
    ] },
    Row { item: Item::CrossCompiler, title: "a C compiler for that machine", names: [
        "gcc-TRIPLE", "",
        "gcc-TRIPLE", "",
        "TRIPLE-gcc", "", "", "",
    ] },
    Row { item: Item::CrossToolkit, title: "CUDA's development files for that machine", names: [
        "", "cuda-cross-sbsa-X-Y",
        "cuda-cross-sbsa-X-Y", "",
        "", "cuda-cudart-dev_linux-aarch64 cuda-driver-dev_linux-aarch64 cuda-nvml-dev_linux-aarch64",
        "", "",
    ] },
    Row { item: Item::Rust, title: "Rust", names: [
        "cargo", "",
        "cargo", "cargo",
        "rust", "rust", "", "rust",
    ] },
    Row { item: Item::Pip, title: "pip", names: [
        "python3-pip", "",
        "python3-pip", "python3-pip",
        "python-pip", "pip", "", "py-pip",
    ] },
    Row { item: Item::Libclang, title: "libclang", names: [
        "libclang-dev", "",
        "clang-devel", "clang-devel",
        "clang", "libclang", "libclang", "llvm",
    ] },
];

impl Item {
    fn row(self) -> &'static Row {
        // A test holds the table complete.
        TABLE.iter().find(|row| row.item == self).unwrap_or(&TABLE[0])
    }

    /// What follows "install".
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The packages of a manager.
    pub(super) fn names(self, manager: Manager) -> Option<&'static str> {
        let column = Manager::ALL.iter().position(|other| *other == manager)?;
        let names = self.row().names[column];
        (!names.is_empty()).then_some(names)
    }
}
