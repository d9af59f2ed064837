"""Protects completion: what a real shell is told completes verbs, targets, models and files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.clone import project_root


def completed(tmp_path: Path, *lines: str) -> list[set[str]]:
    """Each line, by one bash with a `hil` on PATH that is this one."""
    hil = tmp_path / "hil"
    hil.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from harness.cli.main import main; '
        'main(prog_name=\\"hil\\")" "$@"\n'
    )
    hil.chmod(0o755)
    script = (
        'eval "$(_HIL_COMPLETE=bash_source hil)"; for line; do COMP_WORDS=($line); COMPREPLY=(); '
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hil_completion hil; echo "${COMPREPLY[@]}"; done'
    )
    environ = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(project_root()),
    }
    done = subprocess.run(
        ["bash", "-c", script, "bash", *lines], capture_output=True, text=True, env=environ
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_shell_completes(tmp_path: Path) -> None:
    lines = {
        "hil ju": {"judge"},
        "hil run corstone-300-m": {"corstone-300-m55", "corstone-300-m85"},
        "hil run host ds": {"ds_cnn"},
        "hil run --prof": {"--profile"},
    }
    assert completed(tmp_path, *lines) == [*lines.values()]
