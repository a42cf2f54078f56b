"""One request of full size: what it asks, what becomes of the answer, and which limit a refusal names."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lab.load.preflight import limit_in, try_full_size
from lab.records.workload import LoadJob, Stage, Workload
from lab.runner.fitting import fit_stage

LADDER = Workload(kind="ladder", prompt_tokens=(64, 512), output_tokens=100)


class Refusing(BaseHTTPRequestHandler):
    """Keeps what it was asked and refuses it with the server's own words."""

    said = "The input is too long for this model."
    status = 400
    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps({"error": {"message": self.said}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[tuple[str, type[Refusing]]]:
    handler = type("Handler", (Refusing,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", handler
    server.shutdown()
    thread.join()
    server.server_close()


def job(address: str, tokens: int = 512, **workload: Any) -> LoadJob:
    given = LADDER.model_copy(update=workload)
    return LoadJob(base_url=address, model="m", workload=given, stage=Stage(kind="prompt_tokens", value=tokens))


def test_it_asks_for_the_whole_prompt_and_the_whole_answer(refusing: tuple[str, type[Refusing]]) -> None:
    address, server = refusing
    answer = try_full_size(job(address), dict(os.environ))
    (body,) = server.asked
    assert (len(body["messages"][0]["content"].split()), body["max_tokens"]) == (512, 100)
    assert (answer.failure, answer.limit_tokens) == ("too-long", None)
    assert answer.message is not None and "too long for this model" in answer.message


def test_a_refusal_without_a_number_leaves_the_stage_out_in_the_servers_words(
    refusing: tuple[str, type[Refusing]],
) -> None:
    fit = fit_stage(job(refusing[0], too_long="shrink"), None, dict(os.environ))
    assert fit.job is None
    (mark,) = fit.marks
    assert mark.code == "stage-refused-as-too-long"
    assert "too long for this model" in str(mark.params["message"])


def test_any_other_refusal_is_left_to_the_measurement(refusing: tuple[str, type[Refusing]]) -> None:
    address, server = refusing
    server.said, server.status = "overloaded", 503
    assert fit_stage(job(address), None, dict(os.environ)).job is not None


def test_a_server_that_is_not_there_is_left_to_the_measurement() -> None:
    assert fit_stage(job("http://127.0.0.1:1/v1"), None, {}).job is not None


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("This model's maximum context length is 2048 tokens. However, you requested 2078 tokens (1054 in the "
         "messages, 1024 in the completion).", 2048),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that "
         "`max_model_len` is no smaller than the number of text tokens.", 8192),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
        ("该模型的最大上下文长度为 32768 个 token，您请求了 40000 个", 32768),
        ("The input is too long for this model.", None),
        ("HTTP 400: prompt has 5000 tokens", None),
    ],
)  # fmt: skip
def test_the_limit_is_read_from_what_servers_say(said: str, limit: int | None) -> None:
    assert limit_in(said) == limit
