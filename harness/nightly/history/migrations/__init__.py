"""How the history's tables came to be, one step after another; Alembic runs them."""
