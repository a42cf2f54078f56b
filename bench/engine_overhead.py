"""What the lab adds to an engine's own start and stop: the same command by itself and through the runner, in pairs.

    python -m bench.engine_overhead [--pairs N] [--model FOLDER]

By itself: a process is started, asked for one token until it answers, and ended with SIGTERM to its group. Through the
lab: someone asks for the engine and waits until the database says that it is ready (its own port, its model, a first
token), asks for its end, and waits until the database says that it is proven
gone. Both find the files in the system's cache; which comes first changes from pair to pair. A start varies by more
than the lab adds, so the moments are also taken on the lab's own engines: from the wish to the process, and from the
moment an onlooker gets its first token to the lab's "ready".
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.peers import PeerError
from lab.configs.pair import read_pair
from lab.engine.catalogue import read_catalogue
from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import load_definition
from lab.engine.model import find_model
from lab.environment import ROOT, Environment, read_environment
from lab.findings import LabError
from lab.host.facts import host_facts, host_kind
from lab.host.process_identity import group_members
from lab.host.runner_process import ensure_runner, stop_runner
from lab.store import LaunchRow, Store, add_intent, get_intent, list_launches, open_store

ENGINE = "vllm"
ALLOWED_S = 1.0
_POLL_S = 0.02
_WITHIN_S = 600.0


@dataclass(frozen=True)
class Times:
    """Seconds. Only through the lab: the wish until the process, an onlooker's first token until ready, ready until
    the effective configuration was read back (which the engine gathers facts about its host for).
    """

    start_s: float
    stop_s: float
    to_process_s: float | None = None
    after_token_s: float | None = None
    read_back_s: float | None = None


def main() -> int:
    """0 when the lab adds no more than it may."""
    given = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="lab-overhead-") as folder:
            bare, through = measure(Path(folder), given.pairs, given.model)
    except PeerError as reason:
        print(f"engine overhead: not measured: {reason}", file=sys.stderr)
        return 0
    return tell(bare, through)


def measure(folder: Path, pairs: int, model: Path | None) -> tuple[list[Times], list[Times]]:
    env = _lab_of_its_own(folder, model)
    store = open_store(env.database_url)
    ensure_runner(env)
    bare: list[Times] = []
    through: list[Times] = []
    try:
        for number in range(pairs):
            turns = [lambda: bare.append(_by_itself(env, folder)), lambda: through.append(_through_the_lab(store))]
            for turn in turns if number % 2 == 0 else turns[::-1]:
                turn()
            print(f"pair {number + 1}: by itself {bare[-1]}, through the lab {through[-1]}", file=sys.stderr)
    finally:
        store.close()
        stop_runner(env)
    return bare, through


def tell(bare: list[Times], through: list[Times]) -> int:
    """0 where the lab adds at most a second to a start, as seen on its own engines, and to a stop."""
    print(f"launch to ready and stop to proven gone, seconds, median of {len(bare)} pairs")
    for name, word in (("start_s", "launch to ready"), ("stop_s", "stop to gone   ")):
        alone, lab = (statistics.median(getattr(each, name) for each in side) for side in (bare, through))
        print(f"{word}  by itself {alone:6.2f}  lab {lab:6.2f}  added {_added(bare, through, name):+.2f}")
    start = statistics.median((each.to_process_s or 0.0) + (each.after_token_s or 0.0) for each in through)
    stop = _added(bare, through, "stop_s")
    print(f"on the lab's own engines, wish to process and first token to ready: {start:.2f}")
    back = statistics.median(each.read_back_s or 0.0 for each in through)
    print(f"then, before anything is measured, the engine is asked what it took: {back:.2f}")
    holds = max(start, stop) <= ALLOWED_S
    print(f"the lab {'adds no more than' if holds else 'ADDS MORE THAN'} {ALLOWED_S:g} s")
    return 0 if holds else 1


def _added(bare: list[Times], through: list[Times], name: str) -> float:
    return statistics.median(getattr(b, name) - getattr(a, name) for a, b in zip(bare, through, strict=True))


def _lab_of_its_own(folder: Path, model: Path | None) -> Environment:
    found = find_model(str(model) if model else str(_pair_knobs(ROOT / "configs")["model"]), read_environment())
    if found.path is None:
        raise PeerError(f"no model {found.name} on this host; name a folder with --model")
    (folder / "models").mkdir()
    (folder / "models" / str(_pair_knobs(ROOT / "configs")["model"])).symlink_to(found.path.resolve())
    os.environ |= {
        "LAB_RUN_DIR": str(folder),
        "LAB_CONFIG_DIR": str(ROOT / "configs"),
        "LAB_DATABASE_URL": f"sqlite:///{folder / 'experiments.db'}",
        "LAB_LOCK_FILE": str(folder / "runner.lock"),
    }
    env = read_environment()
    try:  # read once per release, about ten seconds: no part of a start
        read_catalogue(load_definition(ENGINE, env.config_dir), env.engine_python, env.run_dir)
    except LabError as problem:
        raise PeerError(f"the engine cannot be asked: {problem}") from problem
    return env


def _pair_knobs(config_dir: Path) -> dict[str, object]:
    return dict(read_pair(config_dir).engine_knobs())


def _by_itself(env: Environment, folder: Path) -> Times:
    command = _command(env)
    began = time.monotonic()
    with (folder / "bare.log").open("wb") as log:
        process = subprocess.Popen(
            list(command.argv), env=dict(command.environment), stdout=log, stderr=log, start_new_session=True
        )
    try:
        _until(lambda: _answers(command.port, command.served_name), process)
        start_s = time.monotonic() - began
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGTERM)
        _until(lambda: process.poll() is not None and not group_members(process.pid))
        return Times(start_s, time.monotonic() - began)
    finally:
        if group_members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _command(env: Environment) -> EngineCommand:
    definition = load_definition(ENGINE, env.config_dir)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    knobs = read_pair(env.config_dir).engine_knobs()
    return build_command(
        definition,
        knobs,
        frozenset(),
        host_kind=host_kind(),
        model=find_model(str(knobs["model"]), env),
        port=port,
        python=env.engine_python,
        devices=None,
        variables=env.variables,
        catalogue=read_catalogue(definition, env.engine_python, env.run_dir),
    )


def _through_the_lab(store: Store) -> Times:
    host = host_facts().name
    before = len(list_launches(store, host))
    began = time.monotonic()
    add_intent(store, host, "serve", person="bench")
    _until(lambda: len(list_launches(store, host)) > before)
    to_process_s = time.monotonic() - began
    launch = list_launches(store, host)[0]
    onlooker = _Onlooker(launch)
    _until(lambda: list_launches(store, host)[0].state in ("ready", "failed"))
    start_s = time.monotonic() - began
    after_token_s = time.monotonic() - onlooker.answered()
    if list_launches(store, host)[0].state == "failed":
        raise PeerError(f"the engine did not start: {list_launches(store, host)[0].failure}")
    ready = time.monotonic()
    _until(lambda: list_launches(store, host)[0].effective is not None)
    began = time.monotonic()
    stop = add_intent(store, host, "stop-engine", person="bench")
    _until(lambda: (intent := get_intent(store, stop)) is not None and intent.closed_at is not None)
    return Times(start_s, time.monotonic() - began, to_process_s, max(0.0, after_token_s), began - ready)


class _Onlooker:
    """Asks the lab's engine for a token all the time, as who starts an engine by hand would."""

    def __init__(self, launch: LaunchRow) -> None:
        self._launch = launch
        self._at = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def answered(self) -> float:
        self._thread.join(_WITHIN_S)
        return self._at

    def _ask(self) -> None:
        _until(lambda: _answers(self._launch.port or 0, self._launch.served_name or ""))
        self._at = time.monotonic()


def _answers(port: int, served_name: str) -> bool:
    body = {"model": served_name, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    try:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        return httpx.post(url, json=body, timeout=60, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _until(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not condition():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise PeerError("the engine did not come up or did not end")
        time.sleep(_POLL_S)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.engine_overhead", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--model", type=Path, help="a model's folder; default the live pair's model")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
