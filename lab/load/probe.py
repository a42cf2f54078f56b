"""What a server takes, found by asking for its models and by one small request; never part of a measurement."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import httpx

from lab.configs.gateway import clean_name, resolve_base_url
from lab.findings import LabError
from lab.load.address import COMPLETIONS, Route, find_route, read_address
from lab.load.body import request_body
from lab.load.call import Call
from lab.load.chunks import parse
from lab.load.decode import decode
from lab.load.failures import classify_answer, describe_answer, looks_like_html, one_line
from lab.messages import word_finding
from lab.records.request import RequestRecord
from lab.records.states import RequestFailure
from lab.records.workload import LoadJob, Scalar, Workload

CONNECT_TIMEOUT_S = 10.0
LIST_TIMEOUT_S = 15.0
ANSWER_TIMEOUT_S = 120.0
PROBE_TOKENS = 2
PROBE_PROMPT = "Say hello."
UNREACHABLE: frozenset[RequestFailure] = frozenset({"refused", "dns", "tls", "proxy"})
ServerKind = Literal["vllm", "sglang", "llamacpp", "ollama", "one-api", "transformers"]
_BOTH_LENGTHS = re.compile(r"max_completion_tokens")


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """`base_url` is the address to be used; `failure` None means that a load can start.

    `include_usage`, `ignore_eos` and `max_tokens_field` say what the server takes; `checked` is false where no
    request was sent, so that nothing of this was tried. `usage_given` and `streamed` are None where nothing answered.
    """

    base_url: str
    models: tuple[str, ...] = ()
    model: str | None = None
    include_usage: bool = True
    ignore_eos: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    failure: RequestFailure | None = None
    message: str | None = None
    server_kind: ServerKind | None = None
    checked: bool = False
    usage_given: bool | None = None
    streamed: bool | None = None
    first_token_ms: float | None = None
    route: Route = field(default=Route(), repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def probe_server(
    base_url: str,
    api_key: str | None,
    model: str | None,
    *,
    send_request: bool = True,
    use_proxy: bool,
    most_requests: int = 3,
    request_fields: Mapping[str, Scalar] | None = None,
    variables: Mapping[str, str] | None = None,
) -> ProbeReport:
    """Ask for the models at the address (and at its neighbour with or without /v1), then send a small request.

    A field that the server refuses is dropped and the request sent again, at most `most_requests` in all. Raises
    LabError only for an address that cannot be read; everything that the server did is in the report.
    """
    prober = _Prober(base_url, api_key, use_proxy, os.environ if variables is None else variables)
    try:
        report = prober.find_models(model)
        if report.failure is None and send_request:
            report = prober.try_request(report, most_requests, request_fields or {})
    except LabError as problem:  # a proxy that the lab cannot go through
        if problem.findings[0].code != "proxy-not-http":
            raise
        return ProbeReport(prober.base_url, failure="proxy", message=word_finding(problem.findings[0]))
    return report


class _Prober:
    def __init__(self, base_url: str, api_key: str | None, use_proxy: bool, variables: Mapping[str, str]) -> None:
        self.base_url = resolve_base_url(base_url)
        self._key = (api_key or "").strip() or None
        self._use_proxy = use_proxy
        self._variables = variables

    def find_models(self, model: str | None) -> ProbeReport:
        """Settle the address by asking for the models once per candidate."""
        first: ProbeReport | None = None
        for candidate in _candidates(self.base_url):
            report, settled = self._ask_for_models(candidate, model)
            if settled:
                return report
            first = first or report
        if first is None:
            raise AssertionError("there is always a candidate")
        return first

    def _ask_for_models(self, base_url: str, model: str | None) -> tuple[ProbeReport, bool]:
        """The report and whether it settles the question; a server may lack the list and still answer."""
        wanted, notes = _clean(model)
        route = find_route(read_address(base_url), self._variables, use_proxy=self._use_proxy)
        report = ProbeReport(base_url, model=wanted, route=route, notes=notes)
        answer = self._call("GET", f"{base_url}/models", route, None)
        if isinstance(answer, tuple):
            return replace(report, failure=answer[0], message=self._line(answer[1])), True
        if looks_like_html(answer.body) and answer.status < 500:
            said = describe_answer(200, answer.body).removeprefix("HTTP 200: ")
            return replace(report, failure="not-json", message=self._line(said)), False
        if answer.status in (401, 402, 403):
            failure = classify_answer(answer.status, answer.body)
            return replace(report, failure=failure, message=self._said(answer)), True
        names = _model_names(answer) if answer.status == 200 else None
        if names is None:
            return replace(report, notes=(*notes, "models-not-listed")), False
        kind = _server_kind(answer)
        return replace(report, models=names, model=wanted or next(iter(names), None), server_kind=kind), True

    def try_request(self, report: ProbeReport, most: int, fields: Mapping[str, Scalar]) -> ProbeReport:
        """One small request; a refused field is dropped, and where requests are left the rest is tried again."""
        if report.model is None:
            return replace(report, failure="model", message="no model was named, and the server lists none")
        for sent in range(1, most + 1):
            record = self._request(report, fields)
            dropped = _without_refused(report, record)
            if dropped is None:
                return _judged(report, record)
            if sent == most:
                return replace(dropped, checked=True, notes=(*dropped.notes, "drop-not-tried"))
            report = dropped
        return report

    def _request(self, report: ProbeReport, fields: Mapping[str, Scalar]) -> RequestRecord:
        job = LoadJob(
            base_url=report.base_url,
            model=report.model or "",
            workload=Workload(kind="burst", requests=1, output_tokens=PROBE_TOKENS),
            include_usage=report.include_usage,
            ignore_eos=report.ignore_eos,
            max_tokens_field=report.max_tokens_field,
            request_fields=fields,
        )
        body = request_body(job, [{"role": "user", "content": PROBE_PROMPT}])
        url = report.base_url + COMPLETIONS
        started = time.monotonic_ns()
        reads: list[tuple[int, bytes]] = []
        answer = self._call("POST", url, report.route, body, reads)
        ended = time.monotonic_ns()
        if isinstance(answer, tuple):
            failure = answer[0] if answer[0] in UNREACHABLE or answer[0] == "timeout" else None
            end: Literal["failed", "lost"] = "failed" if failure else "lost"
            call = Call(0, False, started, ended, end, started, failure=failure, error=answer[1])
        else:
            location = answer.headers.get("location")
            call = Call(0, False, started, ended, "closed", started, status=answer.status, location=location)
        return decode(reads, call, clock_ns=started, secret=self._key)

    def _call(
        self,
        method: str,
        url: str,
        route: Route,
        body: dict[str, Any] | None,
        reads: list[tuple[int, bytes]] | None = None,
    ) -> _Answer | tuple[RequestFailure, str]:
        """One HTTP call; its failure to come about is a class with one line."""
        kept: list[tuple[int, bytes]] = [] if reads is None else reads
        timeout = httpx.Timeout(LIST_TIMEOUT_S if body is None else ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            with (
                httpx.Client(proxy=httpx_proxy(route), trust_env=False, timeout=timeout) as client,
                client.stream(method, url, headers=self._headers(), json=body) as response,
            ):
                kept.extend((time.monotonic_ns(), read) for read in response.iter_bytes())
                return _Answer(response.status_code, dict(response.headers), b"".join(read for _, read in kept))
        except httpx.HTTPError as reason:
            return classify_transport(reason, route, url)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _said(self, answer: _Answer) -> str:
        return self._line(describe_answer(answer.status, answer.body, answer.headers.get("location")))

    def _line(self, text: str) -> str:
        return one_line(text, self._key)


def _candidates(base_url: str) -> Sequence[str]:
    """The address as it was resolved, then with /v1 added: a path of one's own need not have it."""
    if base_url.endswith("/v1"):
        return (base_url,)
    return (base_url, f"{base_url}/v1")


