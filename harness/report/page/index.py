"""All nights of a suite on one page: how each case ended in each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.nightly.history.case_state import Standing
from harness.nightly.history.compare import compare, nights_before, standing
from harness.nightly.history.model import Night, Row, last_tries
from harness.nightly.history.store import History
from harness.report.page.render import HERE, filters, render
from harness.report.templates import filled
from harness.system.files import disk_errors, write_whole


@dataclass(frozen=True)
class Course:
    """A case over nights. ``cells``: None for a night that did not plan it."""

    case: str
    cells: tuple[Standing | None, ...]

    @property
    def bad(self) -> int:
        """In how many nights it failed."""
        return sum(cell is not None and cell.state.failing for cell in self.cells)


def courses(nights: Sequence[Night], rows: Sequence[Row]) -> list[Course]:
    """Those that fail most come first. ``nights``: the oldest first."""
    by_night: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_night[row.night].append(row)
    earlier: dict[str, tuple[Row, ...]] = defaultdict(tuple)
    cells: dict[str, list[Standing | None]] = defaultdict(list)
    for number, night in enumerate(nights):
        last = last_tries(by_night[night.id])
        for case in (planned.case for planned in night.plan):
            tries = (last[case],) if case in last else ()
            cells[case] += [None] * (number - len(cells[case]))
            cells[case].append(standing(case, tries, earlier[case], night.alarms))
            earlier[case] += tries
    empty = [None] * len(nights)
    found = [Course(case, tuple((each + empty)[: len(nights)])) for case, each in cells.items()]
    return sorted(found, key=lambda course: (-course.bad, course.case))


def write_index(history: History, night: Night, folder: Path) -> Path:
    """Raises DiskError, and what the history does."""
    nights = [*reversed(nights_before(history, night)), night]
    with disk_errors("writing the index"):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{_file(night)}", render(compare(history, night)))
        there = {each.id: _file(each) for each in nights if (folder / _file(each)).exists()}
        values = {
            "night": night,
            "nights": nights,
            "pages": there,
            "courses": courses(nights, history.rows([each.id for each in nights])),
            "style": (HERE / "night.css").read_text("utf-8"),
        }
        write_whole(folder / "index.html", filled(HERE / "index.html", values, filters()))
    return folder / "index.html"


def _file(night: Night) -> str:
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in night.id)
    return f"night-{name}.html"
