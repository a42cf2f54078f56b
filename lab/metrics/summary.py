"""From the records of one measurement to its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.metrics.gaps import longest_stall_ms, token_gaps
from lab.metrics.interference import split_interference
from lab.metrics.looping import looping_ratio
from lab.metrics.overlap import peak_in_flight
from lab.metrics.percentiles import Values, distribution
from lab.metrics.rates import has_slo, measure_output, met_slo
from lab.metrics.readings import Telemetry, energy_j, kv_peak_ratio, measured_span, telemetry_marks
from lab.metrics.steady import steady_state
from lab.metrics.validity import Evidence, validity_marks
from lab.records.ceiling import ClientCeiling
from lab.records.plan import Slo
from lab.records.request import LoadResult
from lab.records.summary import Mark, Summary
from lab.records.table import RequestTable
from lab.records.workload import Workload


def summarise(
    result: LoadResult,
    *,
    slo: Slo,
    workload: Workload,
    cache_hit_ratio: float | None = None,
    extra_marks: Sequence[Mark] = (),
    telemetry: Telemetry | None = None,
    ceiling: ClientCeiling | None = None,
) -> Summary:
    """One measurement as DESIGN section 3 defines it, warm-up left out.

    `cache_hit_ratio` is the engine's own (0..1); without it the servers' cached tokens stand in, where they gave any.
    `telemetry` None: nothing was sampled, and what comes from samples is None. `ceiling`
    is what the client of this host keeps up with, where it was measured.
    """
    table = RequestTable.of(result.records)
    measured = table.where(~table.flag("warmup"))
    ok = measured.where(measured.ok)
    timed = measured.where(~measured.failed)
    gaps = token_gaps(ok)
    in_ramp = table.marked("ramp")
    present = table.where(in_ramp | ~table.flag("warmup"))
    output = measure_output(measured, result.window_s, table.where(in_ramp) if in_ramp.any() else None)
    window_ms = None if result.window_s is None else result.window_s * 1000
    timeout_ms = workload.request_timeout_s * 1000
    peak = peak_in_flight(present, window_ms, 0.0, timeout_ms=timeout_ms)
    ttft = distribution(timed.column("ttft_ms"))
    hit_ratio = cache_hit_ratio if cache_hit_ratio is not None else _cached_ratio(ok)
    looping = looping_ratio(ok)
    evidence = Evidence(result, workload, measured, ok, gaps, output, peak, ttft.n, hit_ratio, looping, ceiling)
    steady = steady_state(present, result.concurrency_asked, result.window_s, timeout_ms=timeout_ms)
    span = None if telemetry is None else measured_span(telemetry, measured, output.wall_s, result.window_s)
    energy = None if telemetry is None else energy_j(telemetry, span)
    return Summary(
        requests=len(measured),
        succeeded=len(ok),
        incomplete=int((measured.flag("incomplete") & ~measured.failed).sum()),
        failed=measured.counted_words("failure"),
        wall_s=output.wall_s,
        prompt_tokens=_total(ok.column("prompt_tokens")),
        output_tokens=output.tokens,
        tokens_estimated=bool(ok.flag("tokens_estimated").any()),
        output_tokens_per_s=output.per_second(output.tokens),
        completed_tokens_per_s=output.per_second(output.completed_tokens),
        requests_per_s=output.per_second(len(output.finished)),
        goodput_per_s=output.per_second(int(met_slo(output.finished, slo).sum())) if has_slo(slo) else None,
        ttft_ms=ttft,
        tpot_ms=distribution(ok.column("tpot_ms")),
        itl_ms=gaps.itl_ms,
        inter_chunk_ms=gaps.inter_chunk_ms,
        e2e_ms=distribution(ok.column("e2e_ms")),
        first_answer_ms=distribution(timed.column("first_answer_ms")),
        decode_tokens_per_s=distribution(_speeds(ok.column("tpot_ms"))),
        peak_in_flight=peak,
        tokens_per_chunk=gaps.tokens_per_chunk,
        cache_hit_ratio=hit_ratio,
        client_cpu_s=result.client.cpu_s,
        client_lag_p99_ms=result.client.lag_p99_ms,
        steady_s=None if steady is None else steady.seconds,
        steady_tokens_per_s=None if steady is None else steady.tokens_per_s,
        longest_stall_ms=longest_stall_ms(measured),
        looping_ratio=looping,
        kv_peak_ratio=None if telemetry is None else kv_peak_ratio(telemetry, span),
        energy_j=energy,
        joules_per_token=energy / output.tokens if energy is not None and output.tokens else None,
        interference=split_interference(measured),
        marks=(
            *validity_marks(evidence),
            *(() if telemetry is None else telemetry_marks(telemetry, span)),
            *extra_marks,
        ),
    )


def _speeds(tpot_ms: Values) -> Values:
    return 1000 / tpot_ms[tpot_ms > 0]


def _total(counts: Values) -> int | None:
    """None as soon as one count is missing."""
    total = float(counts.sum())
    return int(total) if counts.size and not np.isnan(total) else None


def _cached_ratio(ok: RequestTable) -> float | None:
    cached, prompts = ok.column("cached_tokens"), ok.column("prompt_tokens")
    known = ~np.isnan(cached) & (prompts > 0)
    return float(cached[known].sum() / prompts[known].sum()) if known.any() else None
