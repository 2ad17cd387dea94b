#!/usr/bin/env python3
"""The transports on real GPUs: one run, Markdown tables.

    python3 tests/gpu/transports.py MODULE_DIR HOOK_PERFTEST [UCX_DIR ...]

MODULE_DIR holds libuct_cuda.so.0 and libucx_perftest_cuda.so.0 as ucx-configure
builds them, HOOK_PERFTEST is the program. Each UCX_DIR is a real UCX
(`libucx/lib`, `libucx/bin`), named by its version, measured in the same run.
One GPU is enough; with a second one, copies between the two are checked and
measured as well. PyTorch is used where it is installed. A part that fails says
why, and the rest goes on. Exit code 1 if bytes were wrong or a part failed;
figures are held against the goals, and reported.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRY = os.environ.get("TRANSPORTS_TRY") == "1"  # Try the script itself: figures mean nothing.
QUICK = "1" if TRY else "60"  # Milliseconds for each of the three runs of a figure.
LARGE = (1 if TRY else 64) << 20
failures = []
waived = []


def run(command, **more):
    env = dict(os.environ, UCX_WARN_UNUSED_ENV_VARS="n", **more.pop("env", {}))
    more.setdefault("timeout", 60)
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env, **more)


def part(title):
    """A part of the run: its error is printed, and the others go on."""
    def guard(work):
        def guarded(*args):
            print(f"\n## {title}\n", flush=True)
            began = time.monotonic()
            try:
                work(*args)
            except Exception as error:  # Whatever it is, it must not take the others with it.
                failures.append(f"{title}: {type(error).__name__}: {error}")
                print(f"FAILED: {type(error).__name__}: {error}")
            print(f"\n({time.monotonic() - began:.0f} s)", flush=True)
        return guarded
    return guard


def figure(perftest, size, *args, env=None):
    """Microseconds for each copy, and GB/s."""
    done = run([perftest, "-s", size, "--time", QUICK, "--format", "json", *args], env=env or {})
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1][-160:] if done.stderr.strip() else "no message"
    row = json.loads(done.stdout)[0]
    return row["microseconds"], row["gigabytes_per_second"]


def show(value):
    return "-" if value is None else f"{value:.2f}"


@part("Bytes: random sizes and offsets, every pair of kinds, every form of another process's memory")
def bytes_(perftest, gpus):
    done = run([perftest, "--check", *(["--peer", "1"] if gpus > 1 else [])], timeout=120)
    lines = [line.rpartition(": ") if "not done" not in line else line.partition(": ")
             for line in done.stdout.splitlines()]
    copies = [(what, said) for what, _, said in lines if what.startswith("copies")]
    right = sum(said == "right" for _, said in copies)
    print(f"- {right} of {len(copies)} pairs of kinds of memory: every byte right in 200 copies each")
    for what, _, said in lines:
        if said != "right" or not what.startswith("copies"):
            print(f"- {what}: {said}")
    if done.returncode != 0 or right < len(copies) or not copies:
        raise RuntimeError(f"exit code {done.returncode} {done.stderr.strip()[-300:]}")


@part("Goals")
def goals(perftest):
    if TRY:
        return
    done = run([perftest, "--self-test", "--time", "100", "--format", "json"], timeout=120)
    report = json.loads(done.stdout)
    print(f"{report['device']}, driver {report['driver']}; wrong bytes: {report['wrong'] or 'none'}\n")
    print("| what | raw, or the reference | ours | ours / raw | unit | goal |")
    print("|---|---|---|---|---|---|")
    for row in report["goals"]:
        share = f"{row['ours'] / row['raw']:.3f}" if row["raw"] else ""
        print(f"| {row['what']} | {row['raw']:.2f} | {row['ours']:.2f} | {share} | {row['unit']} "
              f"| {'met' if row['met'] else 'missed'} |")
    for line in done.stderr.splitlines():
        print(f"\n- {line}")
    if report["wrong"] or done.returncode != 0:
        raise RuntimeError("bytes were wrong")


@part("Two processes on one GPU")
def processes(perftest):
    print("| memory | 64 MiB, GB/s | 1 MiB, GB/s | 8 B, thousand/s | 8 B, one at a time, us |")
    print("|---|---|---|---|---|")
    device = ["--from", "device", "--to", "device"]
    rows = [("raw copies inside one process", ["--raw"]), ("cuda_copy inside one process", [])]
    rows += [(f"another process, {form}", ["--remote", "--memory", form])
             for form in ["plain", "mapped", "pool", "mapped-fabric", "pool-fabric"]]
    for name, args in rows:
        large = figure(perftest, LARGE, "-w", "16", *device, *args)
        if large[0] is None:
            print(f"| {name} | not done: {large[1]} | | | |", flush=True)
            continue
        middle = figure(perftest, 1 << 20, *device, *args)
        small = figure(perftest, 8, *device, *args)
        single = figure(perftest, 8, "-t", "latency", *device, *args)
        print(f"| {name} | {show(large[1])} | {show(middle[1])} | {show(1e3 / small[0])} | {show(single[0])} |", flush=True)


PYTORCH = """
import ctypes, sys, torch
size = 45 << 20
a = torch.arange(size, dtype=torch.int64, device="cuda")
a = torch.bitwise_xor(a * 167, a >> 11).to(torch.uint8)
torch.cuda.synchronize()
lib = ctypes.CDLL(sys.argv[1])
lib.hook_ipc_export.restype = ctypes.c_void_p
lib.hook_ipc_export.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
lib.hook_ipc_key.restype = lib.hook_ipc_offset.restype = lib.hook_transport_error.restype = ctypes.c_size_t
lib.hook_ipc_key.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
lib.hook_ipc_offset.argtypes = [ctypes.c_void_p]
lib.hook_transport_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
exported = lib.hook_ipc_export(a.data_ptr(), size)
if not exported:
    text = ctypes.create_string_buffer(500)
    lib.hook_transport_error(text, 500)
    sys.exit(text.value.decode())
