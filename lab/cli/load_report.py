"""What `lab load` prints and writes: the JSON document, the table, one line per request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TextIO

from lab.messages import word
from lab.metrics import distribution
from lab.records.request import ClientUsage, LoadResult, RequestRecord
from lab.records.summary import Distribution, Summary
from lab.records.table import RequestTable
from lab.records.workload import LoadJob, Stage

_TIMES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_MORE_TIMES = ("first_answer_ms", "inter_chunk_ms", "decode_tokens_per_s")
_ENGINE_TIMES = ("engine_queue_ms", "engine_prefill_ms")
_SHOWN = ("mean", "p50", "p90", "p95", "p99", "n")
_LABELS = {"concurrency": "concurrency", "rate": "requests/s", "prompt_tokens": "prompt tokens"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One stage without its requests. `engine` holds what the engine itself said of each request's times."""

    kind: str
    stage: Stage
    summary: Summary
    client: ClientUsage
    engine: dict[str, Distribution]
    first_failure: str | None

    @classmethod
    def of(cls, job: LoadJob, result: LoadResult, summary: Summary) -> Self:
        table = RequestTable.of(result.records)
        ok = table.where(table.ok & ~table.flag("warmup"))
        failed = table.where(table.failed)
        return cls(
            kind=job.workload.kind,
            stage=job.stage,
            summary=summary,
            client=result.client,
            engine={name: distribution(ok.column(name)) for name in _ENGINE_TIMES},
            first_failure=f"{failed[0].failure}: {failed[0].message}" if len(failed) else None,
        )


def load_document(stages: Sequence[Measured]) -> dict[str, Any]:
    """The document of `load --json`: flat for one stage, a list under `stages` for several.

    Without any, every figure is null.
    """
    if not stages:
        return _empty()
    if len(stages) == 1:
        return _document(stages[0])
    return {
        "stages": [
            {"stage_kind": each.stage.kind, "stage_value": each.stage.value, **_document(each)} for each in stages
        ]
    }


def _document(measured: Measured) -> dict[str, Any]:
    summary = measured.summary
    return {
        "requests": summary.requests,
        "succeeded": summary.succeeded,
        "incomplete": summary.incomplete,
        "failed": dict(summary.failed),
        "wall_s": summary.wall_s,
        "prompt_tokens": summary.prompt_tokens,
        "output_tokens": summary.output_tokens,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "completed_tokens_per_s": summary.completed_tokens_per_s,
        "requests_per_s": summary.requests_per_s,
        "goodput_per_s": summary.goodput_per_s,
        **{name: _distribution(getattr(summary, name)) for name in (*_TIMES, *_MORE_TIMES)},
        **{name: _distribution(values) for name, values in measured.engine.items()},
        "peak_in_flight": summary.peak_in_flight,
        "tokens_per_chunk": summary.tokens_per_chunk,
        "longest_stall_ms": summary.longest_stall_ms,
        "looping_ratio": summary.looping_ratio,
        "cache_hit_ratio": summary.cache_hit_ratio,
        "steady": {"seconds": summary.steady_s, "output_tokens_per_s": summary.steady_tokens_per_s},
        "interference": None if summary.interference is None else summary.interference.model_dump(mode="json"),
        "client": _client(measured.client),
        "marks": [mark.code for mark in summary.marks],
    }


def _empty() -> dict[str, Any]:
    empty = {name: _distribution(Distribution()) for name in _TIMES}
    rates = dict.fromkeys(("wall_s", "output_tokens", "output_tokens_per_s", "requests_per_s"))
    ends = {"peak_in_flight": 0, "client": _client(ClientUsage()), "marks": []}
    return {"requests": 0, "succeeded": 0, "failed": {}, **rates, **empty, **ends}


def _client(usage: ClientUsage) -> dict[str, Any]:
    """`processes` lists each where there are several."""
    each = [
        {"cpu_s": one.cpu_s, "lag_p99_ms": one.lag_p99_ms, "memory_bytes": one.memory_bytes} for one in usage.processes
    ]
    whole = {"cpu_s": usage.cpu_s, "lag_p99_ms": usage.lag_p99_ms, "memory_bytes": usage.memory_bytes}
    return {**whole, "processes": each} if each else whole


def _distribution(values: Distribution) -> dict[str, Any]:
    return {name: getattr(values, name) for name in _SHOWN}


def load_text(measured: Measured) -> str:
    """A table for a terminal, with the marks' sentences below it."""
    summary, stage = measured.summary, measured.stage
    failed = ", ".join(f"{name} {count}" for name, count in summary.failed.items())
    lines = [] if stage.kind is None else [f"{_LABELS[stage.kind]:<12} {stage.value:g}"]
    lines += [
        f"requests     {summary.requests} ({summary.succeeded} succeeded{', failed: ' + failed if failed else ''})",
        f"wall time    {_number(summary.wall_s)} s, at most {summary.peak_in_flight} under way",
        f"throughput   {_number(summary.output_tokens_per_s)} output tokens/s, "
        f"{_number(summary.requests_per_s)} requests/s",
    ]
    if summary.steady_tokens_per_s is not None:
        lines.append(
            f"steady       {_number(summary.steady_tokens_per_s)} output tokens/s over {summary.steady_s:.1f} s"
        )
    if summary.goodput_per_s is not None:
        lines.append(f"goodput      {_number(summary.goodput_per_s)} requests/s within the limits")
    lines += [
        f"{'ms':<14} {'mean':>9} {'P50':>9} {'P90':>9} {'P95':>9} {'P99':>9} {'n':>7}",
        *(_row(name.removesuffix("_ms").upper(), getattr(summary, name)) for name in _TIMES),
        *(_row(name.removesuffix("_ms").replace("_", " "), each) for name, each in measured.engine.items() if each.n),
    ]
    if summary.longest_stall_ms is not None:
        lines.append(f"longest stall of one answer {_number(summary.longest_stall_ms)} ms")
    lines += [f"! {word(mark.code, mark.params)}" for mark in summary.marks]
    if measured.first_failure is not None:
        lines.append(f"! the first failure: {measured.first_failure}")
    return "\n".join(lines)


def _row(label: str, values: Distribution) -> str:
    shown = [_number(getattr(values, part)) for part in _SHOWN[:-1]]
    return f"{label:<14} " + " ".join(f"{value:>9}" for value in shown) + f" {values.n:>7}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def write_requests(file: TextIO, measured: Measured, result: LoadResult) -> None:
    """One line per request, as they are made: not all of them need be held."""
    stage = measured.stage
    place = {} if stage.kind is None else {"stage_kind": stage.kind, "stage_value": stage.value}
    for record in result.records:
        file.write(json.dumps({**place, **request_line(record)}, ensure_ascii=False) + "\n")


def request_line(record: RequestRecord) -> dict[str, Any]:
    """What one line of `load --records` says."""
    return {
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
        "engine_queue_ms": record.engine_queue_ms,
        "engine_prefill_ms": record.engine_prefill_ms,
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
