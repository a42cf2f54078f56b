"""Percentiles: numpy's linear method, everywhere, with n (R12, R70)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.metrics.percentiles import distribution, percentile

FIVE = [10.0, 20.0, 30.0, 40.0, 1000.0]
TEN = [100.0] * 8 + [900.0, 1000.0]


def test_p95_of_five_values_lies_between_the_two_largest() -> None:
    # position 0.95 * 4 = 3.8: 40 + 0.8 * 960
    assert percentile(FIVE, 95) == pytest.approx(808.0)


def test_p95_of_ten_values() -> None:
    # position 0.95 * 9 = 8.55: 900 + 0.55 * 100
    assert percentile(TEN, 95) == pytest.approx(955.0)


def test_no_values_give_no_data() -> None:
    assert percentile([], 95) is None
    assert distribution([]).model_dump() == {
        "n": 0, "mean": None, "p50": None, "p90": None, "p95": None, "p99": None, "max": None,
    }  # fmt: skip


def test_one_value_is_every_percentile() -> None:
    found = distribution([7.0])
    assert (found.n, found.mean, found.p50, found.p95, found.p99, found.max) == (1, 7.0, 7.0, 7.0, 7.0, 7.0)


def test_missing_values_and_nan_are_left_out_not_zero() -> None:
    found = distribution([None, 10.0, float("nan"), 30.0])
    assert (found.n, found.p50) == (2, 20.0)


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=200))
def test_percentiles_are_numpys(values: list[float]) -> None:
    found = distribution(values)
    assert found.p90 == np.percentile(values, 90)
    assert found.p95 == np.percentile(values, 95)
    assert found.n == len(values)


def test_values_are_plain_numbers() -> None:
    found = distribution(np.array([1.0, 2.0], dtype=np.float32))
    assert type(found.mean) is float
    assert type(found.n) is int
