"""How long 100,000 requests take to be summarised and to be stored."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lab.load.record_files import RecordWriter, read_records
from lab.metrics import summarise
from lab.records.arrivals import Arrivals
from lab.records.plan import Arm, Experiment, PlannedTrial, Slo
from lab.records.request import ClientUsage, LoadResult, RequestRecord
from lab.records.workload import Stage, Workload
from lab.store import next_trial, open_store, queue_experiment, save_measurement

REQUESTS, TOKENS = 100_000, 32
ALLOWED_SUMMARISE_S, ALLOWED_STORE_S = 0.2, 1.5
WORKLOAD = Workload(kind="burst", requests=REQUESTS, output_tokens=TOKENS)
_HOST = "bench"


@dataclass(frozen=True, slots=True)
class Numbers:
    """CPU seconds beside the clock's: on a busy machine only the first say how fast the code is."""

    summarise_s: float
    summarise_cpu_s: float
    store_s: float
    store_cpu_s: float

    def __str__(self) -> str:
        return (
            f"{REQUESTS:,} requests of {TOKENS} tokens: summarised in {self.summarise_s:.2f} s "
            f"(CPU {self.summarise_cpu_s:.2f} s), stored in {self.store_s:.2f} s (CPU {self.store_cpu_s:.2f} s)"
        )

    def misses(self) -> list[str]:
        checks = {
            "summarising": min(self.summarise_s, self.summarise_cpu_s) > ALLOWED_SUMMARISE_S,
            "storing": min(self.store_s, self.store_cpu_s) > ALLOWED_STORE_S,
        }
        return [name for name, missed in checks.items() if missed]


def measure_numbers() -> Numbers:
    """As the runner does it: from the loader's files to the database."""
    with tempfile.TemporaryDirectory() as place:
        result = _result(Path(place))
        slo = Slo(ttft_p95_ms=400)
        summarise(result, slo=slo, workload=WORKLOAD)  # what is loaded once
        clock, cpu = time.perf_counter(), time.process_time()
        summary = summarise(result, slo=slo, workload=WORKLOAD)
        summarised = time.perf_counter() - clock, time.process_time() - cpu
        store = open_store(f"sqlite:///{place}/bench.db")
        experiment = Experiment(
            name="bench", workload=WORKLOAD, arms=(Arm(name="a"),), settings_text="{}", config_text=""
        )
        trial = PlannedTrial(arm=0, block=1, position=0)
        queue_experiment(store, experiment, [trial], person="bench", host=_HOST)
        work = next_trial(store, _HOST)
        assert work is not None
        now = datetime.now(UTC)
        clock, cpu = time.perf_counter(), time.process_time()
        save_measurement(store, work.trial_id, Stage(), result, summary, (), now, now)
        stored = time.perf_counter() - clock, time.process_time() - cpu
    return Numbers(*summarised, *stored)


def _result(directory: Path) -> LoadResult:
    writer = RecordWriter(directory)
    source = np.random.default_rng(7)
    for index in range(REQUESTS):
        gaps = source.integers(15_000, 25_000, TOKENS).astype("<i4")
        gaps[0] += 180_000
        ttft_ms, e2e_ms = gaps[0] / 1000, int(gaps.sum()) / 1000
        record = RequestRecord(
            index=index,
            warmup=False,
            t0_ms=index * 2.0,
            sent_ms=index * 2.0,
            client_wait_ms=0.1,
            first_byte_ms=ttft_ms,
            ttft_ms=ttft_ms,
            first_answer_ms=ttft_ms,
            e2e_ms=e2e_ms,
            tpot_ms=(e2e_ms - ttft_ms) / (TOKENS - 1),
            chunk_times_ms=Arrivals(gaps.tobytes()),
            prompt_tokens=48,
            completion_tokens=TOKENS,
            finish_reason="length",
            http_status=200,
            text=f"answer {index} " + "word " * TOKENS,
        )
        writer.write(record)
    writer.close()
    return LoadResult(read_records([directory]), ClientUsage(1.0, 0.5, 1.0), REQUESTS, 400, None, None, TOKENS)
