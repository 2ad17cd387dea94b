#!/usr/bin/env python3
"""The hook engine on a real GPU: one run, one table.

    python3 tests/gpu/hooks.py MODULE_DIR [UCX_DIR ...]

MODULE_DIR holds libucm_cuda.so.0 as ucx-configure builds it. Each UCX_DIR is a
real UCX (`lib/libucs.so.0`, `lib/ucx/`), named by its version, for comparison
in the same run. nvcc, a driver and a GPU are needed; PyTorch where it is
installed. The exit code is 1 if any event is wrong; times are reported, not
judged.
"""

import collections
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent.parent / "hook-runtime/src/cuda/table.rs"
failures = []
faults = []  # Of others.
waived = []


def run(command, **more):
    env = dict(os.environ, **more.pop("env", {}))
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=180, **more)


def must(command, **more):
    done = run(command, **more)
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    return done


def heading(text):
    print(f"\n## {text}\n", flush=True)


def build(scratch):
    nvcc = next((p for p in ["/usr/local/cuda/bin/nvcc", "nvcc"] if os.path.exists(p)), "nvcc")
    programs = {}
    for runtime in ["static", "shared"]:
        for stream in ["legacy", "per-thread"]:
            out = scratch / f"ops-{runtime}-{stream}"
            must([nvcc, "-w", "-cudart", runtime, f"--default-stream={stream}", "-o", out,
                  HERE / "ops.cu", "-lcuda"])
            programs[runtime, stream] = out
    for name in ["cost", "entries"]:
        must([nvcc, "-w", "-cudart", "shared", "-o", scratch / name, HERE / f"{name}.c",
              "-lcuda", "-lcudart", "-lpthread", "-ldl"])
    return programs


def entries(scratch):
    heading("Entry points: dlsym against cuGetProcAddress")
    names = sorted(set(re.findall(r'Hook::new\(Driver, \w+, "[^"]*", c"(\w+)"', TABLE.read_text())))
    done = must([scratch / "entries"], input="\n".join(names))
    print("| function | dlsym = cuGetProcAddress (default, legacy, per-thread) | aligned | first 32 bytes |")
    print("|---|---|---|---|")
    for line in done.stdout.splitlines():
        name, *rest = line.split()
        field = dict(part.split("=", 1) for part in rest)
        same = ["same" if field[f"proc{f}"] == field["dlsym"] else
                "absent" if field[f"proc{f}"] == "(nil)" else "other" for f in range(3)]
        if field["dlsym"] == "(nil)":
            print(f"| {name} | absent | | |")
        else:
            print(f"| {name} | {', '.join(same)} | {'yes' if field['align'] == '0' else 'no'} | `{field['bytes']}` |")


def parse(text):
    """Events as (kind, address, size); host memory under its own kinds."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if fields and fields[0] in ("ALLOC", "FREE", "HOST-ALLOC", "HOST-FREE"):
            kind = fields[0]
            if len(fields) > 5 and fields[3] == "host":
                kind = "HOST-" + kind
            found.append((kind, int(fields[1], 16), fields[2]))
    return found


def compare(expected, seen):
    """What is missing and what is too much; a static runtime under reloc alone is told apart by the caller."""
    want, have = collections.Counter(expected), collections.Counter(seen)
    return list((want - have).elements()), list((have - want).elements())


def events(programs, module, scratch):
    heading("Events against what the program did")
    print("| runtime | default stream | mode | expected | seen | missing | surplus | cudaGetSymbolAddress works |")
    print("|---|---|---|---|---|---|---|---|")
    for (runtime, stream), program in programs.items():
        for mode in ["bistro", "reloc", "bistro,reloc"]:
            trace = scratch / "trace"
            trace.unlink(missing_ok=True)
            done = run([program], env={"LD_PRELOAD": str(module), "HOOK_RUNTIME_TRACE": str(trace),
                                       "UCX_MEM_CUDA_HOOK_MODE": mode})
            expected = parse(done.stdout)
            seen = parse(trace.read_text()) if trace.exists() else []
            if runtime == "static" and mode == "reloc":
                # What the runtime does reaches the driver through no slot: only
                # the program's own driver calls can be seen.
                names = [line for line in done.stdout.splitlines() if " cuda" not in line]
                expected = parse("\n".join(names))
            missing, surplus = compare(expected, seen)
            # What the program leaves allocated is freed when it ends, seen or not.
            left = collections.Counter(("FREE", a, n) for k, a, n in expected if k == "ALLOC")
            left.subtract(e for e in expected if e[0] == "FREE")
            surplus = [e for e in surplus if left[e] < 1]
            ok = done.returncode == 0
            print(f"| {runtime} | {stream} | {mode} | {len(expected)} | {len(seen)} | {len(missing)} "
                  f"| {len(surplus)} | {'yes' if ok else 'NO'} |")
            if not ok:
                print("   ", done.stderr.strip()[-500:])
            for event in missing:
                print(f"    missing {event[0]} {event[1]:#x} {event[2]}")
            for event in surplus:
                print(f"    surplus {event[0]} {event[1]:#x} {event[2]}")
            if missing or surplus or not ok:
                failures.append(f"events {runtime} {stream} {mode}")


PYTORCH = """
import os, time, torch
a = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
b = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
segments = torch.cuda.memory_snapshot()
for s in segments: print("SEGMENT", hex(s["address"]), s["total_size"])
del a, b
torch.cuda.synchronize(); torch.cuda.empty_cache()
print("DONE")
"""


def pytorch(module, scratch):
    heading("PyTorch")
    if run([sys.executable, "-c", "import torch"]).returncode != 0:
        waived.append("pytorch: it is not installed")
        return
    for name, conf in [("cudaMalloc", ""), ("expandable segments", "expandable_segments:True")]:
        for mode in ["bistro", "reloc", "bistro,reloc"]:
            trace = scratch / "torch-trace"
            trace.unlink(missing_ok=True)
            env = {"LD_PRELOAD": str(module), "HOOK_RUNTIME_TRACE": str(trace),
                   "UCX_MEM_CUDA_HOOK_MODE": mode, "PYTORCH_CUDA_ALLOC_CONF": conf}
            done = run([sys.executable, "-c", PYTORCH], env=env)
            seen = parse(trace.read_text()) if trace.exists() else []
            live, freed = {}, set()
            for kind, address, size in seen:
                if kind == "ALLOC":
                    live[address] = int(size) if size != "?" else 0
                elif kind == "FREE":
                    freed.add(address)
            covered = total = returned = 0
            for line in done.stdout.splitlines():
                if line.startswith("SEGMENT"):
                    _, address, size = line.split()
                    address, size, total = int(address, 16), int(size), total + 1
                    at = address
                    while at in live and live[at] and at < address + size:
                        at += live[at]
                    covered += at >= address + size
                    returned += address in freed
            ok = "DONE" in done.stdout
            print(f"- {name}, {mode}: {total} segments, {covered} covered by ALLOC events, {returned} freed "
                  f"and seen, {len(seen)} events" + ("" if ok else f"; FAILED: {done.stderr.strip()[-300:]}"))
            if mode != "reloc" and (not ok or covered < total or returned < total):
                failures.append(f"pytorch {name} {mode}")
    timed = run([sys.executable, "-c", f"""
