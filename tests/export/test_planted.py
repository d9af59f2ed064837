"""Faults of ExecuTorch's exporter are found by the witness, or by the accepted accuracy.

Protects the promise that a PASS proves the user's model and not only the runner: without a witness
each of these programs passes, because the expected outputs are computed from the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.config.budgets import Budgets
from harness.config.models import ModelSource, Quantization
from harness.config.strict_yaml import read
from harness.export.batch import ExportResult, export
from harness.export.failures import EmissionDiffers, LoweringDiffers, PreparationDiffers
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from harness.judge.budget_check import LOW_DB, accuracy_notes, check_accuracy

Write = Callable[..., ModelSource]
HERE = Path(__file__).with_name("planted")
FAULTS: dict[str, dict[str, Any]] = read(HERE / "faults.yaml").data
CLEAN = [
    ("residual", "cortex-m55"),
    ("rewritten", "ethos-u85-256"),
    ("elementwise", "cortex-m55"),
    ("wide", "ethos-u85-256"),
    ("normalised", "ethos-u85-256"),
]
NOTICED_DB = 3.0

# The model's file runs in the process that exports it, and plants the fault there.
TEXT = """
import sys
sys.path.insert(0, {here!r})
import torch
import networks, plant
{planting}
torch.manual_seed(3)
ModelUnderTest, ModelInputs, *more = networks.{network}()
if more:
    CalibrationInputs, EvaluationInputs = more
ModelUnderTest.eval()
"""


@pytest.fixture
def exported_with(
    user_model: Write, hil_export_process: ExportProcess
) -> Callable[[dict[str, Any]], ExportResult]:
    def get(fault: dict[str, Any]) -> ExportResult:
        planting = "plant.plant({!r}, {!r}, {!r}, {!r})".format(
            "executorch."
            + ("" if fault["module"].startswith("exir.") else "backends.")
            + fault["module"],
            fault["find"],
            fault["put"],
            fault.get("nth", 1),
        )
        return _exported(
            user_model, hil_export_process, fault["network"], fault["target"], planting
        )

    return get


def _exported(
    user_model: Write, process: ExportProcess, network: str, target: str, planting: str = ""
) -> ExportResult:
    text = TEXT.format(here=str(HERE), planting=planting, network=network)
    wide = Quantization.A16W8 if network == "wide" else Quantization.A8W8
    request = ExportRequest(user_model(text), target, quantization=wide)
    return export([request], process=process)[0]


@pytest.mark.parametrize("name", FAULTS["named"])
def test_a_fault_of_the_lowering_is_named(
    name: str, exported_with: Callable[[dict[str, Any]], ExportResult]
) -> None:
    fault = FAULTS["named"][name]
    error = exported_with(fault).error
    assert isinstance(error, LoweringDiffers), error
    assert set(error.operators[0].split(" and ")) & set(fault["says"])
    assert error.file == "networks.py"
    assert error.lsb > error.within
    stage = "AtenToCortexMPass" if "m55" in fault["target"] else "passes to TOSA"
    assert stage in error.made_by or "ClampActivation" in error.made_by


@pytest.mark.parametrize("name", FAULTS["prepared"])
def test_an_operator_that_the_quantiser_replaces_wrongly_is_named(
    name: str, exported_with: Callable[[dict[str, Any]], ExportResult]
) -> None:
    """The model that is quantised has the fault already, and with it what the program is compared
    with."""
    fault = FAULTS["prepared"][name]
    error = exported_with(fault).error
    assert isinstance(error, PreparationDiffers), error
    assert (error.operator, error.file) == (fault["says"], "networks.py")
    assert "transform_for_annotation" in error.made_by
    assert error.share > 1e-3


@pytest.mark.parametrize("target", ["ethos-u85-256", "ethos-u55-128", "xnnpack-int8"])
def test_operators_that_are_replaced_rightly_are_no_difference(
    target: str, user_model: Write, hil_export_process: ExportProcess
) -> None:
    _exported(user_model, hil_export_process, "rewritten", target).unwrap()


@pytest.mark.parametrize("name", FAULTS["emitted"])
def test_a_program_file_that_is_not_what_the_graph_has_is_named(
    name: str, exported_with: Callable[[dict[str, Any]], ExportResult]
) -> None:
    """Else the runner does what the file says, and its kernel is blamed."""
    fault = FAULTS["emitted"][name]
    error = exported_with(fault).error
    assert isinstance(error, EmissionDiffers), error
    operator, part = fault["says"]
    assert operator in error.operator
    assert part in error.part
    assert error.meant != error.found


RELU_BEFORE_CAT = """
import torch
torch.manual_seed(7)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 4, 1), torch.nn.Conv2d(3, 4, 1)
    def forward(self, x):
        return torch.cat([torch.relu(self.first(x)), self.second(x)], 1)
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 3, 6, 6),)
"""


def test_a_lost_relu_before_a_cat_is_found_with_its_issue(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    """A defect of ExecuTorch 1.5.1; the way round that the error names is tried here."""
    request = ExportRequest(user_model(RELU_BEFORE_CAT), "ethos-u85-256")
    error = export([request], process=hil_export_process)[0].error
    assert isinstance(error, LoweringDiffers)
    assert error.known == "relu-before-cat"
    assert "relu" in error.operators[0]
    assert "21974" in error.message
    assert error.hint is not None
    assert "nn.ReLU6" in error.hint
    instead = RELU_BEFORE_CAT.replace("torch.relu(", "torch.nn.functional.relu6(")
    request = ExportRequest(user_model(instead), "ethos-u85-256")
    export([request], process=hil_export_process)[0].unwrap()


RELU_OF_INT8 = """
import torch
torch.manual_seed(7)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 4), torch.nn.Linear(6, 4)
    def forward(self, x):
        return torch.relu(torch.cat([self.first(x), self.second(x)], 1))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(8, 6),)
