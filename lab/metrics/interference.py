"""Steady answers while long prompts are thrown in: what the ones suffer and how long the others wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.metrics.percentiles import Values, distribution
from lab.records.request import RequestRecord
from lab.records.summary import Interference
from lab.records.table import RequestTable

DECODER, INTRUDER = "decoder", "intruder"
ROLES = frozenset({DECODER, INTRUDER})
"""What the loader writes on each request of such a workload: which part it plays, nothing against it."""


@dataclass(frozen=True, slots=True)
class Course:
    """The gaps of the steady answers in the order in which they ended, on the measurement's clock.

    `waits_ms` are the stretches in which at least one long prompt waited for its first token, none overlapping.
    """

    at_ms: Values
    gap_ms: Values
    waits_ms: tuple[tuple[float, float], ...]

    @property
    def disturbed(self) -> NDArray[np.bool_]:
        """For each gap, whether a long prompt waited meanwhile."""
        if not self.waits_ms:
            return np.zeros(self.at_ms.size, dtype=bool)
        starts, ends = np.array(self.waits_ms).T
        begun = np.searchsorted(starts, self.at_ms, side="left")
        latest = np.where(begun > 0, ends[begun - 1], -np.inf)
        found: NDArray[np.bool_] = latest > self.at_ms - self.gap_ms
        return found


def split_interference(measured: Sequence[RequestRecord]) -> Interference | None:
    """The two kinds apart (warm-up already left out); None where the workload has no such kinds."""
    decoders, intruders = _of_role(measured, DECODER), _of_role(measured, INTRUDER)
    if not decoders and not intruders:
        return None
    course = interference_course(measured)
    disturbed = course.disturbed
    return Interference(
        decoders=len(decoders),
        intruders=len(intruders),
        intruders_succeeded=sum(1 for r in intruders if r.ok),
        decoder_ttft_ms=distribution(r.ttft_ms for r in decoders if r.failure is None),
        decoder_tpot_ms=distribution(r.tpot_ms for r in decoders if r.ok),
        decoder_gap_ms=distribution(course.gap_ms),
        disturbed_gap_ms=distribution(course.gap_ms[disturbed]),
        quiet_gap_ms=distribution(course.gap_ms[~disturbed]),
        intruder_ttft_ms=distribution(r.ttft_ms for r in intruders if r.failure is None),
    )


def interference_course(measured: Sequence[RequestRecord]) -> Course:
    """How the steady answers went on; a stream that was buffered on the way tells no gaps."""
    streams = [_arrivals_ms(r) for r in _of_role(measured, DECODER) if r.failure is None and _has_gaps(r)]
    if not streams:
        return Course(np.empty(0), np.empty(0), _waits(_of_role(measured, INTRUDER)))
    ends, gaps = np.concatenate([s[1:] for s in streams]), np.concatenate([np.diff(s) for s in streams])
    order = np.argsort(ends, kind="stable")
    return Course(ends[order], gaps[order], _waits(_of_role(measured, INTRUDER)))


def _of_role(records: Sequence[RequestRecord], role: str) -> list[RequestRecord]:
    table = RequestTable.of(records)
    return list(table.where(table.marked(role)))


def _has_gaps(record: RequestRecord) -> bool:
    return len(record.chunk_times_ms) >= 2 and "buffered" not in record.marks


def _arrivals_ms(record: RequestRecord) -> Values:
    return record.t0_ms + np.asarray(record.chunk_times_ms, dtype=np.float64)


def _waits(intruders: Sequence[RequestRecord]) -> tuple[tuple[float, float], ...]:
    """From being due to the first token; overlapping waits are one."""
    waits = sorted((r.t0_ms, r.t0_ms + r.ttft_ms) for r in intruders if r.failure is None and r.ttft_ms is not None)
    merged: list[tuple[float, float]] = []
    for start, end in waits:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
