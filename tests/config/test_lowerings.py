"""NAME@lowering: the same target with programs that are made otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case, parse_case
from harness.config.loading import load_target, loadable_name, target_directories
from harness.core.errors import TargetError, Unknown, UsageError
from harness.export.request import LOWERINGS

OURS = target_directories({})
A320 = "corstone-1000-a320"


@pytest.mark.parametrize("name", sorted(LOWERINGS))
def test_every_lowering_of_the_exporter_is_one_of_the_target_s(name: str) -> None:
    """With a tolerance, for its arithmetic is not exact; without one the target's own is."""
    target = load_target(f"{A320}@{name}", OURS)
    assert (target.name, target.compile_target) == (f"{A320}@{name}", name)
    assert target.budgets.tolerance_lsb > 0
    plain = load_target(A320, OURS)
    assert (plain.compile_target, plain.budgets.tolerance_lsb) == ("cortex-m3", 0)
    assert target.budgets.limits == plain.budgets.limits
    assert target.description.startswith(plain.description)


def test_it_is_part_of_a_case_s_name() -> None:
    """So that no reference of one is held against the other, whoever writes it down."""
    case = Case(f"{A320}@xnnpack-int8", "add")
    assert case.id == f"{A320}@xnnpack-int8/add"
    assert parse_case(case.id).target == case.target
    told = parse_case("boards/own.yaml@xnnpack-int8/add")
    assert (told.target, told.board) == ("boards/own.yaml@xnnpack-int8", "own@xnnpack-int8")


def test_one_that_there_is_not_is_reported_with_what_was_meant() -> None:
    with pytest.raises(Unknown, match="has no lowering 'xnnpack-int9'") as e:
        load_target(f"{A320}@xnnpack-int9", OURS)
    assert "did you mean xnnpack-int8" in str(e.value.hint)


def test_a_target_without_any_has_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="corstone-300-m55 has no NPU, and so no memory mode"):
        load_target("corstone-300-m55@xnnpack-int8", OURS)


def test_with_an_npu_the_sign_is_for_a_memory_mode() -> None:
    """Although the file extends one with lowerings."""
    target = load_target("corstone-1000-u85-256", OURS)
    assert target.lowerings == {}
    with pytest.raises(Unknown, match="there is no memory mode 'xnnpack-int8'"):
        load_target("corstone-1000-u85-256@xnnpack-int8", OURS)


def test_in_a_user_s_own_file(tmp_path: Path) -> None:
    """By its path, from every directory; a mistake in it has its line."""
    file = tmp_path / "own.yaml"
    file.write_text(f"extends: {A320}\ndescription: mine\n")
    said = f"{file}@portable-fp32"
    target = load_target(said)
    assert (target.compile_target, loadable_name(target, said)) == ("portable-fp32", said)
    file.write_text(f"extends: {A320}\nlowerings:\n  fast:\n    compile_target: xnnpack-fp32\n")
    with pytest.raises(TargetError, match=r"own.yaml:3: .*lowerings.fast.description"):
        load_target(f"{file}@fast")
