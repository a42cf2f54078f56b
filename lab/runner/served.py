"""An engine that is kept up without a trial: looked after, so that one that is lost is never shown as ready."""

from __future__ import annotations

import time

from lab.findings import Param
from lab.runner.engine_keeper import EngineKeeper, RunningEngine
from lab.runner.health import HANGS_AFTER_S, Vigil
from lab.runner.outcome import TrialFailed

# an engine without work answers its health check in milliseconds
ASK_EVERY_S = 2.0


class Lookout:
    """Looks after the engine that the keeper holds while nothing is measured."""

    def __init__(self, keeper: EngineKeeper) -> None:
        self._keeper = keeper
        self._of: RunningEngine | None = None
        self._vigil: Vigil | None = None
        self._next = 0.0

    def loss(self) -> TrialFailed | None:
        """Why the engine is lost; None while it is not. It asks the engine once every 2 s."""
        engine = self._keeper.engine
        if engine is None:
            return None
        if not self._keeper.alive():
            return _unused(self._keeper.death())
        if engine is not self._of:
            self._of, self._vigil, self._next = engine, Vigil(engine), 0.0
        if self._vigil is None or time.monotonic() < self._next:
            return None
        lost = self._vigil.look()
        self._next = time.monotonic() + ASK_EVERY_S
        if lost is None:
            return None
        problem = self._keeper.death()
        if lost == "hangs":
            return _worded(problem, "trial-engine-hangs", seconds=round(HANGS_AFTER_S))
        return _unused(problem)


def _unused(problem: TrialFailed) -> TrialFailed:
    """The same death, in the words for an engine that no trial used."""
    return _worded(problem, str(problem.message["code"]).replace("trial-", "unused-", 1))


def _worded(problem: TrialFailed, code: str, **params: Param) -> TrialFailed:
    message = {**problem.message, **params, "code": code}
    return TrialFailed(problem.failure, message, problem.log_tail, problem.launch_id)
