//! The CUDA macro, step by step. The numbers are those of the contract in
//! the recorded facts.

use super::{
    ask::{self, About},
    made,
    shell::{Shell, attempt, inherited, is_dir, words},
};
use crate::{
    error::{Code, Error},
    host::process::{Invocation, is_executable},
    model::{Check, Component, Evidence, Family, MessageKind, Verdict},
    request::{Variable, Want},
};

/// The variables that are emptied before anything is asked, unless CUDA is
/// refused: then they keep what the environment put there.
const RESET: [&str; 6] = [
    "CUDA_CPPFLAGS",
    "CUDA_LDFLAGS",
    "CUDA_LIBS",
    "CUDART_LIBS",
    "CUDART_STATIC_LIBS",
    "NVML_LIBS",
];

/// What follows `-lcudart_static` in its question.
const STATIC_NEEDS: &str = "-ldl -lrt -lpthread";

/// The questions that decide about CUDA as a whole.
const DECIDING: [&str; 3] =
    ["cuda.header.cuda_runtime_h", "cuda.library.cuda", "cuda.library.cudart"];

const MNNVL: &str = "nvmlDeviceGetGpuFabricInfo function not found in libnvidia-ml. MNNVL \
                     support will be disabled.";

const fn about(id: &'static str, component: Component) -> About {
    About { id, component }
}

/// The whole macro.
pub(super) fn check(shell: &mut Shell<'_>) -> Result<(), Error> {
    let want = shell.request.cuda.value.clone();
    if want == Want::No {
        shell.decided("CUDA is refused: nothing is asked, and nothing is reset but NVCC.");
        shell.set("NVCC", "");
        shell.cuda.decided = true;
        return Ok(());
    }
    let (user_cppflags, user_ldflags) = (shell.cppflags.clone(), shell.ldflags.clone());
    shell.cuda.place = made::cuda(shell)?;
    let bin_dir = flags(shell);
    let mut happy = headers(shell)?;
    happy = happy && driver(shell)?;
    happy = happy && runtime(shell)?;
    if happy {
        optional(shell)?;
        happy = nvml(shell, want.is_demand())?;
    }
    fabric_info(shell)?;
    if happy {
        static_runtime(shell)?;
    }
    fabric_handle(shell)?;
    nvcc(shell, &bin_dir)?;
    shell.cppflags = user_cppflags;
    shell.ldflags = user_ldflags;
    verdict(shell, happy, want.is_demand())
}

/// Step 1: DIR becomes flags behind the user's own, whether or not it exists.
/// Returns the directory in which nvcc is looked for first; empty without DIR.
fn flags(shell: &mut Shell<'_>) -> String {
    for name in RESET {
        shell.set(name, "");
    }
    let mut bin_dir = String::new();
    if let Some(dir) = shell.cuda.place.dir.clone() {
        let suffix = if is_dir(&shell.cwd, &format!("{dir}/lib64")) { "64" } else { "" };
        let libraries = format!("{dir}/lib{suffix}");
        shell.set("CUDA_CPPFLAGS", format!("-I{dir}/include"));
        shell.set("CUDA_LDFLAGS", format!("-L{libraries} -L{libraries}/stubs"));
        bin_dir = format!("{dir}/bin");
    }
    shell.cppflags = format!("{} {}", shell.cppflags, shell.get("CUDA_CPPFLAGS"));
    shell.ldflags = format!("{} {}", shell.ldflags, shell.get("CUDA_LDFLAGS"));
    bin_dir
}

/// Step 2: the answer about the last header is the answer about both.
fn headers(shell: &mut Shell<'_>) -> Result<bool, Error> {
    let cuda_h = about("cuda.header.cuda_h", Component::CudaDriver);
    if ask::header(shell, cuda_h, "cuda.h")? {
        shell.define("HAVE_CUDA_H", "1");
    }
    let runtime_h = about("cuda.header.cuda_runtime_h", Component::CudaRuntime);
    let happy = ask::header(shell, runtime_h, "cuda_runtime.h")?;
    if happy {
        shell.define("HAVE_CUDA_RUNTIME_H", "1");
    }
    Ok(happy)
}

/// Step 3.
fn driver(shell: &mut Shell<'_>) -> Result<bool, Error> {
    let libcuda = about("cuda.library.cuda", Component::CudaDriver);
    let happy = ask::library(shell, libcuda, "cuda", "cuDeviceGetUuid", "")?;
    if happy {
        shell.set("CUDA_LIBS", " -lcuda");
    }
    Ok(happy)
}

