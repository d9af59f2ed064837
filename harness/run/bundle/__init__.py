"""A run in one file, to be run again elsewhere: packing it, reading a stranger's, comparing."""
