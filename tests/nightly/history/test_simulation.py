"""Protects what a person reads in the morning: twenty-two nights under a false clock, with what
broke planted, and eight more; and every sentence of terminal, summary, page, annotations and JUnit.

The rows are as runs leave them, and are stored; nothing is exported, built or simulated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from harness.core.judgement import Cause
from harness.core.verdict import Verdict
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Identity, Night, Origin, Planned, Row
from harness.report.history import print_night
from harness.report.page.render import render, summary, workflow_commands, write_page

from .made import at

M55, U55 = "corstone-300-m55", "corstone-300-u55-128"
CONV = "cortex_m::quantized_conv2d.out"
SCORES, RANKS = "models/scores.py", "models/ranks.py"
EARLY = Identity(harness="h1", host="desk (x86_64)")  # it ended before anything was made
TYPO = Cause("bad_target", "/work/boards/corstone-300-u55-128.yaml:7: unknown key 'memroy'")


def off_by(lsb: int) -> Cause:
    return Cause("outputs_differ", f"{CONV}: output 0 is off by {lsb} LSB", 7, {"operator": CONV})


@dataclass
class World:
    """What a night finds: it changes from night to night, and stays unless something is planted."""

    cases: list[str] = field(
        default_factory=lambda: [
            f"{target}/{model}"
            for target in (M55, U55)
            for model in ("add", "conv", SCORES, "lstm")
        ]
    )
    exporter: str = "wheel 1.5.1"
    torch: str = "2.13.0"
    sources: str = "a" * 40
    toolchain: str = "gcc 12.2.1"
    model: str = "m1"
    commit: int = 1
    ticks: int = 1_300_000
    reference: str = "r1"

    def row(self, day: int, case: str, verdict: str = "PASS", **more: Any) -> Row:
        target, _, model = case.partition("/")
        made = f"{model}-{self.exporter}-{self.model if model.endswith('.py') else ''}"
        identity = Identity(
            program=f"program of {made}",
            exporter=self.exporter,
            sources=self.sources,
            firmware=f"firmware of {self.sources} {self.toolchain}",
            toolchain=self.toolchain,
            simulator="qemu 7.2",
            reference=self.reference,
            target=f"t-{target}",
            harness="h1",
            host="desk (x86_64)",
        )
        row = Row(
            night=f"n{day}",
            case=case,
            time=at(day),
            target=target,
            model=model,
            source="bundled",
            verdict=Verdict[verdict],
            operators=(CONV,) if model == "conv" else (),
            metrics={"pte_bytes": 2000, "ticks_set0": self.ticks if model == "lstm" else 5000},
            seconds={"total": 1.5},
            versions={"torch": self.torch},
            outline=(f"{CONV} {self.exporter}",),
            model_source=self.model if model.endswith(".py") else model,
            model_commit="1234567 Ann: Other weights" if model.endswith(".py") else "",
            identity=identity,
            suite="every night",
            origin=Origin("main", f"c{day}"),
        )
        return replace(row, **more)


class Nights:
    """Writes them, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.history = open_history(f"sqlite:///{folder / 'history.db'}")
        self.world = World()

    def night(self, day: int, *bad: Row, missing: str = "", **more: Any) -> None:
        by_case: dict[str, list[Row]] = {}
        for row in bad:
            by_case.setdefault(row.case, []).append(row)
        origin = more.get("origin", Origin("main", f"c{day}"))
        suite = more.get("suite", "every night")
        rows = []
        for case in self.world.cases:
            if case != missing:
                rows += by_case.get(case) or [self.world.row(day, case)]
        rows = [replace(row, suite=suite, origin=origin) for row in rows]
        facts: dict[str, Any] = {"suite": suite, "suite_sha256": "aa", "harness": "h1", **more}
        plan = tuple(Planned(case) for case in self.world.cases)
        begun = Night(
            f"n{day}", began=at(day, 1), host="desk", plan=plan, **{"origin": origin, **facts}
        )
        self.history.begin(begun)
        self.history.append(rows)

    def compared(self, day: int) -> Comparison:
        night = self.history.night(f"n{day}")
        assert night is not None
        return compare(self.history, night)


