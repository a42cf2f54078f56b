"""The requests of one measurement as columns: a sequence of records that makes each one only when it is asked for.

A measurement may bring millions of tokens: a chunk takes four bytes here, a request about two hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from lab.records.arrivals import GAP, Arrivals, Gaps, Micros, pack_arrivals
from lab.records.request import RequestRecord

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

FLAGS = ("warmup", "incomplete", "tokens_estimated")
TIMES = (
    "t0_ms", "sent_ms", "scheduled_ms", "client_wait_ms", "connect_ms", "first_byte_ms", "ttft_ms", "first_answer_ms",
    "e2e_ms", "tpot_ms", "engine_queue_ms", "engine_prefill_ms",
)  # fmt: skip
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "http_status")
WORDS = ("failure", "message", "finish_reason", "marks")
ROW = np.dtype(
    [
        ("index", "<i8"),
        *((name, "?") for name in FLAGS),
        *((name, "<f8") for name in (*TIMES, *COUNTS)),  # NaN: cannot be had
        *((name, "<i4") for name in WORDS),  # places in the vocabulary; 0 is none
        ("chunks", "<i4"),
        ("text_bytes", "<i4"),
    ]
)
_ORDER = (
    "index", "warmup", "t0_ms", "sent_ms", "scheduled_ms", "client_wait_ms", "connect_ms", "first_byte_ms", "ttft_ms",
    "first_answer_ms", "e2e_ms", "tpot_ms", "chunk_times_ms", "prompt_tokens", "completion_tokens", "cached_tokens",
    "tokens_estimated", "finish_reason", "failure", "message", "http_status", "incomplete", "text", "engine_queue_ms",
    "engine_prefill_ms", "marks",
)  # fmt: skip
_BLOCK = 4096
_GAPS_AT_ONCE = 1_000_000


class Vocabulary:
    """Words that many requests share, each kept once."""

    def __init__(self) -> None:
        self._places: dict[str | None, int] = {None: 0}

    def place(self, word: str | None) -> int:
        return self._places.setdefault(word or None, len(self._places))

    @property
    def words(self) -> tuple[str | None, ...]:
        return tuple(self._places)


@dataclass(frozen=True)
class Columns:
    """One array per field of `ROW`, all of one length.

    `gaps` holds the packed arrivals row after row; `texts` has one answer per row, maybe read when asked for.
    """

    fields: Mapping[str, NDArray[Any]]
    gaps: Gaps
    words: tuple[str | None, ...]
    texts: Sequence[str]

    @cached_property
    def ends(self) -> Places:
        """Where the gaps of each row end."""
        return np.cumsum(self.fields["chunks"], dtype=np.int64)

    @cached_property
    def spans_us(self) -> Micros:
        """From t0 to the last chunk of each row, 0 where there is none."""
        chunks = self.fields["chunks"]
        found = np.zeros(len(self.ends), dtype=np.int64)
        filled = np.flatnonzero(chunks)
        for first in range(0, filled.size, _BLOCK):  # a part at a time: the sums need wider numbers than the gaps
            rows = filled[first : first + _BLOCK]
            starts = self.ends[rows] - chunks[rows]
            part = self.gaps[starts[0] : self.ends[rows[-1]]].astype(np.int64)
            found[rows] = np.add.reduceat(part, starts - starts[0])
        return found

    @cached_property
    def firsts_us(self) -> Micros:
        """From t0 to the first chunk of each row, 0 where there is none."""
        found = np.zeros(len(self.ends), dtype=np.int64)
        filled = np.flatnonzero(self.fields["chunks"])
        found[filled] = self.gaps[(self.ends - self.fields["chunks"])[filled]]
        return found


class RequestTable(Sequence[RequestRecord]):
    """Some rows of the columns, in an order; equal to any sequence of equal records."""

    __slots__ = ("_base", "_picked", "_taken")

    def __init__(self, base: Columns, picked: Places | None = None) -> None:
        self._base = base
        self._picked = np.arange(len(base.ends)) if picked is None else picked
        self._taken: dict[str, NDArray[Any]] = dict(base.fields) if picked is None else {}

    @classmethod
    def of(cls, records: Sequence[RequestRecord]) -> RequestTable:
        """The records as columns; a table is returned as it is."""
        return records if isinstance(records, RequestTable) else cls(_columns_of(records))

    def __len__(self) -> int:
        return len(self._picked)

    def __iter__(self) -> Iterator[RequestRecord]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]._records()

    @overload
    def __getitem__(self, at: int) -> RequestRecord: ...
    @overload
    def __getitem__(self, at: slice) -> RequestTable: ...
    def __getitem__(self, at: int | slice) -> RequestRecord | RequestTable:
        if isinstance(at, slice):
            return RequestTable(self._base, self._picked[at])
        place = range(len(self))[at]
        return next(iter(self[place : place + 1]._records()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def where(self, chosen: Flags) -> RequestTable:
        """The requests for which the mask, one flag each, is true."""
        return self if chosen.all() else RequestTable(self._base, self._picked[chosen])

    def _take(self, name: str) -> NDArray[Any]:
        if name not in self._taken:
            self._taken[name] = self._base.fields[name][self._picked]
        return self._taken[name]

    @property
    def indexes(self) -> Places:
        return cast(Places, self._take("index"))

    def column(self, name: str) -> Values:
        """A time or a count of every request, NaN where it cannot be had."""
        return cast(Values, self._take(name))

    def flag(self, name: str) -> Flags:
        return cast(Flags, self._take(name))

    def words(self, name: str) -> list[str | None]:
        """A field of text: `failure`, `message`, `finish_reason`, or the `marks` with blanks between them."""
        vocabulary = self._base.words
        return [vocabulary[place] for place in self._take(name).tolist()]

    def counted_words(self, name: str) -> Mapping[str, int]:
        """How often each word of such a field stands there, in the order of first appearance."""
        places, firsts, counts = np.unique(self._take(name), return_index=True, return_counts=True)
        found = sorted(zip(firsts.tolist(), places.tolist(), counts.tolist(), strict=True))
        return {word: count for _, place, count in found if (word := self._base.words[place]) is not None}

    def marked(self, code: str) -> Flags:
        """Which requests carry the mark."""
        carry = [place for place, word in enumerate(self._base.words) if word is not None and code in word.split()]
        return np.isin(self._take("marks"), carry)

    def failed_with(self, failure: str) -> Flags:
        """Which requests failed in this class."""
        words = self._base.words
        place = words.index(failure) if failure in words else -1
        return cast(Flags, self._take("failure") == place)

    @property
    def failed(self) -> Flags:
        return cast(Flags, self._take("failure") != 0)

    @property
    def ok(self) -> Flags:
        return ~self.failed & ~self.flag("incomplete")

    @property
    def chunks(self) -> NDArray[np.int32]:
        return cast("NDArray[np.int32]", self._take("chunks"))

    @property
    def last_chunk_ms(self) -> Values:
        """From t0 to the last token-bearing chunk; NaN without one."""
        return np.where(self.chunks > 0, self._base.spans_us[self._picked] / 1000, np.nan)

    @property
    def text_bytes(self) -> NDArray[np.int32]:
        return cast("NDArray[np.int32]", self._take("text_bytes"))

    def text(self, at: int) -> str:
        return self._base.texts[int(self._picked[at])]

    def texts(self) -> list[str]:
        texts = self._base.texts
        return [texts[place] for place in self._picked.tolist()]

    def packed_arrivals(self) -> list[bytes]:
        gaps, ends = self._base.gaps, self._base.ends[self._picked]
        starts = ends - self.chunks
        return [gaps[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def chunks_until(self, moment_ms: float) -> Places:
        """How many chunks of each request had arrived at a moment of the measurement's clock."""
        t0, counts = self.column("t0_ms"), self.chunks.astype(np.int64)
        begun = t0 + self._base.firsts_us[self._picked] / 1000 <= moment_ms
        open_still = np.flatnonzero(begun & (t0 + self.last_chunk_ms > moment_ms))
        starts = self._base.ends[self._picked] - counts
        counts[~begun] = 0
        for row in open_still.tolist():
            gaps = self._base.gaps[starts[row] : starts[row] + counts[row]]
            arrived_ms = t0[row] + gaps.cumsum(dtype=np.int64) / 1000
            counts[row] = arrived_ms.searchsorted(moment_ms, side="right")
        return counts

    def gaps_between_chunks(self) -> tuple[Gaps, Places]:
        """All gaps in microseconds, request after request, and in which order the requests (their places here) stand.

        The way to the first chunk is none.
        """
        found = np.empty(int(np.maximum(self.chunks - 1, 0).sum()), dtype=GAP)
        orders, filled = [np.empty(0, dtype=np.int64)], 0
        for gaps, order in self.gap_blocks():
            found[filled : filled + gaps.size] = gaps
            filled += gaps.size
            orders.append(order)
        return found, np.concatenate(orders)

    def gap_blocks(self) -> Iterator[tuple[Gaps, Places]]:
        """The same a part at a time, so that not all of it need be held."""
        ends, chunks = self._base.ends[self._picked], self.chunks
        order = np.argsort(ends, kind="stable")
        order = order[chunks[order] > 0]
        ends, starts = ends[order], (ends - chunks)[order]
        first = 0
        while first < order.size:
            last = max(first + 1, int(np.searchsorted(ends, starts[first] + _GAPS_AT_ONCE, side="right")))
            yield self._inner_gaps(starts[first:last], ends[first:last]), order[first:last]
            first = last

    def _inner_gaps(self, starts: Places, ends: Places) -> Gaps:
        """What lies between these bounds without the first of each; they follow each other, maybe with holes."""
        begin = int(starts[0])
        steps = np.zeros(int(ends[-1]) - begin + 1, dtype=np.int8)
        steps[starts - begin] += 1
        steps[ends - begin] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)
        inside[starts - begin] = False
        return self._base.gaps[begin : int(ends[-1])][inside]

    def _records(self) -> Iterator[RequestRecord]:
        columns: dict[str, Sequence[Any]] = {
            "index": self.indexes.tolist(),
            "text": self.texts(),
            "chunk_times_ms": list(map(Arrivals, self.packed_arrivals())),
            **{name: self.flag(name).tolist() for name in FLAGS},
            **{name: optional(self.column(name)) for name in TIMES},
            **{name: optional(self.column(name), whole=True) for name in COUNTS},
            **{name: self.words(name) for name in WORDS},
        }
        columns["marks"] = [tuple(marks.split()) if marks else () for marks in columns["marks"]]
        return (RequestRecord(*values) for values in zip(*(columns[name] for name in _ORDER), strict=True))


