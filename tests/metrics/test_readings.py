"""What telemetry adds: constructed readings with energies and gaps worked out by hand."""

from __future__ import annotations

import pytest

from lab.metrics import Telemetry, summarise
from lab.records.plan import Slo
from lab.records.sample import Sample
from lab.records.summary import Summary
from lab.records.workload import Workload
from tests.factories import make_request, make_result

BURST = Workload(kind="burst", requests=1)
# one answer of 101 tokens, from 0 to 10 s of the measurement's clock
ANSWER = make_request(0, ttft_ms=0.0, tpot_ms=100.0, tokens=101)


def summary_of(samples: list[Sample], *, clock_ms: float | None = 2000.0, interval_s: float = 1.0) -> Summary:
    telemetry = Telemetry(samples, interval_s, clock_ms)
    return summarise(make_result([ANSWER]), slo=Slo(), workload=BURST, telemetry=telemetry)


def series(name: str, values: dict[float, float | None]) -> list[Sample]:
    """Readings by the second of the samples' clock, on which the measurement runs from 2 to 12 s."""
    return [Sample(second * 1000.0, name, value) for second, value in values.items()]


def gap(summary: Summary) -> dict[str, object] | None:
    return next((dict(m.params) for m in summary.marks if m.code == "telemetry-gap"), None)


def test_energy_is_power_over_the_measured_stretch_only() -> None:
    # 100 W all the time, 900 W before and after the measurement: 10 s x 100 W
    power = {s: (100.0 if 2 <= s <= 12 else 900.0) for s in range(15)}
    found = summary_of(series("gpu0_power_w", power))
    assert found.energy_j == pytest.approx(1000.0)
    assert found.joules_per_token == pytest.approx(1000 / 101)


def test_energy_of_rising_power_and_of_two_gpus_adds_up() -> None:
    # 0 W at 2 s rising by 10 W per second: 10 s x 50 W on average; the second GPU 40 W
    rising = series("gpu0_power_w", {s: 10.0 * (s - 2) for s in range(2, 13)})
    steady = series("gpu1_power_w", dict.fromkeys(range(14), 40.0))
    assert summary_of([*rising, *steady]).energy_j == pytest.approx(500 + 400)


def test_energy_is_unknown_without_readings_that_cover_the_measurement() -> None:
    assert summary_of(series("host_cpu_ratio", dict.fromkeys(range(14), 0.5))).energy_j is None
    gappy = {s: 100.0 for s in range(14) if not 4 < s < 9}
    assert summary_of(series("gpu0_power_w", gappy)).energy_j is None
    assert summary_of(series("gpu0_power_w", dict.fromkeys(range(14), None))).joules_per_token is None
    assert summary_of(series("gpu0_power_w", dict.fromkeys(range(14), 9.0)), clock_ms=None).energy_j is None


def test_the_peak_of_the_kv_cache_is_that_of_the_measured_stretch() -> None:
    values = dict.fromkeys(range(14), 0.1) | {1: 0.9, 7: 0.4, 13: 0.8}
    assert summary_of(series("kv_cache_usage_ratio", values)).kv_peak_ratio == pytest.approx(0.4)
    assert summary_of(series("host_cpu_ratio", values)).kv_peak_ratio is None


def test_missing_readings_are_marked_with_the_longest_gap() -> None:
    values: dict[float, float | None] = dict.fromkeys(range(14), 0.1)
    assert gap(summary_of(series("kv_cache_usage_ratio", values))) is None
    holes = values | dict.fromkeys(range(5, 9))  # 4 s to 9 s
    found = gap(summary_of([*series("kv_cache_usage_ratio", holes), *series("host_cpu_ratio", values)]))
    assert found == {"seconds": 5.0, "series": "kv_cache_usage_ratio"}
    assert gap(summary_of([])) == {"seconds": 10.0, "series": None}


def test_a_gap_is_judged_by_the_sampling_rate() -> None:
    # ten times a second with 1.5 s missing; once a second that is no gap
    fine = {s / 10: 0.1 for s in range(140) if not 50 < s < 65}
    assert gap(summary_of(series("kv_cache_usage_ratio", fine), interval_s=0.1)) is not None
    assert gap(summary_of(series("kv_cache_usage_ratio", fine), interval_s=1.0)) is None


def test_summaries_stored_before_these_fields_still_load() -> None:
    stored = summary_of([]).model_dump(mode="json")
    new = {"steady_s", "steady_tokens_per_s", "longest_stall_ms", "looping_ratio", "kv_peak_ratio", "energy_j"}
    old = {name: value for name, value in stored.items() if name not in {*new, "joules_per_token"}}
    assert Summary.model_validate(old).energy_j is None


def test_a_running_total_that_falls_tells_of_a_restart() -> None:
    steady = series("generation_tokens_total", {s: 100.0 * s for s in range(14)})
    assert "engine-restarted" not in {m.code for m in summary_of(steady).marks}
    fallen: dict[float, float | None] = {s: 100.0 * s for s in range(14)} | {6: None, 7: 3.0}
    assert "engine-restarted" in {m.code for m in summary_of(series("generation_tokens_total", fallen)).marks}
    assert "engine-restarted" not in {m.code for m in summary_of(series("requests_running", fallen)).marks}
