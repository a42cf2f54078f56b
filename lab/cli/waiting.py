"""Waiting for an experiment: progress on stderr, an end that says what goes on without us."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lab.cli.result_table import trial_reason
from lab.cli.store_access import FINISHED
from lab.findings import Finding, LabError, Param, error
from lab.host.runner_process import runner_alive
from lab.messages import word_finding
from lab.plan import TrialTime, estimate_s

if TYPE_CHECKING:
    from lab.environment import Environment
    from lab.store import ExperimentView, Store, TrialRow

POLL_S = 0.5
REPEAT_LINE_S = 10.0
# a runner that has just been replaced holds no lock for a moment
RUNNER_GONE_S = 5.0
# the runner beats once a second
SILENT_S = 5.0


def wait_for(store: Store, env: Environment, experiment_id: int) -> None:
    """Return when the experiment has ended.

    Ctrl-C raises KeyboardInterrupt after a line that says that the experiment goes on. Raises `LabError`
    "runner-gone" when no runner is left to finish it.
    """
    try:
        _follow(store, env, experiment_id)
    except KeyboardInterrupt:
        _tell(f"Experiment {experiment_id} goes on. End it with: python -m lab stop {experiment_id}")
        raise


def _follow(store: Store, env: Environment, experiment_id: int) -> None:
    from lab.store import get_experiment

    told, trouble = _Told(), _Trouble(store, env)
    last_alive = time.monotonic()
    while True:
        try:
            view = get_experiment(store, experiment_id)
        except LabError as problem:
            trouble.tell(problem)
            time.sleep(POLL_S)
            continue
        if view.row.state in FINISHED:
            break
        told.tell(view)
        trouble.look(view.row.host)
        if runner_alive(env):
            last_alive = time.monotonic()
        elif time.monotonic() - last_alive > RUNNER_GONE_S:
            raise error("runner-gone", id=experiment_id, log=str(env.run_dir / "runner.log"))
        time.sleep(POLL_S)
    told.tell(view)


class _Trouble:
    """Says why nothing goes on: a database that takes no writes, or a runner without a sign of life."""

    def __init__(self, store: Store, env: Environment) -> None:
        self._store = store
        self._env = env
        self._last_line = 0.0

    def look(self, host: str) -> None:
        """Where the runner has not beaten for a while, look why."""
        from lab.store import get_host, write_problem

        row = get_host(self._store, host)
        if row is None or row.heartbeat_at is None:
            return
        silent_s = (datetime.now(UTC) - row.heartbeat_at).total_seconds()
        if silent_s < SILENT_S or time.monotonic() - self._last_line < REPEAT_LINE_S:
            return
        params: dict[str, Param] = {"seconds": round(silent_s), "log": str(self._env.run_dir / "runner.log")}
        self._say(write_problem(self._store) or Finding("runner-silent", "warning", params))

    def tell(self, problem: LabError) -> None:
        """A database that is away for a while is waited for; anything else is raised."""
        from lab.store import PASSING

        if problem.findings[0].code not in PASSING:
            raise problem
        if time.monotonic() - self._last_line >= REPEAT_LINE_S:
            self._say(problem.findings[0])

    def _say(self, finding: Finding) -> None:
        self._last_line = time.monotonic()
        _tell(f"Waiting: {word_finding(finding)}")


class _Told:
    """Says each change once, and where a long trial stands now and then."""

    def __init__(self) -> None:
        self._states: dict[int, str] = {}
        self._last_line = 0.0

    def tell(self, view: ExperimentView) -> None:
        for number, trial in enumerate(view.trials, start=1):
            changed = trial.state != self._states.get(trial.id, "queued")
            overdue = trial.state in ("warming", "measuring") and time.monotonic() - self._last_line > REPEAT_LINE_S
            self._states[trial.id] = trial.state
            if changed or overdue:
                self._last_line = time.monotonic()
                _tell(trial_line(trial, number, len(view.trials)) + rest_line(view))


def trial_line(trial: TrialRow, number: int, total: int) -> str:
    """One line on one trial: place, arm, state, requests done, time left, reason."""
    parts = [f"[{number}/{total}] {trial.arm_name}, repeat {trial.block}: {trial.state}"]
    progress = trial.progress or {}
    if trial.state == "measuring" and progress.get("done") is not None:
        parts.append(f"{progress['done']}/{progress.get('total') or '?'} requests")
        eta = progress.get("eta_s")
        if isinstance(eta, int | float):
            parts.append(f"about {eta:.0f} s left in this trial")
    if trial.state in ("failed", "cancelled") and (reason := trial_reason(trial)):
        parts.append(reason)
    return ", ".join(parts)


def rest_line(view: ExperimentView) -> str:
    """The time left for the whole experiment, from what its trials took so far; empty before any is done."""
    if all(trial.ended_at is not None for trial in view.trials):
        return ""
    left_s = estimate_s([_time(trial) for trial in view.trials])
    return "" if left_s is None else f" (experiment: about {left_s:.0f} s left)"


def _time(trial: TrialRow) -> TrialTime:
    if trial.started_at is None:
        return TrialTime(trial.arm_id)
    elapsed_s = ((trial.ended_at or datetime.now(UTC)) - trial.started_at).total_seconds()
    if trial.ended_at is not None:
        return TrialTime(trial.arm_id, duration_s=elapsed_s)
    return TrialTime(trial.arm_id, elapsed_s=elapsed_s if trial.state != "queued" else 0.0)


def _tell(line: str) -> None:
    click.echo(" ".join(line.split()), err=True)