/// Step 4.
fn runtime(shell: &mut Shell<'_>) -> Result<bool, Error> {
    let libcudart = about("cuda.library.cudart", Component::CudaRuntime);
    let happy = ask::library(shell, libcudart, "cudart", "cudaGetDeviceCount", "")?;
    if happy {
        shell.set("CUDART_LIBS", " -lcudart");
    }
    Ok(happy)
}

/// Steps 5 and 6: what may be there.
fn optional(shell: &mut Shell<'_>) -> Result<(), Error> {
    let retain = about("cuda.symbol.mem_retain_allocation_handle", Component::CudaDriver);
    if ask::library(shell, retain, "cuda", "cuMemRetainAllocationHandle", "")? {
        shell.define("HAVE_CUMEMRETAINALLOCATIONHANDLE", "1");
    }
    let host = about("cuda.declaration.location_type_host", Component::CudaDriver);
    let yes = ask::declaration(shell, host, "CU_MEM_LOCATION_TYPE_HOST", "cuda.h")?;
    shell.define("HAVE_DECL_CU_MEM_LOCATION_TYPE_HOST", digit(yes));
    Ok(())
}

/// Steps 7 and 8. Where CUDA was asked for, a "no" ends the run here, with
/// CPPFLAGS and LDFLAGS still holding CUDA's flags.
fn nvml(shell: &mut Shell<'_>, demanded: bool) -> Result<bool, Error> {
    let header = about("nvml.header.nvml_h", Component::Nvml);
    if !ask::header(shell, header, "nvml.h")? {
        let text = "nvml header not found. Install appropriate cuda-nvml-devel package";
        return stop_if(shell, demanded, Code::NvmlNotMet, text, &[header.id]);
    }
    shell.define("HAVE_NVML_H", "1");
    let library = about("nvml.library.nvidia_ml", Component::Nvml);
    if !ask::library(shell, library, "nvidia-ml", "nvmlInit", "")? {
        let text = "libnvidia-ml not found. Install appropriate nvidia-driver package";
        return stop_if(shell, demanded, Code::NvmlNotMet, text, &[library.id]);
    }
    shell.set("NVML_LIBS", " -lnvidia-ml");
    Ok(true)
}

/// Step 9: asked whatever came before; a question about the header, though
/// its notice speaks of the library.
fn fabric_info(shell: &mut Shell<'_>) -> Result<(), Error> {
    let info = about("nvml.declaration.gpu_fabric_info", Component::Nvml);
    let yes = ask::declaration(shell, info, "nvmlDeviceGetGpuFabricInfo", "nvml.h")?;
    shell.define("HAVE_DECL_NVMLDEVICEGETGPUFABRICINFO", digit(yes));
    if yes {
        shell.define("HAVE_NVML_FABRIC_INFO", "1");
    } else {
        shell.message(MessageKind::Note, "C0002", MNNVL);
    }
    Ok(())
}

/// Step 10.
fn static_runtime(shell: &mut Shell<'_>) -> Result<(), Error> {
    let library = about("cuda.library.cudart_static", Component::CudaRuntimeStatic);
    if ask::library(shell, library, "cudart_static", "cudaGetDeviceCount", STATIC_NEEDS)? {
        shell.set("CUDART_STATIC_LIBS", " -lcudart_static -lrt -ldl -lpthread");
        shell.cuda.static_runtime = true;
    }
    Ok(())
}

/// Step 11: asked whatever came before.
fn fabric_handle(shell: &mut Shell<'_>) -> Result<(), Error> {
    let fabric = about("cuda.declaration.handle_type_fabric", Component::CudaDriver);
    let yes = ask::declaration(shell, fabric, "CU_MEM_HANDLE_TYPE_FABRIC", "cuda.h")?;
    shell.define("HAVE_DECL_CU_MEM_HANDLE_TYPE_FABRIC", digit(yes));
    if yes {
        shell.define("HAVE_CUDA_FABRIC", "1");
    }
    Ok(())
}

/// Step 12: nvcc is looked for even if CUDA is "no", and compiles without
/// CUDA's flags; why it fails is told to nobody.
fn nvcc(shell: &mut Shell<'_>, bin_dir: &str) -> Result<(), Error> {
    shell.checking("for nvcc");
    let given = match shell.request.variable(Variable::Nvcc) {
        "" => inherited(shell.request, shell.host, "NVCC").unwrap_or_default(),
        given => given.to_owned(),
    };
    let path = inherited(shell.request, shell.host, "PATH").unwrap_or_default();
    let found = if given.starts_with('/') {
        Some(given)
    } else {
        search(shell, &format!("{bin_dir}:{path}"))
    };
    shell.answered(Check {
        id: "cuda.nvcc.path".to_owned(),
        label: "for nvcc".to_owned(),
        family: Family::Configure,
        component: Some(Component::Nvcc),
        verdict: if found.is_some() { Verdict::Yes } else { Verdict::No },
        detail: found.clone(),
        detail_is_answer: found.is_some(),
        evidence: Evidence::default(),
        preset: None,
        cached: false,
    });
    shell.set("NVCC", found.clone().unwrap_or_default());
    shell.cuda.nvcc_happy = Some(match found {
        Some(nvcc) => nvcc_compiles(shell, &nvcc)?,
        None => false,
    });
    Ok(())
}

