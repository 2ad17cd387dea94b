//! config.h: one block per macro, its sentence above it.

use serde::Serialize;

use super::{
    Emitter, ON_STUB,
    quote::{c_comment, one_line_or_error},
    template,
};
use crate::{
    error::Error,
    model::{Define, DefineValue, Mode, Report},
};

pub(super) const EMITTER: Emitter = Emitter {
    id: "config-h",
    file: Some("config.h"),
    name: "config.h",
    doc: "The macros, as a C header in autoconf's form.",
    render,
};

#[derive(Serialize)]
struct Header {
    compat: bool,
    on_stub: bool,
    defines: Vec<Block>,
}

#[derive(Serialize)]
struct Block {
    comment: String,
    line: String,
}

fn render(report: &Report) -> Result<String, Error> {
    let header = Header {
        compat: report.mode == Mode::Compat,
        on_stub: report.on_stub() && report.answers.define(ON_STUB).is_none(),
        defines: report.answers.defines.iter().map(block).collect::<Result<_, _>>()?,
    };
    template::render("config.h.j2", include_str!("../../templates/config.h.j2"), header)
}

fn block(define: &Define) -> Result<Block, Error> {
    let name = &define.name;
    let line = match &define.value {
        DefineValue::Defined(text) => {
            one_line_or_error(name, text)?;
            format!("#define {name} {text}")
        }
        DefineValue::Undefined => format!("/* #undef {name} */"),
    };
    Ok(Block { comment: c_comment(&define.comment), line })
}
