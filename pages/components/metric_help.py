"""What a metric is, for the help of a heading."""

from __future__ import annotations

from lab.metrics.definitions import METRICS, PERCENTILE_HELP
from pages.components.i18n import _

# headings that stand for a statistic of a metric, or have another name in the table of definitions
_METRIC_OF = {
    "ttft_mean_ms": "ttft_ms",
    "ttft_p50_ms": "ttft_ms",
    "ttft_p95_ms": "ttft_ms",
    "tpot_p50_ms": "tpot_ms",
    "completion_tokens": "output_tokens",
    "stall_ms": "longest_stall_ms",
}


def metric_help(name: str) -> str | None:
    """The definition in the session's language, formula and source below it; None where there is nothing to explain."""
    metric = METRICS.get(_METRIC_OF.get(name, name))
    if metric is None:
        return None
    parts = [_(metric.help), f"`{metric.formula}`", _(metric.source)]
    if "_p95_" in name or "_p50_" in name:
        parts.append(_(PERCENTILE_HELP))
    return "\n\n".join(parts)
