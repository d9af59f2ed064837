"""The answers of every verb's ``--json``, as types; JSON schemas are made from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import TypeAdapter

from harness.cli.contract import DEPRECATED, VERSION, Deprecated
from harness.cli.outputs.links import LinkChecked, LinkExplained, LinkReduced
from harness.cli.outputs.nights import (
    CaseHistory,
    FirstBad,
    FlakyCases,
    HistoryExported,
    HistoryImported,
    HistoryPruned,
    NightMerged,
    NightPage,
    NightRun,
)
from harness.cli.outputs.npu import NpuCompared, NpuDelegates, NpuListing, NpuReduced, NpuRun
from harness.cli.outputs.runs import (
    Accepted,
    Bundle,
    CaseRun,
    Error,
    Exec,
    Log,
    Measured,
    Replayed,
    Run,
    Why,
)
from harness.cli.outputs.sizes import Anatomies, Anatomy, Gate, Pages, SizeDifference, Use
from harness.cli.outputs.suites import Bisection, Commands, Suite, Suites
from harness.cli.outputs.tools import (
    Completion,
    Doctor,
    Models,
    Pruned,
    Rows,
    Schemas,
    Steps,
    Targets,
    Workspace,
    Written,
)

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

OUTPUTS: Final[dict[str, Any]] = {
    "run": Run,
    "exec": Exec,
    "why": Why,
    "judge": CaseRun | Log,
    "accept": Accepted | Measured,
    "bundle": Bundle,
    "replay": Replayed,
    "size show": Anatomy | Anatomies | Use,
    "size diff": SizeDifference,
    "gate": Gate,
    "open": Pages,
    "link explain": LinkExplained,
    "link reduce": LinkReduced,
    "link check": LinkChecked,
    "npu run": NpuRun,
    "npu disasm": NpuListing,
    "npu stats": NpuDelegates,
    "npu compare": NpuCompared,
    "npu reduce": NpuReduced,
    "standin install": Commands,
    "conformance": Suite | Suites,
    "bisect": Bisection,
    "nightly run": NightRun,
    "nightly merge": NightMerged,
    "nightly page": NightPage,
    "history show": CaseHistory,
    "history first-bad": FirstBad,
    "history flaky": FlakyCases,
    "history export": HistoryExported,
    "history import": HistoryImported,
    "history prune": HistoryPruned,
    "targets": Targets,
    "models": Models,
    "doctor": Doctor,
    "prune": Pruned,
    "init": Written,
    "zephyr init": Workspace,
    "completion": Completion,
    "schema": Schemas,
    "bench": Rows,
    "test": Steps,
}


def schema(verb: str, deprecated: Iterable[Deprecated] = DEPRECATED) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a verb's ``--json``."""
    made = TypeAdapter(OUTPUTS[verb] | Error).json_schema()
    made["$schema"] = _DIALECT
    made["title"] = f"hil {verb} --json, version {VERSION}"
    made["properties"] = {
        "version": {"const": VERSION},
        "deprecations": {"type": "array", "items": {"type": "string"}},
    }
    made["required"] = ["version"]
    fields = {row.field: row.instead for row in deprecated if row.verb == verb}
    for part in made["$defs"].values():
        for name, field in part.get("properties", {}).items():
            if name in fields:
                field |= {"deprecated": True, "description": fields[name]}
    return made
