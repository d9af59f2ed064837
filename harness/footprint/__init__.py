"""What programs and firmware are made of: anatomies, differences, budgets, pictures."""
