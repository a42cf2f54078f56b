"""`python -m lab.load.decoder`: turns segments of raw answers into records, beside the clock and out of its way.

Standard input: one JSON line of settings, then one line per segment; its end means that no more follow. Each segment
is deleted once read. Standard output: one JSON line at the end, with the CPU time spent and the most memory held.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from lab.load.answer import Answer
from lab.load.call import Call
from lab.load.decode import CountTokens, to_record
from lab.load.memory import most_memory_bytes
from lab.load.record_files import RecordWriter
from lab.load.spill import Block, read_segment
from lab.load.tokenizer import Tokenizer, read_tokenizer
from lab.records.request import RequestRecord


@dataclass(frozen=True, slots=True)
class DecoderSettings:
    clock_ns: int
    directory: str
    tokenizer_dir: str | None = None
    api_key_env: str | None = None


class SegmentDecoder:
    """Holds the calls whose answers stand in several blocks until their last one comes."""

    def __init__(
        self, settings: DecoderSettings, write: Callable[[RequestRecord], None], count_tokens: CountTokens
    ) -> None:
        self._clock_ns = settings.clock_ns
        self._secret = os.environ.get(settings.api_key_env, "").strip() if settings.api_key_env else None
        self._write = write
        self._count_tokens = count_tokens
        self._open: dict[int, Answer] = {}

    def take(self, segment: Path) -> None:
        for block in read_segment(segment):
            self._take_block(block)
        segment.unlink()

    def _take_block(self, block: Block) -> None:
        answer = self._open.pop(block.index, None) or Answer()
        feed = answer.feed
        for at_ns, piece in zip(block.times, block.pieces, strict=True):
            feed(at_ns, piece)
        if block.call is None:
            answer.compact()
            self._open[block.index] = answer
            return
        call = Call(**{**block.call, "marks": tuple(block.call["marks"])})
        record = to_record(
            answer, call, clock_ns=self._clock_ns, count_tokens=self._count_tokens, secret=self._secret or None
        )
        self._write(record)


class LazyCounter:
    """Counts tokens; reads the tokenizer only when it is first asked. None where it cannot be read."""

    def __init__(self, tokenizer_dir: str | None) -> None:
        self._directory = tokenizer_dir
        self._tokenizer: Tokenizer | None = None
        self._read = False

    def __call__(self, text: str) -> int | None:
        if not self._read:
            self._tokenizer, self._read = read_tokenizer(self._directory), True
        return None if self._tokenizer is None else self._tokenizer.count(text)


def yield_the_cpu() -> None:
    """Run only when nothing else wants the processor: the clock comes first."""
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    yield_the_cpu()
    first = sys.stdin.readline()
    if not first:
        return
    settings = DecoderSettings(**orjson.loads(first))
    cpu_before = time.process_time()
    writer = RecordWriter(Path(settings.directory))
    decoder = SegmentDecoder(settings, writer.write, LazyCounter(settings.tokenizer_dir))
    for line in sys.stdin:
        decoder.take(Path(line.rstrip("\n")))
    writer.close()
    said = {"cpu_s": time.process_time() - cpu_before, "memory_bytes": most_memory_bytes()}
    sys.stdout.write(orjson.dumps(said).decode() + "\n")


if __name__ == "__main__":
    main()
