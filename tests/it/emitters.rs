//! The files of a build directory at work: a compiler run by make and by sh,
//! with flags that lead through a directory that no shell would like.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use ucx_configure::{
    emit::EMITTERS,
    host::{
        fs::{self, Scratch},
        process::{Invocation, Runner},
    },
    model::Report,
};

/// A directory name with everything in it that has a meaning to somebody.
const HOSTILE: &str = "it's \"a\" $HOME $(dir); #1 100% a:b \\ `x` (~) & *";

/// A report whose flags lead into `dir`.
fn report(dir: &Utf8Path) -> Report {
    let words = |name: &str, words: &[String]| json!({ "name": name, "value": { "words": words }, "comment": "Flags." });
    serde_json::from_value(json!({
        "schema_version": 1,
        "tool": { "name": "ucx-configure", "version": "0" },
        "mode": "strict", "command_line": [], "ok": true,
        "install": { "dirs": {} },
        "compiler": null, "nvcc": null, "toolkit": null, "gdrcopy": null,
        "components": [], "features": [], "cfg": {}, "modules": [],
        "iodemo_cuda": false,
        "answers": {
            "defines": [
                { "name": "HAVE_CUDA", "value": { "defined": "1" }, "comment": "CUDA is there." },
                { "name": "HAVE_NVCC", "value": "undefined", "comment": "nvcc is there." },
            ],
            "substitutions": [
                words("CUDA_CPPFLAGS", &[format!("-I{dir}/include")]),
                words("CUDA_LDFLAGS", &[format!("-L{dir}/lib64")]),
                words("CUDA_LIBS", &["-lucx_configure_test".to_owned()]),
            ],
            "conditionals": [{ "name": "HAVE_CUDA", "value": true }],
        },
        "checks": [], "messages": [], "differences": [],
    }))
    .unwrap()
}

/// A toolkit in the awkward directory, and a build directory with our files.
fn world() -> (Scratch, Utf8PathBuf) {
    let scratch = Scratch::new(None).unwrap();
    let tree = scratch.path().join(HOSTILE);
    let build = scratch.path().join("build");
    let write = |path: Utf8PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write_if_changed(&path, text.as_bytes(), 0o644).unwrap();
    };
    write(tree.join("include/cuda.h"), "int answer(void);\n");
    write(tree.join("lib64/answer.c"), "int answer(void) { return 42; }\n");
    let compile = Invocation::new("cc")
        .args(["-shared", "-fPIC", "-o", "libucx_configure_test.so", "answer.c"])
        .cwd(tree.join("lib64"));
    assert!(Runner::new().run(compile).success());
    for emitter in EMITTERS {
        if let Some(name) = emitter.file {
            write(build.join(name), &(emitter.render)(&report(&tree)).unwrap());
        }
    }
    write(
        build.join("x.c"),
        "#include \"config.h\"\n#include <cuda.h>\n#ifndef HAVE_CUDA\n#error no CUDA\n#endif\n\
         #ifdef HAVE_NVCC\n#error nvcc\n#endif\nint main(void) { return answer() != 42; }\n",
    );
    (scratch, build)
}

/// Runs a command in the build directory; it has to make the program `x`.
fn makes_x(build: &Utf8Path, command: Invocation) {
    let done = Runner::new().run(command.cwd(build));
    assert!(done.success(), "{}: {}{}", done.invocation, done.stdout, done.stderr);
    assert!(build.join("x").is_file());
}

#[test]
fn make_builds_through_an_awkward_directory() {
    let (_scratch, build) = world();
    if !Runner::new().run(Invocation::new("make").arg("--version")).success() {
        println!("waived: make_builds_through_an_awkward_directory: there is no make");
        return;
    }
    let makefile = "include config.mk\nx: x.c\n\t$(CC) -I. $(CUDA_CPPFLAGS) $(CUDA_LDFLAGS) \
                    -Werror -o $@ x.c $(CUDA_LIBS)\n";
    fs::write_if_changed(&build.join("Makefile"), makefile.as_bytes(), 0o644).unwrap();
    makes_x(&build, Invocation::new("make").arg("-s"));
}

#[test]
fn sh_builds_through_an_awkward_directory() {
    let (_scratch, build) = world();
    let script = ". ./config.sh\nset -u\neval \"set -- $CUDA_CPPFLAGS $CUDA_LDFLAGS\"\n\
                  cc -I. \"$@\" -Werror -o x x.c $CUDA_LIBS\n\
                  test \"$HAVE_CUDA $UCX_CONFIGURE_ON_STUB\" = 'yes no'\n";
    makes_x(&build, Invocation::new("sh").args(["-ec", script]));
}

#[test]
fn every_output_can_be_made_again_from_the_json() {
    let (_scratch, build) = world();
    let text = fs::read_to_string(&build.join("ucx-configure.json")).unwrap();
    let report: Report = serde_json::from_str(&text).unwrap();
    for emitter in EMITTERS {
        if let Some(name) = emitter.file {
            let again = (emitter.render)(&report).unwrap();
            assert_eq!(again, fs::read_to_string(&build.join(name)).unwrap(), "{name}");
        }
    }
}
