"""The moments of an open loop."""

from __future__ import annotations

import numpy as np
import pytest

from lab.load.schedule import arrivals


def moments(arrival="poisson", rate=10.0, burstiness=1.0, seed=1, requests=None, duration_s=None):
    return arrivals(rate, arrival, burstiness=burstiness, seed=seed, requests=requests, duration_s=duration_s)


def test_constant_moments_stand_in_equal_distances() -> None:
    assert moments("constant", 4.0, requests=5) == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_the_duration_ends_the_moments() -> None:
    assert moments("constant", 4.0, duration_s=1.0) == (0.0, 0.25, 0.5, 0.75)
    assert moments("constant", 4.0, duration_s=1.0, requests=2) == (0.0, 0.25)


@pytest.mark.parametrize(
    ("arrival", "burstiness", "deviation"), [("poisson", 1.0, 1.0), ("gamma", 0.25, 2.0), ("gamma", 4.0, 0.5)]
)
def test_random_gaps_have_the_mean_and_spread_of_their_law(arrival, burstiness, deviation) -> None:
    gaps = np.diff(moments(arrival, 10.0, burstiness, requests=20_000))
    assert gaps.mean() == pytest.approx(0.1, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(deviation, rel=0.05)


def test_a_seed_fixes_the_moments() -> None:
    assert moments(requests=50) == moments(requests=50)
    assert moments(requests=50) != moments(requests=50, seed=2)
