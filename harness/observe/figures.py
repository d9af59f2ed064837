"""What a healthy runner says: progress and figures; its outputs are in ``tensors``."""

from __future__ import annotations

import re
from typing import Final

from harness.errors.verdict import Word
from harness.observe.events import Metric, OpTicks, Progress, Stage
from harness.observe.pattern import Match, Pattern, heads, table, text
from harness.observe.tensors import Tensors


class RunnerWord(Word):
    """What a row finds: by its name the field of an observation that it fills."""

    METRIC = "metrics"
    TICKS = "ticks"  # a metric too
    OP_TICKS = "op_ticks"
    BUILD_ID = "build_id"
    COUNTER = "pmu"
    BUNDLE_PASS = "bundle_passes"
    OUTPUT_FILE = "output_files"
    ELEMENT = "tensors"
    JOB = "jobs"


_Rows = tuple[Pattern["RunnerWord | Stage"], ...]
_RUNNER: Final = "ExecuTorch examples/arm/executor_runner/arm_executor_runner.cpp"
_LINUX: Final = "ExecuTorch examples/portable/executor_runner/executor_runner.cpp"
_ZEPHYR: Final = "ExecuTorch zephyr/samples"
_BUNDLED: Final = "targets/runner"
_JOBS: Final = "Zephyr samples/modules/tflite-micro/tflm_ethosu; core-platform applications"
_SAMPLE: Final = "a vendor's ExecuTorch sample for Zephyr"
_EXIT: Final = "ethos-u-core-platform targets/*/retarget.c, _exit; TVM's demos print the tag alone"
_DIGITS: Final = tuple(b"%d" % n for n in range(10))
_PMU: Final = (
    "ExecuTorch examples/arm/executor_runner/arm_perf_monitor.cpp; the index of "
    '"ethosu_pmu_cntr%zd" reaches us unexpanded where the C library does not know %z'
)
# Wherever it stands in a line, whoever wrote the line.
INSIDE: Final[_Rows] = (
    Pattern(RunnerWord.BUNDLE_PASS, (b"Test_result: PASS",),
            rb"BundleIO index\[(\d+)\] Test_result: PASS",
            b"TEST: BundleIO index[0] Test_result: PASS", _RUNNER),
    Pattern(RunnerWord.JOB, (b"nference. job=", b"nference job. job=", b"job response. job="),
            rb"(?:[Ss]ending inference|[Rr]eceived inference job|[Rr]eceived job response)\. "
            rb"job=(?:0x)?([0-9a-fA-F]{1,16})\b(?:, status=(\d+))?",
            b"runner 0: Received inference job. job=0x205d340", _JOBS),
    Pattern(Stage.ENDED, (b" Tests 0 Failures ",), rb"^\s*[1-9]\d* Tests 0 Failures \d+ Ignored",
            b"3 Tests 0 Failures 0 Ignored ", "Unity src/unity.c, UnityEnd"),
    Pattern(Stage.PROGRAM, (b"Program loaded succ",),
            rb"(?:<inf> [\w.-]{1,60}: |^I: )Program loaded successfully",
            b"[00:00:00.010,000] <inf> main: Program loaded successfully", _SAMPLE),
    Pattern(Stage.ENDED, (b"Test PASSED: ",),
            rb"(?:<inf> [\w.-]{1,60}: |^I: )(?:\S{1,4} )?Test PASSED: ",
            b"[00:00:00.020,000] <inf> main: \xe2\x9c\x93 Test PASSED: Addition worked", _SAMPLE),
)  # fmt: skip
# A line begins with the needle: a runner's message, a driver's, or one without any prefix.
ANYWHERE: Final[_Rows] = (
    Pattern(RunnerWord.COUNTER, (b"ethosu_pmu_c", b"cpu_wait_for_npu", b"ethos-u : cycle_cnt"),
            rb"^(ethosu_pmu_cycle_cntr|ethosu_pmu_cntr|cpu_wait_for_npu_cntr|"
            rb"ethos-u : cycle_cnt)(\S*)\s*:\s+(\d+)", b"ethosu_pmu_cntr1 : 4711", _PMU),
    Pattern(RunnerWord.COUNTER, (b"NPU delegations", b"Operator(s) total", b"Inference runtime"),
            rb"^(NPU delegations|Operator\(s\) total|Inference runtime)(\S*)\s*:\s+(\d+)",
            b"NPU delegations: 3", _PMU),
    # What may follow on its line: nothing, an EOT, or somebody else's words.
    Pattern(Stage.COMPLETE, (b"Program complete, ", b"SUCCESS: "),
            rb"^(?:SUCCESS: )?(Program complete, exiting\."
            rb"\s*(?:\\?\x04|\xe2\x99\xa6|\\x04)?\s*"
            rb"(?:$|Info: |Warning: |xterm|sh: |\[warning|telnet).*)",
            b"Program complete, exiting.", _RUNNER),
    Pattern(Stage.ENDED, (b"Application exit code: 0",), rb"^Application exit code: 0(?:\.|\s|$)",
            b"Application exit code: 0.", _EXIT),
    Pattern(Stage.ENDED, (b"EXITTHESIM",), rb"^EXITTHESIM(?:\s*$|Info: )", b"EXITTHESIM", _EXIT),
)  # fmt: skip
# A runner's message begins with the needle.
MESSAGES: Final[_Rows] = (
    Pattern(RunnerWord.METRIC,
            (b"model_pte", b"input_file", b"method_allocator", b"planned", b"temp", b"peak_temp",
             b"stack", b"vm_hwm", b"ETDump_outputs"),
            rb"^((?:model_pte|input_file|method_allocator|planned|temp|peak_temp|stack|vm_hwm|"
            rb"ETDump_outputs)\w*)\s*:\s+(\d+)(?: / (\d+))?(?:\s|\.|$)",
            b"model_pte_program_size:     51168 bytes.", _RUNNER),
    Pattern(RunnerWord.TICKS, (b"system_counter_ticks",),
            rb"^system_counter_ticks:\s+(\d+)(?: \(set (\d+)\))?",
            b"system_counter_ticks: 1800000 (set 1)", _BUNDLED),
    Pattern(RunnerWord.OP_TICKS, (b"op_ticks:",), rb"^op_ticks:\s+(\d+) (\d+) (\S+) (\d+)$",
            b"op_ticks: 0 3 cortex_m::quantized_conv2d.out 4500", _BUNDLED),
    Pattern(RunnerWord.BUILD_ID, (b"build id ",), rb"^build id ([0-9a-f]{8,64})$",
            b"build id 0123456789abcdef", _BUNDLED),
    Pattern(RunnerWord.OUTPUT_FILE, (b"Writing output to",), rb"^Writing output to file: (\S+)",
            b"Writing output to file: out-0.bin", _RUNNER),
    Pattern(RunnerWord.ELEMENT, (b"[",), rb"^\[(\d+)\] = ([-+.\w]+)$", b"[0] = 4.000000", _ZEPHYR),
    Pattern(Stage.PROGRAM, (b"PTE Model data loaded",), rb"^PTE Model data loaded",
            b"PTE Model data loaded. Size: 960 bytes.", _RUNNER),
    Pattern(Stage.PROGRAM, (b"Model PTE file ", b"Model file "),
            rb"^Model (?:PTE )?file .*loaded", b"Model file /tmp/m.pte is loaded.", _LINUX),
    Pattern(Stage.PROGRAM, (b"Model buffer loaded",), rb"^Model buffer loaded",
            b"Model buffer loaded, has 2 methods", _ZEPHYR),
    Pattern(Stage.PROGRAM, (b"Model data loaded", b"Model loaded, has "),
            rb"^Model (?:data loaded\.|loaded, has )", b"Model data loaded. Size: 960 bytes.",
            _ZEPHYR),
    Pattern(Stage.PROGRAM, (b"Model in ",), rb"^Model in \w+", b"Model in 0x70000000 <", _RUNNER),
    Pattern(Stage.METHOD, (b"Method",), rb"^Method(?: '[^']*')? loaded(?:\.| succ)",
            b"Method 'forward' loaded.", _RUNNER),
    Pattern(Stage.INPUTS, (b"Input prepared", b"Inputs prepared"), rb"^Inputs? prepared",
            b"Input prepared.", _RUNNER),
    Pattern(Stage.EXECUTING, (b"Starting the model", b"Starting running"),
            rb"^(?:Starting the model execution|Starting running \d+)",
            b"Starting the model execution...", _RUNNER),
    # Its own last word; what it writes and prints after it, a run's files and exit status show.
    Pattern(Stage.COMPLETE, (b"Model executed succ",),
            rb"^(Model executed successfully \d+ time\(s\))",
            b"Model executed successfully 1 time(s) in 0.69 ms.", _LINUX),
    Pattern(Stage.ENDED, (b"MobileNetV2 Demo C",), rb"^MobileNetV2 Demo Complete",
            b"MobileNetV2 Demo Complete", _ZEPHYR),
    Pattern(Stage.EXECUTED, (b"Inference completed in",), rb"^Inference completed in \d",
            b"Inference completed in 12 ms", _ZEPHYR),
    Pattern(Stage.EXECUTED, (b"Finished running", b"Model executed", b"model_executed"),
            rb"^(?:Finished running set|Model executed successfully|model_executed)",
            b"Model executed successfully.", _RUNNER),
    Pattern(Stage.EXECUTED, _DIGITS, rb"^[0-9]+ inferences finished", b"10 inferences finished",
            _RUNNER),
    Pattern(Stage.ENDED, _DIGITS, rb"^[0-9]+ inferences? took ", b"100 inference took 1096.6 ms",
            "ExecuTorch examples/qualcomm/executor_runner/qnn_executor_runner.cpp"),
)  # fmt: skip
_MOST = 100_000  # of anything that is listed
_MOST_NAMES = 1000
_MOST_STAGES = 1000


