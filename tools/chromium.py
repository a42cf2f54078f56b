"""A Chromium for the browser tests: one that is there, else Playwright's, else the system's package where root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoChromiumError(Exception):
    """No browser could be had; the browser layer cannot be left out."""


def find_chromium() -> Path:
    """The path of a Chromium that starts. Raises `NoChromiumError` with what to do."""
    found = _installed() or _from_playwright() or _from_system_package()
    if found is None:
        raise NoChromiumError(
            "no Chromium found, Playwright could not download one and the system package could not be installed; "
            "install chromium or name one: LAB_CHROMIUM=/path/to/chromium make test"
        )
    return found


def _installed() -> Path | None:
    named = os.environ.get("LAB_CHROMIUM")
    if named:
        return Path(named)
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), _playwright_path())


def _playwright_path() -> Path | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return path if path.exists() else None


def _from_playwright() -> Path | None:
    print("check: no Chromium here; asking Playwright for one", flush=True)
    _quiet([sys.executable, "-m", "playwright", "install", "chromium"])
    return _playwright_path()


def _from_system_package() -> Path | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    print("check: installing the system's Chromium package", flush=True)
    _quiet(["apt-get", "update", "-q"])
    _quiet(["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"])
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)


def _quiet(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
