"""Trials that did not end well, and the one in hand."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.records.workload import Stage
from lab.store import ExperimentView, TrialRow, skipped_stages
from pages.components.frame import link_to
from pages.components.i18n import _, word
from pages.components.markdown import plain_markdown
from pages.components.own_words import own_words
from pages.components.progress import current_trial, done_ratio, progress_text, trial_text
from pages.components.remedy import trial_remedies
from pages.components.result_table import stage_text
from pages.components.status import failure_word, state_word


def trial_reason(trial: TrialRow) -> str:
    """Why a trial failed, in words."""
    code = (trial.message or {}).get("code")
    return word(str(code), dict(trial.message or {})) if code else failure_word(trial.failure)


def failed_trials(view: ExperimentView) -> None:
    """Each failed trial with its class, the reason and the lines of the log that decided."""
    failed = [trial for trial in view.trials if trial.state == "failed" and trial.failure != "not-applicable"]
    if not failed:
        return
    st.subheader(_("Failed trials"), anchor=False)
    for trial in failed:
        name = _("{arm}, repeat {n}").format(arm=own_words(trial.arm_name), n=trial.block)
        with st.container(border=True):
            st.markdown(f":red-badge[:material/error: {failure_word(trial.failure)}] **{plain_markdown(name)}**")
            st.markdown(plain_markdown(trial_reason(trial)))
            trial_remedies(view, trial)
            if trial.log_tail:
                st.code(trial.log_tail, language="log", wrap_lines=True)
            if trial.launch_id is not None:
                link_to("engine", _("The engine's launch {id}").format(id=trial.launch_id), launch=trial.launch_id)


def skipped_lines(trials: Sequence[TrialRow]) -> None:
    """What was left out because the target does not take requests of that length; the repeats of an arm are one."""
    lines: dict[str, None] = {}
    for trial, mark in skipped_stages(trials):
        kind, value = mark.params.get("stage_kind"), mark.params.get("stage_value")
        stage = stage_text(Stage.model_validate({"kind": kind, "value": value}))
        arm = own_words(trial.arm_name)
        name = f"{arm}, {stage}" if stage else arm
        lines[f"**{plain_markdown(name)}**: {plain_markdown(word(mark.code, dict(mark.params)))}"] = None
    if lines:
        st.subheader(_("Not applicable"), anchor=False)
        st.markdown("\n".join(f"- {line}" for line in lines))


def cancelled_line(trials: Sequence[TrialRow]) -> None:
    """One line on what was not run."""
    cancelled = sum(trial.state == "cancelled" for trial in trials)
    if cancelled:
        st.caption(_("{n} of {total} trials were cancelled.").format(n=cancelled, total=len(trials)))


def live_progress(view: ExperimentView) -> None:
    """How far the experiment is and what it does just now."""
    st.progress(done_ratio(view), text=progress_text(view))
    trial = current_trial(view)
    if trial is not None:
        st.caption(trial_text(trial))
    elif view.row.state == "queued":
        st.caption(_("Waits in the queue of {host}.").format(host=view.row.host))
    else:
        st.caption(state_word(view.row.state))
