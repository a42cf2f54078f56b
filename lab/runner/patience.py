"""Results outlast a database that is busy or away for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from lab.findings import LabError
from lab.store import PASSING

WITHIN_S = 600.0
# a runner that must end gives back what it cannot write: the next one finds the trial unfinished
ENDING_WITHIN_S = 10.0
AGAIN_S = 1.0
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


def insist(act: Callable[[], Result], within_s: float = WITHIN_S, *, ending: threading.Event | None = None) -> Result:
    """Do it, again and again while the database is away; raises the last `LabError` after `within_s`.

    10 s after `ending` was set are the last too.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            return act()
        except LabError as problem:
            if ending is not None and ending.is_set():
                deadline = min(deadline, time.monotonic() + ENDING_WITHIN_S)
                ending = None
            if not passes(problem) or time.monotonic() > deadline:
                raise
            _log.warning("the database is not there just now: %s", problem.findings[0].params)
            time.sleep(AGAIN_S)


def passes(problem: LabError) -> bool:
    """Whether waiting may cure it."""
    return problem.findings[0].code in PASSING
