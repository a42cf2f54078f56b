"""The result of an experiment as text: article 2's table, failures, marks and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.cli.table import table
from lab.engine.remedies import Remedy, stored_remedies
from lab.messages import word

if TYPE_CHECKING:
    from lab.store import ExperimentView, MeasurementRow, TrialRow

HEADINGS = (
    "arm", "repeat", "stage", "requests", "ok", "mean TTFT ms", "P95 TTFT ms", "P50 TPOT ms", "output tokens",
    "wall s", "tok/s", "marks",
)  # fmt: skip


def result_text(view: ExperimentView) -> str:
    """Heading, question, table, what failed, verdicts."""
    parts = [f"{view.row.id}  {view.row.name}  [{view.row.state}]"]
    if view.row.question:
        parts.append(view.row.question)
    if view.measurements:
        parts.append(table(HEADINGS, [_cells(each) for each in view.measurements]))
    parts.extend(_trial_line(each) for each in view.trials if each.state != "done")
    parts.extend(_skipped_lines(view))
    parts.extend(_verdict_lines(view))
    return "\n\n".join(parts)


def trial_reason(trial: TrialRow) -> str | None:
    """Why a trial failed or was cancelled, in words; None where there is nothing to say."""
    message = trial.message or {}
    return word(str(message["code"]), message) if message.get("code") else trial.failure


def _cells(row: MeasurementRow) -> tuple[object, ...]:
    summary = row.summary
    return (
        row.arm_name,
        row.repeat,
        "" if row.stage.kind is None else f"{row.stage.kind} {row.stage.value:g}",
        summary.requests,
        summary.succeeded,
        summary.ttft_ms.mean,
        summary.ttft_ms.p95,
        summary.tpot_ms.p50,
        summary.output_tokens,
        summary.wall_s,
        summary.output_tokens_per_s,
        ", ".join(mark.code for mark in row.marks),
    )


def _trial_line(trial: TrialRow) -> str:
    reason = trial_reason(trial)
    head = f"trial {trial.position + 1} ({trial.arm_name}, repeat {trial.block}): {trial.state}"
    lines = [f"{head}: {reason}" if reason else head]
    lines += [f"  - {_remedy_line(each)}" for each in stored_remedies(trial.message)]
    return "\n".join(lines)


def _remedy_line(remedy: Remedy) -> str:
    """What to do, and the words that do it to the live pair."""
    sentence = word(remedy.code, remedy.params)
    values = " ".join(f"{knob}={value}" for knob, value in remedy.changes.items() if value is not None)
    return f"{sentence}  [python -m lab set {values}]" if values else sentence


def _skipped_lines(view: ExperimentView) -> list[str]:
    """What was left out because the target takes no requests of that length."""
    from lab.store import skipped_stages

    return [
        f"trial {trial.position + 1} ({trial.arm_name}, repeat {trial.block}), "
        f"{_stage(mark.params.get('stage_kind'), mark.params.get('stage_value'))}: {word(mark.code, mark.params)}"
        for trial, mark in skipped_stages(view.trials)
    ]


def _stage(kind: object, value: object) -> str:
    return f"{kind} {value:g}" if isinstance(value, int | float) else "its only stage"


def _verdict_lines(view: ExperimentView) -> list[str]:
    from lab.store import verdicts

    return [word(verdict.code, verdict.params) for verdict in verdicts(view) if verdict.said]
