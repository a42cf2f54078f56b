"""A measured arm as files for production."""
