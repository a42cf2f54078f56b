from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.configs_page import CONFIG, SETTINGS

if TYPE_CHECKING:
    from lab.store import Store

ROOT = Path(__file__).resolve().parents[2]
OpenPage = Callable[..., AppTest]


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database, a run directory, a lock and a copy of the configs of this test alone."""
    configs = tmp_path / "configs"
    for source in (ROOT / "configs").rglob("*"):
        if source.is_file():
            target = configs / source.relative_to(ROOT / "configs")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    monkeypatch.setenv("LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'experiments.db'}")
    monkeypatch.setenv("LAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("LAB_LOCK_FILE", str(tmp_path / "runner.lock"))
    monkeypatch.setenv("LAB_CONFIG_DIR", str(configs))
    for name in ("TAOTOKEN_API_KEY", "TAOTOKEN_BASE_URL", "TAOTOKEN_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def put(own_place: Path) -> Callable[..., Path]:
    """Write the two files; gives the folder."""

    def write(settings: str = SETTINGS, config: str = CONFIG) -> Path:
        folder = own_place / "configs"
        (folder / "settings.json").write_bytes(settings.encode())
        (folder / "config.toml").write_bytes(config.encode())
        return folder

    return write


@pytest.fixture
def store(own_place: Path) -> Store:
    """The database that the pages of this test see."""
    from pages.components.context import get_store

    return get_store()


@pytest.fixture
def open_page(own_place: Path) -> OpenPage:
    """Open a page of the whole application: `open_page("results", experiment=3, lang="zh")`."""

    def opened(name: str, **query: str | int) -> AppTest:
        app = AppTest.from_file(str(ROOT / "tests" / "pages" / "whole_app.py"), default_timeout=30)
        app.run()
        for key, value in query.items():
            app.query_params[key] = str(value)
        if name != "home":
            app.switch_page(f"../../pages/{name}.py")
        return app.run() if name != "home" or query else app

    return opened
