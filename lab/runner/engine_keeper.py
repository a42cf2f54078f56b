"""The one engine of this host: provided when a trial or a person wants it, ended with proof, never left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from lab.engine.command import EngineCommand
from lab.engine.effective import compare_effective, read_effective
from lab.engine.phases import FIRST_PHASE
from lab.engine.port import LOOPBACK
from lab.engine.process import EngineProcess, StopProof, launch, stop
from lab.engine.readiness import EngineFailed, wait_ready
from lab.findings import LabError
from lab.records.states import LaunchState
from lab.records.summary import Mark
from lab.runner.dying import cannot_serve
from lab.runner.engine_failures import death_of, start_failure
from lab.runner.engine_request import EngineRequest, choose_port, engine_command
from lab.runner.outcome import TrialFailed, failed, failed_by
from lab.runner.patience import insist
from lab.runner.site import Site
from lab.store import add_launch, update_launch

GRACE_S = 15.0
PORT_ATTEMPTS = 3
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """A launch whose process group may still live. `marks` say where it did not take what was asked."""

    launch_id: int | None
    request: EngineRequest
    command: EngineCommand
    process: EngineProcess
    log_path: Path
    marks: tuple[Mark, ...] = ()
    ready: bool = False

    @property
    def root_url(self) -> str:
        return f"http://{LOOPBACK}:{self.command.port}"

    @property
    def api_key(self) -> str | None:
        """The engine's own key, where the user has set its variable."""
        return self.command.environment.get(self.command.api_key_env) if self.command.api_key_env else None


