"""Decoders and intruders apart; every figure is worked out by hand beside its requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lab.metrics.compare import compare_arms
from lab.metrics.interference import interference_course
from lab.records.plan import Slo
from lab.records.request import RequestRecord
from lab.records.summary import Mark
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_failure, make_request, make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def decoder(index: int, *arrivals_ms: float, t0_ms: float = 0.0, **changes: object) -> RequestRecord:
    fields: dict[str, object] = {
        "chunk_times_ms": arrivals_ms, "ttft_ms": arrivals_ms[0], "e2e_ms": arrivals_ms[-1],
        "completion_tokens": len(arrivals_ms), "marks": ("decoder",),
        "tpot_ms": (arrivals_ms[-1] - arrivals_ms[0]) / (len(arrivals_ms) - 1),
    }  # fmt: skip
    return make_request(index, t0_ms=t0_ms, **{**fields, **changes})


def intruder(index: int, t0_ms: float, ttft_ms: float) -> RequestRecord:
    return make_request(index, t0_ms=t0_ms, ttft_ms=ttft_ms, tokens=1, marks=("intruder",))


# chunks at 100, 130, 160, 560, 590, 620 and, of the second, at 140, 170, 570, 600, 630 (t0 is 40); one long prompt is
# due at 165 and answers at 555
STEADY = (
    decoder(0, 100, 130, 160, 560, 590, 620),
    decoder(1, 100, 130, 530, 560, 590, t0_ms=40.0),
    intruder(2, 165.0, 390.0),
)


def test_the_two_kinds_are_told_apart() -> None:
    split = make_summary(STEADY).interference
    assert split is not None
    assert (split.decoders, split.intruders, split.intruders_succeeded) == (2, 1, 1)
    assert (split.intruder_ttft_ms.n, split.intruder_ttft_ms.mean) == (1, 390.0)
    assert (split.decoder_ttft_ms.n, split.decoder_ttft_ms.mean) == (2, 100.0)
    assert split.decoder_tpot_ms.mean == pytest.approx((520 / 5 + 490 / 4) / 2)


def test_a_gap_is_disturbed_when_a_long_prompt_waited_in_it() -> None:
    split = make_summary(STEADY).interference
    assert split is not None
    # the gap 140 → 170 of the second answer reaches 5 ms into the wait, 160 → 560 and 170 → 570 hold all or most of it
    assert (split.disturbed_gap_ms.n, split.disturbed_gap_ms.max) == (3, 400.0)
    assert split.disturbed_gap_ms.mean == pytest.approx((30 + 400 + 400) / 3)
    assert (split.quiet_gap_ms.n, split.quiet_gap_ms.mean, split.quiet_gap_ms.max) == (6, 30.0, 30.0)
    assert split.longest_stall_ms == 400.0


def test_an_answer_that_the_end_cut_off_counts_for_the_stall_but_not_for_tpot() -> None:
    cut = replace(decoder(3, 100, 1100), incomplete=True, tpot_ms=None, completion_tokens=None)
    split = make_summary([*STEADY, cut]).interference
    assert split is not None
    assert (split.longest_stall_ms, split.decoder_tpot_ms.n) == (1000.0, 2)


def test_failures_of_long_prompts_have_no_wait() -> None:
    split = make_summary([STEADY[0], make_failure(9, "timeout", marks=("intruder",))]).interference
    assert split is not None
    assert (split.intruders, split.intruders_succeeded, split.intruder_ttft_ms.n) == (1, 0, 0)
    assert split.disturbed_gap_ms.n == 0


def test_overlapping_waits_are_one_and_gaps_come_in_order() -> None:
    course = interference_course([*STEADY, intruder(3, 500.0, 200.0), intruder(4, 900.0, 50.0)])
    assert course.waits_ms == ((165.0, 700.0), (900.0, 950.0))
    assert list(course.at_ms) == [130, 160, 170, 560, 570, 590, 600, 620, 630]
    assert list(course.disturbed) == [False, False, True, True, True, True, True, True, True]


def test_other_workloads_have_no_such_kinds() -> None:
    assert make_summary().interference is None


def test_the_part_a_request_plays_is_no_reservation() -> None:
    assert {"decoder", "intruder"}.isdisjoint(mark.code for mark in make_summary(STEADY).marks)


def test_without_steady_answers_there_are_no_gaps() -> None:
    split = make_summary([STEADY[2]]).interference
    assert split is not None
    assert (split.decoder_gap_ms.n, split.longest_stall_ms) == (0, None)


def row(arm: int, repeat: int, stall_ms: float, ttft_ms: float) -> MeasurementRow:
    """Steady answers with 30 ms a token and one standstill, one long prompt."""
    records = [
        decoder(0, 100, 130, 160, 160 + stall_ms, 190 + stall_ms), intruder(1, 165.0, ttft_ms),
        intruder(2, 165.0 + ttft_ms, ttft_ms),
    ]  # fmt: skip
    number = arm * 10 + repeat
    return MeasurementRow(
        number, number, arm, ("chunked", "whole")[arm], "engine", repeat, Stage(), make_summary(records), NOW, NOW
    )


def test_arms_are_compared_in_the_standstill_of_the_ones_and_the_wait_of_the_others() -> None:
    rows = [row(0, 1, 200, 1500), row(0, 2, 250, 1300), row(1, 1, 1000, 1000), row(1, 2, 900, 1000)]
    found = {verdict.code: dict(verdict.params) for verdict in compare_arms(rows, slo=Slo(ttft_p95_ms=10))}
    assert set(found) == {"verdict-stall", "verdict-intruder-ttft", "verdict-tpot"}
    # longest of both repeats: 250 against 1,000; single repeats: 1000/200 and 900/250
    stall = found["verdict-stall"]
    assert (stall["arm"], stall["other"], stall["ms"], stall["other_ms"]) == ("chunked", "whole", 250, 1000)
    assert (stall["ratio"], stall["low"], stall["high"]) == (4.0, 3.6, 5.0)
    # mean of the long prompts: 1,400 against 1,000
    wait = found["verdict-intruder-ttft"]
    assert (wait["arm"], wait["ratio"], wait["low"], wait["high"]) == ("whole", 1.4, 1.3, 1.5)
    assert (wait["ms"], wait["other_ms"]) == (1000, 1400)


def test_a_client_that_was_late_by_more_than_a_twentieth_of_the_standstill_silences_it() -> None:
    late = Mark(code="client-lag", params={"lag_p99_ms": 30.0})
    rows = [row(0, 1, 200, 1500), row(0, 2, 250, 1300), row(1, 1, 1000, 1000), row(1, 2, 900, 1000)]
    rows[0] = replace(rows[0], trial_marks=(late,))
    said = {verdict.code: verdict.said for verdict in compare_arms(rows)}
    assert said["cannot-tell-late"] is False
    assert "verdict-stall" not in said
    assert said["verdict-intruder-ttft"] is True


def test_the_single_token_of_a_long_prompt_is_no_answer_cut_short() -> None:
    summary = make_summary([decoder(0, 100, 130, 160), intruder(1, 165.0, 390.0)], output_tokens_asked=3)
    assert "output-length-differs" not in [mark.code for mark in summary.marks]
