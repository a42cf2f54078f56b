"""An engine whose core has died answers for some seconds yet, with errors: told from one that refuses requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.runner.health import DEAD_AFTER_S, HANGS_AFTER_S, Vigil

if TYPE_CHECKING:
    from lab.runner.engine_keeper import RunningEngine

# so long must it say that it is well, in case the failures came first
WELL_FOR_S = 1.0
_POLL_S = 0.1


def cannot_serve(engine: RunningEngine) -> bool:
    """Whether its API process answers that its core is dead, does not take calls, or hangs.

    One that is only too busy to say how it is can serve; to tell it from one that hangs takes 20 s.
    """
    vigil = Vigil(engine)
    deadline = time.monotonic() + HANGS_AFTER_S + 2 * _POLL_S
    while (lost := vigil.look()) is None and vigil.health == "late" and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return lost is not None or vigil.health in ("sick", "gone")


def is_dying(engine: RunningEngine) -> bool:
    """Whether an engine under which requests have failed is at its end.

    Waits until its process has ended (at most 12 s, so that its log is whole), or until it has said for a second that
    it is well. A process that lives on all this time counts as dying when it still cannot serve: vLLM's may close its
    port and then wait for ever for an answer of the dead core. One that is late with its answers gets 20 s: it counts
    as dying when it does not work either.
    """
    vigil = Vigil(engine)
    began = time.monotonic()
    while engine.process.poll() is None:
        if vigil.look() is not None:
            return True
        if vigil.well_for_s() >= WELL_FOR_S:
            return False
        waited_s = time.monotonic() - began
        if waited_s > HANGS_AFTER_S + 2.0 or (waited_s > DEAD_AFTER_S and vigil.health == "unknown"):
            return False
        time.sleep(_POLL_S)
    return True
