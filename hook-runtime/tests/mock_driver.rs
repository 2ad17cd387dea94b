//! The mock driver is what its README says: its own C programs pass on every
//! level and with every family of entry points.
#![expect(clippy::disallowed_methods, reason = "a test reads the fixtures by itself")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol};
use toml::{Table, Value};

#[path = "support/mock.rs"]
mod mock;
use mock::{Mock, applies, manifest, rows, shared_mock, word, words};

/// The levels whose libraries differ most; the others are compiled by the demo.
const LEVELS: [&str; 4] = ["10.2", "11.2", "12.5", "13.0"];

/// Runs one of the mock's own programs; true if the level has it.
fn run_test(mock: &Mock, row: &Table, more: &[(&str, &str)]) -> bool {
    if !applies(row, &mock.version) {
        return false;
    }
    let name = word(row, "name");
    let source = mock::sources().join("test").join(format!("{name}.c"));
    let libs = words(row, "libs");
    let libs: Vec<&str> = libs.iter().map(String::as_str).collect();
    // A shared mock's directory is a new one when a source changes.
    let program = mock.dir.join(format!("test-{name}"));
    if !program.exists() {
        mock.compile(&format!("test-{name}"), &[&source], &libs);
    }

    let mut command = mock.command(&program);
    if let Some(Value::Table(env)) = row.get("env") {
        command.envs(env.iter().map(|(key, value)| (key, value.as_str().unwrap())));
    }
    let output = command.envs(more.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.ends_with("passed\n"),
        "{name} on {}: {}\n{text}{}",
        mock.dir.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// Code addresses and opening bytes of the driver's entry points.
fn entry_points(mock: &Mock) -> BTreeMap<String, (u64, Vec<u8>)> {
    let data = std::fs::read(mock.libcuda()).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut found = BTreeMap::new();
    for symbol in file.dynamic_symbols().filter(|s| s.is_definition()) {
        let name = symbol.name().unwrap();
        let Some(section) = symbol.section_index().filter(|_| name.starts_with("cu")) else {
            continue;
        };
        let section = object::ObjectSection::data_range(
            &file.section_by_index(section).unwrap(),
            symbol.address(),
            24,
        );
        let bytes = section.unwrap().unwrap_or_default().to_vec();
        found.insert(name.to_owned(), (symbol.address(), bytes));
    }
    found
}

/// The names that a file takes from others.
fn imports(path: &Path) -> Vec<String> {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let undefined = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    undefined.map(|symbol| symbol.name().unwrap().to_owned()).collect()
}

#[test]
fn the_manifest_names_every_source() {
    let manifest = manifest();
    let mut named: Vec<String> = ["library", "program"]
        .iter()
        .flat_map(|table| rows(&manifest, table))
        .flat_map(|row| words(&row, "sources"))
        .collect();
    named.extend(rows(&manifest, "test").iter().map(|row| format!("test/{}.c", word(row, "name"))));

    let mut there = vec!["demo.c".to_owned()];
    for dir in ["driver", "runtime", "nvml", "gdrapi", "test"] {
        for entry in std::fs::read_dir(mock::sources().join(dir)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".c") || name.ends_with(".S") {
                there.push(format!("{dir}/{name}"));
            }
        }
    }
    for name in &there {
        assert!(named.contains(name), "{name} is in no row of the manifest");
    }
    for name in &named {
        assert!(there.contains(name), "{name} is named, but is not there");
    }
}

#[test]
fn programs_pass_on_every_level() {
    let manifest = manifest();
    for level in LEVELS {
        let mock = shared_mock(level, mock::DEFAULT_PROLOGUE);
        let ran = rows(&manifest, "test").iter().filter(|row| run_test(&mock, row, &[])).count();
        let expected = match level {
            "10.2" => 9,
            "11.2" => 10,
            _ => 11,
        };
        assert_eq!(ran, expected, "{level}");
    }
}

#[test]
fn the_static_runtime_works_like_the_shared_one() {
    let mock = shared_mock("12.5", mock::DEFAULT_PROLOGUE);
    let source = mock::sources().join("test/runtime.c");
    let options = ["-lcudart_static", "-lcuda", "-ldl", "-lpthread"];
    let program = mock.compile("test-runtime-static", &[&source], &options);
    let imports = imports(&program);
    assert!(imports.iter().all(|name| !name.starts_with("cuda")), "{imports:?}");
    let output = mock.command(&program).output().unwrap();
    assert!(output.status.success() && output.stdout.ends_with(b"passed\n"), "{output:?}");
}

#[test]
fn older_levels_lack_newer_names() {
    let has = |level: &str, name: &str| {
        entry_points(&shared_mock(level, mock::DEFAULT_PROLOGUE)).contains_key(name)
    };
    for (name, first) in [
        ("cuMemAlloc_v2", "10.2"),
        ("cuMemAllocAsync_ptsz", "11.2"),
        ("cuGetProcAddress", "12.5"),
        ("cuCtxCreate_v4", "12.5"),
        ("cuMemcpyBatchAsync_v2", "13.0"),
    ] {
        for level in LEVELS {
            let expected = mock::code(level) >= mock::code(first);
            assert_eq!(has(level, name), expected, "{name} in {level}");
        }
    }
    assert!(LEVELS.iter().all(|level| !has(level, "cuMemFreeHost_v2")));
}

/// What every entry point of a family opens with; `None` stands for any byte.
#[cfg(target_arch = "x86_64")]
fn opening(family: &str) -> Vec<Option<u8>> {
    let text = match family {
        "470" => "81 3d .. .. .. .. 00 ba 1c 32 74 14 ff 25 .. .. .. .. 0f 1f 40 00 66 2e",
        "535" | "550" => "81 3d .. .. .. .. 00 ba 1c 32 74 0c ff 25 .. .. .. .. 66 0f 1f 44 00 00",
        "580" => "55 48 89 e5 41 54 48 83 ec 08 81 3d .. .. .. .. 00 ba 1c 32 0f 84 .. ..",
        "endbr" => "f3 0f 1e fa 55 48 89 e5",
        "plain" => "",
        other => panic!("`{other}` is no family that the test knows"),
    };
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn programs_pass_with_every_prologue() {
    let manifest = manifest();
    for family in words(manifest["prologue"].as_table().unwrap(), "families") {
        let mock = shared_mock("12.5", &family);
        let entries = entry_points(&mock);
        assert!(entries.len() > 190, "{} entry points", entries.len());
        for (name, (address, bytes)) in &entries {
            assert_eq!(address % 16, 0, "{name} of {family} at {address:#x}");
            for (at, expected) in opening(&family).iter().enumerate() {
                let Some(expected) = expected else { continue };
                assert_eq!(bytes.get(at), Some(expected), "{name} of {family}, byte {at}");
            }
        }
        for row in rows(&manifest, "test").iter().filter(|row| row.contains_key("prologues")) {
            assert!(run_test(&mock, row, &[]));
            assert!(run_test(&mock, row, &[("MOCK_CUDA_SLOW_PATH", "1")]));
        }
    }
}

#[test]
fn the_driver_calls_itself_through_no_slot() {
    let imports = imports(&shared_mock("12.5", mock::DEFAULT_PROLOGUE).libcuda());
    assert!(imports.len() > 10);
    assert!(imports.iter().all(|name| !name.starts_with("cu")), "{imports:?}");
}

#[test]
fn the_demo_says_what_it_does() {
    let demo = mock::sources().join("demo.c");
    for version in words(manifest()["package"]["cuda"].as_table().unwrap(), "versions") {
        // Of the levels that nothing else uses, compiling is proof enough.
        if !LEVELS.contains(&version.as_str()) {
            continue;
        }
        let mock = shared_mock(&version, mock::DEFAULT_PROLOGUE);
        let program = mock.compile("demo", &[Path::new(&demo)], &["-lcudart", "-lcuda"]);
        let output = mock.command(&program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{version}: {text}");
        let took = text.lines().filter(|line| line.contains(" -> 0x")).count();
        let gave = text.lines().filter(|line| line.contains("Free") || line.contains("Unmap"));
        assert_eq!(took, gave.count(), "{text}");
        assert_eq!(took, if version == "10.2" { 8 } else { 12 }, "{text}");
        assert!(text.ends_with("demo: done, 0 failure(s)\n"), "{text}");
    }
}
