"""What nights before this one said: one row per case and run, and what differs between two."""
