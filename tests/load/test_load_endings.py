"""How answers end on real sockets: complete, cut, reset, held open, of another form."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from lab.records.request import RequestRecord
from tests.load.streams import DONE, ROLE, STOP, content, usage
from tests.servers.scripted_server import Answer, ScriptedServer, page, stream

HELLO = ((10.0, ROLE), (20.0, content("Hel")), (60.0, content("lo")))
WHOLE = (*HELLO, (80.0, STOP + usage(5, 2) + DONE))
JSON_ANSWER = json.dumps(
    {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
).encode()
RAW_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

ANSWERS = {
    "whole": stream(*WHOLE),
    "closed-after-stop": stream(*HELLO, (80, STOP), framing="until-close"),
    "done-only": stream(*HELLO, (80, DONE)),
    "closed-early": stream(*HELLO, framing="until-close"),
    "reset": stream(*HELLO, ending="reset"),
    "chunked-cut": stream(*HELLO, ending="close"),
    "held-after-usage": stream(*HELLO, (80, STOP + usage(5, 2)), ending="hold"),
    "held-after-done": stream(*HELLO, (80, STOP + usage(5, 2) + DONE), (90, content("more")), ending="hold"),
    "whole-again": stream(*WHOLE),
    "json": page(JSON_ANSWER),
    "html": page(b"<!doctype html><title>Console</title>", content_type="text/html"),
    "bad-gateway": page(b"<html>502</html>", 502, "text/html"),
    "no-answer": Answer(raw=True, ending="close"),
    "no-http": Answer(((0, b"SSH-2.0-OpenSSH_9.6\r\n"),), raw=True, ending="close"),
    "interim": Answer(((0, b"HTTP/1.1 100 Continue\r\n\r\n" + RAW_HEAD), *WHOLE), raw=True, ending="close"),
    "redirect": page(b"", 301, Location="https://elsewhere.example/v1"),
    "slow-to-die": stream(*HELLO, ending="hold"),
    "last": stream(*WHOLE),
}


@dataclass(frozen=True)
class Seen:
    record: RequestRecord
    wrote_ms: list[float]
    """When the server really wrote each step: a busy machine is late, and the loader must say so."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """All endings one after the other through one slot, each with 3 s of time."""
    from lab.load.supervisor import run_load
    from lab.records.workload import LoadJob, Workload

    names = list(ANSWERS)
    with ScriptedServer(lambda asked: ANSWERS[names[asked.number]]) as server:
        workload = Workload(
            kind="closed",
            concurrency=(1,),
            requests=len(names),
            warmup_requests=0,
            request_timeout_s=3,
            output_tokens=2,
        )
        job = LoadJob(base_url=server.base_url, model="m", workload=workload)
        result = run_load(job, run_dir=tmp_path_factory.mktemp("endings"), variables={})
        assert len(server.posts) == len(names)
        wrote_ms = [server.wrote_ms.get(number, []) for number in range(len(names))]
    return {name: Seen(record, wrote) for name, record, wrote in zip(names, result.records, wrote_ms, strict=True)}


@pytest.fixture
def records(seen: dict[str, Seen]) -> dict[str, RequestRecord]:
    return {name: each.record for name, each in seen.items()}


@pytest.mark.parametrize(
    "name",
    [
        "whole",
        "closed-after-stop",
        "done-only",
        "held-after-usage",
        "held-after-done",
        "whole-again",
        "interim",
        "last",
    ],
)
def test_these_are_complete(seen: dict[str, Seen], name: str) -> None:
    record, wrote_ms = seen[name].record, seen[name].wrote_ms
    first = 2 if name == "interim" else 1
    assert record.ok, record.message
    assert record.text == "Hello"
    assert record.ttft_ms == pytest.approx(wrote_ms[first], abs=20)
    assert record.e2e_ms == pytest.approx(wrote_ms[first + 1], abs=20)


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("closed-early", "truncated"),
        ("reset", "connection-lost"),
        ("chunked-cut", "connection-lost"),
        ("slow-to-die", "timeout"),
    ],
)
def test_these_are_cut_and_keep_what_came(seen: dict[str, Seen], name: str, failure: str) -> None:
    record = seen[name].record
    assert (record.failure, record.text) == (failure, "Hello")
    assert record.ttft_ms == pytest.approx(seen[name].wrote_ms[1], abs=20)


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("html", "not-json"),
        ("bad-gateway", "server"),
        ("no-answer", "connection-lost"),
        ("no-http", "connection-lost"),
        ("redirect", "not-found"),
    ],
)
def test_these_are_no_answers(records: dict[str, RequestRecord], name: str, failure: str) -> None:
    record = records[name]
    assert (record.failure, record.ttft_ms, record.text) == (failure, None, "")
    assert record.message


def test_a_json_body_counts_but_has_no_first_token(records: dict[str, RequestRecord]) -> None:
    record = records["json"]
    assert (record.ok, record.completion_tokens, record.ttft_ms, record.marks) == (True, 1, None, ("not-streamed",))


def test_a_held_socket_costs_the_slot_little(records: dict[str, RequestRecord]) -> None:
    done, usage_only = records["held-after-done"], records["held-after-usage"]
    assert records["whole-again"].t0_ms - done.t0_ms < 500
    assert done.t0_ms - usage_only.t0_ms < 2900
