//! Every probe: one row each, in the order in which questions are put.
//!
//! The order of the first rows is that of UCX's own macros, and their labels
//! are autoconf's. What a success proves is in each file's head comment.

use crate::model::{Component, Family, FeatureId};

/// How far a probe has to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Preprocessed; what is printed is the answer.
    Preprocess,
    /// A header, compiled.
    Header(&'static str),
    /// Declarations and types, checked.
    Check,
    /// Linked with these libraries; the first one is the one asked about.
    Link(&'static [&'static str]),
    /// Compiled by nvcc.
    Nvcc,
    /// A control: what is expected is not a question.
    Control,
}

/// One probe.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// A stable name, unique.
    pub id: &'static str,
    /// Its file under `probes/`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// How far it has to come.
    pub stage: Stage,
    /// The probes without whose "yes" it need not be asked.
    pub needs: &'static [&'static str],
    /// What follows `checking` in a progress line.
    pub label: &'static str,
    /// Who decides by it.
    pub family: Family,
    /// What it is part of.
    pub component: Option<Component>,
    /// The feature that it answers.
    pub feature: Option<FeatureId>,
}

/// A row in the making: its file's name and text.
macro_rules! file {
    ($file:literal) => {
        Probe::new($file, include_str!(concat!("../../probes/", $file)))
    };
}

impl Probe {
    const fn new(file: &'static str, text: &'static str) -> Self {
        Self {
            id: "",
            file,
            text,
            stage: Stage::Control,
            needs: &[],
            label: "",
            family: Family::Tool,
            component: None,
            feature: None,
        }
    }

    /// A question of UCX's configure.
    const fn asks(self, id: &'static str, stage: Stage, label: &'static str) -> Self {
        Self { id, stage, label, family: Family::Configure, ..self }
    }

    /// A question that UCX's sources answer by a version guard.
    const fn level(self, id: &'static str, feature: FeatureId, label: &'static str) -> Self {
        let family = Family::Sources;
        Self { id, stage: Stage::Check, label, family, feature: Some(feature), ..self }
    }

