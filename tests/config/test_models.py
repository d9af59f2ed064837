"""The catalogue answers by name, explains what it does not have, and imports no torch."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.config.models import find_model, small_models, source_files, unavailable
from harness.core.errors import BadModel, Unknown, UsageError


def test_the_models_of_the_readme_are_there() -> None:
    for name in ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "add", "softmax"):
        source = find_model(name)
        assert source.name == name
        assert source.module
        assert source.attribute
        assert source.description
        assert not source.is_user_file


def test_no_name_is_both_available_and_not() -> None:
    assert not set(small_models()) & set(unavailable())
    assert all(unavailable().values())


def test_a_typo_gets_close_names_as_hint() -> None:
    with pytest.raises(Unknown, match="unknown model 'resnet9'") as caught:
        find_model("resnet9")
    assert "resnet8" in (caught.value.hint or "")
    assert "resnet8" in caught.value.close


def test_a_name_like_nothing_points_at_the_list() -> None:
    with pytest.raises(UsageError, match="unknown model") as caught:
        find_model("zzzzzzzz")
    assert "hil models" in (caught.value.hint or "")


def test_an_unavailable_model_says_why() -> None:
    with pytest.raises(UsageError, match=r"keeps the float operator aten::mm\.out"):
        find_model("add_mul")


def test_a_missing_package_is_asked_for_and_installed_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="needs the package torchsr") as caught:
        find_model("edsr")
    assert caught.value.facts == {"model": "edsr", "reason": "needs the package torchsr"}
    assert caught.value.hint == (
        f"it may be exported after {sys.executable} -m pip install 'torchsr'"
    )
    assert "edsr" in unavailable()
    (tmp_path / "torchsr.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_model("edsr").attribute == "EdsrModel"
    assert "edsr" not in unavailable()


def test_a_package_that_the_project_pins_is_installed_in_that_version() -> None:
    if find_spec("torchvision") is None:
        with pytest.raises(UsageError) as caught:
            find_model("vit")
        assert "-m pip install 'torchvision==" in str(caught.value.hint)
    else:
        assert find_model("vit").attribute == "TorchVisionViTModel"


@pytest.mark.parametrize(
    ("name", "own"), [("mv2", "mobilenet_v2"), ("mv3", "mobilenet_v3_small"), ("w2l", "wav2letter")]
)
def test_executorchs_name_of_a_network_is_the_catalogues_own(name: str, own: str) -> None:
    assert find_model(name) == find_model(own)


def test_a_file_without_its_ending_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/tiny.py").write_text("")
    with pytest.raises(Unknown) as caught:
        find_model("models/tiny")
    assert caught.value.hint == "did you mean models/tiny.py?"


def test_what_is_not_available_is_not_suggested() -> None:
    with pytest.raises(Unknown) as caught:
        find_model("edsrr")
    assert "edsr" not in caught.value.close


def test_a_user_file_is_named_by_its_stem(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("")
    source = find_model(str(file))
    assert (source.name, source.file) == ("mine", file)


def test_a_user_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such model file"):
        find_model(str(tmp_path / "absent.py"))


def test_sources_follow_imports_of_neighbours_only(tmp_path: Path) -> None:
    """A change in a file that the model imports must change the key."""
    (tmp_path / "mine.py").write_text("import torch\nfrom layers import block\nimport pack.deep\n")
    (tmp_path / "layers.py").write_text("import mine\n")
    (tmp_path / "unrelated.py").write_text("")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "deep.py").write_text("")
    found = source_files(tmp_path / "mine.py")
    assert {p.relative_to(tmp_path).as_posix() for p in found} == {
        "mine.py",
        "layers.py",
        "pack/deep.py",
    }


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("x = 1\ndef f(:\n")
    with pytest.raises(BadModel, match=r"broken\.py:2 is not valid Python") as caught:
        source_files(file)
    assert (caught.value.line, caught.value.cause) == (2, "SyntaxError")
    assert caught.value.path == str(file)
    assert caught.value.exit_code == 2


def test_importing_the_catalogue_and_the_verbs_imports_no_torch() -> None:
    """Importing torch costs seconds, and a cached run must not pay them."""
    code = (
        "import sys, harness.config.models, harness.export.batch as b; "
        "b.export([]); "
        "sys.exit(any(m in sys.modules for m in ('torch', 'executorch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_name_longer_than_a_file_s_may_be() -> None:
    with pytest.raises(Unknown):
        find_model("x" * 5000)
