"""A busy engine is not taken for a dead one, and a hanging one not for a busy one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.engine.definition import load_definition
from lab.engine.model import ModelRef
from lab.engine.process import launch, stop
from lab.environment import ROOT
from lab.host.process_identity import group_members
from lab.messages import word
from lab.runner.dying import is_dying
from lab.runner.engine_keeper import RunningEngine
from lab.runner.engine_request import EngineRequest
from lab.runner.health import Vigil, ask_health
from lab.store import add_intent, get_host, get_intent, list_launches
from tests.engine.fakes import fake_command, unused_port
from tests.runner.labs import Lab, wait_for

Starter = Callable[..., RunningEngine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    engines: list[RunningEngine] = []
    definition = load_definition("vllm", ROOT / "configs")
    request = EngineRequest(
        definition, ModelRef("smol", None, "hub", "smol"), {}, frozenset(), None, python=Path(sys.executable)
    )

    def run(**behaviour: object) -> RunningEngine:
        command = fake_command(definition, unused_port(), **behaviour)
        log = tmp_path / f"{len(engines)}.log"
        engines.append(RunningEngine(None, request, command, launch(command, log), log, ready=True))
        wait_for(lambda: ask_health(engines[-1]) != "gone")
        return engines[-1]

    yield run
    for engine in engines:
        stop(engine.process, 0.0)


def until_lost(vigil: Vigil, within_s: float) -> str | None:
    deadline = time.monotonic() + within_s
    while (lost := vigil.look()) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return lost


def test_an_engine_that_computes_too_hard_to_answer_is_not_lost(start: Starter) -> None:
    engine = start(health_takes_s=60.0)
    vigil = Vigil(engine, hangs_after_s=1.0)
    assert until_lost(vigil, within_s=8.0) is None
    assert vigil.health == "late"


def test_an_engine_that_neither_answers_nor_computes_hangs(start: Starter) -> None:
    engine = start(core_and_worker=True, health_takes_s=0.0)
    vigil = Vigil(engine, hangs_after_s=1.0)
    assert (vigil.look(), vigil.health) == (None, "well")
    for pid in group_members(engine.process.pgid):
        os.kill(pid, signal.SIGSTOP)
    assert until_lost(vigil, within_s=60.0) == "hangs"


def test_an_engine_whose_port_is_closed_is_dead_after_a_while(start: Starter) -> None:
    engine = start(exit_after_s=None)
    closed = RunningEngine(
        None, engine.request, fake_command(engine.request.definition, unused_port()), engine.process, engine.log_path
    )
    vigil = Vigil(closed, dead_after_s=0.5)
    assert vigil.look() is None
    assert until_lost(vigil, within_s=60.0) == "dead"


def test_an_engine_without_a_health_endpoint_is_never_lost_for_that(start: Starter) -> None:
    vigil = Vigil(start(), dead_after_s=0.2, hangs_after_s=0.2)
    assert until_lost(vigil, within_s=1.0) is None
    assert vigil.health == "unknown"


def test_a_well_engine_is_told_soon_after_requests_failed(start: Starter) -> None:
    engine = start(health_takes_s=0.0)
    began = time.monotonic()
    assert not is_dying(engine)
    assert time.monotonic() - began < 10.0


def test_a_served_engine_that_hangs_is_shown_as_failed(lab: Lab) -> None:
    lab.engine_behaves(core_and_worker=True)
    serve = add_intent(lab.store, lab.host, "serve", person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    launch_row = list_launches(lab.store)[0]
    for pid in group_members(launch_row.pgid or 0):
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: list_launches(lab.store)[0].state == "failed", timeout_s=60)
    failed = list_launches(lab.store)[0]
    assert (failed.failure, ((failed.ended or {})["message"])["code"]) == ("engine-died", "trial-engine-hangs")
    assert not group_members(launch_row.pgid or 0)
    wait_for(lambda: (host := get_host(lab.store, lab.host)) is not None and host.runner_state == "idle")


def test_a_served_engine_that_is_killed_is_not_said_to_have_been_measured(lab: Lab) -> None:
    lab.engine_behaves()
    serve = add_intent(lab.store, lab.host, "serve", person="tester")
    lab.start_runner()
    wait_for(lambda: get_intent(lab.store, serve).outcome == "done")  # type: ignore[union-attr]
    os.kill(list_launches(lab.store)[0].pid or 0, signal.SIGKILL)
    wait_for(lambda: list_launches(lab.store)[0].state == "failed", timeout_s=60)
    message = (list_launches(lab.store)[0].ended or {})["message"]
    assert (message["code"], message["signal"]) == ("unused-engine-killed", "SIGKILL")
    assert "no trial used it" in word(message["code"], message)
    assert "thrown away" not in word(message["code"], message)
