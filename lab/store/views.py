"""What the store hands out: frozen rows. Moments are UTC, missing is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lab.configs.changes import ChangedValue
from lab.metrics.growth import LadderFit
from lab.metrics.pool import PooledArm
from lab.metrics.verdict import Verdict
from lab.records.plan import Arm, Experiment
from lab.records.states import ExperimentState, IntentKind, LaunchState, SaveSource, Target, TrialState
from lab.records.summary import Mark, Summary
from lab.records.workload import Stage


@dataclass(frozen=True, slots=True)
class HostRow:
    name: str
    kind: str | None
    facts: Mapping[str, Any] | None
    runner_pid: int | None
    runner_state: str | None
    detail: str | None
    heartbeat_at: datetime | None
    trial_id: int | None
    launch_id: int | None


@dataclass(frozen=True, slots=True)
class IntentRow:
    id: int
    host: str
    kind: IntentKind
    experiment_id: int | None
    payload: Mapping[str, Any] | None
    person: str
    created_at: datetime
    closed_at: datetime | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """A state or a phase of the start that a launch came to, `after_s` seconds after it began.

    `line` is the last line of the engine's log while it was there; None where nothing was read.
    """

    state: LaunchState
    phase: str | None
    at: datetime
    after_s: float
    line: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """What earlier starts of the same model took: medians of seconds from the launch, over `starts` of them.

    `phases` maps a phase to when it was come to, in the order of the start.
    """

    starts: int
    ready_s: float
    phases: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """`ended` tells how the stop went (as it was given to `update_launch`); `history` its steps, oldest first."""

    id: int
    host: str
    engine: str
    argv: tuple[str, ...]
    environment_names: tuple[str, ...]
    log_path: str
    pid: int | None
    pgid: int | None
    start_time: float | None
    port: int | None
    served_name: str | None
    state: LaunchState
    phase: str | None
    last_line: str | None
    effective: Mapping[str, Any] | None
    ready_s: float | None
    failure: str | None
    ended: Mapping[str, Any] | None
    started_at: datetime
    ended_at: datetime | None
    history: tuple[LaunchStep, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialWork:
    """A claimed trial with all that running it needs. `following` is the arm of the experiment's next queued trial."""

    trial_id: int
    experiment_id: int
    experiment: Experiment
    arm: Arm
    arm_id: int
    block: int
    position: int
    attempt: int
    done_stages: tuple[Stage, ...]
    following: Arm | None
    experiment_started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BestResult:
    """The measurement with the highest throughput of an experiment, the gateway's apart."""

    arm: str
    output_tokens_per_s: float
    ttft_p95_ms: float | None


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """`arms` are their names in order; `notes` counts the remarks."""

    id: int
    name: str
    question: str
    state: ExperimentState
    person: str
    host: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    arms: tuple[str, ...]
    trials_total: int
    trials_done: int
    trials_failed: int
    notes: int
    tags: tuple[str, ...]
    stop_requested: bool
    best: BestResult | None


@dataclass(frozen=True, slots=True)
class ArmRow:
    id: int
    index: int
    arm: Arm


@dataclass(frozen=True, slots=True)
class TrialRow:
    id: int
    arm_id: int
    arm_name: str
    block: int
    position: int
    state: TrialState
    failure: str | None
    message: Mapping[str, Any] | None
    attempt: int
    launch_id: int | None
    started_at: datetime | None
    ended_at: datetime | None
    progress: Mapping[str, Any] | None
    log_tail: str | None
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """`marks` are the summary's and the trial's together."""

    id: int
    trial_id: int
    arm_id: int
    arm_name: str
    target: Target
    repeat: int
    stage: Stage
    summary: Summary
    started_at: datetime
    ended_at: datetime
    trial_marks: tuple[Mark, ...] = ()

    @property
    def marks(self) -> tuple[Mark, ...]:
        return (*self.summary.marks, *self.trial_marks)


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """One experiment whole: measurements in the order of arms, repeats and stages.

    `pooled` has a row per arm and stage over all repeats, `verdicts` what they say about each other, `ladders` how TTFT
    grows with the prompt.
    """

    row: ExperimentRow
    experiment: Experiment
    arms: tuple[ArmRow, ...]
    trials: tuple[TrialRow, ...]
    measurements: tuple[MeasurementRow, ...]
    verdicts: tuple[Verdict, ...] = ()
    pooled: tuple[PooledArm, ...] = ()
    ladders: tuple[LadderFit, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteRow:
    id: int
    experiment_id: int
    person: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Totals:
    experiments: int
    trials: int
    trials_failed: int
    measurements: int
    requests: int
    output_tokens: int
    people: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting in which experiments differ; `values` in the order asked for, None where one has none."""

    field: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The gateway measurements of one experiment."""

    experiment_id: int
    name: str
    created_at: datetime
    rows: tuple[MeasurementRow, ...]


@dataclass(frozen=True, slots=True)
class ConfigSaveRow:
    """One version of a folder's config pair; its texts stand under `config_hash`, those before it under `parent_hash`.

    `person` is None for a change found on disk, `parent_hash` for the first version, `restored_id` unless the save
    brought an older version back, `changes` where one of the texts could not be parsed or the old one held a key.
    """

    id: int
    host: str
    folder: str
    created_at: datetime
    person: str | None
    source: SaveSource
    note: str
    config_hash: str
    parent_hash: str | None
    restored_id: int | None
    changes: tuple[ChangedValue, ...] | None
