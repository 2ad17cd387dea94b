//! A kept answer is the fresh answer, whatever changes in between.

use std::{thread, time::Duration};

use camino::Utf8PathBuf;
use ucx_configure::{
    engine,
    host::fs,
    model::Verdict,
    request::{Location, Variable, Want},
    ui::Silent,
};

use super::world::{World, copy, toolkit, verdict};

/// Longer than a clock's tick: what was written before is older than what
/// reads it.
const TICK: Duration = Duration::from_millis(25);

/// A toolkit of one's own, directories to put things into, a place for
/// answers.
struct Kept {
    world: World,
    tree: Utf8PathBuf,
}

impl Kept {
    fn new() -> Self {
        let mut world = World::new();
        let tree = world.path("cuda");
        copy(&toolkit("12.5"), &tree, &[]);
        for dir in ["early", "cache", "bin"] {
            fs::create_dir_all(&world.path(dir)).unwrap();
        }
        let cache = world.path("cache");
        world.env("XDG_CACHE_HOME", cache.as_str());
        let path = format!("{}:/usr/bin:/bin", world.path("bin"));
        world.env("PATH", &path);
        world.cuda(Want::At(Location::Dir(tree.clone())));
        Self { world, tree }
    }

    /// The report, the number of processes, and whether it says yes.
    fn run(&mut self, cache: bool) -> (String, usize) {
        thread::sleep(TICK);
        self.world.request.cache = cache;
        let host = self.world.host();
        let outcome = engine::configure(&self.world.request, &host, &mut Silent);
        let text = serde_json::to_string_pretty(&outcome.report).unwrap();
        (format!("{text}\n{:?}", outcome.error), host.runner.started())
    }

    /// Runs with kept answers and without; both have to say the same. Returns
    /// how many processes the first took.
    #[track_caller]
    fn same(&mut self, what: &str) -> usize {
        let (kept, started) = self.run(true);
        let (fresh, _) = self.run(false);
        assert_eq!(kept, fresh, "{what}");
        started
    }

    /// A run that finds everything as it was.
    #[track_caller]
    fn warm(&mut self, what: &str) {
        assert_eq!(self.same(what), 0, "{what}: nothing is started");
    }

    /// Replaces a file by a real one.
    fn write(&self, name: &str, content: &[u8]) {
        let path = self.world.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::remove_file_if_there(&path).unwrap();
        fs::write_if_changed(&path, content, 0o755).unwrap();
    }

    fn entries(&self) -> Vec<Utf8PathBuf> {
        let dir = self.world.path("cache/ucx-configure/answers");
        fs::names(&dir).iter().map(|name| dir.join(name)).collect()
    }
}

#[test]
fn a_second_run_starts_nothing() {
    let mut kept = Kept::new();
    assert!(kept.same("first") > 0);
    assert_eq!(kept.entries().len(), 1, "an entry is kept");
    kept.warm("second");
    kept.world.request.build_dir = kept.world.path("another build directory");
    kept.warm("another build directory");
    kept.world.env("SHLVL", "7");
    kept.warm("a variable of no matter");
}

#[test]
fn every_change_is_noticed() {
    let mut kept = Kept::new();
    kept.same("first");
    kept.warm("unchanged");
    let changed = |kept: &mut Kept, what: &str| {
        assert!(kept.same(what) > 0, "{what} is noticed");
        kept.warm(&format!("{what}, again"));
    };

    let header = fs::read_to_string(&kept.tree.join("include/nvml.h")).unwrap();
    kept.write("cuda/include/nvml.h", format!("{header}\n/* changed */\n").as_bytes());
    changed(&mut kept, "a header is changed");

    let early = kept.world.path("early");
    kept.world.env("CPATH", early.as_str());
    changed(&mut kept, "CPATH is set");
    kept.write("early/sys/syscall.h", b"#define SYS_mmap 9\n");
    let (report, _) = kept.run(false);
    assert!(report.contains("SYS_brk"), "the header counts");
    changed(&mut kept, "a header earlier in the path");

    fs::remove_file_if_there(&kept.world.path("early/sys/syscall.h")).unwrap();
    changed(&mut kept, "it is gone again");

    let library = fs::read(&kept.tree.join("lib64/libcudart.so")).unwrap();
    kept.write("cuda/lib64/libcudart.so", &library);
    changed(&mut kept, "a library is replaced");
    kept.write("cuda/lib64/libcudart_static.a.bak", b"");
    kept.warm("a file that nobody looks for");

    kept.write("bin/cc", b"#!/bin/sh\nexec /usr/bin/gcc \"$@\"\n");
    changed(&mut kept, "another compiler comes first");
    kept.write("bin/cc", b"#!/bin/sh\nexec /usr/bin/gcc -DX \"$@\"\n");
    changed(&mut kept, "the compiler is swapped");
    kept.write("bin/ld", b"#!/bin/sh\nexec /usr/bin/ld \"$@\"\n");
    changed(&mut kept, "another linker comes first");

    kept.world.set(Variable::Cflags, "-O1");
    changed(&mut kept, "CFLAGS are set");
}

