"""The one process per host that launches engines and runs trials."""
