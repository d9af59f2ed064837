"""``python harness/suites/standin/__main__.py PACKAGES MODEL [MODEL'S OWN ARGUMENTS]``."""

from __future__ import annotations

import sys
from os.path import abspath, dirname
from pathlib import Path

if not __package__:  # started as a file, isolated: the project is not on the path
    sys.path.insert(0, dirname(dirname(dirname(dirname(abspath(__file__))))))

from harness.suites.standin.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[2], sys.argv[3:], Path(sys.argv[1])))
