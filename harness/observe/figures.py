"""What a healthy runner says: progress and figures; its outputs are in ``tensors``."""

from __future__ import annotations

import re
from typing import Final

from harness.observe.events import Metric, OpTicks, Progress, Stage
from harness.observe.failures import text
from harness.observe.tensors import Blocks, Tensors

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
_PMU_HEADS = (b"ethosu_pmu", b"cpu_wait", b"ethos-u : ", b"NPU deleg", b"Operator(s)", b"Inference")
_PASS = re.compile(rb"BundleIO index\[(\d+)\] Test_result: PASS")
_OUTPUT_FILE = re.compile(rb"Writing output to file: (\S+)")
_HELLO = re.compile(rb"\[(\d+)\] = ([-+.\w]+)$")  # the Zephyr hello sample
_STAGES: Final = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (rb"PTE Model data loaded|Model (?:PTE )?file .*loaded|Model buffer loaded|Model in \w+",
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
_MOST = 100_000  # of anything that is listed
_MOST_NAMES = 1000
_MOST_STAGES = 1000


class Figures:
    """Accumulates what healthy lines say."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self.pmu: dict[str, Metric] = {}
        self.op_ticks: list[OpTicks] = []
        self.progress: list[Progress] = []
        self.output_files: list[str] = []
        self.tensors = Tensors()
        self.blocks = Blocks()
        self.passes: list[int] = []
        self.build_id: str | None = None
        self.complete_line: int | None = None
        self._counters: dict[bytes, str] = {}  # what a line calls a counter -> our name
        self._in_script = False  # between "#[RUN THIS]" and "#[END]"

    @property
    def attentive(self) -> bool:
        """The next line is wanted, whatever is in it."""
        return self.blocks.open or self.tensors.open is not None

    def message(self, number: int, message: bytes) -> None:
        """A runner's line that is no failure."""
        if message.startswith(_METRIC_HEADS) and (match := _METRIC.match(message)):
            name = match[1].decode()
            self._metric(name, match[2], number)
            if match[3]:
                self._metric(name + "_total", match[3], number)
        elif b"omplete" in message and END_MARKER in message:
            self._end(number, message.removeprefix(b"SUCCESS: "))
        elif message.startswith(_STAGE_HEADS):
            self._stage(number, message)
        elif b":" in message:
            self._figure(number, message)
        elif match := _BUILD_ID.match(message):
            self.build_id = match[1].decode()
        elif match := _HELLO.match(message):
            self.tensors.add(number, 0, int(match[1]), b"", match[2])

    def _metric(self, name: str, value: bytes, number: int) -> None:
        if name in self.metrics or len(self.metrics) < _MOST_NAMES:
            self.metrics[name] = Metric(int(value), number)

    def _figure(self, number: int, message: bytes) -> None:
        if message.startswith(_PMU_HEADS):
            if match := _PMU.match(message):
                self._counter(number, match)
        elif message.startswith(b"op_ticks:"):
            if len(self.op_ticks) < _MOST and (match := _OP_TICKS.match(message)):
                self.op_ticks.append(
                    OpTicks(int(match[1]), int(match[2]), text(match[3]), int(match[4]))
                )
        elif message.startswith(b"system_counter"):
            if match := _TICKS.match(message):
                self._metric(f"ticks_set{int(match[2] or 0)}", match[1], number)
        elif b"Test_result" in message:
            if len(self.passes) < _MOST and _PASS.search(message):
                self.passes.append(number)
        elif match := _OUTPUT_FILE.match(message):
            if len(self.output_files) < _MOST:
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
        if self.blocks.open and self.blocks.more(line):
            return True
        if self.tensors.open is not None and self.tensors.more(line):
            return True
        if line.startswith(b"Output"):
            return self.tensors.element(number, line) or self.tensors.tensor(number, line)
        if line.startswith(b"#["):
            self._in_script = line.startswith(b"#[RUN THIS]")
            return True
        if line.startswith(b'echo "'):
            self.blocks.begin(number, line)
            return True
        return self._in_script and line.startswith((b"# ", b"python3 "))

    def _end(self, number: int, message: bytes) -> None:
        if message.startswith(END_MARKER) and _AFTER_END.match(message, len(END_MARKER)):
            self.complete_line = number
            self.reached(Stage.COMPLETE, number, message)

    def _counter(self, number: int, match: re.Match[bytes]) -> None:
        said = match[1] + match[2]
        name = self._counters.get(said)
        if name is None:
            name, index = match[1].decode().replace("ethos-u : ", "ethosu_"), match[2]
            garbled = name == "ethosu_pmu_cntr" and not index.isdigit()
            if name == "ethosu_pmu_cntr":
                known = sum(n.startswith("ethosu_pmu_cntr") for n in self.pmu)
                name += str(known) if garbled else index.decode()
            name = re.sub(r"\W+", "_", name).strip("_").lower()
            if len(self.pmu) >= _MOST_NAMES:
                return
            if not garbled:
                self._counters[said] = name
        self.pmu[name] = Metric(int(match[3]), number)
