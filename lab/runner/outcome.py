"""How a trial can end other than done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lab.findings import Finding, Param

# what a failed trial or launch stores: `code`, its parameters, and perhaps `remedies` (see `lab.engine.remedies`)
Message = Mapping[str, Param | list[dict[str, Any]]]

FailureClass = Literal[
    "bad-config", "model-missing", "model-broken", "model-gated", "hub-unreachable", "driver", "killed",
    "port-taken", "out-of-memory", "no-kv-room", "context-too-long", "bad-flag",
    "unsupported", "crash", "start-timeout", "engine-died", "load-failed", "gateway-unset", "gateway-auth",
    "all-requests-failed", "not-applicable", "internal",
]  # fmt: skip
# shutdown: the runner must end (signal or intent), the trial goes back to the queue; stop: its experiment was stopped;
# engine-stop: someone stopped the engine that the trial uses; time-limit: the experiment's `max_minutes` are over
Interruption = Literal["shutdown", "stop", "engine-stop", "time-limit"]


class TrialFailed(Exception):  # noqa: N818  an outcome, not a mistake
    """The trial failed for a reason of the closed list; `message` has the message's code and its parameters.

    `log_tail` and `launch_id` are None where no engine was started.
    """

    def __init__(
        self, failure: str, message: Message, log_tail: str | None = None, launch_id: int | None = None
    ) -> None:
        super().__init__(failure)
        self.failure = failure
        self.message = dict(message)
        self.log_tail = log_tail
        self.launch_id = launch_id


class TrialInterrupted(Exception):  # noqa: N818  an outcome, not a mistake
    """The trial was ended from outside before it was done."""

    def __init__(self, reason: Interruption) -> None:
        super().__init__(reason)
        self.reason = reason


def failed(failure: FailureClass, *, log_tail: str | None = None, **params: Param) -> TrialFailed:
    """A failure worded by the message `trial-<failure>`."""
    return TrialFailed(failure, {"code": f"trial-{failure}", **params}, log_tail)


def failed_by(finding: Finding, failure: FailureClass) -> TrialFailed:
    """A failure worded by the finding that caused it."""
    return TrialFailed(failure, {**finding.params, "code": finding.code})
