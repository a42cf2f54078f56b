"""Launches of the engine as the pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from lab.store import LaunchRow, get_launch, list_launches
from pages.components.context import get_store, host_name
from pages.components.i18n import N_, _, word
from pages.components.launch_steps import phase_text, start_bar
from pages.components.runner import RunnerSeen
from pages.components.status import (
    MISSING,
    age_s,
    byte_size,
    duration,
    failure_word,
    local_time,
    number,
    state_badge,
    state_word,
)

LIVE_STATES = ("starting", "ready", "busy", "stopping")
_ENDS = {
    "exited": N_("ended by itself"),
    "sigterm": N_("ended when asked"),
    "sigkill": N_("killed after the grace time"),
}


def live_launch(seen: RunnerSeen) -> LaunchRow | None:
    """The engine of this host that lives now; None where there is none or nobody watches it."""
    if not seen.running:
        return None
    if seen.launch_id is not None:
        launch = get_launch(get_store(), seen.launch_id)
        return launch if launch.state in LIVE_STATES else None
    newest = list_launches(get_store(), host_name(), limit=1)
    return newest[0] if newest and newest[0].state in LIVE_STATES else None


def launch_line(seen: RunnerSeen) -> str:
    """One line of Markdown about the engine, for pages that are about something else."""
    launch = live_launch(seen)
    if launch is None:
        return f"{_('Engine')} {state_badge('off')}"
    parts = [_("Engine"), state_badge(launch.state), f"`{launch.served_name or MISSING}`"]
    if launch.state == "starting":
        parts.append(phase_text(launch))
    return " ".join(parts)


def launch_state(launch: LaunchRow | None) -> None:
    """State, address, phase and last line of the log of the live launch."""
    if launch is None:
        st.markdown(f"{_('Engine')} {state_badge('off')}")
        return
    parts = [_("Engine"), state_badge(launch.state), f"`{launch.served_name or MISSING}`"]
    if launch.port is not None:
        parts.append(f"`http://127.0.0.1:{launch.port}/v1`")
    st.markdown(" ".join(parts))
    if launch.state == "starting":
        start_bar(launch)
        if launch.last_line:
            st.code(launch.last_line, language=None, wrap_lines=True)
    elif launch.ready_s is not None:
        up = duration(age_s(launch.started_at))
        st.caption(_("ready after {seconds}, up for {up}").format(seconds=duration(launch.ready_s), up=up))


def has_log(launch: LaunchRow) -> bool:
    """Whether the log of a launch can still be looked at: none before there was a command, and old ones are deleted."""
    return bool(launch.argv) and Path(launch.log_path).is_file()


def failure_text(launch: LaunchRow) -> None:
    """Why a launch failed: the words of its failure, and the end of its log where there is no log to look at."""
    if launch.state != "failed":
        return
    ended = launch.ended or {}
    message: Mapping[str, Any] = ended.get("message") or {}
    sentence = word(str(message["code"]), dict(message)) if message.get("code") else failure_word(launch.failure)
    st.error(sentence, icon=":material/error:")
    if ended.get("log_tail") and not has_log(launch):
        st.code(str(ended["log_tail"]), language=None, wrap_lines=True)


def launch_record(launch: LaunchRow) -> dict[str, Any]:
    """A launch as a row of the table of launches."""
    lived = (launch.ended_at - launch.started_at).total_seconds() if launch.ended_at else None
    return {
        "id": launch.id,
        "state": state_word(launch.state),
        "started": local_time(launch.started_at, seconds=True),
        "engine": launch.engine,
        "model": launch.served_name or MISSING,
        "ready": number(launch.ready_s, 1, "s"),
        "lived": duration(lived),
        "failure": failure_word(launch.failure),
        "end": end_text(launch.ended),
    }


def end_text(ended: Mapping[str, Any] | None) -> str:
    """How an engine was ended: by itself, asked, or killed; and whether anything of it was left."""
    how = (ended or {}).get("how")
    if how is None:
        return MISSING
    text = _(_ENDS[how]) if how in _ENDS else str(how)
    left = (ended or {}).get("left")
    if left:
        return _("{how}; processes left: {left}").format(how=text, left=left)
    return f"{text}; {memory}" if (memory := _memory_text((ended or {}).get("memory"))) else text


def _memory_text(memory: Mapping[str, Any] | None) -> str | None:
    """Whether the memory that it held came back; None where it held none or nobody looked."""
    if not memory:
        return None
    if memory.get("gpu_pids") or memory.get("left_bytes"):
        return _("memory not returned")
    held = memory.get("gpu_bytes") or memory.get("host_bytes")
    return _("{size} of memory returned").format(size=byte_size(held)) if held else None
