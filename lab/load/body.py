"""The bytes of a request, built before its t0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from lab.findings import error
from lab.load.address import COMPLETIONS, Address, Route
from lab.records.workload import LoadJob

Messages = Sequence[Mapping[str, Any]]


class RequestWriter:
    """Writes whole HTTP requests for one job; raises LabError when the key cannot stand in a header."""

    def __init__(self, job: LoadJob, address: Address, route: Route, key: str | None) -> None:
        self._job = job
        self._head = _head(address, route, key)

    def write(self, messages: Messages, output_tokens: int | None = None) -> bytes:
        body = orjson.dumps(request_body(self._job, messages, output_tokens))
        return self._head + b"%d\r\n\r\n" % len(body) + body


def request_body(job: LoadJob, messages: Messages, output_tokens: int | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"model": job.model, "messages": list(messages), "stream": True}
    if job.include_usage:
        body["stream_options"] = {"include_usage": True}
    body[job.max_tokens_field] = output_tokens or job.workload.output_tokens
    if job.ignore_eos and job.workload.ignore_eos:
        body["ignore_eos"] = True
    return body | dict(job.request_fields)


def _head(address: Address, route: Route, key: str | None) -> bytes:
    path, _, query = address.path.partition("?")
    target = f"{path}{COMPLETIONS}" + (f"?{query}" if query else "")
    if route.proxy is not None and address.scheme == "http":
        target = f"http://{address.authority}{target}"
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {address.authority}",
        "Content-Type: application/json",
        "Accept: text/event-stream, application/json",
        "User-Agent: inference-tuning-lab",
    ]
    if key:
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise error("key-unusable")
        lines.append(f"Authorization: Bearer {key}")
    if route.proxy is not None and address.scheme == "http" and route.authorization is not None:
        lines.append(f"Proxy-Authorization: {route.authorization}")
    return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")