def _clean(model: str | None) -> tuple[str | None, tuple[str, ...]]:
    if model is None or not model.strip():
        return None, ()
    cleaned = clean_name(model)
    return cleaned, () if cleaned == model else ("model-name-cleaned",)


def _model_names(answer: _Answer) -> tuple[str, ...] | None:
    try:
        value = parse(answer.body)
    except ValueError:
        return None
    listed = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return None
    names = (each.get("id") or each.get("name") if isinstance(each, dict) else each for each in listed)
    return tuple(name for name in names if isinstance(name, str))


def _server_kind(answer: _Answer) -> ServerKind | None:
    headers = {name.lower() for name in answer.headers}
    if any(name.startswith(("x-oneapi", "x-new-api")) for name in headers):
        return "one-api"
    text = answer.body[:4000].lower()
    owners: tuple[tuple[bytes, ServerKind], ...] = (
        (b'"vllm"', "vllm"),
        (b'"sglang"', "sglang"),
        (b'"llamacpp"', "llamacpp"),
        (b'"library"', "ollama"),
    )
    return next((kind for mark, kind in owners if mark in text), None)


def _without_refused(report: ProbeReport, record: RequestRecord) -> ProbeReport | None:
    """The report without the fields that the answer refuses; None where the answer is not about fields."""
    if record.failure not in ("bad-request", "server") or record.http_status in (502, 503, 504):
        return None
    said = (record.message or "").lower()
    if _BOTH_LENGTHS.search(said) and report.max_tokens_field == "max_tokens":
        return replace(report, max_tokens_field="max_completion_tokens")
    usage = report.include_usage and ("stream_options" in said or "include_usage" in said)
    eos = report.ignore_eos and "ignore_eos" in said
    if not (usage or eos) and (report.include_usage or report.ignore_eos):
        usage, eos = report.include_usage, report.ignore_eos  # it does not say which: leave out both
    if not (usage or eos):
        return None
    return replace(
        report,
        include_usage=report.include_usage and not usage,
        ignore_eos=report.ignore_eos and not eos,
        notes=(*report.notes, *(["stream-options-refused"] if usage else []), *(["ignore-eos-refused"] if eos else [])),
    )


