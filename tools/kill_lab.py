"""The lab that the kill matrix works in: a folder with database, lock and runner of its own, and what can be seen."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair, write_pair
from lab.engine.port import port_is_free
from lab.environment import ROOT, Environment, read_environment
from lab.host.facts import host_facts
from lab.host.lock import read_lock
from lab.host.process_identity import group_members
from lab.host.runner_process import ensure_runner, stop_runner
from lab.plan import plan_trials
from lab.store import (
    ExperimentView,
    LaunchRow,
    Store,
    add_intent,
    get_experiment,
    list_launches,
    list_requests,
    open_store,
    queue_experiment,
)

MODEL = "smollm2-135m-instruct"
REQUESTS = 6
# two stages, so that one is measured and stored when the second is killed
EXPERIMENT = f"""
name = "{{name}}"
repeats = 1
[workload]
kind = "closed"
concurrency = [2, 3]
requests = {REQUESTS}
output_tokens = 16
prompts = "mixed"
warmup_requests = 1
request_timeout_s = 120
[[arm]]
name = "the killed one"
"""
# small, so that it starts quickly; on one device vLLM has no worker of its own unless it is asked to have one
ENGINE = {"max_num_seqs": 4, "max_model_len": 1024, "gpu_memory_utilization": 0.1}
WORKER = {"distributed_executor_backend": "mp"}
STUB = {"core_and_worker": True, "opens_after_s": 0.7, "gap_ms": 15, "lingers_s": 1.0, "stop_takes_s": 0.6}


class KillLab:
    """Queues work in the lab of this process's environment, and looks at what its processes do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store: Store = open_store(self.env.database_url)
        self.host = host_facts().name

    @property
    def env(self) -> Environment:
        return read_environment()

    def queue(self, name: str) -> int:
        """Queue an experiment of one trial with two stages, and see that a runner is there."""
        experiment, findings = read_experiment(
            EXPERIMENT.format(name=name), "cell.toml", read_pair(self.env.config_dir)
        )
        if experiment is None:
            raise SystemExit(f"the experiment of the matrix is wrong: {findings}")
        ensure_runner(self.env)
        return queue_experiment(
            self.store, experiment, plan_trials(experiment), person="kill matrix", host=self.host
        )  # fmt: skip

    def serve(self) -> None:
        """Ask for an engine that stays up without a trial."""
        ensure_runner(self.env)
        add_intent(self.store, self.host, "serve", person="kill matrix")

    def view(self, experiment: int) -> ExperimentView:
        return get_experiment(self.store, experiment)

    def stored(self, experiment: int) -> dict[int, int]:
        """The number of requests of each measurement."""
        return {row.id: len(list_requests(self.store, row.id)) for row in self.view(experiment).measurements}

    def requests_of(self, measurement: int) -> int:
        return len(list_requests(self.store, measurement))

    def newest_launch(self) -> LaunchRow | None:
        launches = list_launches(self.store, limit=1)
        return launches[0] if launches else None

    def engine(self) -> LaunchRow | None:
        """The launch whose end is not written yet."""
        launch = self.newest_launch()
        return launch if launch is not None and launch.ended_at is None else None

    def pid(self, process: str) -> int | None:
        """The pid of one of the processes that are killed; None while there is none."""
        if process == "runner":
            holder = read_lock(self.env.lock_file)
            return None if holder is None else holder.pid
        if process == "loader":
            return next((pid for pid, text in self.strays().items() if text.endswith("-m lab.load")), None)
        launch = self.engine()
        if launch is None or launch.pgid is None:
            return None
        if process == "api":
            return launch.pid
        words = ("EngineCore", "--role core") if process == "core" else ("Worker", "--role worker")
        return next((pid for pid in group_members(launch.pgid) if any(word in _command(pid) for word in words)), None)

    def strays(self) -> dict[int, str]:
        """The processes of this lab beside the runner and the engine's group: loaders, decoders, samplers, guards."""
        runner, groups = self.pid("runner"), {launch.pgid for launch in list_launches(self.store)}
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

    def shared_memory(self) -> set[str]:
        """The files in shared memory that the engine's processes use now; they outlive their processes."""
        launch, found = self.engine(), set()
        for pid in group_members(launch.pgid) if launch is not None and launch.pgid else ():
            with suppress(OSError):
                found |= set(re.findall(r"/dev/shm/\S+", Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")))  # noqa: S108
        return found

    def left_of_engines(self) -> str | None:
        """What is left of the engines that were launched, in words; None where nothing is."""
        for launch in list_launches(self.store):
            if launch.ended_at is None:
                return f"launch {launch.id} is {launch.state}"
            if group_members(launch.pgid or 0):
                return f"launch {launch.id} left {group_members(launch.pgid or 0)}"
            if launch.port is not None and not port_is_free(launch.port):
                return f"port {launch.port} is taken"
        strays = self.strays()
        return f"processes are left: {strays}" if strays else None


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


@contextmanager
def lab_in(folder: Path, *, stub: bool, model: Path | None) -> Iterator[KillLab]:
    """The environment of a lab of its own; its runner and engines are gone at the end."""
    configs, run_dir = folder / "configs", folder / "run"
    shutil.copytree(ROOT / "configs", configs)
    (run_dir / "models").mkdir(parents=True)
    os.environ |= {
        "LAB_RUN_DIR": str(run_dir),
        "LAB_CONFIG_DIR": str(configs),
        "LAB_DATABASE_URL": f"sqlite:///{folder / 'experiments.db'}",
        "LAB_LOCK_FILE": str(folder / "runner.lock"),
    }
    knobs: dict[str, str | int | float | bool | None] = {**ENGINE}
    if stub:
        os.environ["OPENAI_STUB"] = json.dumps(STUB)
        _stub_in_place_of_vllm(configs)
    else:
        knobs |= WORKER
        if model is not None:
            (run_dir / "models" / MODEL).symlink_to(model.resolve(), target_is_directory=True)
    pair = read_pair(configs)
    write_pair(configs, pair, pair.with_knobs(knobs))
    try:
        yield KillLab(folder)
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
    settings.write_text(settings.read_text("utf-8").replace(MODEL, "stub-model"), "utf-8")
