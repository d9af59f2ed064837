"""What pytest needs at the root."""

pytest_plugins = ["pytester"]
