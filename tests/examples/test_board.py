"""Protects a board with a memory map of its own: what fits runs, what does not says how much."""

from __future__ import annotations

import json

import pytest

from .conftest import EXAMPLES, Call


@pytest.fixture(scope="module")
def cases(call: Call) -> dict[str, dict[str, object]]:
    words = ["--simulator", "qemu", "--allow-new", "*", "--json"]
    argv = ["hil", "run", "sensor-node.yaml", "ds_cnn", "resnet8", *words]
    done = call(argv, EXAMPLES / "board")
    assert done.returncode == 1, done.stderr
    return {case["case"]: case for case in json.loads(done.stdout)["cases"]}


def test_a_network_that_fits(cases: dict[str, dict[str, object]]) -> None:
    assert cases["sensor-node/ds_cnn"]["verdict"] == "PASS"


def test_too_small_a_method_pool_says_how_much_it_takes(
    cases: dict[str, dict[str, object]],
) -> None:
    assert cases["sensor-node/resnet8"]["verdict"] == "OVER_BUDGET"
    assert cases["sensor-node/resnet8"]["run_dir"] is None
    cause = cases["sensor-node/resnet8"]["cause"]
    assert isinstance(cause, dict)
    assert cause["kind"] == "memory"
    assert int(cause["facts"]["needed"]["method"]) > int(cause["facts"]["size"]) == 0xC000
    assert "`pools` of the target's file" in cause["text"]
