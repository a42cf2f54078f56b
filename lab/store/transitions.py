"""Which state may follow which: the one place that knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lab.records.states import ExperimentState, LaunchState, TrialState

Kind = Literal["experiment", "trial", "launch"]

# Each stage of a trial warms up anew. Back to `queued` leads only through `trials.give_back_trial`.
TRIAL: Mapping[TrialState, frozenset[TrialState]] = {
    "queued": frozenset({"starting", "cancelled", "failed"}),
    "starting": frozenset({"warming", "measuring", "done", "failed", "cancelled", "queued"}),
    "warming": frozenset({"measuring", "done", "failed", "cancelled", "queued"}),
    "measuring": frozenset({"warming", "done", "failed", "cancelled", "queued"}),
    "done": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
EXPERIMENT: Mapping[ExperimentState, frozenset[ExperimentState]] = {
    "queued": frozenset({"running", "paused", "stopped", "failed", "done"}),
    "running": frozenset({"queued", "paused", "done", "failed", "stopped"}),
    "paused": frozenset({"queued", "running", "stopped", "failed", "done"}),
    "done": frozenset(),
    "failed": frozenset(),
    "stopped": frozenset(),
}
LAUNCH: Mapping[LaunchState, frozenset[LaunchState]] = {
    "starting": frozenset({"ready", "stopping", "stopped", "failed"}),
    "ready": frozenset({"busy", "stopping", "stopped", "failed"}),
    "busy": frozenset({"ready", "stopping", "stopped", "failed"}),
    "stopping": frozenset({"stopped", "failed"}),
    "stopped": frozenset(),
    "failed": frozenset(),
}
TABLES: Mapping[Kind, Mapping[str, frozenset[str]]] = {
    "experiment": EXPERIMENT,  # type: ignore[dict-item]  # literals are strings, but Mapping is invariant in its key
    "trial": TRIAL,  # type: ignore[dict-item]
    "launch": LAUNCH,  # type: ignore[dict-item]
}

ACTIVE_TRIAL: tuple[TrialState, ...] = ("starting", "warming", "measuring")
OPEN_EXPERIMENT: tuple[ExperimentState, ...] = ("queued", "running")
ENDED_EXPERIMENT: tuple[ExperimentState, ...] = ("done", "failed", "stopped")
LIVE_LAUNCH: tuple[LaunchState, ...] = ("starting", "ready", "busy", "stopping")


def allowed_from(kind: Kind, wanted: str) -> tuple[str, ...]:
    """The states that may become the wanted one."""
    return tuple(sorted(state for state, following in TABLES[kind].items() if wanted in following))


def is_final(kind: Kind, state: str) -> bool:
    return not TABLES[kind][state]
