"""The log parser: bytes in pieces of any size, then lines, prefixes, rows of the table, events.

The runner's prefix is ``I [executorch:file.cpp:211 main()]`` since mid-2025, without the function
before, without the opening bracket in early 2024, without a line number in Zephyr samples. On
Linux the time follows the level. The bundled runner prints the newest of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Final

from harness.log.events import (
    ENDS,
    HARNESS,
    LAUNCH,
    Doubt,
    Item,
    Kind,
    Observation,
    Progress,
    Stage,
    Stray,
    merge_observations,
)
from harness.log.figures import Figures
from harness.log.job_lines import (
    TIMESTAMP,
    Prefix,
    ends_well,
    is_known,
    may_be_quoted,
    narrowing,
    says_failure,
    without_decoration,
    without_tool,
)
from harness.log.matches import Matches
from harness.log.outputs import BEGINNINGS, OutputLines
from harness.log.pattern import gate, named_groups, only_row, rows, table, text

_RUNNER_WORD: Final = b"executorch:"
_ZEPHYR_OS: Final = b"<err> os: "
_SUCCESS: Final = (Stage.EXECUTED, *ENDS)
_BEFORE_NAME: Final = len(b"I 00:00:00.000000000 [")
_ERROR_LEVEL: Final = b"E: "
_DRIVER_FILE = re.compile(rb"\(\w+\.c:\d+\)\s*$")  # where the driver's errors say they are from
# A message of Linux, which may come in the middle of another program's line
# (Linux kernel/printk/printk.c, print_time).
_KERNEL = re.compile(rb"\[ {0,4}\d{1,7}\.\d{6}\] ")
# No bound drops bytes: what is longer is read as several lines of one number, which overlap so that
# no word is cut. Printed outputs and base64 are read whole, up to _MOST_LINE.
_MOST_LINE = 32 << 20
_MOST_OTHER = 64 << 10  # bytes of an unfinished line that are held
_MOST_TEXT = 4096
_OVERLAP = 128
# Bytes that a crash or a truncated file leaves in a line; another program's words may follow.
_FILL = re.compile(rb"[\x00 \t]{64,}|\x00{4,}|([^\w\s])\1{63,}")
_FILLS = (b"\x00" * 4, *(mark * 64 for mark in (b" ", b"\t", b".", b"-", b"=", b"*", b"#")))
_BEGINNING = 128  # bytes that show how a line begins, after a CI system's time stamp
# After a runner has started, an "Error:" that does not name a component of the model comes from
# another program: the runner's own, a script, the CI system.
_NOT_A_COMPONENT = re.compile(rb"\s*Error: (?!\(E\d|FVP_|[\w.-]{1,100}: [\w.-]{1,100}: )")
_MOST_STRAYS = 3
_BEFORE_GUEST = LAUNCH | HARNESS | {Kind.PROCESS_CRASH}  # failures that need no guest
_MOST_BOOTS = 3  # without an end between them: the board resets again and again
# The sections of patterns.yaml for a line that no runner wrote, besides those of prefixes.
_BARE: Final = (
    *("outputs", "faults", "anywhere", "npu", "inside", "heads", "stops", "versions"),
    *("stages", "launches", "guest", "harmless", "failed_jobs", "suspects", "failure_words"),
)


def parse_console(console: bytes) -> Observation:
    """Parses the console of one process in linear time. Never raises on its content."""
    parser = LogParser()
    parser.feed(console)
    return parser.finish()


def parse_processes(console: bytes, starts: Sequence[int]) -> Observation:
    """Parses the console of several processes of one run, which ran one after another.

    ``starts``: where the output of each process begins, in bytes and in order. Each is parsed on
    its own, so that none can report for another; lines are counted over the whole console. A
    process that begins in the middle of a line continues that line; one that begins at or after
    the end printed nothing.
    """
    ends = [end for _, end in pairwise((*starts, len(console)))]
    observations = []
    for start, end in zip(starts, ends, strict=True):
        parser = LogParser(console.count(b"\n", 0, start))
        parser.feed(console[start:end])
        observations.append(parser.finish())
    return merge_observations(observations)


def gate_of_bare_lines() -> Callable[[bytes], object]:
    """True for every line without a runner's prefix that may matter; the rest is only counted."""
    driver_errors = replace(only_row(Item.DRIVER), needles=(_ERROR_LEVEL,))
    return gate((*rows("host", "zephyr", *_BARE), driver_errors))


