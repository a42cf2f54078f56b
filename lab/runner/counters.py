"""The engine's own counters around a measurement: what the prefix cache answered, what was preempted."""

from __future__ import annotations

from dataclasses import dataclass

from lab.engine.definition import Metrics
from lab.engine.http_client import EngineClient
from lab.findings import LabError
from lab.records.summary import Mark

QUERIES, HITS, PREEMPTIONS = "prefix_cache_queries_total", "prefix_cache_hits_total", "preemptions_total"


@dataclass(frozen=True, slots=True)
class Counters:
    """Running totals in tokens and in events; None where the server does not tell."""

    queries_tokens: float | None = None
    hits_tokens: float | None = None
    preemptions: float | None = None

    def hit_ratio_until(self, later: Counters) -> float | None:
        """The share (0..1) of prompt tokens asked since then that the prefix cache answered; None where unknown."""
        queries = _grown(self.queries_tokens, later.queries_tokens)
        hits = _grown(self.hits_tokens, later.hits_tokens)
        return hits / queries if queries and hits is not None else None

    def marks_until(self, later: Counters) -> tuple[Mark, ...]:
        """Reservations that the counters give."""
        preempted = _grown(self.preemptions, later.preemptions)
        return (Mark(code="preempted", params={"count": int(preempted)}),) if preempted else ()


def read_counters(client: EngineClient, metrics: Metrics | None) -> Counters:
    """The counters now; without values where the server has none."""
    series = {} if metrics is None else metrics.series
    names = tuple(series[each] for each in (QUERIES, HITS, PREEMPTIONS) if each in series)
    if not names:
        return Counters()
    try:
        found = client.metrics(names)
    except LabError:
        return Counters()
    return Counters(*(found.get(series.get(each, "")) for each in (QUERIES, HITS, PREEMPTIONS)))


def _grown(before: float | None, after: float | None) -> float | None:
    """None also where a counter fell: the server was restarted in between."""
    return after - before if before is not None and after is not None and after >= before else None
