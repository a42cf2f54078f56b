"""Ready means ready (R41, R42); a death is noticed at once and explained (R37)."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from lab.engine.definition import EngineDefinition
from lab.engine.phases import PhaseReader
from lab.engine.process import EngineProcess, stop
from lab.engine.progress import Progress
from lab.engine.readiness import EngineFailed, LaunchCancelled, ReadyReport, wait_ready
from lab.host.process_group import group_identities
from lab.host.process_identity import group_members
from lab.messages import word_finding
from tests.engine.fakes import Launcher, wait_for


def ready(process: EngineProcess, definition: EngineDefinition, stuck_s: float = 20.0) -> ReadyReport:
    return wait_ready(process, definition, f"http://127.0.0.1:{process.port}/v1", "smol", None, stuck_s)


def failure(process: EngineProcess, definition: EngineDefinition, stuck_s: float = 20.0) -> EngineFailed:
    with pytest.raises(EngineFailed) as caught:
        ready(process, definition, stuck_s)
    return caught.value


def test_ready_only_after_one_token_was_answered(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    process = launch_fake(open_s=0.3, models_s=0.8, token_s=1.4)
    report = ready(process, vllm)
    assert 1.4 <= report.seconds < 4.0


def test_an_engine_that_still_loads_and_ignores_sigterm_is_ended_soon(launch_fake: Launcher) -> None:
    process = launch_fake(open_s=None, ignore_sigterm=True, lines=["loading"])
    wait_for(lambda: "loading" in process.log_path.read_text())
    proof = stop(process, 60)
    assert (proof.ended, proof.how) == (True, "sigkill")
    assert proof.seconds < 5


def test_phases_come_from_the_log_and_are_told(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    process = launch_fake(
        lines=[
            "(APIServer pid=1) INFO 11-29 22:12:58 [model.py:733] Resolved architecture: LlamaForCausalLM",
            "(Worker pid=2) INFO 11-29 22:13:19 [cpu_model_runner.py:68] Starting to load model /models/smol...",
        ],
        token_s=0.8,
    )
    told: list[tuple[str, str]] = []
    url = f"http://127.0.0.1:{process.port}"
    report = wait_ready(process, vllm, url, "smol", None, 20, on_phase=lambda phase, line: told.append((phase, line)))
    assert told[-1] == ("loading-weights", "Starting to load model /models/smol...")
    assert {"launching", "loading-weights"} <= set(report.phases)


def test_an_engine_that_never_answers_and_does_nothing_is_stuck(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    failed = failure(launch_fake(token_s=None), vllm, stuck_s=1.5)
    assert failed.failure_class == "start-timeout"
    assert "got on no more" in word_finding(failed.remedies[0])


def test_an_engine_that_was_stopped_is_stuck_and_its_last_line_is_said(
    launch_fake: Launcher, vllm: EngineDefinition
) -> None:
    process = launch_fake(core_and_worker=True, open_s=None, murmur_s=0.05)
    wait_for(lambda: len(group_members(process.pgid)) == 3 and "aaaaaa" in process.log_path.read_text())
    for pid in group_members(process.pgid):
        os.kill(pid, signal.SIGSTOP)
    last = process.log_path.read_text().splitlines()[-1]
    began = time.monotonic()
    failed = failure(process, vllm, stuck_s=1.0)
    assert 1.0 <= time.monotonic() - began < 15.0
    assert (failed.failure_class, failed.lines) == ("start-timeout", (last,))
    assert stop(process, 0.2).ended


def test_a_slow_engine_that_gets_on_may_take_as_long_as_it_takes(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    process = launch_fake(open_s=5.0, murmur_s=0.2)
    assert ready(process, vllm, stuck_s=2.5).seconds >= 5.0


def test_lines_that_only_count_up_are_no_progress(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    reader = PhaseReader(log, (), 0)
    log.write_text('INFO: 127.0.0.1:40512 - "GET /v1/models HTTP/1.1" 503\n')
    assert (reader.read(), reader.news) == (True, 1)
    log.write_text('INFO: 127.0.0.1:40512 - "GET /v1/models HTTP/1.1" 503\n' * 2)
    assert (reader.read(), reader.news) == (False, 1)
    with log.open("a") as file:
        file.write('INFO: 127.0.0.1:40999 - "GET /v1/models HTTP/1.1" 503\nloaded\n')
    reader.read()
    assert reader.news == 2


def test_computing_alone_counts_for_a_limited_time(launch_fake: Launcher) -> None:
    process = launch_fake(open_s=None, spin=True)
    wait_for(lambda: cpu_s(process) >= 0.6)  # its own start reads files, which is progress
    now = [0.0]
    progress = Progress(
        lambda: group_identities(process.pgid), lambda: 0, stuck_s=3, spinning_s=10, clock=lambda: now[0]
    )
    for moment in (2.0, 4.0, 6.0, 8.0):
        used_s = cpu_s(process)
        wait_for(lambda used_s=used_s: cpu_s(process) >= used_s + 0.2)
        now[0] = moment
        assert progress.still_for_s() is None
    now[0] = 10.0
    assert progress.still_for_s() == 10.0


def cpu_s(process: EngineProcess) -> float:
    return sum(psutil.Process(process.pid).cpu_times()[:2])


def test_a_death_is_noticed_at_once_with_the_root_line(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    traceback = [f'  File "/venv/vllm/part{number}.py", line {number}, in call' for number in range(30)]
    root = (
        "(EngineCore_DP0 pid=411) ERROR ValueError: Free memory on device cuda:0 (31.4/47.4 GiB) on startup is less "
        "than desired GPU memory utilization (0.95, 45.0 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes."
    )
    last = "RuntimeError: Engine core initialization failed. See root cause above."
    process = launch_fake(lines=[*traceback, root, *traceback, last], exit_after_s=0.3, open_s=None)
    began = time.monotonic()
    failed = failure(process, vllm, stuck_s=120)
    assert time.monotonic() - began < 3
    assert failed.failure_class == "out-of-memory"
    assert failed.lines[0].startswith("ValueError: Free memory on device cuda:0 (31.4/47.4 GiB)")
    assert "at most 0.66" in word_finding(failed.remedies[0])


def test_cancelling_is_obeyed_at_once_even_in_mid_answer(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    process = launch_fake(answer_takes_s=30)
    wanted = threading.Event()
    timer = threading.Timer(1.0, wanted.set)
    began = time.monotonic()
    timer.start()
    with pytest.raises(LaunchCancelled):
        wait_ready(process, vllm, f"http://127.0.0.1:{process.port}", "smol", None, 60, cancelled=wanted.is_set)
    assert time.monotonic() - began < 1.6
    assert process.poll() is None
    assert stop(process, 5).ended


def test_another_served_name_is_refused_and_offered(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    failed = failure(launch_fake(served="/models/smol"), vllm)
    assert failed.failure_class == "bad-config"
    assert "/models/smol" in word_finding(failed.remedies[0])


def test_a_port_that_another_process_answers_is_not_ready(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    ours = launch_fake(open_s=None)
    stranger = launch_fake()
    own_port, ours.port = ours.port, stranger.port  # taken between the check and the bind
    failed = failure(ours, vllm)
    ours.port = own_port
    assert failed.failure_class == "port-taken"
    assert failed.remedies[0].params["pid"] == stranger.pid


def test_a_refused_first_request_ends_the_waiting(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    body = '{"error":{"message":"default chat template is no longer allowed"}}'
    failed = failure(launch_fake(token_s=None, token_status=400, token_body=body), vllm)
    assert failed.failure_class == "unsupported"
    assert "chat template" in failed.lines[0]


def test_a_wanted_key_is_said_and_the_key_is_not_shown(launch_fake: Launcher, vllm: EngineDefinition) -> None:
    body = '{"error":"Invalid key sk-test-LEAK-0001"}'
    failed = failure(launch_fake(token_s=None, token_status=401, token_body=body), vllm)
    assert failed.failure_class == "bad-config"
    assert not any("LEAK-0001" in text for text in (*failed.lines, *map(word_finding, failed.remedies)))