    const fn control(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    const fn stage(self, stage: Stage) -> Self {
        Self { stage, ..self }
    }

    const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    const fn part(self, component: Component) -> Self {
        Self { component: Some(component), ..self }
    }

    const fn feature(self, feature: FeatureId) -> Self {
        Self { feature: Some(feature), ..self }
    }
}

/// Every probe.
pub const PROBES: &[Probe] = &[
    file!("cuda/cuda_h.c")
        .asks("cuda.header.cuda_h", Stage::Header("cuda.h"), "for cuda.h")
        .part(Component::CudaDriver),
    file!("cudart/cuda_runtime_h.c")
        .asks("cuda.header.cuda_runtime_h", Stage::Header("cuda_runtime.h"), "for cuda_runtime.h")
        .part(Component::CudaRuntime),
    file!("cuda/device_get_uuid.c")
        .asks("cuda.library.cuda", Stage::Link(&["cuda"]), "for cuDeviceGetUuid in -lcuda")
        .part(Component::CudaDriver),
    file!("cudart/get_device_count.c")
        .asks("cuda.library.cudart", Stage::Link(&["cudart"]), "for cudaGetDeviceCount in -lcudart")
        .part(Component::CudaRuntime),
    file!("cuda/mem_retain_allocation_handle.c")
        .asks(
            "cuda.symbol.mem_retain_allocation_handle",
            Stage::Link(&["cuda"]),
            "for cuMemRetainAllocationHandle in -lcuda",
        )
        .part(Component::CudaDriver)
        .needs(&["cuda.library.cuda"])
        .feature(FeatureId::CuMemRetainAllocationHandle),
    file!("cuda/location_type_host.c")
        .asks(
            "cuda.declaration.location_type_host",
            Stage::Check,
            "whether CU_MEM_LOCATION_TYPE_HOST is declared",
        )
        .needs(&["cuda.header.cuda_h"])
        .feature(FeatureId::CuMemLocationTypeHost),
    file!("nvml/nvml_h.c")
        .asks("nvml.header.nvml_h", Stage::Header("nvml.h"), "for nvml.h")
        .part(Component::Nvml),
    file!("nvml/init.c")
        .asks("nvml.library.nvidia_ml", Stage::Link(&["nvidia-ml"]), "for nvmlInit in -lnvidia-ml")
        .part(Component::Nvml),
    file!("nvml/gpu_fabric_info.c")
        .asks(
            "nvml.declaration.gpu_fabric_info",
            Stage::Check,
            "whether nvmlDeviceGetGpuFabricInfo is declared",
        )
        .part(Component::Nvml)
        .needs(&["nvml.header.nvml_h"])
        .feature(FeatureId::NvmlFabricInfo),
    file!("cudart/get_device_count_static.c")
        .asks(
            "cuda.library.cudart_static",
            Stage::Link(&["cudart_static", "dl", "rt", "pthread"]),
            "for cudaGetDeviceCount in -lcudart_static",
        )
        .part(Component::CudaRuntimeStatic),
    file!("cuda/handle_type_fabric.c")
        .asks(
            "cuda.declaration.handle_type_fabric",
            Stage::Check,
            "whether CU_MEM_HANDLE_TYPE_FABRIC is declared",
        )
        .needs(&["cuda.header.cuda_h"])
        .feature(FeatureId::CudaFabric),
    file!("nvcc/runtime.cu").asks("cuda.nvcc", Stage::Nvcc, "for nvcc").part(Component::Nvcc),
    file!("levels/cuda_11_2.c")
        .level("level.cuda_11_2", FeatureId::Cuda11_2, "for CUDA 11.2 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cudart_11_2.c")
        .level("level.cudart_11_2", FeatureId::Cudart11_2, "for CUDA 11.2 in cuda_runtime_api.h")
        .needs(&["cuda.header.cuda_runtime_h"]),
    file!("levels/cuda_11_7.c")
        .level("level.cuda_11_7", FeatureId::Cuda11_7, "for CUDA 11.7 in cuda.h and cudaTypedefs.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_12_0.c")
        .level("level.cuda_12_0", FeatureId::Cuda12_0, "for CUDA 12.0 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_12_2.c")
        .level("level.cuda_12_2", FeatureId::Cuda12_2, "for CUDA 12.2 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_12_3.c")
        .level("level.cuda_12_3", FeatureId::Cuda12_3, "for CUDA 12.3 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_12_4.c")
        .level("level.cuda_12_4", FeatureId::Cuda12_4, "for CUDA 12.4 in nvml.h")
        .needs(&["nvml.header.nvml_h"]),
    file!("levels/cuda_12_5.c")
        .level("level.cuda_12_5", FeatureId::Cuda12_5, "for CUDA 12.5 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_12_8.c")
        .level("level.cuda_12_8", FeatureId::Cuda12_8, "for CUDA 12.8 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("levels/cuda_13_0.c")
        .level("level.cuda_13_0", FeatureId::Cuda13_0, "for CUDA 13.0 in cuda.h")
        .needs(&["cuda.header.cuda_h"]),
    file!("system/sys_mmap.c").asks(
        "system.sys_mmap",
        Stage::Check,
        "whether SYS_mmap is declared",
    ),
    file!("system/sys_munmap.c").asks(
        "system.sys_munmap",
        Stage::Check,
        "whether SYS_munmap is declared",
    ),
    file!("system/sys_mremap.c").asks(
        "system.sys_mremap",
        Stage::Check,
        "whether SYS_mremap is declared",
    ),
    file!("system/sys_brk.c").asks("system.sys_brk", Stage::Check, "whether SYS_brk is declared"),
    file!("system/sys_madvise.c").asks(
        "system.sys_madvise",
        Stage::Check,
        "whether SYS_madvise is declared",
    ),
    file!("system/sys_shmat.c").asks(
        "system.sys_shmat",
        Stage::Check,
        "whether SYS_shmat is declared",
    ),
    file!("system/sys_shmdt.c").asks(
        "system.sys_shmdt",
        Stage::Check,
        "whether SYS_shmdt is declared",
    ),
    file!("system/sys_ipc.c").asks("system.sys_ipc", Stage::Check, "whether SYS_ipc is declared"),
    file!("system/sys_pidfd_getfd.c")
        .asks("system.sys_pidfd_getfd", Stage::Check, "whether SYS_pidfd_getfd is declared")
        .feature(FeatureId::PidfdGetfd),
    file!("gdrcopy/gdrapi_h.c")
        .asks("gdrcopy.header.gdrapi_h", Stage::Header("gdrapi.h"), "for gdrapi.h")
        .part(Component::GdrCopy),
    file!("gdrcopy/pin_buffer.c")
        .asks("gdrcopy.library.gdrapi", Stage::Link(&["gdrapi"]), "for gdr_pin_buffer in -lgdrapi")
        .part(Component::GdrCopy)
        .needs(&["gdrcopy.header.gdrapi_h"]),
    file!("gdrcopy/copy_to_mapping.c")
        .asks(
            "gdrcopy.declaration.copy_to_mapping",
            Stage::Check,
            "whether gdr_copy_to_mapping is declared",
        )
        .part(Component::GdrCopy)
        .needs(&["gdrcopy.header.gdrapi_h"])
        .feature(FeatureId::GdrCopyToMapping),
    file!("gdrcopy/pin_buffer_v2.c")
        .asks(
            "gdrcopy.declaration.pin_buffer_v2",
            Stage::Check,
            "whether gdr_pin_buffer_v2 is declared",
        )
        .part(Component::GdrCopy)
        .needs(&["gdrcopy.header.gdrapi_h"])
        .feature(FeatureId::GdrPinBufferV2),
    file!("versions/versions.c").control("versions").stage(Stage::Preprocess),
    file!("control/identity.c").control("control.identity").stage(Stage::Preprocess),
    file!("control/ok.c").control("control.ok"),
    file!("control/bad.c").control("control.bad"),
    file!("control/unresolved.c").control("control.unresolved"),
];

/// The headers that a probe includes, in order.
pub fn headers(probe: &Probe) -> impl Iterator<Item = &'static str> {
    let lines = probe.text.lines();
    lines.filter_map(|line| line.strip_prefix("#include <")?.strip_suffix('>'))
}

/// The row of that name.
///
/// # Panics
///
/// There is none: names are literals, and a test goes through all rows.
pub fn probe(id: &str) -> &'static Probe {
    match PROBES.iter().find(|probe| probe.id == id) {
        Some(probe) => probe,
        None => unreachable!("no probe is called `{id}`"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;

    #[test]
    fn every_file_has_a_row_and_every_row_a_file() {
        let root = Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/probes"));
        let files: BTreeSet<String> = walkdir::WalkDir::new(root.as_std_path())
            .into_iter()
            .map(|entry| Utf8PathBuf::from_path_buf(entry.unwrap().into_path()).unwrap())
            .filter(|path| path.is_file() && path.extension() != Some("md"))
            .map(|path| path.strip_prefix(&root).unwrap().to_string())
            .collect();
        let rows: BTreeSet<String> = PROBES.iter().map(|probe| probe.file.to_owned()).collect();
        assert_eq!(files, rows);
        assert_eq!(rows.len(), PROBES.len());
    }

    #[test]
    fn rows_are_unique_documented_and_in_order() {
        let mut seen = BTreeSet::new();
        for probe in PROBES {
            for need in probe.needs {
                assert!(seen.contains(need), "{}: {need} comes before it", probe.id);
            }
            assert!(seen.insert(probe.id), "{} is there twice", probe.id);
            assert!(probe.text.starts_with("/* "), "{}: a head comment", probe.file);
            assert!(probe.text.contains("success proves") || probe.text.contains("Proves"));
            assert!(probe.text.contains("Needed by:") || probe.text.contains("Needed\n * by:"));
            assert_eq!(probe.label.is_empty(), probe.family == Family::Tool, "{}", probe.id);
            if let Stage::Header(name) = probe.stage {
                assert!(probe.text.contains(&format!("#include <{name}>")));
            }
            assert!(Utf8Path::new(probe.file).extension().is_some());
        }
        let features: BTreeSet<_> = PROBES.iter().filter_map(|probe| probe.feature).collect();
        // gdrcopy and bistro follow from several questions.
        assert_eq!(features.len() + 2, crate::model::FEATURES.len());
    }
}
