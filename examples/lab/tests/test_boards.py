"""Every model on every default board; the plugin judges, and PASS means proven."""


def test_model(hil_run):
    assert hil_run.metrics["pte_bytes"] > 0
