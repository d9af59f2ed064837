"""``python -m harness`` is ``hil``."""

from harness.cli.entry import entry

if __name__ == "__main__":
    entry()
