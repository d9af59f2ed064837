"""A PostgreSQL, and ``hil`` as a process, for the tests of nights."""

from __future__ import annotations

from tests.cli.conftest import hil as hil
from tests.nightly.history.conftest import pg_server as pg_server
