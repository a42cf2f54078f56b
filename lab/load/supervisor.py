"""Runs one measurement in a loader process of its own and brings back its records."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from lab.environment import ROOT
from lab.findings import Finding, LabError, error
from lab.load.process import LoaderInput
from lab.load.record_files import read_records
from lab.load.shape import read_shape
from lab.records.request import ClientUsage, LoadProgress, LoadResult
from lab.records.workload import LoadJob

POLL_S = 0.1
STOP_GRACE_S = 20.0
LOG = "loader.log"
_NOTHING: Mapping[str, Any] = {
    "cpu_s": 0.0, "lag_p99_ms": None, "lag_max_ms": None, "window_s": None, "notes": [], "memory_bytes": None,
}  # fmt: skip


def _ignore(_progress: LoadProgress) -> None:
    return None


def run_load(
    job: LoadJob,
    *,
    run_dir: Path,
    variables: Mapping[str, str],
    on_progress: Callable[[LoadProgress], None] = _ignore,
    cancelled: Callable[[], bool] = lambda: False,
) -> LoadResult:
    """Measure one stage. When `cancelled` turns true all sockets are closed at once and `stopped` is set.

    Raises LabError when the job cannot be run (no length, no rate, an unreadable prompt file or address), and
    "loader-died" when the loader's process fails.
    """
    (run_dir / "load").mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(dir=run_dir / "load"))
    try:
        return _run(job, directory, variables, on_progress, cancelled)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(
    job: LoadJob,
    directory: Path,
    variables: Mapping[str, str],
    on_progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
) -> LoadResult:
    shape = read_shape(job)
    with (directory / LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, **variables},
            start_new_session=True,  # Ctrl-C is for this process, which then stops the loader in order
        )
    stopped = _Watched(cancelled)
    try:
        outcome = _follow(process, LoaderInput(job=job, directory=str(directory)), on_progress, stopped)
    finally:
        _end(process)
    if outcome is None and stopped.seen:  # it did not end in time and was killed, with its sockets
        outcome = {**_NOTHING, "stopped": True}
    if outcome is None:
        raise error("loader-died", status=process.returncode, log=_tail(directory / LOG, job, variables))
    cpu_before = time.process_time()
    records = read_records([directory])
    cpu_s = float(outcome["cpu_s"]) + time.process_time() - cpu_before
    return LoadResult(
        records=records,
        client=ClientUsage(cpu_s, outcome["lag_p99_ms"], outcome["lag_max_ms"], outcome["memory_bytes"]),
        requests_asked=shape.requests,
        concurrency_asked=shape.slots,
        rate_asked_per_s=shape.rate_per_s,
        window_s=outcome["window_s"],
        output_tokens_asked=job.workload.output_tokens,
        stopped=bool(outcome["stopped"]),
        notes=tuple(outcome["notes"]),
        clock_ns=outcome.get("clock_ns"),
    )


class _Watched:
    """Asks until the answer is yes, and remembers it."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled
        self.seen = False

    def __call__(self) -> bool:
        self.seen = self.seen or self._cancelled()
        return self.seen


def _follow(
    process: subprocess.Popen[bytes],
    given: LoaderInput,
    on_progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any] | None:
    """Hear the loader out; None when it ended without an outcome."""
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both were asked for
    _write(process.stdin, given.model_dump_json().encode() + b"\n")
    stop_by: float | None = None
    for line in _lines(process.stdout):
        if stop_by is None and cancelled():
            stop_by = time.monotonic() + STOP_GRACE_S
            _write(process.stdin, b"stop\n")
        if stop_by is not None and time.monotonic() > stop_by:
            return None
        if line is None:
            continue
        said = orjson.loads(line)
        kind = said.pop("type")
        if kind == "progress":
            on_progress(LoadProgress(**said))
        elif kind == "error":
            raise LabError(*(Finding(**finding) for finding in said["findings"]))
        else:
            return dict(said)
    return None


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Whole lines as they come; None whenever nothing came for a while."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(POLL_S):
                yield None
                continue
            read = os.read(stream.fileno(), 1 << 16)
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            yield from lines


def _write(pipe: IO[bytes], line: bytes) -> None:
    try:
        pipe.write(line)
        pipe.flush()
    except BrokenPipeError:  # it has died: the missing outcome will say so
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(path: Path, job: LoadJob, variables: Mapping[str, str]) -> str:
    text = path.read_text("utf-8", "replace").strip()
    key = variables.get(job.api_key_env, "") if job.api_key_env else ""
    if key:
        text = text.replace(key, "***")
    return text.splitlines()[-1][:300] if text else "nothing was logged"
