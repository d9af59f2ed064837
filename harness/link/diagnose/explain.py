"""``hil link explain``: from a log or a build directory to causes and fixes."""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError, NotThere, UsageError
from harness.formats.linker_map import LinkMap, parse_map
from harness.link.build import (
    Pending,
    commands_in_log,
    failing_link,
    link_commands,
    pending_steps,
)
from harness.link.build_failure import (
    BuildFailure,
    BuildFailureKind,
    build_failure,
    failure_in,
    image_of,
)
from harness.link.command import BuildCommand, LinkerCall, linker_call
from harness.link.diagnose import causes
from harness.link.diagnose.script import explain_assertion, explain_discarded, lost_constructors
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.trial import Trial, without_repeats
from harness.link.diagnose.undefined import explain_undefined
from harness.link.diagnose.zephyr import cache_entries
from harness.link.failure import Failure, FailureKind, archive_of, file_name, member_of
from harness.link.index import LinkIndex, load
from harness.link.kconfig import RefusedOption, refused_options
from harness.link.log.lines import Lines, lines_of, read_lines
from harness.link.log.messages import signs
from harness.link.log.parse import parse, parse_lines
from harness.link.log.statements import statements_of
from harness.system.files import text_of
from harness.system.progress import Progress


@dataclass(frozen=True)
class Explanation:
    """``linked``: a link succeeded, or is in the log. If no link failed, ``stopped`` is why the
    build did not finish, and ``unfinished`` the last step of the log or the next step of the build
    directory."""

    source: str
    failures: tuple[Failure, ...]
    command: BuildCommand | None
    linked: bool = True
    stopped: BuildFailure | None = None
    unfinished: str | None = None
    image: str | None = None  # of a build of several images: whose link failed
    more: bool = False  # the log has more messages than were read

    @property
    def well(self) -> bool:
        """The final link succeeded and the build finished."""
        ended = self.stopped is None and self.unfinished is None
        return self.linked and ended and not self.failures

    def summary(self) -> dict[str, Any]:
        return {
            **asdict(replace(self, command=None)),
            "failed": bool(self.failures),
            "command": list(self.command.argv) if self.command else None,
            "output": self.command.output if self.command else None,
            "objects_read": self.command is not None,
        }


def explain(path: Path, progress: Progress) -> Explanation:
    """Explain a log file, or the link of a build directory that fails."""
    if path.is_dir():
        return _explain_build(path.resolve(), progress)
    if not path.is_file():
        raise NotThere(path, "file or directory")
    lines, cut = read_lines(path)
    return explain_lines(lines, path.resolve(), progress, cut=cut)


def explain_lines(
    lines: Lines, path: Path, progress: Progress, *, cut: bool = False
) -> Explanation:
    """Explains a log. Reads the objects too if the log has the link command and they still exist.
    ``cut``: the log ends in the middle of a line."""
    parsed = parse_lines(lines)
    unknown = all(failure.kind is FailureKind.UNKNOWN for failure in parsed.failures)
    stopped = failure_in(lines) if unknown else None
    # A rule for builds explains what no rule for linkers does: the same line, or the driver's words
    # where no linker says why.
    known = stopped if stopped and stopped.kind is not BuildFailureKind.NOT_KNOWN else None
    first = next(iter(parsed.failures), None)
    if first is None or (known and (first.linker == "driver" or first.line == known.line)):
        steps = (x for x in lines if _NUMBERED.match(x.text) or _PERCENT.match(x.text))
        shown = parsed.linked or any(steps)
        step = _last_step_of_unfinished(lines, cut=cut) if shown and stopped is None else None
        return Explanation(str(path), (), None, parsed.linked, stopped, step)
    image = image_of(parsed.failures[0].line, lines)
    named = [p.object for f in parsed.failures for p in f.places if p.object]
    named += [name for f in parsed.failures for name in f.files]
    stems = {file_name(part) for name in named for part in (member_of(name), archive_of(name))}
    for command in commands_in_log(lines, path.parent):
        try:
            call = linker_call(command)
        except InfraError:
            continue
        words = " ".join(command.argv)  # a log may hold several links
        if not stems or any(stem and stem in words for stem in stems):
            progress(f"reading the objects of {command.output}")
            failures = diagnose(parsed.failures, call, Tree(command.directory), command)
            return Explanation(str(path), failures, command, image=image, more=parsed.more)
    refused = refused_options(s.text for s in statements_of(lines))
    # The inputs of the last link command, even if its files are elsewhere, and the archives in
    # which lld found similar symbols.
    links = [x.text for x in lines if " -o " in x.text and ".a" in x.text]
    inputs = [w for w in (links[-1].split() if links else ()) if w.endswith((".a", ".o", ".obj"))]
    similar = [m["archive"] for x in lines if (m := _SIMILAR_IN.match(x.text))]
    line = LinkIndex(LinkerCall(("ld", *similar, *inputs), path.parent), ())
    explained = [explain_failure(f, line, None, refused) for f in parsed.failures]
    failures = without_repeats(explained)
    return Explanation(str(path), failures, None, image=image, more=parsed.more)


