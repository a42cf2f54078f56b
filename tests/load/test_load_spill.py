"""Raw answers go to disk in blocks and come back as records, however they were split up."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lab.load.connection import Exchange
from lab.load.decoder import DecoderSettings, SegmentDecoder
from lab.load.spill import KEPT_PIECES, PARTIAL_PIECES, Spill
from lab.records.request import RequestRecord
from tests.load.streams import DONE, STOP, content, usage


def exchange(index: int, tokens: int) -> Exchange:
    made = Exchange(index, b"request")
    made.sent_ns, made.free_ns, made.status = 1_000_000, 900_000, 200
    for number in range(tokens):
        made.times.append((number + 2) * 1_000_000)
        made.pieces.append(content(f"w{number} "))
    return made


def end(made: Exchange, tokens: int) -> None:
    made.times.append((tokens + 2) * 1_000_000)
    made.pieces.append(STOP + usage(3, tokens) + DONE)
    made.close("complete", (tokens + 2) * 1_000_000)


def decoded(segments: list[Path]) -> list[RequestRecord]:
    records: list[RequestRecord] = []
    decoder = SegmentDecoder(DecoderSettings(0, ""), records.append, len)
    for segment in segments:
        decoder.take(segment)
    return records


def test_calls_in_many_small_segments_lose_nothing(tmp_path: Path) -> None:
    segments: list[Path] = []

    async def write() -> None:
        spill = Spill(tmp_path, segments.append, segment_bytes=4096)
        for index in range(30):
            made = exchange(index, 10)
            end(made, 10)
            spill.put(made)
        await asyncio.sleep(0.02)
        spill.close()

    asyncio.run(write())
    records = decoded(segments)
    assert len(segments) > 5
    assert sorted(record.index for record in records) == list(range(30))
    assert {record.completion_tokens for record in records} == {10}
    assert {record.ttft_ms for record in records} == {1.0}
    assert list(tmp_path.iterdir()) == []


def test_a_long_answer_goes_out_in_parts_and_keeps_only_its_end(tmp_path: Path) -> None:
    segments: list[Path] = []
    tokens = PARTIAL_PIECES * 3

    async def write() -> None:
        spill = Spill(tmp_path, segments.append)
        made = exchange(7, 0)
        for number in range(tokens):
            made.times.append((number + 2) * 1_000_000)
            made.pieces.append(content(f"w{number} "))
            spill.put_part(made)
            assert len(made.pieces) < PARTIAL_PIECES
        assert len(made.pieces) >= KEPT_PIECES
        end(made, tokens)
        spill.put(made)
        spill.close()

    asyncio.run(write())
    (record,) = decoded(segments)
    assert record.failure is None
    assert len(record.chunk_times_ms) == tokens
    assert record.text == "".join(f"w{number} " for number in range(tokens))
    assert record.chunk_times_ms[:2] == (1.0, 2.0)
