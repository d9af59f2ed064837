"""The pytest surface: options, markers, fixtures, summary. The work is done elsewhere.

A test that asks for ``hil_case``, ``hil_target``, ``hil_program``, ``hil_firmware``, ``hil_run`` or
``hil_reference`` is run once per case it is marked for; no other test is any of our business::

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["ds_cnn", "my_model.py"])
    def test_my_model(hil_run):
        assert hil_run.metrics["stack_high_water"] < 8000

Without the marker: every model on every target, those of the user's settings or all that there
are. Each case carries its target's marker, so ``pytest -m cortex_m55`` selects by target. An
Ethos-U has many memory modes: all of its cases are there when ``-m`` names it (``-m u85``), else a
sample (``--hil-npu-cases``).

A test that takes ``hil_run`` fails, before its first line, unless the verdict is PASS. One that
wants to look at something else names it::

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["planted_bug.py"])
    @pytest.mark.hil_expect("MISMATCH")
    def test_the_bug_is_seen(hil_run):
        assert hil_run.cause.facts["lsb"] == 1

``--hil-executorch DIR`` puts the runner of a checkout of ExecuTorch under test; with
``--hil-firmware both`` every test that uses firmware is there twice, ``[...-bundled]`` and
``[...-executorch]``.
"""

from harness.plugin.fixtures import (
    hil_case as hil_case,
)
from harness.plugin.fixtures import (
    hil_checkout as hil_checkout,
)
from harness.plugin.fixtures import (
    hil_export_process as hil_export_process,
)
from harness.plugin.fixtures import (
    hil_exporter as hil_exporter,
)
from harness.plugin.fixtures import (
    hil_firmware as hil_firmware,
)
from harness.plugin.fixtures import (
    hil_firmware_source as hil_firmware_source,
)
from harness.plugin.fixtures import (
    hil_program as hil_program,
)
from harness.plugin.fixtures import (
    hil_reference as hil_reference,
)
from harness.plugin.fixtures import (
    hil_run as hil_run,
)
from harness.plugin.fixtures import (
    hil_target as hil_target,
)
from harness.plugin.options import (
    pytest_addoption as pytest_addoption,
)
from harness.plugin.options import (
    pytest_configure as pytest_configure,
)
from harness.plugin.options import (
    pytest_report_collectionfinish as pytest_report_collectionfinish,
)
from harness.plugin.options import (
    pytest_report_header as pytest_report_header,
)
from harness.plugin.selection import pytest_generate_tests as pytest_generate_tests
from harness.plugin.verdicts import (
    pytest_runtest_call as pytest_runtest_call,
)
from harness.plugin.verdicts import (
    pytest_sessionfinish as pytest_sessionfinish,
)
from harness.plugin.verdicts import (
    pytest_terminal_summary as pytest_terminal_summary,
)
from harness.plugin.verdicts import (
    require_pass as require_pass,
)
