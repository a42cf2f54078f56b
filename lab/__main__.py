"""`python -m lab`: the command line."""

from __future__ import annotations

import sys

from lab.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
