"""How far a build got, by its log: whether it ended, and its last step.

A log may be cut anywhere. A build has ended when the last step of each of its counters is the last
one there is, or, without counters, when something follows its last link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.link.log.lines import Line
from harness.link.log.messages import LINKED

_NUMBERED = re.compile(r"^\[\s*(?P<step>\d+)/(?P<steps>\d+)\] ")  # ninja, west
_PERCENT = re.compile(r"^\[\s*(?P<percent>\d+)%\] ")  # CMake's Makefiles
_BUILT = "[100%] Built target "
# Said when everything was done, by whoever says it.
_ENDED = re.compile(
    r"^ninja: no work to do|: Nothing to be done for |: [`'].+' is up to date\.|- 0 Error\(s\)"
    r"|Finished: \d+ information, \d+ warning(?:, 0 error)? and 0 (?:fatal )?error messages"
    r"|^Total number of errors: 0$"
)
_COMPILES = re.compile(
    r"^\s*(?:CC|CXX|AS)\s+\S|(?:^|[/-])(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|armclang)\S* .*-c "
)
_BELONGS_TO_LINK = re.compile(
    r"\b(?:ld|collect2)\S*: |: warning: |^\s+(?!\s|[A-Z]+\s)|^Memory region\s"
)


def last_step_of_unfinished(lines: Sequence[Line], *, cut: bool) -> str | None:
    """The last step of a build that is not seen to have ended; None when it has. ``cut``: the log
    ends in the middle of a line."""
    steps = [line.text for line in lines if _NUMBERED.match(line.text)]
    percents = [line.text for line in lines if _PERCENT.match(line.text)]
    last = (steps or percents or [line.text for line in lines[-1:]] or [""])[-1]
    if cut:
        return last
    if any(_ENDED.search(line.text) for line in lines[-1:]):
        return None
    if steps:
        return None if _all_counted(steps) else last
    if percents:
        return None if percents[-1].startswith(_BUILT) else last
    return None if _goes_on_after_link(lines) else last


def shows_steps(lines: Sequence[Line]) -> bool:
    return any(_NUMBERED.match(line.text) or _PERCENT.match(line.text) for line in lines)


def _all_counted(steps: Sequence[str]) -> bool:
    """A build may run another one as a step, with numbers of its own."""
    open_builds: list[tuple[int, int]] = []
    for text in steps:
        match = _NUMBERED.match(text)
        assert match is not None
        step, count = int(match["step"]), int(match["steps"])
        while open_builds and open_builds[-1][0] == open_builds[-1][1]:
            open_builds.pop()
        if open_builds and step > open_builds[-1][0]:
            open_builds.pop()  # the next step; the count may have changed
        open_builds.append((step, count))
    return all(step == count for step, count in open_builds)


def _goes_on_after_link(lines: Sequence[Line]) -> bool:
    links = [number for number, line in enumerate(lines) if LINKED.search(line.text)]
    after = [line.text for line in lines[links[-1] + 1 :]] if links else []
    return any(not _BELONGS_TO_LINK.search(text) for text in after) and not any(
        _COMPILES.search(text) for text in after
    )
