"""Verdicts: what repeats can carry, and silence where they cannot."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lab.messages import messages, word
from lab.metrics import compare_arms, pool_arms, reference_arm
from lab.metrics.verdict import Verdict
from lab.records.plan import Slo
from lab.records.request import RequestRecord
from lab.records.states import Target
from lab.records.summary import Mark
from lab.records.workload import Stage
from lab.store.views import MeasurementRow
from tests.factories import make_failure, make_request, make_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Measured:
    """Measurements of a made-up experiment and the TTFT of their requests."""

    def __init__(self) -> None:
        self.rows: list[MeasurementRow] = []
        self.ttft: dict[int, list[float]] = {}

    def add(
        self, arm: int, repeat: int, records: list[RequestRecord], *, target: Target = "engine",
        stage: Stage | None = None, marks: tuple[Mark, ...] = (), **result: object,
    ) -> None:  # fmt: skip
        number = len(self.rows) + 1
        summary = make_summary(records, **result)
        self.ttft[number] = [r.ttft_ms for r in records if r.ttft_ms is not None and r.failure is None]
        self.rows.append(
            MeasurementRow(
                number,
                number,
                arm,
                f"arm {arm}",
                target,
                repeat,
                stage or Stage(),
                summary,
                NOW,
                NOW,
                trial_marks=marks,
            )
        )

    def verdicts(self, slo: Slo | None = None) -> tuple[Verdict, ...]:
        return compare_arms(self.rows, ttft_ms=self.ttft, slo=slo)


def burst(*, ttft_ms: float, tpot_ms: float = 20.0, tokens: int = 50, requests: int = 20) -> list[RequestRecord]:
    return [make_request(i, ttft_ms=ttft_ms, tpot_ms=tpot_ms, tokens=tokens) for i in range(requests)]


def said_about(verdict: Verdict) -> dict[str, object]:
    """Its parameters without the stage."""
    return {name: value for name, value in verdict.params.items() if not name.startswith("stage")}


def by_code(verdicts: tuple[Verdict, ...]) -> dict[str, Verdict]:
    return {verdict.code: verdict for verdict in verdicts}


def test_ratios_stand_with_their_spread_over_the_repeats() -> None:
    measured = Measured()
    # 20 requests of 50 tokens: 1000 tokens; ends after ttft + 49 * 20 ms = 980 ms
    measured.add(1, 1, burst(ttft_ms=1020.0))  # 2.0 s: 500 tokens/s
    measured.add(1, 2, burst(ttft_ms=1020.0))
    measured.add(2, 1, burst(ttft_ms=20.0))  # 1.0 s: 1000 tokens/s
    measured.add(2, 2, burst(ttft_ms=270.0))  # 1.25 s: 800 tokens/s
    said = by_code(measured.verdicts())["verdict-throughput"]
    # pooled: 2000 tokens in 2.25 s against 2000 in 4 s = 1.78; single repeats 2.0 and 1.6
    assert said_about(said) == {"arm": "arm 2", "other": "arm 1", "repeats": 2, "ratio": 1.78, "low": 1.6, "high": 2.0}
    assert said.said


def test_ttft_ratio_is_of_the_pooled_requests() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=1000.0))
    measured.add(1, 2, burst(ttft_ms=3000.0))
    measured.add(2, 1, burst(ttft_ms=100.0))
    measured.add(2, 2, burst(ttft_ms=100.0))
    params = by_code(measured.verdicts())["verdict-ttft"].params
    # pooled P95 of arm 1 is 3000 (half of all), not the average of 1000 and 3000
    assert (params["ratio"], params["low"], params["high"]) == (30.0, 10.0, 30.0)


def test_the_better_arm_stands_first_whatever_the_order() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=20.0))
        measured.add(2, repeat, burst(ttft_ms=1020.0))
    params = by_code(measured.verdicts())["verdict-throughput"].params
    assert (params["arm"], params["other"], params["ratio"]) == ("arm 1", "arm 2", 2.0)


def test_one_repeat_says_nothing_and_says_why() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=1000.0))
    measured.add(2, 1, burst(ttft_ms=100.0))
    (only,) = measured.verdicts()
    assert (only.code, only.said) == ("cannot-tell-one-repeat", False)


def test_repeats_of_different_numbers_are_not_paired() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=1000.0))
    measured.add(1, 2, burst(ttft_ms=1000.0))
    measured.add(2, 3, burst(ttft_ms=100.0))
    measured.add(2, 4, burst(ttft_ms=100.0))
    assert [v.code for v in measured.verdicts()] == ["cannot-tell-one-repeat"]


def test_repeats_that_point_both_ways_cannot_tell() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=500.0))
    measured.add(1, 2, burst(ttft_ms=500.0))
    measured.add(2, 1, burst(ttft_ms=490.0))
    measured.add(2, 2, burst(ttft_ms=510.0))
    verdicts = measured.verdicts()
    assert all(not v.said for v in verdicts)
    assert {v.code for v in verdicts} == {"cannot-tell-spread"}


def test_a_difference_that_nobody_would_choose_by_is_no_victory() -> None:
    measured = Measured()
    for repeat in (1, 2):  # 0.4 % apart in TTFT, always the same way
        measured.add(1, repeat, burst(ttft_ms=500.0))
        measured.add(2, repeat, burst(ttft_ms=498.0))
    (ttft,) = [v for v in measured.verdicts() if v.params.get("metric") == "P95 TTFT"]
    assert (ttft.code, ttft.said, ttft.params["percent"]) == ("verdict-same", True, 2.0)


def test_failures_silence_the_comparison() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0))
        measured.add(2, repeat, [*burst(ttft_ms=100.0), make_failure(99)])
    (only,) = measured.verdicts()
    assert only.code == "cannot-tell-failures"
    assert only.params["failing"] == "arm 2"
    assert (only.params["failed"], only.params["requests"]) == (2, 42)


def test_answers_of_different_length_are_compared_per_token_only() -> None:
    # R20: 64 tokens against 16 at the same speed per token
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=100.0, tokens=64, tpot_ms=20.0))
        measured.add(2, repeat, burst(ttft_ms=90.0, tokens=16, tpot_ms=10.0))
    found = measured.verdicts()
    refused = [v for v in found if v.code == "cannot-tell-length"]
    assert [v.params["metric"] for v in refused] == ["throughput", "P95 TTFT"]
    assert (refused[0].params["mean"], refused[0].params["other_mean"]) == (16.0, 64.0)
    assert by_code(found)["verdict-tpot"].params["ratio"] == 2.0


def test_lengths_within_five_percent_are_compared() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0, tokens=100))
        measured.add(2, repeat, burst(ttft_ms=100.0, tokens=96))
    assert "verdict-throughput" in by_code(measured.verdicts())


def test_answers_cut_off_by_a_window_do_not_make_lengths_differ() -> None:
    # 70 tokens per answer on both sides; 4 whole and 4 cut against 8 whole and 1 cut
    def window(whole: int, cut: int, tpot_ms: float) -> list[RequestRecord]:
        done = [make_request(i, ttft_ms=100.0, tokens=70, tpot_ms=tpot_ms) for i in range(whole)]
        open_ones = [
            make_request(90 + i, t0_ms=9000.0, tokens=20, tpot_ms=tpot_ms, completion_tokens=None, incomplete=True)
            for i in range(cut)
        ]
        return [*done, *open_ones]

    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, window(4, 4, 100.0), window_s=10.0)
        measured.add(2, repeat, window(8, 1, 50.0), window_s=10.0)
    found = measured.verdicts()
    assert "cannot-tell-length" not in by_code(found)
    # 8 x 70 + 19 (at 9100, 9150 .. 10000 ms) against 4 x 70 + 4 x 10 (at 9100, 9200 .. 10000 ms) tokens
    assert by_code(found)["verdict-throughput"].params["ratio"] == 1.81


def test_counted_and_estimated_tokens_are_not_ranked() -> None:
    measured = Measured()
    estimated = [make_request(i, ttft_ms=100.0, tokens=50, tokens_estimated=True) for i in range(20)]
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0))
        measured.add(2, repeat, estimated)
    found = measured.verdicts()
    assert {v.params["metric"] for v in found if v.code == "cannot-tell-estimated"} == {"throughput", "TPOT"}
    assert by_code(found)["verdict-ttft"].said


def test_a_spoiling_mark_silences_the_comparison() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0))
        measured.add(2, repeat, burst(ttft_ms=100.0), marks=(Mark(code="effective-differs"),) if repeat == 2 else ())
    (only,) = measured.verdicts()
    assert (only.code, only.params["mark"], only.params["marked"]) == (
        "cannot-tell-marks",
        "effective-differs",
        "arm 2",
    )


def late(lag_p99_ms: float) -> tuple[Mark, ...]:
    return (Mark(code="client-lag", params={"lag_p99_ms": lag_p99_ms}),)


def test_a_late_client_spoils_only_what_it_is_large_against() -> None:
    # 30 ms against a TTFT of 100 ms, answers of 1.08 s and a run of the same length
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0, tpot_ms=40.0))
        measured.add(2, repeat, burst(ttft_ms=100.0), marks=late(30.0))
    found = measured.verdicts()
    (refused,) = [v for v in found if not v.said]
    assert (refused.code, refused.params["metric"], refused.params["marked"]) == (
        "cannot-tell-late",
        "P95 TTFT",
        "arm 2",
    )
    assert {v.code for v in found if v.said} == {"verdict-throughput", "verdict-tpot"}


def test_a_late_client_is_nothing_against_seconds() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=35_000.0), marks=late(30.0))
        measured.add(2, repeat, burst(ttft_ms=2_500.0), marks=late(30.0))
    assert {"verdict-throughput", "verdict-ttft"} <= by_code(measured.verdicts()).keys()


@pytest.mark.parametrize(
    ("mark", "silent"),
    [
        (Mark(code="cache-hits", params={"hit_percent": 9.0}), False),
        (Mark(code="cache-hits", params={"hit_percent": 10.0}), True),
        (Mark(code="concurrency-not-reached", params={"asked": 40, "reached": 38}), False),
        (Mark(code="concurrency-not-reached", params={"asked": 64, "reached": 10}), True),
        (Mark(code="rate-not-achieved", params={"asked": 2.0, "achieved": 1.5}), True),
        (Mark(code="low-samples-p99"), False),
    ],
)
def test_marks_silence_when_they_are_grave(mark: Mark, silent: bool) -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0))
        measured.add(2, repeat, burst(ttft_ms=100.0), marks=(mark,))
    assert ("verdict-throughput" not in by_code(measured.verdicts())) is silent


def test_too_few_requests_say_nothing_about_p95() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=1000.0, requests=9))
        measured.add(2, repeat, burst(ttft_ms=100.0, requests=9))
    found = by_code(measured.verdicts())
    assert found["cannot-tell-samples"].params["n"] == 18
    assert found["verdict-throughput"].said


def test_stages_are_compared_each_with_itself() -> None:
    measured = Measured()
    for value, ttft in ((1.0, 100.0), (8.0, 900.0)):
        for repeat in (1, 2):
            measured.add(1, repeat, burst(ttft_ms=ttft), stage=Stage(kind="concurrency", value=value))
            measured.add(2, repeat, burst(ttft_ms=ttft * 3), stage=Stage(kind="concurrency", value=value))
    ratios = [v.params["ratio"] for v in measured.verdicts() if v.code == "verdict-ttft"]
    assert ratios == [3.0, 3.0]
    sentences = [word(v.code, v.params) for v in measured.verdicts() if v.code == "verdict-ttft"]
    assert sentences[0].startswith("concurrency 1: The P95 TTFT of arm 1 is 3.0 times shorter")
    assert sentences[1].startswith("concurrency 8: ")


def test_the_winner_keeps_the_limit_and_is_clearly_faster() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=2500.0, tpot_ms=1.0))  # misses the limit
        measured.add(2, repeat, burst(ttft_ms=900.0))
        measured.add(3, repeat, burst(ttft_ms=400.0))
        measured.add(4, repeat, burst(ttft_ms=50.0), target="gateway")  # a baseline cannot win
    winner = by_code(measured.verdicts(Slo(ttft_p95_ms=1000)))["verdict-winner"]
    # 1000 tokens in 0.4 + 0.98 s = 725 tokens/s
    assert said_about(winner) == {"arm": "arm 3", "limit_ms": 1000, "ttft_p95_ms": 400, "tokens_per_s": 725.0}


def test_a_gateway_that_is_listed_first_is_compared_with_ones_own_arms_first_one() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=50.0), target="gateway")
        measured.add(2, repeat, burst(ttft_ms=900.0))
        measured.add(3, repeat, burst(ttft_ms=400.0))
    pairs = [(v.params["arm"], v.params["other"]) for v in measured.verdicts() if v.code == "verdict-ttft"]
    assert pairs == [("arm 1", "arm 2"), ("arm 3", "arm 2")]
    assert reference_arm(measured.rows) == "arm 2"
    assert reference_arm([]) is None


def test_no_winner_where_nobody_keeps_the_limit() -> None:
    measured = Measured()
    for repeat in (1, 2):
        measured.add(1, repeat, burst(ttft_ms=2500.0))
        measured.add(2, repeat, burst(ttft_ms=1900.0))
    found = by_code(measured.verdicts(Slo(ttft_p95_ms=1000)))
    assert said_about(found["verdict-nobody-meets-slo"]) == {"arm": "arm 2", "limit_ms": 1000, "ttft_p95_ms": 1900}
    assert "verdict-winner" not in found


def test_one_arm_has_nothing_to_be_compared_with() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=100.0))
    measured.add(1, 2, burst(ttft_ms=100.0))
    assert measured.verdicts(Slo(ttft_p95_ms=1000)) == ()


def test_pooling_adds_up_and_never_averages_percentiles() -> None:
    measured = Measured()
    measured.add(1, 1, burst(ttft_ms=1020.0))  # 2.0 s
    measured.add(1, 2, burst(ttft_ms=20.0))  # 1.0 s
    (pooled,) = pool_arms(measured.rows, measured.ttft)
    assert (pooled.requests, pooled.output_tokens, pooled.wall_s) == (40, 2000, pytest.approx(3.0))
    assert pooled.output_tokens_per_s == pytest.approx(2000 / 3)
    assert (pooled.ttft_ms.n, pooled.ttft_ms.mean, pooled.ttft_ms.p95) == (40, 520.0, 1020.0)
    assert (pooled.lowest_tokens_per_s, pooled.highest_tokens_per_s) == (pytest.approx(500), pytest.approx(1000))


def test_every_verdict_has_words() -> None:
    wanted = {"verdict-throughput", "verdict-ttft", "verdict-tpot", "verdict-winner", "verdict-nobody-meets-slo"}
    assert wanted <= messages().keys()
    words = word(
        "verdict-throughput",
        {"arm": "B", "other": "A", "ratio": 2.0, "low": 1.9, "high": 2.1, "repeats": 2, "stage": ""},
    )
    assert words == "B gave 2.0 times the throughput of A over all requests (1.9 to 2.1 in the 2 single repeats)."
