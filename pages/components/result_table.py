"""Article 2's table filled in, the measurements behind it, and the ratios between the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.metrics.pool import PooledArm, PooledInterference
from lab.metrics.verdict import Verdict
from lab.records.workload import Stage
from lab.store import MeasurementRow
from pages.components.i18n import N_, _, word
from pages.components.markdown import plain_markdown
from pages.components.metric_help import metric_help
from pages.components.result_rows import measurement_record
from pages.components.status import MISSING, target_word

# how a ratio reads for the arm that is better, and for the one that is worse
_RATIOS = {
    "verdict-throughput": (N_("{ratio} × higher"), N_("{ratio} × lower")),
    "verdict-ttft": (N_("{ratio} × shorter"), N_("{ratio} × longer")),
    "verdict-tpot": (N_("{ratio} × faster"), N_("{ratio} × slower")),
    "verdict-stall": (N_("{ratio} × shorter"), N_("{ratio} × longer")),
    "verdict-intruder-ttft": (N_("{ratio} × shorter"), N_("{ratio} × longer")),
}
_RATIO_TITLES = {
    "verdict-throughput": N_("Throughput"),
    "verdict-ttft": N_("P95 TTFT"),
    "verdict-stall": N_("Longest stall"),
    "verdict-intruder-ttft": N_("TTFT of long prompts"),
    "verdict-tpot": N_("Decode speed"),
}
_PLAIN_RATIOS = ("verdict-throughput", "verdict-ttft", "verdict-tpot")
_INTERFERENCE_RATIOS = ("verdict-stall", "verdict-intruder-ttft", "verdict-tpot")
_STAGES = {
    "concurrency": N_("{value} at a time"),
    "rate": N_("{value} per second"),
    "prompt_tokens": N_("{value} prompt tokens"),
}


_STAGE_NAMES = {
    "concurrency": N_("requests at a time"),
    "rate": N_("requests per second"),
    "prompt_tokens": N_("prompt tokens"),
}


def stage_name(kind: str) -> str:
    return _(_STAGE_NAMES[kind]) if kind in _STAGE_NAMES else kind


def stage_text(stage: Stage) -> str:
    """What the stage stands for; empty where the workload has a single one."""
    if stage.kind is None or stage.value is None:
        return ""
    return _(_STAGES[stage.kind]).format(value=f"{stage.value:g}")


def arm_table(arms: Sequence[PooledArm]) -> None:
    """One row for each arm: the table of article 2, pooled over the repeats."""
    records = [_arm_record(arm) for arm in arms]
    interfered = any(arm.interference is not None for arm in arms)
    names = [
        "arm", "stage", "repeats", "requests", "failed", *(_INTERFERENCE if interfered else _TTFT), "output_tokens",
        "wall_s", "output_tokens_per_s", "spread",
    ]  # fmt: skip
    shown = [name for name in names if name not in ("stage", "failed", "spread") or any(r[name] for r in records)]
    st.dataframe(
        styled([{name: record[name] for name in shown} for record in records]),
        hide_index=True,
        column_order=shown,
        column_config=column_config(shown),
        key="results:arms",
    )


_TTFT = ("ttft_mean_ms", "ttft_p95_ms")
_INTERFERENCE = ("stall_ms", "quiet_gap_ms", "disturbed_gap_ms", "intruder_ttft_ms", "intruders")


def _arm_record(arm: PooledArm) -> dict[str, Any]:
    spread = arm.repeats > 1 and arm.lowest_tokens_per_s is not None and arm.highest_tokens_per_s is not None
    return {
        "arm": arm.arm_name if arm.target != "gateway" else f"{arm.arm_name} ({target_word(arm.target)})",
        "stage": stage_text(arm.stage),
        "repeats": arm.repeats,
        "requests": arm.requests,
        "failed": sum(arm.failed.values()) or None,
        "ttft_mean_ms": arm.ttft_ms.mean,
        "ttft_p95_ms": arm.ttft_ms.p95,
        "output_tokens": arm.output_tokens,
        "wall_s": arm.wall_s,
        "output_tokens_per_s": arm.output_tokens_per_s,
        **_interference_record(arm.interference),
        "spread": f"{arm.lowest_tokens_per_s:,.1f} – {arm.highest_tokens_per_s:,.1f}" if spread else None,
    }


def _interference_record(pooled: PooledInterference | None) -> dict[str, Any]:
    if pooled is None:
        return {}
    return {
        "stall_ms": pooled.longest_stall_ms,
        "quiet_gap_ms": pooled.quiet_gap_mean_ms,
        "disturbed_gap_ms": pooled.disturbed_gap_mean_ms,
        "intruder_ttft_ms": pooled.intruder_ttft_mean_ms,
        "intruders": pooled.intruders,
    }


def measurement_table(rows: Sequence[MeasurementRow], key: str, on_select: Any) -> None:
    """One row for each measurement; a click on one calls `on_select`."""
    records = [
        {
            **measurement_record(row),
            "stage": stage_text(row.stage),
            "marks": "; ".join(dict.fromkeys(word(mark.code, dict(mark.params)) for mark in row.marks)) or None,
        }
        for row in rows
    ]
    names = [
        "measurement", "arm", "repeat", "stage", "requests", "succeeded", "ttft_mean_ms", "ttft_p50_ms", "ttft_p95_ms",
        "tpot_p50_ms", "stall_ms", "intruder_ttft_ms", "output_tokens", "wall_s", "output_tokens_per_s",
        "goodput_per_s", "marks",
    ]  # fmt: skip
    optional = ("stage", "goodput_per_s", "intruder_ttft_ms", "stall_ms")
    empty = {name for name in optional if not any(record[name] for record in records)}
    if "intruder_ttft_ms" not in empty:
        empty |= {"ttft_mean_ms", "ttft_p50_ms", "ttft_p95_ms"}
    else:
        empty.add("stall_ms")
    st.dataframe(
        styled([{name: record[name] for name in names} for record in records]),
        hide_index=True,
        column_order=[name for name in names if name not in empty],
        column_config=column_config(names),
        selection_mode="single-row",
        on_select=on_select,
        key=key,
    )


def ratio_table(verdicts: Sequence[Verdict], reference: str | None) -> bool:
    """Each arm against the reference, with the spread over the repeats; False where no ratio can be given."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for verdict in verdicts:
        if verdict.said and verdict.code in _RATIOS:
            better, worse = str(verdict.params["arm"]), str(verdict.params["other"])
            if reference not in (better, worse):
                continue  # a stage that the reference failed in; the sentences tell it
            arm, phrase = (better, 0) if worse == reference else (worse, 1)
            cells = rows.setdefault((arm, _stage_of(verdict)), {})
            cells[verdict.code] = _ratio(verdict, _(_RATIOS[verdict.code][phrase]))
    if not rows or reference is None:
        return False
    note = _("Against {arm}; in brackets the lowest and highest ratio of a single repeat.")
    st.caption(plain_markdown(note.format(arm=reference)))
    interfered = any("verdict-stall" in cells or "verdict-intruder-ttft" in cells for cells in rows.values())
    codes = _INTERFERENCE_RATIOS if interfered else _PLAIN_RATIOS
    titles = [_("Arm"), *(_(_RATIO_TITLES[code]) for code in codes)]
    lines = ["| " + " | ".join(titles) + " |", "|:--" * len(titles) + "|"]
    for (arm, stage), cells in rows.items():
        name = plain_markdown(f"{arm}, {stage}" if stage else arm)
        lines.append("| " + " | ".join([name, *(cells.get(code, MISSING) for code in codes)]) + " |")
    st.markdown("\n".join(lines))
    return True