class LogParser:
    """Collects events while bytes go by; a line may come in any number of pieces.

    ``lines_before``: lines of the console that another process printed. ``prefix``: what stands
    before its lines, where a collector of logs adds more than is known or can be learned.
    """

    def __init__(self, lines_before: int = 0, prefix: re.Pattern[bytes] | None = None) -> None:
        self._prefix = Prefix(prefix)
        self._parts: list[bytes] = []
        self._held = 0
        self._printed = False  # the held part begins as printed outputs do
        self._number = lines_before
        self._last = b""
        self._above = b""  # the line before the one that is looked at
        self._linux = False  # the console of a Linux
        self._filled = False  # some of the lines that are looked at are filled
        self._begun = b""  # the part of a line before a message of Linux
        self._narrowing: Callable[[bytes], bytes] | None = None  # of UTF-16, as PowerShell writes
        self._begins = False  # whether it is UTF-16 is known
        self._head = b""  # what was read until then
        self._runner: int | None = None
        self._strays: list[Stray] = []
        self._strays_settled = True
        self._outputs = OutputLines()
        self._figures = Figures(self._outputs.tensors)
        self._matches = Matches()
        self._may_matter = gate_of_bare_lines()

    @property
    def final_failure(self) -> bool:
        """A failure was read after which nothing worth waiting for comes."""
        return self._matches.final

    def feed(self, data: bytes) -> None:
        if self._narrowing is not None or not self._begins:
            data = self._narrow(data)
        if b"\n" not in data:
            self._hold(data)
            return
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts, self._held, self._printed = [], 0, False
        self._linux = self._linux or b"Linux version " in data
        self._filled = any(fill in data for fill in _FILLS)
        lines = data.split(b"\n")
        rest = lines.pop()
        if max(map(len, lines)) <= _MOST_OTHER:
            self._lines(lines)
        else:
            for line in lines:  # as if it had come in pieces
                self._hold(line)
                self._lines([b"".join(self._parts)])
                self._parts, self._held, self._printed = [], 0, False
        self._hold(rest)

    def finish(self) -> Observation:
        """Everything, with a last line that has no end."""
        if not self._begins:
            self._begins = True
            self.feed(self._head)
        cut = bool(self._held)
        if cut:
            self.feed(b"\n")
        if self._begun:
            self._line(self._number, self._begun)
        figures, matches = self._figures, self._matches
        well = (step.line for step in figures.progress if step.stage in _SUCCESS)
        matches.settle(max(well, default=0))
        guest = (f.line for f in matches.failures if f.kind not in _BEFORE_GUEST)
        steps = (step.line for step in figures.progress)
        runner = () if self._runner is None else (self._runner,)
        return Observation(
            lines=self._number,
            failures=tuple(matches.failures),
            metrics=figures.metrics,
            op_ticks=tuple(figures.op_ticks),
            build_id=figures.build_id,
            completed=(figures.complete_line,),
            last_line=text(self._last.strip(b"\r\n")[:400]),
            suspects=tuple(matches.suspects),
            failures_dropped=matches.dropped,
            progress=tuple(figures.progress),
            pmu=figures.pmu,
            tensors=self._outputs.tensors.finish(),
            output_files=tuple(figures.output_files),
            stop=figures.stop,
            bundle_lines=tuple(figures.passes),
            runner_line=self._runner,
            guest_line=min((*runner, *steps, *guest), default=None),
            versions=figures.versions,
            cut=cut,
            ended_line=figures.ended_line,
            output_count=figures.output_count,
            strays=tuple(self._strays),
            strays_settled=self._strays_settled,
        )

    # From bytes to lines

    def _narrow(self, data: bytes) -> bytes:
        """UTF-8 of a log in UTF-16, which shows after a few bytes."""
        if self._narrowing is not None:
            return self._narrowing(data)
        data, self._head = self._head + data, b""
        may_be_wide = data[:1] in (b"\xff", b"\xfe") or b"\x00" in data
        if len(data) < (_BEGINNING if may_be_wide else 2):
            self._head = data
            return b""
        self._narrowing, self._begins = narrowing(data[:_BEGINNING]), True
        return self._narrowing(data) if self._narrowing else data

    def _hold(self, part: bytes) -> None:
        """Keeps an unfinished line. If it is long and not an output, only its unread part."""
        if not part:
            return
        self._parts.append(part)
        self._held += len(part)
        if self._held <= (_MOST_LINE if self._printed else _MOST_OTHER):
            return
        line = b"".join(self._parts)
        # Only printed outputs are long and worth reading to their end.
        beginning = line[:_BEGINNING]
        self._printed = self._outputs.attentive or any(word in beginning for word in BEGINNINGS)
        most = _MOST_LINE if self._printed else _MOST_OTHER
        while len(line) > most:
            self._lines([line[:most]])
            self._number -= 1
            line = line[most if self._printed else most - _OVERLAP :]
        self._parts, self._held = [line], len(line)

    def _lines(self, lines: list[bytes]) -> None:
        """Most lines of a long log go no further than this loop."""
        matches, outputs, may_matter = self._matches, self._outputs, self._may_matter
        progress = self._figures.progress
        element = outputs.tensors.element
        number, last = self._number, self._last
        if self._linux:
            lines = self._without_kernel_messages(lines)
        for line in lines:
            number += 1
            if not line:
                continue
            above, last = last, line
            if line.startswith(b"Output[") and element(number, line):
                continue
            if (
                _RUNNER_WORD in line
                or number <= matches.registers_until
                or may_matter(line)
                or outputs.attentive
            ):
                self._above = above
                self._line(number, line)
            if progress and progress[-1].stage in ENDS:
                self._behind_end(number, line)
        self._number = number
        if not last.strip():
            last = next((line for line in reversed(lines) if line.strip()), self._last)
        self._last = last

    def _behind_end(self, number: int, raw: bytes) -> None:
        """Keeps lines after an end marker that no known program prints there."""
        for line in self._pieces(self._prefix.removed(without_decoration(number, raw))):
            if ends_well(without_tool(line)):
                self._strays_settled = True
            else:
                self._stray(number, line)

    def _stray(self, number: int, line: bytes) -> None:
        strays = self._strays
        if (self._strays_settled or len(strays) < _MOST_STRAYS) and not is_known(line):
            self._strays_settled = False
            if len(strays) < _MOST_STRAYS:
                strays.append(Stray(number, text(line[:200])))

    def _without_kernel_messages(self, lines: list[bytes]) -> list[bytes]:
        """As many lines: a message of Linux alone, and the line that it interrupted whole."""
        separate = []
        for line in lines:
            match = _KERNEL.search(line)
            if match is None:
                separate.append(self._begun + line)
                self._begun = b""
                continue
            separate.append(line[match.start() :])
            self._begun += TIMESTAMP.sub(b"", line[: match.start()])
        return separate

    # From lines to rows of the table

    def _line(self, number: int, line: bytes) -> None:
        line = self._prefix.removed(without_decoration(number, line))
        may_be_output = line.startswith((b"Output", b'echo "')) or self._outputs.attentive
        if may_be_output and self._outputs.line(number, line):
            line = self._outputs.rest
        for place, piece in enumerate(self._pieces(line)):
            self._piece(number, piece)
            if place and _RUNNER_WORD in line[:_BEGINNING]:
                self._stray(number, piece)

    def _pieces(self, line: bytes) -> list[bytes]:
        """The line, or what is read of a long or filled one as lines of their own."""
        if len(line) <= _MOST_TEXT and not self._filled:
            return [line]
        starts = _MOST_TEXT - _OVERLAP
        pieces = []
        for part in _FILL.sub(_FILLS[0], line).split(_FILLS[0]):
            pieces.append(part[:_MOST_TEXT])
            for start in range(starts, len(part) - _OVERLAP, starts):
                pieces.append(part[start : start + _MOST_TEXT].lstrip())
        return pieces

    def _piece(self, number: int, line: bytes) -> None:
        at = line.find(_RUNNER_WORD)
        runner = only_row(Item.RUNNER).compiled
        if at >= 0:
            prefix = runner.search(line, max(0, at - _BEFORE_NAME))
        else:
            prefix = only_row(Item.HOST).search(line) if line.startswith(b"[") else None
        if prefix is None:
            self._bare(number, line)
            return
        before = line[: prefix.start()]
        quoted = False
        if before:
            learned = self._prefix.learned(before)
            quoted = may_be_quoted(before) and not learned
            self._bare(number, before)
        while prefix is not None:  # two lines may have run into one
            again = line.find(_RUNNER_WORD, prefix.end()) > 0
            following = runner.search(line, prefix.end()) if again else None
            end = following.start() if following else len(line)
            self._message(number, prefix[1], line[prefix.end() : end], quoted)
            prefix = following

    def _message(self, number: int, level: bytes, message: bytes, quoted: bool) -> None:
        """A runner's message, of level D, I, W, E or F. ``quoted``: perhaps by another program."""
        if self._runner is None:
            self._runner = number
            self._figures.reached(Stage.RUNNER, number, message)
        if level in (b"E", b"F"):
            if self._matches.full:
                self._matches.dropped += 1
            else:
                self._error(number, message)
            return
        if self._known_failure(number, message):
            return
        self._rest(number, message[self._figures.message(number, message, quoted=quoted) :])
        if b"Info: " in message:  # the simulator's words on the same line
            self._simulator_line(number, message[message.index(b"Info: ") :], True)

    def _rest(self, number: int, rest: bytes) -> None:
        """Reads the rest of a line after a message: another program may have written it."""
        rest = rest.lstrip(b". \r\x00")
        if rest and (table("failed_jobs").first(rest) or says_failure(rest)):
            self._matches.add(Kind.JOB_FAILED, number, rest, {}, Doubt.ALWAYS)

    def _error(self, number: int, message: bytes) -> None:
        """A message of level E or F is a failure whether or not a row knows it."""
        if not self._known_failure(number, message):
            self._matches.error(number, message)

    def _known_failure(self, number: int, message: bytes) -> bool:
        """True when a row knows the message, at whatever level it was logged, as a failure."""
        found = table("harmless", "ignored", "anywhere", "messages", "npu", "steps").first(message)
        return found is not None and self._matches.match(number, message, *found)

    def _bare(self, number: int, line: bytes) -> None:
        """A line without a runner's prefix: faults, registers, the simulator's own words."""
        matches = self._matches
        if matches.fault(number, line):
            return
        if number <= matches.registers_until and matches.registers(number, line):
            return
        if self._outputs.line(number, line):
            return
        if matches.full:
            matches.dropped += _ERROR_LEVEL in line
            return
        if found := table("npu").first(line):
            matches.match(number, line, *found)
        elif b": " in line and (match := only_row(Item.DRIVER).search(line)):
            self._driver(number, match[1], match[2], line)
        elif found := table("anywhere").first(line):
            matches.match(number, line, *found)
        elif b"<err>" in line and (match := only_row(Item.ZEPHYR).search(line)):
            # Boots that end well also log errors, so only known messages are a cause.
            if not self._known_failure(number, match[1]):
                matches.add(Kind.RUNNER_ERROR, number, match[1], {}, Doubt.ALWAYS)
        elif _ZEPHYR_OS in line:
            matches.dump(number, line.partition(_ZEPHYR_OS)[2])
        elif not self._simulator_line(number, line, self._runner is not None):
            bare = without_tool(line)
            if not self._figures.bare(number, bare) and says_failure(bare):
                matches.add(Kind.JOB_FAILED, number, line, {}, Doubt.ALWAYS)

    def _driver(self, number: int, level: bytes, message: bytes, line: bytes) -> None:
        """Ethos-U driver and Zephyr's minimal logging: ``E: text (file.c:12)``."""
        if level != b"E":
            self._figures.bare(number, message)
            return
        if self._matches.dump(number, message) or any(r.search(line) for r in rows("no_driver")):
            return
        progress = self._figures.progress
        running = progress and progress[-1].stage not in ENDS
        if running or _DRIVER_FILE.search(message) or table("errors").first(message):
            self._error(number, message)
        elif not self._known_failure(number, message):  # of whoever prints around a run
            self._matches.add(Kind.RUNNER_ERROR, number, message, {}, Doubt.ALWAYS)

    def _simulator_line(self, number: int, line: bytes, after_runner: bool) -> bool:
        """True when the simulator, the boot or a shell wrote the line.

        ``after_runner``: a runner has started, so the simulator has, too.
        """
        figures, matches = self._figures, self._matches
        if stop := table("stops").first(line):
            figures.match(number, line, *stop)
            self._rest(number, line[stop[1].end() :])
            return True
        for section in ("versions", "stages"):
            if found := table(section).first(line):
                figures.match(number, line, *found)
                if found[0].kind is Stage.BOOTED and _boots(figures.progress) == _MOST_BOOTS:
                    facts = {"boots": str(_MOST_BOOTS), "above": text(self._above.strip()[:200])}
                    matches.add(Kind.RESET_LOOP, number, line, facts)
        if failed := table("failed_jobs").first(without_tool(line)):
            matches.match(number, line, *failed)
            return True
        launch = table("launches").first(line)
        if launch is not None and launch[0].kind is not Item.NOISE:
            kind, facts = Kind(launch[0].kind), named_groups(launch[1])
            foreign = after_runner and _NOT_A_COMPONENT.match(line)
            matches.add(kind, number, line, facts, Doubt.ALWAYS if foreign else None)
            return True
        if found := table("guest", "harmless", "suspects").first(line):
            matches.match(number, line, *found)
            return True
        return _RUNNER_WORD in line


def _boots(progress: Sequence[Progress]) -> int:
    """How often the last banner of a boot has come since a program ended."""
    since = takewhile(lambda step: step.stage not in ENDS, reversed(progress))
    return sum(step.text == progress[-1].text for step in since)
