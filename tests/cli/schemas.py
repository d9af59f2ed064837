"""An answer of ``--json`` against the schema of its verb."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from harness.cli.outputs import OUTPUTS, schema


def verb_of(words: Sequence[str | Path]) -> str:
    """As ``OUTPUTS`` has it."""
    for verb in (" ".join(map(str, words[:2])), str(words[0])):
        if verb in OUTPUTS:
            return verb
    return f"{words[0]} {'run' if words[0] == 'nightly' else 'show'}"


def keeps_to_schema(verb: str, answer: dict[str, Any]) -> None:
    """Here nothing is allowed that the schema does not name, so that it grows with the answers."""
    _validator(verb).validate(answer)


@cache
def _validator(verb: str) -> Any:
    made = schema(verb)
    common = made.pop("properties")
    for part in made["$defs"].values():
        if "properties" in part:
            part["additionalProperties"] = False
    for branch in _branches(made):
        part = made["$defs"][branch.rpartition("/")[2]]
        part["properties"] = {**part["properties"], **common}
    return jsonschema.Draft202012Validator(made)


def _branches(made: dict[str, Any]) -> list[str]:
    """The alternatives that an answer as a whole may be."""
    return [one["$ref"] for one in made["anyOf"]]
