"""A user's file: the convention of aot_arm_compiler, and what is said when it is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.config.models import Layout, ModelSource, NamesMissing
from harness.core.errors import BadModel, ExportError, HarnessError, UsageError
from harness.export.batch import ExportOptions, export
from harness.export.failures import (
    CaptureDiffers,
    DeadModelError,
    DeadOutputError,
    StageFailed,
    UnsupportedTensor,
)
from harness.export.process import ExportProcess
from harness.export.program import Program, load_program
from harness.export.request import ExportRequest
from harness.system.files import DiskError
from tests.late import Late

torch = Late("torch")
sensitivity = Late("harness.export.child.sensitivity")

Write = Callable[..., ModelSource]
Get = Callable[[str | ModelSource], Program]
Failure = Callable[[ModelSource], HarnessError]

NAMES = "ModelUnderTest = ModelInputs = None\n"
LINEAR = """
import torch
ModelUnderTest = torch.nn.Linear(4, 3)
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
"""


def test_its_own_inputs_are_the_first_set(user_model: Write, exported: Get) -> None:
    program = exported(user_model(LINEAR))
    assert program.model == "mine"
    first = (program.directory / program.sets[0].inputs[0]).read_bytes()
    assert program.inputs[0].decode(first).tolist() == [[-1.0, 0.5, 2.0, -2.0]]
    for input_set in program.sets[1:]:
        drawn = program.inputs[0].decode((program.directory / input_set.inputs[0]).read_bytes())
        assert drawn.min() >= -2
        assert drawn.max() <= 2


def test_calibration_inputs_decide_the_scale(user_model: Write, exported: Get) -> None:
    wide = LINEAR + "CalibrationInputs = [(torch.tensor([[-80.0, 80.0, 0.0, 1.0]]),)] * 4\n"
    narrow, broad = exported(user_model(LINEAR)), exported(user_model(wide, "wide.py"))
    assert narrow.inputs[0].scale is not None
    assert broad.inputs[0].scale is not None
    assert broad.inputs[0].scale > 10 * narrow.inputs[0].scale


def test_several_and_repeated_outputs(user_model: Write, exported: Get) -> None:
    """Both outputs are the same value: each has its own file and its own description."""
    program = exported(
        user_model("""
import torch
class Twice(torch.nn.Module):
    def forward(self, x, y):
        z = x + y
        return z, z
ModelUnderTest = Twice()
ModelInputs = [torch.rand(2, 3), torch.rand(2, 3)]
""")
    )
    assert [spec.name for spec in program.outputs] == ["output0", "output1"]
    for input_set in program.sets:
        first, second = ((program.directory / n).read_bytes() for n in input_set.expected)
        assert first == second


def test_a_neighbour_can_be_imported(user_model: Write, exported: Get) -> None:
    user_model("import torch\nwidth = 4\n", "layers_beside.py")
    program = exported(
        user_model(
            "from layers_beside import torch, width\n"
            "ModelUnderTest = torch.nn.Linear(width, 2)\nModelInputs = (torch.ones(1, width),)\n"
        )
    )
    assert program.inputs[0].shape == (1, 4)


def test_an_image_reaches_the_method_in_nhwc(user_model: Write, exported: Get) -> None:
    program = exported(
        user_model("""
