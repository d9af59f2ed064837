"""What Alembic runs for an upgrade: the steps, in the transaction that it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
