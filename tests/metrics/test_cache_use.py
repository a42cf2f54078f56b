"""The KV cache against the tokens held; the readings are those of a real engine with room for 258,048 tokens."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lab.metrics.cache_use import held_tokens, judge_cache
from lab.records.summary import Summary
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_request, make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# four requests of 64 output tokens at once in blocks of 128 tokens: 12, 36 and 132 of 2,016 blocks
REAL = {286: 0.005952, 1054: 0.017857, 4126: 0.065476}


def summary(prompt_tokens: int, kv_peak_ratio: float | None) -> Summary:
    requests = [make_request(i, tokens=64, prompt_tokens=prompt_tokens) for i in range(4)]
    return make_summary(requests).model_copy(update={"kv_peak_ratio": kv_peak_ratio})


def rows(readings: dict[int, float | None]) -> list[MeasurementRow]:
    return [
        MeasurementRow(
            i, i, 1, "arm", "engine", 1, Stage(kind="prompt_tokens", value=n), summary(n, used), NOW, NOW
        )
        for i, (n, used) in enumerate(readings.items())
    ]  # fmt: skip


def test_tokens_held_are_those_of_all_contexts_at_once() -> None:
    assert held_tokens(summary(286, 0.1)) == 4 * (286 + 64)
    assert held_tokens(summary(286, 0.0)) is None
    assert held_tokens(summary(286, None)) is None


def test_a_real_engine_follows_the_tokens_that_are_held() -> None:
    (verdict,) = judge_cache(rows(REAL))  # type: ignore[arg-type]
    told = verdict.params
    assert (verdict.code, told["low"], told["high"]) == ("verdict-cache", 1400, 16760)
    assert (told["low_percent"], told["high_percent"]) == (0.595, 6.55)
    assert told["per_thousand_percent"] == pytest.approx(1000 / 258_048 * 100, rel=0.02)


def test_peaks_that_were_missed_are_not_explained() -> None:
    (verdict,) = judge_cache(rows({286: 0.006, 1054: 0.06, 4126: 0.02}))
    assert (verdict.code, verdict.said) == ("cannot-tell-cache", False)


def test_two_lengths_or_an_unseen_cache_say_nothing() -> None:
    assert judge_cache(rows({286: 0.006, 1054: 0.018})) == ()
    assert judge_cache(rows({286: 0.0, 1054: None, 4126: 0.0})) == ()
