"""Launching the fake engine, and ending whatever a test left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.process import EngineProcess, launch, stop
from lab.environment import ROOT
from tests.engine.fakes import Launcher, fake_command, unused_port


@pytest.fixture(scope="session")
def vllm() -> EngineDefinition:
    return load_definition("vllm", ROOT / "configs")


@pytest.fixture
def launch_fake(vllm: EngineDefinition, tmp_path: Path) -> Iterator[Launcher]:
    launched: list[EngineProcess] = []

    def start(port: int | None = None, **behaviour: object) -> EngineProcess:
        command = fake_command(vllm, port or unused_port(), **behaviour)
        launched.append(launch(command, tmp_path / f"engine-{len(launched)}.log"))
        return launched[-1]

    yield start
    for process in launched:
        stop(process, 0.0)
