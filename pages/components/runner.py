"""The runner of this host as the pages see it: from its heartbeat in the database and from its lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from lab.findings import LabError
from lab.host.runner_process import ensure_runner, runner_alive
from lab.store import get_host
from pages.components.context import environment, get_store, host_name, show_findings
from pages.components.i18n import _
from pages.components.status import age_s, ago, state_badge

# the runner beats once a second; a database that is locked for long can delay a beat by its busy time-out
SILENT_AFTER_S = 20.0
# the runner's word for it; asking the parser of an engine takes ten seconds and more
_READING_OPTIONS = "reading-options"


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """`state` is the runner's own word, or "off" (none here), "silent" (there, but no heartbeat), "starting"."""

    state: str
    detail: str | None = None
    heartbeat_at: datetime | None = None
    trial_id: int | None = None
    launch_id: int | None = None

    @property
    def running(self) -> bool:
        return self.state not in ("off", "silent")


def runner_seen() -> RunnerSeen:
    """What is known of this host's runner now."""
    row = get_host(get_store(), host_name())
    alive = runner_alive(environment())
    if row is None or row.heartbeat_at is None:
        return RunnerSeen("starting" if alive else "off")
    age = age_s(row.heartbeat_at)
    if not alive:
        return RunnerSeen("off", heartbeat_at=row.heartbeat_at)
    if row.runner_state == "ended" or row.runner_state is None:
        return RunnerSeen("starting", heartbeat_at=row.heartbeat_at)
    if age is not None and age > SILENT_AFTER_S:
        return RunnerSeen("silent", heartbeat_at=row.heartbeat_at)
    return RunnerSeen(row.runner_state, row.detail, row.heartbeat_at, row.trial_id, row.launch_id)


def runner_line(seen: RunnerSeen) -> str:
    """One line of Markdown: state, and how old the news is where that matters."""
    parts = [_("Runner"), state_badge(seen.state)]
    if seen.heartbeat_at is not None and not seen.running:
        parts.append(_("last heartbeat {ago}").format(ago=ago(seen.heartbeat_at)))
    if seen.detail == _READING_OPTIONS:
        parts.append(_("Reads the options of the installed engine, once for each release of it."))
    return " ".join(parts)


def start_runner() -> bool:
    """Make sure of a runner on this host; False, with a message on the page, where that failed."""
    try:
        with st.spinner(_("Starting the runner …")):
            ensure_runner(environment())
    except LabError as problem:
        show_findings(problem.findings)
        return False
    return True


def runner_button(seen: RunnerSeen, key: str) -> None:
    """A button that starts a runner, where there is none."""
    if seen.state != "off":
        return
    if st.button(_("Start the runner"), icon=":material/play_arrow:", key=key) and start_runner():
        st.rerun()
