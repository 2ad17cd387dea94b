//! Asking many questions at once gives the answers of asking one by one, and
//! takes few processes.

use camino::Utf8PathBuf;
use ucx_configure::{
    engine::{self, Outcome},
    host::fs,
    model::{CudaVersion, Verdict},
    request::{Location, ProbeMode, Variable, Want},
    toolkit::stub,
    ui::Silent,
};

use super::world::{World, copy, gdrcopy, toolkit, verdict};

/// The most processes for a clean toolkit without nvcc.
const MOST: usize = 6;

/// Both ways, and how many processes each took.
fn both(world: &mut World) -> [(Outcome, usize); 2] {
    [ProbeMode::Batch, ProbeMode::Single].map(|mode| {
        world.request.probe_mode = mode;
        world.request.cache = false;
        let host = world.host();
        let outcome = engine::configure(&world.request, &host, &mut Silent);
        (outcome, host.runner.started())
    })
}

/// The outcome, the same both ways, and the number of processes of a batch.
#[track_caller]
fn same(world: &mut World, what: &str) -> (Outcome, usize) {
    let [(batch, started), (single, one_by_one)] = both(world);
    let json = |outcome: &Outcome| serde_json::to_string_pretty(&outcome.report).unwrap();
    assert_eq!(json(&batch), json(&single), "{what}");
    assert_eq!(batch.error, single.error, "{what}");
    assert!(started <= one_by_one, "{what}: {started} processes instead of {one_by_one}");
    (batch, started)
}

#[test]
fn every_stub_level_is_answered_alike() {
    for version in stub::versions() {
        let mut world = World::on(&toolkit(&version));
        let (outcome, started) = same(&mut world, &version);
        assert!(outcome.report.ok, "{version}");
        // Before 11.7 a symbol and a header are missing, and each is asked alone.
        let version_number: CudaVersion = version.parse().unwrap();
        let more = if version_number < CudaVersion::new(11, 7) { 2 } else { 0 };
        assert!(started <= MOST + more, "{version}: {started} processes");
        world.gdrcopy(Want::At(Location::Dir(gdrcopy("2.5"))));
        let (outcome, started) = same(&mut world, &version);
        assert!(outcome.report.answers.conditional("HAVE_GDR_COPY").unwrap());
        assert!(started <= MOST + more + 1, "{version} with gdrcopy: {started} processes");
    }
}

#[test]
fn what_is_missing_is_missed_alike() {
    for file in [
        "include/cuda.h",
        "include/cuda_runtime.h",
        "include/cuda_runtime_api.h",
        "include/cudaTypedefs.h",
        "include/nvml.h",
        "lib64/stubs/libcuda.so",
        "lib64/libcudart.so",
        "lib64/libcudart_static.a",
        "lib64/stubs/libnvidia-ml.so",
    ] {
        let mut world = World::new();
        let dir = world.path("cuda");
        copy(&toolkit("12.5"), &dir, &[file]);
        world.cuda(Want::At(Location::Dir(dir)));
        let (outcome, _) = same(&mut world, file);
        assert!(outcome.report.checks.iter().any(|check| check.verdict == Verdict::No), "{file}");
    }
}

/// A toolkit with one file replaced.
fn with(file: &str, content: &str) -> (World, Utf8PathBuf) {
    let mut world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &[file]);
    fs::write_if_changed(&dir.join(file), content.as_bytes(), 0o644).unwrap();
    world.cuda(Want::At(Location::Dir(dir.clone())));
    (world, dir)
}

#[test]
fn what_is_broken_is_broken_alike() {
    let real = toolkit("12.5").join("lib64");
    for (file, content) in [
        ("include/cuda.h", "#error broken\n".to_owned()),
        ("include/nvml.h", "#include <no/such/file.h>\n".to_owned()),
        ("include/nvml.h", "int main(void);\nint f(void) { return 1 }\n".to_owned()),
        ("lib64/libcudart.so", String::new()),
        ("lib64/libcudart.so", "text\n".to_owned()),
        ("lib64/libcudart.so", format!("/* script */ INPUT ( {real}/libcudart.so.12 )\n")),
        ("lib64/libcudart.so", format!("GROUP ( AS_NEEDED ( {real}/stubs/libcuda.so ) )\n")),
        ("lib64/stubs/libcuda.so", "!<arch>\n".to_owned()),
    ] {
        let (mut world, _) = with(file, &content);
        same(&mut world, &format!("{file}: {content}"));
    }
}

