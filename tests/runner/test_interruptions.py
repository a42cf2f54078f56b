"""What ends a trial before its time: signals, crashes, stops, limits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from lab.environment import ROOT
from lab.host.process_identity import group_members
from lab.store import add_intent, get_host, list_launches, open_intents, request_stop
from tests.runner.labs import Lab, wait_for

ENGINE = '[[arm]]\nname = "engine"\n'
SLOW = {"first_ms": 50, "gap_ms": 200}


def attach(url: str, name: str = "running") -> str:
    return f'[[arm]]\nname = "{name}"\ntarget = "attach"\nbase_url = "{url}"\n'


def test_sigterm_in_mid_trial_ends_the_engine_and_gives_the_trial_back(lab: Lab) -> None:
    lab.engine_behaves(**SLOW)
    experiment = lab.queue(ENGINE, tokens=100, warmup=0)
    runner = lab.start_runner()
    lab.wait_state(experiment, "measuring")
    launch = list_launches(lab.store)[0]
    assert launch.pgid is not None and group_members(launch.pgid)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(20) == 0
    assert not group_members(launch.pgid)
    view = lab.view(experiment)
    assert (view.trials[0].state, view.trials[0].attempt) == ("queued", 2)
    assert view.measurements == ()
    assert list_launches(lab.store)[0].state == "stopped"
    host = get_host(lab.store, lab.host)
    assert host is not None and (host.runner_state, host.runner_pid) == ("ended", None)


def test_two_ctrl_c_in_a_row_still_end_in_order(lab: Lab) -> None:
    lab.engine_behaves(**SLOW)
    experiment = lab.queue(ENGINE, tokens=100, warmup=0)
    runner = lab.start_runner()
    lab.wait_state(experiment, "measuring")
    runner.send_signal(signal.SIGINT)
    time.sleep(0.1)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(20) == 0
    assert lab.view(experiment).trials[0].state == "queued"
    assert "Traceback" not in lab.log()


def test_sigterm_while_the_engine_starts_gives_the_trial_back(lab: Lab) -> None:
    lab.engine_behaves(key="nobody has it")
    experiment = lab.queue(ENGINE)
    runner = lab.start_runner()
    wait_for(lambda: list_launches(lab.store))
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(20) == 0
    launch = list_launches(lab.store)[0]
    assert launch.pgid is not None and not group_members(launch.pgid)
    assert lab.view(experiment).trials[0].state in ("queued", "failed")


def test_after_kill_9_the_next_runner_goes_on_at_the_first_unfinished_trial(lab: Lab, start_stub) -> None:
    server = start_stub(first_ms=50, gap_ms=100)
    experiment = lab.queue(attach(server.root_url), tokens=20, head='name = "test"\nrepeats = 2\n')
    runner = lab.start_runner()
    lab.wait_state(experiment, "measuring", position=1)
    runner.kill()
    runner.wait()
    first = lab.view(experiment).measurements
    assert len(first) == 1
    wait_for(lambda: server.running() == 0)  # the loader does not outlive its runner
    view = lab.run_until_ended(experiment)
    assert [(trial.state, trial.attempt) for trial in view.trials] == [("done", 1), ("done", 2)]
    assert len(view.measurements) == 2
    assert view.measurements[0].id == first[0].id


def test_after_kill_9_no_engine_is_left(lab: Lab) -> None:
    lab.engine_behaves(**SLOW)
    experiment = lab.queue(ENGINE, tokens=100, warmup=0)
    runner = lab.start_runner()
    lab.wait_state(experiment, "measuring")
    launch = list_launches(lab.store)[0]
    runner.kill()
    runner.wait()
    lab.engine_behaves()
    view = lab.run_until_ended(experiment)
    assert (view.trials[0].state, view.trials[0].attempt) == ("done", 2)
    assert launch.pgid is not None and not group_members(launch.pgid)
    assert [each.state for each in list_launches(lab.store) if each.id == launch.id] == ["stopped"]


def test_a_stop_ends_the_trial_at_once_and_cancels_the_rest(lab: Lab, start_stub) -> None:
    server = start_stub(**SLOW)
    experiment = lab.queue(attach(server.root_url), tokens=200, warmup=0, head='name = "test"\nrepeats = 3\n')
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    wait_for(lambda: server.running() == 4)
    asked = time.monotonic()
    request_stop(lab.store, experiment, "tester")
    lab.wait_ended(experiment)
    assert time.monotonic() - asked < 2.0
    view = lab.view(experiment)
    assert view.row.state == "stopped"
    assert [trial.state for trial in view.trials] == ["cancelled"] * 3
    assert view.measurements == ()
    wait_for(lambda: server.running() == 0, timeout_s=2.0)
    wait_for(lambda: not open_intents(lab.store, lab.host), timeout_s=5.0)


def test_a_stop_during_the_warm_up_works_as_well(lab: Lab, start_stub) -> None:
    server = start_stub(**SLOW)
    experiment = lab.queue(attach(server.root_url), tokens=200, warmup=2)
    lab.start_runner()
    lab.wait_state(experiment, "warming")
    wait_for(lambda: server.running() == 2)
    request_stop(lab.store, experiment, "tester")
    lab.wait_ended(experiment, timeout_s=3)
    assert lab.view(experiment).row.state == "stopped"
    wait_for(lambda: server.running() == 0, timeout_s=2.0)


def test_a_stop_ends_the_engine(lab: Lab) -> None:
    lab.engine_behaves(**SLOW)
    experiment = lab.queue(ENGINE, tokens=200, warmup=0)
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    launch = list_launches(lab.store)[0]
    request_stop(lab.store, experiment, "tester")
    lab.wait_ended(experiment)
    assert launch.pgid is not None and not group_members(launch.pgid)


def test_stopping_the_engine_cancels_only_the_trial_that_uses_it(lab: Lab) -> None:
    lab.engine_behaves(**SLOW)
    experiment = lab.queue(ENGINE, tokens=10, warmup=0, head='name = "test"\nrepeats = 2\n')
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    first = list_launches(lab.store)[0]
    add_intent(lab.store, lab.host, "stop-engine", person="tester")
    lab.wait_state(experiment, "cancelled")
    assert first.pgid is not None and not group_members(first.pgid)
    view = lab.run_until_ended(experiment)
    assert [trial.state for trial in view.trials] == ["cancelled", "done"]
    assert (view.trials[0].message or {}).get("code") == "trial-engine-stopped"
    assert not open_intents(lab.store, lab.host)


def test_the_queue_goes_on_after_a_stopped_experiment(lab: Lab, start_stub) -> None:
    slow, fast = start_stub(**SLOW), start_stub()
    stopped = lab.queue(attach(slow.root_url), tokens=200, warmup=0)
    following = lab.queue(attach(fast.root_url))
    lab.start_runner()
    lab.wait_state(stopped, "measuring")
    request_stop(lab.store, stopped, "tester")
    assert lab.run_until_ended(following).row.state == "done"


def test_max_minutes_ends_an_experiment(lab: Lab, start_stub) -> None:
    server = start_stub(**SLOW)
    head = 'name = "test"\nrepeats = 2\n[limits]\nmax_minutes = 0.03\n'
    experiment = lab.queue(attach(server.root_url), tokens=200, warmup=0, head=head)
    view = lab.run_until_ended(experiment, timeout_s=20)
    assert view.row.state == "failed"  # nothing was measured
    assert [trial.state for trial in view.trials] == ["cancelled"] * 2
    assert {(trial.message or {}).get("code") for trial in view.trials} == {"trial-time-limit"}


def test_a_second_runner_is_refused_and_told_whose_the_lock_is(lab: Lab) -> None:
    first = lab.start_runner()
    wait_for(lambda: "ready for work" in lab.log())
    second = subprocess.run(
        [sys.executable, "-m", "lab.runner"], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )
    assert second.returncode == 2
    assert len(second.stderr.splitlines()) == 1
    assert str(first.pid) in second.stderr and lab.env.database_url in second.stderr
    assert first.poll() is None


def test_a_shutdown_intent_ends_the_runner_and_one_left_over_does_not(lab: Lab, start_stub) -> None:
    add_intent(lab.store, lab.host, "shutdown", person="tester")
    first = lab.start_runner()
    wait_for(lambda: "ready for work" in lab.log())
    assert [each.kind for each in open_intents(lab.store, lab.host)] == []
    assert first.poll() is None
    add_intent(lab.store, lab.host, "shutdown", person="tester")
    assert first.wait(10) == 0


def test_the_heartbeat_goes_on_during_a_trial(lab: Lab, start_stub) -> None:
    server = start_stub(**SLOW)
    experiment = lab.queue(attach(server.root_url), tokens=30, warmup=0)
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    before = get_host(lab.store, lab.host)
    assert before is not None and before.heartbeat_at is not None
    wait_for(lambda: get_host(lab.store, lab.host).heartbeat_at > before.heartbeat_at, timeout_s=3.0)  # type: ignore
    now = get_host(lab.store, lab.host)
    assert now is not None
    assert (now.runner_state, now.trial_id) == ("measuring", lab.view(experiment).trials[0].id)
