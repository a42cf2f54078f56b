"""The figures of an experiment as plain rows, for tables and CSV files. No drawing here."""

from __future__ import annotations

from typing import Any

from lab.records.request import RequestRecord
from lab.store import MeasurementRow


def measurement_record(row: MeasurementRow) -> dict[str, Any]:
    """One measurement as plain figures, units in the names; the row of the CSV file."""
    summary = row.summary
    return {
        "measurement": row.id,
        "trial": row.trial_id,
        "arm": row.arm_name,
        "target": row.target,
        "repeat": row.repeat,
        "stage_kind": row.stage.kind,
        "stage_value": row.stage.value,
        "requests": summary.requests,
        "succeeded": summary.succeeded,
        "failed": sum(summary.failed.values()),
        "ttft_mean_ms": summary.ttft_ms.mean,
        "ttft_p50_ms": summary.ttft_ms.p50,
        "ttft_p95_ms": summary.ttft_ms.p95,
        "ttft_n": summary.ttft_ms.n,
        "tpot_p50_ms": summary.tpot_ms.p50,
        "e2e_p95_ms": summary.e2e_ms.p95,
        "stall_ms": summary.longest_stall_ms,
        "intruder_ttft_ms": None if summary.interference is None else summary.interference.intruder_ttft_ms.mean,
        "output_tokens": summary.output_tokens,
        "wall_s": summary.wall_s,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "requests_per_s": summary.requests_per_s,
        "goodput_per_s": summary.goodput_per_s,
        "marks": " ".join(mark.code for mark in row.marks),
        "started_at": row.started_at.isoformat(),
    }


def request_record(request: RequestRecord) -> dict[str, Any]:
    """One request as plain figures; times in milliseconds from its own t0, the start from the measurement's."""
    return {
        "index": request.index,
        "warmup": request.warmup,
        "result": request.failure or ("incomplete" if request.incomplete else "ok"),
        "start_ms": request.t0_ms,
        "ttft_ms": request.ttft_ms,
        "tpot_ms": request.tpot_ms,
        "e2e_ms": request.e2e_ms,
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "cached_tokens": request.cached_tokens,
        "finish_reason": request.finish_reason,
        "client_wait_ms": request.client_wait_ms,
        "http_status": request.http_status,
        "message": request.message,
        "text": request.text,
    }
