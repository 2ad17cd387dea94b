//! The names that outputs carry, each with its comment, as tables; and the
//! draft that both engines fill in.
//!
//! What a name's value is, strict and compat decide for themselves. That every
//! name is there, once, in the same order, with the same comment, is decided
//! here.

use std::collections::BTreeMap;

use crate::model::{Answers, Conditional, Define, DefineValue, SubstValue, Substitution};

/// The macros of config.h, sorted by name, each with its comment.
pub const DEFINES: &[(&str, &str)] = &[
    ("HAVE_CUDA", "CUDA support is on."),
    ("HAVE_CUDA_FABRIC", "cuda.h knows fabric handles, CU_MEM_HANDLE_TYPE_FABRIC."),
    ("HAVE_CUDA_H", "There is a cuda.h that compiles."),
    ("HAVE_CUDA_RUNTIME_H", "There is a cuda_runtime.h that compiles."),
    ("HAVE_CUMEMRETAINALLOCATIONHANDLE", "libcuda exports cuMemRetainAllocationHandle."),
    (
        "HAVE_DECL_CU_MEM_HANDLE_TYPE_FABRIC",
        "1 if cuda.h declares CU_MEM_HANDLE_TYPE_FABRIC, 0 if not.",
    ),
    (
        "HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST",
        "1 if cuda.h declares CU_MEM_LOCATION_TYPE_HOST, 0 if not.",
    ),
    ("HAVE_DECL_GDR_COPY_TO_MAPPING", "1 if gdrapi.h declares gdr_copy_to_mapping, 0 if not."),
    ("HAVE_DECL_GDR_PIN_BUFFER_V2", "1 if gdrapi.h declares gdr_pin_buffer_v2, 0 if not."),
    (
        "HAVE_DECL_NVMLDEVICEGETGPUFABRICINFO",
        "1 if nvml.h declares nvmlDeviceGetGpuFabricInfo, 0 if not.",
    ),
    ("HAVE_DECL_SYS_BRK", "1 if sys/syscall.h declares SYS_brk, 0 if not."),
    ("HAVE_DECL_SYS_IPC", "1 if sys/syscall.h declares SYS_ipc, 0 if not."),
    ("HAVE_DECL_SYS_MADVISE", "1 if sys/syscall.h declares SYS_madvise, 0 if not."),
    ("HAVE_DECL_SYS_MMAP", "1 if sys/syscall.h declares SYS_mmap, 0 if not."),
    ("HAVE_DECL_SYS_MREMAP", "1 if sys/syscall.h declares SYS_mremap, 0 if not."),
    ("HAVE_DECL_SYS_MUNMAP", "1 if sys/syscall.h declares SYS_munmap, 0 if not."),
    ("HAVE_DECL_SYS_PIDFD_GETFD", "1 if sys/syscall.h declares SYS_pidfd_getfd, 0 if not."),
    ("HAVE_DECL_SYS_SHMAT", "1 if sys/syscall.h declares SYS_shmat, 0 if not."),
    ("HAVE_DECL_SYS_SHMDT", "1 if sys/syscall.h declares SYS_shmdt, 0 if not."),
    ("HAVE_GDRAPI_H", "There is a gdrapi.h that compiles."),
    ("HAVE_NVML_FABRIC_INFO", "nvml.h declares nvmlDeviceGetGpuFabricInfo."),
    ("HAVE_NVML_H", "There is an nvml.h that compiles."),
    ("UCM_BISTRO_HOOKS", "1 if hooks may be installed by binary instrumentation, 0 if not."),
    ("WITH_IODEMO_CUDA", "The io_demo program gets CUDA support."),
    ("ucm_MODULES", "Modules of UCM: memory hooks."),
    ("uct_MODULES", "Modules of UCT: transports."),
    ("uct_cuda_MODULES", "Modules below UCT's CUDA module."),
    ("ucx_perftest_MODULES", "Modules of the performance test."),
];

/// The substitutions, each with its comment.
pub const SUBSTITUTIONS: &[(&str, &str)] = &[
    ("CC", "The C compiler, wrapper and flags included."),
    ("CPPFLAGS", "The user's preprocessor flags."),
    ("CFLAGS", "The user's compiler flags."),
    ("LDFLAGS", "The user's linker flags."),
    ("LIBS", "The user's libraries."),
    ("NVCC", "The CUDA compiler."),
    ("NVCCFLAGS", "The user's flags for the CUDA compiler."),
    ("CUDA_CPPFLAGS", "Where CUDA's headers are."),
    ("CUDA_LDFLAGS", "Where CUDA's libraries are, stubs included: for linking only."),
    ("CUDA_LIBS", "The driver API."),
    ("CUDART_LIBS", "The runtime API, shared."),
    ("CUDART_STATIC_LIBS", "The runtime API, static, with what it needs."),
    ("NVML_LIBS", "NVML."),
    ("GDR_COPY_CPPFLAGS", "Where gdrcopy's header is."),
    ("GDR_COPY_LDFLAGS", "Where gdrcopy's library is."),
    ("GDR_COPY_LIBS", "gdrcopy."),
    ("build_modules", "Every module that is built, joined by colons."),
];

