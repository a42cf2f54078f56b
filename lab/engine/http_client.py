"""Questions to a running engine over HTTP: small, on loopback, never through a proxy."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from lab.engine.definition import ClientPaths
from lab.findings import error
from lab.host.metrics_page import read_metrics

_TIMEOUT = httpx.Timeout(10.0, connect=2.0)
# "sick": it says so; "gone": nobody takes the call; "late": it takes the call and does not answer;
# "unknown": it answers, but has no word for it
Health = Literal["well", "sick", "gone", "late", "unknown"]
_HEALTH_TIMEOUT = httpx.Timeout(3.0, connect=1.0)
# vLLM gathers facts about the whole system for /server_info, which takes long on a busy host
_SLOW_TIMEOUT = httpx.Timeout(120.0, connect=2.0)


def root_url(base_url: str) -> str:
    """The server's own address: `http://127.0.0.1:8000` for that and for `http://127.0.0.1:8000/v1/`."""
    return base_url.rstrip("/").removesuffix("/v1")


def auth_headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


class EngineClient:
    """Asks one server. Every method raises `LabError` "engine-has-no-answer" where nothing usable came back."""

    def __init__(self, base_url: str, api_key: str | None = None, paths: ClientPaths | None = None) -> None:
        self.base_url = root_url(base_url)
        self._paths = paths or ClientPaths()
        self._client = httpx.Client(
            base_url=self.base_url, headers=auth_headers(api_key), timeout=_TIMEOUT, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def models(self) -> tuple[str, ...]:
        """The names the server answers to."""
        table = self._json(self._ask("GET", "/v1/models"))
        return tuple(str(model.get("id")) for model in table.get("data") or () if isinstance(model, dict))

    def running_requests(self) -> int | None:
        """Requests that run or wait; None where the server does not tell."""
        names = (self._paths.running_metric, self._paths.waiting_metric)
        if not all(names):
            return None
        found = self.metrics(names)
        return int(sum(found.values())) if len(found) == len(names) else None

    def metrics(self, names: tuple[str, ...]) -> dict[str, float]:
        """Metrics by the engine's own names, summed over engines; what the server does not have is left out."""
        page = self._ask("GET", self._paths.metrics_path).text
        try:
            return read_metrics(page, names)
        except ValueError as problem:
            raise error("engine-has-no-answer", url=self.base_url, reason=str(problem)) from problem

    def reset_prefix_cache(self) -> bool | None:
        """Forget all cached prefixes; False where the server could not, None where it has no such endpoint."""
        if not self._paths.reset_path:
            return None
        answer = self._client_request("POST", self._paths.reset_path)
        if answer.status_code in (404, 405):
            return None
        # vLLM answers 200 to a failed reset too and says so in the body, which older releases leave empty; SGLang's
        # is a sentence
        told = self._json(answer).get("success", True) if answer.content[:1] == b"{" else True
        return bool(answer.is_success and told)

    def health(self) -> Health:
        """How the server is, by its own word: asked once, for 3 s at most."""
        try:
            answer = self._client.get(self._paths.health_path, timeout=_HEALTH_TIMEOUT)
        except httpx.TimeoutException:
            return "late"
        except httpx.HTTPError:
            return "gone"
        if answer.status_code in (404, 405):
            return "unknown"
        return "well" if answer.is_success else "sick"

    def get_json(self, path: str) -> Mapping[str, Any] | None:
        """A JSON object, None where the server has no such path."""
        answer = self._client_request("GET", path, _SLOW_TIMEOUT)
        return None if answer.status_code in (404, 405) else self._json(self._checked(answer))

    def page(self, path: str) -> str:
        return self._ask("GET", path).text

    def _ask(self, method: str, path: str) -> httpx.Response:
        return self._checked(self._client_request(method, path))

    def _client_request(self, method: str, path: str, timeout: httpx.Timeout = _TIMEOUT) -> httpx.Response:
        try:
            return self._client.request(method, path, timeout=timeout)
        except httpx.HTTPError as problem:
            reason = str(problem) or type(problem).__name__
            raise error("engine-has-no-answer", url=self.base_url + path, reason=reason) from problem

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if not answer.is_success:
            raise error("engine-has-no-answer", url=str(answer.url), reason=f"status {answer.status_code}")
        return answer

    def _json(self, answer: httpx.Response) -> Mapping[str, Any]:
        try:
            table = answer.json()
        except ValueError as problem:
            raise error("engine-has-no-answer", url=str(answer.url), reason="not JSON") from problem
        return table if isinstance(table, dict) else {}
