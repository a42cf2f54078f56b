"""Putting an experiment into the queue, once, however often and from however many tabs the button is pressed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.findings import Finding, LabError
from lab.plan import plan_trials
from lab.records.plan import Experiment
from lab.store import list_experiments, queue_experiment
from pages.components.context import environment, get_store, host_name, person


@dataclass
class _Queued:
    """Experiments by the token of the form that queued them; shared by all sessions of this server."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_token: dict[str, int] = field(default_factory=dict)


@st.cache_resource(show_spinner=False)
def _queued() -> _Queued:
    return _Queued()


def queue_once(experiment: Experiment, token: str) -> int:
    """Queue an experiment for this host; the same token again gives the same experiment's number."""
    queued = _queued()
    with queued.lock:
        if token not in queued.by_token:
            queued.by_token[token] = _queue(experiment)
        return queued.by_token[token]


def queue_first(experiment: Experiment) -> int | None:
    """Queue an experiment where there is none yet; None where somebody was faster."""
    with _queued().lock:
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
