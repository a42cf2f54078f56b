"""What `lab load` prints and writes: the JSON document, the table, one line per request."""

from __future__ import annotations

import json
from typing import Any

from lab.messages import word
from lab.records.request import LoadResult, RequestRecord
from lab.records.summary import Distribution, Summary

_TIMES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_SHOWN = ("mean", "p50", "p90", "p95", "p99", "n")


def load_document(summary: Summary | None) -> dict[str, Any]:
    """The document of `load --json`; without a summary every figure is null."""
    if summary is None:
        empty = {name: _distribution(Distribution()) for name in _TIMES}
        rates = dict.fromkeys(("wall_s", "output_tokens", "output_tokens_per_s", "requests_per_s"))
        client = {"cpu_s": None, "lag_p99_ms": None}
        ends = {"peak_in_flight": 0, "client": client, "marks": []}
        return {"requests": 0, "succeeded": 0, "failed": {}, **rates, **empty, **ends}
    return {
        "requests": summary.requests,
        "succeeded": summary.succeeded,
        "incomplete": summary.incomplete,
        "failed": dict(summary.failed),
        "wall_s": summary.wall_s,
        "output_tokens": summary.output_tokens,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "completed_tokens_per_s": summary.completed_tokens_per_s,
        "requests_per_s": summary.requests_per_s,
        **{name: _distribution(getattr(summary, name)) for name in _TIMES},
        "peak_in_flight": summary.peak_in_flight,
        "client": {"cpu_s": summary.client_cpu_s, "lag_p99_ms": summary.client_lag_p99_ms},
        "marks": [mark.code for mark in summary.marks],
    }


def _distribution(values: Distribution) -> dict[str, Any]:
    return {name: getattr(values, name) for name in _SHOWN}


def load_text(summary: Summary, result: LoadResult) -> str:
    """A table for a terminal, with the marks' sentences below it."""
    failed = ", ".join(f"{name} {count}" for name, count in summary.failed.items())
    lines = [
        f"requests     {summary.requests} ({summary.succeeded} succeeded{', failed: ' + failed if failed else ''})",
        f"wall time    {_number(summary.wall_s)} s, at most {summary.peak_in_flight} under way",
        f"throughput   {_number(summary.output_tokens_per_s)} output tokens/s, "
        f"{_number(summary.requests_per_s)} requests/s",
        f"{'ms':<12} {'mean':>9} {'P50':>9} {'P90':>9} {'P95':>9} {'P99':>9} {'n':>7}",
        *(_row(name, getattr(summary, name)) for name in _TIMES),
    ]
    lines += [f"! {word(mark.code, mark.params)}" for mark in summary.marks]
    first = next((record for record in result.records if record.failure is not None), None)
    if first is not None:
        lines.append(f"! the first failure: {first.failure}: {first.message}")
    return "\n".join(lines)


def _row(name: str, values: Distribution) -> str:
    shown = [_number(getattr(values, part)) for part in _SHOWN[:-1]]
    return f"{name.removesuffix('_ms').upper():<12} " + " ".join(f"{value:>9}" for value in shown) + f" {values.n:>7}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def request_line(record: RequestRecord) -> str:
    """One line of `load --records`."""
    line = {
        "index": record.index,
        "ok": record.ok,
        "failure": record.failure,
        "message": record.message,
        "incomplete": record.incomplete,
        "warmup": record.warmup,
        "scheduled_ms": record.scheduled_ms,
        "sent_ms": record.sent_ms,
        "client_wait_ms": record.client_wait_ms,
        "connect_ms": record.connect_ms,
        "first_byte_ms": record.first_byte_ms,
        "ttft_ms": record.ttft_ms,
        "first_answer_ms": record.first_answer_ms,
        "e2e_ms": record.e2e_ms,
        "tpot_ms": record.tpot_ms,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "cached_tokens": record.cached_tokens,
        "tokens_estimated": record.tokens_estimated,
        "finish_reason": record.finish_reason,
        "chunks": len(record.chunk_times_ms),
        "http_status": record.http_status,
        "text": record.text,
        "marks": list(record.marks),
    }
    return json.dumps(line, ensure_ascii=False) + "\n"
