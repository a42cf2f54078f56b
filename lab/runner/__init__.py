"""The one process per host that launches engines and runs trials; started as `python -m lab.runner`, never imported."""
