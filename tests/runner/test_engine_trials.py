"""Trials on an engine that the runner launches: shared, replaced, failed, served, never left behind."""

from __future__ import annotations

import os
import signal
import socket
import time

import psutil
import pytest

from lab.configs.pair import read_pair
from lab.engine.remedies import stored_remedies
from lab.host.process_identity import group_members
from lab.messages import word_message
from lab.store import add_intent, get_host, get_intent, list_launches
from tests.runner.labs import Lab, StubServer, wait_for

TWO_ARMS = '[[arm]]\nname = "one"\nset = { max_num_seqs = 1 }\n[[arm]]\nname = "many"\n'
OUT_OF_MEMORY = [
    *(f'  File "engine.py", line {number}, in step' for number in range(30)),
    "(EngineCore_DP0 pid=411) ERROR ValueError: Free memory on device cuda:0 (31.4/47.4 GiB) on startup is less than "
    "desired GPU memory utilization (0.95, 45.0 GiB). Decrease GPU memory utilization or reduce GPU memory used by "
    "other processes.",
    "RuntimeError: Engine core initialization failed. See root cause above.",
]


def nothing_is_left(lab: Lab) -> bool:
    launches = list_launches(lab.store)
    return all(each.pgid is None or not group_members(each.pgid) for each in launches)


def test_arms_are_measured_on_engines_of_their_own_and_nothing_is_left(lab: Lab) -> None:
    view = lab.run_until_ended(lab.queue(TWO_ARMS, head='name = "test"\nrepeats = 2\n'))
    assert view.row.state == "done", (view.trials, lab.log())
    assert [trial.arm_name for trial in view.trials] == ["one", "many", "many", "one"]
    launches = [trial.launch_id for trial in view.trials]
    assert launches[1] == launches[2] and len(set(launches)) == 3
    wait_for(lambda: nothing_is_left(lab))
    wait_for(lambda: {each.state for each in list_launches(lab.store)} == {"stopped"})
    flags = {each.id: " ".join(each.argv) for each in list_launches(lab.store)}
    assert "--max-num-seqs 1 " in flags[launches[0] or 0]


def test_what_differs_on_the_clients_side_only_shares_a_launch(lab: Lab) -> None:
    arms = '[[arm]]\nname = "cold"\nset = { temperature = 0.0 }\n[[arm]]\nname = "warm"\nset = { temperature = 0.9 }\n'
    view = lab.run_until_ended(lab.queue(arms))
    assert view.row.state == "done", (view.trials, lab.log())
    assert len(list_launches(lab.store)) == 1
    assert len({trial.launch_id for trial in view.trials}) == 1


def test_an_engine_that_cannot_start_fails_its_trial_with_cause_and_cure_and_the_rest_goes_on(lab: Lab) -> None:
    lab.engine_behaves(refuse_start=True, die_with_flag="--max-num-seqs 1 ", last_words=OUT_OF_MEMORY)
    view = lab.run_until_ended(lab.queue(TWO_ARMS), timeout_s=90)
    assert [(trial.state, trial.failure) for trial in view.trials] == [("failed", "out-of-memory"), ("done", None)]
    failed = view.trials[0]
    assert failed.message is not None and failed.log_tail is not None and failed.launch_id is not None
    assert "31.4/47.4" in word_message(failed.message) and "0.66" in word_message(failed.message)
    assert "Engine core initialization failed" in failed.log_tail
    launch = next(each for each in list_launches(lab.store) if each.id == failed.launch_id)
    assert (launch.state, launch.failure) == ("failed", "out-of-memory")
    assert view.row.state == "done"


def test_a_failed_start_keeps_the_remedies_with_the_values_of_its_launch(lab: Lab) -> None:
    words = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB."]
    lab.engine_behaves(refuse_start=True, last_words=words)
    knobs = 'gpu_memory_utilization = 0.9, max_model_len = 8192, kv_cache_dtype = "auto"'
    arm = f'[[arm]]\nname = "full"\nset = {{ {knobs} }}\n'
    view = lab.run_until_ended(lab.queue(arm), timeout_s=90)
    lower = {"gpu_memory_utilization": 0.85}
    shorter = {**lower, "max_model_len": 4096}
    remedies = [dict(remedy.changes) for remedy in stored_remedies(view.trials[0].message)]
    assert remedies == [lower, shorter, {**shorter, "kv_cache_dtype": "fp8"}]
    assert "0.9 → 0.85" in word_message(view.trials[0].message or {})


