//! Turns the report of `ucx-configure` into `cfg` flags, and does nothing else.
//!
//! `HOOK_RUNTIME_REPORT` names the report. Without it every feature is on, so
//! that a plain `cargo test` covers all of the crate.
#![expect(clippy::disallowed_methods, reason = "a build script is its own gate to the outside")]

use std::path::Path;

/// Every flag that the crate knows. An unknown name in the report is an error,
/// since it would otherwise be ignored in silence.
#[rustfmt::skip]
const FLAGS: [&str; 19] = [
    "cuda_11_2", "cudart_11_2", "cuda_11_7", "cuda_12_0", "cuda_12_2", "cuda_12_3", "cuda_12_4",
    "cuda_12_5", "cuda_12_8", "cuda_13_0", "have_cuda_fabric", "have_nvml_fabric_info",
    "have_cu_mem_retain_allocation_handle", "have_cu_mem_location_type_host", "have_gdrcopy",
    "have_gdr_copy_to_mapping", "have_gdr_pin_buffer_v2", "have_pidfd_getfd", BISTRO,
];
const BISTRO: &str = "bistro_hooks";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOOK_RUNTIME_REPORT");
    for flag in FLAGS {
        println!("cargo::rustc-check-cfg=cfg({flag})");
    }
    println!("cargo::rustc-check-cfg=cfg(generated_bindings)");
    println!("cargo::rerun-if-env-changed=HOOK_RUNTIME_BINDINGS");
    if std::env::var_os("HOOK_RUNTIME_BINDINGS").is_some() {
        println!("cargo::rustc-cfg=generated_bindings"); // rustc reads the variable itself.
    }
    let report = std::env::var_os("HOOK_RUNTIME_REPORT").filter(|path| !path.is_empty());
    let wanted = report.map_or_else(|| Ok(FLAGS.to_vec()), |path| wanted(Path::new(&path)));
    // Code can only be patched if the cargo feature has brought the decoder.
    let bistro = std::env::var_os("CARGO_FEATURE_BISTRO").is_some();
    match wanted {
        Ok(flags) => flags
            .iter()
            .filter(|&&flag| flag != BISTRO || bistro)
            .for_each(|flag| println!("cargo::rustc-cfg={flag}")),
        Err(message) => println!("cargo::error={message}"),
    }
}

/// The flags that the report at `path` switches on.
fn wanted(path: &Path) -> Result<Vec<&'static str>, String> {
    println!("cargo::rerun-if-changed={}", path.display());
    let fail = |what: String| format!("HOOK_RUNTIME_REPORT=`{}`: {what}", path.display());
    let text = std::fs::read(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
    let report: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| fail(format!("is not JSON: {error}")))?;
    let flags = report.get("cfg").and_then(|value| value.as_object());
    let flags = flags.ok_or_else(|| fail("has no top-level object `cfg`".into()))?;
    if let Some((name, _)) = flags.iter().find(|(name, _)| !FLAGS.contains(&name.as_str())) {
        return Err(fail(format!("`cfg` names `{name}`, which this hook-runtime does not know")));
    }
    if let Some((name, value)) = flags.iter().find(|(_, value)| !value.is_boolean()) {
        return Err(fail(format!("`cfg.{name}` is `{value}`, neither true nor false")));
    }
    Ok(FLAGS.into_iter().filter(|flag| flags.get(*flag).is_some_and(|v| v == true)).collect())
}
