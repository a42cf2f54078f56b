"""What telemetry adds to a measurement: the peak of the KV cache, energy, and where readings are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lab.metrics.percentiles import column
from lab.records.request import RequestRecord
from lab.records.sample import Sample
from lab.records.summary import Mark

GAP_INTERVALS = 3.0
GAP_LEAST_S = 1.0
KV_SERIES = "kv_cache_usage_ratio"
_POWER_SERIES = re.compile(r"gpu\d+_power_w")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The samples of one measurement.

    `clock_ms` is the start of the measurement's clock on the samples' own; None where it is not known, and then nothing
    that depends on when a reading was taken is said.
    """

    samples: Sequence[Sample]
    interval_s: float
    clock_ms: float | None

    @property
    def longest_gap_s(self) -> float:
        """Readings further apart than this are missing rather than late."""
        return max(GAP_LEAST_S, GAP_INTERVALS * self.interval_s)


@dataclass(frozen=True, slots=True)
class Span:
    """The measured stretch on the samples' clock, in milliseconds."""

    start_ms: float
    end_ms: float


def measured_span(
    telemetry: Telemetry, measured: Sequence[RequestRecord], wall_s: float | None, window_s: float | None
) -> Span | None:
    """The stretch that throughput is counted over; None without a common clock or a wall time."""
    if telemetry.clock_ms is None or not wall_s or not measured:
        return None
    first_ms = float(column(measured, "t0_ms").min()) if window_s is None else 0.0
    start_ms = telemetry.clock_ms + first_ms
    return Span(start_ms, start_ms + wall_s * 1000)


def kv_peak_ratio(telemetry: Telemetry, span: Span | None) -> float | None:
    """The largest share (0..1) of the KV cache in use; None where it was not sampled in the measured stretch."""
    if span is None:
        return None
    known = (s.value for s in telemetry.samples if s.series == KV_SERIES and span.start_ms <= s.at_ms <= span.end_ms)
    return max((value for value in known if value is not None), default=None)


def energy_j(telemetry: Telemetry, span: Span | None) -> float | None:
    """Energy of all sampled GPUs over the measured stretch; None without power readings that cover it."""
    names = sorted({s.series for s in telemetry.samples if _POWER_SERIES.fullmatch(s.series)})
    if span is None or not names:
        return None
    parts = [_energy_of(telemetry, name, span) for name in names]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _energy_of(telemetry: Telemetry, series: str, span: Span) -> float | None:
    """Power between two readings is taken as a straight line; a gap in them makes the energy unknown."""
    points = _points(telemetry, series)
    if not points or _worst_gap_s([at for at, _ in points], span) > telemetry.longest_gap_s:
        return None
    times, watts = np.array(points).T
    inside = (times > span.start_ms) & (times < span.end_ms)
    if not inside.any():
        return None
    grid = np.concatenate([[span.start_ms], times[inside], [span.end_ms]])
    return float(np.trapezoid(np.interp(grid, times, watts), grid) / 1000)


def _points(telemetry: Telemetry, series: str) -> list[tuple[float, float]]:
    return [(s.at_ms, s.value) for s in telemetry.samples if s.series == series and s.value is not None]


def telemetry_marks(telemetry: Telemetry, span: Span | None) -> Iterator[Mark]:
    """Whether the engine was restarted meanwhile, and the longest gap in any sampled series.

    A gap that is a matter of the sampling rate is none.
    """
    if _restarted(telemetry):
        yield Mark(code="engine-restarted")
    if span is None:
        return
    names = sorted({s.series for s in telemetry.samples})
    gaps = [(_worst_gap_s([at for at, _ in _points(telemetry, name)], span), name) for name in names]
    seconds, series = max(gaps, default=((span.end_ms - span.start_ms) / 1000, None))
    if seconds > telemetry.longest_gap_s:
        yield Mark(code="telemetry-gap", params={"seconds": round(seconds, 1), "series": series})


def _restarted(telemetry: Telemetry) -> bool:
    """A running total only falls where the process that counts began anew."""
    totals = {s.series for s in telemetry.samples if s.series.endswith("_total")}
    return any(later < earlier for name in totals for (_, earlier), (_, later) in pairwise(_points(telemetry, name)))


def _worst_gap_s(times_ms: Sequence[float], span: Span) -> float:
    """The longest stretch of the span without a reading."""
    inside = [at for at in times_ms if span.start_ms < at < span.end_ms]
    return max(later - earlier for earlier, later in pairwise([span.start_ms, *inside, span.end_ms])) / 1000
