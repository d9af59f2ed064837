"""The reader itself: bytes in whatever pieces they come, lines, prefixes, events.

Prefix grammars of ExecuTorch's ``arm_executor_runner``: ``I [executorch:file.cpp:211 main()]``
since mid-2025, without the function before, without the opening bracket in early 2024, without
a line number in Zephyr samples; ``[method.cpp:788]`` from host and pybind builds, which say no
level. The bundled runner speaks the newest of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.observe import platforms
from harness.observe.events import FINAL, Event, Kind, ModelStop, Observation, Stage
from harness.observe.failures import NPU, classify, classify_error, text
from harness.observe.figures import Figures

_PREFIX = re.compile(
    rb"([DIWEF]) \[?executorch:(?:[^\]\s:]+)(?::\d+)?(?: [^\]\n]*?)?\] ?"
    rb"|^\[[\w./-]+\.(?:cpp|h|c|cc):\d+(?: [^\]\n]*?)?\] ?()"
)
_DRIVER = re.compile(rb"(?:^|[>\s])([EWI]): (.*)$")
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
# Lines without any of these are only counted: most of a long log. The alternatives begin with
# letters that are rare in prose, which makes the search several times faster.
_HINT: Callable[[bytes], object] = re.compile(
    rb"xecutorch:|fau|FAULT|Fau|Output\[|\.(?:cpp|h|cc|c):\d|Error|ERR|FATAL|fatal|Reason: |"
    rb"pped by|cens|cenc|CENS|CENC|EULA|FLEX|Flex|gin:|Oops|panic|BUG|Z[Ee][Pp][Hh]|ASSERT|NPU|"
    rb"_pmu|_cnt|#[ \[]|\| base64|L[io][snc][tuk][eux]|Fast [Mm]|Ethos-U|qemu|bwrap|xception|"
    rb"Test_res|Missing op|kernel|Failed |Soft res|Command s|Base a|Unexp|Inference|Custom|"
    rb"_data_size|UNSUPP|E: |@[a-z]|Illegal|Aborted|Bus err|Segm|Sanitizer|unhandled|called|FVP_|"
    rb"brary|braries|ython3|cann|found|No such|Permis|Unable|Program complete|complete,|"
    rb"corresponding|: eula|licen"
).search
# Zephyr's fatal reasons that are no CPU exception: stack overflow, kernel oops, kernel panic.
_KERNEL_REASONS = ("2", "3", "4")
_MOST_FAILURES = 1000
_MOST_TEXT = 4096  # of a line that is looked at; base64 blocks excepted
_MOST_LINE = 64 << 20  # beyond it a line without an end is cut


def _suspicious(said: bytes) -> bool:
    """False for most lines of level I, which then need no closer look. Written out: it is asked
    for every line."""
    return (
        b"ail" in said or b"FAIL" in said or b"not " in said or b"rror" in said
        or b"issing" in said or b"small" in said or b"too " in said or b"NPU" in said
        or b"addr" in said or b"requested" in said or b"corresponding" in said
    )  # fmt: skip


class Reader:
    """Accumulates events while bytes go by; a line may come in any number of pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._number = 0
        self._last = b""
        self._failures: list[Event] = []
        self._dropped = 0
        self._suspects: list[Event] = []
        self._figures = Figures()
        self._stop: ModelStop | None = None
        self._eot: int | None = None
        self._runner: int | None = None
        self._ports: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._fault_until = 0  # registers of the last fault are looked for up to this line

    @property
    def final_failure(self) -> bool:
        """A failure was read after which nothing worth waiting for comes."""
        return any(event.kind in FINAL for event in self._failures[:50])

    def feed(self, data: bytes) -> None:
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._hold(data)
            return
        if self._parts:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts, self._held = [], 0
        rest = lines.pop()
        number, last = self._number, b""
        if self._eot is None and b"\x04" in data:
            held = next((i for i, line in enumerate(lines) if b"\x04" in line), None)
            self._eot = None if held is None else number + held + 1
        for line in lines:
            number += 1
            if line:
                last = line
                if len(line) > _MOST_TEXT and not line.startswith(b"echo "):
                    line = line[:_MOST_TEXT]
                if b"executorch:" in line or number <= self._fault_until or _HINT(line):
                    self._line(number, line)
        self._number = number
        self._last = last if last.strip() else self._last_said(lines)
        self._hold(rest)

    def finish(self) -> Observation:
        """The rest, a last line without an end included."""
        cut = bool(self._held)
        if cut:
            self.feed(b"\n")
        figures = self._figures
        return Observation(
            lines=self._number,
            failures=tuple(self._failures),
            metrics=figures.metrics,
            op_ticks=tuple(figures.op_ticks),
            build_id=figures.build_id,
            bundle_passes=len(figures.passes),
            complete_line=figures.complete_line,
            last_line=text(self._last.strip(b"\r\n")[:400]),
            suspects=tuple(self._suspects),
            failures_dropped=self._dropped,
            progress=tuple(figures.progress),
            pmu=figures.pmu,
            tensors=figures.tensors,
            output_files=tuple(figures.output_files),
            blocks=tuple(figures.blocks),
            stop=self._stop,
            eot_line=self._eot,
            bundle_lines=tuple(figures.passes),
            runner_line=self._runner,
            ports=self._ports,
            versions=self._versions,
            cut=cut,
        )

    def _hold(self, part: bytes) -> None:
        if part and self._held < _MOST_LINE:
            self._parts.append(part)
            self._held += len(part)

    def _last_said(self, lines: list[bytes]) -> bytes:
        return next((line for line in reversed(lines) if line.strip()), self._last)

    def _line(self, number: int, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        if line.startswith((b'echo "', b"Output[", b"#[")):
            self._figures.bare(number, line)
            return
        prefix = _PREFIX.search(line)
        if prefix is None:
            self._bare(number, line)
            return
        if prefix.start():
            self._bare(number, line[: prefix.start()])
        while prefix is not None:  # two lines may have run into one
            again = line.find(b"executorch:", prefix.end()) > 0
            following = _PREFIX.search(line, prefix.end()) if again else None
            end = following.start() if following else len(line)
            self._message(number, prefix[1] or b"", line[prefix.end() : end])
            prefix = following

    def _message(self, number: int, level: bytes, message: bytes) -> None:
        if self._runner is None:
            self._runner = number
            self._figures.reached(Stage.RUNNER, number, message)
        serious = level in (b"E", b"F")
        if serious and len(self._failures) >= _MOST_FAILURES:
            self._dropped += 1
            return
        if serious or _suspicious(message):
            if platforms.TIMING_ADAPTER.search(message):
                self._suspect(Kind.NPU_ERROR, number, message)
                return
            found = classify(message) or (classify_error(message) if serious else None)
            if found is not None:
                self._fail(found[0], number, message, found[1])
                return
        if not message.strip(b"\x04\r \\x04") or message == b"\xe2\x99\xa6":
            if self._figures.complete_line is not None:
                self._eot = self._eot or number
            return
        self._figures.message(number, message)
        if b"Info: " in message:  # the simulator's words on the same line
            self._simulator(number, message[message.index(b"Info: ") :])

    def _bare(self, number: int, line: bytes) -> None:
        """A line without a runner's prefix: faults, registers, the simulator's own words."""
        for pattern, kind in platforms.faults() if platforms.FAULT_WORD.search(line) else ():
            if match := pattern.search(line):
                facts = {k: text(v) for k, v in match.groupdict().items() if v}
                if facts.get("reason") not in _KERNEL_REASONS and kind is Kind.ZEPHYR_FATAL:
                    kind = Kind.ZEPHYR_FATAL if "assertion" in facts else Kind.FAULT
                self._fault(number, kind, line, facts)
                return
        if number <= self._fault_until and self._registers(line):
            return
        if self._figures.bare(number, line):
            return
        if len(self._failures) >= _MOST_FAILURES:
            self._dropped += b"E: " in line
            return
        if NPU.search(line) and (found := classify(line)):
            self._fail(found[0], number, line, found[1])
        elif match := _DRIVER.search(line):
            self._driver(number, match[1], match[2])
        elif (b"operator" in line or b"Test_result" in line) and (found := classify(line)):
            self._fail(found[0], number, line, found[1])
        else:
            self._simulator(number, line)

    def _driver(self, number: int, level: bytes, message: bytes) -> None:
        """Ethos-U driver and Zephyr's minimal logging: ``E: text (file.c:12)``."""
        if level != b"E":
            self._figures.message(number, message)
        elif platforms.TIMING_ADAPTER.search(message):
            self._suspect(Kind.NPU_ERROR, number, message)
        else:
            kind, facts = classify(message) or classify_error(message)
            self._fail(kind, number, message, facts)

    def _simulator(self, number: int, line: bytes) -> None:
        if not platforms.SIMULATOR_WORD.search(line):
            self._figures.message(number, line)
            return
        if match := platforms.STOP.search(line):
            reason = platforms.stop_reason(match)
            if self._stop is None or self._stop.reason == "stopped":
                self._stop = ModelStop(reason, number, text(line.strip()))
            return
        if b"Listening for" in line and (match := platforms.PORT.search(line)):
            self._ports[text(match[1])] = int(match[2])
        for name, word, pattern in platforms.VERSIONS:
            if word in line and (match := pattern.search(line)):
                self._versions.setdefault(name, text(match[1]))
        for pattern, stage in platforms.STAGES:
            if pattern.search(line):
                self._figures.reached(stage, number, line)
        if self._launch_failed(number, line):
            return
        if platforms.BOOT_ERROR.search(line) or platforms.TIMING_ADAPTER.search(line):
            self._suspect(Kind.SIMULATOR_ERROR, number, line)
        elif b"executorch:" not in line:
            self._figures.message(number, line)

    def _launch_failed(self, number: int, line: bytes) -> bool:
        if platforms.NOISE.search(line) and b"licen" not in line.lower():
            return False
        for words, pattern, kind in platforms.launch():
            if words.search(line) and (match := pattern.search(line)):
                facts = {k.rstrip("0123456789"): text(v)
                         for k, v in match.groupdict().items() if v}  # fmt: skip
                if hint := platforms.HINTS.get(kind):
                    facts["hint"] = hint
                self._fail(kind, number, line, facts)
                return True
        return False

    def _fault(self, number: int, kind: Kind, line: bytes, facts: dict[str, str]) -> None:
        """A fault told on several lines is one event."""
        self._registers_into(facts, line)
        previous = self._failures[-1] if self._failures else None
        if previous is not None and previous.kind in (Kind.FAULT, Kind.ZEPHYR_FATAL) and (
            number <= self._fault_until and kind in (Kind.ZEPHYR_FATAL, Kind.FAULT)
        ):  # fmt: skip
            previous.facts.update({k: v for k, v in facts.items() if k not in previous.facts})
        else:
            self._fail(kind, number, line, facts)
        self._fault_until = number + platforms.REGISTER_LINES

    def _registers(self, line: bytes) -> bool:
        facts = self._failures[-1].facts if self._failures else {}
        before = len(facts)
        self._registers_into(facts, line)
        return len(facts) > before

    def _registers_into(self, facts: dict[str, str], line: bytes) -> None:
        for name, value in platforms.registers(line).items():
            facts.setdefault(name, value)

    def _fail(self, kind: Kind, number: int, said: bytes, facts: dict[str, str]) -> None:
        if len(self._failures) < _MOST_FAILURES:
            self._failures.append(Event(kind, number, text(said.strip()), dict(facts)))
        else:
            self._dropped += 1

    def _suspect(self, kind: Kind, number: int, said: bytes) -> None:
        if len(self._suspects) < _MOST_FAILURES:
            self._suspects.append(Event(kind, number, text(said.strip())))
