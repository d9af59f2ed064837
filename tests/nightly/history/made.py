"""Nights and rows as tests want them."""

from __future__ import annotations

from typing import Any

from harness.core.judgement import Cause
from harness.core.verdict import Verdict
from harness.nightly.history.nights import Identity, Night, Origin, Planned, Row

TARGET = "corstone-300-m55"
KNOWN = Identity(
    program="p1",
    exporter="wheel 1.5.1",
    sources="s1",
    firmware="f1",
    toolchain="gcc 12",
    simulator="qemu 7.2",
    reference="r1",
    target="t1",
    harness="h1",
    host="desk (x86_64)",
)

MAIN = Origin("main", "c1")


def at(day: int, hour: int = 2) -> str:
    return f"2026-03-{day:02}T{hour:02}:00:00+00:00"


def night(day: int, *cases: str, shards: int = 1, **more: Any) -> Night:
    plan = tuple(Planned(case, shard=i % shards + 1) for i, case in enumerate(cases))
    said: dict[str, Any] = {"suite": "suite", "suite_sha256": "aa", "harness": "h1", "host": "desk"}
    said |= {"origin": MAIN, **more}
    return Night(id=f"n{day}", began=at(day, 1), plan=plan, shards=shards, **said)


def row(day: int, verdict: str = "PASS", case: str = f"{TARGET}/add", **more: Any) -> Row:
    cause = None if verdict == "PASS" else Cause("outputs_differ", "off by 3", 7, {"lsb": 3})
    target, _, model = case.partition("/")
    return Row(
        **{
            "night": f"n{day}",
            "case": case,
            "time": at(day),
            "target": target,
            "model": model,
            "source": "bundled",
            "verdict": Verdict[verdict],
            "cause": cause,
            "identity": KNOWN,
            "metrics": {"pte_bytes": 2000},
            "seconds": {"total": 1.5},
            "suite": "suite",
            "origin": MAIN,
            **more,
        }
    )
