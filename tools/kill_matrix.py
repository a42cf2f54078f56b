"""Kills each process of a lab at each moment of a trial, and looks whether the lab makes it good.

    python tools/kill_matrix.py                                 every cell, on a real vLLM: about a minute a cell
    python tools/kill_matrix.py --engine stub                   every cell, with a stand-in for vLLM: seconds a cell
    python tools/kill_matrix.py --cells core:measuring,runner:starting

For every cell it queues a tiny experiment of two arms with `python -m lab run`, kills one process with SIGKILL, and
looks at what follows: no process and no port is left, the trial is marked as it should be, the next trial runs,
everything measured before is still stored. One line a cell and a total; exit status 0 where all hold, else 1.
It works in a temporary folder with a database, a lock and a runner of its own, and touches no other process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab.engine.port import port_is_free  # noqa: E402
from lab.environment import read_environment  # noqa: E402
from lab.host.facts import host_facts  # noqa: E402
from lab.host.lock import read_lock  # noqa: E402
from lab.host.process_identity import group_members  # noqa: E402
from lab.host.runner_process import ensure_runner, stop_runner  # noqa: E402
from lab.store import (  # noqa: E402
    ExperimentView,
    LaunchRow,
    Store,
    get_experiment,
    list_launches,
    list_requests,
    open_store,
    request_stop,
)

PROCESSES = ("api", "core", "worker", "runner", "loader")
MOMENTS = ("starting", "warming", "measuring", "stopping")
ENGINE = ("api", "core", "worker")
NEVER = (("loader", "starting"),)  # there is none yet
# two stages, so that one is measured and stored when the second is killed
EXPERIMENT = """
name = "{name}"
repeats = 1
[workload]
kind = "closed"
concurrency = [2, 3]
requests = 6
output_tokens = 16
prompts = "mixed"
warmup_requests = 1
request_timeout_s = 120
[[arm]]
name = "killed"
set = {{ max_num_seqs = 4{backend} }}
[[arm]]
name = "next"
set = {{ max_num_seqs = {other}{backend} }}
"""
# vLLM on one device has no worker of its own unless it is asked to have one
WORKER = ', distributed_executor_backend = "mp"'
STUB = {"core_and_worker": True, "opens_after_s": 0.7, "gap_ms": 15, "lingers_s": 1.0, "stop_takes_s": 0.6}


@dataclass(frozen=True)
class Cell:
    process: str
    moment: str

    def __str__(self) -> str:
        return f"{self.process}:{self.moment}"


@dataclass(frozen=True)
class Wanted:
    """What the killed arm's trial must come to; `kept` measurements of it were stored before the kill."""

    state: str = "failed"
    failures: frozenset[str | None] = frozenset({"engine-died"})
    attempt: int = 1
    following: str = "done"
    experiment: str = "done"


def wanted(cell: Cell) -> Wanted:
    if cell == Cell("loader", "stopping"):
        return Wanted("cancelled", frozenset({None}), following="cancelled", experiment="stopped")
    if cell.process == "runner":
        # what is stopped in this cell is the engine of a trial that is done
        return Wanted("done", frozenset({None}), attempt=1 if cell.moment == "stopping" else 2)
    if cell.moment == "stopping":
        return Wanted("done", frozenset({None}))
    if cell.process == "loader":
        return Wanted(failures=frozenset({"load-failed"}))
    return Wanted(failures=frozenset({"engine-died", "crash"} if cell.moment == "starting" else {"engine-died"}))


class Broken(Exception):  # noqa: N818  what the matrix looks for
    """The lab did not do what it should."""


