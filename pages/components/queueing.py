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
from lab.store import get_experiment, list_experiments, queue_experiment
from pages.components.context import environment, get_store, host_name, person
from pages.components.progress import open_experiments


@st.cache_resource(show_spinner=False)
def _one_at_a_time() -> threading.Lock:
    """Shared by all sessions of this server."""
    return threading.Lock()


def queue_once(experiment: Experiment) -> tuple[int, bool]:
    """Queue an experiment for this host; gives its number, and False where the very same one still waits or runs.

    A second click, a reload and a second tab must not measure the same thing twice.
    """
    with _one_at_a_time():
        for row in open_experiments():
            if get_experiment(get_store(), row.id).experiment == experiment:
                return row.id, False
        return _queue(experiment), True


def queue_first(experiment: Experiment) -> int | None:
    """Queue an experiment where there is none yet; None where somebody was faster."""
    with _one_at_a_time():
        if list_experiments(get_store(), limit=1):
            return None
        return _queue(experiment)


def _queue(experiment: Experiment) -> int:
    return queue_experiment(get_store(), experiment, plan_trials(experiment), person=person(), host=host_name())


def read_preset(path: Path) -> tuple[Experiment, tuple[Finding, ...]]:
    """An experiment file checked against the live pair, with its warnings. Raises `LabError` where it has errors."""
    pair = read_pair(environment().config_dir)
    experiment, findings = read_experiment(path.read_text("utf-8"), str(path), pair)
    if experiment is None:
        raise LabError(*findings)
    return experiment, findings
