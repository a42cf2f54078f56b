"""When the requests of an open loop are due: fixed before the clock starts, in seconds from its start."""

from __future__ import annotations

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


def _gaps(rate_per_s: float, arrival: Arrival, burstiness: float, source: random.Random) -> Iterator[float]:
    """Gamma gaps of shape `burstiness` (1 is Poisson, below 1 burstier), as vLLM's benchmark defines it."""
    shape = burstiness if arrival == "gamma" else 1.0
    while True:
        yield source.gammavariate(shape, 1.0 / (rate_per_s * shape))
