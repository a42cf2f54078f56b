"""The data behind the charts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.charts import cache_points, cache_use, knees, ladder_points, throughput_ttft_points
from lab.charts.points import wants_log_axis
from lab.metrics.verdict import Verdict
from lab.records.plan import Arm
from lab.records.summary import Mark
from lab.records.workload import Stage, Workload
from lab.store import Store, get_experiment, list_baselines, next_trial, queue_experiment, set_trial_state
from tests.factories import (
    HOST,
    make_experiment,
    make_failure,
    make_request,
    make_trials,
    measure,
    seed_finished_experiment,
)


def test_there_is_one_point_per_measurement(store: Store) -> None:
    view = get_experiment(store, seed_finished_experiment(store))
    points = throughput_ttft_points(view)
    assert [p.measurement_id for p in points] == [m.id for m in view.measurements]
    first = points[0]
    assert (first.arm, first.target, first.repeat, first.n) == ("no batching (1 sequence at a time)", "engine", 1, 40)
    assert first.tokens_per_s == pytest.approx(29, rel=0.01)
    assert [p.is_baseline for p in points] == [False, False, False, False, True, True]


def test_baselines_of_other_experiments_follow_with_their_origin(store: Store) -> None:
    older, newer = seed_finished_experiment(store), seed_finished_experiment(store)
    view = get_experiment(store, newer)
    (baseline,) = list_baselines(store, view.experiment.workload, besides=newer)
    points = throughput_ttft_points(view, [("the older one", row) for row in baseline.rows])
    assert baseline.experiment_id == older
    assert [p.origin for p in points] == [None] * 6 + ["the older one"] * 2


def test_what_has_no_throughput_has_no_point(store: Store) -> None:
    experiment = make_experiment(arms=(Arm(name="only"),), repeats=1)
    number = queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=HOST)
    work = next_trial(store, HOST)
    assert work is not None
    measure(store, work, [make_failure(i) for i in range(5)])
    assert throughput_ttft_points(get_experiment(store, number)) == ()


def test_a_spoiled_measurement_is_doubtful(store: Store) -> None:
    experiment = make_experiment(arms=(Arm(name="only"),), repeats=1)
    number = queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=HOST)
    work = next_trial(store, HOST)
    assert work is not None
    measure(
        store, work, [make_request(i) for i in range(100)], marks=[Mark(code="client-lag", params={"lag_p99_ms": 6.0})]
    )
    (point,) = throughput_ttft_points(get_experiment(store, number))
    assert (point.doubtful, "client-lag" in point.marks) == (True, True)


def test_a_ladder_stands_on_the_tokens_that_the_server_counted(store: Store) -> None:
    workload = Workload(kind="ladder", prompt_tokens=(128, 512), repeat=3, warmup_requests=0)
    experiment = make_experiment(arms=(Arm(name="only"),), repeats=1, workload=workload)
    number = queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=HOST)
    work = next_trial(store, HOST)
    assert work is not None
    for length, ttft in ((128, 270.0), (512, 700.0)):
        records = [make_request(i, ttft_ms=ttft + i, prompt_tokens=length + 30) for i in range(3)]
        measure(store, work, records, Stage(kind="prompt_tokens", value=length))
    set_trial_state(store, work.trial_id, "done")
    points = ladder_points(get_experiment(store, number))
    assert [(p.prompt_tokens, p.ttft_mean_ms, p.n) for p in points] == [(158.0, 271.0, 3), (542.0, 701.0, 3)]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [([], False), ([5.0], False), ([1.0, 20.0], False), ([1.0, 20.1], True), ([0.0, 100.0], False)],
)
def test_an_axis_is_logarithmic_where_values_span_more_than_twentyfold(values: list[float], wanted: bool) -> None:
    assert wants_log_axis(values) is wanted


@given(st.lists(st.floats(-10, 1e9), max_size=20))
def test_a_logarithmic_axis_never_gets_a_value_it_cannot_show(values: list[float]) -> None:
    assert not wants_log_axis(values) or min(values) > 0


def test_cache_use_stands_on_the_whole_context_and_only_where_it_was_sampled(store: Store) -> None:
    number = seed_finished_experiment(store)
    view = get_experiment(store, number)
    row = view.measurements[0]
    # 40 answers of 64 tokens to prompts of 48
    sampled = replace(
        row,
        stage=Stage(kind="prompt_tokens", value=48),
        summary=row.summary.model_copy(update={"kv_peak_ratio": 0.25}),
    )
    blind = replace(row, stage=Stage(kind="prompt_tokens", value=48))
    (point,) = cache_points(replace(view, measurements=(sampled, blind, row)))
    assert (point.context_tokens, point.kv_peak_ratio) == (112.0, 0.25)
    trace = cache_use([point]).data[0]
    assert (list(trace.x), list(trace.y), trace.customdata[0][0]) == ([112.0], [0.25], row.id)


def test_knees_come_from_the_verdicts_that_say_one() -> None:
    said = Verdict("verdict-knee", {"arm": "a", "concurrency": 4})
    assert knees([said, Verdict("verdict-no-knee", {"arm": "b", "concurrency": 16})]) == {"a": 4.0}
