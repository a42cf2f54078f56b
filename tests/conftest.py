"""Fixtures of all layers, and the order of the layers: what is cheap and tells most runs first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lab.environment import ROOT
from lab.host.facts import host_facts

# a busy machine is slow without being wrong
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

LAYERS = ("engine", "browser", "gpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_layer)
    if not any(item.get_closest_marker("gpu") for item in items) or host_facts().gpus:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this host"))


def _layer(item: pytest.Item) -> int:
    return max((LAYERS.index(name) + 1 for name in LAYERS if item.get_closest_marker(name)), default=0)


@pytest.fixture(autouse=True)
def separate_lab(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the developer's database, runner, keys or proxies. Gives the run directory of the test."""
    run_dir = tmp_path_factory.mktemp("lab")
    for name in list(os.environ):
        if name.startswith("TAOTOKEN_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LAB_RUN_DIR", str(run_dir))
    monkeypatch.setenv("LAB_DATABASE_URL", f"sqlite:///{run_dir / 'experiments.db'}")
    monkeypatch.setenv("LAB_LOCK_FILE", str(run_dir / "runner.lock"))
    return run_dir


@pytest.fixture(scope="session")
def smol_model() -> Iterator[Path]:
    """The folder of the real small model, made by `make test` before the tests start."""
    folder = Path(os.environ.get("LAB_TEST_MODEL_DIR") or ROOT / ".lab" / "models" / "smollm2-135m-instruct")
    if not (folder / "config.json").exists():
        pytest.fail(f"the default model is not in {folder}; `make test` makes it, or name one: LAB_TEST_MODEL_DIR")
    yield folder
