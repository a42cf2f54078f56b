from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.store import Store, open_store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "experiments.db"


@pytest.fixture
def url(database: Path) -> str:
    return f"sqlite:///{database}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()
