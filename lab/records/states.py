"""The closed lists of DESIGN section 2 and 3."""

from __future__ import annotations

from typing import Literal

Target = Literal["engine", "attach", "gateway"]
ExperimentState = Literal["queued", "running", "paused", "done", "failed", "stopped"]
TrialState = Literal["queued", "starting", "warming", "measuring", "done", "failed", "cancelled"]
LaunchState = Literal["starting", "ready", "busy", "stopping", "stopped", "failed"]
IntentKind = Literal["stop-experiment", "serve", "stop-engine", "shutdown", "download"]
SaveSource = Literal["page", "cli", "restore", "external"]
StageKind = Literal["concurrency", "rate", "prompt_tokens"]
RequestFailure = Literal[
    "refused", "dns", "tls", "proxy", "timeout", "connection-lost", "truncated", "bad-request", "too-long",
    "auth", "quota", "not-found", "model", "rate", "server", "stream-error", "not-json", "empty-answer",
    "cancelled", "engine-died",
]  # fmt: skip
