"""``python -m harness`` is ``hil``."""

from harness.cli.main import main

if __name__ == "__main__":
    main(prog_name="hil")
