"""An experiment's result as plain data: what `show --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.metrics.growth import Fit, LadderFit
from lab.metrics.verdict import Verdict
from lab.records.summary import Mark, Summary
from lab.store.measurements import SKIPPED_STAGE
from lab.store.views import ExperimentView, MeasurementRow, TrialRow


def verdicts(view: ExperimentView) -> tuple[Verdict, ...]:
    """What the data say, the reasons for saying nothing included (`said` is False there)."""
    return view.verdicts


def result_document(view: ExperimentView) -> dict[str, Any]:
    """`experiment`, `rows` (one per measurement, per stage left out, per trial that ended without any), `verdicts`.

    Verdicts are those that say something; the list is empty where nothing can be said. Where a ladder was climbed,
    `ladders` has the two fits of TTFT against prompt tokens for each arm, with their residuals.
    """
    states = {trial.id: trial for trial in view.trials}
    targets = {arm.id: arm.arm.target for arm in view.arms}
    measured = {row.trial_id for row in view.measurements}
    rows = [_measured(row, states[row.trial_id]) for row in view.measurements]
    rows += [_skipped(trial, targets[trial.arm_id], mark) for trial, mark in skipped_stages(view.trials)]
    unmeasured = measured | {trial.id for trial, _ in skipped_stages(view.trials)}
    ended = [t for t in view.trials if t.state in ("failed", "cancelled") and t.id not in unmeasured]
    ladders = {"ladders": [_ladder(fit) for fit in view.ladders]} if view.ladders else {}
    return {
        "experiment": {"id": view.row.id, "name": view.row.name, "state": view.row.state},
        "rows": rows + [_unmeasured(trial, targets[trial.arm_id]) for trial in ended],
        "verdicts": [{"code": v.code, **v.params} for v in view.verdicts if v.said],
        **ladders,
    }


def _ladder(fit: LadderFit) -> dict[str, Any]:
    measured = {"requests": fit.requests, "prompt_tokens": list(fit.tokens), "ttft_mean_ms": list(fit.ttft_ms)}
    fits = {"linear": _fit(fit.linear), "quadratic": _fit(fit.quadratic)}
    return {"arm": fit.arm_name, "growth": fit.growth, **measured, **fits}


def _fit(fit: Fit) -> dict[str, Any]:
    """Coefficients from the constant on, in ms and tokens."""
    return {
        "coefficients": list(fit.coefficients),
        "residuals_ms": list(fit.residuals_ms),
        "worst_ratio": fit.worst_ratio,
        "adjusted_r2": fit.adjusted_r2,
        "aicc": fit.aicc,
    }


def _measured(row: MeasurementRow, trial: TrialRow) -> dict[str, Any]:
    summary = row.summary
    return {
        **_place(trial, row.target),
        "stage_kind": row.stage.kind,
        "stage_value": row.stage.value,
        "state": trial.state,
        "failure": trial.failure,
        "requests": summary.requests,
        "succeeded": summary.succeeded,
        "ttft_mean_ms": summary.ttft_ms.mean,
        "ttft_p95_ms": summary.ttft_ms.p95,
        "tpot_p50_ms": summary.tpot_ms.p50,
        "output_tokens": summary.output_tokens,
        "wall_s": summary.wall_s,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "marks": [mark.code for mark in row.marks],
        **_apart(summary),
    }


def _apart(summary: Summary) -> dict[str, Any]:
    """Steady answers and long prompts, where the workload has both."""
    return {} if summary.interference is None else {"interference": summary.interference.model_dump(mode="json")}


def skipped_stages(trials: Sequence[TrialRow]) -> list[tuple[TrialRow, Mark]]:
    """The stages that were left out because the target does not take requests of their length."""
    return [(trial, mark) for trial in trials for mark in trial.marks if mark.code in SKIPPED_STAGE]


def _skipped(trial: TrialRow, target: str, mark: Mark) -> dict[str, Any]:
    stage = {"stage_kind": mark.params.get("stage_kind"), "stage_value": mark.params.get("stage_value")}
    place = {**_place(trial, target), **stage, "state": "not-applicable", "failure": "not-applicable"}
    return {**place, **dict.fromkeys(_NUMBERS), "marks": [mark.code]}


_NUMBERS = (
    "requests", "succeeded", "ttft_mean_ms", "ttft_p95_ms", "tpot_p50_ms", "output_tokens", "wall_s",
    "output_tokens_per_s",
)  # fmt: skip


def _unmeasured(trial: TrialRow, target: str) -> dict[str, Any]:
    place = {**_place(trial, target), "stage_kind": None, "stage_value": None}
    place |= {"state": trial.state, "failure": trial.failure}
    return {**place, **dict.fromkeys(_NUMBERS), "marks": [mark.code for mark in trial.marks]}


def _place(trial: TrialRow, target: str) -> dict[str, Any]:
    return {"arm": trial.arm_name, "target": target, "trial": trial.id, "repeat": trial.block}
