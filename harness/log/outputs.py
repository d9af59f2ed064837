"""Outputs that runners print, element by element or as a tensor; nothing compares them, so they are
counted. What a runner prints in base64 (ExecuTorch's etdump.bin) is skipped, never decoded or run.
"""

from __future__ import annotations

import re
from math import prod
from typing import Final

from harness.log.events import Item, Tensor
from harness.log.pattern import only_row

# How a printed output begins; it stands at the beginning of a line that has no prefix.
_OUTPUT, _SCRIPT, _FILE = b"Output", b"#[", b'echo "'
BEGINNINGS: Final = (_OUTPUT, _SCRIPT, _FILE)
_ECHO_END = re.compile(rb'([A-Za-z0-9+/=\s]*)" \| base64 -d ?>\s*([\w.-]+)')
_TENSOR_END = re.compile(rb"[\])\s]*")
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*$")
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf|nan|true|false)", re.I)
_VALUE = re.compile(rb"[^,\s]+")
_MOST_OUTPUTS = 1000
_MOST_FOREIGN = 20  # lines in the middle of a file that do not belong to it


class OutputLines:
    """Reads printed outputs as the lines of a console come by."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.rest = b""  # what another program wrote after the output of the last line
        self._in_script = False  # between "#[RUN THIS]" and "#[END]"
        self._foreign: int | None = None  # lines in the file that goes on; None: none does

    @property
    def attentive(self) -> bool:
        """The next line is read whatever it holds."""
        return self._foreign is not None or self.tensors.open is not None

    def line(self, number: int, line: bytes) -> bool:
        """Reads a line without a prefix. True if it belongs to an output, except for ``rest``."""
        self.rest = b""
        if not (line.startswith(BEGINNINGS) or self._in_script or self.attentive):
            return False
        if self._foreign is not None and self._is_in_file(line, self._foreign):
            return True
        if self.tensors.open is not None:
            self.rest = self.tensors.more(line)
            return True
        if line.startswith(_OUTPUT):
            if self.tensors.element(number, line):
                return True
            rest = self.tensors.tensor(number, line)
            self.rest = rest or b""
            return rest is not None
        if line.startswith(_SCRIPT) and (match := only_row(Item.SCRIPT).search(line)):
            self._in_script = match[1] is not None
            return True
        if line.startswith(_FILE):
            begins = only_row(Item.FILE).search(line)
            goes_on = begins is not None and begins.end() == len(line)
            self._foreign = 0 if goes_on else None
            if not goes_on and (end := _ECHO_END.search(line)):
                self.rest = line[end.end() :]
            return True
        return self._in_script and line.startswith((b"# ", b"python3 "))

    def _is_in_file(self, line: bytes, foreign: int) -> bool:
        """The log may have wrapped the text, and others may have written in between."""
        if end := _ECHO_END.match(line):
            self._foreign = None
            self.rest = line[end.end() :]
            return True
        if _BASE64.match(line):
            return True
        self._foreign = foreign + 1
        if self._foreign >= _MOST_FOREIGN or line.startswith(_SCRIPT):
            self._foreign = None
        return False


class Tensors:
    """The outputs that were printed as text."""

    def __init__(self) -> None:
        self._outputs: dict[int, _Elements] = {}
        self._name = b""
        self._last: _Elements | None = None
        self._match = only_row(Item.ELEMENT).compiled.match
        self.open: _Elements | None = None  # a tensor whose next lines follow

    def element(self, number: int, line: bytes) -> bool:
        """A line that starts with ``Output[``; True when it is an element."""
        match = self._match(line)
        if match is None:
            return only_row(Item.NO_TENSOR).search(line) is not None
        name, index, dtype, value = match.groups()
        if name == self._name and index != b"0" and self._last is not None:
            self._last.add(int(index), value)
        else:
            self._name = name
            self.add(number, int(name), int(index), dtype or b"", value)
        return True

    def add(self, number: int, output: int, index: int, dtype: bytes, value: bytes) -> None:
        elements = self._outputs.get(output)
        if elements is None or index == 0:
            elements = self._new(number, output, dtype)
        self._last = elements
        elements.add(index, value)

    def tensor(self, number: int, line: bytes) -> bytes | None:
        """``Output 0: tensor(...``: its first or only line. Returns what stands after it, None
        for another line."""
        match = only_row(Item.TENSOR).search(line)
        if match is None:
            return None
        self.open = self._new(number, int(match[1]), b"")
        self.open.sizes = tuple(map(int, match[2].replace(b",", b" ").split()))
        return self.more(match[3])

    def more(self, line: bytes) -> bytes:
        """The next line of an open tensor. Returns what stands after the tensor."""
        elements = self.open
        if elements is None:
            return line
        printed, end, after = line.partition(b"]")
        for value in _VALUE.finditer(printed):  # a line may have millions
            elements.add(elements.count, value[0])
        if end or not elements.whole:
            self.open = None
            elements.whole = elements.whole and prod(elements.sizes or ()) == elements.count
        return _TENSOR_END.sub(b"", after, count=1) if end else b""

    def finish(self) -> tuple[Tensor, ...]:
        if self.open is not None:
            self.open.whole = False
        return tuple(self._outputs[k].tensor(k) for k in sorted(self._outputs))

    def _new(self, number: int, output: int, dtype: bytes) -> _Elements:
        new = _Elements(number, dtype.decode())
        if output in self._outputs or len(self._outputs) < _MOST_OUTPUTS:
            self._outputs[output] = new
        return new


class _Elements:
    def __init__(self, line: int, dtype: str) -> None:
        self.line = line
        self.dtype = dtype
        self.sizes: tuple[int, ...] | None = None
        self.count = 0
        self.whole = True
        self._numbers = 0  # that are not NaN

    def add(self, index: int, value: bytes) -> None:
        if index != self.count or _NUMBER.fullmatch(value) is None:
            self.whole = False
            return
        self.count += 1
        self._numbers += b"nan" not in value.lower()

    def tensor(self, index: int) -> Tensor:
        only_nan = self.count > 0 and self._numbers == 0
        return Tensor(index, self.dtype, self.count, self.line, self.whole, only_nan, self.sizes)
