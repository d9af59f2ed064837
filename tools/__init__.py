"""What the project tests and measures itself with; not part of the installed package."""
