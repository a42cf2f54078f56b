"""Progress of the stage in hand, written to the trial at most twice a second."""

from __future__ import annotations

import time
from contextlib import suppress

from lab.findings import LabError
from lab.records.request import LoadProgress
from lab.runner.site import Site
from lab.store import set_trial_progress, set_trial_state

EVERY_S = 0.5


class ProgressTeller:
    """Turns the loader's progress into the trial's state and progress; the start of its clock ends the warm-up."""

    def __init__(self, site: Site, trial_id: int, stage_number: int, stages: int) -> None:
        self._site = site
        self._trial_id = trial_id
        self._stage = stage_number
        self._stages = stages
        self._measuring = False
        self._next = 0.0

    def __call__(self, progress: LoadProgress) -> None:
        if not self._measuring and progress.elapsed_s > 0:
            self._measuring = True
            self._site.heartbeat.show(state="measuring")
            with suppress(LabError):  # a database that is busy must not cost a measurement
                set_trial_state(self._site.store, self._trial_id, "measuring")
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        with suppress(LabError):
            set_trial_progress(self._site.store, self._trial_id, self._document(progress))

    def _document(self, progress: LoadProgress) -> dict[str, object]:
        return {
            "done": progress.done,
            "total": progress.total,
            "in_flight": progress.in_flight,
            "elapsed_s": round(progress.elapsed_s, 1),
            "eta_s": _seconds_left(progress),
            "stage": self._stage,
            "stages": self._stages,
        }


def _seconds_left(progress: LoadProgress) -> float | None:
    """From the pace so far; None before the first request is done or where the end is a moment, not a number."""
    if not progress.total or not progress.done:
        return None
    return round(progress.elapsed_s / progress.done * (progress.total - progress.done), 1)
