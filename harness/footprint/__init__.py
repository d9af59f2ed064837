"""How much memory things take: by region for an ELF; more to come."""
