"""Gaps between tokens: per token (ITL) and between chunks, which are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lab.metrics.percentiles import Values, as_values
from lab.records.request import RequestRecord

Owners = NDArray[np.intp]
_NONE: Values = np.empty(0)


@dataclass(frozen=True, slots=True)
class Gaps:
    """`itl_ms` is per token: a gap between chunks is spread evenly over the tokens that came per chunk.

    `inter_chunk_ms` holds the raw gaps. `tokens_per_chunk` is None without both counts; `uneven` counts the requests
    whose chunks did not carry one token each.
    """

    itl_ms: Values
    inter_chunk_ms: Values
    tokens_per_chunk: float | None
    uneven: int


def token_gaps(records: Sequence[RequestRecord]) -> Gaps:
    """The gaps of the given (successful) requests.

    A request without a TPOT has no per-token gaps: too few tokens, no count, or a stream buffered on the way. The last
    of these has no true gaps between chunks either.
    """
    spread = [r for r in records if len(r.chunk_times_ms) >= 2 and not _buffered(r)]
    counted = [r for r in records if r.chunk_times_ms and r.completion_tokens]
    chunks = sum(len(r.chunk_times_ms) for r in counted)
    tokens = sum(r.completion_tokens or 0 for r in counted)
    gaps, owners = _raw_gaps(spread)
    return Gaps(
        itl_ms=_per_token(spread, gaps, owners),
        inter_chunk_ms=gaps,
        tokens_per_chunk=tokens / chunks if chunks else None,
        uneven=sum(1 for r in counted if len(r.chunk_times_ms) != r.completion_tokens),
    )


def longest_stall_ms(gaps: Gaps, records: Sequence[RequestRecord]) -> float | None:
    """The longest gap between two chunks of one answer, answers that the end cut off included; None without gaps.

    `gaps` are those of the successful among the records. Where long prompts are thrown in between steady decoders, only
    the decoders' stalls count.
    """
    decoders = [r for r in records if "decoder" in r.marks]
    extra = decoders or [r for r in records if r.incomplete]
    streams = [r for r in extra if r.failure is None and len(r.chunk_times_ms) >= 2 and not _buffered(r)]
    found, _ = _raw_gaps(streams)
    values = found if decoders else np.concatenate([gaps.inter_chunk_ms, found])
    return float(values.max()) if values.size else None


def _buffered(record: RequestRecord) -> bool:
    return "buffered" in record.marks or (record.tpot_ms is None and (record.completion_tokens or 0) >= 2)


def _raw_gaps(records: Sequence[RequestRecord]) -> tuple[Values, Owners]:
    """All gaps, and for each the position of its request."""
    if not records:
        return _NONE, np.empty(0, dtype=np.intp)
    lengths = np.fromiter((len(r.chunk_times_ms) for r in records), dtype=np.intp, count=len(records))
    times = np.fromiter(
        chain.from_iterable(r.chunk_times_ms for r in records), dtype=np.float64, count=int(lengths.sum())
    )
    inside = np.ones(times.size - 1, dtype=bool)
    inside[np.cumsum(lengths)[:-1] - 1] = False
    return np.diff(times)[inside], np.repeat(np.arange(len(records)), lengths - 1)


def _per_token(records: Sequence[RequestRecord], gaps: Values, owners: Owners) -> Values:
    if not gaps.size:
        return _NONE
    per_gap = np.fromiter((_tokens_per_gap(r) for r in records), dtype=np.float64, count=len(records))
    return as_values(gaps / per_gap[owners])


def _tokens_per_gap(record: RequestRecord) -> float:
    if record.tpot_ms is None or record.completion_tokens is None:
        return float("nan")
    return (record.completion_tokens - 1) / (len(record.chunk_times_ms) - 1)
