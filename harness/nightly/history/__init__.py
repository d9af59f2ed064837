"""Results of past nights: one row per case and run, and what differs between two."""
