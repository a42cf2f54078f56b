"""Arrivals of chunks as bytes: gaps in whole microseconds, four bytes each, the first from t0.

Rounding happens before the differences are taken, so no error adds up. A gap of more than 35 minutes does not fit; no
request may take that long between two chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

_SIZE = 4


def pack_times(requests: Sequence[Sequence[float]]) -> list[bytes]:
    """The arrivals (ms from t0) of each request, packed; many at once, since numpy pays off only then."""
    lengths = np.fromiter(map(len, requests), dtype=np.intp, count=len(requests))
    total = int(lengths.sum())
    if not total:
        return [b""] * len(requests)
    flat = np.fromiter(chain.from_iterable(requests), dtype=np.float64, count=total)
    micros = np.rint(flat * 1000).astype(np.int64)
    ends = np.cumsum(lengths)
    firsts = (ends - lengths)[lengths > 0]
    gaps = np.diff(micros, prepend=0)
    gaps[firsts] = micros[firsts]
    data = gaps.astype("<i4").tobytes()
    bounds = [0, *(ends * _SIZE).tolist()]
    return [data[start:end] for start, end in pairwise(bounds)]


def unpack_times(packed: Sequence[bytes]) -> list[tuple[float, ...]]:
    """The reverse, to the microsecond."""
    lengths = np.fromiter(map(len, packed), dtype=np.intp, count=len(packed)) // _SIZE
    ends = np.cumsum(lengths)
    sums = np.cumsum(np.frombuffer(b"".join(packed), dtype="<i4"), dtype=np.int64)
    starts = ends - lengths
    before = np.concatenate([np.zeros(1, dtype=np.int64), sums])[starts] if len(packed) else np.zeros(0, dtype=np.int64)
    values = ((sums - np.repeat(before, lengths)) / 1000).tolist()
    return [tuple(values[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
