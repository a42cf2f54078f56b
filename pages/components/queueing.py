"""Putting an experiment into the queue, once, however often and from however many tabs the button is pressed."""

from __future__ import annotations

import threading
from pathlib import Path

import streamlit as st

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.findings import Finding, LabError
from lab.plan import plan_trials
from lab.records.plan import Experiment
from lab.store import list_experiments, queue_experiment, queue_experiment_once
from pages.components.context import environment, get_store, host_name, person


@st.cache_resource(show_spinner=False)
def _one_at_a_time() -> threading.Lock:
    """Shared by all sessions of this server."""
    return threading.Lock()


def queue_once(experiment: Experiment) -> tuple[int, bool]:
    """Queue an experiment for this host; gives its number, and False where the very same one still waits or runs.

    A second click, a reload, a second tab and a second server must not measure the same thing twice.
    """
    return queue_experiment_once(get_store(), experiment, plan_trials(experiment), person=person(), host=host_name())


def queue_first(experiment: Experiment) -> int | None:
    """Queue an experiment where there is none yet; None where somebody was faster."""
    with _one_at_a_time():
        if list_experiments(get_store(), limit=1):
            return None
        return queue_experiment(get_store(), experiment, plan_trials(experiment), person=person(), host=host_name())


def read_preset(path: Path) -> tuple[Experiment, tuple[Finding, ...]]:
    """An experiment file checked against the live pair, with its warnings. Raises `LabError` where it has errors."""
    pair = read_pair(environment().config_dir)
    experiment, findings = read_experiment(path.read_text("utf-8"), str(path), pair)
    if experiment is None:
        raise LabError(*findings)
    return experiment, findings