key = ctypes.create_string_buffer(lib.hook_ipc_key(exported, None, 0))
lib.hook_ipc_key(exported, key, len(key))
print(lib.hook_ipc_offset(exported), size, key.raw.hex(), flush=True)
sys.stdin.read()
"""


@part("PyTorch: a tensor of one process, read by another")
def pytorch(perftest, module):
    if run([sys.executable, "-c", "import torch"]).returncode != 0:
        waived.append("PyTorch: it is not installed")
        print(f"waived: {waived[-1]}")
        return
    for name, conf in [("cudaMalloc", ""), ("expandable segments", "expandable_segments:True")]:
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
        owner = subprocess.Popen([sys.executable, "-c", PYTORCH, module / "libuct_cuda.so.0"], text=True, env=env,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            line = owner.stdout.readline().split()
            if len(line) != 3:
                message = owner.communicate(timeout=20)[1].strip().splitlines()
                raise RuntimeError(f"{name}: {message[-1] if message else 'no message'}")
            offset, size, key = line
            done = run([perftest, "--opens", "--at", f"{offset}:{size}"], input=key + "\n")
            print(f"- {name}, a key of {len(key) // 2} bytes: {(done.stdout + done.stderr).strip()}")
            if done.returncode != 0:
                failures.append(f"PyTorch, {name}")
        finally:
            owner.kill()
            owner.wait()


@part("Two GPUs")
def two_gpus(perftest, gpus):
    if gpus < 2:
        waived.append("two GPUs: there is one")
        print(f"waived: {waived[-1]}")
        return
    print("| what | 64 MiB, GB/s | 8 B, thousand/s | 8 B, one at a time, us |")
    print("|---|---|---|---|")
    device = ["--from", "device", "--to", "device", "--peer", "1"]
    rows = [("raw peer copies", ["--raw"]), ("cuda_copy", [])]
    rows += [(f"another process, {form}", ["--remote", "--memory", form])
             for form in ["plain", "mapped", "pool", "mapped-fabric", "pool-fabric"]]
    for name, args in rows:
        large = figure(perftest, LARGE, "-w", "16", *device, *args)
        if large[0] is None:
            print(f"| {name} | not done: {large[1]} | | |", flush=True)
            continue
        small = figure(perftest, 8, *device, *args)
        single = figure(perftest, 8, "-t", "latency", *device, *args)
        print(f"| {name} | {show(large[1])} | {show(1e3 / small[0])} | {show(single[0])} |", flush=True)
    done = run([perftest, "-s", "4194304", "--time", QUICK, *device[:4], "--peer", "0"],
               env={"CUDA_VISIBLE_DEVICES": "1"})
    print(f"\n- one GPU hidden, the other's number is 0: {'works' if done.returncode == 0 else done.stderr[-200:]}")


@part("Pageable host memory to the device, 64 MiB: threads and pieces")
def pageable(perftest):
    host = ["--from", "host", "--to", "device", "-w", "1"]
    raw = figure(perftest, LARGE, "--raw", *host)
    back = ["--from", "device", "--to", "host", "-w", "1"]
    print(f"raw: {show(raw[1])} GB/s to the device, {show(figure(perftest, LARGE, '--raw', *back)[1])} back; "
          f"pinned: {show(figure(perftest, LARGE, '--raw', '--from', 'pinned', '--to', 'device')[1])}\n")
    print("| threads | " + " | ".join(f"{chunk} to / back" for chunk in ["512k", "1m", "2m", "4m"]) + " |")
    print("|---|---|---|---|---|")
    for threads in ["2"] if TRY else ["4", "8", "12", "16"]:
        row = []
        for chunk in ["512k", "1m", "2m", "4m"]:
            env = {"HOOK_RUNTIME_STAGE_THREADS": threads, "HOOK_RUNTIME_STAGE_CHUNK": chunk}
            row.append(f"{show(figure(perftest, LARGE, *host, env=env)[1])} / "
                       f"{show(figure(perftest, LARGE, *back, env=env)[1]) if chunk == '2m' else ''}")
        print(f"| {threads} | " + " | ".join(row) + " |", flush=True)


def ucx_perftest(ucx, *args):
    """The last line's overall latency in us and bandwidth in MB/s, or what went wrong."""
    env = {"LD_LIBRARY_PATH": str(ucx / "libucx/lib")}
    done = run([ucx / "libucx/bin/ucx_perftest", *args], env=env, timeout=40)
    final = re.search(r"^Final:\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+([\d.]+)", done.stdout, re.M)
    if done.returncode == 0 and final:
        return float(final.group(1)), float(final.group(2))
    said = (done.stderr + done.stdout).strip().splitlines()
    return None, said[-1][-120:] if said else f"exit code {done.returncode}"