_SIMILAR_IN = re.compile(r"\s*>>> defined in: (?P<archive>\S+\.a)\(")


def _explain_build(build: Path, progress: Progress) -> Explanation:
    made = cache_entries(build).get("CMAKE_CACHEFILE_DIR")
    if made is not None and Path(made).resolve() != build:
        raise UsageError(
            f"{build} was moved or copied: CMake configured it as {made}",
            hint="configure again in an empty build directory; its rules name the old paths",
            path=build,
        )
    link_commands(build)  # raises if it is not a build directory
    pending = pending_steps(build)
    if pending.refused:  # nothing is built, and what a link would lack follows from it
        return explain_lines(lines_of(pending.refused), build, progress)
    progress(f"linking again what fails in {build.name}")
    again = failing_link(build, pending.feeds)
    if again is None:
        return _without_failed_link(build, pending, progress)
    progress(f"reading the objects of {again.command.output}")
    parsed = parse(again.text, failed=True)
    failures = diagnose(parsed.failures, again.call, Tree(build), again.command)
    return Explanation(str(build), failures, again.command, more=parsed.more)


def _without_failed_link(build: Path, pending: Pending, progress: Progress) -> Explanation:
    """For a build that has finished or stops before a link."""
    if pending.compiles:
        progress(f"compiling again what is not up to date in {build.name}")
    calls = [" ".join(step.argv) for step in pending.compiles]
    stopped = build_failure(pending.compiler_errors(), calls)
    missing = _MISSING.search(stopped.text) if stopped is not None else None
    if missing and pending.generates:
        rules = build / "build.ninja"  # names every file that the build generates
        made = re.compile(rf"[\s/]{re.escape(missing['file'])}[\s:|]")
        if not rules.is_file() or made.search(text_of(rules)):
            stopped = None
    unfinished = pending.next_step if stopped is None else None
    lost = () if stopped or unfinished else _lost_constructors(build, progress)
    return Explanation(str(build), lost, None, True, stopped, unfinished or None)


def _lost_constructors(build: Path, progress: Progress) -> tuple[Failure, ...]:
    found: dict[str, Failure] = {}
    for command in link_commands(build):
        progress(f"looking what the link of {command.output} throws away")
        with suppress(InfraError):
            if lost := lost_constructors(linker_call(command)):
                found.setdefault(lost.cause, lost)
    return tuple(found.values())


_MISSING = re.compile(r"(?P<file>[^\s:/]+): No such file or directory")


def diagnose(
    failures: Sequence[Failure], call: LinkerCall, tree: Tree, command: BuildCommand
) -> tuple[Failure, ...]:
    """Adds cause and fix, from the files of the link; a fix that can be tried was."""
    index, trial = load(call), Trial(command, tuple(failures), tree.build)
    return without_repeats([explain_failure(f, index, tree, (), trial) for f in failures])


