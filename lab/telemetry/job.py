"""What the sampling process is told, as one line of JSON on its standard input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

# the lab's series and vLLM's metric each comes from; another engine's definition gives its own
VLLM_SERIES: Mapping[str, str] = {
    "kv_cache_usage_ratio": "vllm:kv_cache_usage_perc",
    "requests_running": "vllm:num_requests_running",
    "requests_waiting": "vllm:num_requests_waiting",
    "preemptions_total": "vllm:num_preemptions_total",
    "prefix_cache_queries_total": "vllm:prefix_cache_queries_total",
    "prefix_cache_hits_total": "vllm:prefix_cache_hits_total",
    "prompt_tokens_total": "vllm:prompt_tokens_total",
    "generation_tokens_total": "vllm:generation_tokens_total",
}
SHORTEST_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class SamplerJob:
    """`zero_ns` is the moment of the monotonic clock (one for all processes of a host) from which `at_ms` counts.

    `metrics_url` None: the engine is not asked. `series` maps the lab's series to the engine's metric.
    """

    out: str
    zero_ns: int
    interval_s: float = 1.0
    metrics_url: str | None = None
    gpu_indices: tuple[int, ...] = ()
    series: Mapping[str, str] = field(default_factory=lambda: dict(VLLM_SERIES))

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @property
    def path(self) -> Path:
        return Path(self.out)


def read_job(line: str) -> SamplerJob:
    """The job of a line; the interval is never below a tenth of a second. Raises `ValueError` or `TypeError`."""
    table = json.loads(line)
    table["gpu_indices"] = tuple(table.get("gpu_indices", ()))
    table["interval_s"] = max(SHORTEST_INTERVAL_S, float(table.get("interval_s", 1.0)))
    return SamplerJob(**table)
