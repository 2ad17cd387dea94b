//! Which of NVIDIA's wheels make up a toolkit.
//!
//! Names, versions and sums are facts of the package index; the sums are of
//! the files for one machine. A new release is one more row.

use crate::model::CudaVersion;

/// One wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    /// Its name in the package index.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The SHA-256 of the file.
    pub sha256: &'static str,
    /// How many bytes it has.
    pub size: u64,
    /// Whether only nvcc needs it.
    pub nvcc: bool,
}

/// The wheels of one release.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// The machine that its wheels are for, as compilers call it.
    pub machine: &'static str,
    /// Which release.
    pub version: CudaVersion,
    /// Its wheels. Up to 12.9 the one called nvcc is always needed: it has
    /// headers that cuda_runtime.h includes, and no nvcc.
    pub wheels: &'static [Wheel],
}

impl Release {
    /// Whether its wheels have an nvcc.
    pub fn has_nvcc(&self) -> bool {
        self.wheels.iter().any(|wheel| wheel.nvcc)
    }

    /// The wheels to fetch.
    pub fn wheels(&self, with_nvcc: bool) -> impl Iterator<Item = &'static Wheel> {
        self.wheels.iter().filter(move |wheel| with_nvcc || !wheel.nvcc)
    }
}

/// A wheel that every toolkit needs.
const fn base(name: &'static str, version: &'static str, size: u64, sha256: &'static str) -> Wheel {
    Wheel { name, version, sha256, size, nvcc: false }
}

/// A wheel that only nvcc needs.
const fn nvcc(name: &'static str, version: &'static str, size: u64, sha256: &'static str) -> Wheel {
    Wheel { nvcc: true, ..base(name, version, size, sha256) }
}

/// The machine whose wheels the first table has.
pub const X86_64: &str = "x86_64";

/// That of the second.
pub const AARCH64: &str = "aarch64";

/// The releases for a machine; none where there is no table for it.
pub fn releases(machine: &str) -> &'static [Release] {
    match machine {
        X86_64 => RELEASES,
        AARCH64 => AARCH64_RELEASES,
        _ => &[],
    }
}

