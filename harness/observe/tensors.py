"""Outputs that runners print: element by element, as a tensor, or as a file in base64.

Forms: ``Output[0][1]: (float) 0.5`` and, in 2024, without the type (arm_executor_runner);
``[1] = 0.5`` (Zephyr hello sample); ``Output 0: tensor(sizes=[1, 2], [0.5, 1.])`` over one line
or several (executor_runner on Linux); ``echo "..." | base64 -d >debug_buffer.bin``.
"""

from __future__ import annotations

import base64
import binascii
import re
from array import array

from harness.observe.events import Block, Tensor

_ELEMENT = re.compile(
    rb"Output\[(\d{1,9})\]\[(\d{1,9})\]: (?:\((\w+)\) ?)?([-+.\w]+)(?: +\(0x[0-9a-f]+\))?\s*$"
)
_NONE = re.compile(rb"Output\[\d+\]: Not Tensor")
_TENSOR = re.compile(rb"OutputX? ?(\d{1,9}): tensor\(sizes=\[([\d, ]{0,99})\], \[?(.*)$")
_ECHO = re.compile(rb'echo "([A-Za-z0-9+/=\s]*)')
_ECHO_END = re.compile(rb'([A-Za-z0-9+/=\s]*)" \| base64 -d ?>\s*([\w.-]+)')
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*$")
_MOST_ELEMENTS = 1 << 22  # of all outputs together; what is beyond is dropped, and said so
_MOST_OUTPUTS = 1000
_MOST_FOREIGN = 20  # lines in the middle of a block that do not belong to it


class Tensors:
    """The outputs that were printed as text."""

    def __init__(self) -> None:
        self._outputs: dict[int, _Elements] = {}
        self._elements = 0
        self._name = b""
        self._last: _Elements | None = None
        self.open: _Elements | None = None  # a tensor over several lines that goes on

    def element(self, number: int, line: bytes) -> bool:
        """A line that starts with ``Output[``; True when it is one of ours."""
        match = _ELEMENT.match(line)
        if match is None:
            return _NONE.match(line) is not None
        name, index, dtype, value = match.groups()
        if name == self._name and index != b"0" and self._last is not None:
            self._add(self._last, int(index), value)
        else:
            self._name = name
            self.add(number, int(name), int(index), dtype or b"", value)
        return True

    def add(self, number: int, output: int, index: int, dtype: bytes, value: bytes) -> None:
        elements = self._outputs.get(output)
        if elements is None or index == 0:
            elements = self._new(number, output, dtype)
        self._last = elements
        self._add(elements, index, value)

    def tensor(self, number: int, line: bytes) -> bool:
        """``Output 0: tensor(...``: the first or only line of it."""
        match = _TENSOR.match(line)
        if match is None:
            return False
        elements = self._new(number, int(match[1]), b"")
        elements.sizes = tuple(map(int, match[2].replace(b",", b" ").split()))
        self.open = elements
        self.more(match[3])
        return True

    def more(self, line: bytes) -> bool:
        """The next line of an open tensor; True when it belongs to it."""
        elements = self.open
        if elements is None:
            return False
        said, end, _ = line.partition(b"]")
        for value in said.replace(b",", b" ").split():
            self._add(elements, len(elements.values), value)
        if end or not elements.whole:
            self.open = None
            wanted = 1
            for size in elements.sizes or ():
                wanted *= size
            elements.whole = elements.whole and wanted == len(elements.values)
        return True

    def finish(self) -> tuple[Tensor, ...]:
        if self.open is not None:
            self.open.whole = False
        return tuple(self._outputs[k].tensor(k) for k in sorted(self._outputs))

    def _new(self, number: int, output: int, dtype: bytes) -> _Elements:
        old = self._outputs.get(output)
        self._elements -= 0 if old is None else len(old.values)
        new = _Elements(number, dtype.decode())
        if old is not None or len(self._outputs) < _MOST_OUTPUTS:
            self._outputs[output] = new
        return new

    def _add(self, elements: _Elements, index: int, value: bytes) -> None:
        if index != len(elements.values) or self._elements >= _MOST_ELEMENTS:
            elements.whole = False
            return
        try:
            elements.values.append(float(value))
        except ValueError:
            if value not in (b"true", b"false"):
                elements.whole = False
                return
            elements.values.append(float(value == b"true"))
        self._elements += 1


class _Elements:
    def __init__(self, line: int, dtype: str) -> None:
        self.line = line
        self.dtype = dtype
        self.sizes: tuple[int, ...] | None = None
        self.values = array("d")
        self.whole = True

    def tensor(self, index: int) -> Tensor:
        return Tensor(index, self.dtype, tuple(self.values), self.line, self.whole, self.sizes)


class Blocks:
    """Files in base64, each as an ``echo`` that nobody runs. A log may have wrapped the text."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self.open = False  # the text of one goes on in the next line
        self._parts: list[bytes] = []
        self._line = 0
        self._foreign = 0

    def begin(self, number: int, line: bytes) -> None:
        """A line that starts with ``echo "``."""
        match = _ECHO.match(line)
        if match is None:
            return
        self._parts, self._line, self._foreign = [match[1]], number, 0
        if end := _ECHO_END.match(line, 6):
            self._end(end[2])
        elif match.end() == len(line):
            self.open = True

    def more(self, line: bytes) -> bool:
        """The next line of an open block; True when it belongs to it."""
        if match := _ECHO_END.match(line):
            self._parts.append(match[1])
            self._end(match[2])
            return True
        if _BASE64.match(line):
            self._parts.append(line)
            return True
        self._foreign += 1
        self.open = self._foreign < _MOST_FOREIGN and not line.startswith(b"#[")
        return False

    def _end(self, name: bytes) -> None:
        self.open = False
        if len(self.found) >= _MOST_OUTPUTS:
            return
        said = b"".join(b"".join(self._parts).split())
        self._parts = []
        try:
            data, whole = base64.b64decode(said, validate=True), True
        except (binascii.Error, ValueError):
            data, whole = b"", False
        self.found.append(Block(name.decode(), data, self._line, whole))
