"""Outputs that runners print: element by element, as a tensor, or as a file in base64."""

from __future__ import annotations

import base64
import binascii
import re
from array import array
from typing import Final

from harness.log.events import Block, Item, Tensor
from harness.log.pattern import only_row

# How a printed output begins; it stands at the beginning of a line that has no prefix.
_OUTPUT, _SCRIPT, _FILE = b"Output", b"#[", b'echo "'
BEGINNINGS: Final = (_OUTPUT, _SCRIPT, _FILE)
_ECHO_END = re.compile(rb'([A-Za-z0-9+/=\s]*)" \| base64 -d ?>\s*([\w.-]+)')
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*$")
_MOST_ELEMENTS = 1 << 22  # of all outputs together; a tensor that loses one is not whole
_MOST_OUTPUTS = 1000
_MOST_FOREIGN = 20  # lines in the middle of a block that do not belong to it


class OutputLines:
    """Reads printed outputs as the lines of a console come by."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.blocks = Blocks()
        self._in_script = False  # between "#[RUN THIS]" and "#[END]"

    @property
    def attentive(self) -> bool:
        """The next line is read whatever it holds."""
        return self.blocks.open or self.tensors.open is not None

    def line(self, number: int, line: bytes) -> bool:
        """A line without a prefix; True when it belongs to an output."""
        if not (line.startswith(BEGINNINGS) or self._in_script or self.attentive):
            return False
        if self.blocks.open and self.blocks.more(line):
            return True
        if self.tensors.open is not None and self.tensors.more(line):
            return True
        if line.startswith(_OUTPUT):
            return self.tensors.element(number, line) or self.tensors.tensor(number, line)
        if line.startswith(_SCRIPT) and (match := only_row(Item.SCRIPT).search(line)):
            self._in_script = match[1] is not None
            return True
        if line.startswith(_FILE):
            self.blocks.begin(number, line)
            return True
        return self._in_script and line.startswith((b"# ", b"python3 "))


class Tensors:
    """The outputs that were printed as text."""

    def __init__(self) -> None:
        self._outputs: dict[int, _Elements] = {}
        self._elements = 0
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
        """``Output 0: tensor(...``: its first or only line."""
        match = only_row(Item.TENSOR).search(line)
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
        printed, end, _ = line.partition(b"]")
        most = _MOST_ELEMENTS - self._elements  # of any more only the first is looked at
        for value in printed.replace(b",", b" ").split(None, most)[: most + 1]:
            self._add(elements, len(elements.values), value)
        if end or not elements.whole:
            self.open = None
            expected = 1
            for size in elements.sizes or ():
                expected *= size
            elements.whole = elements.whole and expected == len(elements.values)
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
    """Files in base64, each in an ``echo`` that is never run. A log may have wrapped the text."""

    def __init__(self) -> None:
        self.complete: list[Block] = []
        self.open = False  # a block whose text continues in the next line
        self._parts: list[bytes] = []
        self._line = 0
        self._foreign = 0

    def begin(self, number: int, line: bytes) -> None:
        """A line that starts with ``echo "``."""
        match = only_row(Item.FILE).search(line)
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
        if len(self.complete) >= _MOST_OUTPUTS:
            return
        encoded = b"".join(b"".join(self._parts).split())
        self._parts = []
        try:
            data, whole = base64.b64decode(encoded, validate=True), True
        except (binascii.Error, ValueError):
            data, whole = b"", False
        self.complete.append(Block(name.decode(), data, self._line, whole))
