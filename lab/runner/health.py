"""The health of a running engine followed over time: a busy one is told from a dead and from a hanging one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lab.engine.http_client import EngineClient, Health
from lab.engine.orphan import own_members
from lab.engine.progress import usage_of

if TYPE_CHECKING:
    from lab.runner.engine_keeper import RunningEngine

# vLLM's API process looks every 5 s whether its core lives, and then needs a moment to end
DEAD_AFTER_S = 12.0
# a health check that is not answered for so long by processes that do nothing will not be
HANGS_AFTER_S = 20.0
# a process that computes less than this share of a core waits
_WORKING_SHARE = 0.05
Lost = Literal["dead", "hangs"]


def ask_health(engine: RunningEngine) -> Health:
    """What the engine says of itself now; takes 3 s at most."""
    with EngineClient(engine.root_url, engine.api_key, engine.request.definition.client) as client:
        return client.health()


@dataclass
class _Spell:
    """A time of one and the same trouble: since when, and the CPU that the engine had used by then."""

    since: float
    cpu_s: float


class Vigil:
    """Asks one engine how it is, again and again, and says when it is lost."""

    def __init__(
        self, engine: RunningEngine, *, dead_after_s: float = DEAD_AFTER_S, hangs_after_s: float = HANGS_AFTER_S
    ) -> None:
        self._engine = engine
        self._dead_after_s = dead_after_s
        self._hangs_after_s = hangs_after_s
        self._sick: _Spell | None = None
        self._late: _Spell | None = None
        self._well_since: float | None = None
        self.health: Health | None = None

    def look(self) -> Lost | None:
        """Ask once; None while it is not lost. "dead": it refuses or says so itself; "hangs": no answer and no work."""
        self.health = ask_health(self._engine)
        now = time.monotonic()
        self._well_since = (self._well_since or now) if self.health == "well" else None
        if self.health in ("sick", "gone"):
            self._sick = self._sick or self._spell(now)
            return "dead" if now - self._sick.since >= self._dead_after_s else None
        self._sick = None
        if self.health == "late":
            return self._late_since(now)
        self._late = None
        return None

    def well_for_s(self) -> float:
        """For how long it has said that it is well."""
        return 0.0 if self._well_since is None else time.monotonic() - self._well_since

    def _late_since(self, now: float) -> Lost | None:
        """Late is what is too busy to answer; late and idle is what hangs."""
        self._late = self._late or self._spell(now)
        passed_s = now - self._late.since
        if passed_s < self._hangs_after_s:
            return None
        # less than before: a process of the group has ended and took its time along, which is news as well
        if abs(self._cpu_s() - self._late.cpu_s) < _WORKING_SHARE * passed_s:
            return "hangs"
        self._late = self._spell(now)
        return None

    def _spell(self, now: float) -> _Spell:
        return _Spell(now, self._cpu_s())

    def _cpu_s(self) -> float:
        process = self._engine.process
        return usage_of(own_members(process.identity, process.pgid)).cpu_s