def ucx_pair(ucx, port, *args):
    env = dict(os.environ, LD_LIBRARY_PATH=str(ucx / "libucx/lib"), UCX_WARN_UNUSED_ENV_VARS="n")
    args = [*args, "-p", str(port)]
    server = subprocess.Popen([ucx / "libucx/bin/ucx_perftest", *args], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=env)
    time.sleep(1)
    try:
        return ucx_perftest(ucx, "localhost", *args)
    finally:
        server.kill()
        server.wait()


@part("UCX's own ucx_perftest, in the same run")
def ucx(directories):
    print("| UCX | cuda_copy put 64 MiB, GB/s | cuda_copy put 8 B, thousand/s | host to device 8 B, thousand/s "
          "| cuda_ipc put 64 MiB, two processes, GB/s | cuda_ipc put latency 8 B, us |")
    print("|---|---|---|---|---|---|")
    for number, directory in enumerate(directories):
        loop = ["-l", "-d", "cuda", "-x", "cuda_copy", "-D", "zcopy", "-t", "put_bw", "-O", "32"]
        ipc = ["-d", "cuda", "-x", "cuda_ipc", "-m", "cuda", "-D", "zcopy"]
        large = ucx_perftest(directory, *loop, "-m", "cuda", "-s", 64 << 20, "-n", 200)
        small = ucx_perftest(directory, *loop, "-m", "cuda", "-s", 8, "-n", 50000)
        host = ucx_perftest(directory, *loop, "-m", "host,cuda", "-s", 8, "-n", 50000)
        pair = ucx_pair(directory, 13500 + 4 * number, *ipc, "-t", "put_bw", "-s", str(64 << 20), "-n", "200", "-O", "16")
        lat = ucx_pair(directory, 13502 + 4 * number, *ipc, "-t", "put_lat", "-s", "8", "-n", "2000")
        rate = lambda x: show(1e3 / x[0]) if x[0] else f"not done: {x[1]}"
        wide = lambda x: show(x[1] * 1.048576e-3) if x[0] else f"not done: {x[1]}"
        print(f"| {directory.name} | {wide(large)} | {rate(small)} | {rate(host)} | {wide(pair)} "
              f"| {show(lat[0]) if lat[0] else 'not done: ' + lat[1]} |", flush=True)