#[test]
fn one_library_does_not_hide_what_another_lacks() {
    let mut world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["lib64/stubs/libcuda.so", "lib64/libcudart.so"]);
    let make = world.script(
        "make",
        &format!(
            "cd {dir}/lib64 && for f in cuDeviceGetUuid cuMemRetainAllocationHandle; do echo \"int $f(void){{return 0;}}\"; done > c.c
             echo 'int nvmlInit(void); int cudaGetDeviceCount(void){{return nvmlInit();}}' > r.c
             cc -shared -fPIC -o stubs/libcuda.so c.c && cc -shared -fPIC -o libcudart.so r.c"
        ),
    );
    let shell = ucx_configure::host::process::Invocation::new("sh").arg(make.as_str());
    let done = world.host().runner.run(shell);
    assert!(done.success(), "{}", done.stderr);
    world.cuda(Want::At(Location::Dir(dir)));
    let (outcome, _) = same(&mut world, "libcudart wants nvmlInit");
    assert_eq!(verdict(&outcome, "cuda.library.cudart"), Verdict::No);
}

/// Compilers, flags and linkers, and whether one run can answer declarations.
const WAYS: &[(&str, &str, &str, bool)] = &[
    ("gcc", "-O2 -flto -ffunction-sections", "-Wl,--gc-sections -Wl,--as-needed", true),
    ("gcc", "-Wfatal-errors -fmax-errors=1", "-fuse-ld=gold", true),
    ("gcc", "-Werror -Wall -Wextra", "", false),
    ("gcc", "", "-fuse-ld=lld", true),
    ("gcc", "", "-fuse-ld=mold", true),
    ("clang", "-Wall -Wextra", "", true),
    ("clang", "-ferror-limit=1", "-fuse-ld=lld", true),
];

#[test]
fn flags_and_compilers_are_no_matter() {
    let dir = toolkit("12.5");
    let is_there = |name: &str| camino::Utf8Path::new("/usr/bin").join(name).exists();
    let mut waived = 0;
    for &(cc, cflags, ldflags, batched) in WAYS {
        let linker = ldflags.strip_prefix("-fuse-ld=").map(|name| match name {
            "mold" => "mold".to_owned(),
            name => format!("ld.{name}"),
        });
        if !is_there(cc) || linker.is_some_and(|linker| !is_there(&linker)) {
            println!("waived: {cc} {ldflags}: it is not installed");
            waived += 1;
            continue;
        }
        let mut world = World::on(&dir);
        world.set(Variable::Cc, cc);
        world.set(Variable::Ldflags, ldflags);
        world.set(Variable::Cflags, cflags);
        let what = format!("{cc} {cflags} {ldflags}");
        let (outcome, started) = same(&mut world, &what);
        assert!(outcome.report.ok, "{what}: {:?}", outcome.error);
        assert_eq!(started <= MOST, batched, "{what}: {started} processes");
    }
    assert!(waived < WAYS.len(), "gcc is there");
}

#[test]
fn guesses_are_the_same() {
    let mut world = World::new();
    same(&mut world, "nothing there");
    let tree = toolkit("12.0");
    world.env("CUDA_HOME", tree.as_str());
    let (outcome, started) = same(&mut world, "CUDA_HOME");
    assert!(outcome.report.has_cuda());
    assert!(started <= MOST + 2, "{started} processes, the differences included");
    world.cuda(Want::No);
    let (outcome, started) = same(&mut world, "without CUDA");
    assert!(!outcome.report.has_cuda());
    assert!(started <= MOST, "{started}");
}
