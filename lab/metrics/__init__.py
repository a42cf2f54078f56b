"""From request records to the numbers of DESIGN section 3."""

from lab.metrics.percentiles import distribution, percentile
from lab.metrics.summary import summarise

__all__ = ["distribution", "percentile", "summarise"]
