"""Outputs that runners print: element by element, as a tensor, or as a file in base64."""

from __future__ import annotations

import base64
import binascii
import re
from array import array
from typing import Final

from harness.errors.verdict import Word
from harness.observe.events import Block, Tensor
from harness.observe.pattern import Pattern


class Printed(Word):
    """What a row finds."""

    ELEMENT = "element"
    NONE = "no tensor"
    TENSOR = "tensor"
    SCRIPT = "script"
    FILE = "file"


_RUNNER: Final = "ExecuTorch examples/arm/executor_runner/arm_executor_runner.cpp"
# They stand at the beginning of a line that has no prefix.
ELEMENT: Final = Pattern(
    Printed.ELEMENT, (b"Output[",),
    rb"^Output\[(\d{1,9})\]\[(\d{1,9})\]: (?:\((\w+)\) ?)?([-+.\w]+)(?: +\(0x[0-9a-f]+\))?\s*$",
    b"Output[0][1]: (float) 0.500000", _RUNNER + "; without the type in 2024",
)  # fmt: skip
NONE: Final = Pattern(
    Printed.NONE, (b"Output[",), rb"^Output\[\d+\]: Not Tensor", b"Output[1]: Not Tensor", _RUNNER
)
TENSOR: Final = Pattern(
    Printed.TENSOR, (b": tensor(sizes=[",),
    rb"^OutputX? ?(\d{1,9}): tensor\(sizes=\[([\d, ]{0,99})\], \[?(.*)$",
    b"Output 0: tensor(sizes=[1, 2], [0.5, 1.])",
    "ExecuTorch examples/portable/executor_runner, over one line or several",
)  # fmt: skip
SCRIPT: Final = Pattern(
    Printed.SCRIPT, (b"#[",), rb"^#\[(RUN THIS\])?", b"#[RUN THIS]",
    _RUNNER + ": around what it prints in base64",
)  # fmt: skip
FILE: Final = Pattern(
    Printed.FILE, (b'echo "',), rb'^echo "([A-Za-z0-9+/=\s]*)',
    b'echo "AAEC" | base64 -d >debug_buffer.bin', _RUNNER,
)  # fmt: skip
ROWS: Final = (ELEMENT, NONE, TENSOR, SCRIPT, FILE)
BEGINNINGS: Final = (b"Output", *SCRIPT.needles, *FILE.needles)
_ECHO_END = re.compile(rb'([A-Za-z0-9+/=\s]*)" \| base64 -d ?>\s*([\w.-]+)')
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*$")
_MOST_ELEMENTS = 1 << 22  # of all outputs together; what is beyond is dropped, and said so
_MOST_OUTPUTS = 1000
_MOST_FOREIGN = 20  # lines in the middle of a block that do not belong to it


class OutputLines:
    """All that is printed of outputs, as the lines of a console come by."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.blocks = Blocks()
        self._in_script = False  # between "#[RUN THIS]" and "#[END]"

    @property
    def attentive(self) -> bool:
        """The next line is wanted, whatever is in it."""
        return self.blocks.open or self.tensors.open is not None

    def line(self, number: int, line: bytes) -> bool:
        """A line without a prefix; True when it was one of ours."""
        if not (line.startswith(BEGINNINGS) or self._in_script or self.attentive):
            return False
        if self.blocks.open and self.blocks.more(line):
            return True
        if self.tensors.open is not None and self.tensors.more(line):
            return True
        if line.startswith(b"Output"):
            return self.tensors.element(number, line) or self.tensors.tensor(number, line)
        if line.startswith(SCRIPT.needles) and (match := SCRIPT.search(line)):
            self._in_script = match[1] is not None
            return True
        if line.startswith(FILE.needles):
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
        self._match = ELEMENT.compiled.match
        self.open: _Elements | None = None  # a tensor over several lines that goes on

    def element(self, number: int, line: bytes) -> bool:
        """A line that starts with ``Output[``; True when it is one of ours."""
        match = self._match(line)
        if match is None:
            return NONE.search(line) is not None
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
        match = TENSOR.search(line)
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
        most = _MOST_ELEMENTS - self._elements  # of more only the first is looked at
        for value in said.replace(b",", b" ").split(None, most)[: most + 1]:
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
        match = FILE.search(line)
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
