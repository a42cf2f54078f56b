"""The loader processes of one measurement: started together, told to begin at one moment, heard out, ended."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson

from lab.environment import ROOT
from lab.findings import Finding, LabError
from lab.load.process import LoaderInput
from lab.load.share import Share
from lab.records.request import LoadProgress
from lab.records.workload import LoadJob

POLL_S = 0.1
STOP_GRACE_S = 20.0
BEGIN_LEAD_NS = 50_000_000
"""From the word to begin to its moment: every process hears it in time."""
LOG = "loader.log"
NOTHING_YET = LoadProgress(0, None, 0, 0.0)


@dataclass
class Member:
    """One process. `outcome` stays None where it died or was killed."""

    directory: Path
    process: subprocess.Popen[bytes]
    rest: bytes = b""
    ready: bool = False
    over: bool = False
    progress: LoadProgress = NOTHING_YET
    outcome: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()

    def tell(self, line: bytes) -> None:
        pipe = self.process.stdin
        if pipe is not None:
            with suppress(BrokenPipeError):  # it has died: the missing outcome will say so
                pipe.write(line + b"\n")
                pipe.flush()

    def hear(self, read: bytes) -> None:
        *lines, self.rest = (self.rest + read).split(b"\n")
        for line in lines:
            said = orjson.loads(line)
            kind = said.pop("type")
            if kind == "progress":
                self.progress = LoadProgress(**said)
            elif kind == "ready":
                self.ready = True
            elif kind == "error":
                self.findings = tuple(Finding(**finding) for finding in said["findings"])
            else:
                self.outcome = dict(said)

    def close(self) -> None:
        """The end of its input ends a load that is under way."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def wait(self) -> None:
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Crew:
    """Leaving the block ends every process that still runs.

    `on_warm` is called once between the end of the warm-up and the first measured request.
    """

    def __init__(
        self,
        job: LoadJob,
        directory: Path,
        variables: Mapping[str, str],
        count: int,
        on_warm: Callable[[], None] | None = None,
    ) -> None:
        self.members: list[Member] = []
        self._begun = False
        self._on_warm = on_warm
        hold = on_warm is not None
        try:
            for number in range(count):
                given = LoaderInput(
                    job=job, directory=str(directory / str(number)), share=Share(number, count), hold=hold
                )
                self.members.append(_start(given, variables))
        except OSError:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _what: BaseException | None, _where: TracebackType | None
    ) -> None:
        self._end()

    def follow(self, on_progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]) -> None:
        """Until each has said its outcome, or one has died: then the others are not waited for.

        Raises LabError when one of them cannot run the job.
        """
        stop_by: float | None = None
        with selectors.DefaultSelector() as selector:
            for member in self.members:
                selector.register(_output(member), selectors.EVENT_READ, member)
            while not all(member.over for member in self.members):
                if stop_by is None and cancelled():
                    stop_by = time.monotonic() + STOP_GRACE_S
                    self._tell(b"stop")
                if stop_by is not None and time.monotonic() > stop_by:
                    return
                for key, _ in selector.select(POLL_S):
                    self._listen(key.data, selector)
                    if key.data.over and key.data.outcome is None:
                        return
                    on_progress(self._progress())
                self._begin_when_ready()

    def _listen(self, member: Member, selector: selectors.BaseSelector) -> None:
        stream = _output(member)
        read = os.read(stream.fileno(), 1 << 16)
        member.hear(read)
        if member.findings:
            raise LabError(*member.findings)
        if not read or member.outcome is not None:
            member.over = True
            selector.unregister(stream)

    def _begin_when_ready(self) -> None:
        if not self._begun and all(member.ready for member in self.members):
            self._begun = True
            if self._on_warm is not None:
                self._on_warm()
            self._tell(b"begin %d" % (time.monotonic_ns() + BEGIN_LEAD_NS))

    def _progress(self) -> LoadProgress:
        all_of_it = [member.progress for member in self.members]
        totals = [each.total for each in all_of_it if each.total is not None]
        return LoadProgress(
            done=sum(each.done for each in all_of_it),
            total=sum(totals) if len(totals) == len(all_of_it) else None,
            in_flight=sum(each.in_flight for each in all_of_it),
            elapsed_s=max(each.elapsed_s for each in all_of_it),
        )

    def _tell(self, line: bytes) -> None:
        for member in self.members:
            member.tell(line)

    def _end(self) -> None:
        for member in self.members:
            member.close()
        for member in self.members:
            member.wait()


def _start(given: LoaderInput, variables: Mapping[str, str]) -> Member:
    directory = Path(given.directory)
    directory.mkdir()
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
    member = Member(directory, process)
    member.tell(given.model_dump_json().encode())
    return member


def _output(member: Member) -> IO[bytes]:
    assert member.process.stdout is not None  # noqa: S101 - it was asked for
    return member.process.stdout


def dead(members: Sequence[Member]) -> Member | None:
    """The first that ended without an outcome; None where every one has said its own."""
    return next((member for member in members if member.outcome is None), None)
