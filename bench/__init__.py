"""How true the loader's figures are, and what they cost: `python -m bench`."""
