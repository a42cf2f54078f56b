"""An experiment's result as plain data: what `show --json` prints."""

from __future__ import annotations

from typing import Any

from lab.metrics.growth import Fit, LadderFit
from lab.metrics.verdict import Verdict
from lab.records.summary import Summary
from lab.store.views import ExperimentView, MeasurementRow, TrialRow


def verdicts(view: ExperimentView) -> tuple[Verdict, ...]:
    """What the data say, the reasons for saying nothing included (`said` is False there)."""
    return view.verdicts


def result_document(view: ExperimentView) -> dict[str, Any]:
    """`experiment`, `rows` (one per measurement; a trial that ended without any has one too) and `verdicts`.

    Verdicts are those that say something; the list is empty where nothing can be said. Where a ladder was climbed,
    `ladders` has the two fits of TTFT against prompt tokens for each arm, with their residuals.
    """
    states = {trial.id: trial for trial in view.trials}
    measured = {row.trial_id for row in view.measurements}
    rows = [_measured(row, states[row.trial_id]) for row in view.measurements]
    targets = {arm.id: arm.arm.target for arm in view.arms}
    ended = [t for t in view.trials if t.state in ("failed", "cancelled") and t.id not in measured]
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


def _unmeasured(trial: TrialRow, target: str) -> dict[str, Any]:
    numbers = (
        "stage_kind", "stage_value", "requests", "succeeded", "ttft_mean_ms", "ttft_p95_ms", "tpot_p50_ms",
        "output_tokens", "wall_s", "output_tokens_per_s",
    )  # fmt: skip
    place = {**_place(trial, target), "state": trial.state, "failure": trial.failure}
    return {**place, **dict.fromkeys(numbers), "marks": [mark.code for mark in trial.marks]}


def _place(trial: TrialRow, target: str) -> dict[str, Any]:
    return {"arm": trial.arm_name, "target": target, "trial": trial.id, "repeat": trial.block}
