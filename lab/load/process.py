"""The loader's process: a job on standard input, progress and outcome as JSON lines on standard output.

The end of standard input, or the line `stop`, ends the load at once; so the loader never outlives who started it. One
of several processes, or one that was told to hold, says `ready` after the warm-up and waits for `begin` with the moment
that holds for all of them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import uvloop
from pydantic import BaseModel, ConfigDict

from lab.findings import LabError
from lab.load.decoder import DecoderSettings
from lab.load.measurement import PROGRESS_EVERY_S, Measurement, Outcome
from lab.load.memory import most_memory_bytes
from lab.load.share import ALL_OF_IT, Share
from lab.records.workload import LoadJob

LOADER_NICENESS = -10


class LoaderInput(BaseModel):
    """The first line of standard input; `directory` exists and is the loader's own.

    `hold`: wait for the word to begin although no other process has to be waited for.
    """

    model_config = ConfigDict(frozen=True)

    job: LoadJob
    directory: str
    share: Share = ALL_OF_IT
    hold: bool = False


class Loader:
    def __init__(self, given: LoaderInput, variables: Mapping[str, str]) -> None:
        self._job = given.job
        self._directory = Path(given.directory)
        self._decoder = subprocess.Popen(
            [sys.executable, "-m", "lab.load.decoder"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._early_segments: list[Path] | None = []
        self._measurement = Measurement(given.job, variables, self._directory, self._segment_ready, given.share)
        self._begins_itself = given.share.of == 1 and not given.hold
        self._begin_ns: asyncio.Future[int] | None = None
        self._heard = b""

    def run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            outcome = runner.run(self._run())
        decoder = self._wait_for_decoder()
        cpu_s = outcome.cpu_s + decoder["cpu_s"]
        memory_bytes = max(most_memory_bytes(), decoder["memory_bytes"])
        say("outcome", asdict(outcome) | {"cpu_s": cpu_s, "memory_bytes": memory_bytes})

    def abandon(self) -> None:
        """End the decoder when there is nothing for it to do."""
        self._decoder.kill()
        self._decoder.communicate()

    async def _run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        self._begin_ns = loop.create_future()
        loop.add_reader(sys.stdin.fileno(), self._hear)
        self._tell_progress()
        try:
            wait = None if self._begins_itself else self._wait_to_begin
            return await self._measurement.run(self._clock_started, wait)
        finally:
            loop.remove_reader(sys.stdin.fileno())

    async def _wait_to_begin(self) -> int:
        """Say that all is prepared; the answer is the moment at which every process begins."""
        say("ready", {})
        assert self._begin_ns is not None  # noqa: S101 - made before the measurement runs
        return await self._begin_ns

    def _hear(self) -> None:
        said = os.read(sys.stdin.fileno(), 4096)
        *lines, self._heard = (self._heard + said).split(b"\n")
        if not said:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        if not said or b"stop" in lines:
            self._measurement.stop()
        begins = [line for line in lines if line.startswith(b"begin ")]
        if begins and self._begin_ns is not None and not self._begin_ns.done():
            self._begin_ns.set_result(int(begins[0].split()[1]))

    def _tell_progress(self) -> None:
        say("progress", asdict(self._measurement.progress()))
        asyncio.get_running_loop().call_later(PROGRESS_EVERY_S, self._tell_progress)

    def _clock_started(self, clock_ns: int) -> None:
        settings = DecoderSettings(clock_ns, str(self._directory), self._job.tokenizer_dir, self._job.api_key_env)
        self._write_to_decoder(orjson.dumps(settings))
        early, self._early_segments = self._early_segments or [], None
        for segment in early:
            self._segment_ready(segment)

    def _segment_ready(self, segment: Path) -> None:
        if self._early_segments is not None:
            self._early_segments.append(segment)
        else:
            self._write_to_decoder(str(segment).encode())

    def _write_to_decoder(self, line: bytes) -> None:
        pipe = self._decoder.stdin
        if pipe is not None:
            pipe.write(line + b"\n")
            pipe.flush()

    def _wait_for_decoder(self) -> dict[str, Any]:
        said, _ = self._decoder.communicate()
        if self._decoder.returncode != 0:
            raise RuntimeError(f"the decoder ended with status {self._decoder.returncode}")
        return dict(orjson.loads(said))


def say(kind: str, what: Mapping[str, Any]) -> None:
    with suppress(BrokenPipeError):  # whoever started this is gone; the end of standard input says so too
        sys.stdout.write(orjson.dumps({"type": kind, **what}).decode() + "\n")
        sys.stdout.flush()


def main() -> int:
    """0 after a measurement, also a stopped one; 2 when the job cannot be run."""
    given = LoaderInput.model_validate_json(_first_line())
    come_first()
    loader = None
    try:
        loader = Loader(given, os.environ)
        loader.run()
    except LabError as problem:
        if loader is not None:
            loader.abandon()
        say("error", {"findings": [asdict(finding) for finding in problem.findings]})
        return 2
    return 0


def come_first() -> None:
    """An engine on the same cores must not delay the clock; only a privileged user may ask for this."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, LOADER_NICENESS)


def _first_line() -> bytes:
    """Read without buffering: what follows the first line belongs to the running loop."""
    line = bytearray()
    while (byte := os.read(sys.stdin.fileno(), 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)
