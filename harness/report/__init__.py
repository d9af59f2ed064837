"""Readers of run records: the terminal, and what CI systems take."""
