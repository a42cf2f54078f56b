"""An engine whose core has died answers for some seconds yet, with errors: told from one that refuses requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.engine.http_client import EngineClient
from lab.findings import LabError

if TYPE_CHECKING:
    from lab.runner.engine_keeper import RunningEngine

# vLLM's API process looks every 5 s whether its core lives, and then needs a moment to end
DYING_S = 12.0
# so long must it say that it is well, in case the failures came first
WELL_FOR_S = 1.0
_POLL_S = 0.1


def cannot_serve(engine: RunningEngine) -> bool:
    """Whether its API process answers that its core is dead, or does not answer at all."""
    return _is_well(engine) is False


def is_dying(engine: RunningEngine) -> bool:
    """Whether an engine under which requests have failed is at its end.

    Waits until its process has ended (at most 12 s, so that its log is whole), or until it has said for a second that
    it is well. A process that lives on all this time counts as dying when it still cannot serve: vLLM's may close its
    port and then wait for ever for an answer of the dead core.
    """
    deadline = time.monotonic() + DYING_S
    well_since: float | None = None
    well: bool | None = None
    while engine.process.poll() is None and (now := time.monotonic()) < deadline:
        well = _is_well(engine)
        well_since = (well_since or now) if well else None
        if well_since is not None and now - well_since >= WELL_FOR_S:
            return False
        time.sleep(_POLL_S)
    return engine.process.poll() is not None or well is False


def _is_well(engine: RunningEngine) -> bool | None:
    """None where it answers, but has no word for it."""
    try:
        with EngineClient(engine.root_url, engine.api_key, engine.request.definition.client) as client:
            return client.is_well()
    except LabError:
        return False
