"""An engine process that misbehaves on demand, for faults that a real engine cannot be made to show.

Takes vLLM's --port and --served-model-name (and ignores the rest of its flags); how it behaves stands in the
environment variable FAKE_ENGINE as JSON, with the keys of `Behaviour`. Standard library only: it is up at once.
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
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

METRICS = """\
vllm:num_requests_running{engine="0"} 0.0
vllm:num_requests_waiting{engine="0"} 0.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
"""


@dataclass(frozen=True)
class Behaviour:
    """Moments count from the start of the process, in seconds; None means never."""

    lines: list[str] = field(default_factory=list)  # printed to stderr at the start
    murmur_s: float | None = None  # a new line to stderr so often, until the port listens
    spin: bool = False  # computes all the time and does nothing
    exit_after_s: float | None = None
    exit_code: int = 1
    open_s: float | None = 0.0  # the port listens
    models_s: float | None = 0.0  # /v1/models answers 200, before 503
    token_s: float | None = 0.0  # a completion answers 200, before 503
    token_status: int = 503
    token_body: str = '{"error":{"message":"not yet"}}'
    answer_takes_s: float = 0.0
    health_takes_s: float | None = None  # computing, before /health answers
    served: str | None = None  # another name than it was told
    core_and_worker: bool = False  # a child and a grandchild, as vLLM has
    ignore_sigterm: bool = False  # all of them
    worker_leaves_group: bool = False
    flood_bytes: int = 0  # written to stdout at the start
    flood_lines: int = 0  # lines of 100 bytes, written to stdout at the start as fast as can be
    last_line: str | None = None  # printed to stdout after them


def _titled(title: str) -> None:
    try:
        import setproctitle
    except ImportError:
        return
    setproctitle.setproctitle(title)


def _obey(behaviour: Behaviour) -> None:
    if behaviour.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _child(role: str, *, own_session: bool = False) -> None:
    subprocess.Popen([sys.executable, __file__, "--role", role], start_new_session=own_session)


def _live_on() -> None:
    while True:
        time.sleep(3600)


def _murmur(behaviour: Behaviour, began: float) -> None:
    words = "a"
    while behaviour.open_s is None or time.monotonic() - began < behaviour.open_s:
        sys.stderr.write(f"still loading {words}\n")
        sys.stderr.flush()
        words += "a"
        time.sleep(behaviour.murmur_s or 1.0)


def _flood(behaviour: Behaviour) -> None:
    lines = b"".join(b"%099d\n" % number for number in range(1000))
    for _ in range(behaviour.flood_lines // 1000):
        os.write(1, lines)
    if behaviour.last_line is not None:
        os.write(1, f"{behaviour.last_line}\n".encode())


def _handler(behaviour: Behaviour, served: str, began: float) -> type[BaseHTTPRequestHandler]:
    def reached(moment: float | None) -> bool:
        return moment is not None and time.monotonic() - began >= moment

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def send(self, status: int, text: str, kind: str = "application/json") -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self.send(200, METRICS, "text/plain")
            elif self.path == "/health" and behaviour.health_takes_s is not None:
                until = time.monotonic() + behaviour.health_takes_s
                while time.monotonic() < until:
                    pass
                self.send(200, "")
            elif self.path != "/v1/models":
                self.send(404, "{}")
            elif reached(behaviour.models_s):
                self.send(200, json.dumps({"data": [{"id": behaviour.served or served}]}))
            else:
                self.send(503, "{}")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(behaviour.answer_takes_s)
            if reached(behaviour.token_s):
                self.send(200, json.dumps({"choices": [{"message": {"content": "Hi"}}]}))
            else:
                self.send(behaviour.token_status, behaviour.token_body)

    return Handler


def _serve(behaviour: Behaviour, port: int, served: str, began: float) -> None:
    if behaviour.open_s is None:
        return
    time.sleep(behaviour.open_s)
    ThreadingHTTPServer(("127.0.0.1", port), _handler(behaviour, served, began)).serve_forever()


def main() -> None:
    began = time.monotonic()
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--role", default="server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--served-model-name", default="model")
    told, _ = parser.parse_known_args()
    behaviour = Behaviour(**json.loads(os.environ.get("FAKE_ENGINE", "{}")))
    _obey(behaviour)
    if told.role == "core":
        _titled("VLLM::EngineCore")
        _child("worker", own_session=behaviour.worker_leaves_group)
        _live_on()
    if told.role == "worker":
        _titled("VLLM::Worker")
        _live_on()
    for line in behaviour.lines:
        sys.stderr.write(line + "\n")
    sys.stdout.write("x" * behaviour.flood_bytes)
    sys.stdout.flush()
    _flood(behaviour)
    if behaviour.core_and_worker:
        _child("core")
    threading.Thread(target=_serve, args=(behaviour, told.port, told.served_model_name, began), daemon=True).start()
    if behaviour.murmur_s is not None:
        threading.Thread(target=_murmur, args=(behaviour, began), daemon=True).start()
    while behaviour.spin:
        pass
    if behaviour.exit_after_s is None:
        _live_on()
    time.sleep(max(0.0, behaviour.exit_after_s - (time.monotonic() - began)))
    sys.stderr.flush()
    os._exit(behaviour.exit_code)


if __name__ == "__main__":
    main()