def explain_failure(
    failure: Failure,
    index: LinkIndex,
    tree: Tree | None = None,
    refused: Sequence[RefusedOption] = (),
    trial: Trial | None = None,
) -> Failure:
    """Adds cause and fix. A log alone has an ``index`` without units and no ``tree``; ``refused``
    are then the options in Kconfig's warnings."""
    if failure.kind is FailureKind.DUPLICATE_SYMBOL:
        return causes.explain_duplicate(failure, index, tree)
    if failure.kind is FailureKind.DISCARDED_SECTION:
        return explain_discarded(failure, index, trial)
    if failure.kind is FailureKind.WRONG_ARCHITECTURE:
        return causes.explain_architecture(failure, index, trial)
    if failure.kind is FailureKind.REGION_OVERFLOW and (link_map := _map_of(index)):
        scripts = [*map(text_of, index.call.scripts)]
        return causes.explain_overflow(failure, link_map, scripts, tree.zephyr if tree else None)
    if failure.kind in (FailureKind.ASSERTION, FailureKind.UNKNOWN):  # ld prints its text alone
        return explain_assertion(failure, index, trial)
    explained = causes.from_message(failure, trial)
    if failure.kind is FailureKind.UNDEFINED_SYMBOL and not explained.cause:
        return explain_undefined(failure, index, tree, refused, trial)
    if failure.kind is FailureKind.MISSING_LIBRARY and failure.symbol and tree is not None:
        name = f"lib{failure.symbol.removeprefix('-l')}.a"
        for file in tree.built.files:
            if file.name == name:
                about = {"library": file, "folder": file.parent}
                return causes.explained(explained, "built elsewhere", **about)
    return explained


def _map_of(index: LinkIndex) -> LinkMap | None:
    """The map of the link, done again; None if its files are missing."""
    if not index.units:
        return None
    with tempfile.TemporaryDirectory(prefix="hil-link-") as scratch:
        file = Path(scratch) / "link.map"
        again = index.call.with_output(Path(scratch) / "x.elf")
        replace(again, argv=(*again.argv, "-Map", str(file))).run()
        return parse_map(text_of(file)) if file.is_file() else None


# How far a build got, by its log, which may be cut anywhere.
_NUMBERED = re.compile(r"^\[\s*(?P<step>\d+)/(?P<steps>\d+)\] ")  # ninja, west
_PERCENT = re.compile(r"^\[\s*(?P<percent>\d+)%\] ")  # CMake's Makefiles
_BUILT = "[100%] Built target "


def _last_step_of_unfinished(lines: Lines, *, cut: bool) -> str | None:
    """The last step of a build that is not seen to have ended; None when it has. ``cut``: the log
    ends in the middle of a line.

    A build has ended when the last step of each of its counters is the last one there is, and a
    line follows that shows how it ended: ninja tells a step before it tells that the step failed.
    Without counters, when something follows its last link.
    """
    last_step = deque((line.text for line in lines if _NUMBERED.match(line.text)), 1)
    last_percent = deque((line.text for line in lines if _PERCENT.match(line.text)), 1)
    last = (last_step or last_percent or [line.text for line in lines[-1:]] or [""])[0]
    if cut:
        return last
    if any(signs()["done"].search(line.text) for line in lines[-1:]):
        return None
    counted = [line.text for _, line in lines.having(("cmake_progress_start",))]
    if counted and not counted[-1].endswith(" 0"):  # CMake's Makefiles end with it, if verbose
        return last
    if last_step:
        return None if _all_counted(lines) and lines[-1].text != last else last
    if last_percent:
        return None if last.startswith(_BUILT) else last
    links = [found.index for found in signs()["linked"].found_in(lines)]
    after = [line.text for line in lines[links[-1] + 1 :]] if links else []
    goes_on = any(not signs()["of_a_link"].search(text) for text in after)
    return None if goes_on and not any(map(signs()["compiles"].search, after)) else last


def _all_counted(lines: Lines) -> bool:
    """A build may run another one as a step, which counts its own steps."""
    open_builds: list[tuple[int, int]] = []
    for match in filter(None, (_NUMBERED.match(line.text) for line in lines)):
        step, count = int(match["step"]), int(match["steps"])
        while open_builds and open_builds[-1][0] == open_builds[-1][1]:
            open_builds.pop()
        if open_builds and step > open_builds[-1][0]:
            open_builds.pop()  # the next step; the count may have changed
        open_builds.append((step, count))
    return all(step == count for step, count in open_builds)
