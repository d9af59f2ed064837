"""The steps; ``harness.history.database.HEAD`` names the last of them."""
