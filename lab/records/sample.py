"""One reading of telemetry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """`series` is a name with its unit (`kv_cache_usage_ratio`, `gpu0_power_w`, `host_cpu_ratio`).

    `at_ms` counts from the sampler's start on a monotonic clock; `value` None is a gap.
    """

    at_ms: float
    series: str
    value: float | None
