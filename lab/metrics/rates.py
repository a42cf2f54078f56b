"""Tokens and requests per second: the whole run, or what fell inside a window of time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.metrics.percentiles import Values
from lab.records.plan import Slo
from lab.records.table import Flags, Places, RequestTable


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens over a stretch of time.

    `wall_s` is None where nothing ran; `tokens` is None where a successful request has no token count, or where no
    answer that ended says how many tokens the chunks of a part carry.
    `completed_tokens` leaves out what was cut off; `finished` are the successful requests that ended inside the window.
    `cut_off` counts the requests of which only a part fell inside, `carried_tokens` are those of the ramp's requests
    that arrived meanwhile: the system wrote them too, so they are among the tokens.
    """

    wall_s: float | None
    tokens: int | None
    completed_tokens: int | None
    finished: RequestTable
    cut_off: int
    carried_tokens: int = 0

    def per_second(self, amount: float | None) -> float | None:
        return None if amount is None or not self.wall_s else amount / self.wall_s


def last_token_ms(table: RequestTable) -> Values:
    """The last generated output on the measurement's clock; NaN where none came."""
    e2e = table.column("e2e_ms")
    found: Values = table.column("t0_ms") + np.where(np.isnan(e2e), table.last_chunk_ms, e2e)
    return found


def measure_output(measured: RequestTable, window_s: float | None, ramp: RequestTable | None = None) -> Output:
    """Output of the measured requests (warm-up already left out); `ramp` are those that its ramp had started."""
    if not len(measured):
        return Output(None, None, None, measured, 0)
    output = _whole_run(measured) if window_s is None else _inside_window(measured, window_s)
    if ramp is None or not len(ramp) or output.wall_s is None or output.tokens is None:
        return output
    start_ms = float(measured.column("t0_ms").min()) if window_s is None else 0.0
    ramp = ramp.where(~ramp.failed)
    inside = ramp.chunks_until(start_ms + output.wall_s * 1000) - ramp.chunks_until(start_ms)
    known = [_average_per_chunk(table) for table in (ramp, output.finished)]
    carried = _tokens_of(inside, ramp, next((average for average in known if average is not None), None))
    if carried is None:
        return replace(output, tokens=None)
    return replace(output, tokens=round(output.tokens + carried), carried_tokens=round(carried))


def _tokens_of(chunks: Places, table: RequestTable, average: float | None) -> float | None:
    """Of so many chunks of each request; None where it is not known what they carry."""
    known = tokens_per_chunk(table, np.nan if average is None else average)
    total = float((chunks * known)[chunks > 0].sum())
    return None if np.isnan(total) else total


def _whole_run(measured: RequestTable) -> Output:
    ok = measured.where(measured.ok)
    tokens = total_tokens(ok)
    ends = last_token_ms(ok)
    ends = ends[~np.isnan(ends)]
    wall_s = float(ends.max() - measured.column("t0_ms").min()) / 1000 if ends.size else None
    return Output(wall_s, tokens, tokens, ok, 0)


def _inside_window(measured: RequestTable, window_s: float) -> Output:
    """The window opens with the measurement's clock; a request's tokens are spread over the arrivals of its chunks."""
    end_ms = window_s * 1000
    late = np.nan_to_num(last_token_ms(measured)) > end_ms
    finished = measured.where(measured.ok & ~late)
    running = measured.where(measured.flag("incomplete") | (measured.ok & late))
    completed = total_tokens(finished)
    parts = _tokens_of(running.chunks_until(end_ms), running, _average_per_chunk(finished))
    tokens = None if completed is None or parts is None else round(completed + parts)
    return Output(window_s, tokens, completed, finished, int((running.chunks > 0).sum()))


def total_tokens(table: RequestTable) -> int | None:
    """None as soon as one count is missing: a sum with holes is no total."""
    total = float(table.column("completion_tokens").sum())
    return None if np.isnan(total) else int(total)


def tokens_per_chunk(table: RequestTable, otherwise: float) -> Values:
    """Of each request; `otherwise` where its tokens or its chunks are not known."""
    chunks, tokens = table.chunks, table.column("completion_tokens")
    known = (chunks > 0) & ~np.isnan(tokens)
    return np.where(known, tokens / np.maximum(chunks, 1), otherwise)


def _average_per_chunk(table: RequestTable) -> float | None:
    counted = table.where((table.chunks > 0) & ~np.isnan(table.column("completion_tokens")))
    chunks = int(counted.chunks.sum())
    return float(counted.column("completion_tokens").sum()) / chunks if chunks else None


def met_slo(table: RequestTable, slo: Slo) -> Flags:
    """Which requests succeeded and kept every limit that is set; what cannot be had misses it."""
    too_short = table.column("completion_tokens") < 2
    return (
        table.ok
        & _within(table.column("ttft_ms"), slo.ttft_p95_ms)
        & (too_short | _within(table.column("tpot_ms"), slo.tpot_p95_ms))
        & _within(table.column("e2e_ms"), slo.e2e_p95_ms)
    )


def _within(values: Values, limit: float | None) -> Flags:
    return np.ones(values.size, dtype=bool) if limit is None else values <= limit


def has_slo(slo: Slo) -> bool:
    return any(limit is not None for limit in (slo.ttft_p95_ms, slo.tpot_p95_ms, slo.e2e_p95_ms))
