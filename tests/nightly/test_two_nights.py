"""Protects the morning's answers with real nights: what broke, since when, and what had changed.

Two nights with the right runner, one with a kernel bug planted, one whose simulator somebody kills,
one with a target file that is wrong; and in a history of their own one before and one after a
runner has grown. What is planted lies over the project's own files (bwrap), at their paths: so only
the files that read it are compiled again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.nightly.history.database import open_history
from tests.cli.conftest import Hil, Result
from tests.report.services import Service, running
from tools.clone import project_root

TARGET = "corstone-300-m55"
BUG = (
    "targets/runner/kernels/softmax_scalar.h",
    "kSoftmaxZeroPoint = -128",
    "kSoftmaxZeroPoint = -127",
)
GROWTH = 4096  # bytes of a table that is read
GROWN = (
    (
        "targets/runner/runner.cpp",
        "constexpr double kAtol = 0.01;",
        f"constexpr double kAtol = 0.01;\nconst volatile uint8_t kPlanted[{GROWTH}] = {{1}};",
    ),
    (
        "targets/runner/runner.cpp",
        "bool Runner::run() {",
        "bool Runner::run() {\n  static_cast<void>(kPlanted[0]);",
    ),
)
KILLED = """#!/bin/sh
[ "$1" = --version ] && exec {real} --version
kill -KILL $$
"""
SUITE = f"""
owner: us
cases:
  - targets: [{TARGET}, mine]
    models: [add]
  - targets: [{TARGET}]
    models: [softmax]
quarantine:
  - {{case: "mine/add", reason: "board is new", until: "2999-01-01"}}
notify: ["json://127.0.0.1:$CHAT/x"]
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm", "bwrap"))),
    reason="needs arm-none-eabi-gcc, qemu-system-arm and bwrap",
)
Nights = Callable[..., Result]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "boards").mkdir()
    (folder / "boards" / "mine.yaml").write_text(f"extends: {TARGET}\n")
    references = project_root() / "references"
    (folder / "hil.toml").write_text(f'targets = ["boards"]\nreferences = "{references}"\n')
    return folder


@pytest.fixture(scope="module")
def asked(hil: Hil, place: Path) -> Callable[..., Result]:
    """``hil`` with the history and the targets of this place."""

    def call(*arguments: str | Path, planted: Sequence[str] = (), **environment: str) -> Result:
        return hil(
            *arguments,
            prefix=tuple(planted),
            HIL_HISTORY=f"sqlite:///{place}/history.db",
            HIL_PROJECT=str(place / "hil.toml"),
            **environment,
        )

    return call


@pytest.fixture(scope="module")
def nights(place: Path, asked: Callable[..., Result]) -> dict[str, Result]:
    """Each night once, in this order."""

    def night(name: str, **options: Any) -> Result:
        return asked(
            "nightly", place / "suite.yaml", "--night", name, "-j", "1", "--json", **options
        )

    good = night("good")
    with running(Service()) as chat:
        bug = night("bug", CHAT=str(chat.port), **planted(place / "bug", BUG))
        (place / "message.json").write_text(json.dumps(chat.received))
        assert night("bug", CHAT=str(chat.port)).code == 1  # nothing is left to run or to tell
        assert len(chat.received) == 1
    found = {"good": good, "bug": bug}
    killer = place / "bin" / "qemu-system-arm"
    killer.parent.mkdir()
    killer.write_text(KILLED.format(real=shutil.which("qemu-system-arm")))
    killer.chmod(0o755)
    found["killed"] = night("killed", PATH=f"{killer.parent}{os.pathsep}{os.environ['PATH']}")
    board = place / "boards" / "mine.yaml"
    board.write_text(board.read_text() + "memory: [\n")
    found["wrong"] = night("wrong")
    board.write_text(f"extends: {TARGET}\n")
    return found