def test_a_start_with_a_remedy_is_not_taken_back_by_the_host(lab: Lab) -> None:
    pair = read_pair(lab.config_dir).with_knobs({"gpu_memory_utilization": 0.85})
    payload = {"settings_text": pair.settings_text, "config_text": pair.config_text}
    explicit = {**payload, "explicit": ["gpu_memory_utilization"]}
    serve = add_intent(lab.store, lab.host, "serve", payload=explicit, person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    argv = list_launches(lab.store)[0].argv
    assert argv[argv.index("--gpu-memory-utilization") + 1] == "0.85"


def test_an_engine_that_dies_in_mid_trial_is_replaced_for_the_next_one(lab: Lab) -> None:
    words = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB."]
    # the first request asks whether it is ready, the second warms up: it dies under the measured ones
    lab.engine_behaves(die_at_request=4, die_with_flag="--max-num-seqs 1 ", last_words=words, gap_ms=20)
    view = lab.run_until_ended(lab.queue(TWO_ARMS, tokens=20))
    assert [(trial.state, trial.failure) for trial in view.trials] == [("failed", "engine-died"), ("done", None)]
    message = view.trials[0].message
    assert message is not None and "CUDA out of memory" in word_message(message)
    assert [row.arm_name for row in view.measurements] == ["many"]
    assert len(list_launches(lab.store)) == 2


def test_a_knob_out_of_range_fails_within_seconds_and_launches_nothing(lab: Lab) -> None:
    settings = lab.config_dir / "settings.json"
    experiment = lab.queue(TWO_ARMS)  # queued with good settings; the second pair is bad from the start
    good = settings.read_text("utf-8")
    settings.write_text(good.replace('"gpu_memory_utilization": 0.90', '"gpu_memory_utilization": 90'), "utf-8")
    add_intent(lab.store, lab.host, "serve", person="tester")
    assert lab.run_until_ended(experiment).row.state == "done"
    wait_for(lambda: list_launches(lab.store)[0].state == "failed")
    launch = list_launches(lab.store)[0]
    assert (launch.failure, launch.pid) == ("bad-config", None)
    assert launch.ended is not None and "gpu_memory_utilization" in word_message(launch.ended["message"])


def test_a_model_that_is_not_there_fails_within_seconds(lab: Lab) -> None:
    arm = f'[[arm]]\nname = "gone"\nset = {{ model = "{lab.run_dir}/no-such-model" }}\n'
    began = time.monotonic()
    view = lab.run_until_ended(lab.queue(arm), timeout_s=60)
    assert (view.row.state, view.trials[0].failure) == ("failed", "model-missing")
    assert time.monotonic() - began < 60
    assert view.trials[0].message is not None and "no-such-model" in word_message(view.trials[0].message)
    assert list_launches(lab.store) == ()


def test_a_port_that_the_pair_names_and_another_has_fails_by_its_owner(lab: Lab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = lab.config_dir / "settings.json"
        text = settings.read_text("utf-8")
        settings.write_text(text.replace("{", f'{{\n  "engine": {{"args": {{"port": {port}}}}},', 1), "utf-8")
        view = lab.run_until_ended(lab.queue('[[arm]]\nname = "engine"\n'), timeout_s=60)
    assert view.trials[0].failure == "port-taken", (view.trials, lab.log())
    assert view.trials[0].message is not None
    assert f"Port {port} on 127.0.0.1 is in use by process {os.getpid()}" in word_message(view.trials[0].message)


def test_a_served_engine_stays_until_someone_stops_it(lab: Lab) -> None:
    serve = add_intent(lab.store, lab.host, "serve", person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    launch = list_launches(lab.store)[0]
    assert (launch.state, launch.port is not None) == ("ready", True)
    assert StubServer(launch.port or 0).running() == 0
    stop = add_intent(lab.store, lab.host, "stop-engine", person="tester")
    wait_for(lambda: get_intent(lab.store, stop).outcome == "done")  # type: ignore[union-attr]
    assert list_launches(lab.store)[0].state == "stopped"
    assert nothing_is_left(lab)
    wait_for(lambda: (host := get_host(lab.store, lab.host)) is not None and host.runner_state == "idle")


def test_a_trial_takes_the_place_of_a_served_engine_that_differs(lab: Lab) -> None:
    serve = add_intent(lab.store, lab.host, "serve", person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    view = lab.run_until_ended(lab.queue('[[arm]]\nname = "one"\nset = { max_num_seqs = 1 }\n'))
    assert view.row.state == "done"
    wait_for(lambda: nothing_is_left(lab))
    wait_for(lambda: [each.state for each in list_launches(lab.store)] == ["stopped", "stopped"])


def test_a_served_engine_that_dies_is_shown_as_failed(lab: Lab) -> None:
    serve = add_intent(lab.store, lab.host, "serve", person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    launch = list_launches(lab.store)[0]
    assert launch.pid is not None
    os.kill(launch.pid, signal.SIGKILL)
    wait_for(lambda: list_launches(lab.store)[0].state == "failed")
    assert list_launches(lab.store)[0].failure == "engine-died"


@pytest.mark.parametrize(
    "after",
    [
        # vLLM's API process looks every 5 s whether its core lives; until then it answers, with errors
        {"lingers_s": 5.5},
        # with a question to the core open it closes its port and then waits for ever
        {"lingers_s": 3600, "closes_its_port": True},
    ],
)
def test_an_engine_whose_core_died_fails_its_trial_although_its_api_process_lingers(
    lab: Lab, after: dict[str, object]
) -> None:
    lab.engine_behaves(core_and_worker=True, gap_ms=100, **after)
    experiment = lab.queue(TWO_ARMS, tokens=20)
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    launch = list_launches(lab.store)[0]
    core = next(pid for pid in group_members(launch.pgid or 0) if "core" in psutil.Process(pid).cmdline())
    os.kill(core, signal.SIGKILL)
    view = lab.run_until_ended(experiment)
    assert [(trial.state, trial.failure) for trial in view.trials] == [("failed", "engine-died"), ("done", None)]
    assert [row.arm_name for row in view.measurements] == ["many"]
    wait_for(lambda: nothing_is_left(lab))


def test_requests_that_fail_on_an_engine_that_is_well_are_its_trials_result(lab: Lab) -> None:
    lab.engine_behaves(core_and_worker=True, fail_status=500)
    view = lab.run_until_ended(lab.queue('[[arm]]\nname = "engine"\n'))
    assert (view.trials[0].state, view.trials[0].failure) == ("failed", "all-requests-failed")
    assert view.measurements[0].summary.failed == {"server": 4}
