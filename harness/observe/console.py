"""What the simulator, the boot and the shell say on lines that no runner wrote."""

from __future__ import annotations

from harness.observe import platforms
from harness.observe.events import Kind, ModelStop
from harness.observe.failures import text
from harness.observe.figures import Figures
from harness.observe.findings import Findings, named_groups
from harness.observe.words import Words

_MOST_NAMES = 100


class Console:
    def __init__(self, figures: Figures, findings: Findings) -> None:
        self.stop: ModelStop | None = None
        self.ports: dict[str, int] = {}  # terminal -> telnet port
        self.versions: dict[str, str] = {}
        self.words = Words(platforms.SIMULATOR_WORDS)
        self._figures = figures
        self._findings = findings

    def line(self, number: int, line: bytes, after_runner: bool) -> bool:
        """True when the line is somebody else's than the runner's.

        ``after_runner``: a runner has spoken, so the simulator is known to have started.
        """
        if not self.words.are_in(line):
            return False
        if match := platforms.STOP.search(line):
            reason = platforms.stop_reason(match)
            if self.stop is None or self.stop.reason == "stopped":
                self.stop = ModelStop(reason, number, text(line.strip()))
            return True
        self._names(line)
        if platforms.STAGE_WORD.search(line):
            for pattern, stage in platforms.STAGES:
                if pattern.search(line):
                    self._figures.reached(stage, number, line)
        if self._launch_failed(number, line, after_runner):
            return True
        if platforms.BOOT_ERROR.search(line) or platforms.TIMING_ADAPTER.search(line):
            self._findings.suspect(Kind.SIMULATOR_ERROR, number, line)
            return True
        if platforms.EXIT_STATUS.search(line):
            self._findings.suspect(Kind.EXIT_STATUS, number, line)
            return True
        return b"executorch:" in line

    def _names(self, line: bytes) -> None:
        """Ports and versions, which the console says once."""
        if b"Listening for" in line and (match := platforms.PORT.search(line)):
            if len(self.ports) < _MOST_NAMES:
                self.ports[text(match[1])] = int(match[2])
            return
        for name, word, pattern in platforms.VERSIONS:
            if name not in self.versions and word in line and (match := pattern.search(line)):
                self.versions[name] = text(match[1])

    def _launch_failed(self, number: int, line: bytes, after_runner: bool) -> bool:
        if platforms.NOISE.search(line) and b"licen" not in line.lower():
            return False
        for words, pattern, kind in platforms.launch():
            if any(word in line for word in words) and (match := pattern.search(line)):
                if kind is Kind.LICENCE and platforms.LEGAL_TALK.search(line):
                    return False
                if after_runner and platforms.NOT_A_COMPONENT.match(line):
                    self._findings.suspect(kind, number, line)
                    return True
                facts = named_groups(match)
                if hint := platforms.HINTS.get(kind):
                    facts["hint"] = hint
                self._findings.fail(kind, number, line, facts)
                return True
        return False
