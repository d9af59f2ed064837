"""A small checkout in which jobs run, and small programs for the stand-in."""

from tests.firmware.executorch.conftest import pristine, real, small
from tests.suites.standin.conftest import guest

__all__ = ["guest", "pristine", "real", "small"]
