"""Why the trial in hand must end now: asked often, answered from memory and a rare look at the database."""

from __future__ import annotations

import threading
import time

from lab.findings import LabError
from lab.runner.outcome import Interruption, TrialInterrupted
from lab.store import Store, open_intents

# how often the database is asked; a stop is seen within this time
POLL_S = 0.3


class Watch:
    """Watches over one trial; the first reason it finds is the one it keeps."""

    def __init__(
        self,
        store: Store,
        host: str,
        *,
        experiment_id: int,
        uses_engine: bool,
        shutdown: threading.Event,
        seconds_left: float,
    ) -> None:
        self._store = store
        self._host = host
        self._experiment_id = experiment_id
        self._uses_engine = uses_engine
        self._shutdown = shutdown
        self._deadline = time.monotonic() + seconds_left
        self._next_look = 0.0
        self._reason: Interruption | None = None

    def reason(self) -> Interruption | None:
        """Why the trial must end, None while it may go on."""
        if self._reason is None:
            self._reason = self._look()
        return self._reason

    def raise_if_due(self, *, now: bool = False) -> None:
        """Raise `TrialInterrupted` when the trial must end; `now` asks the database whenever it was asked last."""
        if now:
            self._next_look = 0.0
        reason = self.reason()
        if reason is not None:
            raise TrialInterrupted(reason)

    def must_end(self) -> bool:
        return self.reason() is not None

    def _look(self) -> Interruption | None:
        if self._shutdown.is_set():
            return "shutdown"
        now = time.monotonic()
        if now >= self._deadline:
            return "time-limit"
        if now < self._next_look:
            return None
        self._next_look = now + POLL_S
        return self._wanted()

    def _wanted(self) -> Interruption | None:
        try:
            intents = open_intents(self._store, self._host)
        except LabError:  # a database that is away for a moment is no reason to end a measurement
            return None
        for intent in intents:
            if intent.kind == "shutdown":
                return "shutdown"
            if intent.kind == "stop-experiment" and intent.experiment_id == self._experiment_id:
                return "stop"
            if intent.kind == "stop-engine" and self._uses_engine:
                return "engine-stop"
        return None