def _stage_of(verdict: Verdict) -> str:
    kind, value = verdict.params.get("stage_kind"), verdict.params.get("stage_value")
    if kind is None or value is None:
        return ""
    return stage_text(Stage.model_validate({"kind": kind, "value": value}))


def _ratio(verdict: Verdict, phrase: str) -> str:
    low, high = verdict.params["low"], verdict.params["high"]
    spread = _("({low} to {high})").format(low=low, high=high)
    return f"**{phrase.format(ratio=verdict.params['ratio'])}** {spread}"


_DIGITS = {
    "ttft_mean_ms": 0, "ttft_p50_ms": 0, "ttft_p95_ms": 0, "ttft_ms": 1, "e2e_ms": 1, "tpot_ms": 2, "tpot_p50_ms": 1,
    "stall_ms": 0, "quiet_gap_ms": 0, "disturbed_gap_ms": 0, "intruder_ttft_ms": 0, "start_ms": 0,
    "client_wait_ms": 1, "wall_s": 1, "output_tokens_per_s": 1, "goodput_per_s": 2,
}  # fmt: skip
_WHOLE = (
    "requests", "succeeded", "failed", "repeats", "repeat", "output_tokens", "prompt_tokens", "completion_tokens",
    "cached_tokens", "measurement", "index", "http_status", "intruders",
)  # fmt: skip


