"""The pytest surface: options, markers, fixtures, summary. The work is done elsewhere.

A test that asks for a fixture of ``fixtures`` is run once per case; other tests are left alone.
docs/how-to/own-model.md shows how it is used, docs/reference/pytest.md has every name.
"""
