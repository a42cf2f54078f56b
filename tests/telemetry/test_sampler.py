"""Samples come from a process of their own, with gaps where a source breaks, and never outlive their parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from lab.environment import ROOT
from lab.records.sample import Sample
from lab.telemetry import Sampler
from lab.telemetry.job import SamplerJob, read_job
from lab.telemetry.sampler import read_samples

PAGE = b"""\
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:num_requests_running{engine="0"} 3.0
vllm:num_preemptions_total{engine="0"} 2.0
"""


class Engine(ThreadingHTTPServer):
    """Serves a page of metrics; `status` can be changed while it runs."""

    daemon_threads = True
    status = 200


@pytest.fixture
def engine() -> Iterator[Engine]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(self.server.status)  # type: ignore[attr-defined]
            self.end_headers()
            self.wfile.write(PAGE)

    server = Engine(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(engine: Engine) -> str:
    return f"http://127.0.0.1:{engine.server_address[1]}/metrics"


def wait_for(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.02)


def of(samples: tuple[Sample, ...], series: str) -> list[float | None]:
    return [sample.value for sample in samples if sample.series == series]


def lines(out: Path) -> int:
    return out.read_text().count("\n") if out.exists() else 0


def test_engine_and_host_are_sampled_and_time_only_grows(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(url(engine), (), 0.1, out)
    wait_for(lambda: lines(out) >= 5)
    samples = sampler.stop()
    assert set(of(samples, "kv_cache_usage_ratio")) == {0.5}
    assert set(of(samples, "requests_running")) == {3.0}
    assert set(of(samples, "preemptions_total")) == {2.0}
    assert all(value is not None and 0 <= value <= 1 for value in of(samples, "host_cpu_ratio"))
    assert all(value is not None and value > 2**20 for value in of(samples, "host_memory_used_bytes"))
    times = [sample.at_ms for sample in samples]
    assert times == sorted(times)
    assert times[0] > 0


def test_a_metric_the_engine_lacks_and_gpus_that_are_not_there_have_no_series(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(url(engine), (), 0.1, out)
    wait_for(lambda: lines(out) >= 2)
    series = {sample.series for sample in sampler.stop()}
    assert "requests_waiting" not in series
    assert not [name for name in series if name.startswith("gpu")]


def test_a_source_that_breaks_leaves_a_gap_and_comes_back(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(url(engine), (), 0.1, out)
    for status in (200, 500, 200):
        engine.status = status
        seen = lines(out)
        wait_for(lambda seen=seen: lines(out) >= seen + 3)  # type: ignore[misc]
    samples = sampler.stop()
    usage = of(samples, "kv_cache_usage_ratio")
    assert None in usage
    assert (usage[0], usage[-1]) == (0.5, 0.5)
    assert None not in of(samples, "host_memory_used_bytes")


def test_without_an_engine_only_the_host_is_sampled(tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(None, (), 0.1, out)
    wait_for(lambda: lines(out) >= 2)
    assert {sample.series for sample in sampler.stop()} <= {"host_cpu_ratio", "host_memory_used_bytes"}


def test_stopping_ends_the_process_and_can_be_repeated(tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(None, (), 0.1, out)
    wait_for(lambda: lines(out) >= 1)
    samples = sampler.stop()
    assert samples
    assert sampler.stop() == samples
    assert not [p for p in psutil.Process().children() if "lab.telemetry" in p.cmdline()]


def test_a_folder_that_cannot_be_written_costs_the_samples_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sampler = Sampler()
    sampler.start(None, (), 0.1, tmp_path / "file" / "samples.jsonl")
    assert sampler.stop() == ()


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    program = f"""
import time
from pathlib import Path
from lab.telemetry import Sampler
sampler = Sampler()
sampler.start(None, (), 0.1, Path({str(out)!r}))
print(sampler._process.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_for(lambda: lines(out) >= 1)
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_the_job_travels_whole_and_the_interval_has_a_floor() -> None:
    job = SamplerJob(out="/x", zero_ns=5, interval_s=0.5, metrics_url="http://h/metrics", gpu_indices=(0, 2))
    assert read_job(job.to_line()) == job
    assert read_job(SamplerJob(out="/x", zero_ns=5, interval_s=0.001).to_line()).interval_s == 0.1


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps({"at_ms": 1.5, "values": {"a": 1.0, "b": None}}) + '\n{"at_ms": 2, "val')
    assert list(read_samples(file)) == [Sample(1.5, "a", 1.0), Sample(1.5, "b", None)]


def test_the_process_needs_no_more_than_a_job(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.telemetry"],
        cwd=ROOT,
        input="nonsense\n",
        text=True,
        capture_output=True,
        env=dict(os.environ),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("no job: ")
