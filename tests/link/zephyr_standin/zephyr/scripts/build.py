"""`west build -b BOARD -d DIR SOURCE -- -DOPTION...` for the stand-in workspace."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from west.commands import WestCommand

ZEPHYR = Path(__file__).resolve().parent.parent


class Build(WestCommand):
    def __init__(self):
        super().__init__("build", "configure with CMake and build", "Also: -- CMake options.")

    def do_add_parser(self, parser_adder):
        parser = parser_adder.add_parser(self.name, help=self.help, description=self.description)
        parser.add_argument("-b", "--board", required=True)
        parser.add_argument("-d", "--build-dir", default="build")
        parser.add_argument("-p", "--pristine", default="auto")
        parser.add_argument("-o", "--build-opt", action="append", default=[])
        parser.add_argument("source_dir")
        parser.add_argument("cmake_options", nargs=argparse.REMAINDER)
        return parser

    def do_run(self, args, _unknown):
        options = [word for word in args.cmake_options if word != "--"]
        board = ["-DBOARD=" + args.board, "-DWEST_PYTHON=" + sys.executable]
        environment = {**os.environ, "ZEPHYR_BASE": str(ZEPHYR)}
        for command in (
            ["cmake", "-GNinja", "-B", args.build_dir, "-S", args.source_dir, *board, *options],
            ["cmake", "--build", args.build_dir, "--", *args.build_opt],
        ):
            done = subprocess.run(command, env=environment, check=False)
            if done.returncode:
                self.die(f"command exited with status {done.returncode}: {' '.join(command)}")
