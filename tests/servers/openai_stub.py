"""An OpenAI-compatible server that streams, standing alone or launched in vLLM's place.

    python tests/servers/openai_stub.py --port 0

Prints its port, then serves until it is ended. How it behaves stands in the environment variable OPENAI_STUB as JSON,
with the keys of `Behaviour`; vLLM's --port and --served-model-name are taken, other flags are only looked up there.
With `core_and_worker` it is three processes in one group, which die as vLLM's do: an API process that lingers after its
core has died and answers with errors, a core that ends with its worker, children that outlive their parent.
`GET /stats` lists the completions it was asked for. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEMPLATE_TOKENS = 30


@dataclass(frozen=True)
class Behaviour:
    key: str | None = None  # the bearer token it wants
    first_ms: float = 20.0
    gap_ms: float = 5.0
    refused_fields: list[str] = field(default_factory=list)  # answered with status 400
    fail_status: int | None = None  # answered to every completion but the probes' short ones
    die_at_request: int | None = None  # the process ends at its Nth completion
    die_with_flag: str | None = None  # … but only where this text is among its arguments
    last_words: list[str] = field(default_factory=list)  # printed to stderr when it dies or refuses to start
    refuse_start: bool = False
    opens_after_s: float = 0.0
    core_and_worker: bool = False
    lingers_s: float = 0.5  # how long the API process outlives its core
    closes_its_port: bool = False  # … as soon as its core has died
    stop_takes_s: float = 0.0  # from SIGTERM to the end, for each of the processes
    context_tokens: int | None = None  # longer requests are refused as vLLM does; a word is a token, a template 30
    tells_context: bool = False  # in its list of models
    cached_requests: int = 0  # the prompts of its first completions came from its prefix cache


@dataclass
class Seen:
    """One completion that was asked for."""

    prompt: str
    authorization: str | None
    max_tokens: int
    at: float
    sent: int = 0
    broken: bool = False


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, served: str, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", port), Handler, bind_and_activate=False)
        self.served = served
        self.behaviour = behaviour
        self.lock = threading.Lock()
        self.seen: list[Seen] = []
        self.running = 0
        self.core_died = False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/metrics":
            lines = [f'vllm:num_requests_running{{engine="0"}} {self.server.running}.0']
            lines.append('vllm:num_requests_waiting{engine="0"} 0.0')
            with self.server.lock:
                prompts = [len(seen.prompt.split()) for seen in self.server.seen]
            hits = sum(prompts[: self.server.behaviour.cached_requests])
            lines.append(f'vllm:prefix_cache_queries_total{{engine="0"}} {sum(prompts)}.0')
            lines.append(f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}.0')
            self._send(200, "\n".join([*lines, ""]), "text/plain")
        elif self.path == "/health":
            self._send(503 if self.server.core_died else 200, "")
        elif self.path == "/stats":
            self._send(200, json.dumps([asdict(each) for each in self.server.seen]))
        elif self.path == "/v1/models" and self._may_come():
            model: dict[str, Any] = {"id": self.server.served, "object": "model"}
            if self.server.behaviour.tells_context:
                model["max_model_len"] = self.server.behaviour.context_tokens
            self._send(200, json.dumps({"object": "list", "data": [model]}))
        elif self.path != "/v1/models":
            self._send(404, '{"error":{"message":"no such path"}}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path != "/v1/chat/completions":
            self._send(404, '{"error":{"message":"no such path"}}')
            return
        if not self._may_come():
            return
        refused = [name for name in self.server.behaviour.refused_fields if name in body]
        if refused:
            message = f"Unrecognized request argument supplied: {refused[0]}"
            self._send(400, json.dumps({"error": {"message": message, "type": "invalid_request_error"}}))
            return
        self._complete(body)

    def _complete(self, body: dict[str, Any]) -> None:
        behaviour = self.server.behaviour
        tokens = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        seen = Seen(str(body["messages"][-1]["content"]), self.headers.get("Authorization"), tokens, time.monotonic())
        with self.server.lock:
            self.server.seen.append(seen)
            number = len(self.server.seen)
        if number == behaviour.die_at_request and (behaviour.die_with_flag or "") in " ".join(sys.argv):
            die(behaviour)
        if self.server.core_died:
            self._send(500, '{"error":{"message":"EngineCore encountered an issue."}}')
            return
        prompt, limit = len(seen.prompt.split()) + TEMPLATE_TOKENS, behaviour.context_tokens
        if limit is not None and prompt + tokens > limit:
            message = (
                f"This model's maximum context length is {limit} tokens. However, you requested {prompt + tokens} "
                f"tokens ({prompt} in the messages, {tokens} in the completion)."
            )
            self._send(400, json.dumps({"error": {"message": message, "code": 400}}))
            return
        if behaviour.fail_status is not None and tokens > 2:
            self._send(behaviour.fail_status, '{"error":{"message":"broken on purpose"}}')
            return
        if not body.get("stream"):
            self._send(200, json.dumps({"choices": [{"message": {"content": "Hi"}}]}))
            return
        with self.server.lock:
            self.server.running += 1
        try:
            self._stream(seen, tokens, behaviour)
        except (BrokenPipeError, ConnectionResetError):
            seen.broken = True
            self.close_connection = True
        finally:
            with self.server.lock:
                self.server.running -= 1

    def _stream(self, seen: Seen, tokens: int, behaviour: Behaviour) -> None:
        time.sleep(behaviour.first_ms / 1000)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._event({"role": "assistant", "content": ""})
        for number in range(tokens):
            if number:
                time.sleep(behaviour.gap_ms / 1000)
            if self.server.core_died:
                self._write('{"error":{"message":"EngineCore encountered an issue.","code":500}}')
                break
            self._event({"content": f" w{number}"})
            seen.sent += 1
        else:
            self._finish(seen, tokens)
        self._write("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _finish(self, seen: Seen, tokens: int) -> None:
        self._event({}, finish="length")
        prompt_tokens = len(seen.prompt.split())
        total = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens}
        self._write(json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": total}))

    def _event(self, delta: dict[str, str], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        self._write(json.dumps(chunk))

    def _write(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.flush()

    def _may_come(self) -> bool:
        key = self.server.behaviour.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self._send(401, json.dumps({"error": {"message": f"bad key {self.headers.get('Authorization')}"}}))
        return False

    def _send(self, status: int, text: str, kind: str = "application/json") -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def die(behaviour: Behaviour) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in behaviour.last_words))
    sys.stderr.flush()
    os._exit(1)


def start_child(role: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "--role", role])


def end_with_core(server: Server) -> None:
    """As vLLM's watchdog: the requests fail at once, the process ends some time later."""
    start_child("core").wait()
    server.core_died = True
    if server.behaviour.closes_its_port:
        server.shutdown()
        server.server_close()
    time.sleep(server.behaviour.lingers_s)
    sys.stderr.write("EngineDeadError: EngineCore encountered an issue.\n")
    sys.stderr.flush()
    os._exit(1)


def be_child(role: str) -> None:
    if role == "core":
        start_child("worker").wait()
        os._exit(1)
    while True:
        time.sleep(3600)


def end_slowly(behaviour: Behaviour) -> None:
    def end(_number: int, _frame: object) -> None:
        time.sleep(behaviour.stop_takes_s)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--role", default="api")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--served-model-name", default="stub-model")
    told, _ = parser.parse_known_args()
    behaviour = Behaviour(**json.loads(os.environ.get("OPENAI_STUB", "{}")))
    if behaviour.refuse_start and (behaviour.die_with_flag or "") in " ".join(sys.argv):
        die(behaviour)
    if behaviour.stop_takes_s:
        end_slowly(behaviour)
    if told.role != "api":
        be_child(told.role)
    server = Server(told.port, told.served_model_name, behaviour)
    if behaviour.core_and_worker:
        threading.Thread(target=end_with_core, args=(server,), daemon=True).start()
    time.sleep(behaviour.opens_after_s)
    server.server_bind()
    server.server_activate()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
    while server.core_died:
        time.sleep(1)


if __name__ == "__main__":
    main()
