"""A real Streamlit server with a database of its own, and a real Chromium to look at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from lab.environment import ROOT
from lab.host.lock import LockHolder, hold_lock
from lab.store import Store, open_store
from pages.components.context import host_name
from tests.factories import seed_finished_experiment
from tools.chromium import find_chromium

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
UP_WITHIN_S = 60.0
SHOWN_WITHIN_MS = 30_000


@dataclass(frozen=True)
class Site:
    """A served lab: its address, and what stands behind it."""

    url: str
    place: Path
    database_url: str

    @cached_property
    def store(self) -> Store:
        return open_store(self.database_url)

    @contextmanager
    def runner_there(self) -> Iterator[LockHolder]:
        """As if a runner worked on this host, so that the pages start none."""
        with hold_lock(self.place / "runner.lock", self.database_url) as holder:
            yield holder


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A fresh server that nobody has visited yet, with an empty database."""
    with _served(tmp_path) as served:
        yield served


@pytest.fixture(scope="session")
def filled_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests that only look: it has a finished experiment."""
    with _served(tmp_path_factory.mktemp("filled")) as served:
        seed_finished_experiment(served.store, host=host_name())
        yield served


@contextmanager
def _served(place: Path) -> Iterator[Site]:
    shutil.copytree(ROOT / "configs", place / "configs")
    database_url = f"sqlite:///{place / 'experiments.db'}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "LAB_DATABASE_URL": database_url,
        "LAB_RUN_DIR": str(place / "run"),
        "LAB_LOCK_FILE": str(place / "runner.lock"),
        "LAB_CONFIG_DIR": str(place / "configs"),
    }
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    log = place / "streamlit.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_up(url, server, log)
        yield Site(url, place, database_url)
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/_stcore/health", trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    pytest.fail(f"Streamlit did not come up: {log.read_text('utf-8', 'replace')[-2000:]}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=ARGUMENTS)
        yield browser
        browser.close()


OpenTab = Callable[..., Page]


@pytest.fixture
def open_tab(chromium: Browser) -> Iterator[OpenTab]:
    """Open a page in a browser of its own: `open_tab(site, "history", locale="zh-CN", width=420)`."""
    contexts = []

    def opened(site: Site, path: str = "", width: int = 1440, height: int = 900, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **{"locale": "en-US", **options})
        contexts.append(context)
        context.set_default_timeout(SHOWN_WITHIN_MS)
        page = context.new_page()
        page.goto(f"{site.url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
