"""A library gets back what it had, and is left alone where it is another one."""

from __future__ import annotations

from types import ModuleType

import pytest

from harness.shortcuts.patch import Patch, is_the_source, put


def theirs() -> str:
    return "theirs"


# printf 'def theirs() -> str:\n    return "theirs"\n' | sha256sum
_THEIRS = "25a511291b81b43e258e5b9ddb41dc6f1d1466ffa48594b8704c0fb59ccdc6d4"


def test_what_was_there_comes_back() -> None:
    module = ModuleType("library")
    module.known = theirs  # type: ignore[attr-defined]
    with put(Patch(module, "known", len)), put(Patch(module, "unknown", len)):
        assert module.known is len  # type: ignore[comparison-overlap]
        assert module.unknown is len
    assert module.known is theirs
    assert not hasattr(module, "unknown")


def test_it_comes_back_after_an_error() -> None:
    module = ModuleType("library")
    with pytest.raises(ZeroDivisionError), put(Patch(module, "unknown", len)):
        raise ZeroDivisionError
    assert not hasattr(module, "unknown")


def test_what_a_class_inherits_is_inherited_again() -> None:
    class Base:
        def method(self) -> str:
            return "base"

    class Derived(Base): ...

    with put(Patch(Derived, "method", lambda self: "instead")):
        assert Derived().method() == "instead"
    assert "method" not in vars(Derived)
    assert Derived().method() == "base"


def test_a_source_is_known_by_its_text() -> None:
    assert is_the_source(theirs, _THEIRS)
    assert not is_the_source(test_a_source_is_known_by_its_text, _THEIRS)


@pytest.mark.parametrize("what", [None, len, eval("lambda: 1")])
def test_what_has_no_source_is_another_one(what: object) -> None:
    assert not is_the_source(what, _THEIRS)
