"""When an engine is ready: it lives, the port is its own, it lists the model, and it has answered one token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from lab.engine.definition import EngineDefinition
from lab.engine.diagnosis import clean_line, diagnose, read_log
from lab.engine.http_client import auth_headers, root_url
from lab.engine.orphan import own_members
from lab.engine.phases import PhaseReader
from lab.engine.port import LOOPBACK, port_owner
from lab.engine.process import EngineProcess
from lab.engine.progress import Progress
from lab.findings import Finding, Param
from lab.host.facts import host_facts

_WATCH_S = 0.1
_RETRY_S = 0.2
_TIMEOUT = httpx.Timeout(10.0, connect=1.0)
_TOKEN_TIMEOUT = httpx.Timeout(300.0, connect=1.0)
_ANSWER_CHARACTERS = 500
_NOT_YET = (404, 425, 429, 500, 502, 503, 504)


class EngineFailed(Exception):  # noqa: N818  the name that its users know
    """The engine cannot be used: why (a failure class), the decisive lines of its log, what to do."""

    def __init__(
        self, failure_class: str, lines: tuple[str, ...], remedies: tuple[Finding, ...], moment: str | None = None
    ) -> None:
        super().__init__(failure_class)
        self.moment = moment
        self.failure_class = failure_class
        self.lines = lines
        self.remedies = remedies


class LaunchCancelled(Exception):  # noqa: N818  no error: someone asked for it
    """The waiting was cancelled; the engine still runs and is to be stopped."""


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """`seconds` from the launch to the first token; `phases` maps a step to the second at which it was first seen."""

    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)


def wait_ready(
    process: EngineProcess,
    definition: EngineDefinition,
    base_url: str,
    served_name: str,
    api_key: str | None,
    stuck_s: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    on_phase: Callable[[str, str], None] = lambda _phase, _line: None,
) -> ReadyReport:
    """Wait until the engine is truly ready.

    `on_phase` gets the step and the last line of the log, when either changed and at most a few times a second.
    However long it takes: a start fails when the engine gets on no more for `stuck_s` (default: the definition's).
    Raises `EngineFailed` then, and as soon as the process died, the port turns out to be another's or the engine
    refuses the first request; `LaunchCancelled` within 0.2 s. The engine is left as it is: the caller stops it.
    """
    limit_s = definition.ready.stuck_s if stuck_s is None else stuck_s
    waiting = _Waiting(process, definition, root_url(base_url), served_name, api_key)
    return asyncio.run(waiting.wait(limit_s, cancelled, on_phase))


class _Waiting:
    """One wait: a task that asks the engine, watched by a loop that asks nobody and so is never late."""

    def __init__(
        self, process: EngineProcess, definition: EngineDefinition, url: str, served_name: str, api_key: str | None
    ) -> None:
        self._process = process
        self._definition = definition
        self._url = url
        self._served_name = served_name
        self._headers = auth_headers(api_key)
        self._reader = PhaseReader(process.log_path, definition.ready.phase, process.started_ns)

    async def wait(
        self, stuck_s: float, cancelled: Callable[[], bool], on_phase: Callable[[str, str], None]
    ) -> ReadyReport:
        progress = Progress(
            lambda: own_members(self._process.identity, self._process.pgid),
            lambda: self._reader.news,
            stuck_s=stuck_s,
            spinning_s=max(stuck_s, self._definition.ready.timeout_s),
        )
        asking = asyncio.create_task(self._become_ready())
        try:
            while not asking.done():
                if cancelled():
                    raise LaunchCancelled
                if self._process.poll() is not None:
                    raise self._died()
                self._tell(on_phase)
                if (still_s := progress.still_for_s()) is not None:
                    raise self._stuck(still_s)
                await asyncio.wait({asking}, timeout=_WATCH_S)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, EngineFailed):
                await asking
        asking.result()
        self._process.became_ready()
        self._tell(on_phase)
        return ReadyReport((time.monotonic_ns() - self._process.started_ns) / 1e9, dict(self._reader.seen))

    def _tell(self, on_phase: Callable[[str, str], None]) -> None:
        if self._reader.read():
            on_phase(self._reader.phase, self._reader.last_line)

    async def _become_ready(self) -> None:
        async with httpx.AsyncClient(
            base_url=self._url, headers=self._headers, timeout=_TIMEOUT, trust_env=False
        ) as client:
            while not await self._listens():
                await asyncio.sleep(_RETRY_S)
            while not await self._lists_the_model(client):
                await asyncio.sleep(_RETRY_S)
            while not await self._answers(client):
                await asyncio.sleep(_RETRY_S)

    async def _listens(self) -> bool:
        """Whether the port is open, and by the engine itself."""
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, self._process.port)
        except OSError:
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        owner = port_owner(self._process.port)
        if owner is None:
            return False
        if owner.pid in {member.pid for member in own_members(self._process.identity, self._process.pgid)}:
            return True
        params: dict[str, Param] = {"port": self._process.port, "pid": owner.pid, "name": owner.name}
        raise EngineFailed("port-taken", (), (Finding("port-taken", "error", params),))

    async def _lists_the_model(self, client: httpx.AsyncClient) -> bool:
        if self._definition.ready.models_path is None:
            return True  # the first token is asked of the model by its name
        answer = await self._ask(client, "GET", self._definition.ready.models_path)
        if answer is None:
            return False
        try:
            names = [str(model["id"]) for model in answer.json()["data"]]
        except (ValueError, KeyError, TypeError):
            return False
        if names and self._served_name not in names:
            params: dict[str, Param] = {"offered": ", ".join(names), "served_name": self._served_name}
            raise EngineFailed("bad-config", (), (Finding("remedy-served-name", "advice", params),))
        return bool(names)

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        body = {"model": self._served_name, **self._definition.ready.probe_body}
        answer = await self._ask(client, "POST", self._definition.ready.probe_path, body)
        return answer is not None

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: dict[str, object] | None = None
    ) -> httpx.Response | None:
        """The good answer, None for one that may become good; a refusal ends the waiting."""
        try:
            answer = await client.request(method, path, json=body, timeout=_TOKEN_TIMEOUT if body else _TIMEOUT)
        except httpx.HTTPError:
            return None
        if answer.is_success:
            return answer
        if answer.status_code in _NOT_YET:
            return None
        raise self._refused(answer)

    def _refused(self, answer: httpx.Response) -> EngineFailed:
        text = clean_line(" ".join(answer.text.split())[:_ANSWER_CHARACTERS])
        if answer.status_code in (401, 403):
            return EngineFailed("bad-config", (text,), (Finding("remedy-own-key", "advice"),))
        params: dict[str, Param] = {"status": answer.status_code, "answer": text}
        return EngineFailed("unsupported", (text,), (Finding("remedy-probe-refused", "advice", params),))

    def _died(self) -> EngineFailed:
        self._reader.read()
        log = read_log(self._process.log_path)
        found = diagnose(self._definition, log, self._process.poll(), known_facts())
        return EngineFailed(found.failure_class, found.lines, found.remedies, found.moment)

    def _stuck(self, still_s: float) -> EngineFailed:
        """A log that names a cause wins: an engine core can die without its server."""
        found = diagnose(self._definition, read_log(self._process.log_path), None, known_facts())
        params: dict[str, Param] = {"seconds": round(still_s), "phase": self._reader.phase}
        late = Finding("remedy-start-timeout", "advice", params)
        if found.failure_class == "crash":
            return EngineFailed("start-timeout", (self._reader.last_line,), (late,))
        return EngineFailed("start-timeout", found.lines, (late, *found.remedies))


def known_facts() -> dict[str, Param]:
    """What a log does not say: the GPUs' number and capability, who holds their memory. None where there is none."""
    gpus = host_facts().gpus
    holders = [
        f"process {process.pid} ({process.user or '?'}) on GPU {gpu.index}"
        + (f" with {process.used_bytes / 2**30:.1f} GiB" if process.used_bytes else "")
        for gpu in gpus
        for process in gpu.processes
    ]
    capability = gpus[0].capability if gpus else None
    return {"capability": capability, "holders": ", ".join(holders) or None, "gpus": len(gpus) or None}
