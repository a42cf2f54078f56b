"""One measured call and what the loader says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.records.states import RequestFailure


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as DESIGN section 3 defines it; None is "cannot be had".

    `scheduled_ms` and `t0_ms` and `sent_ms` count from the start of the measurement's clock; every other time counts
    from t0 (open loop: the scheduled moment; otherwise the moment the bytes were handed to the connection).
    `chunk_times_ms` are the arrivals of the token-bearing chunks, from t0, to the microsecond; what the loader or the
    store made holds them packed (`Arrivals`).
    """

    index: int
    warmup: bool
    t0_ms: float
    sent_ms: float | None
    scheduled_ms: float | None = None
    client_wait_ms: float | None = None
    connect_ms: float | None = None
    first_byte_ms: float | None = None
    ttft_ms: float | None = None
    first_answer_ms: float | None = None
    e2e_ms: float | None = None
    tpot_ms: float | None = None
    chunk_times_ms: Sequence[float] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_estimated: bool = False
    finish_reason: str | None = None
    failure: RequestFailure | None = None
    message: str | None = None
    http_status: int | None = None
    incomplete: bool = False
    text: str = ""
    engine_queue_ms: float | None = None
    engine_prefill_ms: float | None = None
    marks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.failure is None and not self.incomplete


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """What one of several loader processes cost, its decoder included; `memory_bytes` of the larger of the two."""

    cpu_s: float
    lag_p99_ms: float | None
    lag_max_ms: float | None
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """The loader's own cost: CPU from the first t0 to the summary, decoding included; event-loop lag.

    Lag and `memory_bytes` (the most that was resident) are those of the worst process; `processes` lists them where
    there are several.
    """

    cpu_s: float | None = None
    lag_p99_ms: float | None = None
    lag_max_ms: float | None = None
    memory_bytes: int | None = None
    processes: tuple[ProcessUsage, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What one measurement (one stage) brought back, warm-up included and flagged.

    `records` is a `RequestTable` where the loader brought them: columns, from which a record is made when asked for.
    `clock_ns` is the start of the measurement's clock on the host's monotonic one, None where it was never started.
    """

    records: Sequence[RequestRecord]
    client: ClientUsage
    requests_asked: int | None
    concurrency_asked: int | None
    rate_asked_per_s: float | None
    window_s: float | None
    output_tokens_asked: int | None
    stopped: bool = False
    notes: tuple[str, ...] = ()
    clock_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    done: int
    total: int | None
    in_flight: int
    elapsed_s: float
