"""The client's ceiling: measured for real in one small step, judged on constructed ones, kept with the host."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.cli.ceiling import Step, climb, measure_step
from lab.findings import LabError
from lab.metrics import summarise
from lab.metrics.validity import spoils
from lab.records.ceiling import ClientCeiling
from lab.records.plan import Slo
from lab.records.summary import Mark
from lab.records.workload import Workload
from lab.store import get_client_ceiling, open_store, save_client_ceiling, save_host_facts
from tests.factories import make_request, make_result

FOUND = ClientCeiling(
    tokens_per_s=1000.0, in_flight=50, reached=True, cores=2, measured_at=datetime(2026, 1, 1, tzinfo=UTC)
)


def test_a_small_step_is_kept_and_measured_for_real(tmp_path: Path) -> None:
    step = measure_step(8, tmp_path, dict(os.environ))
    # 8 answers of 100 tokens each 2.18 s
    assert step.written_per_s == pytest.approx(800 / 2.18, rel=0.1)
    assert step.seen_per_s == pytest.approx(step.written_per_s, rel=0.04)
    assert step.server_kept


GOOD = (Step(64, 2930.0, 2920.0, 3.0), Step(128, 5860.0, 5800.0, 12.0))


def test_the_ceiling_is_the_last_step_that_the_loader_kept() -> None:
    found = climb([*GOOD, Step(256, 11700.0, 11600.0, 60.0)])
    assert (found.in_flight, found.tokens_per_s, found.reached) == (128, 5800.0, True)
    assert climb([*GOOD, Step(256, 11700.0, 11000.0, 3.0)]).reached


def test_a_server_that_falls_behind_says_nothing_about_the_loader() -> None:
    found = climb([*GOOD, Step(256, 6000.0, 6000.0, 3.0)])
    assert (found.in_flight, found.reached) == (128, False)
    assert not climb(GOOD).reached


def test_a_host_that_keeps_nothing_has_no_ceiling() -> None:
    with pytest.raises(LabError) as caught:
        climb([Step(64, 2930.0, 1000.0, 900.0)])
    assert caught.value.findings[0].code == "ceiling-unknown"


def test_the_ceiling_stays_with_the_host_when_its_facts_are_stored_anew(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'lab.db'}")
    assert get_client_ceiling(store, "host") is None
    save_client_ceiling(store, "host", FOUND)
    save_host_facts(store, "host", "cpu", {"cores": 2})
    assert get_client_ceiling(store, "host") == FOUND
    store.close()


def near(records: int, found: ClientCeiling) -> list[Mark]:
    """So many answers of five tokens in 180 ms, all at once."""
    result = make_result([make_request(i) for i in range(records)])
    summary = summarise(result, slo=Slo(), workload=Workload(kind="burst", requests=records), ceiling=found)
    return [mark for mark in summary.marks if mark.code == "near-client-ceiling"]


def test_a_point_near_the_ceiling_is_marked_and_cannot_be_compared() -> None:
    # 28 answers: 778 tokens per second of 1000 and 28 in flight of 50; 29: 806
    assert near(28, FOUND) == []
    (mark,) = near(29, FOUND)
    assert (mark.params["tokens_per_s"], mark.params["most_tokens_per_s"]) == (805.6, 1000.0)
    assert spoils(mark)
    (lower_bound,) = near(29, FOUND.model_copy(update={"reached": False}))
    assert not spoils(lower_bound)