@dataclass
class Matrix:
    folder: Path
    stub: bool
    patience_s: float
    stored: dict[int, int] = field(default_factory=dict)  # measurement → requests, of all cells so far

    @property
    def store(self) -> Store:
        return self._store

    def open(self) -> None:
        self._store = open_store(read_environment().database_url)

    def run(self, cell: Cell) -> str:
        """Run one cell; returns what was seen. Raises `Broken`."""
        experiment = self._queue(cell)
        pid = self._wait_for_victim(cell, experiment)
        before = self._view(experiment)
        self._remember(before)
        engine = self._engine()
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        if cell.process == "runner":
            self._until(lambda: not self._alive(engine), "the engine outlives its runner", 30)
            self._until(lambda: not self._strays(), "something outlives the runner", 10)
            ensure_runner(read_environment())
        self._until(lambda: self._view(experiment).row.ended_at is not None, "the experiment does not end")
        seconds = time.monotonic() - killed
        self._until(self._is_quiet, "something is left of the engines", 30)
        self._compare(cell, before, self._view(experiment))
        if wanted(cell).following != "done":
            self._next_runs(cell)
        return f"{seconds:5.1f} s to the end of the experiment"

    def _queue(self, cell: Cell, *, other: int = 4) -> int:
        # arms that differ make the runner stop the first one's engine before the second
        different = 5 if cell.moment == "stopping" and cell.process != "loader" else other
        text = EXPERIMENT.format(name=str(cell), other=different, backend="" if self.stub else WORKER)
        file = self.folder / "experiment.toml"
        file.write_text(text, "utf-8")
        command = [sys.executable, "-m", "lab", "run", str(file), "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise Broken(f"`lab run` ended with {done.returncode}: {done.stderr.strip()}")
        return int(json.loads(done.stdout)["experiment"]["id"])

    def _next_runs(self, cell: Cell) -> None:
        experiment = self._queue(cell)
        self._until(lambda: self._view(experiment).row.ended_at is not None, "the next experiment does not end")
        view = self._view(experiment)
        self._remember(view)
        if [trial.state for trial in view.trials] != ["done", "done"]:
            raise Broken(f"the next experiment's trials: {[(each.state, each.failure) for each in view.trials]}")
        self._until(self._is_quiet, "something is left of the engines", 30)

    def _wait_for_victim(self, cell: Cell, experiment: int) -> int:
        deadline = time.monotonic() + self.patience_s
        asked = False
        while time.monotonic() < deadline:
            view = self._view(experiment)
            if view.row.ended_at is not None:
                raise Broken(f"too late to kill: {[(each.state, each.failure) for each in view.trials]}")
            if cell == Cell("loader", "stopping") and self._is("measuring", view) and not asked:
                pid = self._pid("loader")
                if pid is not None:
                    request_stop(self._store, experiment, "kill matrix")
                    time.sleep(0.1)
                    if psutil.pid_exists(pid):
                        return pid
                    raise Broken("the loader had ended before it could be killed")
            elif self._is(cell.moment, view):
                pid = self._pid(cell.process)
                if pid is not None:
                    return pid
            time.sleep(0.01)
        raise Broken(f"no {cell.process} was seen {cell.moment}")

    def _is(self, moment: str, view: ExperimentView) -> bool:
        trial, launch = view.trials[0], self._engine()
        if moment == "starting":
            # complete, so that killing one of the processes leaves the others behind
            return launch is not None and launch.state == "starting" and self._pid("worker") is not None
        if moment == "stopping":
            return launch is not None and launch.state == "stopping"
        if moment == "warming":
            return trial.state == "warming" and self._pid("loader") is not None
        return trial.state == "measuring" and len(view.measurements) == 1

    def _engine(self) -> LaunchRow | None:
        launches = list_launches(self._store, limit=1)
        return launches[0] if launches and launches[0].ended_at is None else None

    def _pid(self, process: str) -> int | None:
        if process == "runner":
            holder = read_lock(read_environment().lock_file)
            return None if holder is None else holder.pid
        if process == "loader":
            return next((pid for pid, text in self._strays().items() if text.endswith("-m lab.load")), None)
        launch = self._engine()
        if launch is None or launch.pgid is None:
            return None
        if process == "api":
            return launch.pid
        words = ("EngineCore", "--role core") if process == "core" else ("Worker", "--role worker")
        for pid in group_members(launch.pgid):
            text = _command(pid)
            if any(word in text for word in words):
                return pid
        return None

    def _alive(self, launch: LaunchRow | None) -> bool:
        return launch is not None and bool(group_members(launch.pgid or 0))

    def _strays(self) -> dict[int, str]:
        """The processes of this lab beside the runner and the engine's group: loaders, decoders, samplers, guards."""
        runner, groups = self._pid("runner"), {launch.pgid for launch in list_launches(self._store)}
        found = {}
        for pid in psutil.pids():
            with suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                if pid in (os.getpid(), runner) or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                mine = process.environ().get("LAB_RUN_DIR") == os.environ["LAB_RUN_DIR"]
                if (mine or process.cwd().startswith(str(self.folder))) and os.getpgid(pid) not in groups:
                    found[pid] = _command(pid)
        return found

    def _is_quiet(self) -> bool:
        launches = list_launches(self._store)
        over = all(launch.ended_at is not None for launch in launches)
        free = all(launch.port is None or port_is_free(launch.port) for launch in launches)
        return over and free and not any(self._alive(launch) for launch in launches) and not self._strays()

    def _compare(self, cell: Cell, before: ExperimentView, after: ExperimentView) -> None:
        expected, (killed, following) = wanted(cell), after.trials
        # killed while the first trial's engine was put away, the second trial is the one that was given back
        again = following if cell == Cell("runner", "stopping") else killed
        seen = (killed.state, killed.failure in expected.failures, following.state, after.row.state)
        if seen != (expected.state, True, expected.following, expected.experiment):
            words = f"killed: {killed.state} {killed.failure} {killed.message}, next: {following.state}"
            raise Broken(f"{words} {following.failure} {following.message}, experiment: {after.row.state}")
        attempt = 2 if cell.process == "runner" else expected.attempt
        if again.attempt != attempt:
            raise Broken(f"the trial's attempt is {again.attempt}, not {attempt}")
        stages = [(row.trial_id, row.stage) for row in after.measurements]
        done = sum(trial.state == "done" for trial in after.trials)
        kept = len(before.measurements) if killed.state != "done" else 0
        if len(stages) != len(set(stages)) or len(stages) != 2 * done + kept:
            raise Broken(f"{len(stages)} measurements are stored, not {2 * done + kept}: {stages}")
        if any(row.summary.failed or row.summary.succeeded != 6 for row in after.measurements):
            raise Broken(
                f"stored with failures: {[(row.summary.succeeded, row.summary.failed) for row in after.measurements]}"
            )
        self._nothing_lost()
        self._remember(after)

    def _remember(self, view: ExperimentView) -> None:
        self.stored |= {row.id: len(list_requests(self._store, row.id)) for row in view.measurements}

    def _nothing_lost(self) -> None:
        for measurement, requests in self.stored.items():
            now = len(list_requests(self._store, measurement))
            if now != requests:
                raise Broken(f"measurement {measurement} had {requests} requests and has {now}")

    def _view(self, experiment: int) -> ExperimentView:
        return get_experiment(self._store, experiment)

    def _until(self, condition: Callable[[], bool], problem: str, within_s: float | None = None) -> None:
        deadline = time.monotonic() + (within_s or self.patience_s)
        while not condition():
            if time.monotonic() > deadline:
                raise Broken(f"{problem}; beside runner and engines there are {self._strays()}")
            time.sleep(0.05)


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


@contextmanager
def lab_in(folder: Path, *, stub: bool, model: Path | None) -> Iterator[None]:
    """The environment of a lab of its own; its runner and engines are gone at the end."""
    configs = folder / "configs"
    shutil.copytree(ROOT / "configs", configs)
    run_dir = folder / "run"
    (run_dir / "models").mkdir(parents=True)
    os.environ |= {
        "LAB_RUN_DIR": str(run_dir),
        "LAB_CONFIG_DIR": str(configs),
        "LAB_DATABASE_URL": f"sqlite:///{folder / 'experiments.db'}",
        "LAB_LOCK_FILE": str(folder / "runner.lock"),
    }
    if stub:
        os.environ["OPENAI_STUB"] = json.dumps(STUB)
        _stub_in_place_of_vllm(configs)
    elif model is not None:
        (run_dir / "models" / "smollm2-135m-instruct").symlink_to(model.resolve(), target_is_directory=True)
    try:
        yield
    finally:
        stop_runner(read_environment())


def _stub_in_place_of_vllm(configs: Path) -> None:
    path = configs / "engines" / "vllm.toml"
    head, _, rest = path.read_text("utf-8").partition("command = [\n")
    _, _, tail = rest.partition("]\n")
    server = ROOT / "tests" / "servers" / "openai_stub.py"
    command = f'["{{python}}", "{server}", "--served-model-name", "{{served_name}}", "--port", "{{port}}"]'
    path.write_text(f"{head}command = {command}\n{tail}", "utf-8")
    settings = configs / "settings.json"
    settings.write_text(settings.read_text("utf-8").replace("smollm2-135m-instruct", "stub-model"), "utf-8")


def read_cells(text: str | None) -> list[Cell]:
    every = [Cell(process, moment) for moment in MOMENTS for process in PROCESSES if (process, moment) not in NEVER]
    if text is None:
        return every
    chosen = [Cell(*each.partition(":")[::2]) for each in text.split(",")]
    unknown = [str(cell) for cell in chosen if cell not in every]
    if unknown:
        raise SystemExit(f"no such cell: {', '.join(unknown)}; there are {', '.join(map(str, every))}")
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill each process of a lab at each moment of a trial.")
    parser.add_argument("--engine", choices=("vllm", "stub"), default="vllm")
    parser.add_argument("--cells", help="PROCESS:MOMENT, several with commas; default all")
    parser.add_argument("--model", type=Path, default=ROOT / ".lab" / "models" / "smollm2-135m-instruct")
    parser.add_argument("--keep", action="store_true", help="keep the folder with database and logs")
    asked = parser.parse_args()
    cells, stub = read_cells(asked.cells), asked.engine == "stub"
    if not stub and not (asked.model / "config.json").exists():
        parser.error(f"no model in {asked.model}; name one with --model")
    # whoever ends it early leaves no runner behind either
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="kill-matrix-"))
    print(f"{host_facts().name}, engine {asked.engine}, {len(cells)} cells, in {folder}", flush=True)
    broken = 0
    try:
        with lab_in(folder, stub=stub, model=asked.model):
            matrix = Matrix(folder, stub, patience_s=60.0 if stub else 300.0)
            matrix.open()
            for cell in cells:
                broken += not _tell(matrix, cell)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if not asked.keep and not broken:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(cells) - broken} of {len(cells)} cells hold", flush=True)
    return 1 if broken else 0


def _tell(matrix: Matrix, cell: Cell) -> bool:
    began = time.monotonic()
    try:
        seen, held = matrix.run(cell), True
    except Broken as problem:
        seen, held = str(problem), False
    print(f"{'ok    ' if held else 'BROKEN'} {cell!s:18} {time.monotonic() - began:6.1f} s  {seen}", flush=True)
    return held


if __name__ == "__main__":
    sys.exit(main())