class Jobs:
    """Inferences that tasks send to NPUs, each of which is answered with a status."""

    def __init__(self) -> None:
        self._open: set[bytes] = set()
        self._failed = False
        self._answered: int | None = None

    def told(self, number: int, job: bytes, status: bytes | None) -> None:
        """``status`` is of an answer; None when a job is only sent or taken."""
        if status is not None:
            self._open.discard(job)
            self._answered = number
            self._failed = self._failed or bool(status.strip(b"0"))
        elif len(self._open) < _MOST_NAMES:
            self._open.add(job)

    @property
    def well_line(self) -> int | None:
        """The last answer, when every job has one and none failed."""
        return None if self._open or self._failed else self._answered


class Figures:
    """Accumulates what healthy lines say."""

    def __init__(self, tensors: Tensors) -> None:
        self.metrics: dict[str, Metric] = {}
        self.pmu: dict[str, Metric] = {}
        self.op_ticks: list[OpTicks] = []
        self.progress: list[Progress] = []
        self.output_files: list[str] = []
        self.passes: list[int] = []
        self.build_id: str | None = None
        self.complete_line: int | None = None
        self.ended_line: int | None = None
        self.jobs = Jobs()
        self._tensors = tensors
        self._counters: dict[bytes, str] = {}  # what a line calls a counter -> our name
        self._messages = heads((*MESSAGES, *ANYWHERE))
        self._anywhere = heads(ANYWHERE)
        self._inside = table(INSIDE)

    def message(self, number: int, message: bytes) -> None:
        """A runner's line that is no failure."""
        if found := self._messages.first(message) or self._inside.first(message):
            self._take(number, message, *found)

    def bare(self, number: int, line: bytes) -> None:
        """A line that nobody else knows and that no runner wrote."""
        if found := self._anywhere.first(line) or self._inside.first(line):
            self._take(number, line, *found)

    def reached(self, stage: Stage, number: int, said: bytes) -> None:
        if len(self.progress) < _MOST_STAGES:
            self.progress.append(Progress(stage, number, text(said[:200])))

    def _take(self, number: int, said: bytes, kind: RunnerWord | Stage, match: Match) -> None:
        if kind is Stage.COMPLETE:
            self.complete_line = number
            self.reached(kind, number, match[1])
        elif kind is Stage.ENDED:
            self.ended_line = number
            self.reached(kind, number, said)
        elif isinstance(kind, Stage):
            self.reached(kind, number, said)
        elif kind is RunnerWord.METRIC:
            name = match[1].decode()
            self._metric(name, match[2], number)
            if match[3]:
                self._metric(name + "_total", match[3], number)
        elif kind is RunnerWord.TICKS:
            self._metric(f"ticks_set{int(match[2] or 0)}", match[1], number)
        elif kind is RunnerWord.COUNTER:
            self._counter(number, match)
        elif kind is RunnerWord.BUILD_ID:
            self.build_id = match[1].decode()
        elif kind is RunnerWord.ELEMENT:
            self._tensors.add(number, 0, int(match[1]), b"", match[2])
        elif kind is RunnerWord.JOB:
            for each in match.re.finditer(said):  # two senders may share a line
                self.jobs.told(number, each[1], each[2])
            self.reached(Stage.EXECUTED if match[2] else Stage.EXECUTING, number, said)
        else:
            self._list(number, said, kind, match)

    def _list(self, number: int, said: bytes, kind: RunnerWord, match: Match) -> None:
        """What there may be many of."""
        if kind is RunnerWord.OP_TICKS and len(self.op_ticks) < _MOST:
            self.op_ticks.append(
                OpTicks(int(match[1]), int(match[2]), text(match[3]), int(match[4]))
            )
        elif kind is RunnerWord.BUNDLE_PASS and len(self.passes) < _MOST:
            self.passes.append(number)
        elif kind is RunnerWord.OUTPUT_FILE:
            if len(self.output_files) < _MOST:
                self.output_files.append(text(match[1]))
            self.reached(Stage.OUTPUT, number, said)

    def _metric(self, name: str, value: bytes, number: int) -> None:
        if name in self.metrics or len(self.metrics) < _MOST_NAMES:
            self.metrics[name] = Metric(int(value), number)

    def _counter(self, number: int, match: Match) -> None:
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
