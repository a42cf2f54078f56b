"""Gaps between tokens: per token (ITL) and between chunks, which are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.metrics.percentiles import Values, distribution_of_gaps, distribution_of_many
from lab.records.arrivals import Gaps as Micros
from lab.records.request import RequestRecord
from lab.records.summary import Distribution
from lab.records.table import Flags, Places, RequestTable

WIDE = 4_000_000
"""From so many gaps on, seven digits are kept of each in four bytes: a long measurement has tens of millions."""
_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Gaps:
    """`itl_ms` is per token: a gap between chunks is spread evenly over the tokens that came per chunk.

    `inter_chunk_ms` is of the raw gaps. `tokens_per_chunk` is None without both counts; `uneven` counts the requests
    whose chunks did not carry one token each.
    """

    itl_ms: Distribution
    inter_chunk_ms: Distribution
    tokens_per_chunk: float | None
    uneven: int


def token_gaps(records: Sequence[RequestRecord]) -> Gaps:
    """The gaps of the given (successful) requests.

    A request without a TPOT has no per-token gaps: too few tokens, no count, or a stream buffered on the way. The last
    of these has no true gaps between chunks either.
    """
    table = RequestTable.of(records)
    counted = table.where((table.chunks > 0) & (table.column("completion_tokens") > 0))
    chunks, tokens = counted.chunks, counted.column("completion_tokens")
    itl, inter_chunk = _distributions(table.where(_has_gaps(table)))
    return Gaps(
        itl_ms=itl,
        inter_chunk_ms=inter_chunk,
        tokens_per_chunk=float(tokens.sum() / chunks.sum()) if chunks.size else None,
        uneven=int((chunks != tokens).sum()),
    )


def longest_stall_ms(records: Sequence[RequestRecord]) -> float | None:
    """The longest gap between two chunks of one answer, answers that the end cut off included; None without gaps.

    Where long prompts are thrown in between steady decoders, only the decoders' stalls count.
    """
    table = RequestTable.of(records)
    decoders = table.marked("decoder")
    streams = table.where((decoders if decoders.any() else ~table.failed) & ~table.failed & _has_gaps(table))
    longest = [int(gaps.max()) for gaps, _ in streams.gap_blocks() if gaps.size]
    return max(longest) / 1000 if longest else None


def _has_gaps(table: RequestTable) -> Flags:
    """Whether the chunks of a request tell when they came: at least two, and not buffered on the way."""
    tokens = table.column("completion_tokens")
    whole_without_tpot = table.ok & np.isnan(table.column("tpot_ms")) & (tokens >= 2)  # one cut off never has it
    buffered = table.marked("buffered") | whole_without_tpot
    found: Flags = (table.chunks >= 2) & ~buffered
    return found


def _distributions(streams: RequestTable) -> tuple[Distribution, Distribution]:
    """Per token and between chunks."""
    gaps, order = streams.gaps_between_chunks()
    counts = streams.chunks[order] - 1
    per_gap = (streams.column("completion_tokens")[order] - 1) / counts
    per_gap[np.isnan(streams.column("tpot_ms")[order])] = np.nan
    if (per_gap == 1).all():
        same = distribution_of_gaps(gaps)
        return same, same
    itl = distribution_of_many(_per_token_ms(gaps, counts, per_gap))
    if gaps.size >= WIDE:  # overwritten: let go of them before they are gathered anew
        del gaps
        gaps, _ = streams.gaps_between_chunks()
    return itl, distribution_of_gaps(gaps)


def _per_token_ms(gaps: Micros, counts: NDArray[np.int32], per_gap: Values) -> NDArray[Any]:
    """Each gap shared out among its tokens; where there are many, they take the place of the gaps."""
    found: NDArray[Any] = gaps.view(np.float32) if gaps.size >= WIDE else np.empty(gaps.size, dtype=np.float64)
    ends: Places = np.cumsum(counts, dtype=np.int64)
    first, done, filled = 0, 0, 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
        shared = gaps[done : ends[last - 1]] / (1000 * np.repeat(per_gap[first:last], counts[first:last]))
        shared = shared[np.isfinite(shared)]
        found[filled : filled + shared.size] = shared
        first, done, filled = last, int(ends[last - 1]), filled + shared.size
    return found[:filled]
