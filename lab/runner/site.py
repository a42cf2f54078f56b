"""What every part of the runner stands on: the database, the environment, the host, the wish to end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.environment import Environment
from lab.host.facts import HostKind
from lab.runner.status import Heartbeat
from lab.store import Store


@dataclass(frozen=True, slots=True)
class Site:
    """`shutdown` is set when the runner was asked to end (a signal)."""

    store: Store
    env: Environment
    host: str
    kind: HostKind
    gpu_count: int
    heartbeat: Heartbeat
    shutdown: threading.Event

    @property
    def variables(self) -> Mapping[str, str]:
        return self.env.variables

    @property
    def log_dir(self) -> Path:
        return self.env.run_dir.absolute() / "logs"
