"""torch writes and compiles a graph's forward again after every pass, mostly the same text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

# of torch.fx.graph_module._exec_with_source (torch 2.13.0), the only one there that compiles
_COMPILES = "3a1510761d07726eda7298b84b29317fcea22ef363d1c9298f24f2a96de34624"
_KEPT = 4096  # texts; one of a large model has some 100 kB


def patches() -> Iterator[Patch]:
    from torch.fx import graph_module

    if is_the_source(getattr(graph_module, "_exec_with_source", None), _COMPILES):
        yield Patch(graph_module, "compile", compile_once())


def compile_once() -> Any:
    """As the builtin, for text and no flags; what was compiled is only given the other name."""

    @lru_cache(maxsize=_KEPT)
    def compiled(source: str, mode: str, dont_inherit: bool) -> CodeType:
        return compile(source, "<>", mode, dont_inherit=dont_inherit)

    def compile_as(source: str, filename: str, mode: str, dont_inherit: bool) -> CodeType:
        try:
            return _named(compiled(source, mode, dont_inherit), filename)
        except SyntaxError:
            return compile(source, filename, mode, dont_inherit=dont_inherit)

    return compile_as


def _named(code: CodeType, filename: str) -> CodeType:
    constants = code.co_consts
    if any(isinstance(one, CodeType) for one in constants):
        constants = tuple(
            _named(one, filename) if isinstance(one, CodeType) else one for one in constants
        )
    return code.replace(co_filename=filename, co_consts=constants)
