"""The queue of this host: what runs, how far it is, what waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lab.store import ExperimentRow, ExperimentView, TrialRow, get_experiment, list_experiments, request_stop
from pages.components.context import get_store, host_name, person
from pages.components.frame import link_to
from pages.components.i18n import _, ngettext
from pages.components.launch import live_launch
from pages.components.launch_steps import start_bar
from pages.components.markdown import escaped
from pages.components.own_words import own_words
from pages.components.runner import runner_seen
from pages.components.status import count, duration, state_badge, state_word
from pages.components.time_left import seconds_left

_RUNNING = ("starting", "warming", "measuring")


def open_experiments() -> list[ExperimentRow]:
    """What runs or waits on this host, in the order in which it is done."""
    store = get_store()
    rows = [row for state in ("running", "paused", "queued") for row in list_experiments(store, state=state)]
    here = [row for row in rows if row.host == host_name()]
    return sorted(here, key=lambda row: (row.state == "queued", row.id))


def running_experiment(row: ExperimentRow) -> None:
    """Name, progress, time left and the stop button of the experiment in hand."""
    view = get_experiment(get_store(), row.id)
    with _line():
        st.markdown(f"**{escaped(own_words(row.name))}** {state_badge(row.state)}", width="content")
        stop_button(row, key=f"stop-{row.id}")
    st.progress(done_ratio(view), text=progress_text(view))
    trial = current_trial(view)
    if trial is not None:
        st.caption(escaped(trial_text(trial)))
        launch = live_launch(runner_seen()) if trial.state == "starting" else None
        if launch is not None and launch.state == "starting":
            start_bar(launch)
    link_to("results", _("Results so far"), experiment=row.id)


def stop_button(row: ExperimentRow, key: str) -> None:
    """Stop an experiment; pressed once, it says that it was."""
    if row.stop_requested:
        st.caption(_("Stopping …"))
    elif st.button(_("Stop"), icon=":material/stop:", key=key):
        request_stop(get_store(), row.id, person())
        st.rerun()


def waiting_list(rows: list[ExperimentRow]) -> None:
    """What waits, one line each."""
    for place, row in enumerate(rows, start=1):
        trials = ngettext("{n} trial", "{n} trials", row.trials_total).format(n=row.trials_total)
        with _line():
            st.markdown(
                f"{state_badge(row.state)} {place} · **{escaped(own_words(row.name))}** · {trials} · "
                f"{escaped(row.person)}",
                width="content",
            )
            stop_button(row, key=f"stop-{row.id}")


def _line() -> DeltaGenerator:
    """Text at the left, a button at the right, on one line where there is room."""
    return st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")


def current_trial(view: ExperimentView) -> TrialRow | None:
    return next((trial for trial in view.trials if trial.state in _RUNNING), None)


def done_ratio(view: ExperimentView) -> float:
    """Share of the work done, the stage in hand counted by its requests."""
    if not view.trials:
        return 0.0
    ended = sum(trial.state in ("done", "failed", "cancelled") for trial in view.trials)
    trial = current_trial(view)
    part = _part(trial.progress) if trial is not None else 0.0
    return min(1.0, (ended + part) / len(view.trials))


def progress_text(view: ExperimentView) -> str:
    """Trials done of all, failures, and the time left where it can be told."""
    row = view.row
    ended = row.trials_done + row.trials_failed
    parts = [_("{done} of {total} trials").format(done=count(ended), total=count(row.trials_total))]
    if row.trials_failed:
        parts.append(ngettext("{n} failed", "{n} failed", row.trials_failed).format(n=row.trials_failed))
    left = seconds_left(view)
    if left is not None and left >= 1:
        parts.append(_("about {duration} left").format(duration=duration(left)))
    elif left is None and row.state == "running":
        parts.append(_("the time left can be told once a trial is done"))
    return " · ".join(parts)


def trial_text(trial: TrialRow) -> str:
    """The trial in hand: arm, repeat, state, requests."""
    parts = [own_words(trial.arm_name), _("repeat {n}").format(n=trial.block), state_word(trial.state)]
    progress = trial.progress or {}
    if progress.get("total"):
        parts.append(_("{done} of {total} requests").format(done=progress.get("done", 0), total=progress["total"]))
    if progress.get("in_flight"):
        parts.append(_("{n} in flight").format(n=progress["in_flight"]))
    if trial.attempt > 1:
        parts.append(_("attempt {n}").format(n=trial.attempt))
    return " · ".join(parts)


def _part(progress: Mapping[str, Any] | None) -> float:
    """How much of a trial is done, by its stages and the requests of the one in hand."""
    if not progress:
        return 0.0
    stages = max(1, int(progress.get("stages") or 1))
    before = max(0, int(progress.get("stage") or 1) - 1)
    total = progress.get("total")
    inside = float(progress.get("done") or 0) / float(total) if total else 0.0
    return min(1.0, (before + min(1.0, inside)) / stages)
