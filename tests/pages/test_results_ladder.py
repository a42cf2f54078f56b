"""A ladder on the page Results: its table, the use of the cache, the way of each request to its first token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from streamlit.testing.v1 import AppTest

from lab.metrics import Telemetry, summarise
from lab.records.plan import Arm
from lab.records.sample import Sample
from lab.records.workload import Stage, Workload
from lab.store import (
    Store,
    finish_experiment_if_done,
    get_experiment,
    next_trial,
    queue_experiment,
    save_measurement,
    set_trial_state,
)
from tests.factories import HOST, PERSON, make_experiment, make_request, make_result, make_trials
from tests.pages.test_configs import fine, texts

OpenPage = Callable[..., AppTest]
LADDER = Workload(
    kind="ladder", prompt_tokens=(128, 512), repeat=2, concurrency=(2,), output_tokens=11, warmup_requests=0
)


def seed_ladder(store: Store, cache_in_use: float) -> int:
    """128 tokens: TTFT 100 of 300 ms; 512 tokens: TTFT 600 of 800 ms; the engine tells its times."""
    experiment = make_experiment(name="Ladder", workload=LADDER, arms=(Arm(name="only"),), repeats=1)
    number = queue_experiment(store, experiment, make_trials(experiment), person=PERSON, host=HOST)
    work = next_trial(store, HOST)
    assert work is not None
    set_trial_state(store, work.trial_id, "warming")
    for tokens, ttft_ms in ((128, 100.0), (512, 600.0)):
        records = [
            make_request(
                i,
                ttft_ms=ttft_ms,
                tokens=11,
                prompt_tokens=tokens,
                engine_queue_ms=10.0,
                engine_prefill_ms=ttft_ms - 30,
            )
            for i in range(2)
        ]
        samples = [Sample(at * 100.0, "kv_cache_usage_ratio", cache_in_use * tokens / 512) for at in range(12)]
        result = make_result(records, concurrency_asked=2)
        telemetry = Telemetry(samples, 0.1, 0.0)
        summary = summarise(result, slo=experiment.slo, workload=LADDER, telemetry=telemetry)
        stage, now = Stage(kind="prompt_tokens", value=tokens), datetime.now(UTC)
        save_measurement(store, work.trial_id, stage, result, summary, samples, now, now)
    set_trial_state(store, work.trial_id, "done")
    finish_experiment_if_done(store, number)
    return number


def _engine_times(ttft_ms: float) -> dict[str, float]:
    return {"engine_queue_ms": 10.0, "engine_prefill_ms": ttft_ms - 30}


def test_the_ladder_has_its_table_with_the_dominating_phase(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("results", experiment=seed_ladder(store, 0.4)))
    shown = texts(app)
    assert "| 128 | 2 | 100 ms | 20.0 ms | 300 ms | 33 % | decode |" in shown
    assert "| 512 | 2 | 600 ms | 20.0 ms | 800 ms | 75 % | prefill |" in shown
    assert "KV cache against context length" in [each.value for each in app.subheader]
    assert "never seen in use" not in shown


def test_a_cache_that_was_never_seen_in_use_is_told_instead_of_drawn(store: Store, open_page: OpenPage) -> None:
    assert "never seen in use" in texts(fine(open_page("results", experiment=seed_ladder(store, 0.0))))


def test_the_way_to_the_first_token_adds_up(store: Store, open_page: OpenPage) -> None:
    number = seed_ladder(store, 0.4)
    app = open_page("results", experiment=number)
    chosen = get_experiment(store, number).measurements[0].id
    app.selectbox(key="results:measurement").set_value(chosen)
    shown = texts(fine(app.run()))
    # 100 ms: 10 in the queue, 70 prefill, 20 left over; 0.1 ms wait before
    assert "network and front end 20.0 ms → queue of the engine 10.0 ms → prefill 70.0 ms" in shown


def test_the_ladder_speaks_chinese(store: Store, open_page: OpenPage) -> None:
    assert "主导阶段" in texts(fine(open_page("results", experiment=seed_ladder(store, 0.4), lang="zh")))
