"""Every kind of load from the command line, against a server of known timing that logs what it really did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.environment import ROOT
from tests.load.streams import DONE, content, event, usage
from tests.servers.scripted_server import ScriptedServer, stream

Load = Callable[..., dict[str, Any]]


@pytest.fixture
def load(separate_lab: Path, tmp_path: Path) -> Load:
    """`load(server, "--kind", "burst", …)` gives the document, with the lines of --records under `lines`."""

    def run(base_url: str, *arguments: str) -> dict[str, Any]:
        records = tmp_path / "records.jsonl"
        command = [sys.executable, "-m", "lab", "load", "--base-url", base_url, "--model", "m", "--no-probe", "--json"]
        done = subprocess.run(
            [*command, "--records", str(records), *arguments], cwd=ROOT, env=dict(os.environ), capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
        return {**json.loads(done.stdout), "lines": lines}

    return run


def arrivals_ms(server: Any) -> list[float]:
    arrived = sorted(row[0] for row in server.stats()["log"])
    return [(each - arrived[0]) / 1e6 for each in arrived]


def test_a_burst_arrives_at_once(timed_server, load: Load) -> None:
    server = timed_server(first_ms=1500, gap_ms=10, tokens=5)
    found = load(server.base_url, "--kind", "burst", "--requests", "20", "--output-tokens", "5")
    assert (found["succeeded"], found["peak_in_flight"], found["output_tokens"]) == (20, 20, 100)
    assert arrivals_ms(server)[-1] < 1400  # before the first has its first token


def test_several_concurrencies_are_measured_one_after_the_other(timed_server, load: Load) -> None:
    server = timed_server(first_ms=50, gap_ms=10, tokens=6)
    found = load(server.base_url, "--concurrency", "1,3", "--requests", "6", "--output-tokens", "6")
    one, three = found["stages"]
    assert (one["stage_kind"], one["stage_value"], one["peak_in_flight"]) == ("concurrency", 1, 1)
    assert (three["stage_value"], three["peak_in_flight"], three["requests"]) == (3, 3, 6)
    assert three["output_tokens_per_s"] == pytest.approx(3 * one["output_tokens_per_s"], rel=0.25)
    assert [line["stage_value"] for line in found["lines"]] == [1] * 6 + [3] * 6
    assert one["steady"]["output_tokens_per_s"] == pytest.approx(one["output_tokens_per_s"], rel=0.1)


@pytest.mark.parametrize(("arrival", "spread"), [("constant", 0.0), ("poisson", 1.0), ("gamma", 2.0)])
def test_an_open_loop_arrives_by_its_law(timed_server, load: Load, arrival: str, spread: float) -> None:
    server = timed_server(first_ms=5, gap_ms=1, tokens=2)
    found = load(
        server.base_url, "--rate", "100", "--requests", "200", "--arrival", arrival, "--burstiness", "0.25", "--seed",
        "7", "--output-tokens", "2",
    )  # fmt: skip
    assert found["succeeded"] == 200
    gaps = np.diff([line["scheduled_ms"] for line in found["lines"]])
    assert arrivals_ms(server)[-1] == pytest.approx(gaps.sum(), rel=0.2)
    assert gaps.mean() == pytest.approx(10, rel=0.35)
    assert gaps.std() / gaps.mean() == pytest.approx(spread, rel=0.25, abs=1e-6)


def test_the_same_seed_makes_the_same_moments(timed_server, load: Load) -> None:
    server = timed_server(first_ms=5, gap_ms=1, tokens=2)
    asked = ("--rate", "200", "--requests", "10", "--output-tokens", "2")
    moments = [
        [line["scheduled_ms"] for line in load(server.base_url, *asked, "--seed", seed)["lines"]]
        for seed in ("1", "1", "2")
    ]
    assert moments[0] == moments[1] != moments[2]


def test_gangs_wait_for_each_other(timed_server, load: Load) -> None:
    server = timed_server(first_ms=100, gap_ms=10, tokens=6)
    found = load(server.base_url, "--kind", "gang", "--concurrency", "4", "--requests", "12", "--output-tokens", "6")
    log = sorted(server.stats()["log"])
    gangs = [log[start : start + 4] for start in (0, 4, 8)]
    for earlier, later in pairwise(gangs):
        assert min(arrived for arrived, *_ in later) >= max(last for _, _, last, _ in earlier)
    assert found["peak_in_flight"] == 4


def test_a_ladder_climbs_one_request_at_a_time(timed_server, load: Load) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=4)
    found = load(
        server.base_url, "--kind", "ladder", "--prompt-tokens", "16,64", "--requests", "3", "--output-tokens", "4"
    )
    assert [(each["stage_kind"], each["stage_value"], each["requests"]) for each in found["stages"]] == [
        ("prompt_tokens", 16, 3), ("prompt_tokens", 64, 3),
    ]  # fmt: skip
    assert {each["peak_in_flight"] for each in found["stages"]} == {1}


def test_interference_throws_long_prompts_between_steady_answers(timed_server, load: Load) -> None:
    server = timed_server(first_ms=30, gap_ms=20, tokens=40)
    found = load(
        server.base_url, "--kind", "interference", "--concurrency", "2", "--rate", "4", "--requests", "3",
        "--prompt-tokens", "256", "--output-tokens", "40",
    )  # fmt: skip
    roles = [line["marks"] for line in found["lines"]]
    assert roles.count(["intruder"]) == 3
    assert roles.count(["decoder"]) >= 4  # two slots, 0.8 s an answer, more than 2.5 s
    assert found["interference"]["intruders"] == 3
    assert found["longest_stall_ms"] >= 19
    assert found["longest_stall_ms"] == pytest.approx(found["interference"]["decoder_gap_ms"]["max"])


def test_a_duration_ends_it(timed_server, load: Load) -> None:
    server = timed_server(first_ms=20, gap_ms=20, tokens=10)
    found = load(server.base_url, "--concurrency", "2", "--duration", "1", "--output-tokens", "10", "--ramp", "0.4")
    assert found["wall_s"] == 1.0
    assert found["output_tokens_per_s"] == pytest.approx(100, rel=0.1)
    assert "ramp-tokens-counted" in found["marks"]
    assert [line["warmup"] for line in found["lines"] if line["marks"] == ["ramp"]].count(False) == 0


def test_goodput_counts_what_kept_the_limits(timed_server, load: Load) -> None:
    # one slot at the server: the second of two waits for the first
    server = timed_server(first_ms=100, gap_ms=10, tokens=11, slots=1)
    asked = ("--kind", "burst", "--requests", "2", "--output-tokens", "11")
    found = load(server.base_url, *asked, "--slo-ttft-ms", "200", "--slo-tpot-ms", "50")
    assert found["goodput_per_s"] == pytest.approx(found["requests_per_s"] / 2)
    assert load(server.base_url, *asked, "--slo-e2e-ms", "5000")["goodput_per_s"] == pytest.approx(
        2 / found["wall_s"], rel=0.3
    )
    assert load(server.base_url, *asked)["goodput_per_s"] is None


def test_several_processes_are_told_apart(timed_server, load: Load) -> None:
    server = timed_server(first_ms=50, gap_ms=10, tokens=4)
    asked = ("--concurrency", "4", "--requests", "8", "--output-tokens", "4")
    client = load(server.base_url, *asked, "--processes", "2")["client"]
    assert len(client["processes"]) == 2
    assert client["cpu_s"] >= sum(each["cpu_s"] for each in client["processes"])
    assert client["memory_bytes"] == max(each["memory_bytes"] for each in client["processes"])
    assert "processes" not in load(server.base_url, *asked)["client"]


def test_prompts_come_from_a_file(load: Load, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "first"}\n{"messages": [{"role": "user", "content": "second"}]}\n', "utf-8")
    answer = stream((5, content("a") + event({"choices": [{"finish_reason": "stop"}]}) + usage(1, 1) + DONE))
    with ScriptedServer(lambda _: answer) as server:
        load(server.base_url, "--prompts", str(file), "--requests", "4", "--prefix", "shared")
        said = [asked.json["messages"][0]["content"] for asked in server.posts]
    assert said == ["first", "second", "first", "second"]


def test_the_engines_own_times_are_told_where_it_gives_them(load: Load) -> None:
    last = event({"choices": [{"delta": {}, "finish_reason": "stop"}],
                  "metrics": {"queue_time_ms": 2.5, "time_to_first_token_ms": 40.0}})  # fmt: skip
    answer = stream((5, content("a")), (5, last + usage(1, 1) + DONE))
    with ScriptedServer(lambda _: answer) as server:
        found = load(server.base_url, "--requests", "2")
    assert (found["engine_queue_ms"]["p50"], found["engine_prefill_ms"]["n"]) == (2.5, 2)
    assert {line["engine_prefill_ms"] for line in found["lines"]} == {40.0}
