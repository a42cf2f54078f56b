"""One answer to a person, through the openai package, with its times by the definitions of every measurement.

The package is right for one request at a time and measures itself under load, so nothing else here uses it. It gives
the bytes of the stream as they come: they are read by the same decoder as the loader's.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import httpx
import httpx2  # what the openai package speaks HTTP with

from lab.load.address import Route, find_route, read_address
from lab.load.answer import Answer
from lab.load.call import Call, End
from lab.load.decode import to_record
from lab.load.probe import classify_transport, httpx_proxy
from lab.records.request import RequestRecord
from lab.records.states import RequestFailure
from lab.records.workload import Scalar

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam

Message = Mapping[str, str]
_SENT = "http11.send_request_headers.started"
_CONNECTING, _CONNECTED = "connection.connect_tcp.started", "connection.connect_tcp.complete"
_OPENING_TIMEOUT_S = 5.0
# the package refuses to have none, and takes OPENAI_API_KEY for an empty one; the header is left out
_NO_KEY = "none"
_FROM_VARIABLES = ("OpenAI-Organization", "OpenAI-Project")


@dataclass(frozen=True, slots=True)
class ChatTarget:
    """Where to talk. `base_url` gets "/chat/completions" appended; `key_variable` is the NAME of the key's variable."""

    base_url: str
    model: str
    key_variable: str | None = None
    use_proxy: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer as it came; an `aside` is reasoning or the call of a tool."""

    kind: Literal["answer", "aside"]
    text: str


class ChatCall:
    """Iterate it for the pieces as they come; then `record` has times, tokens and, where it failed, why.

    Nothing raises but what the caller does meanwhile: an iteration that is left early closes the connection, so that
    the server stops, and its record says "cancelled".
    """

    def __init__(
        self,
        target: ChatTarget,
        messages: Sequence[Message],
        fields: Mapping[str, Scalar],
        *,
        variables: Mapping[str, str],
        timeout_s: float = 120.0,
        connect_timeout_s: float = 10.0,
    ) -> None:
        self._target = target
        self._messages = messages
        self._fields = dict(fields)
        self._key = (variables.get(target.key_variable or "") or "").strip() or None
        self._route = find_route(read_address(target.base_url), variables, use_proxy=target.use_proxy)
        self._timeout = httpx2.Timeout(timeout_s, connect=connect_timeout_s)
        self._clock = _Clock()
        self._include_usage = True
        self.record: RequestRecord | None = None

    def __iter__(self) -> Iterator[Piece]:
        with closing(self._open()) as client:
            again = yield from self._stream(client)
            if again:
                self._include_usage = False
                yield from self._stream(client)
        record = self.record
        if record is not None and record.failure is None and "not-streamed" in record.marks:
            yield Piece("answer", record.text)

    def _open(self) -> httpx2.Client:
        """A client whose connection stands before the clock starts, where the server keeps one open."""
        client = self._client()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            answer = client.get(f"{self._target.base_url}/models", headers=headers, timeout=_OPENING_TIMEOUT_S)
        except httpx2.HTTPError:
            return client  # the call itself will say what is wrong
        if not answer.is_server_error:
            return client
        client.close()  # servers close a connection after an error of theirs: the call would meet its end
        return self._client()

    def _client(self) -> httpx2.Client:
        proxy = httpx_proxy(self._route)
        return httpx2.Client(
            proxy=httpx2.Proxy(str(proxy.url), headers=dict(proxy.headers)) if proxy else None,
            trust_env=False,
            timeout=self._timeout,
            event_hooks={"request": [self._clock.watch]},
        )

    def _stream(self, http_client: httpx2.Client) -> Generator[Piece, None, bool]:
        """One request; gives True where it is to be sent again without a field that the server refused."""
        import openai  # a second of work, which no page should wait for before somebody asks

        self._clock.restart()
        answer, ending = Answer(), _Ending()
        try:
            with self._request(http_client) as response:
                ending.status = response.status_code
                for read in response.iter_bytes():
                    yield from _fed(answer, time.monotonic_ns(), read)
            ending.end = "closed"
        except openai.APIStatusError as refusal:
            ending.end, ending.status = "closed", refusal.status_code
            answer.feed(time.monotonic_ns(), refusal.response.content)
        except (openai.APIConnectionError, httpx2.HTTPError) as problem:
            ending.take(problem, self._route, self._target.base_url, began=ending.status is not None)
        finally:
            self.record = self._to_record(answer, ending)
        return self._refused_usage()

    def _request(self, http_client: httpx2.Client) -> Any:
        import openai

        client = openai.OpenAI(
            base_url=self._target.base_url,
            api_key=self._key or _NO_KEY,
            http_client=http_client,
            max_retries=0,
            timeout=self._timeout,
        )
        messages = cast("list[ChatCompletionMessageParam]", [dict(message) for message in self._messages])
        return client.chat.completions.with_streaming_response.create(
            model=self._target.model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True} if self._include_usage else openai.omit,
            extra_headers={name: cast(str, openai.Omit()) for name in self._left_out()},
            extra_body=self._fields,
        )

    def _left_out(self) -> tuple[str, ...]:
        """Headers that the package takes from variables of its own, which are meant for somebody else's server."""
        return _FROM_VARIABLES if self._key else ("Authorization", *_FROM_VARIABLES)

    def _to_record(self, answer: Answer, ending: _Ending) -> RequestRecord:
        sent_ns = self._clock.sent_ns or self._clock.started_ns
        call = Call(
            index=0,
            warmup=False,
            t0_ns=sent_ns,
            ended_ns=time.monotonic_ns(),
            end=ending.end,
            sent_ns=self._clock.sent_ns,
            connect_ns=self._clock.connect_ns,
            status=ending.status,
            failure=ending.failure,
            error=ending.error,
        )
        return to_record(answer, call, clock_ns=sent_ns, secret=self._key)

    def _refused_usage(self) -> bool:
        record = self.record
        if record is None or record.failure != "bad-request" or not self._include_usage:
            return False
        said = (record.message or "").lower()
        return "stream_options" in said or "include_usage" in said


