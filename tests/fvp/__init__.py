"""Files of `hil fvp check`, and how a test reads one."""

from __future__ import annotations

import json
from pathlib import Path

from harness.config.schema import checked
from harness.run.fvp_check import FvpFile


def read_fvp_file(path: Path) -> FvpFile:
    return checked(FvpFile, json.loads(path.read_text("utf-8")))
