"""Models that people want here, fetched one after the other by a process of their own while nothing is measured."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.environment import ROOT
from lab.runner.site import Site
from lab.store import IntentRow, close_intent, open_intents, update_intent

# the model's name stands in the intent's payload under this key; what came so far is written beside it
MODEL = "model"
_TELL_S = 1.0
_END_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Fetching:
    """The process that works on one intent."""

    intent: IntentRow
    process: subprocess.Popen[bytes]
    progress: Path
    log: Path


class Downloads:
    """At most one download at a time. It is put aside for a trial and gone on with afterwards."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._now: _Fetching | None = None
        self._told_at = 0.0

    def step(self) -> None:
        """Go on with the oldest wanted model; note how far it is, and how it ended."""
        wanted = [each for each in open_intents(self._site.store, self._site.host) if each.kind == "download"]
        if self._now is not None and self._now.intent.id not in {each.id for each in wanted}:
            _log.info("download of %s is no longer wanted", self._now.intent.payload)
            self.pause()
        if self._now is not None:
            self._look_after(self._now)
        elif wanted:
            try:
                self._start(wanted[0])
            except OSError as problem:  # a full or read-only run directory must not end the runner
                self._give_up(wanted[0], problem)

    def pause(self) -> None:
        """End the process; what it has brought stays, and the intent stays open."""
        if self._now is None:
            return
        process, self._now = self._now.process, None
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _close_pipe(process)

    def _start(self, intent: IntentRow) -> None:
        folder, logs = self._site.env.run_dir.absolute() / "downloads", self._site.log_dir
        for each in (folder, logs):
            each.mkdir(parents=True, exist_ok=True)
        progress, log = folder / f"{intent.id}.json", logs / f"download-{intent.id}.log"
        progress.unlink(missing_ok=True)
        model = str((intent.payload or {}).get(MODEL) or "")
        command = [sys.executable, "-m", "lab.engine.download", model, "--progress", str(progress), "--with-parent"]
        variables = {name: text for name, text in self._site.variables.items() if not name.startswith("TAOTOKEN_")}
        with log.open("ab") as output:
            # its standard input is a pipe that only this process holds: when this one is killed, it ends too
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the runner, which ends it in order
            )
        _log.info("download of %s: process %s", model, process.pid)
        self._now = _Fetching(intent, process, progress, log)

    def _give_up(self, intent: IntentRow, problem: OSError) -> None:
        payload = intent.payload or {}
        told = {"code": "download-not-started", "model": payload.get(MODEL), "reason": str(problem)}
        _log.warning("download of %s: %s", payload.get(MODEL), problem)
        update_intent(self._site.store, intent.id, {**payload, "problem": told})
        close_intent(self._site.store, intent.id, "failed")

    def _look_after(self, now: _Fetching) -> None:
        ended = now.process.poll()
        news = _read(now.progress)
        if ended is None:
            if news and time.monotonic() - self._told_at >= _TELL_S:
                self._told_at = time.monotonic()
                update_intent(self._site.store, now.intent.id, {**(now.intent.payload or {}), **news})
            return
        payload = {**(now.intent.payload or {}), **news}
        if ended != 0 and "problem" not in payload:
            told = {"code": "download-ended", "model": payload.get(MODEL), "status": ended, "log": str(now.log)}
            payload["problem"] = told
        update_intent(self._site.store, now.intent.id, payload)
        close_intent(self._site.store, now.intent.id, "done" if ended == 0 else "failed")
        _log.info("download of %s ended with status %s", payload.get(MODEL), ended)
        _close_pipe(now.process)
        now.progress.unlink(missing_ok=True)
        self._now = None


def _read(progress: Path) -> dict[str, Any]:
    try:
        found = json.loads(progress.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
