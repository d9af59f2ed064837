"""The start of ``./hil test`` and ``./hil bench``."""

from tools.commands import main

main(prog_name="hil")
