"""Measurements: all of it comes back, plain values only, nothing half stored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from lab.findings import LabError
from lab.metrics import summarise
from lab.records.request import ClientUsage, RequestRecord
from lab.records.sample import Sample
from lab.records.summary import Mark, Summary
from lab.records.workload import Stage
from lab.store import (
    Store,
    get_experiment,
    get_host,
    list_requests,
    list_samples,
    load_result,
    next_trial,
    queue_experiment,
    result_document,
    save_host_facts,
    save_measurement,
    set_trial_state,
    verdicts,
)
from lab.store.views import TrialWork
from tests.factories import (
    HOST,
    make_experiment,
    make_failure,
    make_request,
    make_result,
    make_samples,
    make_summary,
    make_trials,
    measure,
    seed_failed_experiment,
    seed_finished_experiment,
    seed_stopped_experiment,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture
def work(store: Store) -> TrialWork:
    experiment = make_experiment()
    queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=HOST)
    claimed = next_trial(store, HOST)
    assert claimed is not None
    return claimed


def save(store: Store, work: TrialWork, records: list[RequestRecord], summary: Summary | None = None) -> int:
    result = make_result(records)
    found = summary or summarise(result, slo=work.experiment.slo, workload=work.experiment.workload)
    return save_measurement(store, work.trial_id, Stage(), result, found, (), NOW, NOW)


FULL = RequestRecord(
    index=3, warmup=False, t0_ms=12.5, sent_ms=13.0, scheduled_ms=12.5, client_wait_ms=0.5, connect_ms=1.25,
    first_byte_ms=90.0, ttft_ms=100.0, first_answer_ms=140.0, e2e_ms=180.001, tpot_ms=40.0005,
    chunk_times_ms=(100.0, 140.0, 180.001), prompt_tokens=31, completion_tokens=3, cached_tokens=16,
    tokens_estimated=True, finish_reason="length", message="…", http_status=200, text="a 中🌍 b",
    engine_queue_ms=2.5, engine_prefill_ms=60.0, marks=("buffered", "one-chunk"),
)  # fmt: skip


def test_a_request_comes_back_whole(store: Store, work: TrialWork) -> None:
    assert not [f.name for f in fields(FULL) if getattr(FULL, f.name) is None and f.name != "failure"]
    (found,) = list_requests(store, save(store, work, [FULL]))
    assert found == FULL


def test_what_is_missing_comes_back_missing(store: Store, work: TrialWork) -> None:
    empty = RequestRecord(index=0, warmup=True, t0_ms=0.0, sent_ms=None)
    failed = make_failure(1, "too-long", http_status=400)
    cut = make_request(2, incomplete=True, e2e_ms=None)
    found = list_requests(store, save(store, work, [empty, failed, cut]))
    assert set(found) == {empty, failed, cut}


def test_requests_come_in_the_order_of_sending(store: Store, work: TrialWork) -> None:
    records = [make_request(i, t0_ms=t0) for i, t0 in enumerate((30.0, 10.0, 20.0))]
    assert [r.index for r in list_requests(store, save(store, work, records))] == [1, 2, 0]


def test_a_load_result_can_be_summarised_anew(store: Store, work: TrialWork) -> None:
    records = [make_request(i, t0_ms=i * 7.0, ttft_ms=100.25 + i, warmup=i < 2) for i in range(40)]
    result = make_result(
        records, client=ClientUsage(1.5, 0.25, 3.0), concurrency_asked=40, rate_asked_per_s=2.5, window_s=10.0,
        output_tokens_asked=5, notes=("ignore-eos-refused",), stopped=True,
    )  # fmt: skip
    summary = summarise(result, slo=work.experiment.slo, workload=work.experiment.workload)
    number = save_measurement(store, work.trial_id, Stage(), result, summary, (), NOW, NOW)
    again = load_result(store, number)
    assert replace(again, records=()) == replace(result, records=())
    assert summarise(again, slo=work.experiment.slo, workload=work.experiment.workload) == summary


def test_page_document_and_stored_summary_agree_to_the_last_digit(store: Store, work: TrialWork) -> None:
    # R12
    records = [make_request(i, ttft_ms=value) for i, value in enumerate((10.0, 20.0, 30.0, 40.0, 1000.0))]
    save(store, work, records)
    view = get_experiment(store, work.experiment_id)
    (row,) = result_document(view)["rows"]
    assert row["ttft_p95_ms"] == view.measurements[0].summary.ttft_ms.p95 == view.pooled[0].ttft_ms.p95
    assert row["ttft_p95_ms"] == pytest.approx(808.0)


def test_samples_come_back_with_their_gaps(store: Store, work: TrialWork) -> None:
    result = make_result([make_request(0)])
    samples = make_samples()
    number = save_measurement(store, work.trial_id, Stage(), result, make_summary([make_request(0)]), samples, NOW, NOW)
    found = list_samples(store, number)
    assert sorted(found, key=lambda s: (s.at_ms, s.series)) == sorted(samples, key=lambda s: (s.at_ms, s.series))
    assert Sample(4000.0, "kv_cache_usage_ratio", None) in found


def test_a_stage_is_stored_once(store: Store, work: TrialWork) -> None:
    save(store, work, [make_request(0)])
    with pytest.raises(LabError, match="measurement-exists"):
        save(store, work, [make_request(0)])


def test_a_finished_trial_takes_no_measurement(store: Store, work: TrialWork) -> None:
    set_trial_state(store, work.trial_id, "cancelled")
    with pytest.raises(LabError, match="transition-refused"):
        save(store, work, [make_request(0)])


def test_a_measurement_that_cannot_be_stored_leaves_nothing(store: Store, work: TrialWork, database: Path) -> None:
    broken = make_request(1, text=object())
    with pytest.raises(Exception, match="type"):
        save(store, work, [*[make_request(i) for i in range(9000)], broken], make_summary())
    with closing(sqlite3.connect(database)) as outside:
        assert outside.execute(
            "SELECT (SELECT count(*) FROM measurement) + (SELECT count(*) FROM request)"
        ).fetchone() == (0,)


def test_numpy_values_are_stored_as_numbers(store: Store, work: TrialWork, database: Path) -> None:
    # R70: int64 and float32 would become bytes, and sums go wrong without an error
    odd = make_request(
        0, completion_tokens=np.int64(128), prompt_tokens=np.uint8(7), t0_ms=np.float32(0.25), e2e_ms=float("inf"),
        ttft_ms=np.float32(2.5),
    )  # fmt: skip
    odd = replace(odd, tpot_ms=np.float64("nan"))
    save(store, work, [odd], make_summary())
    with closing(sqlite3.connect(database)) as outside:
        row = outside.execute(
            "SELECT completion_tokens, typeof(completion_tokens), typeof(prompt_tokens), t0_ms, typeof(t0_ms), "
            "tpot_ms, e2e_ms, ttft_ms FROM request"
        ).fetchone()
    assert row == (128, "integer", "integer", 0.25, "real", None, None, 2.5)


def test_numpy_and_nan_in_json_columns(store: Store, database: Path) -> None:
    save_host_facts(store, "h", "cpu", {"cores": np.int64(2), "load": np.array([0.5, np.nan]), "free": float("nan")})
    host = get_host(store, "h")
    assert host is not None
    assert host.facts == {"cores": 2, "load": [0.5, None], "free": None}


def test_no_column_holds_bytes_where_a_number_belongs(store: Store, database: Path) -> None:
    seed_finished_experiment(store)
    with closing(sqlite3.connect(database)) as outside:
        for table in ("measurement", "request", "sample", "trial", "launch"):
            for _, column, *_ in outside.execute(f"PRAGMA table_info({table})").fetchall():
                if (table, column) != ("request", "gaps"):
                    found = outside.execute(f'SELECT count(*) FROM {table} WHERE typeof("{column}") = ?', ("blob",))  # noqa: S608
                    assert found.fetchone() == (0,), (table, column)


def test_the_document_has_a_row_per_measurement(store: Store) -> None:
    view = get_experiment(store, seed_finished_experiment(store))
    document = result_document(view)
    assert document["experiment"] == {"id": view.row.id, "name": "Continuous batching on and off", "state": "done"}
    rows = document["rows"]
    assert [(row["arm"], row["target"], row["repeat"]) for row in rows] == [
        ("no batching (1 sequence at a time)", "engine", 1), ("no batching (1 sequence at a time)", "engine", 2),
        ("continuous batching", "engine", 1), ("continuous batching", "engine", 2),
        ("TaoToken", "gateway", 1), ("TaoToken", "gateway", 2),
    ]  # fmt: skip
    assert list(rows[0]) == [
        "arm", "target", "trial", "repeat", "stage_kind", "stage_value", "state", "failure", "requests", "succeeded",
        "ttft_mean_ms", "ttft_p95_ms", "tpot_p50_ms", "output_tokens", "wall_s", "output_tokens_per_s", "marks",
    ]  # fmt: skip
    # 40 requests of 64 tokens, one after the other at 29 tokens a second
    assert (rows[0]["requests"], rows[0]["output_tokens"]) == (40, 2560)
    assert rows[0]["output_tokens_per_s"] == pytest.approx(29.0, rel=0.01)
    assert rows[2]["output_tokens_per_s"] == pytest.approx(297, rel=0.03)
    said = {verdict["code"] for verdict in document["verdicts"]}
    assert {"verdict-throughput", "verdict-ttft", "verdict-winner"} <= said


def test_a_failed_trial_has_a_row_without_numbers(store: Store) -> None:
    document = result_document(get_experiment(store, seed_failed_experiment(store)))
    (row,) = document["rows"]
    assert (row["state"], row["failure"], row["requests"], row["output_tokens_per_s"]) == (
        "failed", "out-of-memory", None, None,
    )  # fmt: skip
    assert document["verdicts"] == []


def test_a_stopped_experiment_says_nothing(store: Store) -> None:
    view = get_experiment(store, seed_stopped_experiment(store))
    assert verdicts(view) == ()
    assert {row["state"] for row in result_document(view)["rows"]} == {"cancelled"}


def test_one_repeat_says_nothing_but_why(store: Store) -> None:
    view = get_experiment(store, seed_finished_experiment(store, repeats=1))
    assert result_document(view)["verdicts"] == []
    assert {verdict.code for verdict in view.verdicts} == {"cannot-tell-one-repeat"}


def test_marks_of_the_trial_count_for_its_measurements(store: Store, work: TrialWork) -> None:
    mark = Mark(code="effective-differs", params={"knob": "block_size"})
    measure(store, work, [make_request(i) for i in range(30)])
    set_trial_state(store, work.trial_id, "measuring", marks=[mark])
    (row,) = get_experiment(store, work.experiment_id).measurements
    assert mark in row.marks
    assert "effective-differs" in result_document(get_experiment(store, work.experiment_id))["rows"][0]["marks"]
