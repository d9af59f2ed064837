"""The steps; ``harness.history.place.HEAD`` names the last of them."""
