"""Exports one model behind walls: started by ``parent`` alone, in the one directory that it can
write to. What it leaves there is all that it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.errors import HarnessError
from harness.export import quiet
from harness.export.checkout.wire import error_fields, line, read_order

ERROR = "error.json"
LOG = "export.log"
TEMPORARY = "tmp"


def main() -> None:
    order = read_order(sys.stdin.read())
    (request,) = order.requests
    here = Path.cwd()
    (here / TEMPORARY).mkdir()
    os.environ["TMPDIR"] = str(here / TEMPORARY)
    with quiet.captured() as log:
        try:
            from harness.export.worker import export_one

            export_one(request, order.versions).write(here).save()
        except HarnessError as error:
            (here / ERROR).write_text(line(error_fields(error)))
        (here / LOG).write_text(log.text())
