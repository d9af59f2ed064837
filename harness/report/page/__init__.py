"""A night as one static page, to be read in a minute: what broke, since when, and whose it is."""