"""


HARDSWISH_OF_LARGE_VALUES = """
import torch
torch.manual_seed(131)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Conv2d(3, 8, 3)
        self.one.weight.data *= 100
    def forward(self, x):
        return torch.nn.functional.hardswish(self.one(x))
ModelUnderTest = Network().eval()
ModelInputs = (torch.rand(1, 3, 8, 8) * 4 - 2,)
CalibrationInputs = [(torch.rand(1, 3, 8, 8) * 4 - 2,) for _ in range(6)]
"""


TWO_NORMS = """
import torch
torch.manual_seed(17)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Conv2d(3, 8, 3)
        self.first, self.second = torch.nn.BatchNorm2d(8), torch.nn.BatchNorm2d(8)
        for norm in (self.first, self.second):
            norm.running_mean.uniform_(-1, 1)
            norm.weight.data.uniform_(0.5, 2)
    def forward(self, x):
        return self.second(self.first(self.one(x)))
ModelUnderTest = Network().eval()
ModelInputs = (torch.rand(1, 3, 8, 8) * 4 - 2,)
"""
FOLDED = """
fold = torch.nn.utils.fusion.fuse_conv_bn_eval
ModelUnderTest.one = fold(ModelUnderTest.one, ModelUnderTest.first)
ModelUnderTest.first = torch.nn.Identity()
ModelInputs"""


@pytest.mark.parametrize(
    ("text", "known", "said", "old", "new"),
    [
        (RELU_OF_INT8, "activation-of-int8", "18767", "torch.relu(", "torch.nn.functional.relu6("),
        (
            HARDSWISH_OF_LARGE_VALUES,
            "hardswish-of-coarse-values",
            "is rounded to a step of the input's quantisation",
            ".hardswish(",
            ".silu(",
        ),
        (TWO_NORMS, "second-batch-norm", "prepare_pt2e", "\nModelInputs", FOLDED),
    ],
    ids=["relu", "hardswish", "batch-norm"],
)
def test_an_operator_that_is_lowered_wrongly_has_a_name_and_a_way_round(
    user_model: Write,
    hil_export_process: ExportProcess,
    text: str,
    known: str,
    said: str,
    old: str,
    new: str,
) -> None:
    """Defects of ExecuTorch 1.5.1 and torchao; the way round that each error names is tried."""
    request = ExportRequest(user_model(text), "cortex-m55")
    error = export([request], process=hil_export_process)[0].error
    assert isinstance(error, (LoweringDiffers, PreparationDiffers))
    assert error.known == known
    assert said in error.message
    request = ExportRequest(user_model(text.replace(old, new)), "cortex-m55")
    export([request], process=hil_export_process)[0].unwrap()


RELU_TWICE = """
import torch
class Network(torch.nn.Module):
    def forward(self, x, y):
        x = torch.sigmoid(x) - 0.3 * y
        x = torch.relu(x + y)
        x = torch.relu(x)
        return x + y
ModelUnderTest = Network().eval()
torch.manual_seed(95)
ModelInputs = (torch.randn(38), torch.randn(38))
"""


def test_an_operator_is_named_although_another_computes_the_same_value(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    """The second ReLU is the one that differs: its value is the first one's, and the sum after it
    follows from what the program gives it."""
    request = ExportRequest(user_model(RELU_TWICE), "cortex-m55")
    error = export([request], process=hil_export_process)[0].error
    assert isinstance(error, LoweringDiffers)
    assert (error.operators, error.line) == (("relu",), 7)
    assert error.known == "activation-of-int8"


@pytest.mark.parametrize("name", FAULTS["less_accurate"])
def test_a_fault_of_the_quantiser_shows_in_the_accuracy(
    name: str,
    exported_with: Callable[[dict[str, Any]], ExportResult],
    user_model: Write,
    hil_export_process: ExportProcess,
) -> None:
    fault = FAULTS["less_accurate"][name]
    clean = _exported(user_model, hil_export_process, fault["network"], fault["target"]).unwrap()
    planted = exported_with(fault).unwrap()
    assert planted.accuracy[0].sqnr_db < clean.accuracy[0].sqnr_db - NOTICED_DB
    assert check_accuracy(planted.accuracy, clean.accuracy, Budgets())
    assert not check_accuracy(clean.accuracy, clean.accuracy, Budgets())


def test_a_network_whose_features_differ_in_range_is_noted(
    user_model: Write, hil_export_process: ExportProcess
) -> None:
    """One scale for all features leaves few steps for the small ones, and the program passes."""
    program = _exported(user_model, hil_export_process, "uneven", "cortex-m55").unwrap()
    (accuracy,) = program.accuracy
    assert accuracy.samples == 41
    assert accuracy.sqnr_db < LOW_DB
    (note,) = accuracy_notes(program.accuracy, program.witness, Budgets())
    assert note.startswith("low accuracy: output0 has an SQNR of ")
    assert check_accuracy(program.accuracy, (), Budgets(min_sqnr_db=20))


@pytest.mark.parametrize(("network", "target"), CLEAN)
def test_without_a_fault_every_value_is_paired(
    network: str, target: str, user_model: Write, hil_export_process: ExportProcess
) -> None:
    witness = _exported(user_model, hil_export_process, network, target).unwrap().witness
    assert witness is not None
    assert witness.paired == witness.values > 2
    assert witness.worst <= 1
