"""Protects users from answers that leave them alone: exit status, message and next step of each."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import main
from harness.export.program import Program
from tests.cli.mistakes import MISTAKES, Mistake

_FILES = {
    "boards/key.yaml": "extends: host\nlimits:\n  hots: 3\n",
    "boards/orphan.yaml": "extends: nobody\n",
    "boards/number.yaml": "extends: host\ndescription: 11.30\n",
    "boards/broken.yaml": "a: [\n",
    "models/empty.py": "import torch\n",
    "models/empty": "",
    "models/broken.py": "import torch\ndef f(:\n",
    "models/odd.py": "import torch\nModelUnderTest = torch.nn.ReLU()\nModelInputs = ()\n",
    "models/odd.yaml": "budget: 3\n",
    "wrong/hil.toml": 'target = ["boards"]\n',
    "torn/hil.toml": "targets = [\n",
    "taken/hil.toml": "",
    "nowhere/hil.toml": "targets = ['no/where']",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, add: Program) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    for name, text in _FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    (made / "whole.pte").write_bytes(add.pte_path.read_bytes())
    (made / "firmware.elf").write_bytes(Path("/bin/true").read_bytes())
    return made


def answer(mistake: Mistake, folder: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """In this process, as a terminal of 80 columns without colours has it."""
    monkeypatch.chdir(folder)
    for name in ("CI", "EXECUTORCH_ROOT", "HIL_PROJECT", "HIL_REFERENCES", "HIL_FVP_DIR"):
        monkeypatch.delenv(name, raising=False)
    environment = {"HIL_HOME": home, "COLUMNS": "80", "NO_COLOR": "1", **mistake.environment}
    return CliRunner().invoke(main, shlex.split(mistake.command), env=environment)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered(
    name: str, folder: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = MISTAKES[name]
    result = answer(mistake, folder, shared_hil_home, monkeypatch)
    said = " ".join(result.output.split())
    print(result.output)
    assert result.exit_code == mistake.status
    assert mistake.says in said
    assert mistake.then in said
    assert mistake.says
    assert mistake.then
    assert "Traceback" not in said
    assert "\x1b" not in result.output
    assert not re.search(r"^\s*::|##\[", result.output, re.MULTILINE)


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40
