"""How fast sizes are measured: run by hand, prints a table; nothing is asserted.

    python -m tests.size.bench_sizes

A 100 MB .pte (a whole process each time, with its peak memory) beside ExecuTorch's own
deserialiser, and an ELF of 20 MB with DWARF, without and with the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.size.samples import make_pte, program, tensor

LAYERS = 1600
WIDTH = 256  # LAYERS * WIDTH * WIDTH bytes of weights: 100 MB

OURS = r"""
import re, sys, time
started = time.perf_counter()
from pathlib import Path
from harness.size.measure import measure_file
anatomy = measure_file(Path(sys.argv[1]))
assert anatomy.total == sum(p.bytes for p in anatomy.parts)
seconds = time.perf_counter() - started
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())
print(seconds, int(peak[1]) / 1024, len(anatomy.parts))
"""
THEIRS = r"""
import re, sys, time
from executorch.exir._serialize._program import deserialize_pte_binary
data = open(sys.argv[1], "rb").read()
started = time.perf_counter()
deserialize_pte_binary(data)
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())
print(time.perf_counter() - started, int(peak[1]) / 1024, 0)
"""
UNIT = """
#include <map>
#include <regex>
#include <string>
#include <vector>
namespace unit{n} {{
template <int K> struct Work {{
  std::map<std::string, std::vector<int>> table;
  int run(const std::string &s) {{
    table[s].push_back(K); std::regex r("a+b" + s);
    return std::regex_match(s, r) + static_cast<int>(table.size());
  }}
}};
int go(const std::string &s) {{ return {sum}; }}
}}
"""


def large_pte() -> bytes:
    size = WIDTH * WIDTH
    values = [tensor([1, WIDTH], planned=0)]
    calls = []
    for n in range(LAYERS):
        values += [
            tensor([WIDTH, WIDTH], data=2 * n + 1),
            tensor([WIDTH], data=2 * n + 2, scalar_type="INT"),
            tensor([1, WIDTH], planned=WIDTH * (n % 2)),
        ]
        args = [3 * n, 3 * n + 1, 3 * n + 2, 3 * n + 3]
        calls.append({"instr_args_type": "KernelCall", "instr_args": {"op_index": 0, "args": args}})
    data = program(
        values=values,
        chains=[{"inputs": [0], "outputs": [1], "instructions": calls}],
        outputs=[3 * LAYERS],
        non_const_buffer_sizes=[0, 2 * WIDTH],
    )
    step = size + 4 * WIDTH
    data["constant_segment"]["offsets"] = [0] + [
        offset for n in range(LAYERS) for offset in (n * step, n * step + size)
    ]
    data["segments"] = [{"offset": 0, "size": LAYERS * step}]
    return make_pte(
        data, os.urandom(1 << 20) * (LAYERS * step >> 20) + bytes(LAYERS * step % (1 << 20))
    )


def large_elf(folder: Path, units: int = 34) -> Path:
    sources = []
    for n in range(units):
        calls = " + ".join(f"Work<{n * 100 + k}>{{}}.run(s)" for k in range(12))
        source = folder / f"unit{n}.cpp"
        source.write_text(UNIT.format(n=n, sum=calls))
        sources.append(source)
    declared = "".join(
        f"namespace unit{n} {{ int go(const std::string &); }}\n" for n in range(units)
    )
    total = " + ".join(f'unit{n}::go("x")' for n in range(units))
    main = folder / "main.cpp"
    main.write_text(f"#include <string>\n{declared}int main() {{ return {total}; }}\n")
    elf = folder / "large"
    run = [
        "g++",
        "-g",
        "-O0",
        "-ffunction-sections",
        f"-Wl,-Map={elf}.map",
        "-o",
        elf,
        main,
        *sources,
    ]
    subprocess.run(run, check=True)
    return elf


def measured(script: str, file: Path, home: Path) -> tuple[float, float, float]:
    """Seconds of the work, peak memory in MB, and seconds of the whole process."""
    root = Path(__file__).parents[2]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, file],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root), "HIL_HOME": str(home)},
    )
    seconds, memory, _ = map(float, done.stdout.split()[-3:])
    return seconds, memory, time.perf_counter() - started


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pte = folder / "large.pte"
        pte.write_bytes(large_pte())
        print(f".pte of {pte.stat().st_size / 1e6:.0f} MB, {LAYERS} layers")
        ours = [measured(OURS, pte, folder / "home") for _ in range(3)]
        for seconds, memory, process in ours:
            print(f"  ours: {seconds:.3f} s with imports, process {process:.3f} s, {memory:.0f} MB")
        theirs = measured(THEIRS, pte, folder / "home")
        print(f"  ExecuTorch's deserialiser: {theirs[0]:.3f} s without imports, {theirs[1]:.0f} MB")
        print(f"  ratio: {theirs[0] / min(s for s, _, _ in ours):.1f}")
        elf = large_elf(folder)
        print(f"ELF of {elf.stat().st_size / 1e6:.0f} MB with DWARF")
        for what in ("DWARF, cold", "DWARF, cached"):
            seconds, memory, _ = measured(OURS, elf, folder / "home")
            print(f"  {what}: {seconds:.3f} s, {memory:.0f} MB")
        with_map = OURS.replace(
            "Path(sys.argv[1])", "Path(sys.argv[1]), (), Path(sys.argv[1] + '.map')", 1
        )
        for what in ("linker map, cold", "linker map, cached"):
            seconds, memory, _ = measured(with_map, elf, folder / "home")
            print(f"  {what}: {seconds:.3f} s, {memory:.0f} MB")


if __name__ == "__main__":
    main()
