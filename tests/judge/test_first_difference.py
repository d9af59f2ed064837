"""Protects the search for the first instruction on which two computations of a program differ.

They are functions here; a real runner is searched in tests/run/test_second_opinion.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from harness.export.program import Program
from harness.formats.pte import CuttableProgram, Instruction
from harness.judge.first_difference import first_difference


@pytest.fixture
def chain(exported: Callable[..., Program]) -> CuttableProgram:
    return CuttableProgram(exported("deep_autoencoder").pte_path)


@pytest.fixture
def branched(exported: Callable[..., Program]) -> CuttableProgram:
    return CuttableProgram(exported("resnet8").pte_path)


class Compared:
    """What differs in the given instructions; of those in ``lost`` it cannot be told."""

    def __init__(self, wrong: Collection[int] = (), lost: Collection[int] = ()) -> None:
        self._wrong, self._lost = wrong, lost
        self.asked: list[int] = []

    def __call__(self, step: Instruction) -> bool | None:
        self.asked.append(step.number)
        return None if step.number in self._lost else step.number in self._wrong


def test_the_first_that_differs_is_found(chain: CuttableProgram) -> None:
    steps = chain.instructions()
    for wrong in (0, 1, 2, 3, 4, 5, 9):
        compared = Compared(range(wrong, 99))
        found = first_difference(chain, compared)
        assert found is not None
        assert (found.instruction, found.operator) == (wrong, steps[wrong].operator)
        assert found.after == (steps[wrong - 1].operator if wrong else "")
        behind = f", after {found.after}, where all is right" if wrong else ""
        assert str(found) == f"instruction {wrong} ({found.operator}){behind}"
        assert found.read == (steps[wrong - 1].values if wrong else ())
        assert len(set(compared.asked)) <= 6  # halves, not one after the other
        assert len(compared.asked) == len(set(compared.asked))


def test_a_right_result_behind_a_wrong_one_does_not_hide_it(branched: CuttableProgram) -> None:
    """The sum of two branches, of which the first is wrong and the last is not."""
    steps = branched.instructions()
    sums = [s for s in steps if s.operator == "cortex_m::quantized_add.out"]
    total = next(s for s in sums if _written(branched, s)[1] - _written(branched, s)[0] > 1)
    first = _written(branched, total)[0]
    found = first_difference(branched, Compared({first, *range(total.number, 99)}))
    assert found is not None
    assert found.instruction == first < total.number - 1


def _written(program: CuttableProgram, total: Instruction) -> list[int]:
    """Where its operands come from."""
    steps = program.instructions()
    return sorted(next(s.number for s in steps if total.arguments[n] in s.values) for n in (0, 4))


def test_runners_that_agree_have_no_first_difference(chain: CuttableProgram) -> None:
    assert first_difference(chain, Compared()) is None


def test_what_is_unknown_gives_nothing(chain: CuttableProgram) -> None:
    assert first_difference(chain, Compared(lost=range(99))) is None


def test_what_was_not_compared_is_not_called_right(chain: CuttableProgram) -> None:
    """The program cut one instruction earlier does not run."""
    found = first_difference(chain, Compared(range(4, 99), lost=[3]))
    assert found is not None
    assert (found.instruction, found.sure) == (4, False)
    assert "right" not in str(found)


def test_an_output_that_comes_before_the_last_instruction(branched: CuttableProgram) -> None:
    """Values that no output is computed from are not looked at."""
    last = len(branched.instructions()) - 1
    assert first_difference(branched, Compared(range(last), lost=[last])) is None
