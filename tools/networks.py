"""The table of networks and targets: ``python -m tools.networks --target T --model M``.

Runs each case as a user does, keeps what came of it in docs/networks.json and writes the tables of
docs/networks.md from all that is there. Without options all cases run, which takes hours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import click

from harness.config.models import full_tier

DOCS = Path(__file__).parents[1] / "docs"
KEPT, PAGE = DOCS / "networks.json", DOCS / "networks.md"
TARGETS = (
    "corstone-300-m55",
    "mps2-m4",
    "corstone-300-u55-128",
    "corstone-300-u55-256",
    "corstone-300-u65-512",
    "corstone-320-u85-256",
    "corstone-320-u85-256@Shared_Sram",
    "corstone-320-u85-1024",
    "corstone-1000-a320",
    "corstone-1000-u85-256",
)
_HEAD = """\
# Networks that people deploy

What became of each network of the catalogue's full tier (`hil models`) on each target, with the
bundled runner on QEMU and the functional model of the NPU. The weights are live and random, nothing
is trained. `python -m tools.networks` writes this page and `networks.json`; a case without a row
was not run yet. A PASS is exact, in every byte. In a clone, `pytest -m full` runs all of them, or
`pytest -m full -k resnet18` a part, and fails where a case ends otherwise than here.

On a Cortex-M, ExecuTorch's explicit layout (`layout` in the catalogue) is chosen for wav2letter,
whose `Conv1d` is quantised in no other, and for unet, whose concatenations meet a known defect in
the other. The `Conv1d` of the other networks stay float32 there.

The explicit layout does not help two networks as torchvision has them. ExecuTorch refuses
squeezenet in it: no max pool may have `ceil_mode`, even one whose windows fit exactly, as here.
Without `ceil_mode`, which changes no value, it is a PASS on corstone-300-m55 (98,382,390
instructions). The channel shuffle of shufflenet_v2 is a transposition of five dimensions in it,
which ExecuTorch's `cortex_m::transpose` refuses; with height and width as one dimension
(`x.view(batch, 2, channels // 2, height * width)`) it is a PASS (31,494,237 instructions).

An LSTM or a GRU takes minutes to export for an Ethos-U: ExecuTorch unrolls its 49 steps into
operators, and each of its passes for TOSA traces the whole graph again. `kws_lstm` took 235 seconds
of processor for a U85 (Python's functions, sampled 20 times a second): 75 % in ExecuTorch's
lowering, 13 % in the comparison with the quantised model, and the rest in quantising, in Vela and
in the TOSA reference model. It takes up to 1.9 GB, because Python's collection of garbage is paused
meanwhile: it costs a tenth of the time. A Cortex-M has no such passes: 25 seconds. The largest part
of the memory of other networks was the harness's own, for the live weights (a batch of 64 in double
precision): 2.7 GB of the U-Net, which takes 1.05 now.

"""
_UNITS = (
    "Sizes in bytes; CPU seconds of harness and exporter, few where the program was cached; the "
    "memory of the largest process in MB."
)
_SIZES = (".pte", "program and input", "buffers", "scratch")
_COLUMNS = ("network", "verdict", *_SIZES, "instructions", "seconds", "peak", "cause")
_MEMORY = ("input_file_allocator_used", "method_allocator_used", "temp_allocator")


def run(target: str, model: str) -> dict[str, Any]:
    """One case, as a row: what the record says of it, the CPU seconds that it took, and the memory
    of its largest process."""
    argv = [sys.executable, "-m", "harness", "run", target, model, "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        (case,) = json.loads(harness.stdout.read())["cases"]
        _, _, used = os.wait4(harness.pid, 0)
    return {
        "verdict": case["verdict"],
        "cause": case["cause"],
        "metrics": {name: case["metrics"].get(name) for name in ("pte_bytes", *_MEMORY)},
        "instructions": case["metrics"].get("ticks_set0"),
        "seconds": round(used.ru_utime + used.ru_stime),
        "peak_mb": used.ru_maxrss // 1024,
        "day": date.today().isoformat(),
    }


def page(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The text of docs/networks.md from the rows by target and model."""
    text = _HEAD
    ran = [target for target in TARGETS if target in rows]
    text += table("network", *ran)
    for model in full_tier():
        text += line(model, *(rows[t].get(model, {}).get("verdict", "") for t in ran))
    for target in ran:
        text += f"\n## {target}\n{_UNITS}\n\n"
        text += table(*_COLUMNS)
        for model in full_tier():
            if model in rows[target]:
                text += _row(model, rows[target][model])
    return text


def _row(model: str, row: Mapping[str, Any]) -> str:
    cause = row["cause"]
    said = "" if cause is None else f"{cause['kind']}: {cause['text'].splitlines()[0]}"
    sizes = (_number(row["metrics"][name]) for name in ("pte_bytes", *_MEMORY))
    numbers = (*sizes, *(_number(row.get(name)) for name in ("instructions", "seconds", "peak_mb")))
    return line(model, row["verdict"], *numbers, said.replace("|", "\\|"))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def table(*columns: str) -> str:
    return line(*columns) + "|---" * len(columns) + "|\n"


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


@click.command()
@click.option("--target", "targets", multiple=True, default=TARGETS)
@click.option("--model", "models", multiple=True, default=tuple(full_tier()))
def main(targets: tuple[str, ...], models: tuple[str, ...]) -> None:
    """Runs each model on each target, and writes the page after each."""
    for target in targets:
        for model in models:
            row = run(target, model)
            if row["verdict"] == "INFRA":  # says nothing of the network
                raise click.ClickException(f"{target}/{model}: {row['cause']['text']}")
            # Read again: others may run other cases meanwhile.
            rows = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
            rows.setdefault(target, {})[model] = row
            click.echo(f"{target}/{model}: {row['verdict']} in {row['seconds']} s")
            KEPT.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
            PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
