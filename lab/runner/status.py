"""What the runner is doing, told to the database each second by a thread that does nothing else."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass, replace
from typing import Literal

from lab.findings import LabError
from lab.store import Store, heartbeat

RunnerState = Literal["idle", "starting", "warming", "measuring", "serving", "stopping", "ended"]
BEAT_S = 1.0
# the activity's detail while the options of a release of the engine are read for the first time; pages word it
READING_OPTIONS = "reading-options"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Activity:
    """One line of the host's row; ids are None where nothing of the kind is in hand."""

    state: RunnerState = "idle"
    detail: str | None = None
    trial_id: int | None = None
    launch_id: int | None = None


class Heartbeat:
    """Writes the current activity once a second, and at once when it changes."""

    def __init__(self, store: Store, host: str) -> None:
        self._store = store
        self._host = host
        self._activity = Activity()
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop beating; the row then says that the runner ended."""
        self._ended.set()
        self._changed.set()
        self._thread.join(timeout=20)
        self._write(Activity("ended"), runner_pid=None)

    def show(self, **changes: object) -> None:
        """Change the named fields of the activity."""
        self._activity = replace(self._activity, **changes)  # type: ignore[arg-type]
        self._changed.set()

    @property
    def activity(self) -> Activity:
        return self._activity

    def _beat(self) -> None:
        while not self._ended.is_set():
            self._changed.clear()
            self._write(self._activity, runner_pid=os.getpid())
            self._changed.wait(BEAT_S)

    def _write(self, activity: Activity, runner_pid: int | None) -> None:
        try:
            heartbeat(
                self._store,
                self._host,
                runner_pid=runner_pid,
                state=activity.state,
                detail=activity.detail,
                trial_id=activity.trial_id,
                launch_id=activity.launch_id,
            )
        except LabError as problem:
            _log.warning("heartbeat not written: %s", problem)
        except Exception:  # the edge of a thread: a database that is locked for long must not end the beating
            _log.exception("heartbeat not written")
