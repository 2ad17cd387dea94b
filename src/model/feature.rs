//! The closed list of features that outputs draw from.
//!
//! The sentences say what the feature is in reality; the releases come from
//! the headers of NVIDIA's toolkits and from UCX's version guards.

use serde::{Deserialize, Serialize};

use super::CudaVersion;

/// Names one feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureId {
    /// 11.2 in cuda.h.
    #[serde(rename = "cuda-11.2")]
    Cuda11_2,
    /// 11.2 in cuda_runtime_api.h.
    #[serde(rename = "cudart-11.2")]
    Cudart11_2,
    /// 11.7.
    #[serde(rename = "cuda-11.7")]
    Cuda11_7,
    /// 12.0.
    #[serde(rename = "cuda-12.0")]
    Cuda12_0,
    /// 12.2.
    #[serde(rename = "cuda-12.2")]
    Cuda12_2,
    /// 12.3.
    #[serde(rename = "cuda-12.3")]
    Cuda12_3,
    /// 12.4.
    #[serde(rename = "cuda-12.4")]
    Cuda12_4,
    /// 12.5.
    #[serde(rename = "cuda-12.5")]
    Cuda12_5,
    /// 12.8.
    #[serde(rename = "cuda-12.8")]
    Cuda12_8,
    /// 13.0.
    #[serde(rename = "cuda-13.0")]
    Cuda13_0,
    /// cuMemRetainAllocationHandle links.
    #[serde(rename = "mem-retain-allocation-handle")]
    CuMemRetainAllocationHandle,
    /// CU_MEM_LOCATION_TYPE_HOST is declared.
    #[serde(rename = "mem-location-type-host")]
    CuMemLocationTypeHost,
    /// CU_MEM_HANDLE_TYPE_FABRIC is declared.
    #[serde(rename = "fabric")]
    CudaFabric,
    /// nvmlDeviceGetGpuFabricInfo is declared.
    NvmlFabricInfo,
    /// gdrapi.h and libgdrapi are there.
    #[serde(rename = "gdrcopy")]
    GdrCopy,
    /// gdr_copy_to_mapping is declared.
    GdrCopyToMapping,
    /// gdr_pin_buffer_v2 is declared.
    GdrPinBufferV2,
    /// SYS_pidfd_getfd is declared.
    PidfdGetfd,
    /// Binary instrumentation is possible and wanted.
    #[serde(rename = "bistro")]
    BistroHooks,
}

/// Who decides about a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// UCX's configure: a probe of its own.
    Configure,
    /// UCX's sources: a version guard.
    Sources,
}

/// One feature.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// Which.
    pub id: FeatureId,
    /// The name that `--require` takes and JSON uses.
    pub key: &'static str,
    /// The cfg that hook-runtime is built with.
    pub cfg: &'static str,
    /// The release that brings it, where CUDA does.
    pub since: Option<CudaVersion>,
    /// Who decides about it in UCX.
    pub side: Side,
    /// What it is, one sentence.
    pub doc: &'static str,
}

const fn level(
    id: FeatureId,
    key: &'static str,
    cfg: &'static str,
    since: (u32, u32),
    doc: &'static str,
) -> Feature {
    let since = Some(CudaVersion::new(since.0, since.1));
    Feature { id, key, cfg, since, side: Side::Sources, doc }
}

const fn probed(
    id: FeatureId,
    key: &'static str,
    cfg: &'static str,
    since: Option<(u32, u32)>,
    doc: &'static str,
) -> Feature {
    let since = match since {
        Some((major, minor)) => Some(CudaVersion::new(major, minor)),
        None => None,
    };
    Feature { id, key, cfg, since, side: Side::Configure, doc }
}