/// The first nvcc along a search path, as the path that autoconf makes of it.
fn search(shell: &Shell<'_>, path: &str) -> Option<String> {
    elements(path).into_iter().find(|candidate| is_executable(&shell.cwd.join(candidate)))
}

/// The candidates along a search path; an empty element is the current
/// directory.
fn elements(path: &str) -> Vec<String> {
    // A separator at the end makes no element of its own in a shell.
    path.strip_suffix(':')
        .unwrap_or(path)
        .split(':')
        .map(|element| match element {
            "" => "./nvcc".to_owned(),
            element if element.ends_with('/') => format!("{element}nvcc"),
            element => format!("{element}/nvcc"),
        })
        .collect()
}

fn nvcc_compiles(shell: &mut Shell<'_>, nvcc: &str) -> Result<bool, Error> {
    const SOURCE: &str = "#include <cuda_runtime.h>\n";
    let label = format!("{nvcc} can compile");
    shell.checking(&label);
    // The variable is not quoted in the original: a blank splits it.
    let command = words(nvcc);
    let completed = shell.run_other("conftest.cu", SOURCE, |file, object| {
        let mut command = command.iter();
        Invocation::new(command.next().map_or("", String::as_str))
            .args(command)
            .args(["-c", file, "-o", object])
    })?;
    let yes = completed.success();
    let attempt = attempt("compile `#include <cuda_runtime.h>` with nvcc", &completed);
    shell.answered(Check {
        id: "cuda.nvcc".to_owned(),
        label,
        family: Family::Configure,
        component: Some(Component::Nvcc),
        verdict: if yes { Verdict::Yes } else { Verdict::No },
        detail: None,
        detail_is_answer: false,
        evidence: Evidence { attempts: vec![attempt], hint: None },
        preset: None,
        cached: false,
    });
    Ok(yes)
}

/// Step 13. What was found on the way to a "no" stays.
fn verdict(shell: &mut Shell<'_>, happy: bool, demanded: bool) -> Result<(), Error> {
    if happy {
        shell.define("HAVE_CUDA", "1");
    } else if !demanded {
        shell.message(MessageKind::Warning, "C0003", "CUDA not found");
    } else {
        let text = "CUDA support is requested but cuda packages cannot be found";
        stop_if(shell, true, Code::CudaNotMet, text, &DECIDING)?;
    }
    shell.cuda.happy = happy;
    shell.cuda.decided = true;
    Ok(())
}

/// Ends the run with the original's message, if `demanded`; else "no". The
/// original says nothing more; here the first "no" of the deciding questions
/// adds what it knows.
pub(super) fn stop_if(
    shell: &mut Shell<'_>,
    demanded: bool,
    code: Code,
    text: &str,
    deciding: &[&str],
) -> Result<bool, Error> {
    if !demanded {
        return Ok(false);
    }
    shell.message(MessageKind::Error, code.row().name, text);
    let mut error = Error::new(code, text);
    let no = |check: &&Check| deciding.contains(&check.id.as_str()) && !check.verdict.is_yes();
    if let Some(check) = shell.checks.iter().find(no) {
        for attempt in &check.evidence.attempts {
            error.command.clone_from(&attempt.command);
            error.said.clone_from(&attempt.said);
        }
        error = error.means(format!("UCX's configure stops here: checking {}... no.", check.label));
    }
    Err(error.hint("Run without `--compat` for the places that were looked at, and what to do."))
}

/// The value of a declaration's macro.
pub(super) const fn digit(yes: bool) -> &'static str {
    if yes { "1" } else { "0" }
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn a_search_path_falls_into_elements_as_in_a_shell() {
        assert_eq!(elements(":/a:/b/"), ["./nvcc", "/a/nvcc", "/b/nvcc"]);
        assert_eq!(elements("/d/bin:/a::.:"), ["/d/bin/nvcc", "/a/nvcc", "./nvcc", "./nvcc"]);
        assert_eq!(elements("d/bin:"), ["d/bin/nvcc"]);
    }
}
