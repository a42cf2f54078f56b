"""From the records of one measurement to its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lab.metrics.gaps import longest_stall_ms, token_gaps
from lab.metrics.interference import split_interference
from lab.metrics.looping import looping_ratio
from lab.metrics.overlap import peak_in_flight
from lab.metrics.percentiles import distribution
from lab.metrics.rates import has_slo, measure_output, meets_slo
from lab.metrics.readings import Telemetry, energy_j, kv_peak_ratio, measured_span, telemetry_marks
from lab.metrics.steady import steady_state
from lab.metrics.validity import Evidence, validity_marks
from lab.records.ceiling import ClientCeiling
from lab.records.plan import Slo
from lab.records.request import LoadResult, RequestRecord
from lab.records.summary import Mark, Summary
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
    measured = [r for r in result.records if not r.warmup]
    ok = [r for r in measured if r.ok]
    timed = [r for r in measured if r.failure is None]
    gaps = token_gaps(ok)
    output = measure_output(measured, result.window_s)
    peak = peak_in_flight(measured, None if result.window_s is None else result.window_s * 1000)
    ttft = distribution(r.ttft_ms for r in timed)
    hit_ratio = cache_hit_ratio if cache_hit_ratio is not None else _cached_ratio(ok)
    looping = looping_ratio(ok)
    evidence = Evidence(result, workload, measured, ok, gaps, output, peak, ttft.n, hit_ratio, looping, ceiling)
    steady = steady_state(measured, result.concurrency_asked, result.window_s)
    span = None if telemetry is None else measured_span(telemetry, measured, output.wall_s, result.window_s)
    energy = None if telemetry is None else energy_j(telemetry, span)
    return Summary(
        requests=len(measured),
        succeeded=len(ok),
        incomplete=sum(1 for r in measured if r.incomplete and r.failure is None),
        failed=dict(Counter(r.failure for r in measured if r.failure is not None)),
        wall_s=output.wall_s,
        prompt_tokens=_total(r.prompt_tokens for r in ok),
        output_tokens=output.tokens,
        tokens_estimated=any(r.tokens_estimated for r in ok),
        output_tokens_per_s=output.per_second(output.tokens),
        completed_tokens_per_s=output.per_second(output.completed_tokens),
        requests_per_s=output.per_second(len(output.finished)),
        goodput_per_s=output.per_second(_met(output.finished, slo)) if has_slo(slo) else None,
        ttft_ms=ttft,
        tpot_ms=distribution(r.tpot_ms for r in ok),
        itl_ms=distribution(gaps.itl_ms),
        inter_chunk_ms=distribution(gaps.inter_chunk_ms),
        e2e_ms=distribution(r.e2e_ms for r in ok),
        first_answer_ms=distribution(r.first_answer_ms for r in timed),
        decode_tokens_per_s=distribution(1000 / r.tpot_ms for r in ok if r.tpot_ms),
        peak_in_flight=peak,
        tokens_per_chunk=gaps.tokens_per_chunk,
        cache_hit_ratio=hit_ratio,
        client_cpu_s=result.client.cpu_s,
        client_lag_p99_ms=result.client.lag_p99_ms,
        steady_s=None if steady is None else steady.seconds,
        steady_tokens_per_s=None if steady is None else steady.tokens_per_s,
        longest_stall_ms=longest_stall_ms(gaps, measured),
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


def _met(records: Sequence[RequestRecord], slo: Slo) -> int:
    return sum(1 for r in records if meets_slo(r, slo))


def _total(counts: Iterable[int | None]) -> int | None:
    listed = list(counts)
    known = [c for c in listed if c is not None]
    return int(sum(known)) if known and len(known) == len(listed) else None


def _cached_ratio(ok: Sequence[RequestRecord]) -> float | None:
    known = [(r.cached_tokens, r.prompt_tokens) for r in ok if r.cached_tokens is not None and r.prompt_tokens]
    prompts = sum(prompt or 0 for _, prompt in known)
    return sum(cached or 0 for cached, _ in known) / prompts if prompts else None
