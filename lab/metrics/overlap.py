"""How many requests were really in flight at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.metrics.percentiles import Values
from lab.records.request import RequestRecord
from lab.records.table import RequestTable


@dataclass(frozen=True, slots=True)
class InFlight:
    """From `moments_ms[i]` on, `counts[i]` requests are in flight, until the next moment."""

    moments_ms: Values
    counts: NDArray[np.int64]

    def peak(self, from_ms: float = -np.inf) -> int:
        """The most at once, what was under way at `from_ms` included."""
        known = int(np.searchsorted(self.moments_ms, from_ms, side="right"))
        return int(self.counts[max(0, known - 1) :].max())


def in_flight(
    records: Sequence[RequestRecord], end_ms: float | None = None, *, timeout_ms: float | None = None
) -> InFlight | None:
    """The course of the requests that overlap, each from being sent to its last sign of life; None where none was sent.

    `end_ms` is when requests that never finished were still open (None: until the last sign of any request). Those that
    ran into `timeout_ms` were open until then, with or without a sign of life.
    """
    table = RequestTable.of(records)
    sent = table.where(~np.isnan(table.column("sent_ms")))
    if not len(sent):
        return None
    starts, signs = sent.column("sent_ms"), _last_signs_ms(sent)
    if timeout_ms is not None:
        signs = np.where(sent.failed_with("timeout"), np.fmax(signs, sent.column("t0_ms") + timeout_ms), signs)
    still_open = max(signs.max(), -np.inf if end_ms is None else end_ms)
    ends = np.where(sent.flag("incomplete") | sent.failed_with("cancelled"), still_open, signs)
    # A slot that is freed and filled in the same instant holds one request, so ends sort before starts. A request
    # without any sign of life ends where it starts and still counts as one.
    moments = np.concatenate([starts, np.maximum(ends, np.nextafter(starts, np.inf))])
    steps = np.concatenate([np.ones(len(sent), dtype=np.int64), -np.ones(len(sent), dtype=np.int64)])
    order = np.lexsort((steps, moments))
    return InFlight(moments[order], np.cumsum(steps[order]))


def peak_in_flight(
    records: Sequence[RequestRecord],
    end_ms: float | None = None,
    from_ms: float = -np.inf,
    *,
    timeout_ms: float | None = None,
) -> int:
    """The most requests that overlapped from a moment on; `end_ms` and `timeout_ms` as for `in_flight`."""
    course = in_flight(records, end_ms, timeout_ms=timeout_ms)
    return 0 if course is None else course.peak(from_ms)


def _last_signs_ms(table: RequestTable) -> Values:
    from_t0 = [table.column(name) for name in ("first_byte_ms", "ttft_ms", "e2e_ms")]
    latest = np.fmax.reduce([*from_t0, table.last_chunk_ms, np.zeros(len(table))])
    signs: Values = np.fmax(table.column("sent_ms"), table.column("t0_ms") + latest)
    return signs
