"""Article 1's table, worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lab.metrics.ladder import LadderStep, ladder_steps
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_request, make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(number: int, repeat: int, tokens: int, *ttft_ms: float, kind: str = "prompt_tokens") -> MeasurementRow:
    """Requests with 20 ms per token and eleven tokens: E2E is TTFT + 200 ms."""
    summary = make_summary(
        [make_request(i, ttft_ms=t, tokens=11, prompt_tokens=tokens + 30) for i, t in enumerate(ttft_ms)]
    )
    stage = Stage.model_validate({"kind": kind, "value": tokens})
    return MeasurementRow(number, number, 1, "arm", "engine", repeat, stage, summary, NOW, NOW)


def test_repeats_are_taken_together_and_the_share_is_ttft_in_e2e() -> None:
    steps = ladder_steps([row(2, 1, 512, 600.0), row(1, 1, 128, 100.0), row(3, 2, 512, 900.0, 900.0)])
    assert [(s.prompt_tokens, s.requests, s.dominating) for s in steps] == [(158, 1, "decode"), (542, 3, "prefill")]
    assert (steps[1].ttft_ms, steps[1].e2e_ms, steps[1].tpot_ms) == (800.0, 1000.0, 20.0)
    assert steps[1].prefill_ratio == pytest.approx(0.8)


def test_no_phase_dominates_near_one_half() -> None:
    (step,) = ladder_steps([row(1, 1, 128, 200.0)])
    assert (step.prefill_ratio, step.dominating) == (0.5, "neither")


def test_without_an_end_there_is_no_share() -> None:
    assert LadderStep("arm", 1, 0, None, None, None, None).dominating is None
    assert ladder_steps([row(1, 1, 8, 100.0, kind="concurrency")]) == ()
