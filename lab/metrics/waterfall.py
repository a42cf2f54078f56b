"""Where the time until the first token went, request by request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.records.request import RequestRecord

PARTS = ("client_wait", "connection", "network", "queue", "prefill", "unknown")
CONTRADICTION_MS = 1.0
"""An engine whose own times add up to more than the client saw is not believed; less is the rounding of clocks."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The way of one request from the moment it was due to its first token, in milliseconds, part by part.

    `connection` is None where none had to be opened, `network` (with the server's front end) is what the engine's own
    times leave over, `queue` and `prefill` are None where the engine did not tell, and `unknown` is what none of them
    accounts for. In an open loop the first two are within TTFT, otherwise they come before it.
    """

    index: int
    client_wait: float
    connection: float | None
    network: float | None
    queue: float | None
    prefill: float | None
    unknown: float | None

    @property
    def parts(self) -> Mapping[str, float | None]:
        return {name: getattr(self, name) for name in PARTS}


def waterfalls(records: Sequence[RequestRecord]) -> tuple[Waterfall, ...]:
    """One per measured request that had a first token, in the order given."""
    found = (_waterfall(r) for r in records if not r.warmup and r.failure is None)
    return tuple(each for each in found if each is not None)


def mean_parts(falls: Sequence[Waterfall]) -> Mapping[str, float]:
    """The mean of each part that any request has, over all requests; one without it counts as zero there."""
    means: dict[str, float] = {}
    for name in PARTS:
        known = [value for fall in falls if (value := fall.parts[name]) is not None]
        if known:
            means[name] = sum(known) / len(falls)
    return means


def _waterfall(record: RequestRecord) -> Waterfall | None:
    if record.ttft_ms is None or record.sent_ms is None:
        return None
    after_sent = record.ttft_ms - (record.sent_ms - record.t0_ms)
    queue, prefill = record.engine_queue_ms, record.engine_prefill_ms
    rest = after_sent - (queue or 0.0) - (prefill or 0.0)
    if rest < -CONTRADICTION_MS:
        queue, prefill, rest = None, None, after_sent
    told = queue is not None and prefill is not None
    return Waterfall(
        index=record.index,
        client_wait=record.client_wait_ms or 0.0,
        connection=record.connect_ms,
        network=max(0.0, rest) if told else None,
        queue=queue,
        prefill=prefill,
        unknown=None if told else max(0.0, rest),
    )
