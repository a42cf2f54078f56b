"""When the requests of an open loop are due: fixed before the clock starts, in seconds from its start."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from lab.records.workload import Arrival


def arrivals(
    rate_per_s: float,
    arrival: Arrival,
    *,
    burstiness: float,
    seed: int,
    requests: int | None,
    duration_s: float | None,
) -> tuple[float, ...]:
    """The first request is due at 0; ends with the number of requests or the duration, whichever comes first."""
    moments: list[float] = []
    at_s = 0.0
    gaps = _gaps(rate_per_s, arrival, burstiness, random.Random(seed))
    while (requests is None or len(moments) < requests) and (duration_s is None or at_s < duration_s):
        moments.append(len(moments) / rate_per_s if arrival == "constant" else at_s)
        at_s = len(moments) / rate_per_s if arrival == "constant" else at_s + next(gaps)
    return tuple(moments)


def ramp_arrivals(rate_per_s: float, ramp_s: float, arrival: Arrival, *, burstiness: float, seed: int) -> list[float]:
    """Moments before the clock, in seconds below 0, of a rate that grows evenly from nothing to the full one.

    The law of the arrivals is kept: its moments at one per second are stretched to where as many are due.
    """
    due = rate_per_s * ramp_s / 2
    steady = arrivals(1.0, arrival, burstiness=burstiness, seed=seed, requests=None, duration_s=due)
    return [math.sqrt(2 * ramp_s * at / rate_per_s) - ramp_s for at in steady]


def _gaps(rate_per_s: float, arrival: Arrival, burstiness: float, source: random.Random) -> Iterator[float]:
    """Gamma gaps of shape `burstiness` (1 is Poisson, below 1 burstier), as vLLM's benchmark defines it."""
    shape = burstiness if arrival == "gamma" else 1.0
    while True:
        yield source.gammavariate(shape, 1.0 / (rate_per_s * shape))
