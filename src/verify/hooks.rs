//! The hooked functions' names, from hook-runtime's own table, which is
//! embedded: there is no second list.

use crate::toolkit::embedded::HOOK_RUNTIME;

/// Where the table is, among the embedded sources.
const TABLE: &str = "hook-runtime/src/cuda/table.rs";

/// A hooked function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hook {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether it is of the runtime's interface, rather than the driver's.
    pub(super) of_runtime: bool,
}

/// All of them, in the table's order.
pub(super) fn all() -> Vec<Hook> {
    let table = HOOK_RUNTIME.iter().find(|(name, _)| *name == TABLE);
    let text = table.and_then(|(_, text)| std::str::from_utf8(text).ok()).unwrap_or_default();
    let read = |row: &'static str| {
        let of_runtime = row.starts_with("Runtime,");
        // A name may end in a `c` before its quote, so the blank counts.
        let name = row.lines().next()?.split(" c\"").nth(1)?.split('"').next()?;
        Some(Hook { name, of_runtime })
    };
    text.split("Hook::new(").skip(1).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let hooks = all();
        assert!(hooks.len() > 40, "{}", hooks.len());
        let has = |name, of_runtime| hooks.contains(&Hook { name, of_runtime });
        assert!(has("cuMemAlloc_v2", false) && has("cudaMalloc", true));
        assert!(hooks.iter().all(|hook| hook.name.starts_with("cuda") == hook.of_runtime));
    }
}
