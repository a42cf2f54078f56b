"""Which growth of TTFT the data support; coefficients are checked against numpy's least squares on the raw design."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from lab.metrics.growth import Step, fit_ladders, fit_steps, judge_ladders
from lab.metrics.ladder import judge_tpot
from lab.records.summary import Mark
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_request, make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# expectations that article 1 gives for a GPU, and what a CPU with two cores measured
ARTICLE = {128: 80.0, 512: 180.0, 2048: 520.0, 4096: 980.0}
TWO_CORES = {148: 270.0, 449: 670.0, 1649: 3600.0, 4030: 13000.0}


def steps(ttft_ms: dict[int, float], scatter: float = 0.02, requests: int = 5, seed: int = 1) -> list[Step]:
    source = np.random.default_rng(seed)
    return [Step(n, t * (1 + scatter * source.standard_normal(requests))) for n, t in ttft_ms.items()]


def row(number: int, tokens: int, *ttft_ms: float, marks: tuple[Mark, ...] = (), gap_ms: float = 1e6) -> MeasurementRow:
    """One request after the other unless `gap_ms` lets them overlap."""
    summary = make_summary(
        [make_request(i, t0_ms=i * gap_ms, ttft_ms=t, prompt_tokens=tokens) for i, t in enumerate(ttft_ms)]
    )
    stage = Stage(kind="prompt_tokens", value=tokens)
    return MeasurementRow(number, number, 1, "arm", "engine", 1, stage, summary, NOW, NOW, marks)


def ladder(ttft_ms: dict[int, float], **changes: object) -> tuple[list[MeasurementRow], dict[int, list[float]]]:
    measured = {n: [t * factor for factor in (0.98, 1.0, 1.02)] for n, t in ttft_ms.items()}
    rows = [row(i, n, *values, **changes) for i, (n, values) in enumerate(measured.items())]  # type: ignore[arg-type]
    return rows, dict(enumerate(measured.values()))


def codes(rows: list[MeasurementRow], samples: dict[int, list[float]]) -> list[tuple[str, bool]]:
    return [(verdict.code, verdict.said) for verdict in judge_ladders(rows, samples)]


@pytest.mark.parametrize("degree", [1, 2])
def test_the_fit_is_the_least_squares_of_the_relative_error(degree: int) -> None:
    given = steps(TWO_CORES)
    fit = fit_steps("arm", given)
    found = (fit.linear, fit.quadratic)[degree - 1]
    x = np.concatenate([np.full(5, step.tokens) for step in given])
    y = np.concatenate([step.ttft_ms for step in given])
    weight = 1 / np.repeat([step.ttft_ms.mean() for step in given], 5)
    design = np.stack([x**power for power in range(degree + 1)], axis=1)
    expected, *_ = np.linalg.lstsq(design * weight[:, None], y * weight, rcond=None)
    assert found.coefficients == pytest.approx(tuple(expected), rel=1e-6)
    means = np.array([step.ttft_ms.mean() for step in given])
    predicted = np.array([[n**power for power in range(degree + 1)] for n in TWO_CORES]) @ expected
    assert found.residuals_ms == pytest.approx(tuple(means - predicted), rel=1e-6, abs=1e-6)
    assert found.at(449) == pytest.approx(predicted[1])


@pytest.mark.parametrize("seed", range(20))
def test_what_a_gpu_is_said_to_do_is_about_linear(seed: int) -> None:
    assert fit_steps("arm", steps(ARTICLE, seed=seed)).growth == "linear"


@pytest.mark.parametrize("seed", range(20))
def test_two_cores_are_more_than_linear(seed: int) -> None:
    fit = fit_steps("arm", steps(TWO_CORES, seed=seed))
    assert fit.growth == "more"
    assert fit.quadratic.worst_ratio < fit.linear.worst_ratio
    assert fit.quadratic.adjusted_r2 is not None and fit.linear.adjusted_r2 is not None
    assert fit.quadratic.adjusted_r2 > fit.linear.adjusted_r2


def test_a_root_is_less_than_linear() -> None:
    assert fit_steps("arm", steps({n: 4 * n**0.5 for n in (128, 512, 2048, 4096)})).growth == "less"


def test_a_constant_is_flat() -> None:
    assert fit_steps("arm", steps(dict.fromkeys((128, 512, 2048, 4096), 100.0))).growth == "flat"


def test_scatter_as_large_as_the_growth_is_not_explained() -> None:
    wild = [Step(n, np.array(t)) for n, t in ((100, (50, 400)), (200, (300, 90)), (300, (80, 500)), (400, (350, 60)))]
    assert fit_steps("arm", wild).growth is None


@pytest.mark.parametrize(
    "ttft_ms", [{n: 0.2 * n for n in (100, 200, 400, 800)}, {n: 1e-4 * n**2 for n in (1, 2, 4, 8)}]
)
def test_perfect_data_break_nothing(ttft_ms: dict[int, float]) -> None:
    fit = fit_steps("arm", steps(ttft_ms, scatter=0.0))
    assert fit.growth == ("linear" if 100 in ttft_ms else "more")


def test_the_sentence_carries_what_was_measured() -> None:
    rows, samples = ladder(TWO_CORES)
    (verdict,) = judge_ladders(rows, samples)
    assert (verdict.code, verdict.said) == ("verdict-ladder-more", True)
    told = verdict.params
    assert (told["low"], told["high"], told["tokens_ratio"], told["ttft_ratio"]) == (148, 4030, 27.2, 48.1)
    (fit,) = fit_ladders(rows, samples)
    assert (fit.requests, fit.tokens) == (12, (148.0, 449.0, 1649.0, 4030.0))


def test_few_lengths_or_requests_say_nothing() -> None:
    three = dict(list(ARTICLE.items())[:3])
    assert codes(*ladder(three)) == [("cannot-tell-ladder-few", False)]
    assert fit_ladders(*ladder(three)) == ()
    rows = [row(i, n, t) for i, (n, t) in enumerate(ARTICLE.items())]
    assert codes(rows, {i: [t] for i, t in enumerate(ARTICLE.values())}) == [("cannot-tell-ladder-few", False)]


def test_prompts_from_a_cache_say_nothing_of_prefill() -> None:
    marks = (Mark(code="cache-hits", params={"hit_percent": 90.0}),)
    rows, samples = ladder(ARTICLE, marks=marks)
    assert codes(rows, samples) == [("cannot-tell-ladder-marks", False)]


def test_several_at_a_time_are_no_ladder_of_single_prompts() -> None:
    rows, samples = ladder(ARTICLE, gap_ms=1.0)
    assert codes(rows, samples) == []
    assert judge_tpot(rows) == ()


def test_the_time_per_token_is_told_from_the_shortest_to_the_longest() -> None:
    slow = make_summary([make_request(0, tpot_ms=30.0, prompt_tokens=900)])
    last = MeasurementRow(9, 9, 1, "arm", "engine", 1, Stage(kind="prompt_tokens", value=900), slow, NOW, NOW)
    (verdict,) = judge_tpot([last, row(1, 100, 50.0)])
    assert dict(verdict.params) == {
        "arm": "arm",
        "low": 100,
        "high": 900,
        "low_ms": 20.0,
        "high_ms": 30.0,
        "ratio": 1.5,
    }
    assert judge_tpot([last]) == ()
