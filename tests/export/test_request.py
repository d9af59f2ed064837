"""The content key: everything that decides a Program's bytes is in it, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from harness.errors import ToolMissing, UsageError
from harness.export import ExportRequest
from harness.export.request import content_key, exporter_versions
from harness.models import ModelSource, find_model

VERSIONS = {"torch": "2", "executorch": "1", "torchao": "0"}
BASE = ExportRequest(find_model("ds_cnn"))


def test_equal_requests_have_equal_keys_that_name_the_model() -> None:
    again = ExportRequest(find_model("ds_cnn"))
    assert content_key(BASE, VERSIONS) == content_key(again, dict(reversed(VERSIONS.items())))
    assert content_key(BASE, VERSIONS).startswith("ds_cnn-cortex-m55-")


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, seed=1),
        replace(BASE, compile_target="cortex-m4"),
        replace(BASE, model=find_model("resnet8")),
        replace(BASE, model=replace(BASE.model, attribute="Other")),
    ],
)
def test_another_request_has_another_key(other: ExportRequest) -> None:
    assert content_key(other, VERSIONS) != content_key(BASE, VERSIONS)


def test_another_version_has_another_key() -> None:
    assert content_key(BASE, {**VERSIONS, "torchao": "1"}) != content_key(BASE, VERSIONS)


def test_a_user_file_and_its_neighbours_are_in_the_key(tmp_path: Path) -> None:
    """A stale Program after an edit would judge the wrong model."""
    file, neighbour = tmp_path / "mine.py", tmp_path / "layers.py"
    file.write_text("import layers\n")
    neighbour.write_text("a = 1\n")
    request = ExportRequest(find_model(str(file)))
    first = content_key(request, VERSIONS)
    neighbour.write_text("a = 2\n")
    second = content_key(request, VERSIONS)
    file.write_text("import layers  # changed\n")
    third = content_key(request, VERSIONS)
    assert len({first, second, third}) == 3


def test_a_user_file_that_vanished_is_an_error(tmp_path: Path) -> None:
    request = ExportRequest(ModelSource("gone", file=tmp_path / "gone.py"))
    with pytest.raises(UsageError, match=r"cannot read .*gone\.py"):
        content_key(request, VERSIONS)


def test_a_missing_exporter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(ToolMissing, match="'torch' is not installed") as caught:
        exporter_versions()
    assert caught.value.facts["package"] == "torch"
