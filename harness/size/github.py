"""Gates for GitHub: annotations in the log and a step summary, and only when GitHub asks.

Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.size.gate import Gate
from harness.size.tables import markdown

_MOST_CHANGES = 20


def workflow_commands(gates: Sequence[Gate], environ: Mapping[str, str]) -> list[str]:
    """One line per failed gate; nothing outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    return [
        f"::error title={_property(f'size of {g.subject}')}::{_data(g.message())}"
        for g in gates
        if g.failed
    ]


def write_summary(gates: Sequence[Gate], environ: Mapping[str, str]) -> Path | None:
    """Append to the step's summary page, when there is one."""
    name = environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(summary(gates))
    return Path(name)


def summary(gates: Sequence[Gate]) -> str:
    lines = ["## Sizes", "", "| subject | figure | measured | accepted | limit | |",
             "|---|---|--:|--:|--:|---|"]  # fmt: skip
    for gate in gates:
        for f in gate.findings:
            cells = ["" if n is None else f"{n:,}" for n in (f.measured, f.accepted, f.limit)]
            mark = "❌ " if f.failed else ""
            lines.append(f"| {gate.subject} | {f.figure} | {' | '.join(cells)} | {mark}{f.state} |")
    lines.append("")
    for gate in gates:
        if gate.failed and gate.difference is not None:
            reasons = [r for found in gate.reasons.values() for r in found]
            lines.append(markdown(gate.subject, gate.difference, _MOST_CHANGES, reasons))
            lines += [f"Accept it with `{gate.accept_command}`", ""]
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
