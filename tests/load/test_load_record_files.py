"""Records that went through files come back whole, those of several processes as one."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lab.load.record_files import VOCABULARY, RecordWriter, read_records
from lab.records.arrivals import Arrivals, pack_arrivals
from lab.records.request import RequestRecord
from tests.factories import make_failure, make_request

RECORD = st.builds(
    make_request,
    index=st.integers(0, 2**40),
    t0_ms=st.floats(-1e5, 1e6),
    ttft_ms=st.one_of(st.none(), st.integers(1, 10**6).map(lambda micros: micros / 1000)),
    tokens=st.integers(0, 4),
    warmup=st.booleans(),
    incomplete=st.booleans(),
    finish_reason=st.sampled_from([None, "stop", "length"]),
    marks=st.sampled_from([(), ("decoder",), ("buffered", "one-chunk")]),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
).map(lambda record: replace(record, chunk_times_ms=Arrivals(pack_arrivals([record.chunk_times_ms])[0])))


def write(directory: Path, records: list[RequestRecord]) -> Path:
    directory.mkdir()
    writer = RecordWriter(directory)
    for record in records:
        writer.write(record)
    writer.close()
    return directory


@given(records=st.lists(RECORD, max_size=12, unique_by=lambda record: record.index))
def test_records_come_back_whole_in_the_order_of_their_numbers(
    tmp_path_factory: object, records: list[RequestRecord]
) -> None:
    directory = write(tmp_path_factory.mktemp("files") / "one", records)  # type: ignore[attr-defined]
    assert list(read_records([directory])) == sorted(records, key=lambda record: record.index)


def test_the_records_of_several_processes_are_joined(tmp_path: Path) -> None:
    even = [make_request(index, tokens=index, text=f"even {index}") for index in range(0, 8, 2)]
    odd = [make_failure(index, "server", message=f"odd {index}") for index in range(1, 8, 2)]
    table = read_records([write(tmp_path / "a", even), write(tmp_path / "b", odd)])
    assert list(table) == sorted([*even, *odd], key=lambda record: record.index)
    assert table.counted_words("failure") == {"server": 4}
    assert table[4].text == "even 4"
    assert isinstance(table[4].chunk_times_ms, Arrivals)


def test_texts_outlive_their_file_and_leave_no_open_file_behind(tmp_path: Path) -> None:
    directory = write(tmp_path / "a", [make_request(0, text="好 🌍"), make_request(1, text="")])
    gc.collect()
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    table = read_records([directory])
    for file in directory.iterdir():
        file.unlink()
    assert [record.text for record in table] == ["好 🌍", ""]
    del table
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_what_was_not_closed_brings_nothing(tmp_path: Path) -> None:
    cut = write(tmp_path / "cut", [make_request(0)])
    (cut / VOCABULARY).unlink()
    whole = write(tmp_path / "whole", [make_request(1)])
    assert [record.index for record in read_records([cut, whole])] == [1]
    assert list(read_records([tmp_path])) == []