def simulate(folder: Path) -> Nights:
    """The plants, in order. Each night is as the one before but for what is said."""
    nights = Nights(folder)
    world = nights.world
    row = world.row

    def conv(day: int, verdict: str, cause: Cause, **more: Any) -> list[Row]:
        return [row(day, f"{t}/conv", verdict, cause=cause, **more) for t in (M55, U55)]

    nights.night(1)
    world.sources = "b" * 40  # a kernel bug
    nights.night(2, *conv(2, "MISMATCH", off_by(3)))
    nights.night(3, *conv(3, "MISMATCH", off_by(12)))  # still, with another number
    world.sources = "c" * 40  # mended
    nights.night(4)
    # a typo in a target's file: the night of its cases ends before anything is known
    known = replace(EARLY, target="malformed 00ff")
    typos = [
        row(5, c, "NO_VERDICT", cause=TYPO, identity=known, versions={}, outline=(), metrics={})
        for c in world.cases
        if c.startswith(U55)
    ]
    nights.night(5, *typos)
    # the typo is mended, and the exporter is another one, which breaks one export
    world.exporter, world.torch = "wheel 1.6.0", "2.14.0"
    broken = Cause("export_failed", "no rule for aten.convolution", None)
    early = row(6, f"{U55}/conv", "EXPORT_ERROR", cause=broken, outline=(), metrics={})
    known_early = replace(EARLY, target=f"t-{U55}", exporter=world.exporter)
    nights.night(6, replace(early, identity=known_early))
    nights.night(7)  # exported again: the programs are others, of the same models
    world.ticks = 39_600_000  # slower by a factor of 29, and all outputs are right
    nights.night(8)
    nights.night(9)
    killed = Cause("simulator_killed", "the simulator was killed by signal 9")
    nights.night(10, *(row(10, f"{M55}/add", "INFRA", cause=killed, attempt=n) for n in (1, 2)))
    world.toolchain = "gcc 13.2.0"
    grown = Cause("grown", "elf_text grew by 5,000 bytes over its slack of 512")
    over = [f"{M55}/add", f"{U55}/lstm"]
    nights.night(11, *(row(11, c, "OVER_BUDGET", cause=grown) for c in over))
    held = "until 2026-03-12: bug 1234"
    nights.night(12, *(row(12, c, "OVER_BUDGET", cause=grown, quarantined=held) for c in over))
    nights.night(13, *(row(13, c, "OVER_BUDGET", cause=grown) for c in over))  # it is over
    # a pull request that breaks a model, compared with the main branch
    topic = Origin("topic", "c14", pull_request="12")
    hang = Cause("silent", "nothing came for 300 s")
    own = [row(14, f"{M55}/{SCORES}", "HANG", cause=hang)]
    both = [*own, *(row(14, c, "OVER_BUDGET", cause=grown) for c in over)]
    nights.night(14, *both, origin=topic, base="n13")
    nights.night(15)  # main: the growth is gone, and the topic's hang was never here
    # another suite of the same history fails
    nights.night(16, row(16, f"{M55}/add", "HANG", cause=hang), suite="weekly")
    world.cases.remove(f"{U55}/add")  # left out while it passed
    nights.night(17, row(17, f"{M55}/lstm", "HANG", cause=hang))
    world.cases.remove(f"{M55}/lstm")  # left out while it failed
    nights.night(18)
    # a model is renamed, and edited so that it is wrong
    renames = {}
    for target in (M55, U55):
        world.cases[world.cases.index(f"{target}/{SCORES}")] = f"{target}/{RANKS}"
        renames[f"{target}/{RANKS}"] = f"{target}/{SCORES}"
    world.model = "m2"
    wrong = Cause("outputs_differ", "output 0 of set 0 is off by 3 LSB", 7)
    ranks = [f"{target}/{RANKS}" for target in (M55, U55)]
    nights.night(19, *(row(19, c, "MISMATCH", cause=wrong) for c in ranks), renames=renames)
    # a typo hides one of the two for a night, and a worker is lost for good
    hidden = row(20, ranks[1], "NO_VERDICT", cause=TYPO, identity=known, versions={}, metrics={})
    nights.night(20, row(20, ranks[0], "MISMATCH", cause=wrong), hidden, missing=f"{M55}/add")
    nights.night(21, *(row(21, c, "MISMATCH", cause=wrong) for c in ranks))
    # the same verdict with another cause
    other = Cause("outputs_differ", "output 1 has another shape", 7)
    nights.night(22, *(row(22, c, "MISMATCH", cause=other) for c in ranks))
    return nights


def go_on(nights: Nights) -> None:
    """Five plants more, of figures and of causes that come and go."""
    world = nights.world
    row = world.row
    held: dict[str, Any] = {"alarms": {"instructions": 0.05}}
    world.model = "m3"  # mended
    nights.night(23, **held)  # an alarm for what has been slow since the night 8
    world.reference = "r2"  # somebody accepts it
    nights.night(24, **held)
    slow = {"pte_bytes": 2000, "ticks_set0": 59_400_000}  # in one night
    broken = [row(25, f"{U55}/conv", "MISMATCH", cause=off_by(3))]
    nights.night(25, row(25, f"{U55}/lstm", metrics=slow), *broken, **held)
    # one case fails by chance from now on, another has a second cause, and then the first again
    second = Cause("outputs_differ", "output 1 has another shape", 7)
    broken = [row(26, f"{U55}/conv", "MISMATCH", cause=second)]
    nights.night(26, row(26, f"{M55}/conv", "MISMATCH", cause=off_by(1)), *broken, **held)
    nights.night(27, row(27, f"{U55}/conv", "MISMATCH", cause=off_by(3)), **held)
    world.ticks = round(world.ticks * 1.03)  # less than the alarm, and more of it in the next night
    nights.night(28, row(28, f"{M55}/conv", "MISMATCH", cause=off_by(1)), **held)
    nights.night(29, **held)
    world.ticks = round(world.ticks * 1.03)
    nights.night(30, **held)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    simulated = simulate(tmp_path_factory.mktemp("simulation"))
    go_on(simulated)
    yield simulated
    simulated.history.close()