/// The automake conditionals.
pub const CONDITIONALS: &[&str] = &["HAVE_CUDA", "HAVE_CUDA_STATIC", "HAVE_NVCC", "HAVE_GDR_COPY"];

/// Answers in the making. What is not set stays undefined, empty or false.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    defines: BTreeMap<&'static str, String>,
    substitutions: BTreeMap<&'static str, SubstValue>,
    conditionals: BTreeMap<&'static str, bool>,
}

impl Draft {
    /// Defines a macro.
    pub fn define(&mut self, name: &'static str, value: impl Into<String>) {
        self.defines.insert(name, value.into());
    }

    /// Defines a macro as 1, or leaves it undefined.
    pub fn flag(&mut self, name: &'static str, on: bool) {
        if on {
            self.define(name, "1");
        }
    }

    /// Defines a macro as 1 or 0.
    pub fn number(&mut self, name: &'static str, on: bool) {
        self.define(name, if on { "1" } else { "0" });
    }

    /// Defines a macro as a string of module names: `":cuda"`.
    pub fn modules(&mut self, name: &'static str, modules: &[&str]) {
        let text: String = modules.iter().flat_map(|module| [":", module]).collect();
        self.define(name, format!("\"{text}\""));
    }

    /// Sets a substitution.
    pub fn substitute(&mut self, name: &'static str, value: SubstValue) {
        self.substitutions.insert(name, value);
    }

    /// Sets a substitution to words.
    pub fn words<S: Into<String>>(
        &mut self,
        name: &'static str,
        words: impl IntoIterator<Item = S>,
    ) {
        self.substitute(name, SubstValue::Words(words.into_iter().map(Into::into).collect()));
    }

    /// Sets a conditional.
    pub fn conditional(&mut self, name: &'static str, value: bool) {
        self.conditionals.insert(name, value);
    }

    /// Every name of the tables, with its value, in their order.
    pub fn finish(self) -> Answers {
        debug_assert!(self.unknown().is_none(), "{:?} is in no table", self.unknown());
        let define = |&(name, comment): &(&str, &str)| Define {
            name: name.to_owned(),
            value: self
                .defines
                .get(name)
                .map_or(DefineValue::Undefined, |value| DefineValue::Defined(value.clone())),
            comment: comment.to_owned(),
        };
        let substitution = |&(name, comment): &(&str, &str)| Substitution {
            name: name.to_owned(),
            value: self.substitutions.get(name).cloned().unwrap_or(SubstValue::Words(Vec::new())),
            comment: comment.to_owned(),
        };
        let conditional = |&name: &&str| Conditional {
            name: name.to_owned(),
            value: self.conditionals.get(name).copied().unwrap_or(false),
        };
        Answers {
            defines: DEFINES.iter().map(define).collect(),
            substitutions: SUBSTITUTIONS.iter().map(substitution).collect(),
            conditionals: CONDITIONALS.iter().map(conditional).collect(),
        }
    }

    /// A name that was set and is in no table: it would be lost.
    fn unknown(&self) -> Option<&'static str> {
        let in_table = |table: &[(&str, &str)], name: &str| table.iter().any(|row| row.0 == name);
        let define = self.defines.keys().find(|name| !in_table(DEFINES, name));
        let substitution = self.substitutions.keys().find(|name| !in_table(SUBSTITUTIONS, name));
        let conditional = self.conditionals.keys().find(|name| !CONDITIONALS.contains(name));
        define.or(substitution).or(conditional).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_unique_and_documented() {
        assert!(DEFINES.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, so unique");
        let mut names: Vec<_> = SUBSTITUTIONS.iter().map(|row| row.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUBSTITUTIONS.len());
        assert!(DEFINES.iter().chain(SUBSTITUTIONS).all(|row| row.1.ends_with('.')));
    }

    #[test]
    fn what_is_not_set_is_there_all_the_same() {
        let mut draft = Draft::default();
        draft.flag("HAVE_CUDA", true);
        draft.flag("HAVE_CUDA_H", false);
        draft.number("UCM_BISTRO_HOOKS", false);
        draft.modules("ucm_MODULES", &["cuda"]);
        draft.modules("uct_cuda_MODULES", &[]);
        draft.words("CUDA_LIBS", ["-lcuda"]);
        let answers = draft.finish();
        let value = |name: &str| answers.define(name).unwrap().value.clone();
        assert_eq!(value("HAVE_CUDA"), DefineValue::Defined("1".to_owned()));
        assert_eq!(value("HAVE_CUDA_H"), DefineValue::Undefined);
        assert_eq!(value("UCM_BISTRO_HOOKS"), DefineValue::Defined("0".to_owned()));
        assert_eq!(value("ucm_MODULES"), DefineValue::Defined("\":cuda\"".to_owned()));
        assert_eq!(value("uct_cuda_MODULES"), DefineValue::Defined("\"\"".to_owned()));
        assert_eq!(answers.conditional("HAVE_NVCC"), Some(false));
        assert_eq!(answers.substitutions.len(), SUBSTITUTIONS.len());
    }
}