/// Every feature, in the order in which reports list them.
pub const FEATURES: &[Feature] = &[
    level(
        FeatureId::Cuda11_2,
        "cuda-11.2",
        "cuda_11_2",
        (11, 2),
        "Memory pools and stream-ordered allocation in the driver API.",
    ),
    level(
        FeatureId::Cudart11_2,
        "cudart-11.2",
        "cudart_11_2",
        (11, 2),
        "Stream-ordered allocation in the runtime API.",
    ),
    level(
        FeatureId::Cuda11_7,
        "cuda-11.7",
        "cuda_11_7",
        (11, 7),
        "DMA-BUF handles of address ranges, and their type in cudaTypedefs.h.",
    ),
    level(
        FeatureId::Cuda12_0,
        "cuda-12.0",
        "cuda_12_0",
        (12, 0),
        "Context identifiers, and cuGetProcAddress with five arguments.",
    ),
    level(
        FeatureId::Cuda12_2,
        "cuda-12.2",
        "cuda_12_2",
        (12, 2),
        "Host and NUMA locations of virtual memory.",
    ),
    level(FeatureId::Cuda12_3, "cuda-12.3", "cuda_12_3", (12, 3), "Fabric handles."),
    level(
        FeatureId::Cuda12_4,
        "cuda-12.4",
        "cuda_12_4",
        (12, 4),
        "The versioned form of NVML's fabric information, nvmlDeviceGetGpuFabricInfoV.",
    ),
    level(
        FeatureId::Cuda12_5,
        "cuda-12.5",
        "cuda_12_5",
        (12, 5),
        "Context creation with parameters, cuCtxCreate_v4.",
    ),
    level(
        FeatureId::Cuda12_8,
        "cuda-12.8",
        "cuda_12_8",
        (12, 8),
        "DMA-BUF mappings through PCIe, and batched copies.",
    ),
    level(
        FeatureId::Cuda13_0,
        "cuda-13.0",
        "cuda_13_0",
        (13, 0),
        "cuCtxCreate with four arguments, and the later form of batched copies.",
    ),
    probed(
        FeatureId::CuMemRetainAllocationHandle,
        "mem-retain-allocation-handle",
        "have_cu_mem_retain_allocation_handle",
        Some((11, 0)),
        "libcuda exports cuMemRetainAllocationHandle, which tells virtual memory from other memory.",
    ),
    probed(
        FeatureId::CuMemLocationTypeHost,
        "mem-location-type-host",
        "have_cu_mem_location_type_host",
        Some((12, 2)),
        "cuda.h declares CU_MEM_LOCATION_TYPE_HOST.",
    ),
    probed(
        FeatureId::CudaFabric,
        "fabric",
        "have_cuda_fabric",
        Some((12, 3)),
        "cuda.h declares CU_MEM_HANDLE_TYPE_FABRIC: memory can be shared between nodes.",
    ),
    probed(
        FeatureId::NvmlFabricInfo,
        "nvml-fabric-info",
        "have_nvml_fabric_info",
        Some((12, 0)),
        "nvml.h declares nvmlDeviceGetGpuFabricInfo: multi-node NVLink can be recognised.",
    ),
    probed(
        FeatureId::GdrCopy,
        "gdrcopy",
        "have_gdrcopy",
        None,
        "gdrapi.h and libgdrapi are there.",
    ),
    probed(
        FeatureId::GdrCopyToMapping,
        "gdr-copy-to-mapping",
        "have_gdr_copy_to_mapping",
        None,
        "gdrapi.h declares gdr_copy_to_mapping (gdrcopy 2.0).",
    ),
    probed(
        FeatureId::GdrPinBufferV2,
        "gdr-pin-buffer-v2",
        "have_gdr_pin_buffer_v2",
        None,
        "gdrapi.h declares gdr_pin_buffer_v2 (gdrcopy 2.5).",
    ),
    probed(
        FeatureId::PidfdGetfd,
        "pidfd-getfd",
        "have_pidfd_getfd",
        None,
        "The C library's headers know the system call pidfd_getfd (Linux 5.6).",
    ),
    probed(
        FeatureId::BistroHooks,
        "bistro",
        "bistro_hooks",
        None,
        "Binary instrumentation of the driver API is built in.",
    ),
];

impl FeatureId {
    /// The row of this feature.
    pub fn row(self) -> &'static Feature {
        // The tests hold the list complete; the first row is never reached as
        // a stand-in.
        FEATURES.iter().find(|feature| feature.id == self).unwrap_or(&FEATURES[0])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_unique_and_documented() {
        let keys: BTreeSet<_> = FEATURES.iter().map(|feature| feature.key).collect();
        let cfgs: BTreeSet<_> = FEATURES.iter().map(|feature| feature.cfg).collect();
        let ids: BTreeSet<_> = FEATURES.iter().map(|feature| feature.id).collect();
        assert_eq!(keys.len(), FEATURES.len());
        assert_eq!(cfgs.len(), FEATURES.len());
        assert_eq!(ids.len(), FEATURES.len());
        assert_eq!(ids.last(), Some(&FeatureId::BistroHooks), "the last variant has a row");
        assert_eq!(ids.len(), FeatureId::BistroHooks as usize + 1, "every variant has a row");
        for feature in FEATURES {
            assert!(feature.doc.ends_with('.'), "{}", feature.key);
            assert_eq!(feature.id.row().key, feature.key);
            let wire = serde_json::to_value(feature.id).unwrap();
            assert_eq!(wire, feature.key, "JSON uses the key");
        }
    }
}