def optional(values: Values, *, whole: bool = False) -> list[Any]:
    """Python's own numbers, None for NaN."""
    known = ~np.isnan(values)
    if known.all():
        return list((values.astype(np.int64) if whole else values).tolist())
    found = np.full(len(values), None, dtype=object)
    found[known] = (values[known].astype(np.int64) if whole else values[known]).tolist()
    return list(found)


def _columns_of(records: Sequence[RequestRecord]) -> Columns:
    vocabulary = Vocabulary()

    def field(name: str) -> list[Any]:
        return list(map(attrgetter(name), records))

    def whole(values: Iterable[int]) -> NDArray[np.int32]:
        return np.fromiter(values, dtype=np.int32, count=len(records))

    packed, texts = pack_arrivals(field("chunk_times_ms")), field("text")
    fields = {
        **{name: np.array(field(name), dtype=ROW[name]) for name in ("index", *FLAGS, *TIMES, *COUNTS)},
        **{name: whole(map(vocabulary.place, field(name))) for name in WORDS[:-1]},
        "marks": whole(vocabulary.place(" ".join(marks)) for marks in field("marks")),
        "chunks": whole(map(len, packed)) // GAP.itemsize,
        "text_bytes": whole(map(len, texts)),
    }
    return Columns(fields, np.frombuffer(b"".join(packed), dtype=GAP), vocabulary.words, texts)
