//! The lines that the original's configure ends with, as far as they concern
//! CUDA and gdrcopy.

use crate::model::{DefineValue, Report};

/// The closing lines, without the prefix `configure: `.
pub fn summary_lines(report: &Report) -> Vec<String> {
    let iodemo = if report.iodemo_cuda { "yes" } else { "no" };
    let mut lines = vec![format!("io_demo CUDA support:   {iodemo}")];
    for (title, name) in [
        ("UCT", "uct_MODULES"),
        ("CUDA", "uct_cuda_MODULES"),
        ("UCM", "ucm_MODULES"),
        ("Perf", "ucx_perftest_MODULES"),
    ] {
        lines.push(format!("{title:>12} modules:   < {}>", listed(report, name)));
    }
    lines
}

/// A module string as words, each with a blank behind it.
fn listed(report: &Report, name: &str) -> String {
    let value = match report.answers.define(name).map(|define| &define.value) {
        Some(DefineValue::Defined(value)) => value.trim_matches('"'),
        Some(DefineValue::Undefined) | None => "",
    };
    value.split(':').filter(|word| !word.is_empty()).map(|word| format!("{word} ")).collect()
}