class _Ending:
    """How a call ended; "cancelled" until something else is known."""

    def __init__(self) -> None:
        self.end: End = "cancelled"
        self.status: int | None = None
        self.failure: RequestFailure | None = None
        self.error: str | None = None

    def take(self, problem: Exception, route: Route, url: str, *, began: bool) -> None:
        cause = problem if isinstance(problem, httpx2.HTTPError) else problem.__cause__ or problem
        # both libraries name their errors alike; the classes of failures are told by one of them
        kind = getattr(httpx, type(cause).__name__, httpx.ConnectError)
        failure, self.error = classify_transport(kind(str(cause)), route, url)
        if began and failure != "timeout":
            self.end = "lost"
        elif failure == "timeout":
            self.end = "timeout"
        else:
            self.end, self.failure = "failed", failure


class _Clock:
    """Stamps the moment at which a request's bytes are handed to its connection, and what opening one took."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.started_ns = time.monotonic_ns()
        self.sent_ns: int | None = None
        self.connect_ns: int | None = None
        self._connecting_ns = self.started_ns

    def watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, _info: Mapping[str, Any]) -> None:
        now = time.monotonic_ns()
        if event == _CONNECTING:
            self._connecting_ns = now
        elif event == _CONNECTED:
            self.connect_ns = now - self._connecting_ns
        elif event == _SENT:
            self.sent_ns = now


def _fed(answer: Answer, at_ns: int, read: bytes) -> Iterator[Piece]:
    """Feed a read; gives what it added to the text."""
    texts, asides = len(answer.text), len(answer.aside)
    answer.feed(at_ns, read)
    if aside := "".join(answer.aside[asides:]):
        yield Piece("aside", aside)
    if text := "".join(answer.text[texts:]):
        yield Piece("answer", text)