@pytest.fixture(scope="module")
def grown(place: Path, nights: dict[str, Result], asked: Callable[..., Result]) -> Path:
    """The page of a night with a runner that is larger; the history is ``place / "grown.db"``."""
    assert nights
    suite = place / "growth.yaml"
    suite.write_text(f"cases:\n  - {{targets: [{TARGET}], models: [add]}}\n")
    url = f"sqlite:///{place}/grown.db"
    words = ("nightly", suite, "-j", "1", "--history", url, "--night")
    assert asked(*words, "before").code == 0
    page = place / "grown.html"
    after = asked(*words, "after", "--html", page, **planted(place / "growth", *GROWN))
    assert after.code == 1, after.err
    return page


def planted(folder: Path, *several: tuple[str, str, str]) -> dict[str, Any]:
    """What ``asked`` needs to run a project whose files have something planted. The simulator
    runs with less confinement there, for one sandbox is in another."""
    binds: dict[Path, Path] = {}
    for file, find, put in several:
        original = project_root() / file
        changed = folder / Path(file).name
        text = (changed if original in binds else original).read_text()
        assert text.count(find) == 1
        folder.mkdir(exist_ok=True)
        changed.write_text(text.replace(find, put))
        binds[original] = changed
    words = [word for original, changed in binds.items() for word in ("--bind", changed, original)]
    prefix = ["bwrap", "--dev-bind", "/", "/", *map(str, words)]
    return {"planted": prefix, "HIL_REQUIRE_CONFINEMENT": "0"}


def states(result: Result) -> dict[str, tuple[str, str]]:
    return {c["case"]: (c["state"], c["verdict"]) for c in result.json["cases"]}


def first_bad(asked: Callable[..., Result], case: str) -> dict[str, Any]:
    found: dict[str, Any] = asked("history", case, "--json").json
    return found


def test_a_good_night_passes(nights: dict[str, Result]) -> None:
    assert nights["good"].code == 0
    assert set(states(nights["good"]).values()) == {("passing", "PASS")}
    one = nights["good"].json["cases"][0]
    assert one["owner"] == "us"
    assert one["command"] == f"hil run {TARGET} add"
    assert all(one["identity"].values()), one["identity"]
    assert 0 < one["seconds"]["simulate"] < one["seconds"]["total"]


def test_a_planted_bug_is_new_in_the_case_that_has_its_operator(
    nights: dict[str, Result], asked: Callable[..., Result]
) -> None:
    assert nights["bug"].code == 1
    assert states(nights["bug"]) == {
        f"{TARGET}/add": ("passing", "PASS"),
        "mine/add": ("passing", "PASS"),
        f"{TARGET}/softmax": ("new", "FAULT"),
    }
    found = first_bad(asked, f"{TARGET}/softmax")
    assert (found["last_good"]["night"], found["first_bad"]["night"]) == ("good", "bug")
    changed = [one["what"] for one in found["differences"]]
    assert changed[:2] == ["sources", "firmware"]
    assert set(changed[2:]) <= {"harness"}  # it has an edit
    assert "cortex_m::softmax" in found["first_bad"]["cause"]["text"]
    excerpt = found["first_bad"]["excerpt"]
    line = found["first_bad"]["cause"]["line"] - excerpt["first"]
    assert "cortex_m::softmax" in excerpt["lines"][line]


def test_the_night_is_reported_once(nights: dict[str, Result], place: Path) -> None:
    assert nights
    ((_, path, body),) = json.loads((place / "message.json").read_text())
    assert (path, body["title"]) == ("/x", "suite: 1 new failure")
    assert f"new: {TARGET}/softmax: FAULT" in body["message"]
    assert "@us\n" in body["message"]


def test_a_killed_simulator_is_tried_twice_and_is_not_a_regression(
    nights: dict[str, Result], asked: Callable[..., Result]
) -> None:
    assert nights["killed"].code == 3
    assert set(states(nights["killed"]).values()) == {("infrastructure", "INFRA")}
    for one in nights["killed"].json["cases"]:
        assert [t["verdict"] for t in one["tries"]] == ["INFRA", "INFRA"]
        assert one["cause"]["kind"] == "simulator_killed"
    assert first_bad(asked, f"{TARGET}/add")["first_bad"] is None


