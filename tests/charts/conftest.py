from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'experiments.db'}")
    yield opened
    opened.close()
