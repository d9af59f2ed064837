"""The table of other people's networks: ``python -m tools.zoo --target T --network N``.

Runs each case as a user does, in an environment with the extra ``zoo``, keeps what came of it in
docs/zoo.json and writes docs/zoo.md. Without options it runs every cell that is not kept yet,
which takes hours; ``--again`` runs kept cells too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from tools.networks import DOCS, line, run, table

KEPT, PAGE = DOCS / "zoo.json", DOCS / "zoo.md"
LISTED = Path(__file__).with_name("networks.yaml")
CAUSES = Path(__file__).with_name("causes.yaml")
ROOT = Path(__file__).parents[2]
TARGETS = (
    "corstone-300-m55",
    "corstone-300-u55-256",
    "corstone-320-u85-256",
    "corstone-1000-a320",
)
MODEL = """\
import sys
sys.path.insert(0, {root!r})
from tools.zoo.live import network
ModelUnderTest, ModelInputs, CalibrationInputs = network({name!r})
"""
_HEAD = """\
# Networks that nobody here wrote

What became of networks of timm and of tiny transformers, with random weights and small inputs, and
of networks that these two lack. In a clone, `pip install -e ".[zoo]"` and then `python -m
tools.zoo` write this page and `zoo.json`; an empty cell was not run yet. A PASS is exact, in every
byte. The number after it is the millions of instructions of one inference on the CPU. "Explicit":
the network meets a defect of ExecuTorch in its usual layout for Cortex-M, and was run again with
`layout: explicit` in the model's YAML file, which is what the report advises.

"""


def networks() -> list[str]:
    listed = yaml.safe_load(LISTED.read_text("utf-8"))
    return [*listed["own"], *listed["timm"], *listed["transformers"]]


Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]


def page(rows: Rows) -> str:
    """The text of docs/zoo.md from the rows by target and network."""
    text = _HEAD + _summary(rows) + table("network", *TARGETS)
    for name in networks():
        text += line(name, *(_cell(rows.get(target, {}).get(name)) for target in TARGETS))
    text += "\n## What did not pass\n\n" + table("cell", "verdict", "cause", "whose")
    known = yaml.safe_load(CAUSES.read_text("utf-8"))
    for target in TARGETS:
        for name in networks():
            row = rows.get(target, {}).get(name)
            if row and row["verdict"] != "PASS":
                said = f"{row['cause']['kind']}: {row['cause']['text'].splitlines()[0]}"
                whose = next((k["whose"] for k in known if k["text"] in said), "not looked at yet")
                where = f"{target}/{name}"
                text += line(where, row["verdict"], said.replace("|", "\\|"), whose)
    return text


def _summary(rows: Rows) -> str:
    parts = []
    for target in TARGETS:
        done = [row for name, row in rows.get(target, {}).items() if name in networks()]
        passed = sum(row["verdict"] == "PASS" for row in done)
        parts.append(f"{passed} of {len(done)} on {target}")
    return f"PASS: {', '.join(parts)}; there are {len(networks())} networks.\n\n"


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    count = row["instructions"]
    cost = "" if row["verdict"] != "PASS" or count is None else f" {count / 1e6:.1f}"
    return f"{row['verdict']}{cost}{' explicit' if row.get('usual') else ''}"


def _run(target: str, model: Path) -> dict[str, Any]:
    """A row. A Cortex-M's network that does not pass runs in the explicit layout, too; ``usual``
    is then what it said in the usual one."""
    settings = model.with_suffix(".yaml")
    settings.unlink(missing_ok=True)
    row = run(target, str(model))
    if row["verdict"] in ("PASS", "INFRA") or target != "corstone-300-m55":
        return row
    settings.write_text("layout: explicit\n")
    explicit = run(target, str(model))
    settings.unlink()
    return explicit | {"usual": row["cause"]} if explicit["verdict"] == "PASS" else row


def kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.is_file() else {}


@click.command()
@click.option("--target", "targets", multiple=True, default=TARGETS, type=click.Choice(TARGETS))
@click.option(
    "--network", "names", multiple=True, default=networks(), type=click.Choice(networks())
)
@click.option("--again", is_flag=True, help="Run cells that are kept, too.")
@click.option("--folder", type=click.Path(path_type=Path), default=ROOT / ".hil/zoo")
def main(targets: tuple[str, ...], names: tuple[str, ...], again: bool, folder: Path) -> None:
    """Runs each network on each target, and writes the page after each."""
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        for name in names:
            if name in kept().get(target, {}) and not again:
                continue
            model = folder / f"{name}.py"
            model.write_text(MODEL.format(root=str(ROOT), name=name))
            row = _run(target, model)
            if row["verdict"] == "INFRA":  # says nothing of the network
                click.echo(f"{target}/{name}: {row['cause']['text']}", err=True)
                continue
            rows = kept()  # others may run other cells meanwhile
            rows.setdefault(target, {})[name] = row
            click.echo(f"{target}/{name}: {row['verdict']} in {row['seconds']} s")
            KEPT.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
            PAGE.write_text(page(rows))
    PAGE.write_text(page(kept()))


if __name__ == "__main__":
    main()
