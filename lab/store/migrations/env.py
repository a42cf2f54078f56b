"""Runs migrations on the connection that `lab.store.migrate` holds."""

from alembic import context

from lab.store.models import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
