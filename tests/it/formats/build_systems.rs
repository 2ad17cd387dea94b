//! pkg-config, CMake, Meson and Cargo build a program that links with it all.

use super::{PROGRAM, Sandbox, emit, has_no_run_path, sh};

pub(super) fn pkg_config(sandbox: &Sandbox) {
    emit(sandbox, "pkg-config");
    assert_eq!(sandbox.names("work/f"), ["gdrapi.pc", "ucx-cuda.pc", "ucx-gdrcopy.pc"]);
    sandbox.write("work/x.c", PROGRAM);
    sh(
        sandbox,
        "export PKG_CONFIG_PATH=$PWD/f; pkg-config --validate ucx-cuda ucx-gdrcopy gdrapi && \
         eval \"cc x.c $(pkg-config --cflags --libs ucx-gdrcopy) -o x\"",
    );
    has_no_run_path(sandbox, "x");
    let query = |what: &str| sh(sandbox, &format!("PKG_CONFIG_PATH=$PWD/f pkg-config {what}"));
    assert_eq!(query("--modversion gdrapi").trim(), "2.5");
    assert_eq!(query("--variable=moduledir ucx-cuda").trim(), "/opt/ucx/lib/ucx");
    assert!(query("--libs --static ucx-cuda").contains("-lcudart_static"));
    assert!(query("--libs gdrapi").contains("-lgdrapi"));
    // A blank in the prefix parts no word.
    let stub = "--with-cuda=stub:12.5";
    sandbox.run(["-B", "c", "-q", stub, "--no-build", "--prefix=/opt/my ucx"]).must_end(0);
    sandbox.run(["emit", "pkg-config:ucx-cuda", "-B", "c", "-o", "g"]).must_end(0);
    let words = "export PKG_CONFIG_PATH=$PWD/g; eval \"set -- $(pkg-config --cflags ucx-cuda)\"; \
                 printf '%s\\n' \"$@\"";
    let words = sh(sandbox, words);
    assert!(words.lines().any(|word| word == "-I/opt/my ucx/include"), "{words}");
}

pub(super) fn cmake(sandbox: &Sandbox) {
    emit(sandbox, "cmake");
    sandbox.write("work/p/x.c", PROGRAM);
    sandbox.write(
        "work/p/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.21)\nproject(p C)\nfind_package(ucx-cuda CONFIG REQUIRED)\n\
         if(NOT ucx-cuda_ON_STUB OR NOT ucx-cuda_HAVE_CUDA OR NOT HAVE_GDR_COPY)\n  message(FATAL_ERROR wrong)\nendif()\n\
         add_executable(x x.c)\n\
         target_link_libraries(x PRIVATE ucx-cuda::driver ucx-cuda::cudart ucx-cuda::nvml ucx-cuda::gdrapi)\n\
         if(ucx-cuda_HAVE_CUDA_STATIC AND NOT TARGET ucx-cuda::cudart_static)\n  message(FATAL_ERROR static)\nendif()\n",
    );
    sh(
        sandbox,
        "cmake -C f/ucx-cuda-cache.cmake -S p -B o -Ducx-cuda_DIR=$PWD/f && cmake --build o",
    );
    has_no_run_path(sandbox, "o/x");
    let cache = sandbox.read("work/o/CMakeCache.txt");
    assert!(cache.contains("CMAKE_INSTALL_PREFIX:PATH=/opt/ucx"), "{cache}");
    assert!(cache.contains("CUDAToolkit_ROOT:PATH="), "{cache}");
}

pub(super) fn meson(sandbox: &Sandbox) {
    emit(sandbox, "meson");
    sandbox.write("work/p/x.c", PROGRAM);
    sandbox.write(
        "work/p/meson.build",
        "project('p', 'c')\nassert(meson.get_external_property('have_cuda'))\n\
         assert(get_option('prefix') == '/opt/ucx')\n\
         args = meson.get_external_property('ucx_cuda_args') + meson.get_external_property('ucx_gdrcopy_args')\n\
         link = meson.get_external_property('ucx_cuda_link_args') + meson.get_external_property('ucx_gdrcopy_link_args')\n\
         executable('x', 'x.c', c_args: args, link_args: link)\n",
    );
    sh(sandbox, "meson setup --native-file f/ucx-cuda.ini o p && ninja -C o");
    has_no_run_path(sandbox, "o/x");
}

pub(super) fn cargo(sandbox: &Sandbox) {
    emit(sandbox, "cargo");
    sandbox.write(
        "work/p/Cargo.toml",
        "[package]\nname = \"p\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    sandbox.write(
        "work/p/build.rs",
        "fn main() {\n    print!(\"{}\", include_str!(\"../f/ucx-cuda.cargo\"));\n}\n",
    );
    // A cfg that was not declared would be a warning, which is an error here.
    sandbox.write(
        "work/p/src/main.rs",
        "#![deny(warnings)]\n#[cfg(not(cuda_12_5))]\ncompile_error!(\"12.5\");\n#[cfg(cuda_13_0)]\ncompile_error!(\"13.0\");\n\
         unsafe extern \"C\" {\n    fn cuInit(flags: u32) -> i32;\n}\nfn main() {\n    std::process::exit(unsafe { cuInit(0) });\n}\n",
    );
    sh(sandbox, "cd p && \"$CARGO\" build --offline --quiet --target-dir ../o");
    has_no_run_path(sandbox, "o/debug/p");
}
