"""Protects what a user's repository says: found from every folder in it, paths relative to the
file, the environment stronger; and what is wrong in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, load_targets
from harness.config.matrix import default_matrix, default_models
from harness.judge.reference import references_of
from harness.system.paths import state_dir
from harness.system.settings import Settings, SettingsError, settings

ALL = """
targets = ["boards"]
default_targets = ["mine", "host"]
models = ["models/*.py", "add"]
references = "accepted"
budgets = "limits"
cache = "../cache"
executorch = "/src/executorch"
parts = ["gflags=third_party/gflags"]
limit_factor = 2
guest_packages = "debs"
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("HIL_HOME", "HIL_REFERENCES", "EXECUTORCH_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    root = tmp_path / "users"
    for folder in ("boards", "models", "tests/deep"):
        (root / folder).mkdir(parents=True)
    (root / "boards" / "mine.yaml").write_text("extends: host\ndescription: mine\nmarker: mine\n")
    for model in ("b", "a"):
        (root / "models" / f"{model}.py").touch()
    (root / "hil.toml").write_text(ALL)
    monkeypatch.chdir(root / "tests" / "deep")
    return root


def test_all_that_can_be_said(repository: Path) -> None:
    assert settings() == Settings(
        folder=repository,
        targets=(repository / "boards",),
        default_targets=("mine", "host"),
        models=("models/*.py", "add"),
        references=repository / "accepted",
        budgets=repository / "limits",
        cache=repository.parent / "cache",
        executorch=Path("/src/executorch"),
        parts=("gflags=third_party/gflags",),
        limit_factor=2.0,
        guest_packages=repository / "debs",
    )


def test_it_is_what_happens(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Targets are there, cases are those, files are where they are wanted; unless the environment
    says otherwise."""
    assert load_target("mine").description == "mine"
    models = default_models()
    assert models == [*(str(repository / "models" / f"{m}.py") for m in "ab"), "add"]
    cases = [case for case, _ in default_matrix(load_targets(), models, "sample")]
    assert [case.target for case in cases] == ["mine"] * 3 + ["host"] * 3
    assert references_of(Case("host", "add")) == repository / "accepted"
    assert references_of(Case("host", models[0])) == repository / "accepted"
    assert state_dir() == repository.parent / "cache"
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    assert state_dir() == tmp_path / "home"
    assert references_of(Case("host", "add")) == tmp_path / "references"


def test_an_empty_file_puts_everything_next_to_it(repository: Path) -> None:
    (repository / "hil.toml").write_text("")
    assert settings() == Settings(folder=repository)
    assert state_dir() == repository / ".hil"
    assert references_of(Case("host", "add")) == repository / "references"


def test_a_project_file_with_a_table_of_ours(repository: Path) -> None:
    """The next one above that says anything of us; ``hil.toml`` before it."""
    project = repository / "tests" / "pyproject.toml"
    project.write_text("[project]\nname = 'x'\n")
    assert settings().folder == repository
    project.write_text('[tool.hil]\nmodels = ["add"]\n')
    assert settings() == Settings(folder=repository / "tests", models=("add",))
    (repository / "tests" / "hil.toml").touch()
    assert settings() == Settings(folder=repository / "tests")


def test_the_environment_names_a_project(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a directory outside of it."""
    monkeypatch.chdir(tmp_path)
    assert settings() == Settings()
    for name in (repository, repository / "hil.toml"):
        assert settings(environ={"HIL_PROJECT": str(name)}).folder == repository
    with pytest.raises(SettingsError, match="has no settings of hil") as caught:
        settings(environ={"HIL_PROJECT": str(tmp_path)})
    assert "hil.toml" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("targets = [", "is not TOML: ", ""),
        ("target = []", "no setting is named 'target'; did you mean targets?", "there are: "),
        ("targets = 3", "targets is not a list of texts", 'targets = ["..."]'),
        ("models = ['a', 1]", "models is not a list of texts", 'models = ["..."]'),
        ("references = []", "references is not the path of a folder", 'references = "..."'),
        ('cache = ""', "cache is not the path of a folder", 'cache = "..."'),
    ],
)
def test_what_is_wrong_in_it(repository: Path, text: str, message: str, hint: str) -> None:
    file = repository / "hil.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")) as caught:
        settings()
    assert caught.value.path == str(file)
    assert hint in str(caught.value.hint)


def test_hil_of_tool_that_is_not_a_table(repository: Path) -> None:
    (repository / "hil.toml").unlink()
    (repository / "pyproject.toml").write_text("[tool]\nhil = 3 # [tool.hil]\n")
    with pytest.raises(SettingsError, match="is not a table"):
        settings()


def test_a_file_that_cannot_be_read(repository: Path) -> None:
    (repository / "hil.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="cannot be read: "):
        settings()


def test_what_is_wrong_in_a_project_without_us_is_not_our_business(repository: Path) -> None:
    (repository / "tests" / "pyproject.toml").write_bytes(b"\xff[")
    assert settings().folder == repository


def test_models_that_no_file_matches(repository: Path) -> None:
    (repository / "hil.toml").write_text('models = ["modles/*.py"]')
    with pytest.raises(SettingsError, match=r"no model file matches 'modles/\*.py' of models"):
        default_models()