class EngineKeeper:
    """Owns at most one engine at any time."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._engine: RunningEngine | None = None
        # a person asked for it to stay up; otherwise it ends when the queue is empty
        self.kept_up = False

    @property
    def engine(self) -> RunningEngine | None:
        return self._engine

    def provide(self, request: EngineRequest, cancelled: Callable[[], bool]) -> RunningEngine:
        """The engine as wanted: the running one where only the client's side differs, else a new one.

        Raises `TrialFailed` with the class and the words of the failed start, or `LaunchCancelled`.
        """
        if self._fits(request):
            assert self._engine is not None  # noqa: S101
            return self._engine
        self.end()
        for _ in range(PORT_ATTEMPTS - 1):
            try:
                return self._launch(request, cancelled)
            except TrialFailed as problem:
                # someone took the free port between our look and the engine's bind: choose another
                if problem.failure != "port-taken" or request.port is not None:
                    raise
        return self._launch(request, cancelled)

    def alive(self) -> bool:
        """Whether the engine's process still runs; False where there is none."""
        return self._engine is not None and self._engine.process.poll() is None

    def death(self) -> TrialFailed:
        """Why the engine that should run does not: the diagnosis of its log."""
        engine = self._engine
        if engine is None:
            return failed("engine-died", line=None)
        return death_of(engine)

    def show_busy(self, busy: bool) -> None:
        """Say of the launch whether a trial uses it now."""
        if self._engine is not None and self._engine.ready:
            self._store_news(self._engine, state="busy" if busy else "ready")

    def end(self, problem: TrialFailed | None = None) -> None:
        """End the whole group and prove it gone; `problem` is written as the launch's failure.

        Raises `TrialFailed` "internal" when members of the group will not go: nothing may start beside them.
        """
        engine = self._engine
        self.kept_up = False
        if engine is None:
            return
        with suppress(LabError):  # a database that is busy must not keep an engine alive
            self._store_news(engine, state="stopping")
        proof = stop(engine.process, GRACE_S)
        _log.info("launch %s ended: %s", engine.launch_id, proof)
        if not proof.ended:
            pids = ", ".join(str(pid) for pid in proof.left)
            raise TrialFailed("internal", {"code": "engine-not-gone", "pids": pids}, launch_id=engine.launch_id)
        self._engine = None
        self._site.heartbeat.show(launch_id=None)
        failure = problem.failure if problem else None
        state: LaunchState = "failed" if problem else "stopped"
        ended = _ending(proof, problem)
        insist(lambda: self._store_news(engine, state=state, failure=failure, ended=ended), ending=self._site.shutdown)

    def _store_news(
        self,
        engine: RunningEngine,
        *,
        state: LaunchState,
        failure: str | None = None,
        ended: Mapping[str, object] | None = None,
    ) -> None:
        if engine.launch_id is not None:
            update_launch(
                self._site.store,
                engine.launch_id,
                state=state,
                failure=failure,
                ended=ended,
                after_s=engine.process.age_s,
            )

    def _fits(self, request: EngineRequest) -> bool:
        """The same arguments and environment, the port aside: what differs is on the client's side."""
        engine = self._engine
        if engine is None or not engine.ready or not self.alive():
            return False
        if request.port not in (None, engine.command.port):
            return False
        wanted = engine_command(self._site, request, engine.command.port)
        same = (wanted.argv, wanted.environment) == (engine.command.argv, engine.command.environment)
        return same and not cannot_serve(engine)

    def _launch(self, request: EngineRequest, cancelled: Callable[[], bool]) -> RunningEngine:
        command = engine_command(self._site, request, choose_port(request.port))
        log_path = self._new_log(command.port)
        engine = self._spawn(request, command, log_path)
        try:
            self._engine = engine = self._wait_ready(engine, cancelled)
        except EngineFailed as problem:
            failure = start_failure(problem, engine)
            self.end(failure)
            raise failure from problem
        return engine

    def _spawn(self, request: EngineRequest, command: EngineCommand, log_path: Path) -> RunningEngine:
        _log.info("launch: %s", command.shown)
        try:
            process = launch(command, log_path)
        except LabError as problem:
            finding = problem.findings[0]
            raise failed_by(finding, "port-taken" if finding.code == "port-taken" else "crash") from problem
        self._engine = RunningEngine(None, request, command, process, log_path)
        launch_id = add_launch(
            self._site.store,
            self._site.host,
            request.definition.kind,
            command.argv,
            tuple(command.environment),
            str(log_path),
            process.pid,
            process.pgid,
            process.start_time,
            command.port,
            command.served_name,
            FIRST_PHASE,
        )
        self._engine = replace(self._engine, launch_id=launch_id)
        self._site.heartbeat.show(launch_id=launch_id)
        return self._engine

    def _wait_ready(self, engine: RunningEngine, cancelled: Callable[[], bool]) -> RunningEngine:
        command, definition = engine.command, engine.request.definition
        report = wait_ready(
            engine.process,
            definition,
            engine.root_url,
            command.served_name,
            engine.api_key,
            cancelled=cancelled,
            on_phase=self._tell_phase,
        )
        if engine.launch_id is not None:
            after_s = engine.process.age_s
            update_launch(
                self._site.store, engine.launch_id, state="ready", ready_s=report.seconds, after_s=after_s
            )  # fmt: skip
        # it can be used by now, but not measured: the engine gathers facts about its host for this, for seconds
        effective = read_effective(engine.root_url, definition, engine.api_key, cancelled)
        if engine.launch_id is not None:
            update_launch(self._site.store, engine.launch_id, effective=effective)
        return replace(engine, marks=compare_effective(command.flags, effective), ready=True)

    def _tell_phase(self, phase: str, line: str) -> None:
        engine = self._engine
        if engine is not None and engine.launch_id is not None:
            with suppress(LabError):  # news of a start is not worth failing it
                update_launch(
                    self._site.store, engine.launch_id, phase=phase, last_line=line, after_s=engine.process.age_s
                )

    def _new_log(self, port: int) -> Path:
        return self._site.log_dir / f"engine-{datetime.now(UTC):%Y%m%d-%H%M%S}-{port}.log"


def _ending(proof: StopProof, problem: TrialFailed | None) -> dict[str, object]:
    ending = proof.as_json()
    if problem is not None:
        ending |= {"message": problem.message, "log_tail": problem.log_tail}
    return ending
