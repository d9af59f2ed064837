"""A night: a suite of cases, run by processes or machines, with a history."""
