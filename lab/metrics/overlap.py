"""How many requests were really in flight at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.records.request import RequestRecord


def peak_in_flight(records: Sequence[RequestRecord], end_ms: float | None = None) -> int:
    """The most requests that overlapped, from being sent to their last sign of life.

    `end_ms` is when requests that never finished were still open (None: until the last sign of any request).
    """
    sent = [r for r in records if r.sent_ms is not None]
    if not sent:
        return 0
    signs = [_last_sign_ms(r) for r in sent]
    still_open = max(signs) if end_ms is None else max(end_ms, *signs)
    starts = np.array([r.sent_ms for r in sent], dtype=np.float64)
    ends = np.array([still_open if r.incomplete else sign for r, sign in zip(sent, signs, strict=True)])
    # A slot that is freed and filled in the same instant holds one request, so ends sort before starts. A request
    # without any sign of life ends where it starts and still counts as one.
    moments = np.concatenate([starts, np.maximum(ends, np.nextafter(starts, np.inf))])
    steps = np.concatenate([np.ones(len(sent), dtype=np.int64), -np.ones(len(sent), dtype=np.int64)])
    order = np.lexsort((steps, moments))
    return int(np.cumsum(steps[order]).max())


def _last_sign_ms(record: RequestRecord) -> float:
    signs = [record.sent_ms or 0.0, record.t0_ms]
    signs += [record.t0_ms + t for t in (record.first_byte_ms, record.ttft_ms, record.e2e_ms) if t is not None]
    if record.chunk_times_ms:
        signs.append(record.t0_ms + record.chunk_times_ms[-1])
    return max(signs)
