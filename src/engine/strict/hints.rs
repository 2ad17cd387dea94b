//! What to do about a "no", by question.

/// The hint for a question; none where there is nothing to do.
pub(super) fn for_probe(id: &str) -> Option<&'static str> {
    HINTS.iter().find(|(probe, _)| *probe == id).map(|(_, hint)| *hint)
}

const TOOLKIT: &str = "Install the CUDA toolkit with its development files (NVIDIA: `cuda-toolkit`, \
     Debian: `nvidia-cuda-toolkit`, conda: `cuda-toolkit`), or name another one with \
     `--with-cuda=DIR`.";

const DRIVER: &str = "Install the stubs (NVIDIA: `cuda-driver-dev-X-Y`), or the driver's \
     development link, or add the directory that has it to LDFLAGS with `-L`.";

const RUNTIME: &str = "Install the runtime's development files (NVIDIA: `cuda-cudart-dev-X-Y`, \
     RPM: `cuda-cudart-devel-X-Y`, conda: `cuda-cudart-dev`).";

const NVML: &str = "Install NVML's development files (NVIDIA: `cuda-nvml-dev-X-Y`, RPM: \
     `cuda-nvml-devel-X-Y`, Debian: `libnvidia-ml-dev`, conda: `cuda-nvml-dev`).";

const GDRCOPY: &str = "Install gdrcopy with its headers (Debian: `libgdrapi`, RPM: \
     `gdrcopy-devel`), or name it with `--with-gdrcopy=DIR`.";

const HINTS: &[(&str, &str)] = &[
    ("cuda.header.cuda_h", TOOLKIT),
    ("cuda.header.cuda_runtime_h", RUNTIME),
    ("cuda.library.cuda", DRIVER),
    ("cuda.library.cudart", RUNTIME),
    ("nvml.header.nvml_h", NVML),
    ("nvml.library.nvidia_ml", NVML),
    ("cuda.nvcc", "Name it with `NVCC=PATH`; only tests and examples need it."),
    ("gdrcopy.header.gdrapi_h", GDRCOPY),
    ("gdrcopy.library.gdrapi", GDRCOPY),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_belong_to_probes() {
        for (id, hint) in HINTS {
            assert_eq!(crate::probe::catalog::probe(id).id, *id);
            assert!(hint.ends_with('.') && !hint.contains("  "), "{hint}");
        }
    }
}
