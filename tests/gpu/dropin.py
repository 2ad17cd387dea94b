#!/usr/bin/env python3
"""Our libucm_cuda in the place of a real UCX's, under UCX's own ucx_perftest.

    python3 tests/gpu/dropin.py MODULE_DIR UCX_DIR ...

Each UCX_DIR (`libucx/lib`, `libucx/bin`, named by its version) is copied, and
the copy gets ours. Both run the same tests; what UCX's event handler sees of a
cudaMalloc and a cudaFree has to be one event each. Exit code 1 if ours fails
where UCX's own does not.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def perftest(ucx, *args):
    """The last result line's latency in us and bandwidth in MB/s, or none."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(ucx / "libucx/lib"), UCX_MEM_LOG_LEVEL="info")
    done = subprocess.run([ucx / "libucx/bin/ucx_perftest", *args], capture_output=True, text=True,
                          env=env, timeout=120)
    final = re.search(r"^Final:\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+([\d.]+)", done.stdout, re.M)
    hooks = re.search(r"(hook-runtime: info: hooks installed.*|cuda memory hooks mode.*)", done.stdout + done.stderr)
    return (final.groups() if done.returncode == 0 and final else None), hooks.group(1) if hooks else ""


def pair(ucx, port):
    env = dict(os.environ, LD_LIBRARY_PATH=str(ucx / "libucx/lib"))
    args = ["-t", "tag_bw", "-m", "cuda", "-s", "1048576", "-n", "500", "-p", str(port)]
    server = subprocess.Popen([ucx / "libucx/bin/ucx_perftest", *args], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=env)
    time.sleep(2)
    try:
        return perftest(ucx, "localhost", *args)
    finally:
        server.kill()
        server.wait()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if subprocess.run(["nvidia-smi"], capture_output=True).returncode != 0:
        print("waived: drop-in on a GPU: no driver and no GPU here")
        return 0
    module = Path(sys.argv[1]).resolve() / "libucm_cuda.so.0"
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        cost = Path(scratch) / "cost"
        nvcc = "/usr/local/cuda/bin/nvcc" if os.path.exists("/usr/local/cuda/bin/nvcc") else "nvcc"
        subprocess.run([nvcc, "-w", "-cudart", "shared", "-o", cost, HERE / "cost.c", "-lcuda", "-lcudart",
                        "-lpthread", "-ldl"], check=True)
        print("| UCX | libucm_cuda | put_bw 64 MiB, MB/s | put_bw 8 B, us | tag_bw 1 MiB, two processes, MB/s "
              "| ucm_set_event_handler, ms | events per cudaMalloc + cudaFree |")
        print("|---|---|---|---|---|---|---|")
        said = []
        for number, given in enumerate(sys.argv[2:]):
            theirs = Path(given).resolve()
            ours = Path(scratch) / f"{theirs.name}-ours"
            shutil.copytree(theirs, ours, symlinks=True)
            shutil.copy(module, ours / "libucx/lib/ucx/libucm_cuda.so.0")
            for who, ucx in [("UCX's", theirs), ("ours", ours)]:
                loop = ["-l", "-d", "cuda", "-x", "cuda_copy", "-m", "cuda", "-D", "zcopy", "-t", "put_bw"]
                large, _ = perftest(ucx, *loop, "-s", "67108864", "-n", "200")
                small, _ = perftest(ucx, *loop, "-s", "8", "-n", "20000")
                both, hooks = pair(ucx, 13400 + 2 * number + (who == "ours"))
                seen = subprocess.run([cost, "ucx", ucx / "libucx/lib"], capture_output=True, text=True,
                                      env=dict(os.environ, UCX_MEM_CUDA_HOOK_MODE="bistro,reloc"))
                value = dict(line.split() for line in seen.stdout.splitlines())
                print(f"| {theirs.name} | {who} | {large and large[1]} | {small and small[0]} | {both and both[1]} "
                      f"| {float(value.get('install_ns', 'nan')) / 1e6:.1f} | {value.get('events_per_pair')} |", flush=True)
                said.append(f"{theirs.name}, {who}: {hooks}")
                if who == "ours" and (not (large and small and both) or value.get("events_per_pair") != "2"):
                    failed.append(theirs.name)
        print("\n" + "\n".join(f"- {line}" for line in said))
    for name in failed:
        print(f"FAILED: {name} with our libucm_cuda")
    print(f"\n{len(failed)} failed, 0 waived")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