import ctypes, time, torch
torch.empty(1, device="cuda")
lib = ctypes.CDLL({str(module)!r})
t = time.perf_counter(); r = lib.hook_runtime_install(); t = time.perf_counter() - t
print(f"install_in_pytorch_us {{t * 1e6:.0f}} result {{r}}")
"""])
    print("-", timed.stdout.strip() or timed.stderr.strip()[-300:])


def cost(module, ucx, scratch):
    heading("Cost, medians; installing is the best and the median of 7 runs")
    subjects = [("no hooks", ["none"]), ("ours", ["ours", str(module)])]
    for directory in ucx:
        subjects.append((f"UCX {directory.name}", ["ucx", str(directory / "libucx/lib")]))
    print("| who | mode | load idle, us | install idle, us | install with 64 busy threads, us | added to cuMemFree(0), ns "
          "| added to AllocAsync + FreeAsync, ns | the same, slots and pointers in turn, ns "
          "| events per cudaMalloc + cudaFree |")
    print("|---|---|---|---|---|---|---|---|---|")
    for who, args in subjects:
        for mode in ["bistro,reloc", "bistro", "reloc"] if who != "no hooks" else ["none"]:
            values = collections.defaultdict(list)
            for busy in [False, True]:
                for _ in range(3 if who.startswith("UCX") else 7):
                    env = {"UCX_MEM_CUDA_HOOK_MODE": mode, "UCX_WARN_UNUSED_ENV_VARS": "n"}
                    if busy:
                        env["BUSY"] = "1"
                    done = run([scratch / "cost", *args], env=env)
                    if done.returncode != 0:
                        text = f"cost {who} {mode}{', 64 busy threads' if busy else ''}: {done.stderr.strip()[-300:]}"
                        # What UCX itself does wrong is told, and is no failure of ours.
                        (faults if who.startswith("UCX") else failures).append(text)
                        break
                    for line in done.stdout.splitlines():
                        key, value = line.split()
                        values["busy_" + key if busy else key].append(float(value))
            if not values["free_null_after_ns"]:
                continue
            med = lambda key: statistics.median(values[key])
            # Differences within one process: processes differ by more than what is looked for.
            within = lambda k: statistics.median(b - a for a, b in zip(values[k + "_before_ns"], values[k + "_after_ns"]))
            added = [f"{within(k):+.1f} (from {med(k + '_before_ns'):.1f})" for k in ["free_null", "async_pair"]]
            # Pointers of dlsym go round relocation hooks, and round nothing else.
            turns = f"{med('pair_added_ns'):+.1f} (from {med('pair_direct_ns'):.1f})" if mode in ("reloc", "none") else "-"
            show = lambda key: f"{min(values[key]) / 1e3:.0f} / {med(key) / 1e3:.0f}" if values[key] else "-"
            print(f"| {who} | {mode} | {show('load_ns')} | {show('install_ns')} | {show('busy_install_ns')} | {added[0]} "
                  f"| {added[1]} | {turns} | {med('events_per_pair'):.0f} |", flush=True)
    for text in faults:
        print(f"\n- a fault of UCX's: {text}")
    env = {"UCX_MEM_CUDA_HOOK_MODE": "bistro,reloc", "SHOW_COVERAGE": "1"}
    print("\nCoverage in that program:\n\n```\n" + run([scratch / "cost", *subjects[1][1]], env=env).stderr + "```")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    module = Path(sys.argv[1]).resolve() / "libucm_cuda.so.0"
    ucx = [Path(p).resolve() for p in sys.argv[2:]]
    gpu = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if gpu.returncode != 0:
        print("waived: hooks on a GPU: no driver and no GPU here")
        return 0
    print(f"# Hooks on {gpu.stdout.strip()}, {os.cpu_count()} CPU cores")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        programs = build(scratch)
        entries(scratch)
        events(programs, module, scratch)
        pytorch(module, scratch)
        cost(module, ucx, scratch)
    heading("Result")
    for text in waived:
        print(f"waived: {text}")
    for text in failures:
        print(f"FAILED: {text}")
    print(f"{len(failures)} failed, {len(waived)} waived")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
