//! What outputs are rendered from: defines, substitutions, conditionals.
//!
//! On a "no", nothing of CUDA stays set, whatever had been found until then.

use super::{
    found::{Found, Installation},
    ground::User,
};
use crate::{
    engine::answers::{DEFINES, Draft},
    model::{Answers, Mode},
    request::Request,
};

/// The answers of a run.
pub(super) fn answers(
    request: &Request,
    user: &User,
    command: &[String],
    found: &Found,
    bistro: bool,
) -> Answers {
    let mut draft = Draft::default();
    let cuda = found.cuda.as_ref().filter(|_| found.cuda_on());
    let gdrcopy = found.gdrcopy.as_ref().filter(|_| found.gdrcopy_on());
    let yes = |installation: Option<&Installation>, id: &str| {
        installation.is_some_and(|installation| installation.yes(id))
    };
    draft.flag("HAVE_CUDA", cuda.is_some());
    for (name, id) in [
        ("HAVE_CUDA_H", "cuda.header.cuda_h"),
        ("HAVE_CUDA_RUNTIME_H", "cuda.header.cuda_runtime_h"),
        ("HAVE_NVML_H", "nvml.header.nvml_h"),
        ("HAVE_CUMEMRETAINALLOCATIONHANDLE", "cuda.symbol.mem_retain_allocation_handle"),
        ("HAVE_NVML_FABRIC_INFO", "nvml.declaration.gpu_fabric_info"),
        ("HAVE_CUDA_FABRIC", "cuda.declaration.handle_type_fabric"),
    ] {
        draft.flag(name, yes(cuda, id));
    }
    for (name, id) in [
        ("HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST", "cuda.declaration.location_type_host"),
        ("HAVE_DECL_CU_MEM_HANDLE_TYPE_FABRIC", "cuda.declaration.handle_type_fabric"),
        ("HAVE_DECL_NVMLDEVICEGETGPUFABRICINFO", "nvml.declaration.gpu_fabric_info"),
    ] {
        draft.number(name, yes(cuda, id));
    }
    draft.flag("HAVE_GDRAPI_H", yes(gdrcopy, "gdrcopy.header.gdrapi_h"));
    for (name, id) in [
        ("HAVE_DECL_GDR_COPY_TO_MAPPING", "gdrcopy.declaration.copy_to_mapping"),
        ("HAVE_DECL_GDR_PIN_BUFFER_V2", "gdrcopy.declaration.pin_buffer_v2"),
    ] {
        draft.number(name, yes(gdrcopy, id));
    }
    for (name, _) in DEFINES {
        if let Some(call) = name.strip_prefix("HAVE_DECL_SYS_") {
            draft.number(name, found.system_yes(&format!("system.sys_{}", call.to_lowercase())));
        }
    }
    draft.number("UCM_BISTRO_HOOKS", bistro);
    draft.flag("WITH_IODEMO_CUDA", request.iodemo_cuda && cuda.is_some());
    module_lists(&mut draft, cuda.is_some(), gdrcopy.is_some());
    substitutions(&mut draft, request, user, command, found);
    draft.conditional("HAVE_CUDA", cuda.is_some());
    draft.conditional("HAVE_CUDA_STATIC", yes(cuda, "cuda.library.cudart_static"));
    draft.conditional("HAVE_NVCC", found.nvcc_on());
    draft.conditional("HAVE_GDR_COPY", gdrcopy.is_some());
    draft.finish()
}

fn module_lists(draft: &mut Draft, cuda: bool, gdrcopy: bool) {
    let cuda: &[&str] = if cuda { &["cuda"] } else { &[] };
    let gdrcopy: &[&str] = if gdrcopy { &["gdrcopy"] } else { &[] };
    draft.modules("ucm_MODULES", cuda);
    draft.modules("uct_MODULES", cuda);
    draft.modules("uct_cuda_MODULES", gdrcopy);
    draft.modules("ucx_perftest_MODULES", cuda);
    let all: String =
        [cuda, gdrcopy, cuda, cuda].concat().iter().flat_map(|name| [":", name]).collect();
    if !all.is_empty() {
        draft.words("build_modules", [all]);
    }
}

fn substitutions(
    draft: &mut Draft,
    request: &Request,
    user: &User,
    command: &[String],
    found: &Found,
) {
    draft.words("CC", command.iter().cloned());
    draft.words("CPPFLAGS", user.cppflags.iter().cloned());
    draft.words("CFLAGS", user.cflags.iter().cloned());
    draft.words("LDFLAGS", user.ldflags.iter().cloned());
    draft.words("LIBS", user.libs.iter().cloned());
    draft.words("NVCCFLAGS", user.nvccflags.iter().cloned());
    if let Some(cuda) = found.cuda.as_ref().filter(|_| found.cuda_on()) {
        draft.words("CUDA_CPPFLAGS", cuda.layout.cppflags());
        draft.words("CUDA_LDFLAGS", cuda.layout.ldflags());
        draft.words("CUDA_LIBS", [cuda.layout.link_word("cuda")]);
        draft.words("CUDART_LIBS", [cuda.layout.link_word("cudart")]);
        draft.words("NVML_LIBS", [cuda.layout.link_word("nvidia-ml")]);
        if cuda.yes("cuda.library.cudart_static") {
            let libraries = ["-lcudart_static", "-lrt", "-ldl", "-lpthread"];
            draft.words("CUDART_STATIC_LIBS", libraries);
        }
        let nvcc = cuda.answer("cuda.nvcc").and_then(|answer| answer.nvcc.as_ref());
        if let Some(nvcc) = nvcc {
            draft.words("NVCC", nvcc.command.iter().cloned());
        }
    }
    if let Some(tree) = found.gdrcopy.as_ref().filter(|_| found.gdrcopy_on()) {
        draft.words("GDR_COPY_CPPFLAGS", tree.layout.cppflags());
        draft.words("GDR_COPY_LDFLAGS", tree.layout.ldflags());
        draft.words("GDR_COPY_LIBS", [tree.layout.link_word("gdrapi")]);
    }
    debug_assert_eq!(request.mode, Mode::Strict);
}
