"""Checkouts to build, and a state directory of each test's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import Checkout, find_checkout
from harness.firmware.choice import choose
from harness.firmware.executorch.plan import CheckoutPlan, make_plan
from harness.sim.simulator import pick
from harness.system.settings import ROOT_VARIABLE
from tests.firmware.executorch.small import PARTS, copied_checkout, git, small_checkout

WITHOUT = f"${ROOT_VARIABLE} is not set: only the small checkout of this folder was built"


@dataclass(frozen=True)
class Source:
    """A checkout's folder and its parts, and where others of their kind can be put."""

    root: Path
    parts: Mapping[str, Path]
    folder: Path

    def find(self, **given: Path) -> Checkout:
        return find_checkout(self.root, {**self.parts, **given})

    def plan(self, target: str = "corstone-300-m55") -> CheckoutPlan:
        return make_plan(pick(load_target(target), "qemu").target, SimulatorName.QEMU, self.find())


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a small checkout that nobody changes: thirty calls of git are made once."""
    folder = tmp_path_factory.mktemp("pristine")
    root, parts = small_checkout(folder)
    git(root, "repack", "-a", "-d", "-q")  # a third fewer files to copy
    yield folder
    assert not any(git(made, "status", "--porcelain") for made in (root, *parts.values()))


@pytest.fixture
def small(pristine: Path, tmp_path: Path) -> Source:
    """A small checkout of the test's own."""
    return Source(*copied_checkout(pristine, tmp_path / "small"), tmp_path)


@pytest.fixture
def read_only(pristine: Path, tmp_path: Path) -> Source:
    """The session's small checkout, for who changes nothing in it and its parts."""
    parts = {name: pristine / "parts" / name for name in PARTS}
    return Source(pristine / "checkout", parts, tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> Source:
    """What $EXECUTORCH_ROOT names, which is only read."""
    root = os.environ.get(ROOT_VARIABLE)
    if not root:
        pytest.skip(WITHOUT)
    return Source(Path(root).absolute(), choose("executorch", Path(root), ()).parts, tmp_path)


@pytest.fixture(params=[pytest.param("read_only", id="small"), "real"])
def source(request: pytest.FixtureRequest) -> Source:
    found: Source = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a state directory and uses it."""

    def use(name: str) -> Path:
        (tmp_path / name / "cache").mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("HIL_HOME", str(tmp_path / name))
        return tmp_path / name

    use("hil")
    return use
