"""Reservations on a measurement: what may have spoiled it, with the figures that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lab.findings import Param
from lab.metrics.gaps import Gaps
from lab.metrics.interference import INTRUDER, ROLES
from lab.metrics.percentiles import Values, as_values, percentile
from lab.metrics.rates import Output
from lab.records.ceiling import ClientCeiling
from lab.records.request import LoadResult
from lab.records.summary import Mark
from lab.records.table import RequestTable
from lab.records.workload import Workload

SEVERAL_PER_CHUNK = 1.05  # a lone pair in a thousand tokens bends no figure
LAG_LIMIT_MS = 20.0
"""An event loop this late (P99) shows in TTFT: the fidelity asked of the loader is 20 ms at P95."""
WAIT_LIMIT_MS = 50.0
BUSY_LIMIT_RATIO = 0.8
CEILING_LIMIT_RATIO = 0.8
RATE_LIMIT_RATIO = 0.98
CACHE_LIMIT_RATIO = 0.01
LENGTH_LIMIT_RATIO = 0.02
LOOPING_LIMIT_RATIO = 0.1
P95_SAMPLES = 20
P99_SAMPLES = 100

DELAY_SHARE = 0.05
"""A late client spoils a comparison when its delay is more than this share of what is compared."""
CACHE_SPOILS_PERCENT = 10.0
"""Below, the hits may be the chat template's own tokens, which stand before any unique prompt."""
CONCURRENCY_SPOILS_RATIO = 0.9

SPOILING = frozenset(
    {
        "client-near-ceiling",
        "rate-not-achieved",
        "effective-differs",
        "engine-restarted",
        "stopped-early",
        "workload-shrunk",
    }
)
_DELAYS = {"client-lag": "lag_p99_ms", "client-late": "wait_p95_ms"}


def spoils(mark: Mark, scale_ms: float | None = None) -> bool:
    """Whether a measurement with this mark cannot be compared in a quantity of the given size.

    Without a size, whether it cannot be compared in anything. The smaller reservations stay marks only.
    """
    params = mark.params
    if mark.code in _DELAYS:
        delay = params.get(_DELAYS[mark.code])
        return scale_ms is not None and isinstance(delay, float | int) and delay > DELAY_SHARE * scale_ms
    if mark.code == "cache-hits":
        return _number(params.get("hit_percent")) >= CACHE_SPOILS_PERCENT
    if mark.code == "concurrency-not-reached":
        return _number(params.get("reached")) < CONCURRENCY_SPOILS_RATIO * _number(params.get("asked"))
    if mark.code == "near-client-ceiling":
        return params.get("reached") is True  # otherwise the client was only never seen to do more
    return mark.code in SPOILING


