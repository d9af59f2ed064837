"""Protects classes that are made late: nobody can tell them from those of ``dataclasses``."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from harness.errors import later
from harness.errors.later import dataclass


def classes() -> tuple[type[Any], type[Any]]:
    """New ones each time: made by nobody yet."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        names: Mapping[str, int] = field(default_factory=dict, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("left of everything")

    @dataclass(frozen=True, kw_only=True)
    class Named(Point):  # type: ignore[misc, valid-type]
        name: str

    return Point, Named


def is_made(cls: type) -> bool:
    return isinstance(vars(cls).get("__dataclass_fields__"), dict)


def test_an_object_is_as_one_of_dataclasses() -> None:
    point, named = classes()
    assert not is_made(point)
    one = point(1)
    assert is_made(point)
    assert not is_made(named)
    assert (one, hash(point(1, names=None))) == (point(1, 2), hash(point(1, 2, None)))
    assert one != point(2)
    assert repr(one).endswith("Point(x=1, y=2, names={})")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 3
    with pytest.raises(ValueError, match="left"):
        point(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        point()
    assert dataclasses.replace(named(x=1, name="n"), x=5) == named(x=5, name="n")
    assert "__setstate__" not in vars(point)


@pytest.mark.parametrize(
    "ask",
    [
        lambda cls: [one.name for one in dataclasses.fields(cls)] == ["x", "y", "names"],
        dataclasses.is_dataclass,
        lambda cls: cls.__dataclass_fields__["y"].default == 2,
        lambda cls: TypeAdapter(cls).validate_python({"x": 1}).y == 2,
    ],
)
def test_whoever_asks_the_class_first_gets_an_answer(ask: Any) -> None:
    point, _ = classes()
    assert ask(point)
    assert is_made(point)


def test_pydantic_still_refuses() -> None:
    point, _ = classes()
    with pytest.raises(ValidationError):
        TypeAdapter(point).validate_python({"x": "no number"})


def test_what_inherits_is_made_of_what_it_inherits_from() -> None:
    _, named = classes()
    assert [one.name for one in dataclasses.fields(named)] == ["x", "y", "names", "name"]


@dataclass(frozen=True)
class Pickled:
    x: int


def test_an_object_from_elsewhere_finds_its_class_whole() -> None:
    """Pickled in another process, where ``__init__`` was called; here it never was."""
    raw = pickle.dumps(Pickled(7))
    code = (
        "import pickle, sys\n"
        "from tests.errors import test_later as t\n"
        "assert not t.is_made(t.Pickled)\n"
        f"a, b = pickle.loads({raw!r}), pickle.loads({raw!r})\n"
        "assert a == b and hash(a) == hash(b) and a.x == 7 and repr(a) == 'Pickled(x=7)'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert copy.deepcopy(Pickled(7)) == Pickled(7)


def test_what_can_not_wait_does_not() -> None:
    @dataclass
    class Open:
        x: int = 1

    @dataclass(frozen=True, slots=True)
    class Narrow:
        x: int = 1

    assert is_made(Open)
    assert is_made(Narrow)
    point, _ = classes()
    later.make(point)
    assert is_made(point)


def test_threads_that_make_the_first_objects_together_all_get_one() -> None:
    """Nobody meets a class that is half made."""
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(100):
                point, named = classes()
                makers = [partial(point, 1), partial(named, x=1, name="n")] * 8
                found = list(pool.map(lambda maker: maker(), makers))
                assert set(map(hash, (repr(one) for one in found))) == {
                    hash(repr(point(1))), hash(repr(named(x=1, name="n")))
                }  # fmt: skip
                assert found[::2] == [point(1)] * 8
    finally:
        sys.setswitchinterval(switch)