def _judged(report: ProbeReport, record: RequestRecord) -> ProbeReport:
    message = record.message
    if record.failure == "model" and report.models:
        message = one_line(f"{message} — the server lists: {', '.join(report.models[:5])}")
    return replace(
        report,
        checked=True,
        failure=record.failure,
        message=message,
        usage_given=record.completion_tokens is not None if record.failure is None else None,
        streamed=record.ttft_ms is not None if record.failure is None else None,
        first_token_ms=record.ttft_ms,
    )


def httpx_proxy(route: Route) -> httpx.Proxy | None:
    """The proxy of a route as httpx takes it; None for the direct way."""
    if route.proxy is None:
        return None
    headers = {"Proxy-Authorization": route.authorization} if route.authorization else None
    return httpx.Proxy(f"http://{route.proxy.authority}", headers=headers)


def classify_transport(reason: httpx.HTTPError, route: Route, url: str) -> tuple[RequestFailure, str]:
    """The failure class of a call that never got its answer, with one line."""
    said = str(reason) or type(reason).__name__
    where = httpx.URL(url).netloc.decode()
    if isinstance(reason, httpx.ProxyError) or (route.proxy is not None and isinstance(reason, httpx.ConnectError)):
        proxy = route.proxy.authority if route.proxy is not None else "–"
        return "proxy", f"the proxy {proxy} (from the variable {route.variable}) could not be used for {where}: {said}"
    if isinstance(reason, httpx.TimeoutException):
        return "timeout", f"no answer from {where} in time"
    if isinstance(reason, httpx.ConnectError):
        lowered = said.lower()
        if "ssl" in lowered or "certificate" in lowered:
            return "tls", f"no secure connection to {where}: {said}"
        if "name or service" in lowered or "resolution" in lowered or "nodename" in lowered or "[errno -" in lowered:
            return "dns", f"the name of {where} cannot be resolved"
        return "refused", f"no connection to {where}: {said}"
    return "connection-lost", f"the connection to {where} was lost: {said}"