import torch
ModelUnderTest = torch.nn.Conv2d(3, 4, 3)
ModelInputs = (torch.arange(75.0).reshape(1, 3, 5, 5),)
""")
    )
    raw = (program.directory / program.sets[0].inputs[0]).read_bytes()
    assert np.frombuffer(raw, np.float32)[:4].tolist() == [0.0, 25.0, 50.0, 1.0]
    assert program.outputs[0].dim_order == (0, 2, 3, 1)


def test_missing_names(user_model: Write, failure: Failure) -> None:
    error = failure(user_model("ModelUnderTest = 1\n"))
    assert isinstance(error, NamesMissing)
    assert error.message == "mine.py does not define ModelInputs"
    assert error.missing == ("ModelInputs",)
    assert str(error.path).endswith("mine.py")
    assert error.verdict == "NO_VERDICT"


def test_a_class_instead_of_an_instance(user_model: Write, failure: Failure) -> None:
    error = failure(
        user_model("import torch\nModelUnderTest = torch.nn.Identity\nModelInputs = ()\n")
    )
    assert isinstance(error, BadModel)
    assert "must be a torch.nn.Module instance, got the class Identity" in error.message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("3", "ModelInputs of mine.py must be a tuple of tensors, got int"),
        ("(1, 2)", "must be a tuple of tensors, got tuple of int, int"),
        ("torch.ones(4).half()", "has dtype torch.float16, which the runner cannot take"),
    ],
)
def test_unusable_inputs(user_model: Write, inputs: str, message: str, failure: Failure) -> None:
    error = failure(
        user_model(f"import torch\nModelUnderTest = torch.nn.ReLU()\nModelInputs = {inputs}\n")
    )
    assert isinstance(error, BadModel)
    assert message in error.message


def test_torchvision_without_its_operators_imports(
    tmp_path: Path, user_model: Write, exported: Get
) -> None:
    """As that of the package index beside a torch for the CPU: it describes operators that only its
    compiled part defines, which does not load."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import torch\n@torch.library.register_fake('torchvision::nms')\n"
        "def meta(dets, scores, iou_threshold): ...\n"
        "qnms = torch.ops.torchvision.qnms\n"
    )
    source = user_model(
        "import torch, torchvision\nModelUnderTest = torch.nn.Linear(3, 2)\n"
        "ModelInputs = (torch.rand(2, 3),)\n"
    )
    assert exported(source).operators