/// Every release for x86_64, ascending.
#[rustfmt::skip]
pub const RELEASES: &[Release] = &[
    Release { machine: X86_64, version: CudaVersion::new(11, 7), wheels: &[
        base("nvidia-cuda-runtime-cu11", "11.7.99", 849_253, "cc768314ae58d2641f07eac350f40f99dcb35719c4faff4bc458a7cd2b119e31"),
        base("nvidia-nvml-dev-cu11", "11.7.91", 85_835, "97ffd106d96757dd9c8b526437fc2d7b28ce841f1437e70f254a93e0f6e988f2"),
        base("nvidia-cuda-nvcc-cu11", "11.7.99", 17_260_199, "34f6dfc39a85a5a6f57dfc5ed145a9f903c3f6520a86e7d24b548894769f5e48"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(11, 8), wheels: &[
        base("nvidia-cuda-runtime-cu11", "11.8.89", 875_592, "92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1"),
        base("nvidia-nvml-dev-cu11", "11.8.86", 89_091, "f5ad92d9563145137a26ca1b75cda26159125555109ccc303144a0b05b8531e6"),
        base("nvidia-cuda-nvcc-cu11", "11.8.89", 19_516_527, "f8e1e995166c884f2f5bf94975d7abb89175363b8712f7f81cd38d0df1b2cd85"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 0), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.0.146", 813_947, "18c038592af387684812fa712642aa9a26c12da80acb488b6709f7cced147f71"),
        base("nvidia-nvml-dev-cu12", "12.0.140", 92_559, "479592b9041cf868a2824e75c08838d041cd4c39ab9a30ba8515755fb167be6a"),
        base("nvidia-cuda-nvcc-cu12", "12.0.140", 19_767_229, "958d54df87d0c0b7207e7fed403d6eeda0890a01cc44cfeaccf87c7f90e9b165"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 1), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.1.105", 823_596, "6e258468ddf5796e25f1dc591a31029fa317d97a0a94ed93468fc86301d61e40"),
        base("nvidia-nvml-dev-cu12", "12.1.105", 91_252, "a3147eabb95422b1a9e2ae20c2964026dbf958c507be8b2a7d9ac5babab8b60f"),
        base("nvidia-cuda-nvcc-cu12", "12.1.105", 19_996_355, "a0712a05ffd57d9f017580ffcc808b207f7f4ef7a5ca8ac1312318b153739a18"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 2), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.2.140", 845_802, "acb9cb7e44594a3512533497ea790d9f0b0e399abcc888584c157d1ffa080e41"),
        base("nvidia-nvml-dev-cu12", "12.2.140", 97_715, "5ddaace17f8f38112e20209df738499bbfaac895f40c7f77456242375f6c4bbd"),
        base("nvidia-cuda-nvcc-cu12", "12.2.140", 21_319_729, "c6ff4ae7a636eb6cab7621191e19ac3779690686bbcf52c04d8b1ca2944e1e27"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 3), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.3.101", 867_700, "04604679ddca6acb96c76a7a9306282cddc16981f92e148e2dfe227078883cda"),
        base("nvidia-nvml-dev-cu12", "12.3.101", 98_527, "deee41471bac482562eb492b3e3c8dd5392b165705b0466aa5d2d48f918dafbb"),
        base("nvidia-cuda-nvcc-cu12", "12.3.107", 21_955_316, "a3344b94f5e89023fa17e0bbf8fb0dd26d5ef6f4091a5aab08f215e4999eac62"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 4), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.4.127", 883_737, "64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5"),
        base("nvidia-nvml-dev-cu12", "12.4.127", 104_059, "f3d070140734992f018d46b5fc1663495898637534b94a87cec64bf12bdc584c"),
        base("nvidia-cuda-nvcc-cu12", "12.4.131", 22_265_199, "e4c9a35435c3b0e36c6397c5696334c9ea6650e524736cbd1c5d345ea099bb04"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 5), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.5.82", 895_707, "3e79a060e126df40fd3a068f3f787eb000fa51b251ec6cd97d09579632687115"),
        base("nvidia-nvml-dev-cu12", "12.5.82", 104_876, "f0c0a2298ba85b84bee5c5651148d50f39492a01c4b8a553bb0a78d5f8484c8f"),
        base("nvidia-cuda-nvcc-cu12", "12.5.82", 22_468_537, "b03e545b8e8c3ce7ebcd7fc44063180ff52ff01d064ece2127ed90a04ef12cd0"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 8), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.8.90", 954_765, "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90"),
        base("nvidia-nvml-dev-cu12", "12.8.90", 114_731, "051ea91b21d08447d1c6bb0f6f7b3c50339e79d45ef60ae1f71ac800ca0b2f6e"),
        base("nvidia-cuda-nvcc-cu12", "12.8.93", 40_128_098, "2d6dc36fb7cb5ac9c0b8825bc13d193c35487a315664007287d0126531238011"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(12, 9), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.9.79", 3_493_179, "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3"),
        base("nvidia-nvml-dev-cu12", "12.9.79", 120_263, "8bb367913c62cb65be9ae386c58dbf573f1f9e2f01cae54abb87bf5f63c6069e"),
        base("nvidia-cuda-nvcc-cu12", "12.9.86", 40_546_229, "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(13, 0), wheels: &[
        base("nvidia-cuda-runtime", "13.0.96", 2_243_632, "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"),
        base("nvidia-nvml-dev", "13.0.87", 124_400, "082871368275cf6620fc900f55d8eaf2563b263a38a00a5168e9650bce963ba1"),
        base("nvidia-cuda-crt", "13.0.88", 134_086, "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"),
        nvcc("nvidia-cuda-nvcc", "13.0.88", 37_384_532, "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"),
        nvcc("nvidia-nvvm", "13.0.88", 61_601_415, "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"),
        base("nvidia-cuda-cccl", "13.0.85", 3_120_526, "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"),
    ] },
    Release { machine: X86_64, version: CudaVersion::new(13, 5), wheels: &[
        base("nvidia-cuda-runtime", "13.5.37", 2_504_024, "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d"),
        base("nvidia-nvml-dev", "13.5.37", 151_756, "7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d"),
        base("nvidia-cuda-crt", "13.5.37", 166_163, "e898b7f73d3035fa89915a3f7bf3b54a73e90249746111aed295822c4729bb29"),
        nvcc("nvidia-cuda-nvcc", "13.5.37", 47_028_279, "f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7"),
        nvcc("nvidia-nvvm", "13.5.37", 75_141_406, "c41bfa362e407405163f103c2229f0765f8cc2ed7d148b754dc77f228bf7e070"),
        base("nvidia-cuda-cccl", "13.3.5.0.6", 4_113_651, "d5230098fa2df5021e1a00c0c4eee41797671a91119d31e892463e5ccf3ee326"),
    ] },
];

/// Releases for aarch64, servers, to configure for such a machine from another:
/// an nvcc of theirs would not run there, and is left out.
#[rustfmt::skip]
pub const AARCH64_RELEASES: &[Release] = &[
    Release { machine: AARCH64, version: CudaVersion::new(12, 8), wheels: &[
        base("nvidia-cuda-runtime-cu12", "12.8.90", 965_265, "52bf7bbee900262ffefe5e9d5a2a69a30d97e2bc5bb6cc866688caa976966e3d"),
        base("nvidia-nvml-dev-cu12", "12.8.90", 114_731, "6eee4970ed9288922be34efdc529796d4cebc9370b9e8b2b54cd5e179fb77f34"),
        base("nvidia-cuda-nvcc-cu12", "12.8.93", 38_021_796, "2b35ada240938d19398119ca596faaf626ba5e729511be9715842a29d112926d"),
    ] },
    Release { machine: AARCH64, version: CudaVersion::new(13, 0), wheels: &[
        base("nvidia-cuda-runtime", "13.0.96", 2_261_060, "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55"),
        base("nvidia-nvml-dev", "13.0.87", 124_402, "f7aaa33d888da151c5902b39efdca16bc8a5535652075c2a02cd948a7a7100be"),
        base("nvidia-cuda-crt", "13.0.88", 134_086, "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003"),
        base("nvidia-cuda-cccl", "13.0.85", 3_120_528, "6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c"),
    ] },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_whole() {
        assert!(RELEASES.is_sorted_by_key(|release| release.version));
        let mut sums = BTreeSet::new();
        assert!(AARCH64_RELEASES.is_sorted_by_key(|release| release.version));
        for release in RELEASES.iter().chain(AARCH64_RELEASES) {
            assert!(releases(release.machine).iter().any(|it| it.version == release.version));
            let version = release.version.to_string();
            for part in ["runtime", "nvml-dev"] {
                assert!(
                    release.wheels(false).any(|wheel| wheel.name.contains(part)),
                    "{version} lacks {part}"
                );
            }
            let runs_here = release.machine == X86_64;
            assert_eq!(release.has_nvcc(), runs_here && release.version.major >= 13);
            for wheel in release.wheels {
                assert_eq!(wheel.sha256.len(), 64);
                assert!(sums.insert(wheel.sha256), "{} appears twice", wheel.name);
            }
        }
    }
}