def told(night: Comparison, folder: Path) -> str:
    """Terminal, annotations and JUnit of a night, without the lines that every case has."""
    console = Console(file=StringIO(), width=10_000)
    print_night(console, night)
    lines = [f"==== night {night.night.id}: exit {int(night.code)}"]
    lines += console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    lines += workflow_commands(night, {"GITHUB_ACTIONS": "true"})
    write_page(folder / "junit.xml", night, "night.xml")
    for case in ElementTree.parse(folder / "junit.xml").getroot().iter("testcase"):
        for child in case:
            name = f"{case.get('classname')}/{case.get('name')}"
            lines.append(f"<{child.tag} {child.get('type')}> {name}: {child.get('message')}")
            lines += [f"    {line}" for line in (child.text or "").splitlines()]
    return "\n".join(lines) + "\n"


def test_every_sentence_of_every_night(nights: Nights, tmp_path: Path) -> None:
    """``simulation.txt`` was read by a person; whoever changes a sentence reads it again."""
    told_ = "".join(told(nights.compared(day), tmp_path) for day in range(1, 31))
    assert told_ == Path(__file__).with_name("simulation.txt").read_text("utf-8")


@dataclass(frozen=True)
class Shown:
    night: Comparison
    page: str
    summary: str


@pytest.fixture(scope="module")
def every_night(nights: Nights) -> dict[int, Shown]:
    compared = {day: nights.compared(day) for day in range(1, 31)}
    return {day: Shown(night, render(night), summary(night)) for day, night in compared.items()}


def sentences(shown: Shown) -> str:
    """GitHub's summary, and the page down to its tables: each heading, sentence and entry."""
    html = re.sub("<(style|script|svg).*?</\\1>", "", shown.page, flags=re.DOTALL)
    html = html.partition("<h2>Targets and models")[0]
    blocks = re.findall(r"<(h1|h2|h3|p|li|summary)\b[^>]*>(.*?)(?=</\1>)", html, re.DOTALL)
    lines = [f"==== night {shown.night.night.id}"]
    lines += [line for line in shown.summary.splitlines() if line]
    lines += [f"<{tag}> {_text(block)}" for tag, block in blocks]
    return "\n".join(lines) + "\n"


def _text(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", "", html)).split())


def test_every_sentence_of_every_summary_and_page(every_night: dict[int, Shown]) -> None:
    """``simulation-pages.txt`` was read by a person, too."""
    shown = "".join(map(sentences, every_night.values()))
    assert shown == Path(__file__).with_name("simulation-pages.txt").read_text("utf-8")


@pytest.mark.parametrize("day", range(1, 31))
def test_page_and_summary_say_the_same(every_night: dict[int, Shown], day: int) -> None:
    """The headline, what failures share and why, what changed, since when, and what is gone."""
    night = every_night[day].night
    html = re.sub("<(style|script).*?</\\1>", "", every_night[day].page, flags=re.DOTALL)
    page = _text(html)
    plain = every_night[day].summary.replace("\\", "").replace("&gt;", ">")
    assert night.verdict in page
    assert night.verdict in plain.splitlines()[0]
    for group in night.groups:
        assert f"{group.what} ({len(group.cases)}) {group.why}" in page
        assert f"### {group.what} ({len(group.cases)})" in plain
        for change in group.changed:
            assert f"{change.name} {change.before[:12]}" in page
            assert f"{change.name} {change.before[:12]}" in plain
    for case in night.cases:
        assert f"{case.state.sign} {case.state}" in page
        if case.since is not None and case.since.last_good is not None:
            first, good = case.since.first.night, case.since.last_good.night
            cause = " of this cause" if str(case.state) == "changed" else ""
            assert f"Failing{cause} since the night {first} (" in page
            assert f"it last passed in {good}" in page
        assert case.flaky in page
    for case, delta in night.moved:
        assert f"{case.case}: {delta}" in page
        assert f"- {case.case}: {delta}" in plain
    for case, step in night.steps:
        assert f"{case.case}: {step}" in page
    for case, step in night.held:
        assert f"- {case.case}: {step}, and holds" in plain
    if night.of(*(case.state for case in night.cases if not case.planned)):
        assert "is not in the suite" in page
