"""A suite of cases run in one night, by as many processes or machines as there are."""
