"""Protects the search for the first instruction on which two runners differ.

The runners here are functions; two real ones are compared in tests/run/test_second_opinion.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.export.program import Program
from harness.formats.pte_cut import CuttableProgram
from harness.judge.first_operator import first_operator


@pytest.fixture
def pte(exported: Callable[..., Program]) -> Path:
    return exported("deep_autoencoder").pte_path


class Runner:
    """Answers by how long the cut program is; wrong from instruction ``wrong`` on."""

    def __init__(self, pte: Path, wrong: int, answer: bytes = b"ab") -> None:
        whole = CuttableProgram(pte)
        self._by_program = {whole.cut(s): s.number for s in whole.instructions() if s.values}
        self._wrong, self._answer = wrong, answer
        self.asked: list[int] = []

    def __call__(self, program: bytes) -> tuple[bytes, ...] | None:
        number = self._by_program[program]
        self.asked.append(number)
        return (b"ax" if number >= self._wrong else self._answer,)


@pytest.mark.parametrize("wrong", [0, 1, 2, 3, 4, 5, 9])
def test_the_first_that_differs_is_found(pte: Path, wrong: int) -> None:
    good, bad = Runner(pte, 99), Runner(pte, wrong)
    found = first_operator(pte, good, bad)
    assert found is not None
    assert (found.instruction, found.differing, found.size) == (wrong, 1, 2)
    steps = CuttableProgram(pte).instructions()
    assert found.operator == steps[wrong].operator
    assert found.after == (steps[wrong - 1].operator if wrong else "")
    assert f"instruction {wrong} ({found.operator}): 1 of 2 bytes differ" in str(found)
    assert len(set(bad.asked)) <= 5  # halves, not one after the other


def test_runners_that_agree_have_no_first_difference(pte: Path) -> None:
    assert first_operator(pte, Runner(pte, 99), Runner(pte, 99)) is None


def test_a_runner_that_cannot_run_the_cut_program_gives_nothing(pte: Path) -> None:
    assert first_operator(pte, Runner(pte, 99), lambda _: None) is None


def test_what_was_not_compared_is_not_called_the_same(pte: Path) -> None:
    """The program cut one instruction earlier does not run on one of the two."""
    good, bad = Runner(pte, 99), Runner(pte, 4)
    whole = CuttableProgram(pte)
    lost = whole.cut(whole.instructions()[3])
    found = first_operator(pte, good, lambda program: None if program == lost else bad(program))
    assert found is not None
    assert (found.instruction, found.after) == (4, "")
    assert "same from both" not in str(found)


def test_no_program_is_run_twice(pte: Path) -> None:
    good, bad = Runner(pte, 99), Runner(pte, 5)
    assert first_operator(pte, good, bad) is not None
    assert len(good.asked) == len(set(good.asked))


def test_results_of_other_sizes_differ(pte: Path) -> None:
    found = first_operator(pte, Runner(pte, 99), Runner(pte, 99, b"abc"))
    assert found is not None
    assert (found.instruction, found.differing) == (0, 3)


def test_what_cannot_be_cut_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.pte").write_bytes(b"nothing")
    assert first_operator(tmp_path / "x.pte", lambda _: None, lambda _: None) is None
    assert first_operator(tmp_path / "absent.pte", lambda _: None, lambda _: None) is None
