"""The fake engine, launched as the real one is."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition
from lab.engine.model import ModelRef
from lab.engine.process import EngineProcess
from lab.environment import ROOT

FAKE_ENGINE = ROOT / "tests" / "servers" / "fake_engine.py"
RECORDINGS = Path(__file__).parent / "recordings"
Launcher = Callable[..., EngineProcess]


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.02)


def faked(definition: EngineDefinition) -> EngineDefinition:
    """The definition, but the fake engine in the place of the real one."""
    command = ["{python}", str(FAKE_ENGINE), "--served-model-name", "{served_name}", "--port", "{port}"]
    return definition.model_copy(update={"command": command})


def fake_command(definition: EngineDefinition, port: int, **behaviour: object) -> EngineCommand:
    """The command of the fake engine, built as every command is."""
    return build_command(
        faked(definition),
        {},
        frozenset(),
        host_kind="cuda",
        model=ModelRef("smol", None, "hub", "smol"),
        port=port,
        python=Path(sys.executable),
        devices=None,
        variables={**os.environ, "FAKE_ENGINE": json.dumps(behaviour)},
    )
