"""States and values as text: one form for each kind of thing on all pages; what is missing shows as an en dash."""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from pages.components.i18n import N_, _, ngettext

MISSING = "–"

# word, colour of the badge, icon: experiments, trials and launches share one table, since a word means the same in all
_STATES = {
    "queued": (N_("Queued"), "gray", "schedule"),
    "running": (N_("Running"), "blue", "play_arrow"),
    "paused": (N_("Paused"), "orange", "pause"),
    "done": (N_("Done"), "green", "check"),
    "failed": (N_("Failed"), "red", "error"),
    "stopped": (N_("Stopped"), "gray", "stop"),
    "starting": (N_("Starting"), "blue", "rocket_launch"),
    "warming": (N_("Warming up"), "blue", "local_fire_department"),
    "measuring": (N_("Measuring"), "blue", "timer"),
    "cancelled": (N_("Cancelled"), "gray", "block"),
    "ready": (N_("Ready"), "green", "check"),
    "busy": (N_("Busy"), "blue", "play_arrow"),
    "stopping": (N_("Stopping"), "orange", "stop"),
    "idle": (N_("Idle"), "green", "check"),
    "off": (N_("Not running"), "gray", "power_settings_new"),
    "serving": (N_("Serving"), "green", "dns"),
    "ended": (N_("Not running"), "gray", "power_settings_new"),
    "silent": (N_("No sign of life"), "red", "heart_broken"),
}

_FAILURES = {
    # of a trial or a launch
    "bad-config": N_("Bad configuration"),
    "model-missing": N_("Model not found"),
    "model-broken": N_("Model files broken"),
    "model-gated": N_("Model needs access"),
    "hub-unreachable": N_("Hub not reachable"),
    "driver": N_("GPU driver"),
    "killed": N_("Killed from outside"),
    "port-taken": N_("Port taken"),
    "out-of-memory": N_("Out of memory"),
    "no-kv-room": N_("No room for the KV cache"),
    "context-too-long": N_("Context longer than the KV cache"),
    "bad-flag": N_("Flag refused by the engine"),
    "unsupported": N_("Not supported here"),
    "crash": N_("Engine crashed"),
    "start-timeout": N_("Start took too long"),
    "engine-died": N_("Engine died"),
    "load-failed": N_("Load failed"),
    "gateway-unset": N_("Gateway not configured"),
    "gateway-auth": N_("Gateway refused the key"),
    "all-requests-failed": N_("All requests failed"),
    "not-applicable": N_("Not applicable"),
    "internal": N_("Internal error"),
    # of a request
    "refused": N_("Connection refused"),
    "dns": N_("Name not found"),
    "tls": N_("TLS error"),
    "proxy": N_("Proxy error"),
    "timeout": N_("Time-out"),
    "connection-lost": N_("Connection lost"),
    "truncated": N_("Answer cut off"),
    "bad-request": N_("Bad request"),
    "too-long": N_("Prompt too long"),
    "auth": N_("Key refused"),
    "quota": N_("Quota used up"),
    "not-found": N_("Address not found"),
    "model": N_("Unknown model"),
    "rate": N_("Rate limit"),
    "server": N_("Server error"),
    "stream-error": N_("Error inside the stream"),
    "not-json": N_("Answer is not JSON"),
    "empty-answer": N_("Empty answer"),
    "cancelled": N_("Cancelled"),
}

_TARGETS = {"engine": N_("Local engine"), "attach": N_("Running server"), "gateway": N_("TaoToken gateway")}


def state_word(state: str) -> str:
    """A state in the session's language; an unknown one as it is."""
    return _(_STATES[state][0]) if state in _STATES else state


def state_badge(state: str) -> str:
    """A state as a coloured badge in Markdown."""
    _word, colour, icon = _STATES.get(state, (state, "gray", "help"))
    return f":{colour}-badge[:material/{icon}: {state_word(state)}]"


def failure_word(failure: str | None) -> str:
    """A failure class in the session's language; an en dash for none."""
    if failure is None:
        return MISSING
    return _(_FAILURES[failure]) if failure in _FAILURES else failure


def target_word(target: str) -> str:
    return _(_TARGETS[target]) if target in _TARGETS else target


def number(value: float | None, digits: int = 0, unit: str = "") -> str:
    """A number with thousands separators and its unit; missing or not finite is an en dash."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:,.{digits}f}"
    return f"{text} {unit}" if unit else text


def count(value: int | None) -> str:
    return number(value)


def milliseconds(value: float | None) -> str:
    """Three significant figures below 10 s, then seconds."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) >= 10_000:
        return number(value / 1000, 1, "s")
    return number(value, 0 if abs(value) >= 100 else 1, "ms")


def tokens_per_s(value: float | None) -> str:
    return number(value, 0 if value is not None and abs(value) >= 100 else 1, "tok/s")


def percent(ratio: float | None, digits: int = 0) -> str:
    return MISSING if ratio is None or not math.isfinite(ratio) else f"{ratio * 100:.{digits}f} %"


def byte_size(value: float | None) -> str:
    """Binary units, as memory is sold and as vLLM's log names it."""
    if value is None or not math.isfinite(value):
        return MISSING
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return number(value, 0 if unit == "B" or value >= 100 else 1, unit)
        value /= 1024
    return number(value, 1, "TiB")


def parameters_text(parameters: int | None) -> str:
    """As models are named after it: 8.03 B, 135 M."""
    if parameters is None:
        return MISSING
    return f"{parameters / 1e9:.3g} B" if parameters >= 10**9 else f"{parameters / 1e6:.3g} M"


def duration(seconds: float | None) -> str:
    """The two largest units that matter: "42 s", "3 min 05 s", "2 h 10 min"."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    whole = max(0, round(seconds))
    if whole < 60:
        return _("{s} s").format(s=whole)
    if whole < 3600:
        return _("{m} min {s} s").format(m=whole // 60, s=f"{whole % 60:02d}")
    if whole < 86_400:
        return _("{h} h {m} min").format(h=whole // 3600, m=f"{whole % 3600 // 60:02d}")
    return _("{d} d {h} h").format(d=whole // 86_400, h=whole % 86_400 // 3600)


def age_s(moment: datetime | None) -> float | None:
    """Seconds since a moment; a moment without a zone is UTC, as the database keeps it."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (datetime.now(UTC) - aware).total_seconds()


def ago(moment: datetime | None) -> str:
    """How long ago, in words."""
    seconds = age_s(moment)
    if seconds is None:
        return MISSING
    if seconds < 5:
        return _("just now")
    if seconds < 86_400:
        return _("{duration} ago").format(duration=duration(seconds))
    days = int(seconds // 86_400)
    return ngettext("{n} day ago", "{n} days ago", days).format(n=days)


def local_time(moment: datetime | None, seconds: bool = False) -> str:
    """Date and time of day in the browser's zone."""
    if moment is None:
        return MISSING
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(browser_zone()).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def browser_zone() -> tzinfo:
    """The browser's time zone; UTC where it names none."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return UTC
