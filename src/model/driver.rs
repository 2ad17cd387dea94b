//! The oldest driver on which UCX will work when it is built with these
//! answers.
//!
//! UCX v1.19.0 links its CUDA modules to libcuda and libnvidia-ml, so a module
//! is not loaded where one function that it calls is missing. hook-runtime
//! opens both at run time and needs no more than it finds.

use serde::{Deserialize, Serialize};

use super::FeatureId;

/// One reason for a floor.
#[derive(Debug, Clone, Copy)]
pub struct FloorRow {
    /// The feature that has to be on; none for what is always built.
    pub feature: Option<FeatureId>,
    /// The driver's release branch: 525 is R525.
    pub branch: u32,
    /// What needs it, a fragment.
    pub why: &'static str,
}

/// What UCX v1.19.0 calls directly, and since when drivers have it.
pub const DRIVER_FLOORS: &[FloorRow] = &[
    FloorRow { feature: None, branch: 410, why: "cuda_ipc reads NVML_FI_DEV_NVLINK_LINK_COUNT" },
    FloorRow {
        feature: Some(FeatureId::CuMemRetainAllocationHandle),
        branch: 450,
        why: "cuda_copy calls cuMemRetainAllocationHandle (CUDA 11.0)",
    },
    FloorRow {
        feature: Some(FeatureId::Cuda12_0),
        branch: 525,
        why: "cuda_copy and cuda_ipc call cuCtxGetId (CUDA 12.0)",
    },
    FloorRow {
        feature: Some(FeatureId::NvmlFabricInfo),
        branch: 525,
        why: "cuda_ipc calls nvmlDeviceGetGpuFabricInfo (NVML of R525)",
    },
];

/// A reason that counts in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorReason {
    /// The feature that was switched on, by the name that `--require` takes;
    /// none for what is always built.
    pub feature: Option<FeatureId>,
    /// The branch that it needs.
    pub branch: u32,
    /// What needs it.
    pub why: String,
}

/// The oldest driver, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFloor {
    /// The release branch: 525 is R525.
    pub branch: u32,
    /// Every reason, the one that needs most first.
    pub reasons: Vec<FloorReason>,
}

impl DriverFloor {
    /// The floor of a build with these features on.
    pub fn of(is_on: impl Fn(FeatureId) -> bool) -> Self {
        let counts = |row: &&FloorRow| row.feature.is_none_or(&is_on);
        let mut reasons: Vec<FloorReason> = DRIVER_FLOORS
            .iter()
            .filter(counts)
            .map(|row| FloorReason {
                feature: row.feature,
                branch: row.branch,
                why: row.why.to_owned(),
            })
            .collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.branch));
        let branch = reasons.first().map_or(0, |reason| reason.branch);
        Self { branch, reasons }
    }

    /// The reasons that need a driver newer than this.
    pub fn above(&self, branch: u32) -> impl Iterator<Item = &FloorReason> {
        self.reasons.iter().filter(move |reason| reason.branch > branch)
    }

    /// The reasons that make the floor as high as it is.
    pub fn deciding(&self) -> impl Iterator<Item = &FloorReason> {
        self.above(self.branch.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_that_of_the_most_demanding_feature() {
        assert_eq!(DriverFloor::of(|_| false).branch, 410);
        let retain = DriverFloor::of(|id| id == FeatureId::CuMemRetainAllocationHandle);
        assert_eq!(retain.branch, 450);
        assert_eq!(retain.above(410).count(), 1);
        let all = DriverFloor::of(|_| true);
        assert_eq!((all.branch, all.reasons.len()), (525, DRIVER_FLOORS.len()));
        assert_eq!(all.deciding().count(), 2);
        assert_eq!(all.above(470).count(), 2);
    }
}
