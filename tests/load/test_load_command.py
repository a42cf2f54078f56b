"""`python -m lab load` and `probe` as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT
from tests.load.streams import DONE, STOP, content, usage
from tests.servers.gateway_server import Manners, gateway
from tests.servers.scripted_server import ScriptedServer, page, stream

KEY = "sk-test-LEAK-0001"


def lab(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


def test_load_prints_the_document_and_writes_the_records(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    with gateway(Manners(first_ms=50, gap_ms=20)) as server:
        done = lab(
            "load", "--base-url", server.base_url, "--model", "m", "--concurrency", "2", "--requests", "6",
            "--output-tokens", "4", "--warmup", "1", "--json", "--records", str(records),
        )  # fmt: skip
        assert len(server.posts) == 1 + 1 + 6  # probe, warm-up, measured
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["requests"], document["succeeded"], document["failed"]) == (6, 6, {})
    assert document["output_tokens"] == 24
    assert document["peak_in_flight"] == 2
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        assert set(document[name]) == {"mean", "p50", "p90", "p95", "p99", "n"}
    assert 49 <= document["ttft_ms"]["p50"] < 150  # a busy machine may be late
    assert document["client"]["cpu_s"] > 0
    assert "low-samples-p95" in document["marks"]
    lines = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    assert [line["warmup"] for line in lines] == [True] + [False] * 6
    assert {line["text"] for line in lines} == {" w0 w1 w2 w3"}
    wanted = {
        "ok", "failure", "message", "warmup", "scheduled_ms", "sent_ms", "first_byte_ms", "ttft_ms", "first_answer_ms",
        "e2e_ms", "tpot_ms", "prompt_tokens", "completion_tokens", "tokens_estimated", "finish_reason", "chunks",
        "text", "marks",
    }  # fmt: skip
    assert wanted <= set(lines[0])


def test_without_a_probe_exactly_the_requests_asked_for_are_sent() -> None:
    with gateway(Manners()) as server:
        done = lab("load", "--base-url", server.base_url, "--model", "m", "--requests", "3", "--no-probe")
        assert len(server.posts) == 3
    assert done.returncode == 0
    assert "throughput" in done.stdout


def test_a_field_that_the_server_refuses_is_left_out_of_the_run() -> None:
    with gateway(Manners(refuses={"stream_options": 400})) as server:
        done = lab("load", "--base-url", server.base_url, "--model", "m", "--requests", "3", "--json")
        assert ["stream_options" in asked.json for asked in server.posts] == [True, False, False, False]
    document = json.loads(done.stdout)
    assert (document["succeeded"], document["output_tokens"], document["output_tokens_per_s"]) == (3, None, None)
    assert "stream-options-refused" in document["marks"]


def test_a_web_page_ends_it_before_any_request() -> None:
    console = page(b"<!doctype html><title>Gateway console</title>", content_type="text/html")
    with ScriptedServer(lambda _: console, lambda _: console) as server:
        done = lab("load", "--base-url", server.base_url, "--model", "m", "--requests", "3", "--json")
        assert server.posts == []
    assert done.returncode == 1
    assert "web page" in done.stderr
    assert "console" not in done.stderr
    assert json.loads(done.stdout)["requests"] == 0


def test_a_wrong_key_is_met_once_and_shown_nowhere() -> None:
    with gateway(Manners(key="another", lists_models=False)) as server:
        done = lab(
            "load", "--base-url", server.base_url, "--model", "m", "--concurrency", "8", "--requests", "50", "--json",
            "--api-key-env", "SOME_KEY", SOME_KEY=KEY,
        )  # fmt: skip
        assert len(server.posts) == 2  # the probe and the one that shows it
        assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"] == {"auth": 1}
    assert "无效的令牌" in done.stderr
    assert "LEAK" not in done.stdout + done.stderr


def test_a_key_is_sent_to_the_gateway_alone() -> None:
    variables = {"TAOTOKEN_API_KEY": KEY, "TAOTOKEN_BASE_URL": "https://gateway.invalid/v1"}
    with gateway(Manners()) as server:
        lab("load", "--base-url", server.base_url, "--requests", "1", "--no-probe", **variables)
        lab(
            "load",
            "--base-url",
            server.base_url,
            "--requests",
            "1",
            **{**variables, "TAOTOKEN_BASE_URL": server.base_url},
        )
        keys = [asked.headers.get("authorization") for asked in server.posts]
    assert keys[0] is None
    assert set(keys[1:]) == {f"Bearer {KEY}"}


def test_failures_are_counted_by_class() -> None:
    answer = stream((5, content("a") + STOP + usage(1, 1) + DONE))
    with ScriptedServer(lambda asked: page(b"", 429) if asked.number % 2 else answer) as server:
        done = lab("load", "--base-url", server.base_url, "--requests", "4", "--no-probe", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["succeeded"], document["failed"]) == (0, 2, {"rate": 2})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-url", "ftp://x", "--requests", "1"], "ftp://x"),
        (["--base-url", "127.0.0.1:9"], "requests"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--rate", "1", "--concurrency", "2"], "--rate"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--api-key-env", "NOT_SET"], "NOT_SET"),
        (["--requests", "1"], "--base-url"),
        (["--base-url", " ", "--requests", "1"], "empty"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--rate", "nan"], "--rate"),
        (["--base-url", "127.0.0.1:9", "--duration", "inf"], "--duration"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--ramp", "inf"], "--ramp"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--output-tokens", "9" * 21], "--output-tokens"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--records", "/no/such/folder/x"], "/no/such/folder"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--records", "/"], "--records"),
        (["--base-url", "127.0.0.1:9", "--requests", "1", "--tokenizer", "/no/such/folder"], "tokenizer.json"),
        (
            ["--base-url", "127.0.0.1:9", "--requests", "1", "--model", "m", "--prompts", "/no/such/file"],
            "/no/such/file",
        ),
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments: list[str], said: str) -> None:
    done = lab("load", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_dead_address_is_a_failed_run() -> None:
    done = lab("load", "--base-url", "127.0.0.1:9", "--model", "m", "--requests", "3", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"] == {"refused": 3}


def test_probe_says_step_by_step_what_it_found() -> None:
    with gateway(Manners()) as server:
        done = lab("probe", "--base-url", server.base_url)
        document = json.loads(lab("probe", "--base-url", server.base_url, "--json").stdout)
    assert done.returncode == 0
    assert server.base_url in done.stdout
    assert (document["ok"], document["model"], document["include_usage"]) == (True, "m", True)
    assert lab("probe", "--base-url", server.base_url).returncode == 1
