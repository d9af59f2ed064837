"""What a healthy runner says: progress, figures, outputs."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from harness.observe.events import Block, Metric, OpTicks, Progress, Stage, Tensor
from harness.observe.failures import text

END_MARKER: Final = b"Program complete, exiting."
# What may follow the marker on its line: nothing, an EOT, or somebody else's words.
_AFTER_END = re.compile(
    rb"\s*(?:\\?\x04|\xe2\x99\xa6|\\x04)?\s*(?:$|Info: |Warning: |xterm|sh: |\[warning|telnet)"
)
_METRIC = re.compile(
    rb"((?:model_pte|input_file|method_allocator|planned|temp|peak_temp|stack|ETDump_outputs)\w*)"
    rb"\s*:\s+(\d+)(?: / (\d+))?(?:\s|\.|$)"
)
_TICKS = re.compile(rb"system_counter_ticks:\s+(\d+)(?: \(set (\d+)\))?")
_OP_TICKS = re.compile(rb"op_ticks:\s+(\d+) (\d+) (\S+) (\d+)$")
_BUILD_ID = re.compile(rb"build id ([0-9a-f]{8,64})$")
# "ethosu_pmu_cntr%zd" reaches us unexpanded where the C library does not know %z.
_PMU = re.compile(
    rb"(ethosu_pmu_cycle_cntr|ethosu_pmu_cntr|cpu_wait_for_npu_cntr|ethos-u : cycle_cnt|"
    rb"NPU delegations|Operator\(s\) total|Inference runtime)(\S*)\s*:\s+(\d+)"
)
_PASS = re.compile(rb"BundleIO index\[(\d+)\] Test_result: PASS")
_OUTPUT_FILE = re.compile(rb"Writing output to file: (\S+)")
_ELEMENT = re.compile(rb"Output\[(\d+)\]\[(\d+)\]: (?:\((\w+)\) ?)?(true|false|[-+.\w]+)")
_HELLO = re.compile(rb"\[(\d+)\] = ([-+.\w]+)$")  # the Zephyr hello sample
_STAGES: Final = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (rb"PTE Model data loaded|Model PTE file loaded|Model buffer loaded|Model in \w+",
         Stage.PROGRAM),
        (rb"Method(?: '[^']*')? loaded\.", Stage.METHOD),
        (rb"Input prepared|Inputs prepared", Stage.INPUTS),
        (rb"Starting the model execution|Starting running \d+", Stage.EXECUTING),
        (rb"Finished running set|Model executed successfully|model_executed|\d+ inferences "
         rb"finished", Stage.EXECUTED),
    )
)  # fmt: skip
_STAGE_HEADS = (b"PTE ", b"Model", b"model_exec", b"Method", b"Input", b"Start", b"Finish",
                *(str(n).encode() for n in range(10)))  # fmt: skip
_METRIC_HEADS = (b"model_pte", b"input_file", b"method_all", b"planned", b"temp", b"peak_temp",
                 b"stack", b"ETDump_out")  # fmt: skip
_ECHO = re.compile(rb'echo "([A-Za-z0-9+/=\s]*)" \| base64 -d >\s*([\w.-]+)')
_MOST_STAGES = 1000


class Figures:
    """Accumulates what healthy lines say."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self.pmu: dict[str, Metric] = {}
        self.op_ticks: list[OpTicks] = []
        self.progress: list[Progress] = []
        self.output_files: list[str] = []
        self.blocks: list[Block] = []
        self.passes: list[int] = []
        self.build_id: str | None = None
        self.complete_line: int | None = None
        self._tensors: dict[int, _Elements] = {}
        self._in_block = False

    def message(self, number: int, message: bytes) -> None:
        """A runner's line that is no failure."""
        if message.startswith(_METRIC_HEADS) and (match := _METRIC.match(message)):
            name = match[1].decode()
            self.metrics[name] = Metric(int(match[2]), number)
            if match[3]:
                self.metrics[name + "_total"] = Metric(int(match[3]), number)
        elif b"omplete" in message and END_MARKER in message:
            self._end(number, message.removeprefix(b"SUCCESS: "))
        elif message.startswith(_STAGE_HEADS):
            self._stage(number, message)
        elif b":" in message:
            self._figure(number, message)
        elif match := _BUILD_ID.match(message):
            self.build_id = match[1].decode()
        elif match := _HELLO.match(message):
            self._element(number, 0, int(match[1]), b"", match[2])

    def _figure(self, number: int, message: bytes) -> None:
        if match := _OP_TICKS.match(message):
            self.op_ticks.append(
                OpTicks(int(match[1]), int(match[2]), text(match[3]), int(match[4]))
            )
        elif match := _TICKS.match(message):
            self.metrics[f"ticks_set{int(match[2] or 0)}"] = Metric(int(match[1]), number)
        elif match := _PMU.match(message):
            self._counter(number, match)
        elif match := _PASS.search(message):
            self.passes.append(number)
        elif match := _OUTPUT_FILE.match(message):
            self.output_files.append(text(match[1]))
            self.reached(Stage.OUTPUT, number, message)

    def _stage(self, number: int, message: bytes) -> None:
        for pattern, stage in _STAGES:
            if pattern.match(message):
                self.reached(stage, number, message)
                return

    def reached(self, stage: Stage, number: int, said: bytes) -> None:
        if len(self.progress) < _MOST_STAGES:
            self.progress.append(Progress(stage, number, text(said[:200])))

    def bare(self, number: int, line: bytes) -> bool:
        """A line without a prefix; True when it was one of ours."""
        if match := _ELEMENT.match(line):
            self._element(number, int(match[1]), int(match[2]), match[3] or b"", match[4])
            return True
        if line.startswith(b"#["):
            self._in_block = line.startswith(b"#[RUN THIS]")
            return True
        if line.startswith(b'echo "'):
            self._block(number, line)
            return True
        return self._in_block

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self._tensors[k].tensor(k) for k in sorted(self._tensors))

    def _end(self, number: int, message: bytes) -> None:
        if message.startswith(END_MARKER) and _AFTER_END.match(message, len(END_MARKER)):
            self.complete_line = number
            self.reached(Stage.COMPLETE, number, message)

    def _counter(self, number: int, match: re.Match[bytes]) -> None:
        name, index = match[1].decode().replace("ethos-u : ", "ethosu_"), match[2]
        if name == "ethosu_pmu_cntr":
            known = sum(n.startswith("ethosu_pmu_cntr") for n in self.pmu)
            name += index.decode() if index.isdigit() else str(known)
        name = re.sub(r"\W+", "_", name).strip("_").lower()
        self.pmu[name] = Metric(int(match[3]), number)

    def _element(self, number: int, output: int, index: int, dtype: bytes, value: bytes) -> None:
        elements = self._tensors.get(output)
        if elements is None or index == 0:
            elements = self._tensors[output] = _Elements(number, dtype.decode())
        elements.add(index, value)

    def _block(self, number: int, line: bytes) -> None:
        if match := _ECHO.match(line):
            try:
                data = base64.b64decode(match[1], validate=True)
            except (binascii.Error, ValueError):
                return
            self.blocks.append(Block(match[2].decode(), data, number))


class _Elements:
    """The printed elements of one output."""

    def __init__(self, line: int, dtype: str) -> None:
        self.line = line
        self.dtype = dtype
        self.values: list[float] = []
        self.whole = True

    def add(self, index: int, value: bytes) -> None:
        self.whole = self.whole and index == len(self.values)
        try:
            number = float(value) if value not in (b"true", b"false") else float(value == b"true")
        except ValueError:
            self.whole = False
            return
        self.values.append(number)

    def tensor(self, index: int) -> Tensor:
        return Tensor(index, self.dtype, tuple(self.values), self.line, self.whole)
