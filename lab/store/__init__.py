"""The database: the only place with ORM objects."""
