"""Where throughput stops growing, on curves whose knee is seen by eye."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lab.messages import messages
from lab.metrics import Verdict, find_knees
from lab.metrics.knee import knee
from lab.records.summary import Mark
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*repeats: dict[int, int], marks: tuple[Mark, ...] = ()) -> list[MeasurementRow]:
    """Measurements of ten seconds each with so many tokens, by concurrency."""
    found = []
    for repeat, curve in enumerate(repeats, start=1):
        for concurrency, tokens in curve.items():
            summary = make_summary().model_copy(update={"output_tokens": tokens, "wall_s": 10.0})
            stage = Stage(kind="concurrency", value=concurrency)
            number = len(found) + 1
            found.append(
                MeasurementRow(number, number, 1, "batched", "engine", repeat, stage, summary, NOW, NOW, marks)
            )
    return found


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    assert verdict.code in messages()
    return verdict


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ({1: 30, 4: 110, 16: 300, 32: 310}, 16),
        ({1: 30, 4: 110, 16: 300, 32: 331}, 32),  # 10.3 % more is growth
        ({1: 100, 2: 105, 4: 108}, 1),
        ({1: 100, 2: 90, 4: 150}, 4),  # a dip before a rise is no end of growth
        ({1: 100, 2: 200, 4: 120}, 2),
    ],
)
def test_the_knee_is_the_smallest_stage_that_no_larger_one_outdoes(curve: dict[float, float], expected: int) -> None:
    assert knee(curve) == expected


def test_a_knee_that_all_repeats_share_is_said() -> None:
    verdict = only(find_knees(rows({1: 300, 4: 1100, 8: 1150}, {1: 310, 4: 1080, 8: 1140})))
    assert (verdict.code, verdict.said) == ("verdict-knee", True)
    # (1100 + 1080) / 20 s and (1150 + 1140) / 20 s
    assert verdict.params == {
        "arm": "batched", "concurrency": 4, "tokens_per_s": 109.0, "largest": 8, "most_tokens_per_s": 114.5,
    }  # fmt: skip


def test_growth_to_the_last_stage_has_no_knee() -> None:
    verdict = only(find_knees(rows({1: 300, 4: 1100, 8: 1900}, {1: 300, 4: 1100, 8: 1900})))
    assert (verdict.code, verdict.said, verdict.params["concurrency"]) == ("verdict-no-knee", True, 8)


def test_nothing_is_said_where_the_data_cannot_carry_it() -> None:
    curve = {1: 300, 4: 1100, 8: 1150}
    assert only(find_knees(rows(curve))).code == "cannot-tell-knee-repeats"
    assert only(find_knees(rows(curve, {1: 300, 4: 800, 8: 1150}))).code == "cannot-tell-knee-spread"
    assert only(find_knees(rows(curve, {1: 300, 4: 1100}))).code == "cannot-tell-knee-missing"
    spoiled = (Mark(code="client-near-ceiling"),)
    assert only(find_knees(rows(curve, curve, marks=spoiled))).code == "cannot-tell-knee-marks"
    assert not any(verdict.said for verdict in find_knees(rows(curve)))


def test_fewer_than_three_concurrencies_have_no_knee() -> None:
    assert find_knees(rows({1: 300, 4: 1100}, {1: 300, 4: 1100})) == ()
