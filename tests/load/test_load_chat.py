"""One answer through the openai package: what comes, when, and what a failure is called."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest

from lab.load.chat import ChatCall, ChatTarget, Piece
from lab.records.request import RequestRecord
from tests.load.conftest import until
from tests.load.streams import DONE, LENGTH, ROLE, STOP, content, reasoning, usage
from tests.servers.gateway_server import Manners, gateway
from tests.servers.scripted_server import Answer, ScriptedServer, page, stream

KEY = "sk-test-LEAK-0001"
HELLO = [{"role": "user", "content": "你好"}]


def call(base_url: str, variables: dict[str, str] | None = None, **options: float) -> ChatCall:
    return ChatCall(
        ChatTarget(base_url, "m", "MY_KEY"), HELLO, {"temperature": 0.5}, variables=variables or {}, **options
    )


def answered(answer: Answer, **options: float) -> tuple[list[Piece], RequestRecord]:
    with ScriptedServer(lambda _asked: answer) as server:
        talk = call(server.base_url, **options)
        pieces = list(talk)
    assert talk.record is not None
    return pieces, talk.record


def assert_about(value: float | None, truth_ms: float) -> None:
    """What was scripted, or later by what a busy host adds; never by another part of the stream."""
    assert value is not None
    assert truth_ms - 20 <= value <= truth_ms + 90


def test_the_clock_starts_at_the_request_and_stops_at_the_first_token() -> None:
    pieces, record = answered(
        stream((50, ROLE), (300, content("Hi")), (350, content(" you")), (400, content("!")), (400, STOP),
               (400, usage(5, 3)), (400, DONE))
    )  # fmt: skip
    assert "".join(piece.text for piece in pieces) == "Hi you!"
    assert record.failure is None
    assert_about(record.ttft_ms, 300)
    assert_about(record.tpot_ms, 50)  # (400 - 300) / (3 - 1)
    assert (record.prompt_tokens, record.completion_tokens, record.finish_reason) == (5, 3, "stop")


def test_a_connection_that_the_server_closes_after_an_error_of_its_model_list_is_not_used() -> None:
    import openai  # noqa: F401  the first import takes so long that the closed connection would be noticed

    broken = replace(page(b'{"error": "no cache"}', 500), ending="reset")
    hi = stream((50, content("Hi")), (60, STOP), (60, usage(5, 1)), (60, DONE))
    with ScriptedServer(lambda _asked: hi, lambda _asked: broken) as server:
        talk = call(server.base_url)
        pieces = list(talk)
    assert talk.record is not None and talk.record.failure is None
    assert [piece.text for piece in pieces] == ["Hi"]
    assert_about(talk.record.ttft_ms, 50)


def test_thinking_is_an_aside_and_stops_the_clock() -> None:
    pieces, record = answered(
        stream((100, reasoning("let me see")), (300, content("42")), (300, LENGTH), (300, usage(5, 9)), (300, DONE))
    )
    assert [(piece.kind, piece.text) for piece in pieces] == [("aside", "let me see"), ("answer", "42")]
    assert_about(record.ttft_ms, 100)
    assert_about(record.first_answer_ms, 300)
    assert_about(record.tpot_ms, 200 / 8)


def test_tokens_come_from_usage_never_from_chunks() -> None:
    _pieces, record = answered(
        stream((50, content("a b c d")), (150, content("e f g h")), (150, STOP), (150, usage(5, 10)), (150, DONE))
    )
    assert record.completion_tokens == 10
    _pieces, without = answered(stream((50, content("a")), (150, content("b")), (150, STOP), (150, DONE)))
    assert (without.completion_tokens, without.tpot_ms) == (None, None)


def test_an_answer_that_was_not_streamed_has_no_ttft() -> None:
    body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}'
    _pieces, record = answered(page(body))
    assert (record.failure, record.ttft_ms, record.tpot_ms, record.text) == (None, None, None, "Hi")
    assert "not-streamed" in record.marks


def test_the_body_has_the_parameters_and_asks_for_usage() -> None:
    with gateway(Manners(key=KEY)) as server:
        talk = call(server.base_url, {"MY_KEY": KEY})
        list(talk)
        (asked,) = server.posts
    assert asked.json["messages"] == HELLO
    assert (asked.json["temperature"], asked.json["stream"]) == (0.5, True)
    assert asked.json["stream_options"] == {"include_usage": True}
    assert talk.record is not None
    assert talk.record.completion_tokens == 4


def test_a_server_without_a_key_gets_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another-LEAK-0001")
    monkeypatch.setenv("OPENAI_ORG_ID", "my-team")
    with gateway(Manners()) as server:
        list(call(server.base_url))
        headers = server.posts[0].headers
    assert "authorization" not in headers
    assert "my-team" not in str(headers)


def test_a_refused_stream_options_is_left_out_and_the_answer_still_comes() -> None:
    with gateway(Manners(refuses={"stream_options": 400})) as server:
        talk = call(server.base_url)
        pieces = list(talk)
        assert len(server.posts) == 2
    assert pieces
    assert talk.record is not None
    assert (talk.record.failure, talk.record.completion_tokens) == (None, None)


def test_a_wrong_key_is_named_without_being_shown() -> None:
    with gateway(Manners(key="another")) as server:
        talk = call(server.base_url, {"MY_KEY": KEY})
        assert list(talk) == []
    assert talk.record is not None
    assert talk.record.failure == "auth"
    assert "LEAK-0001" not in str(talk.record)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (page(b'{"error":{"message":"This model\'s maximum context length is 2048 tokens."}}', 400), "too-long"),
        (page(b'{"error":{"message":"The model `x` does not exist."}}', 404), "model"),
        (page(b'{"error":{"message":"slow down"}}', 429), "rate"),
        (page(b"oops", 500), "server"),
        (page(b"<html>Sign in</html>", content_type="text/html"), "not-json"),
        (stream((10, content("a")), ending="close"), "connection-lost"),
        (stream((10, content("a"))), "truncated"),
    ],
)
def test_each_failure_has_its_class(answer: Answer, failure: str) -> None:
    _pieces, record = answered(answer)
    assert record.failure == failure
    assert record.message


def test_nobody_listening_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    talk = call(f"http://127.0.0.1:{port}/v1")
    assert list(talk) == []
    assert talk.record is not None
    assert talk.record.failure == "refused"


def test_a_silent_server_is_a_time_out() -> None:
    _pieces, record = answered(stream((0, ROLE), (5000, DONE)), timeout_s=0.3)
    assert record.failure == "timeout"


def test_leaving_early_closes_the_connection_and_keeps_what_came() -> None:
    words = [(20.0 * n, content(f"w{n} ")) for n in range(500)]
    with ScriptedServer(lambda _asked: stream(*words)) as server:
        talk = call(server.base_url)
        reading = iter(talk)
        assert next(reading).text == "w0 "
        reading.close()  # type: ignore[attr-defined]
        until(lambda: server.under_way == 0, seconds=30)
    assert talk.record is not None
    assert (talk.record.failure, talk.record.text) == ("cancelled", "w0 ")


def test_proxy_variables_do_not_bend_the_way_to_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with gateway(Manners()) as server:
        talk = ChatCall(
            ChatTarget(server.base_url, "m", use_proxy=True), HELLO, {}, variables={"HTTP_PROXY": "http://127.0.0.1:9"}
        )
        started = time.monotonic()
        assert list(talk)
    assert time.monotonic() - started < 20
