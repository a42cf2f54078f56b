"""numpy's linear percentiles, the one method used everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lab.records.summary import Distribution

Values = NDArray[np.float64]


def as_values(values: Iterable[float | None] | Values) -> Values:
    """The finite values as an array; None and NaN are left out, never read as 0."""
    if isinstance(values, np.ndarray):
        array = values.astype(np.float64, copy=False)
    else:
        array = np.array(list(values), dtype=np.float64)
    finite: Values = array[np.isfinite(array)]
    return finite


def column(records: Iterable[object], name: str) -> Values:
    """One field of all records as an array, NaN where it is None."""
    return np.array(list(map(attrgetter(name), records)), dtype=np.float64)


def percentile(values: Iterable[float | None] | Values, q: float) -> float | None:
    """The q-th percentile (0..100) in the unit of the values; None without values."""
    array = as_values(values)
    return float(np.percentile(array, q, method="linear")) if array.size else None


def distribution(values: Iterable[float | None] | Values) -> Distribution:
    """Mean, percentiles and maximum with their n; all None where n is 0."""
    array = as_values(values)
    if not array.size:
        return Distribution()
    p50, p90, p95, p99 = (float(v) for v in np.percentile(array, (50, 90, 95, 99), method="linear"))
    return Distribution(
        n=int(array.size), mean=float(array.mean()), p50=p50, p90=p90, p95=p95, p99=p99, max=float(array.max())
    )
