"""Same request, same bytes, in any process, in any order; and one export per key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.export.program import Program
from tests.thorough import is_thorough

Get = Callable[..., Program]
# torch without vector units, MKL with what every x86-64 has, and another number of threads.
ANY_CPU = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "OMP_NUM_THREADS": "2",
    "MKL_NUM_THREADS": "2",
}

CHILD = """
import json, sys
from harness.export.batch import export
from harness.export.request import ExportRequest
from harness.config.models import find_model
asked = [name.partition("@") for name in sys.argv[1:]]
results = export([ExportRequest(find_model(n), t or "cortex-m55") for n, _, t in asked])
json.dump([[str(r.unwrap().directory), r.cached, 'torch' in sys.modules] for r in results],
          sys.stdout)
"""


def start(home: Path, *names: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *names],
        env={**os.environ, "HIL_HOME": str(home), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(child: subprocess.Popen[bytes]) -> list[tuple[Path, bool, bool]]:
    out, err = child.communicate()
    assert err == b"", "torch and ExecuTorch must not write to the user's terminal"
    return [(Path(d), cached, torch) for d, cached, torch in json.loads(out)]


def contents(directory: Path) -> dict[str, bytes]:
    return {
        p.relative_to(directory).as_posix(): p.read_bytes()
        for p in sorted(directory.rglob("*"))
        # the entry has the digest of the log, in which there are times
        if p.is_file() and p.suffix != ".log" and p.name != "entry.json"
    }


def test_two_processes_write_the_same_bytes(exported: Get, tmp_path: Path) -> None:
    """The other process has another order of models, another directory and another CPU. A third
    one, which wants what that one exports just now, waits and reuses it; neither imports torch.

    ``./hil bench programs`` does this for all models and lowerings.
    """
    names = ["linear", "add@ethos-u55-128"]
    names += ["softmax@xnnpack-int8", "qadd2"] if is_thorough() else []
    child = start(tmp_path, *names, **ANY_CPU)
    while child.poll() is None and not list(tmp_path.rglob("*.lock")):
        time.sleep(0.02)
    waiting = start(tmp_path, names[0])
    exports = finish(child)
    for name, (there, cached, torch) in zip(names, exports, strict=True):
        assert (cached, torch) == (False, False)
        model, _, target = name.partition("@")
        here = exported(model, target or "cortex-m55").directory
        assert here.name == there.name, "equal requests must have equal keys"
        assert contents(here) == contents(there)
        assert not [n for n, c in contents(here).items() if str(tmp_path).encode() in c]
    assert finish(waiting) == [(exports[0][0], True, False)]


def test_a_cached_program_needs_no_torch(exported: Get, shared_home: Path) -> None:
    expected = exported("softmax").directory
    ((directory, cached, torch),) = finish(start(shared_home, "softmax"))
    assert (directory, cached, torch) == (expected, True, False)


def test_what_the_libraries_print_is_kept(exported: Get) -> None:
    assert (exported("softmax").directory / "export.log").is_file()