def _number(value: Param) -> float:
    return float(value) if isinstance(value, float | int) else 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the checks look at: the load result and what was already computed from it."""

    result: LoadResult
    workload: Workload
    measured: RequestTable
    ok: RequestTable
    gaps: Gaps
    output: Output
    peak_in_flight: int
    ttft_samples: int
    cache_hit_ratio: float | None
    looping_ratio: float | None = None
    ceiling: ClientCeiling | None = None


def validity_marks(evidence: Evidence) -> tuple[Mark, ...]:
    """All marks that the evidence supports, the gravest kinds first."""
    checks = (
        _failures,
        _stopped,
        _client,
        _concurrency,
        _rate,
        _cache,
        _length,
        _looping,
        _tokens,
        _samples,
        _from_records,
    )
    return tuple(mark for check in checks for mark in check(evidence))


def _mark(code: str, **params: str | int | float | bool | None) -> Mark:
    return Mark(code=code, params=params)


def _failures(e: Evidence) -> Iterator[Mark]:
    classes = Counter(e.measured.counted_words("failure"))
    if classes:
        listed = ", ".join(f"{name} {count}" for name, count in classes.most_common())
        yield _mark("failures", failed=classes.total(), requests=len(e.measured), classes=listed)


def _stopped(e: Evidence) -> Iterator[Mark]:
    if e.result.stopped:
        yield _mark("stopped-early", requests=len(e.measured), asked=e.result.requests_asked)


def _client(e: Evidence) -> Iterator[Mark]:
    lag = e.result.client.lag_p99_ms
    if lag is not None and lag > LAG_LIMIT_MS:
        yield _mark("client-lag", lag_p99_ms=round(lag, 1), limit_ms=LAG_LIMIT_MS)
    wait = percentile(e.measured.column("client_wait_ms"), 95)
    if wait is not None and wait > WAIT_LIMIT_MS:
        yield _mark("client-late", wait_p95_ms=round(wait, 1), limit_ms=WAIT_LIMIT_MS)
    client, wall_s = e.result.client, e.output.wall_s
    cpu_s = max((each.cpu_s for each in client.processes), default=client.cpu_s)
    if cpu_s is not None and wall_s and wall_s > 1 and cpu_s / wall_s > BUSY_LIMIT_RATIO:
        yield _mark("client-near-ceiling", busy_ratio=round(cpu_s / wall_s, 2))
    yield from _near_ceiling(e)


def _near_ceiling(e: Evidence) -> Iterator[Mark]:
    """Whether the point lies near the most that the client of this host was seen to keep up with."""
    speed, ceiling = e.output.per_second(e.output.tokens), e.ceiling
    if ceiling is None or speed is None:
        return
    nearness = max(speed / ceiling.tokens_per_s, e.peak_in_flight / ceiling.in_flight)
    if nearness >= CEILING_LIMIT_RATIO:
        yield _mark(
            "near-client-ceiling",
            tokens_per_s=round(speed, 1),
            in_flight=e.peak_in_flight,
            most_tokens_per_s=ceiling.tokens_per_s,
            most_in_flight=ceiling.in_flight,
            reached=ceiling.reached,
        )


def _concurrency(e: Evidence) -> Iterator[Mark]:
    asked = e.result.concurrency_asked
    if asked is not None and len(e.measured) and e.peak_in_flight < asked:
        yield _mark("concurrency-not-reached", asked=asked, reached=e.peak_in_flight)


def _rate(e: Evidence) -> Iterator[Mark]:
    asked, achieved = e.result.rate_asked_per_s, achieved_rate_per_s(e.measured)
    if asked is None or achieved is None:
        return
    planned = _planned_rate_per_s(e.measured) or asked
    if achieved / planned < RATE_LIMIT_RATIO:
        yield _mark("rate-not-achieved", asked=round(planned, 3), achieved=round(achieved, 3))


def achieved_rate_per_s(measured: RequestTable) -> float | None:
    """Requests really sent per second, first to last; None below two."""
    return _rate_per_s(measured.column("sent_ms"))


def _planned_rate_per_s(measured: RequestTable) -> float | None:
    """A random schedule has a rate of its own; being late is judged against that one."""
    return _rate_per_s(measured.column("scheduled_ms"))


def _rate_per_s(moments_ms: Values) -> float | None:
    known = as_values(moments_ms)
    span_ms = float(known.max() - known.min()) if known.size > 1 else 0.0
    return (known.size - 1) / span_ms * 1000 if span_ms > 0 else None


def _cache(e: Evidence) -> Iterator[Mark]:
    ratio = e.cache_hit_ratio
    if ratio is None or ratio < CACHE_LIMIT_RATIO:
        return
    code = "cache-on-purpose" if e.workload.prefix == "shared" else "cache-hits"
    yield _mark(code, hit_percent=round(ratio * 100, 1))


def _length(e: Evidence) -> Iterator[Mark]:
    asked = e.result.output_tokens_asked
    whole = e.ok.where(~e.ok.marked(INTRUDER))  # a long prompt thrown in asks for a single token
    counts = as_values(whole.column("completion_tokens"))
    if asked is None or not counts.size:
        return
    mean = float(counts.mean())
    if not e.workload.ignore_eos:
        yield _mark("natural-length", asked=asked, mean=round(mean, 1))
        return
    if abs(mean - asked) / asked > LENGTH_LIMIT_RATIO:
        differing = int((counts != asked).sum())
        yield _mark(
            "output-length-differs", asked=asked, mean=round(mean, 1), differing=differing, requests=counts.size
        )


def _looping(e: Evidence) -> Iterator[Mark]:
    if e.looping_ratio is not None and e.looping_ratio >= LOOPING_LIMIT_RATIO:
        yield _mark("answers-loop", percent=round(e.looping_ratio * 100, 1))


def _tokens(e: Evidence) -> Iterator[Mark]:
    unknown = int(np.isnan(e.ok.column("completion_tokens")).sum())
    if unknown:
        yield _mark("tokens-unknown", requests=unknown)
    estimated = int(e.ok.flag("tokens_estimated").sum())
    if estimated:
        yield _mark("tokens-estimated", requests=estimated)
    if e.output.cut_off:
        uncounted = e.output.tokens is None and not unknown
        yield _mark("cut-off-uncounted" if uncounted else "cut-off-shared-out", requests=e.output.cut_off)
    if e.output.carried_tokens:
        yield _mark("ramp-tokens-counted", tokens=e.output.carried_tokens)
    if e.gaps.uneven and e.gaps.tokens_per_chunk is not None and e.gaps.tokens_per_chunk >= SEVERAL_PER_CHUNK:
        per_chunk = round(e.gaps.tokens_per_chunk, 2)
        yield _mark("several-tokens-per-chunk", tokens_per_chunk=per_chunk, requests=e.gaps.uneven)


def _samples(e: Evidence) -> Iterator[Mark]:
    if e.ttft_samples < P95_SAMPLES:
        yield _mark("low-samples-p95", n=e.ttft_samples, wanted=P95_SAMPLES)
    if e.ttft_samples < P99_SAMPLES:
        yield _mark("low-samples-p99", n=e.ttft_samples, wanted=P99_SAMPLES)


def _from_records(e: Evidence) -> Iterator[Mark]:
    """Marks that the loader put on single requests, with their number, and its notes on the whole."""
    codes: Counter[str] = Counter()
    for marks, count in e.measured.counted_words("marks").items():
        codes.update({code: count for code in marks.split() if code not in ROLES})
    for code, count in sorted(codes.items()):
        yield _mark(code, requests=count)
    for note in dict.fromkeys(e.result.notes):
        yield _mark(note)
