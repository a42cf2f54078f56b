"""Ten minutes at 45,000 tokens a second: what whoever asked for the load holds of it, measured on a tenth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT

WRITE = """
import sys
from pathlib import Path
import numpy as np
from lab.load.record_files import RecordWriter
from lab.records.arrivals import Arrivals
from lab.records.request import RequestRecord

writer = RecordWriter(Path(sys.argv[1]))
tokens = int(sys.argv[3])
gaps = np.full(100, 20_000, dtype="<i4")
for index in range(int(sys.argv[2])):
    gaps[0] = 200_000 + index % 1000
    writer.write(RequestRecord(
        index=index, warmup=False, t0_ms=index * 2.0, sent_ms=index * 2.0, ttft_ms=200.0, e2e_ms=2180.0, tpot_ms=20.0,
        chunk_times_ms=Arrivals(gaps.tobytes()), prompt_tokens=16, completion_tokens=tokens, http_status=200,
        text=" word" * 100, finish_reason="length",
    ))
writer.close()
"""
READ = """
import sys
from pathlib import Path
from lab.load.memory import most_memory_bytes
from lab.load.record_files import read_records
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.request import ClientUsage, LoadResult
from lab.records.workload import Workload

before = most_memory_bytes()
records = read_records([Path(sys.argv[1])])
result = LoadResult(records, ClientUsage(), None, 900, None, 600.0, 100)
summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", duration_s=600))
assert summary.requests == int(sys.argv[2]), summary.requests
print(before, most_memory_bytes())
"""
REQUESTS, ALL_REQUESTS = 54_000, 270_000  # of 100 tokens: a fifth of it, all of it


@pytest.mark.parametrize("tokens", [100, 101], ids=["a token per chunk", "several tokens in some chunks"])
def test_ten_minutes_at_full_speed_fit_into_500_mb(tmp_path: Path, tokens: int) -> None:
    for code in (WRITE, READ):
        command = [sys.executable, "-c", code, str(tmp_path), str(REQUESTS), str(tokens)]
        said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    before, most = map(int, said.split())
    assert (before + (most - before) * ALL_REQUESTS / REQUESTS) / 1e6 < 500
