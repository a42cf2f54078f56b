"""Moments at which chunks arrived, packed: the gaps in whole microseconds, four bytes each, the first from t0.

Rounding happens before the differences are taken, so no error adds up. A gap of more than 35 minutes counts as that
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

GAP = np.dtype("<i4")
LONGEST_GAP_US = 2**31 - 1
Gaps = NDArray[np.int32]
Micros = NDArray[np.int64]


class Arrivals(Sequence[float]):
    """Milliseconds from t0, one per chunk; equal to any sequence with the same values."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes = b"") -> None:
        self.packed = packed

    @classmethod
    def of_moments(cls, moments_ns: Micros, t0_ns: int) -> Arrivals:
        """From moments of the monotonic clock in nanoseconds."""
        return cls(_gaps((moments_ns - t0_ns + 500) // 1000).tobytes())

    def __len__(self) -> int:
        return len(self.packed) // GAP.itemsize

    def __iter__(self) -> Iterator[float]:
        return (micros / 1000 for micros in accumulate(memoryview(self.packed).cast("i")))

    @overload
    def __getitem__(self, at: int) -> float: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[float, ...]: ...
    def __getitem__(self, at: int | slice) -> float | tuple[float, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        place = range(len(self))[at]
        return sum(memoryview(self.packed).cast("i")[: place + 1]) / 1000

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = np.cumsum(np.frombuffer(self.packed, dtype=GAP), dtype=np.int64) / 1000
        return found if dtype is None else found.astype(dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Arrivals):
            return self.packed == other.packed
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Arrivals{tuple(self)}"


def pack_arrivals(requests: Sequence[Sequence[float]]) -> list[bytes]:
    """The arrivals (ms from t0) of each request, packed; many at once, since numpy pays off only then."""
    if all(type(each) is Arrivals for each in requests):
        return [each.packed for each in requests if isinstance(each, Arrivals)]
    lengths = np.fromiter(map(len, requests), dtype=np.int64, count=len(requests))
    flat = np.fromiter(chain.from_iterable(requests), dtype=np.float64, count=int(lengths.sum()))
    micros = np.rint(flat * 1000).astype(np.int64)
    ends = np.cumsum(lengths)
    firsts = (ends - lengths)[lengths > 0]
    packed = _gaps(micros, firsts).tobytes()
    bounds = [0, *(ends * GAP.itemsize).tolist()]
    return [packed[start:end] for start, end in pairwise(bounds)]


def _gaps(micros: Micros, firsts: NDArray[np.int64] | None = None) -> Gaps:
    """Differences, begun anew at each of `firsts`."""
    gaps = np.diff(micros, prepend=0)
    if firsts is not None:
        gaps[firsts] = micros[firsts]
    return np.minimum(gaps, LONGEST_GAP_US).astype(GAP)
