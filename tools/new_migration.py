"""Writes the next migration: what leads from the last one's tables to those of `lab/store/models.py`.

python tools/new_migration.py "add a column for the region"
"""

from __future__ import annotations

import sys
from pathlib import Path

from alembic import command
from sqlalchemy import create_engine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.store.migrate import alembic_config, migrate

VERSIONS = Path(__file__).resolve().parent.parent / "lab" / "store" / "migrations" / "versions"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    number = f"{len(list(VERSIONS.glob('[0-9]*.py'))) + 1:04}"
    with create_engine("sqlite://").connect() as connection:
        migrate(connection, "memory")
        config = alembic_config()
        config.attributes["connection"] = connection
        command.revision(config, arguments[0], autogenerate=True, rev_id=number)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