_WIDTHS: dict[str, Any] = {
    "arm": 270,
    "stage": 130,
    "spread": 150,
    "marks": "large",
    "text": "large",
    "message": "medium",
}


def styled(records: Sequence[Mapping[str, Any]]) -> Any:
    """The records as a table whose numbers carry thousands separators and whose gaps are en dashes."""
    frame = pd.DataFrame(records)
    for name in frame.columns:
        if name in _DIGITS or name in _WHOLE:
            frame[name] = pd.to_numeric(frame[name])
    formats: dict[str, Any] = {name: f"{{:,.{digits}f}}" for name, digits in _DIGITS.items() if name in frame}
    formats |= {name: "{:,.0f}" for name in _WHOLE if name in frame}
    return frame.style.format(formats, na_rep=MISSING)


def column_config(names: Sequence[str]) -> dict[str, Any]:
    """Headings with units; the help of a metric is its definition."""
    titles = {
        "measurement": _("No."),
        "arm": _("Arm"),
        "stage": _("Stage"),
        "repeat": _("Repeat"),
        "repeats": _("Repeats"),
        "requests": _("Requests"),
        "succeeded": _("Succeeded"),
        "failed": _("Failed"),
        "ttft_mean_ms": _("Mean TTFT (ms)"),
        "ttft_p50_ms": _("P50 TTFT (ms)"),
        "ttft_p95_ms": _("P95 TTFT (ms)"),
        "tpot_p50_ms": _("P50 TPOT (ms)"),
        "stall_ms": _("Longest stall (ms)"),
        "quiet_gap_ms": _("Mean gap, quiet (ms)"),
        "disturbed_gap_ms": _("Mean gap, long prompt waiting (ms)"),
        "intruder_ttft_ms": _("Mean TTFT of long prompts (ms)"),
        "intruders": _("Long prompts"),
        "output_tokens": _("Total tokens"),
        "wall_s": _("Wall time (s)"),
        "output_tokens_per_s": _("Throughput (tok/s)"),
        "goodput_per_s": _("Goodput (req/s)"),
        "spread": _("Single repeats (tok/s)"),
        "marks": _("Reservations"),
        "index": _("Request"),
        "result": _("Result"),
        "start_ms": _("Start (ms)"),
        "ttft_ms": _("TTFT (ms)"),
        "tpot_ms": _("TPOT (ms)"),
        "e2e_ms": _("E2E (ms)"),
        "prompt_tokens": _("Prompt tokens"),
        "completion_tokens": _("Answer tokens"),
        "cached_tokens": _("Cached tokens"),
        "finish_reason": _("Finish"),
        "client_wait_ms": _("Client's wait (ms)"),
        "http_status": _("HTTP status"),
        "message": _("Message"),
        "text": _("Answer"),
    }
    numbers = {*_DIGITS, *_WHOLE}
    config: dict[str, Any] = {}
    for name in names:
        if name in numbers:
            config[name] = st.column_config.NumberColumn(titles[name], help=metric_help(name))
        else:
            width = _WIDTHS.get(name, "small")
            config[name] = st.column_config.TextColumn(titles.get(name, name), width=width)
    return config
