"""Where the load of a trial goes, whatever kind of target it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lab.engine.definition import EngineDefinition
from lab.engine.http_client import EngineClient
from lab.findings import LabError
from lab.records.summary import Mark
from lab.records.workload import Scalar
from lab.runner.counters import Counters, read_counters
from lab.runner.watch import Watch

QUIET_WITHIN_S = 60.0
_POLL_S = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observed:
    """A server of our own kind, asked directly for what it does beside the API: its engine's definition says how."""

    root_url: str
    definition: EngineDefinition
    api_key: str | None = field(default=None, repr=False)

    @property
    def metrics_url(self) -> str | None:
        metrics = self.definition.metrics
        return None if metrics is None else f"{self.root_url}{metrics.path}"

    def client(self) -> EngineClient:
        return EngineClient(self.root_url, self.api_key, self.definition.client)


def always_alive() -> bool:
    """What a server of someone else's is taken for: its failures show in the requests."""
    return True


def never_dead(_failing: bool) -> None:
    """The same for the question why it died."""


@dataclass(frozen=True, slots=True)
class TrialTarget:
    """A prepared target; `base_url` gets "/chat/completions" appended, `variables` hold the key `api_key_env` names.

    `observed` is None where nothing but the API may be asked (a gateway), `launch_id` where the lab launched nothing.
    """

    base_url: str
    model: str
    variables: Mapping[str, str] = field(repr=False)
    api_key_env: str | None = None
    include_usage: bool = True
    ignore_eos: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    request_fields: Mapping[str, Scalar] = field(default_factory=dict)
    tokenizer_dir: str | None = None
    use_proxy: bool = False
    observed: Observed | None = None
    gpu_indices: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()
    launch_id: int | None = None
    # both are asked of engines only: a server of someone else's shows its failures in the requests
    alive: Callable[[], bool] = always_alive
    # told whether requests failed as they do when an engine dies
    raise_if_dead: Callable[[bool], None] = never_dead

    def settle(self, watch: Watch) -> tuple[Mark, ...]:
        """Empty the prefix cache and wait until nothing runs; marks say where that could not be had.

        Raises `TrialInterrupted` when the trial must end meanwhile.
        """
        if self.observed is None:
            return ()
        with self.observed.client() as client:
            return (*_wait_until_quiet(client, watch), *_reset_prefix_cache(client))

    def counters(self) -> Counters:
        """The server's counters now; without values for a gateway."""
        if self.observed is None:
            return Counters()
        with self.observed.client() as client:
            return read_counters(client, self.observed.definition.metrics)


def _wait_until_quiet(client: EngineClient, watch: Watch) -> tuple[Mark, ...]:
    deadline = time.monotonic() + QUIET_WITHIN_S
    while running := _running(client):
        watch.raise_if_due()
        if time.monotonic() > deadline:
            return (Mark(code="engine-not-quiet", params={"running": running, "seconds": QUIET_WITHIN_S}),)
        time.sleep(_POLL_S)
    return ()


def _running(client: EngineClient) -> int | None:
    try:
        return client.running_requests()
    except LabError as problem:
        _log.info("the number of running requests is unknown: %s", problem.findings[0].params)
        return None


def _reset_prefix_cache(client: EngineClient) -> tuple[Mark, ...]:
    """None from the server means that it has no such switch: prompts are unique all the same, so no reservation."""
    try:
        emptied = client.reset_prefix_cache()
    except LabError:
        emptied = False
    return (Mark(code="prefix-cache-not-reset"),) if emptied is False else ()
