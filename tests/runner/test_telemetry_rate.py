"""Telemetry of a trial: as often as the experiment asks, on the same clock as its requests."""

from __future__ import annotations

import numpy as np

from lab.records.sample import Sample
from lab.runner.measuring import sample_interval_s
from lab.store import list_samples
from tests.factories import make_experiment
from tests.runner.labs import Lab

FAST = 'name = "fast"\n[metrics]\nsample_hz = 10\n'


def times_s(samples: tuple[Sample, ...], series: str) -> list[float]:
    return [s.at_ms / 1000 for s in samples if s.series == series]


def test_an_experiment_is_sampled_as_often_as_it_asks(lab: Lab) -> None:
    lab.engine_behaves(gap_ms=100.0)
    experiment_id = lab.queue('[[arm]]\nname = "stub"\n', tokens=20, head=FAST)
    (row,) = lab.run_until_ended(experiment_id).measurements
    at = times_s(list_samples(lab.store, row.id), "requests_running")
    assert len(at) >= 10
    assert np.median(np.diff(at)) < 0.3
    assert {"telemetry-gap", "engine-restarted"}.isdisjoint(mark.code for mark in row.marks)


def test_without_a_wish_telemetry_is_read_once_a_second() -> None:
    assert sample_interval_s(make_experiment()) == 1.0
    text = make_experiment().config_text + "\n[metrics]\nsample_hz = 4\n"
    assert sample_interval_s(make_experiment(config_text=text)) == 0.25
