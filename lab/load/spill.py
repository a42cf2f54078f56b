"""Raw answers on their way from the hot path to the decoder: blocks in segment files.

A block is a header, the arrival times, the lengths of the reads, the call as JSON (last block of a call only) and the
bytes. An answer that is long goes out in several blocks, so that memory holds only what has just come.
"""

from __future__ import annotations

import asyncio
import struct
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from lab.load.call import Call
from lab.load.connection import Exchange

SEGMENT_BYTES = 64 << 20
KEPT_PIECES = 4  # stay with a call under way: the watchdog reads its end
PARTIAL_PIECES = 512
_HEADER = struct.Struct("<qIII")
_TURN_BLOCKS = 4
_TURN_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Block:
    index: int
    times: array[int]
    pieces: list[bytes]
    call: dict[str, Any] | None  # None: more of this answer follows


class Spill:
    """Writes blocks a few at a time between the reads; tells `on_segment` of each segment that is whole."""

    def __init__(self, directory: Path, on_segment: Callable[[Path], None], segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._on_segment = on_segment
        self._segment_bytes = segment_bytes
        self._waiting: deque[Exchange] = deque()
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._written = 0
        self._number = 0
        self._turn_due = False

    def put(self, exchange: Exchange) -> None:
        """Take over a call that has ended."""
        self._waiting.append(exchange)
        if not self._turn_due:
            self._turn_due = True
            asyncio.get_running_loop().call_later(_TURN_PAUSE_S, self._turn)

    def put_part(self, exchange: Exchange) -> None:
        """Write the older reads of a call that is still under way."""
        if len(exchange.pieces) < PARTIAL_PIECES:
            return
        cut = len(exchange.pieces) - KEPT_PIECES
        self._write(exchange.index, exchange.times[:cut], exchange.pieces[:cut], None)
        del exchange.times[:cut], exchange.pieces[:cut]
        exchange.checked = 0

    def close(self) -> None:
        """Write all that waits and hand over the last segment."""
        while self._waiting:
            self._write_call(self._waiting.popleft())
        self._end_segment()

    def _turn(self) -> None:
        self._turn_due = False
        for _ in range(min(_TURN_BLOCKS, len(self._waiting))):
            self._write_call(self._waiting.popleft())
        if self._waiting:
            self._turn_due = True
            asyncio.get_running_loop().call_later(_TURN_PAUSE_S, self._turn)

    def _write_call(self, exchange: Exchange) -> None:
        self._write(exchange.index, exchange.times, exchange.pieces, exchange.call())

    def _write(self, index: int, times: array[int], pieces: list[bytes], call: Call | None) -> None:
        meta = b"" if call is None else orjson.dumps(asdict(call))
        lengths = array("I", map(len, pieces))
        head = _HEADER.pack(index, len(pieces), len(meta), sum(lengths))
        file = self._file or self._open_segment()
        file.writelines((head, times.tobytes(), lengths.tobytes(), meta, *pieces))
        self._written += _HEADER.size + 12 * len(pieces) + len(meta) + sum(lengths)
        if self._written >= self._segment_bytes:
            self._end_segment()

    def _open_segment(self) -> BinaryIO:
        self._number += 1
        self._path = self._directory / f"raw-{self._number:06d}"
        self._file = self._path.open("wb", buffering=1 << 16)
        self._written = 0
        return self._file

    def _end_segment(self) -> None:
        if self._file is None or self._path is None:
            return
        self._file.close()
        self._file = None
        self._on_segment(self._path)


def read_segment(path: Path) -> Iterator[Block]:
    """The blocks of one segment, one at a time."""
    with path.open("rb", buffering=1 << 18) as file:
        while head := file.read(_HEADER.size):
            index, count, meta_bytes, body_bytes = _HEADER.unpack(head)
            times, lengths = array("q"), array("I")
            times.frombytes(file.read(8 * count))
            lengths.frombytes(file.read(4 * count))
            meta = file.read(meta_bytes)
            body = file.read(body_bytes)
            yield Block(index, times, _cut(body, lengths), orjson.loads(meta) if meta else None)


def _cut(body: bytes, lengths: array[int]) -> list[bytes]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(body[at : at + length])
        at += length
    return pieces