#[test]
fn what_is_missing_may_come() {
    let mut kept = Kept::new();
    let library = kept.tree.join("lib64/libcudart_static.a");
    let content = fs::read(&library).unwrap();
    fs::remove_file_if_there(&library).unwrap();
    kept.same("without");
    kept.warm("without, again");
    kept.write("cuda/lib64/libcudart_static.a", &content);
    assert!(kept.same("it came") > 0);
    let outcome = engine::configure(&kept.world.request, &kept.world.host(), &mut Silent);
    assert_eq!(verdict(&outcome, "cuda.library.cudart_static"), Verdict::Yes);
}

#[test]
fn a_damaged_entry_is_replaced() {
    let mut kept = Kept::new();
    kept.same("first");
    let entry = kept.entries().pop().unwrap();
    let whole = fs::read(&entry).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&whole[..whole.len() / 2], b"", &flipped, b"\xff\xfe{}"] {
        kept.write(entry.strip_prefix(kept.world.path("")).unwrap().as_str(), damaged);
        assert!(kept.same("damaged") > 0);
        kept.warm("healed");
    }
}

#[test]
fn two_runs_at_once_do_no_harm() {
    let mut kept = Kept::new();
    thread::sleep(TICK);
    let (world, both) = (&kept.world, [0, 1]);
    thread::scope(|scope| {
        for _ in both {
            scope.spawn(|| {
                let outcome = engine::configure(&world.request, &world.host(), &mut Silent);
                assert!(outcome.report.ok);
            });
        }
    });
    kept.warm("after both");
    kept.run(false);
    assert_eq!(kept.entries().len(), 1);
}

#[test]
fn a_file_that_has_just_changed_is_not_trusted() {
    let mut kept = Kept::new();
    kept.world.request.cache = true;
    kept.write("cuda/include/gdrapi.h", b"");
    let header = fs::read(&kept.tree.join("include/nvml.h")).unwrap();
    kept.write("cuda/include/nvml.h", &header);
    let host = kept.world.host();
    engine::configure(&kept.world.request, &host, &mut Silent);
    // Whether it was kept depends on the clock; that it holds does not.
    kept.same("just changed");
}

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

#[test]
fn random_changes_never_make_a_kept_answer_wrong() {
    for seed in [1, 2, 3] {
        let mut dice = Dice(seed);
        let mut kept = Kept::new();
        let nvml = fs::read_to_string(&kept.tree.join("include/nvml.h")).unwrap();
        let cudart = fs::read(&kept.tree.join("lib64/libcudart.so")).unwrap();
        let early = kept.world.path("early");
        for step in 0..10 {
            let what = dice.roll(9);
            match what {
                0 => kept.write("cuda/include/nvml.h", nvml.as_bytes()),
                1 => kept.write("cuda/include/nvml.h", b"#error broken\n"),
                2 => drop(fs::remove_file_if_there(&kept.tree.join("include/nvml.h"))),
                3 => kept.write("cuda/lib64/libcudart.so", &cudart),
                4 => kept.write("cuda/lib64/libcudart.so", b"text"),
                5 => kept.world.env("CPATH", early.as_str()),
                6 => kept.write("early/sys/syscall.h", b"#define SYS_brk 1\n"),
                7 => drop(fs::remove_file_if_there(&early.join("sys/syscall.h"))),
                _ => kept.world.env("CPATH", ""),
            }
            kept.same(&format!("seed {seed}, step {step}: {what}"));
        }
    }
}
