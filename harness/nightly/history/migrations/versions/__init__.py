"""The steps; ``harness.nightly.history.database.HEAD`` names the last of them."""
