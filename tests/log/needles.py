"""Which letters every line has that a regular expression fits."""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as parser
else:
    import sre_constants as sre
    import sre_parse as parser

GAP = "\0"  # anything may stand here
_FEW = 10  # letters of a class that are tried one by one
_MOST_WAYS = 20_000


def implied(regex: bytes, needles: tuple[bytes, ...]) -> list[str]:
    """The ways in which a line can fit ``regex`` without any of ``needles``."""
    words = [needle.decode("latin-1") for needle in needles]
    return [way for way in ways(regex) if not any(word in way for word in words)]


def ways(regex: bytes) -> set[str]:
    """What a line must hold to fit, once for every way to fit."""
    parsed = parser.parse(regex)
    return _sequence(parsed, bool(parsed.state.flags & re.IGNORECASE))


def _sequence(parts: Any, ignore_case: bool) -> set[str]:
    found = {""}
    for operation, argument in parts:
        found = {a + b for a, b in itertools.product(found, _one(operation, argument, ignore_case))}
        assert len(found) < _MOST_WAYS, "too many ways; write the row as several"
    return found


def _one(operation: Any, argument: Any, ignore_case: bool) -> set[str]:
    if operation is sre.LITERAL:
        letter = chr(argument)
        return {GAP} if ignore_case and letter.isalpha() else {letter}
    if operation is sre.IN:
        return _class(argument, ignore_case)
    if operation is sre.BRANCH:
        return set().union(*(_sequence(branch, ignore_case) for branch in argument[1]))
    if operation is sre.SUBPATTERN:
        _, added, removed, inner = argument
        flag = (ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
        return _sequence(inner, flag)
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = argument
        once = _sequence(inner, ignore_case) if least or most == 1 else {GAP}
        if (least, most) == (0, 1):
            return once | {""}
        more = GAP if most > least else ""
        return {"".join(way) + more for way in itertools.product(once, repeat=min(least, 8) or 1)}
    if operation is sre.ASSERT:
        return {GAP + way + GAP for way in _sequence(argument[1], ignore_case)}
    if operation in (sre.AT, sre.ASSERT_NOT):
        return {""}
    return {GAP}


def _class(members: Any, ignore_case: bool) -> set[str]:
    letters: list[str] = []
    for operation, argument in members:
        if operation is sre.LITERAL:
            letters.append(chr(argument))
        elif operation is sre.RANGE:
            letters += [chr(n) for n in range(argument[0], argument[1] + 1)]
        else:
            return {GAP}
    return {GAP} if ignore_case or len(letters) > _FEW else set(letters)
