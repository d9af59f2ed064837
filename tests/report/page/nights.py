"""Two nights and what happened between them, in a history of their own."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.core.judgement import Blame, Cause
from harness.core.verdict import Verdict
from harness.nightly.history.case_state import Standing
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Excerpt, Excluded, Identity, Night, Planned, Row
from harness.nightly.history.store import History

EVIL = '<script>document.title="owned"</script><img src=x onerror=alert(1)>'
PAD, CONV, LINEAR = "cortex_m::pad.out", "cortex_m::conv.out", "cortex_m::linear.out"
M55, U55, U85 = "corstone-300-m55", "corstone-300-u55-128", "corstone-320-u85-256"
KNOWN = Identity(
    program="p" * 64,
    exporter="wheel 1.5.1",
    sources="a" * 40,
    firmware="f" * 64,
    toolchain="arm-none-eabi-gcc 12.2.1",
    simulator="qemu 7.2.22",
    reference="r" * 16,
    target="t" * 16,
    harness="h" * 12,
    host="desk (x86_64)",
)
MODELS = {
    "ds_cnn": (PAD, CONV),
    "resnet8": (PAD, CONV),
    "mobilenet": (PAD,),
    "padded": (PAD, LINEAR),
    "autoencoder": (LINEAR,),
    "add": (),
    EVIL: (LINEAR,),
}


def began(day: int) -> str:
    return f"2026-03-{day:02}T01:00:00+00:00"


def row(day: int, target: str, model: str, verdict: str = "PASS", **more: Any) -> Row:
    source = str(more.get("source", "bundled"))
    case = f"{target}/{model}" + ("" if source == "bundled" else f" [{source}]")
    said: dict[str, Any] = {
        "night": f"n{day}",
        "case": case,
        "time": f"2026-03-{day:02}T02:00:00+00:00",
        "target": target,
        "model": model,
        "source": source,
        "verdict": Verdict[verdict],
        "operators": MODELS.get(model, ()),
        "identity": KNOWN,
        "run_dir": f"/runs/{day}",
        "suite": "every night",
        "metrics": {"pte_bytes": 50_000 + day, "elf_text": 100_000, "ticks_set0": 1_000_000 + day},
        "seconds": {"total": 1.5 + day},
    }
    return Row(**{**said, **more})


def mismatch() -> dict[str, Any]:
    return {
        "cause": Cause("outputs_differ", "output 0 of set 0 is off by 3 LSB", 7, {"lsb": 3}),
        "worst_lsb": 3.0,
        "mismatch_at": "node 3, element 17",
        "excerpt": Excerpt(5, ("I load()", "I run", f"E here {EVIL}", "I done")),
    }


def kernel_bug(day: int) -> list[Row]:
    """The four models that pad, on one target: with firmware of other sources."""
    identity = replace(KNOWN, sources="b" * 40, firmware="e" * 64)
    return [
        row(day, M55, model, "MISMATCH", identity=identity, **mismatch())
        for model, operators in MODELS.items()
        if PAD in operators
    ]


def second_night() -> list[Row]:
    """The kernel bug, a size growth, a killed simulator, a wrong target file, one that is fixed,
    one that still fails, one in quarantine; and all the rest passes."""
    rows = kernel_bug(2)
    rows += [row(2, M55, model) for model, operators in MODELS.items() if PAD not in operators]
    grown = Cause("grown", "elf_text grew by 5000 bytes over its slack of 512", None, {})
    grown_row = row(
        2,
        U55,
        "ds_cnn",
        "OVER_BUDGET",
        cause=grown,
        identity=replace(KNOWN, toolchain="arm-none-eabi-gcc 13.2.0"),
    )
    rows.append(replace(grown_row, metrics={**grown_row.metrics, "elf_text": 105_000}))
    killed = Cause("simulator_killed", "the simulator was killed by signal 9", None)
    rows += [row(2, U55, "resnet8", "INFRA", cause=killed, attempt=n) for n in (1, 2)]
    bad_target = Cause("bad_target", "my-board.yaml:7: unknown key 'memroy'", None)
    other_target = replace(KNOWN, target="malformed 00ff", program="", firmware="")
    rows.append(row(2, "my-board", "add", "NO_VERDICT", cause=bad_target, identity=other_target))
    rows.append(row(2, U85, "ds_cnn"))
    blamed = Blame("harness", "the model of the NPU is wrong", {"operator": "CONV_2D"})
    rows.append(row(2, U85, "resnet8", "MISMATCH", **{**mismatch(), "blame": blamed}))
    rows.append(
        row(
            2,
            U85,
            "mobilenet",
            "FAULT",
            quarantined="until 2026-04-01: bug 1234",
            owner="npu-team",
            cause=Cause("operator_missing", EVIL, 7),
        )
    )
    rows.append(row(2, M55, "add", source="executorch"))
    return rows


def first_night() -> list[Row]:
    good = {one.case: row(1, one.target, one.model, source=one.source) for one in second_night()}
    bad = (f"{U85}/ds_cnn", f"{U85}/resnet8")
    return [
        replace(one, verdict=Verdict.MISMATCH, **mismatch()) if case in bad else one
        for case, one in good.items()
    ]


def night(day: int, rows: list[Row], *planned: str) -> Night:
    names = dict.fromkeys([*(one.case for one in rows), *planned])
    return Night(
        id=f"n{day}",
        suite="every night",
        suite_sha256="aa",
        began=began(day),
        harness="h" * 12,
        host="desk (x86_64)",
        plan=tuple(Planned(name) for name in names),
        excluded=(Excluded(f"*/{EVIL}", f"too slow {EVIL}"),),
    )


def two_nights(folder: Path) -> tuple[History, Night]:
    history = open_history(f"sqlite:///{folder / 'history.db'}")
    for day, rows in ((1, first_night()), (2, second_night())):
        planned = night(day, rows, f"{U85}/never-run")
        history.begin(planned)
        history.append(rows)
    return history, planned


def many(folder: Path, cases: int, nights: int) -> tuple[History, Night]:
    """As many cases as a large suite has, some of which fail."""
    history = open_history(f"sqlite:///{folder / 'history.db'}")
    for day in range(1, nights + 1):
        rows = []
        for number in range(cases):
            bad = number % 17 == 0 and day > nights - 2
            more = mismatch() if bad else {}
            rows.append(
                row(
                    day,
                    f"board-{number % 12}",
                    f"model_{number // 12}",
                    "MISMATCH" if bad else "PASS",
                    **more,
                )
            )
        planned = night(day, rows)
        history.begin(planned)
        history.append(rows)
    return history, planned


def compared(folder: Path) -> Comparison:
    """The second night with the first."""
    history, of = two_nights(folder)
    with closing(history):
        return compare(history, of)


def case(page: Comparison, name: str) -> Standing:
    return next(one for one in page.cases if one.case == name)
