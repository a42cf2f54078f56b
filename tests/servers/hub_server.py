"""A hub of models on loopback: as much of its HTTP as huggingface_hub asks for, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REVISION = "a" * 40
_LARGE = 1_000_000  # files from here on are kept outside of git, as on the real hub
_RANGE = re.compile(r"bytes=(\d+)-")


@dataclass
class Hub:
    """`models` maps a name to its files; faults are set by a test while the server runs."""

    url: str = ""
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    token: str | None = None  # what opens gated models
    cut_after: int | None = None  # bytes of a file's body after which the connection is dropped
    slow_bytes_per_s: float | None = None
    corrupt: bool = False
    status: int | None = None  # answered to everything
    ranges: list[int] = field(default_factory=list)  # where large files were asked for from


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0].strip("/")
        if self.hub.status is not None:
            self._json({"error": "as the test wants"}, self.hub.status)
        elif found := re.fullmatch(r"api/models/([^/]+/[^/]+)(?:/revision/[^/]+)?", path):
            self._info(found[1])
        elif found := re.fullmatch(r"api/models/([^/]+/[^/]+)/tree/[^/]+", path):
            self._tree(found[1])
        elif found := re.fullmatch(r"([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            self._file(found[1], found[2], body=body)
        else:
            self._json({"error": "not found"}, 404)

    def _known(self, name: str) -> dict[str, bytes] | None:
        files = self.hub.models.get(name)
        if files is None:
            self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        return files

    def _info(self, name: str) -> None:
        files = self._known(name)
        if files is None:
            return
        siblings = [{"rfilename": path, **_described(content)} for path, content in files.items()]
        gated = "manual" if name in self.hub.gated else False
        self._json({"id": name, "modelId": name, "sha": REVISION, "gated": gated, "siblings": siblings, "tags": []})

    def _tree(self, name: str) -> None:
        files = self._known(name)
        if files is None:
            return
        entries = []
        for path, content in files.items():
            told = _described(content)
            lfs = {"lfs": {"oid": told["lfs"]["sha256"], **told["lfs"]}} if "lfs" in told else {}
            entries.append({"type": "file", "path": path, "size": len(content), "oid": told["blobId"], **lfs})
        self._json(entries)

    def _file(self, name: str, path: str, *, body: bool) -> None:
        files = self._known(name)
        if files is None:
            return
        if name in self.hub.gated and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._json({"error": "Access to model is restricted"}, 403, {"X-Error-Code": "GatedRepo"})
            return
        if path not in files:
            self._json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        content = files[path]
        told = _described(content)
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{told["lfs"]["sha256"] if "lfs" in told else told["blobId"]}"')
        if "lfs" in told:
            self.send_header("X-Linked-Size", str(len(content)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if body:
            self._send(content, start)

    def _send(self, content: bytes, start: int) -> None:
        large = len(content) >= _LARGE
        if large:
            self.hub.ranges.append(start)
        if self.hub.corrupt and large:
            content = bytes(len(content))
        end = len(content) if self.hub.cut_after is None or not large else min(len(content), start + self.hub.cut_after)
        for place in range(start, end, 65536):
            try:
                self.wfile.write(content[place : min(end, place + 65536)])
            except OSError:
                break
            if self.hub.slow_bytes_per_s and large:
                threading.Event().wait(65536 / self.hub.slow_bytes_per_s)
        if end < len(content):
            self.close_connection = True
            self.connection.close()

    def _json(self, table: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(table).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _described(content: bytes) -> dict[str, Any]:
    """A file as the hub lists it."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    found: dict[str, Any] = {"size": len(content), "blobId": blob}
    if len(content) >= _LARGE:
        found["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is what some tests are about."""


@contextmanager
def serve_hub(hub: Hub) -> Iterator[Hub]:
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
