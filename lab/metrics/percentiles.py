"""numpy's linear percentiles, the one method used everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.records.arrivals import Gaps
from lab.records.request import RequestRecord
from lab.records.summary import Distribution
from lab.records.table import RequestTable

Values = NDArray[np.float64]


def as_values(values: Iterable[float | None] | Values) -> Values:
    """The finite values as an array; None and NaN are left out, never read as 0."""
    if isinstance(values, np.ndarray):
        array = values.astype(np.float64, copy=False)
    else:
        array = np.array(list(values), dtype=np.float64)
    finite: Values = array[np.isfinite(array)]
    return finite


def column(records: Sequence[RequestRecord], name: str) -> Values:
    """One time or count of all records as an array, NaN where it is None."""
    return RequestTable.of(records).column(name)


def percentile(values: Iterable[float | None] | Values, q: float) -> float | None:
    """The q-th percentile (0..100) in the unit of the values; None without values."""
    array = as_values(values)
    return float(np.percentile(array, q, method="linear")) if array.size else None


def distribution(values: Iterable[float | None] | Values) -> Distribution:
    """Mean, percentiles and maximum with their n; all None where n is 0."""
    return _distribution(as_values(values))


def distribution_of_gaps(micros: Gaps) -> Distribution:
    """The same in milliseconds, of gaps in microseconds; puts them in another order, for there may be millions."""
    found = _distribution(micros)
    parts = {name: value / 1000 for name in _PARTS if (value := getattr(found, name)) is not None}
    return Distribution(n=found.n, **parts)


_PARTS = ("mean", "p50", "p90", "p95", "p99", "max")


def distribution_of_many(values: NDArray[Any]) -> Distribution:
    """The same of finite values, which are put in another order instead of copied."""
    return _distribution(values)


def _distribution(own: NDArray[Any]) -> Distribution:
    """Of an array that may be put in another order."""
    if not own.size:
        return Distribution()
    mean, highest = float(own.mean(dtype=np.float64)), float(own.max())
    found = np.percentile(own, (50, 90, 95, 99), method="linear", overwrite_input=True)
    p50, p90, p95, p99 = (float(v) for v in found)
    return Distribution(n=int(own.size), mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=highest)
