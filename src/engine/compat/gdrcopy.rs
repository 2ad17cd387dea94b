//! The gdrcopy macro, step by step.

use super::{
    ask::{self, About},
    cuda::{digit, stop_if},
    made,
    shell::{Shell, inherited, is_dir},
};
use crate::{
    error::{Code, Error},
    model::{Component, MessageKind},
    request::Want,
};

const fn about(id: &'static str) -> About {
    About { id, component: Component::GdrCopy }
}

/// The whole macro. It does not ask whether there is CUDA.
pub(super) fn check(shell: &mut Shell<'_>) -> Result<(), Error> {
    let want = shell.request.gdrcopy.value.clone();
    if want == Want::No {
        shell.message(MessageKind::Warning, "C0004", "GDR_COPY was explicitly disabled");
        shell.gdrcopy.decided = true;
        return Ok(());
    }
    shell.gdrcopy.place = made::gdrcopy(shell)?;
    let dir = shell.gdrcopy.place.dir.clone();
    let libdir = library_dir(shell, dir.as_deref());
    let (user_cppflags, user_ldflags) = (shell.cppflags.clone(), shell.ldflags.clone());
    // These come before the user's flags, where CUDA's come after.
    if let Some(dir) = &dir {
        shell.cppflags = format!("-I{dir}/include {user_cppflags}");
    }
    if let Some(libdir) = &libdir {
        shell.ldflags = format!("-L{libdir} {user_ldflags}");
    }
    let happy = questions(shell)?;
    shell.cppflags = user_cppflags;
    shell.ldflags = user_ldflags;
    if happy {
        // Without DIR the first of these names a directory of the root.
        shell.set("GDR_COPY_CPPFLAGS", format!("-I{}/include/ ", dir.unwrap_or_default()));
        shell.set("GDR_COPY_LDFLAGS", libdir.map(|dir| format!("-L{dir}")).unwrap_or_default());
        shell.set("GDR_COPY_LIBS", "-lgdrapi");
    } else if want.is_demand() {
        let text = "gdrcopy support is requested but gdrcopy packages cannot be found";
        let deciding = ["gdrcopy.header.gdrapi_h", "gdrcopy.library.gdrapi"];
        stop_if(shell, true, Code::GdrCopyNotMet, text, &deciding)?;
    } else {
        shell.message(MessageKind::Warning, "C0006", "GDR_COPY not found");
    }
    shell.gdrcopy.happy = happy;
    shell.gdrcopy.decided = true;
    Ok(())
}

/// Where libgdrapi is looked for: an option that was never declared, or a
/// variable of its shell name, beats DIR.
fn library_dir(shell: &Shell<'_>, dir: Option<&str>) -> Option<String> {
    let given = match &shell.request.gdrcopy_libdir {
        Some(option) => Some(option.value.to_string()),
        None => inherited(shell.request, shell.host, "with_gdrcopy_libdir"),
    };
    if let Some(given) = given.filter(|given| !given.is_empty() && given != "yes") {
        return Some(given);
    }
    let dir = dir?;
    let suffix = if is_dir(&shell.cwd, &format!("{dir}/lib64")) { "64" } else { "" };
    Some(format!("{dir}/lib{suffix}"))
}

/// Header, library, declaration. The library's name keeps the blank that the
/// original has behind it, which its progress line shows.
fn questions(shell: &mut Shell<'_>) -> Result<bool, Error> {
    if !ask::header(shell, about("gdrcopy.header.gdrapi_h"), "gdrapi.h")? {
        return Ok(false);
    }
    shell.define("HAVE_GDRAPI_H", "1");
    if !ask::library(shell, about("gdrcopy.library.gdrapi"), "gdrapi ", "gdr_pin_buffer", "")? {
        let text = "GDR_COPY runtime not detected. Disable.";
        shell.message(MessageKind::Warning, "C0005", text);
        return Ok(false);
    }
    let mapping = about("gdrcopy.declaration.copy_to_mapping");
    let yes = ask::declaration(shell, mapping, "gdr_copy_to_mapping", "gdrapi.h")?;
    shell.define("HAVE_DECL_GDR_COPY_TO_MAPPING", digit(yes));
    Ok(true)
}
