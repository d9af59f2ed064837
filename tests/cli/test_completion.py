"""Protects completion: what a real shell is told completes verbs, targets, models and files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.clone import project_root


def completed(tmp_path: Path, *words: str) -> list[str]:
    """By bash, with a `hil` on PATH that is this one."""
    hil = tmp_path / "hil"
    hil.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from harness.cli.main import main; '
        'main(prog_name=\\"hil\\")" "$@"\n'
    )
    hil.chmod(0o755)
    script = (
        'eval "$(_HIL_COMPLETE=bash_source hil)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_hil_completion hil; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environ = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(project_root()),
    }
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], capture_output=True, text=True, env=environ
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hil", "ju"), {"judge"}),
        (("hil", "run", "corstone-300-m"), {"corstone-300-m55", "corstone-300-m85"}),
        (("hil", "run", "host", "ds"), {"ds_cnn"}),
        (("hil", "run", "--prof"), {"--profile"}),
    ],
)
def test_a_shell_completes(tmp_path: Path, words: tuple[str, ...], said: set[str]) -> None:
    assert set(completed(tmp_path, *words)) == said
