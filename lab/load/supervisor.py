"""Runs one measurement in loader processes of its own and brings back its records."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.findings import error
from lab.host.run_folder import ready_run_folder
from lab.load.crew import LOG, Crew, Member, dead
from lab.load.record_files import read_records
from lab.load.shape import Shape, read_shape
from lab.load.share import count_processes
from lab.records.request import ClientUsage, LoadProgress, LoadResult, ProcessUsage
from lab.records.table import RequestTable
from lab.records.workload import LoadJob


def _ignore(_progress: LoadProgress) -> None:
    return None


def run_load(
    job: LoadJob,
    *,
    run_dir: Path,
    variables: Mapping[str, str],
    on_progress: Callable[[LoadProgress], None] = _ignore,
    cancelled: Callable[[], bool] = lambda: False,
    on_warm: Callable[[], None] | None = None,
) -> LoadResult:
    """Measure one stage. When `cancelled` turns true all sockets are closed at once and `stopped` is set.

    `on_warm` is called when the warm-up is over; no measured request is sent before it returns.

    Raises LabError when the job cannot be run (no length, no rate, an unreadable prompt file or address), and
    "run-folder-unusable", and "loader-died" when one of the loader's processes fails: what the others measured is no
    measurement.
    """
    folder = ready_run_folder(run_dir / "load")
    directory = Path(tempfile.mkdtemp(dir=folder))
    try:
        return _run(job, directory, variables, on_progress, cancelled, on_warm)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(
    job: LoadJob,
    directory: Path,
    variables: Mapping[str, str],
    on_progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
    on_warm: Callable[[], None] | None,
) -> LoadResult:
    shape = read_shape(job)
    stopped = _Watched(cancelled)
    with Crew(job, directory, variables, count_processes(job, shape), on_warm) as crew:
        crew.follow(on_progress, stopped)
    lost = dead(crew.members)
    if lost is not None and not stopped.seen:  # a stopped one that did not end in time was killed, with its sockets
        log = _tail(lost.directory / LOG, job, variables)
        raise error("loader-died", status=lost.process.returncode, log=log)
    cpu_before = time.process_time()
    records = read_records([member.directory for member in crew.members])
    return _result(job, shape, crew.members, records, time.process_time() - cpu_before)


class _Watched:
    """Asks until the answer is yes, and remembers it."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled
        self.seen = False

    def __call__(self) -> bool:
        self.seen = self.seen or self._cancelled()
        return self.seen


def _result(
    job: LoadJob, shape: Shape, members: Sequence[Member], records: RequestTable, reading_s: float
) -> LoadResult:
    outcomes = [member.outcome for member in members if member.outcome is not None]
    return LoadResult(
        records=records,
        client=_usage(outcomes, reading_s),
        requests_asked=shape.requests,
        concurrency_asked=shape.slots,
        rate_asked_per_s=shape.rate_per_s,
        window_s=max((outcome["window_s"] for outcome in outcomes if outcome["window_s"] is not None), default=None),
        output_tokens_asked=job.workload.output_tokens,
        stopped=len(outcomes) < len(members) or any(outcome["stopped"] for outcome in outcomes),
        notes=tuple(dict.fromkeys(note for outcome in outcomes for note in outcome["notes"])),
        clock_ns=next((outcome["clock_ns"] for outcome in outcomes), None),
    )


def _usage(outcomes: Sequence[Mapping[str, Any]], reading_s: float) -> ClientUsage:
    """CPU added up; lag and memory of the worst process."""
    each = [
        ProcessUsage(outcome["cpu_s"], outcome["lag_p99_ms"], outcome["lag_max_ms"], outcome["memory_bytes"])
        for outcome in outcomes
    ]
    return ClientUsage(
        cpu_s=sum(usage.cpu_s for usage in each) + reading_s,
        lag_p99_ms=max((usage.lag_p99_ms for usage in each if usage.lag_p99_ms is not None), default=None),
        lag_max_ms=max((usage.lag_max_ms for usage in each if usage.lag_max_ms is not None), default=None),
        memory_bytes=max((usage.memory_bytes for usage in each), default=None),
        processes=tuple(each) if len(each) > 1 else (),
    )


def _tail(path: Path, job: LoadJob, variables: Mapping[str, str]) -> str:
    text = path.read_text("utf-8", "replace").strip()
    key = variables.get(job.api_key_env, "") if job.api_key_env else ""
    if key:
        text = text.replace(key, "***")
    return text.splitlines()[-1][:300] if text else "nothing was logged"
