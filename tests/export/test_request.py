"""The content key: everything that decides a Program's bytes is in it, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from harness.config.models import Layout, ModelSource, Quantization, find_model
from harness.core.errors import ToolMissing, UsageError
from harness.export.batch import export
from harness.export.request import ExportRequest, content_key, exporter_versions

VERSIONS = {"torch": "2", "executorch": "1", "torchao": "0"}
BASE = ExportRequest(find_model("ds_cnn"))


def test_equal_requests_have_equal_keys_that_name_the_model() -> None:
    again = ExportRequest(find_model("ds_cnn"))
    assert content_key(BASE, VERSIONS) == content_key(again, dict(reversed(VERSIONS.items())))
    assert content_key(BASE, VERSIONS).startswith("ds_cnn-cortex-m55-")


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, compile_target="cortex-m4"),
        replace(BASE, quantization=Quantization.A16W8),
        replace(BASE, layout=Layout.EXPLICIT),
        replace(BASE, model=find_model("resnet8")),
        replace(BASE, model=replace(BASE.model, attribute="Other")),
    ],
)
def test_another_request_has_another_key(other: ExportRequest) -> None:
    assert content_key(other, VERSIONS) != content_key(BASE, VERSIONS)


def test_a_quantizer_without_16_bits_is_refused_before_any_work() -> None:
    wide = replace(BASE, quantization=Quantization.A16W8, compile_target="xnnpack-int8")
    with pytest.raises(UsageError, match="'xnnpack-int8' has no a16w8"):
        content_key(wide, VERSIONS)
    assert content_key(replace(wide, compile_target="xnnpack-fp32"), VERSIONS), "not quantised"


def test_another_version_has_another_key() -> None:
    assert content_key(BASE, {**VERSIONS, "torchao": "1"}) != content_key(BASE, VERSIONS)


def test_a_user_file_and_its_neighbours_are_in_the_key(tmp_path: Path) -> None:
    """A stale Program after an edit would judge the wrong model."""
    file, neighbour = tmp_path / "mine.py", tmp_path / "layers.py"
    file.write_text("import layers\nModelUnderTest = ModelInputs = None\n")
    neighbour.write_text("a = 1\n")
    request = ExportRequest(find_model(str(file)))
    first = content_key(request, VERSIONS)
    neighbour.write_text("a = 2\n")
    second = content_key(request, VERSIONS)
    file.write_text("import layers  # changed\nModelUnderTest = ModelInputs = None\n")
    third = content_key(request, VERSIONS)
    assert len({first, second, third}) == 3


def test_a_user_file_that_vanished_is_an_error(tmp_path: Path) -> None:
    request = ExportRequest(ModelSource("gone", file=tmp_path / "gone.py"))
    with pytest.raises(UsageError, match=r"cannot read .*gone\.py"):
        content_key(request, VERSIONS)


def not_installed(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def test_a_missing_exporter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", not_installed)
    with pytest.raises(ToolMissing, match="'torch' is not installed") as caught:
        exporter_versions()
    assert caught.value.package == "torch"
    assert caught.value.kind == "tool_missing"


NPU = ExportRequest(find_model("ds_cnn"), "ethos-u55-128")


def test_an_npu_needs_vela_and_the_tosa_tools_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(exporter_versions("ethos-u85-256")) - set(exporter_versions()) == {
        "ethos-u-vela",
        "tosa-tools",
    }
    version = metadata.version

    def without_vela(name: str) -> str:
        return not_installed(name) if name == "ethos-u-vela" else version(name)

    monkeypatch.setattr(metadata, "version", without_vela)
    exporter_versions("cortex-m55")
    error = export([NPU])[0].error
    assert isinstance(error, ToolMissing)
    assert error.package == "ethos-u-vela"


def test_the_default_memory_mode_has_one_key() -> None:
    """The name of the cache entry tells it; naming it does not export a second time."""
    key = content_key(NPU, VERSIONS)
    named = replace(NPU, memory_mode="Shared_Sram", system_config="Ethos_U55_High_End_Embedded")
    assert key.startswith("ds_cnn-ethos-u55-128-Shared_Sram-")
    assert content_key(named, VERSIONS) == key


@pytest.mark.parametrize(
    "other",
    [
        replace(NPU, memory_mode="Sram_Only"),
        replace(NPU, system_config="Ethos_U55_Deep_Embedded"),
        replace(NPU, compile_target="ethos-u55-256"),
        replace(NPU, compile_target="ethos-u65-256"),
    ],
)
def test_what_vela_is_given_is_in_the_key(other: ExportRequest) -> None:
    assert content_key(other, VERSIONS) != content_key(NPU, VERSIONS)


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"compile_target": "ethos-u55-100"}, "cannot compile for 'ethos-u55-100'", "u55-{32,64"),
        (
            {"memory_mode": "Dedicated_Sram_384KB"},
            "the arena would be in OffChipFlash, which nothing can write to",
            "another memory mode",
        ),
        (
            {"system_config": "Ethos_U85_SYS_DRAM_Mid"},
            "no system configuration 'Ethos_U85_SYS_DRAM_Mid' for an Ethos-U55",
            "Ethos_U55_Deep_Embedded",
        ),
    ],
)
def test_what_vela_cannot_do_is_a_usage_error(
    change: dict[str, str], message: str, hint: str
) -> None:
    """Before torch is imported, and with the reason."""
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        content_key(replace(NPU, **change), VERSIONS)  # type: ignore[arg-type]
    assert hint in (caught.value.hint or "")
