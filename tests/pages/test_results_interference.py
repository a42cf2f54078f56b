"""Steady answers and long prompts on the page Results: told apart in the table, the verdict and the chart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from lab.metrics import summarise
from lab.records.plan import Arm
from lab.records.request import RequestRecord
from lab.records.workload import Stage, Workload
from lab.store import (
    Store,
    finish_experiment_if_done,
    get_experiment,
    next_trial,
    queue_experiment,
    result_document,
    save_measurement,
    set_trial_state,
)
from tests.factories import HOST, PERSON, make_experiment, make_request, make_result, make_trials
from tests.pages.test_configs import fine, texts

OpenPage = Callable[..., AppTest]
INTERFERENCE = Workload(
    kind="interference", prompt_tokens=(1024,), repeat=2, concurrency=(1,), output_tokens=8, warmup_requests=0
)
ARMS = (Arm(name="chunked"), Arm(name="whole", set={"enable_chunked_prefill": False}))


def records(stall_ms: float, ttft_ms: float) -> list[RequestRecord]:
    """A token each 30 ms; at 165 ms a long prompt comes and one gap is `stall_ms`."""
    times = tuple(100.0 + 30 * i + (stall_ms - 30 if i > 2 else 0) for i in range(8))
    steady = make_request(
        0, chunk_times_ms=times, e2e_ms=times[-1], tpot_ms=(times[-1] - times[0]) / 7, tokens=8, marks=("decoder",)
    )
    return [steady, make_request(1, t0_ms=165.0, ttft_ms=ttft_ms, tokens=1, marks=("intruder",))]


@pytest.fixture
def number(store: Store) -> int:
    experiment = make_experiment(name="Chunks", workload=INTERFERENCE, arms=ARMS, repeats=2)
    found = queue_experiment(store, experiment, make_trials(experiment), person=PERSON, host=HOST)
    while (work := next_trial(store, HOST)) is not None:
        set_trial_state(store, work.trial_id, "warming")
        whole = "enable_chunked_prefill" in work.arm.set
        result = make_result(records(900.0, 800.0) if whole else records(150.0, 1200.0))
        summary = summarise(result, slo=experiment.slo, workload=INTERFERENCE)
        now = datetime.now(UTC)
        save_measurement(store, work.trial_id, Stage(), result, summary, (), now, now)
        set_trial_state(store, work.trial_id, "done")
    finish_experiment_if_done(store, found)
    return found


def test_the_page_tells_the_standstill_and_the_wait(number: int, open_page: OpenPage) -> None:
    app = fine(open_page("results", experiment=number))
    said = texts(app)
    assert "longest standstill of a steady answer is 6.0 times shorter with chunked (150 ms) than with whole" in said
    assert "Long prompts wait 1.5 times shorter for their first token with whole (mean 800 ms)" in said
    assert "Throughput against P95 TTFT" not in said
    (arms,) = [table.value for table in app.dataframe if "stall_ms" in table.value and "repeats" in table.value]
    assert list(arms["stall_ms"]) == [150.0, 900.0]
    assert list(arms["intruder_ttft_ms"]) == [1200.0, 800.0]
    assert "ttft_p95_ms" not in arms


def test_a_measurement_shows_its_own_course(store: Store, number: int, open_page: OpenPage) -> None:
    app = fine(open_page("results", experiment=number))
    first = get_experiment(store, number).measurements[0]
    app.session_state["results:measurement"] = first.id
    said = texts(fine(app.run()))
    assert "Mean TTFT of long prompts" in [metric.label for metric in app.metric]
    assert "**Steady answers while long prompts are read**" in said


def test_the_document_has_both_kinds_and_both_verdicts(store: Store, number: int) -> None:
    document = result_document(get_experiment(store, number))
    assert [row["interference"]["intruders"] for row in document["rows"]] == [1, 1, 1, 1]
    assert {verdict["code"] for verdict in document["verdicts"]} >= {"verdict-stall", "verdict-intruder-ttft"}
    assert "ladders" not in document
