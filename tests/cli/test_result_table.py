"""The result of an experiment as text."""

from __future__ import annotations

from pathlib import Path

from lab.cli.result_table import result_text
from lab.engine.remedies import Remedy, to_store
from lab.plan import plan_trials
from lab.store import get_experiment, next_trial, open_store, queue_experiment, set_trial_state
from tests.factories import HOST, PERSON, make_experiment


def test_a_failed_trial_says_what_to_do_and_the_words_that_do_it(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'experiments.db'}")
    experiment = make_experiment(repeats=1)
    number = queue_experiment(store, experiment, plan_trials(experiment), person=PERSON, host=HOST)
    work = next_trial(store, HOST)
    assert work is not None
    numbers = {"knob": "gpu_memory_utilization", "was": 0.9, "to": 0.85}
    remedies = (
        Remedy("remedy-lower-utilization-step-in-numbers", numbers, {"gpu_memory_utilization": 0.85}),
        Remedy("remedy-driver"),
    )
    message = {"code": "trial-out-of-memory-load", "line": "CUDA out of memory.", "remedies": to_store(remedies)}
    set_trial_state(store, work.trial_id, "failed", failure="out-of-memory", message=message)
    lines = result_text(get_experiment(store, number)).splitlines()
    failed = next(place for place, line in enumerate(lines) if "failed: " in line)
    assert "while it loaded the model: CUDA out of memory." in lines[failed]
    assert "0.9 → 0.85" in lines[failed + 1]
    assert lines[failed + 1].endswith("[python -m lab set gpu_memory_utilization=0.85]")
    assert lines[failed + 2].startswith("  - The GPU's driver")
    store.close()
