"""The pytest surface: options, markers, fixtures, summary. The work is done elsewhere.

A test that asks for ``hil_case``, ``hil_target``, ``hil_program``, ``hil_firmware``, ``hil_run`` or
``hil_reference`` is run once per case it is marked for; other tests are left alone::

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["ds_cnn", "my_model.py"])
    def test_my_model(hil_run):
        assert hil_run.metrics["stack_high_water"] < 8000

Without the marker a test runs every model on every target, those of the user's settings or all.
Each case carries its target's marker, so ``pytest -m cortex_m55`` selects by target. An Ethos-U has
many memory modes: a session has all of its cases if ``-m`` names it (``-m u85``), else a sample
(``--hil-npu-cases``).

A test that takes ``hil_run`` fails, before its first line, unless the verdict is PASS. A test of
another verdict names it::

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["planted_bug.py"])
    @pytest.mark.hil_expect("MISMATCH")
    def test_the_bug_is_seen(hil_run):
        assert hil_run.cause.facts["lsb"] == 1

``--hil-executorch DIR`` tests the runner of an ExecuTorch checkout; ``--hil-firmware both`` runs
every test that uses firmware twice, ``[...-bundled]`` and ``[...-executorch]``.
"""
