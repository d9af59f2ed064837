"""A hostile guest on the real QEMU: what it tries to reach, and that it does not.

What came of each attempt is written to ``escapes-root.txt`` or ``escapes-user.txt`` in the state
directory; ``python -m tests.escapes.attempts FOLDER`` does the same by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.system.confine import what_lacks
from harness.system.paths import state_dir
from tests.escapes.attempts import table
from tools.clone import project_root

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
        reason="needs arm-none-eabi-gcc and qemu-system-arm",
    ),
    pytest.mark.skipif(what_lacks() is not None, reason=str(what_lacks())),
]
# What env starts is started without what setpriv still has.
_SHARED = ("CCACHE_", "CMAKE_")
# What a run of its own shows whoever makes it, as that a loop ends, is tried once.
_BY_RIGHTS = ("fill-one-file", "fill-many-files", "fill-removed", "make-files", "take-handles")
_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "env")


def attempted(
    folder: Path,
    who: tuple[str, ...] = (),
    python: str = sys.executable,
    named: tuple[str, ...] = (),
) -> Any:
    """In a process that is ``who``, which can write to ``folder`` only."""
    done = subprocess.run(
        [*who, python, "-m", "tests.escapes.attempts", str(folder / "ground"), *named],
        cwd=project_root(),
        env={**_environment(), "HIL_HOME": str(folder / "hil")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def nobodys_python() -> str | None:
    """One that a user without rights can start, with the packages of this one: a Python in
    root's home is for root alone."""
    probe = "import pexpect, pydantic, yaml, numpy"
    system = f"/usr/bin/python3.{sys.version_info.minor}"
    for python in (sys.executable, system):
        argv = [*_NOBODY, python, "-c", probe]
        if subprocess.run(argv, env=_environment(), capture_output=True).returncode == 0:
            return python
    return None


def _environment() -> dict[str, str]:
    packages = (str(project_root()), sysconfig.get_path("purelib"))
    # the compiler cache of this session's tests is not for somebody without rights
    shared = {name: value for name, value in os.environ.items() if not name.startswith(_SHARED)}
    return {**shared, "PYTHONPATH": os.pathsep.join(packages)}


def report(name: str, found: dict[str, Any]) -> None:
    rows = (
        f"{row['name']:26}{row['tried']:60}{row['happened']}"
        + ("" if row["as_expected"] else f"   EXPECTED: {row['expected']}")
        for row in found["attempts"]
    )
    state_dir().mkdir(parents=True, exist_ok=True)
    (state_dir() / f"escapes-{name}.txt").write_text("\n".join([*rows, ""]))


def check(name: str, found: dict[str, Any]) -> None:
    report(name, found)
    assert found["harmed"] == []
    wrong = [row for row in found["attempts"] if not row["as_expected"]]
    assert wrong == []
    assert len(found["attempts"]) >= 60


def test_as_who_runs_the_tests(tmp_path: Path) -> None:
    found = attempted(tmp_path)
    check("root" if found["uid"] == 0 else "user", found)


def test_as_somebody_without_rights(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    python = nobodys_python()
    if python is None:
        pytest.skip("no Python here that a user without rights can start")
    folder = Path("/tmp") / f"hil-escapes-{os.getpid()}"  # pytest's own are for root alone
    folder.mkdir()
    try:
        shutil.chown(folder, 65534, 65534)
        found = attempted(folder, _NOBODY, python, _BY_RIGHTS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert found["uid"] == 65534
    check("user", found)


def test_every_kind_is_tried() -> None:
    """A table that lost a kind would still be green."""
    rows = table()
    kinds = Counter(name.split("-")[0] for name in rows["attempts"])
    assert kinds["read"] >= 20
    assert kinds["write"] + kinds["create"] + kinds["rename"] + kinds["remove"] >= 25
    assert len(rows["alone"]) >= 15