@part("Our allocator in UCX's ucx_perftest")
def allocator(directories, module):
    ours = module / "libucx_perftest_cuda.so.0"
    if not ours.exists():
        waived.append(f"the allocator: `{ours}` is not there")
        print(f"waived: {waived[-1]}")
        return
    print("| UCX | allocator | cuda_copy put 1 MiB in cuda memory, GB/s | in cuda-managed memory, GB/s |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for directory in directories:
            copy = Path(scratch) / directory.name
            shutil.copytree(directory, copy, symlinks=True)
            shutil.copy(ours, copy / "libucx/lib/ucx/libucx_perftest_cuda.so.0")
            for who, place in [("UCX's", directory), ("ours", copy)]:
                test = ["-l", "-d", "cuda", "-x", "cuda_copy", "-D", "zcopy", "-t", "put_bw", "-s", 1 << 20, "-n", 300]
                both = [ucx_perftest(place, *test, "-m", kind) for kind in ["cuda", "cuda-managed"]]
                print(f"| {directory.name} | {who} | " + " | ".join(
                    show(x[1] * 1.048576e-3) if x[0] else f"not done: {x[1]}" for x in both) + " |", flush=True)
                if who == "ours" and not all(x[0] for x in both):
                    failures.append(f"the allocator in UCX {directory.name}")
                    env = {"LD_LIBRARY_PATH": str(place / "libucx/lib"), "UCX_LOG_LEVEL": "debug", "UCX_MEM_LOG_LEVEL": "debug"}
                    said = run([place / "libucx/bin/ucx_perftest", *test, "-m", "cuda"], env=env)
                    wanted = [line for line in (said.stdout + said.stderr).splitlines()
                              if re.search("perf|ERROR|WARN|hook-runtime|cuda", line) and "mmap" not in line]
                    print("\n".join(f"    {line}" for line in wanted[-40:]), flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    module, perftest = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    directories = [Path(given).resolve() for given in sys.argv[3:]]
    found = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) if shutil.which("nvidia-smi") else None
    if not found or found.returncode != 0:
        print("waived: the transports on a GPU: no driver and no GPU here")
        return 0
    gpus = len(found.stdout.strip().splitlines())
    print(f"# The transports\n\n{gpus} x {found.stdout.splitlines()[0]}, {os.cpu_count()} processors")
    bytes_(perftest, gpus)
    goals(perftest)
    processes(perftest)
    pytorch(perftest, module)
    two_gpus(perftest, gpus)
    ucx(directories)
    allocator(directories, module)
    pageable(perftest)
    for line in failures:
        print(f"\nFAILED: {line}")
    print(f"\n{len(failures)} failed, {len(waived)} waived")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