def test_conv1d_is_quantised_in_the_explicit_layout_alone(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    source = user_model(
        "import torch\ntorch.manual_seed(1)\n"
        "ModelUnderTest = torch.nn.Sequential(torch.nn.Conv1d(4, 8, 3), torch.nn.ReLU())\n"
        "ModelInputs = (torch.rand(1, 4, 20),)\n"
    )
    requests = [ExportRequest(source, layout=layout) for layout in Layout]
    plain, explicit = (r.unwrap() for r in export(requests, process=hil_export_process))
    assert "aten::convolution.out" in plain.operators
    assert not any(name.startswith("aten::convolution") for name in explicit.operators)
    assert any(name.startswith("cortex_m::quantized_") for name in explicit.operators)


def test_what_a_pass_refuses_is_told_with_its_reason(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    """ExecuTorch's own exception names the pass alone. As in torchvision's SqueezeNet, the windows
    of this pool fit exactly, and its ``ceil_mode`` changes nothing."""
    source = user_model(
        "import torch\ntorch.manual_seed(1)\n"
        "ModelUnderTest = torch.nn.Sequential(\n"
        "    torch.nn.Conv2d(2, 4, 3), torch.nn.MaxPool2d(3, 2, ceil_mode=True)\n"
        ")\n"
        "ModelInputs = (torch.rand(1, 2, 9, 9),)\n"
    )
    request = ExportRequest(source, layout=Layout.EXPLICIT)
    (result,) = export([request], process=hil_export_process)
    error = result.error
    assert isinstance(error, StageFailed)
    assert "layer 1, ExecuTorch's pass ValidateCortexMExplicitLayoutPass)" in error.message
    assert "aten::max_pool2d(" in error.message
    assert "Use the legacy layout pipeline for this model." in error.message
    assert error.stage == "lower"


@pytest.mark.parametrize("name", ["dynamic_shapes", "DynamicShapes", "DYNAMIC_SHAPES"])
def test_dynamic_shapes_are_not_ignored(user_model: Write, failure: Failure, name: str) -> None:
    error = failure(user_model(LINEAR + f"{name} = ({{0: torch.export.Dim('n', max=8)}},)\n"))
    assert isinstance(error, BadModel)
    assert f"mine.py defines {name}, and a program is exported for the shapes of" in error.message
    assert error.hint == f"take {name} out; a file for each size that matters tests these sizes"


def test_calibration_inputs_of_another_shape(user_model: Write, failure: Failure) -> None:
    error = failure(user_model(LINEAR + "CalibrationInputs = [(torch.ones(9),)]\n"))
    assert "CalibrationInputs[0] of mine.py does not have the shapes" in error.message


@pytest.mark.parametrize(
    ("line", "cause"), [("1 / 0", "ZeroDivisionError"), ("raise SystemExit(4)", "SystemExit")]
)
def test_an_exception_in_the_file_has_its_line(
    user_model: Write, line: str, cause: str, failure: Failure
) -> None:
    error = failure(user_model(f"import torch\n\n{line}\n{NAMES}"))
    assert isinstance(error, StageFailed)
    assert f"failed to load at mine.py:3: {cause}" in error.message
    assert (error.file, error.line, error.stage, error.cause) == ("mine.py", 3, "load", cause)
    assert (error.kind, error.verdict, error.exit_code) == ("bad_model", "NO_VERDICT", 2)


def test_a_full_disk_is_not_the_model_s_fault(user_model: Write, failure: Failure) -> None:
    """Said by a tool that a stage of the export calls."""
    line = "raise RuntimeError('flatc failed: a.bin: No space left on device')"
    error = failure(user_model(f"{line}\n{NAMES}"))
    assert isinstance(error, DiskError)
    assert error.message == "exporting mine (load): No space left on device"


def test_an_error_has_what_was_printed_meanwhile(user_model: Write, failure: Failure) -> None:
    error = failure(user_model(f"print('about to fail')\n1 / 0\n{NAMES}"))
    assert isinstance(error, ExportError)
    assert "about to fail" in str(error.log)
    assert error.facts["log"] == error.log


def test_an_exception_in_forward_has_its_line(user_model: Write, failure: Failure) -> None:
    error = failure(
        user_model("""import torch
class Broken(torch.nn.Module):
    def forward(self, x):
        return x.no_such_method()
ModelUnderTest = Broken()
ModelInputs = (torch.ones(2),)
""")
    )
    assert isinstance(error, BadModel)
    assert error.exit_code == 2
    assert "failed to run as it is at mine.py:4" in error.message


def test_a_dead_model_is_refused(user_model: Write, failure: Failure) -> None:
    """Planted: weights of zero, so the output is the bias whatever the input."""
    error = failure(
        user_model(LINEAR + "torch.nn.init.zeros_(ModelUnderTest.weight)\n", "planted.py")
    )
    assert isinstance(error, DeadModelError)
    assert (error.different_inputs, error.different_outputs) == (3, 1)


BESIDE = """
import torch
class Beside(torch.nn.Module):
    def forward(self, x):
        return x * 2, {}
ModelUnderTest = Beside()
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
"""


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("x * 0 + 1", "output 1 of model 'mine' is the same for 3 different inputs"),
        ("x[:, 4:]", "output 1 of model 'mine' has no element for 3 different inputs"),
    ],
)
def test_a_constant_output_beside_a_live_one_is_refused(
    user_model: Write, failure: Failure, other: str, said: str
) -> None:
    """A kernel that writes nothing there would pass."""
    error = failure(user_model(BESIDE.format(other)))
    assert isinstance(error, DeadOutputError)
    assert said in error.message
    assert error.outputs == (1,)
    assert error.hint is not None
    assert "ConstantOutputs = [1]" in error.hint


def test_a_constant_output_that_is_declared_is_exported_and_reported(
    user_model: Write, exported: Get
) -> None:
    program = exported(user_model(BESIDE.format("x * 0 + 1") + "ConstantOutputs = [1]\n"))
    remarks = (
        "output 1 is constant, as ConstantOutputs says",
        "the model was in training mode, and is exported in evaluation mode",
    )
    assert program.notes == remarks
    assert load_program(program.directory) == program


