"""Records on their way from the decoder to whoever asked for the load: fixed rows, packed arrivals, texts.

Written as they come and read as columns, so that neither side holds a record per request. Texts stay in their file,
which has no name any more once it is open here, and are read one by one when they are asked for.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from lab.records.arrivals import GAP, Arrivals, Gaps, pack_arrivals
from lab.records.request import RequestRecord
from lab.records.table import COUNTS, FLAGS, ROW, TIMES, WORDS, Columns, RequestTable, Vocabulary

ROWS, ARRIVALS, TEXTS, VOCABULARY = "records.rows", "records.arrivals", "records.texts", "records.words"
_PACK = struct.Struct(f"<q{len(FLAGS)}?{len(TIMES) + len(COUNTS)}d{len(WORDS)}i2i").pack
_NAN = float("nan")
_NUMBERS = (*TIMES, *COUNTS)
_ROWS_AT_ONCE = 50_000


class RecordWriter:
    """Writes the records of one loader's process into its directory; only what was closed can be read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rows, self._arrivals, self._texts = (
            (directory / name).open("wb", buffering=1 << 17) for name in (ROWS, ARRIVALS, TEXTS)
        )
        self._vocabulary = Vocabulary()

    def write(self, record: RequestRecord) -> None:
        arrivals = record.chunk_times_ms
        packed = arrivals.packed if isinstance(arrivals, Arrivals) else pack_arrivals([arrivals])[0]
        text = record.text.encode()
        numbers = (getattr(record, name) for name in _NUMBERS)
        place = self._vocabulary.place
        row = _PACK(
            record.index,
            *(getattr(record, name) for name in FLAGS),
            *(_NAN if value is None else value for value in numbers),
            *(place(getattr(record, name)) for name in WORDS[:-1]),
            place(" ".join(record.marks)),
            len(packed) // GAP.itemsize,
            len(text),
        )
        self._rows.write(row)
        self._arrivals.write(packed)
        self._texts.write(text)

    def close(self) -> None:
        for file in (self._rows, self._arrivals, self._texts):
            file.close()
        (self._directory / VOCABULARY).write_bytes(orjson.dumps(self._vocabulary.words))


class SpooledTexts(Sequence[str]):
    """Texts in files that are open but have no name; `starts` and `sizes` in bytes, `parts` says which file."""

    def __init__(self, paths: Iterable[Path], parts: NDArray[Any], sizes: NDArray[Any]) -> None:
        self._files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
        weakref.finalize(self, _close, self._files)
        self._parts, self._sizes = parts, sizes
        self._starts = np.concatenate([_starts(sizes[parts == part]) for part in range(len(self._files))])

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[place] for place in range(len(self))[at]]
        size = int(self._sizes[at])
        return os.pread(self._files[self._parts[at]], size, int(self._starts[at])).decode() if size else ""


def read_records(directories: Sequence[Path]) -> RequestTable:
    """The records of all the processes of one load, in the order of their numbers.

    Empty where nothing was written; a process whose decoder did not come to its end brings nothing.
    """
    whole = [directory for directory in directories if (directory / VOCABULARY).exists()]
    if not whole:
        return RequestTable.of(())
    counts = [(directory / ROWS).stat().st_size // ROW.itemsize for directory in whole]
    vocabulary, translations = _join_vocabularies(whole)
    fields = _read_rows(whole, counts, translations)
    parts = np.repeat(np.arange(len(whole), dtype=np.int8), counts)
    texts = SpooledTexts([directory / TEXTS for directory in whole], parts, fields["text_bytes"])
    columns = Columns(fields, _read_arrivals(whole), vocabulary, texts)
    return RequestTable(columns, np.argsort(fields["index"], kind="stable"))


def _read_rows(
    directories: Sequence[Path], counts: Sequence[int], translations: Sequence[NDArray[np.int32]]
) -> Mapping[str, NDArray[Any]]:
    """Some rows at a time, each field into an array of its own."""
    fields = {name: np.empty(sum(counts), dtype=ROW[name]) for name in ROW.names or ()}
    at = 0
    for directory, translation in zip(directories, translations, strict=True):
        with (directory / ROWS).open("rb") as file:
            while (rows := np.fromfile(file, dtype=ROW, count=_ROWS_AT_ONCE)).size:
                for name, values in fields.items():
                    values[at : at + rows.size] = translation[rows[name]] if name in WORDS else rows[name]
                at += rows.size
    return fields


def _read_arrivals(directories: Sequence[Path]) -> Gaps:
    paths = [directory / ARRIVALS for directory in directories]
    sizes = [path.stat().st_size // GAP.itemsize for path in paths]
    found = np.empty(sum(sizes), dtype=GAP)
    for path, size, end in zip(paths, sizes, np.cumsum(sizes).tolist(), strict=True):
        with path.open("rb", buffering=0) as file:
            view = found[end - size : end].data.cast("B")
            while view and (read := file.readinto(view)):
                view = view[read:]
    return found


def _join_vocabularies(directories: Sequence[Path]) -> tuple[tuple[str | None, ...], list[NDArray[np.int32]]]:
    """One vocabulary, and for each process where its words stand in it."""
    joined = Vocabulary()
    spoken = [orjson.loads((directory / VOCABULARY).read_bytes()) for directory in directories]
    places = [np.array([joined.place(word) for word in words], dtype=np.int32) for words in spoken]
    return joined.words, places


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.asarray(ends - sizes)


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
