"""The catalogue answers by name, explains what it does not have, and imports no torch."""

from __future__ import annotations

import subprocess
import sys
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
    with pytest.raises(UsageError, match="needs the package torchvision") as caught:
        find_model("mv2")
    assert caught.value.facts == {"model": "mv2", "reason": "needs the package torchvision"}
    with pytest.raises(UsageError, match=r"keeps the float operator aten::mm\.out"):
        find_model("add_mul")


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
