"""A stranger's console log, judged and told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.judge.console_log import judge_log
from harness.judge.symbols import with_symbols
from harness.judge.verdict import Judgement
from harness.observe import Observation, Reader

_PIECE = 1 << 20


@dataclass(frozen=True)
class JudgedLog:
    path: Path
    judgement: Judgement
    observation: Observation

    def summary(self) -> dict[str, Any]:
        cause, seen = self.judgement.cause, self.observation
        return {
            "log": str(self.path),
            "verdict": self.judgement.verdict,
            "cause": None if cause is None else asdict(cause),
            "unknown": list(self.judgement.notes),
            "lines": seen.lines,
            "progress": [{"stage": p.stage.value, "line": p.line} for p in seen.progress],
            "metrics": {name: m.value for name, m in seen.metrics.items()},
            "pmu": {name: m.value for name, m in seen.pmu.items()},
            "bundle_passes": seen.bundle_passes,
            "outputs": [
                {
                    "index": t.index,
                    "dtype": t.dtype,
                    "elements": len(t.values),
                    "whole": t.whole,
                    "sizes": t.sizes,
                }
                for t in seen.tensors
            ],
            "files": [
                {"name": b.name, "bytes": len(b.data), "whole": b.whole, "line": b.line}
                for b in seen.blocks
            ],
            "stop": None if seen.stop is None else asdict(seen.stop),
            "versions": seen.versions,
        }


def judge_file(path: Path, elf: Path | None = None) -> JudgedLog:
    """Raises UsageError when the log cannot be read."""
    reader = Reader()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                reader.feed(piece)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error
    observation = reader.finish()
    if elf is not None:
        observation = with_symbols(observation, elf)
    return JudgedLog(path, judge_log(observation), observation)


def log_text(log: JudgedLog) -> str:
    """For a person: the verdict, its cause with the line, then what is not known."""
    cause = log.judgement.cause
    lines = [f"{log.path}: {log.judgement.verdict}" + (f" {cause.kind}" if cause else "")]
    if cause is not None:
        lines.append(f"  line {cause.line}: {cause.text}" if cause.line else f"  {cause.text}")
        lines += [f"  {name}: {value}" for name, value in (cause.facts or {}).items()]
    lines += [f"  not known: {note}" for note in log.judgement.notes]
    return "\n".join(lines)