@pytest.mark.parametrize(
    ("declared", "said"),
    [("[0]", "names output 0, which is not constant"), ("1", "must be a list of output numbers")],
)
def test_constant_outputs_that_are_none(
    user_model: Write, failure: Failure, declared: str, said: str
) -> None:
    error = failure(user_model(LINEAR + f"ConstantOutputs = {declared}\n"))
    assert isinstance(error, BadModel)
    assert said in error.message


def test_a_model_in_evaluation_mode_has_no_remark(user_model: Write, exported: Get) -> None:
    assert exported(user_model(LINEAR + "ModelUnderTest.eval()\n", "evaluated.py")).notes == ()


def test_an_unknown_core_is_named(failure: Callable[..., HarnessError]) -> None:
    source = ModelSource("add", "", "executorch.examples.models.toy_model", "AddModule")
    for target in ("cortex-m99", "ethos-u55-100", "ethos-u99-128", "ethos-u"):
        error = failure(source, target)
        assert isinstance(error, UsageError)
        assert f"cannot compile for '{target}'" in error.message


@pytest.mark.usefixtures("own_home")
def test_one_bad_model_does_not_lose_the_others(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    bad, good = user_model(f"1 / 0\n{NAMES}", "bad.py"), user_model(LINEAR, "good.py")
    broken = user_model("def (:\n", "broken.py")
    said: list[str] = []
    results = export(
        [ExportRequest(m) for m in (broken, bad, good, good)],
        said.append,
        process=hil_export_process,
    )
    assert [bool(r.program) for r in results] == [False, False, True, True]
    assert [r.cached for r in results] == [False, False, False, True]
    assert said[0] == "bad for cortex-m55: exporting"
    with pytest.raises(BadModel):
        results[0].unwrap()


@pytest.mark.thorough
def test_the_untrained_network_that_the_wheel_ships_is_refused(
    user_model: Write, failure: Failure
) -> None:
    """The reason for live weights: as shipped, ds_cnn gives one output for every input."""
    error = failure(
        user_model("""
import torch
from executorch.examples.models.mlperf_tiny.ds_cnn import DSCNNKWS
ModelUnderTest = DSCNNKWS()
ModelInputs = (torch.rand(1, 1, 49, 10) * 2 - 1,)
""")
    )
    assert isinstance(error, DeadModelError)


def test_what_a_file_declares_and_imports_belongs_to_its_program(
    user_model: Write, exported: Get, hil_export_process: ExportProcess, tmp_path: Path
) -> None:
    """The file of the model stays as it is; the weights, and a module elsewhere in the repository,
    change."""
    for folder in (".git", "library", "models"):
        (tmp_path / folder).mkdir()
    source = user_model(
        """
import sys
from pathlib import Path
sys.path.append(str(Path(__file__).parents[1] / "library"))
import torch
from scaling import factor
InputFiles = ["weights.bin"]
value = float(Path(__file__).with_name("weights.bin").read_text())
class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * (value * factor)
ModelUnderTest = Scaled()
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
""",
        "models/scaled.py",
    )
    assert source.file is not None
    weights, module = source.file.with_name("weights.bin"), tmp_path / "library" / "scaling.py"
    expected = []
    for value, factor in ((2, 1), (3, 1), (3, 4)):
        weights.write_text(str(value))
        module.write_text(f"factor = {factor}\n")
        program = exported(source)
        expected.append((program.directory / program.sets[0].expected[0]).read_bytes())
        assert export([ExportRequest(source)])[0].cached
    assert len(set(expected)) == 3
    options = ExportOptions(fresh=True)
    (again,) = export([ExportRequest(source)], options=options, process=hil_export_process)
    assert not again.cached


@pytest.mark.parametrize(
    ("declared", "message"),
    [("['absent.bin']", "there is no file"), ("'weights.bin'", "must be a list of file names")],
)
def test_input_files_that_are_none(
    user_model: Write, declared: str, message: str, failure: Failure
) -> None:
    error = failure(user_model(LINEAR + f"InputFiles = {declared}\n"))
    assert isinstance(error, BadModel)
    assert message in error.message
    assert error.hint in ("names start at the folder of the model's file", INPUT_FILES)


INPUT_FILES = 'InputFiles = ["weights.bin"]'
MODEL = """
import torch
class Mine(torch.nn.Module):
    def forward(self, x): {}
ModelUnderTest = Mine()
ModelInputs = {}
"""
ONE = "(torch.ones(1, 4),)"


@pytest.mark.parametrize(
    ("forward", "inputs", "kind", "said"),
    [
        ("return torch.ones(1, 3)", ONE, DeadModelError, "3 different inputs give the same"),
        ("return x * 0 + 1", ONE, DeadModelError, "3 different inputs give the same"),
        ("return 3", ONE, UnsupportedTensor, "'output0' is a int"),
        ("return x, None", ONE, UnsupportedTensor, "'output1' is a NoneType"),
        ("return x / 0", ONE, ExportError, "gives NaN or infinity: output 0, for input set 0"),
        ("return x", "(torch.ones(2), torch.ones(2))", StageFailed, "but 3 were given"),
    ],
)
def test_what_is_wrong_with_a_model_is_said_in_its_own_terms(
    user_model: Write,
    forward: str,
    inputs: str,
    kind: type[HarnessError],
    said: str,
    failure: Failure,
) -> None:
    """ExecuTorch would assert something about the type of another tensor."""
    error = failure(user_model(MODEL.format(forward, inputs)))
    assert isinstance(error, kind)
    assert said in error.message
    assert "Assertion" not in error.message


def test_an_output_that_is_constant_is_suspected(user_model: Write, failure: Failure) -> None:
    text = MODEL.format("return x + x, torch.ones(1, 3)", ONE) + "ConstantOutputs = [1]\n"
    error = failure(user_model(text))
    assert isinstance(error, StageFailed)
    assert error.constant == (1,)
    assert "output 1 of 'mine' is the same for every input" in (error.hint or "")


CHANGING = """
import torch
torch.manual_seed(1)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.calls = torch.nn.Linear(8, 5), 0
    def forward(self, x):
        self.calls += 1
        y = self.one(x)
        return {result}
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 8),)
"""


@pytest.mark.parametrize(
    ("result", "said", "hint"),
    [
        ("torch.relu(y) if self.calls > 3 else y", "when it is called again", "Python values"),
        ("y + torch.rand(1, 5)", "when it is called again", "random numbers"),
        ("-y if torch.compiler.is_exporting() else y", "the graph that torch.export", "is_export"),
    ],
    ids=["counter", "random", "exporting"],
)
def test_a_model_that_is_not_what_is_exported_is_refused(
    result: str,
    said: str,
    hint: str,
    user_model: Write,
    failure: Failure,
) -> None:
    """Else the program, its expected outputs and its accuracy are those of another model."""
    error = failure(user_model(CHANGING.format(result=result)))
    assert isinstance(error, CaptureDiffers)
    assert said in error.message
    assert hint in (error.hint or "")


def test_trying_a_model_out_changes_nothing_of_it() -> None:
    """Neither what it remembers, nor the inputs, nor the numbers that it draws next."""

    class Counting(torch.nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += 1
            self.seen = self.seen.clone()
            x += torch.rand(1)
            return x

    module, inputs = Counting(), [(torch.zeros(2),), (torch.ones(2),)]
    state = torch.get_rng_state()
    constant, (first, _) = sensitivity.try_out("m", module, inputs)
    assert constant == ()
    assert len(first) == 1
    assert module.seen.item() == 0
    assert [value.tolist() for (value,) in inputs] == [[0, 0], [1, 1]]
    assert torch.equal(torch.get_rng_state(), state)
