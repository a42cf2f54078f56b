"""Experiments and trials: their states, claims, interruptions and ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest

from lab.findings import LabError
from lab.records.plan import Arm
from lab.records.states import ExperimentState, LaunchState, TrialState
from lab.records.summary import Mark
from lab.records.workload import Stage, Workload
from lab.store import (
    Store,
    active_trial,
    close_intent,
    finish_experiment_if_done,
    finish_idle_experiments,
    get_config_version,
    get_experiment,
    give_back_trial,
    next_trial,
    open_intents,
    queue_experiment,
    recover_trials,
    request_stop,
    save_config_version,
    set_experiment_state,
    set_trial_progress,
    set_trial_state,
)
from lab.store.transitions import EXPERIMENT, LAUNCH, TRIAL
from lab.store.views import TrialWork
from tests.factories import (
    BATCHING_ARMS,
    CONFIG_TEXT,
    HOST,
    SETTINGS_TEXT,
    make_experiment,
    make_request,
    make_trials,
    measure,
    run_trial,
)


def queue(store: Store, *, host: str = HOST, **changes: object) -> int:
    experiment = make_experiment(**changes)
    return queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=host)


def claim(store: Store, host: str = HOST) -> TrialWork:
    work = next_trial(store, host)
    assert work is not None
    return work


def states(store: Store, experiment_id: int) -> list[str]:
    return [trial.state for trial in get_experiment(store, experiment_id).trials]


def test_an_experiment_comes_back_as_it_was_queued(store: Store) -> None:
    before = datetime.now(UTC)
    experiment = make_experiment()
    view = get_experiment(store, queue_experiment(store, experiment, make_trials(experiment), person="Ada", host=HOST))
    assert view.experiment == experiment
    assert tuple(row.arm for row in view.arms) == BATCHING_ARMS
    assert [(t.arm_name[:3], t.block, t.position, t.state, t.attempt) for t in view.trials] == [
        ("no ", 1, 0, "queued", 1), ("con", 1, 1, "queued", 1), ("Tao", 1, 2, "queued", 1),
        ("Tao", 2, 3, "queued", 1), ("con", 2, 4, "queued", 1), ("no ", 2, 5, "queued", 1),
    ]  # fmt: skip
    assert (view.row.state, view.row.person, view.row.trials_total) == ("queued", "Ada", 6)
    assert before <= view.row.created_at <= datetime.now(UTC)
    assert view.row.created_at.tzinfo is UTC


def test_the_same_config_pair_is_kept_once(store: Store) -> None:
    first = save_config_version(store, SETTINGS_TEXT, CONFIG_TEXT)
    assert save_config_version(store, SETTINGS_TEXT, CONFIG_TEXT) == first
    assert save_config_version(store, SETTINGS_TEXT + " ", CONFIG_TEXT) != first
    assert get_config_version(store, first) == (SETTINGS_TEXT, CONFIG_TEXT)


def test_texts_that_are_cut_elsewhere_are_another_pair(store: Store) -> None:
    assert save_config_version(store, "ab", "c") != save_config_version(store, "a", "bc")


def test_trials_are_claimed_in_the_order_of_the_queue(store: Store) -> None:
    first, second = queue(store), queue(store)
    claimed = [claim(store) for _ in range(12)]
    assert [(w.experiment_id, w.position) for w in claimed] == [(e, p) for e in (first, second) for p in range(6)]
    assert next_trial(store, HOST) is None


def test_a_claim_carries_what_running_needs(store: Store) -> None:
    queue(store)
    work = claim(store)
    assert (work.arm, work.block, work.attempt, work.done_stages) == (BATCHING_ARMS[0], 1, 1, ())
    assert work.following == BATCHING_ARMS[1]
    assert work.experiment == make_experiment()
    assert get_experiment(store, work.experiment_id).row.state == "running"


def test_the_last_trial_has_none_following(store: Store) -> None:
    queue(store, arms=(Arm(name="only"),), repeats=1)
    assert claim(store).following is None


def test_other_hosts_queues_are_left_alone(store: Store) -> None:
    queue(store, host="elsewhere")
    assert next_trial(store, HOST) is None
    assert next_trial(store, "elsewhere") is not None


def test_a_paused_experiment_is_passed_over(store: Store) -> None:
    first, second = queue(store), queue(store)
    set_experiment_state(store, first, "paused")
    assert claim(store).experiment_id == second
    set_experiment_state(store, first, "queued")
    assert claim(store).experiment_id == first


def test_a_trial_goes_through_its_states(store: Store) -> None:
    queue(store)
    work = claim(store)
    for state in ("warming", "measuring", "warming", "measuring"):
        set_trial_state(store, work.trial_id, state)
    set_trial_progress(store, work.trial_id, {"done": 3, "total": 40})
    trial = get_experiment(store, work.experiment_id).trials[0]
    assert (trial.state, trial.progress, trial.ended_at) == ("measuring", {"done": 3, "total": 40}, None)
    set_trial_state(store, work.trial_id, "done", marks=[Mark(code="preempted", params={"count": 2})])
    trial = get_experiment(store, work.experiment_id).trials[0]
    assert (trial.state, trial.progress) == ("done", None)
    assert trial.started_at is not None
    assert trial.ended_at is not None
    assert trial.marks == (Mark(code="preempted", params={"count": 2}),)


def test_a_failed_trial_keeps_why(store: Store) -> None:
    queue(store)
    work = claim(store)
    set_trial_state(
        store,
        work.trial_id,
        "failed",
        failure="port-taken",
        message={"code": "trial-port-taken", "port": 8000},
        log_tail="…",
    )
    trial = get_experiment(store, work.experiment_id).trials[0]
    assert (trial.failure, trial.message, trial.log_tail) == (
        "port-taken", {"code": "trial-port-taken", "port": 8000}, "…",
    )  # fmt: skip


@pytest.mark.parametrize("final", ["done", "failed", "cancelled"])
def test_a_finished_trial_never_changes(store: Store, final: TrialState) -> None:
    queue(store)
    work = claim(store)
    set_trial_state(store, work.trial_id, final)
    for state in get_args(TrialState):
        with pytest.raises(LabError, match="transition-refused"):
            set_trial_state(store, work.trial_id, state, log_tail="rewritten")
    set_trial_progress(store, work.trial_id, {"done": 1})
    assert give_back_trial(store, work.trial_id) == final
    trial = get_experiment(store, work.experiment_id).trials[0]
    assert (trial.state, trial.log_tail, trial.progress, trial.attempt) == (final, None, None, 1)


def test_a_queued_trial_cannot_be_measuring(store: Store) -> None:
    trial = get_experiment(store, queue(store)).trials[0]
    with pytest.raises(LabError, match="transition-refused"):
        set_trial_state(store, trial.id, "measuring")


def test_transitions_are_closed_over_the_states() -> None:
    for table, kind in ((TRIAL, TrialState), (EXPERIMENT, ExperimentState), (LAUNCH, LaunchState)):
        assert set(table) == set(get_args(kind))
        assert {state for following in table.values() for state in following} <= set(get_args(kind))


def test_an_interrupted_trial_comes_back_first_with_its_finished_stages(store: Store) -> None:
    queue(store, workload=Workload(kind="closed", requests=4, concurrency=(1, 2)))
    work = claim(store)
    set_trial_state(store, work.trial_id, "measuring")
    one = Stage(kind="concurrency", value=1)
    measure(store, work, [make_request(i) for i in range(4)], one)
    assert give_back_trial(store, work.trial_id) == "queued"
    again = claim(store)
    assert (again.trial_id, again.attempt, again.done_stages) == (work.trial_id, 2, (one,))


def test_after_a_crash_everything_unfinished_goes_back(store: Store) -> None:
    experiment_id = queue(store)
    other = queue(store, host="elsewhere")
    done, crashed, elsewhere = claim(store), None, claim(store, "elsewhere")
    run_trial(store, done, [make_request(i) for i in range(3)])
    crashed = claim(store)
    set_trial_state(store, crashed.trial_id, "measuring")
    assert active_trial(store, HOST) == crashed.trial_id
    assert recover_trials(store, HOST) == (crashed.trial_id,)
    assert active_trial(store, HOST) is None
    assert states(store, experiment_id)[:3] == ["done", "queued", "queued"]
    assert states(store, other)[0] == "starting"
    assert elsewhere.experiment_id == other


def test_an_end_that_a_crash_prevented_is_made_up_for(store: Store) -> None:
    experiment_id = queue(store, arms=(Arm(name="only"),), repeats=1)
    run_trial(store, claim(store), [make_request(0)])
    assert get_experiment(store, experiment_id).row.state == "running"
    assert finish_idle_experiments(store, HOST) == (experiment_id,)
    assert get_experiment(store, experiment_id).row.state == "done"


def test_stopping_cancels_what_is_queued_and_asks_the_runner_for_the_rest(store: Store) -> None:
    experiment_id = queue(store)
    running = claim(store)
    assert request_stop(store, experiment_id, "Grace") == "running"
    assert states(store, experiment_id) == ["starting"] + ["cancelled"] * 5
    (intent,) = open_intents(store, HOST)
    assert (intent.kind, intent.experiment_id, intent.person) == ("stop-experiment", experiment_id, "Grace")
    assert next_trial(store, HOST) is None
    set_trial_state(store, running.trial_id, "cancelled")
    assert finish_experiment_if_done(store, experiment_id) == "stopped"
    assert close_intent(store, intent.id, "done")


def test_stopping_twice_asks_once(store: Store) -> None:
    experiment_id = queue(store)
    claim(store)
    request_stop(store, experiment_id, "Grace")
    request_stop(store, experiment_id, "Ada")
    assert len(open_intents(store, HOST)) == 1


def test_stopping_what_has_not_begun_needs_no_runner(store: Store) -> None:
    experiment_id = queue(store)
    assert request_stop(store, experiment_id, "Grace") == "stopped"
    assert open_intents(store, HOST) == ()
    assert get_experiment(store, experiment_id).row.ended_at is not None


def test_a_trial_given_back_after_a_stop_is_cancelled(store: Store) -> None:
    experiment_id = queue(store)
    running = claim(store)
    request_stop(store, experiment_id, "Grace")
    assert give_back_trial(store, running.trial_id) == "cancelled"
    assert finish_experiment_if_done(store, experiment_id) == "stopped"


def test_an_experiment_without_any_measurement_has_failed(store: Store) -> None:
    experiment_id = queue(store, arms=(Arm(name="only"),), repeats=2)
    for _ in range(2):
        set_trial_state(store, claim(store).trial_id, "failed", failure="crash")
    assert finish_experiment_if_done(store, experiment_id) == "failed"


def test_an_experiment_with_one_good_trial_is_done(store: Store) -> None:
    experiment_id = queue(store, arms=(Arm(name="only"),), repeats=2)
    run_trial(store, claim(store), [make_request(0)])
    assert finish_experiment_if_done(store, experiment_id) == "running"
    set_trial_state(store, claim(store).trial_id, "failed", failure="crash")
    assert finish_experiment_if_done(store, experiment_id) == "done"


def test_an_ended_experiment_stays_ended(store: Store) -> None:
    experiment_id = queue(store)
    request_stop(store, experiment_id, "Ada")
    with pytest.raises(LabError, match="transition-refused"):
        set_experiment_state(store, experiment_id, "running")


@pytest.mark.parametrize("call", [get_experiment, finish_experiment_if_done, lambda s, i: request_stop(s, i, "Ada")])
def test_an_unknown_number_is_one_line(store: Store, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LabError, match="experiment-unknown"):
        call(store, 404)
