"""Reading back what an engine took: the recorded answers of a real vLLM 0.32 on a CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lab.engine.definition import EngineDefinition
from lab.engine.effective import compare_effective, read_effective
from lab.engine.http_client import EngineClient
from lab.engine.readiness import LaunchCancelled
from lab.findings import LabError
from lab.records.workload import Scalar
from tests.engine.fakes import RECORDINGS, unused_port

SERVER_INFO = (RECORDINGS / "server_info_vllm_0.32_cpu.json").read_bytes()
METRICS = (RECORDINGS / "metrics_vllm_0.32_cpu.txt").read_bytes()


class Recorded(ThreadingHTTPServer):
    """Answers paths with recorded bodies; 404 for the others."""

    daemon_threads = True
    answers: dict[str, bytes]
    delay_s = 0.0


@pytest.fixture
def server() -> Iterator[Recorded]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            time.sleep(self.server.delay_s)  # type: ignore[attr-defined]
            body = self.server.answers.get(self.path)  # type: ignore[attr-defined]
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def do_POST(self) -> None:
            self.do_GET()

    running = Recorded(("127.0.0.1", 0), Handler)
    running.answers = {"/server_info?config_format=json": SERVER_INFO, "/metrics": METRICS}
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def url(server: Recorded) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def test_the_configuration_in_force_is_read_from_the_engine(server: Recorded, vllm: EngineDefinition) -> None:
    assert read_effective(url(server), vllm) == {
        "model": "/models/smol",
        "dtype": "bfloat16",
        "quantization": None,
        "max_model_len": 2048,
        "enforce_eager": True,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 2048,
        "long_prefill_token_threshold": 0,
        "enable_chunked_prefill": True,
        "async_scheduling": False,
        "gpu_memory_utilization": 0.15,
        "kv_cache_dtype": "fp8",
        "block_size": 128,
        "enable_prefix_caching": True,
        "num_gpu_blocks_override": None,
        "kv_offloading_size": None,
        "tensor_parallel_size": 1,
        "device": "cpu",
        "kv_cache_size_tokens": 26368,
        "num_gpu_blocks": 206,
    }


def test_without_the_developers_endpoint_the_metric_still_tells_of_the_cache(
    server: Recorded, vllm: EngineDefinition
) -> None:
    del server.answers["/server_info?config_format=json"]
    found = read_effective(url(server), vllm)
    assert (found["block_size"], found["kv_cache_dtype"], found["gpu_memory_utilization"]) == (128, "fp8", 0.15)
    assert "max_num_seqs" not in found


def test_a_server_that_tells_nothing_is_marked_once(server: Recorded, vllm: EngineDefinition) -> None:
    server.answers.clear()
    found = read_effective(url(server), vllm)
    assert found == {}
    assert [mark.code for mark in compare_effective({"max_num_seqs": 1, "block_size": 16}, found)] == [
        "effective-unknown"
    ]


def test_a_slow_answer_can_be_cancelled_at_once(server: Recorded, vllm: EngineDefinition) -> None:
    server.delay_s = 2.0
    began = time.monotonic()
    with pytest.raises(LaunchCancelled):
        read_effective(url(server), vllm, cancelled=lambda: time.monotonic() - began > 0.3)
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    ("knob", "asked", "effective"),
    [
        ("max_num_seqs", 1, 16),
        ("block_size", 16, 128),
        ("enable_chunked_prefill", False, True),
        ("enable_prefix_caching", False, True),
        ("kv_cache_dtype", "fp8", "auto"),
        ("gpu_memory_utilization", 0.9, 0.3),
        ("max_model_len", 4096, 2048),
        ("num_gpu_blocks_override", 64, None),
    ],
)
def test_a_knob_in_force_with_another_value_is_marked(knob: str, asked: Scalar, effective: Scalar | None) -> None:
    (mark,) = compare_effective({knob: asked}, {knob: effective, "other": 1})
    assert (mark.code, dict(mark.params)) == (
        "effective-differs",
        {"knob": knob, "asked": asked, "effective": effective},
    )


@pytest.mark.parametrize(
    ("knob", "asked", "effective"),
    [
        ("max_num_seqs", 16, 16),
        ("gpu_memory_utilization", 0.9, 0.9),
        ("gpu_memory_utilization", 1, 1.0),
        ("kv_cache_dtype", "auto", "bfloat16"),
        ("kv_cache_dtype", "fp8", "fp8_e4m3"),
        ("max_model_len", -1, 32768),
        ("max_model_len", "8k", 8000),
        ("dtype", "half", "float16"),
        ("enable_chunked_prefill", True, True),
    ],
)
def test_the_same_value_in_other_words_is_not_marked(knob: str, asked: Scalar, effective: Scalar) -> None:
    assert compare_effective({knob: asked}, {knob: effective}) == ()


def test_what_the_engine_does_not_report_is_named_and_not_taken_for_granted() -> None:
    (mark,) = compare_effective({"a": 1, "max_num_seqs": 16, "b": 2}, {"max_num_seqs": 16})
    assert (mark.code, dict(mark.params)) == ("effective-unconfirmed", {"knobs": "a, b"})


def test_running_requests_are_those_that_run_and_those_that_wait(server: Recorded) -> None:
    server.answers["/metrics"] = (
        b'vllm:num_requests_running{engine="0"} 3.0\n'
        b'vllm:num_requests_running{engine="1"} 2.0\n'
        b'vllm:num_requests_waiting{engine="0"} 4.0\n'
        b'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 100.0\n'
    )
    with EngineClient(url(server)) as client:
        assert client.running_requests() == 9


def test_a_server_without_those_metrics_gives_none(server: Recorded) -> None:
    server.answers["/metrics"] = b"up 1\n"
    with EngineClient(url(server)) as client:
        assert client.running_requests() is None


@pytest.mark.parametrize(
    ("body", "outcome"), [(b'{"success": true}', True), (b'{"success": false}', False), (b"", True), (None, None)]
)
def test_a_reset_says_what_came_of_it(server: Recorded, body: bytes | None, outcome: bool | None) -> None:
    if body is not None:
        server.answers["/reset_prefix_cache"] = body
    with EngineClient(url(server)) as client:
        assert client.reset_prefix_cache() is outcome


def test_no_answer_is_an_error_with_the_address() -> None:
    with (
        EngineClient(f"http://127.0.0.1:{unused_port()}") as client,
        pytest.raises(LabError, match="engine-has-no-answer"),
    ):
        client.models()
