"""From request records to the numbers of DESIGN section 3."""

from lab.metrics.compare import compare_arms, reference_arm
from lab.metrics.definitions import METRICS, Metric
from lab.metrics.knee import find_knees
from lab.metrics.percentiles import distribution, percentile
from lab.metrics.pool import PooledArm, pool_arms
from lab.metrics.readings import Telemetry
from lab.metrics.summary import summarise
from lab.metrics.verdict import Verdict

__all__ = [
    "METRICS",
    "Metric",
    "PooledArm",
    "Telemetry",
    "Verdict",
    "compare_arms",
    "distribution",
    "find_knees",
    "percentile",
    "pool_arms",
    "reference_arm",
    "summarise",
]