def test_a_wrong_target_file_is_named_and_quarantine_holds(
    nights: dict[str, Result], asked: Callable[..., Result], place: Path
) -> None:
    assert nights["wrong"].code == 0  # what fails is in quarantine, and softmax is right again
    assert states(nights["wrong"]) == {
        f"{TARGET}/add": ("passing", "PASS"),
        "mine/add": ("quarantined", "NO_VERDICT"),
        f"{TARGET}/softmax": ("fixed", "PASS"),
    }
    found = first_bad(asked, "mine/add")
    assert (found["last_good"]["night"], found["first_bad"]["night"]) == ("bug", "wrong")
    assert found["unsure"] == 1  # the night of the killer
    assert f"{place}/boards/mine.yaml:3: not valid YAML" in found["first_bad"]["cause"]["text"]
    assert found["differences"][0]["what"] == "target"
    assert found["first_bad"]["quarantined"] == "until 2999-01-01: board is new"


def test_a_growth_names_the_night_the_figure_and_the_input(
    grown: Path, asked: Callable[..., Result], place: Path
) -> None:
    """In the terminal and on the page: since which night, what grew by how much, what changed."""
    case, words = f"{TARGET}/add", ("--history", f"sqlite:///{place}/grown.db")
    found = asked("history", case, "--json", *words).json
    assert (found["last_good"]["night"], found["first_bad"]["night"]) == ("before", "after")
    assert found["first_bad"]["verdict"] == "OVER_BUDGET"
    assert found["differences"][0]["what"] == "sources"
    before, after = found["figures"]["elf_DTCM"]
    assert GROWTH <= after - before < GROWTH + 64
    told = asked("history", case, *words)
    assert f"elf_DTCM {before:,} -> {after:,} (+{after - before:,}, " in told.out
    page = grown.read_text()
    assert "Failing since the night after" in page
    assert "it last passed in before" in page
    assert f'<td class="mono">elf_DTCM</td><td class="n">{before:,}</td>' in page


def test_the_page_names_what_broke_and_counts_no_infrastructure(
    nights: dict[str, Result], asked: Callable[..., Result], place: Path
) -> None:
    """The operator and the sources for the night of the bug; no failure for that of the killer."""
    assert nights

    def page(night: str) -> tuple[dict[str, Any], str]:
        file = place / f"{night}.html"
        return asked("nightly", "page", night, "-o", file, "--json").json, file.read_text()

    said, text = page("bug")
    assert said["groups"] == [
        {
            "what": "operator cortex_m::softmax.out",
            "why": "each failure names it",
            "cases": [f"{TARGET}/softmax"],
        }
    ]
    assert "Failing since the night bug" in text
    assert "<li>firmware sources: " in text
    said, text = page("killed")
    assert said["groups"] == []
    assert said["counts"] == {"infrastructure": 3}
    assert "they are not regressions" in text
    said, text = page("wrong")
    assert f"{place}/boards/mine.yaml:3: not valid YAML" in text
    assert "<li>target file: " in text


def test_the_terminal_tells_it_too(nights: dict[str, Result], asked: Callable[..., Result]) -> None:
    assert nights
    told = asked("history", f"{TARGET}/softmax")
    assert told.code == 0  # it passes again
    assert "firmware sources: " in told.out
    assert told.out.index("firmware sources") < told.out.index("firmware (ELF)")
    shown = asked("history", f"{TARGET}/softmax")
    assert [line.split()[2] for line in shown.out.splitlines() if line.startswith("20")] == [
        "PASS",
        "FAULT",
        "INFRA",
        "INFRA",
        "PASS",
    ]
    assert asked("history").code == 0


def test_a_row_is_small(
    nights: dict[str, Result], asked: Callable[..., Result], place: Path
) -> None:
    assert nights
    asked("history", "copy", "--to", place / "all.db")
    exported = open_history(f"sqlite:///{place}/all.db")
    rows = list(exported.every())
    exported.close()
    assert len(rows) == 3 * 5 - 3 + 3
    assert max(len(json.dumps(asdict(row))) for row in rows) < 4096
